//! Everything before the first side effect: harness, repository, programs, gateway, plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use camino::Utf8PathBuf;

use super::options::Options;
use crate::error::{Code, Error, Result};
use crate::harness::model::Harness;
use crate::harness::problem::{Problem, Problems};
use crate::harness::{self, Environment, Loaded, Overrides, Request};
use crate::local::programs::Search;
use crate::local::{BINDS_ENV, PROGRAMS_ENV};
use crate::openshell::{Dialect, Openshell, Where};
use crate::plan::repo::{HostRepo, UploadOptions};
use crate::plan::{self, Inputs, Plan};
use crate::process::locate;
use crate::report::Printer;

/// The outside of a run, found and checked.
#[derive(Debug)]
pub(super) struct World {
    /// The openshell CLI.
    pub openshell: Openshell,
    /// The target repository.
    pub repo: HostRepo,
    /// What `--env-file` adds to the environment of host scripts.
    pub file_env: BTreeMap<String, String>,
}

/// A plan that can be executed.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// Where it is executed.
    pub world: World,
}

/// What a dry run knows.
#[derive(Debug)]
pub(super) struct Sketch {
    /// The plan.
    pub plan: Plan,
    /// The target repository.
    pub repo: HostRepo,
    /// How the openshell CLI would be called.
    pub openshell: Vec<String>,
    /// What a run would warn about.
    pub warnings: Vec<String>,
}

/// Finds and checks everything that a run needs. Problems of independent parts are reported together.
pub(super) async fn prepare(
    options: &Options,
    openshell: Result<Openshell>,
    ui: &Printer,
) -> Result<Prepared> {
    let inputs = gather(options).await;
    let shown = inputs.as_ref().map_or(Ok(Shown::default()), |i| shown(options, &i.loaded.harness));
    let (inputs, ((), (openshell, shown))) = both(inputs, both(tools(), both(openshell, shown)))?;
    let mut openshell =
        shown.into_env().into_iter().fold(openshell, |o, (key, value)| o.with_variable(key, value));
    for warning in warnings(&inputs.loaded) {
        ui.warn(&warning);
    }
    let local = options.is_local();
    let (dialect, rows, able) = tokio::join!(openshell.probe(), openshell.check_gateway(), able(local));
    able?;
    // A program that is no openshell answers neither; that it is none is the news.
    let dialect = dialect?;
    rows?;
    let plan = plan::build(inputs.plan_inputs(options, dialect, openshell.is_local()))?;
    openshell.deadlines = plan.deadlines.openshell();
    Ok(Prepared { plan, world: World { openshell, repo: inputs.repo, file_env: inputs.file_env } })
}

/// Whether the embedded backend, if it is asked for, can work here. Takes a trial start of its sandbox program, beside
/// the other questions.
async fn able(local: bool) -> Result<()> {
    if !local {
        return Ok(());
    }
    let trial = tokio::task::spawn_blocking(crate::local::preflight);
    trial.await.map_err(|e| Error::bug(format!("trying the embedded backend: {e}")))?
}

/// The same without an OpenShell at hand: where there is none, the newest known is assumed.
pub(super) async fn sketch(options: &Options) -> Result<Sketch> {
    let inputs = gather(options).await?;
    let (argv, dialect) = match find_openshell(options) {
        Ok(found) => (found.argv(), found.probe().await.unwrap_or_else(|_| Dialect::newest())),
        Err(_) => (vec![crate::openshell::dialect::BINARY.to_owned()], Dialect::newest()),
    };
    let plan = plan::build(inputs.plan_inputs(options, dialect, options.is_local()))?;
    let warnings = warnings(&inputs.loaded);
    Ok(Sketch { plan, repo: inputs.repo, openshell: argv, warnings })
}

/// What is read from disk.
struct Read {
    loaded: Loaded,
    agent_text: Vec<u8>,
    file_env: BTreeMap<String, String>,
    repo: HostRepo,
    repo_path: Utf8PathBuf,
}

impl Read {
    fn plan_inputs(&self, options: &Options, dialect: Dialect, local: bool) -> Inputs {
        Inputs {
            harness: self.loaded.harness.clone(),
            agent_text: self.agent_text.clone(),
            dialect,
            local,
            repo: self.repo_path.clone(),
            apply: options.apply,
            no_post_script: options.no_post_script,
            keep_sandbox: options.keep_sandbox.is_some(),
        }
    }
}

async fn gather(options: &Options) -> Result<Read> {
    let ((loaded, file_env), (repo, repo_path)) = both(load(options), repository(options).await)?;
    let agent_text = fs_err::read(&loaded.harness.agent)?;
    Ok(Read { loaded, agent_text, file_env, repo, repo_path })
}

fn load(options: &Options) -> Result<(Loaded, BTreeMap<String, String>)> {
    let dir = harness::find_dir(options.fullsend_dir.as_deref(), &options.working_dir)?;
    let file_env = harness::read_env_files(&options.env_files)?;
    let loaded = harness::load(&Request {
        dir,
        agent: options.agent.clone(),
        forge: options.forge,
        env: Environment::new(std::env::vars_os(), file_env.clone()),
        overrides: Overrides {
            image: options.image.clone(),
            model: options.model.clone(),
            timeout: options.timeout,
            ready_timeout: options.ready_timeout,
            deadlines: options.deadlines.clone(),
        },
    })?;
    Ok((loaded, file_env))
}

async fn repository(options: &Options) -> Result<(HostRepo, Utf8PathBuf)> {
    let target = options.target_repo.clone().unwrap_or_else(|| options.working_dir.clone().into());
    let repo = HostRepo::discover(&target).await?;
    let path = Utf8PathBuf::from_path_buf(repo.top.clone()).map_err(|path| {
        Error::new(Code::RepoInvalid, format!("the path {} is not UTF-8", path.display()))
            .help("move the repository to a path whose names are UTF-8")
    })?;
    Ok((repo, path))
}

/// The programs that every run calls.
fn tools() -> Result<()> {
    let mut problems = Problems::default();
    for (program, package) in
        [("git", "git"), ("ssh", "openssh-client"), ("scp", "openssh-client"), ("rsync", "rsync")]
    {
        if let Err(error) = locate(program, &format!("install it, e.g. `apt-get install {package}`")) {
            problems.push(Problem::error(error.code(), error.message()).help(error.help_text()));
        }
    }
    if problems.has_errors() { Err(Error::problems(problems)) } else { Ok(()) }
}

/// What of this machine a sandbox of the embedded backend shows besides the system.
#[derive(Debug, Default)]
struct Shown {
    binds: Vec<PathBuf>,
    links: Vec<(String, PathBuf)>,
}

/// What the user asked for, and the agent's programs where they are installed.
///
/// # Errors
/// [`Code::ImageLacks`] for a program that is neither on this machine nor delivered by the harness.
fn shown(options: &Options, harness: &Harness) -> Result<Shown> {
    let mut binds: Vec<PathBuf> = options.local_binds.iter().map(PathBuf::from).collect();
    if !options.is_local() {
        return Ok(Shown { binds, links: Vec::new() });
    }
    let home = std::env::home_dir();
    let search = Search::new(std::env::var_os("PATH").as_deref(), home.as_deref());
    let mut found = search.installed(harness.runtime.runtime().programs(), &binds);
    found.missing.retain(|name| !harness.host_files.iter().any(|f| f.dest.ends_with(&format!("/{name}"))));
    if !found.missing.is_empty() {
        let what = format!("not found on this machine: {}", found.missing.join(", "));
        return Err(Error::new(Code::ImageLacks, what).help(
            "install it so that it is on your PATH; `--local-bind <install prefix>` shows one that lies elsewhere",
        ));
    }
    binds.extend(found.binds);
    Ok(Shown { binds, links: found.links })
}

impl Shown {
    /// How the embedded backend is told.
    fn into_env(self) -> Vec<(&'static str, String)> {
        let binds: Vec<_> = self.binds.iter().map(|b| b.display().to_string()).collect();
        let links: Vec<_> = self.links.iter().map(|(n, p)| format!("{n}={}", p.display())).collect();
        let lists = [(BINDS_ENV, binds.join(":")), (PROGRAMS_ENV, links.join(":"))];
        lists.into_iter().filter(|(_, list)| !list.is_empty()).collect()
    }
}

/// The openshell that the options ask for; nothing is called yet.
pub(super) fn find_openshell(options: &Options) -> Result<Openshell> {
    let place = match (&options.openshell, options.is_local()) {
        (_, true) => Where::Local,
        (Some(path), false) => Where::Explicit(path.clone()),
        (None, false) => Where::Search,
    };
    Openshell::locate(&place, options.gateway.as_deref(), Vec::new())
}

/// What a run uploads of the repository.
pub(super) fn upload_options(plan: &Plan, options: &Options) -> UploadOptions {
    UploadOptions {
        ignored: plan.harness.upload.ignored,
        exclude: plan.harness.upload.exclude.clone(),
        leave_out: std::path::absolute(options.output_dir()).into_iter().collect(),
    }
}

fn warnings(loaded: &Loaded) -> Vec<String> {
    let text = |w: &Problem| {
        let place = w.place.as_ref().map_or_else(String::new, |p| format!("{p}: "));
        format!("{place}{}", w.message)
    };
    loaded.warnings.iter().map(text).collect()
}

/// Independent problems are reported together.
fn both<A, B>(a: Result<A>, b: Result<B>) -> Result<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(a), Err(b)) => Err(a.and(b)),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}
