//! Everything before the first side effect: harness, repository, programs, gateway, plan.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};

use super::handover;
use super::options::Options;
use super::verify_image::{self, Checked};
use crate::agent::render::ShowAgent;
use crate::error::{Code, Error, Result};
use crate::fetch;
use crate::harness::image_policy::ImagePolicy;
use crate::harness::model::Harness;
use crate::harness::problem::{Problem, Problems};
use crate::harness::remote::{Fetched, Pinning};
use crate::harness::{self, Environment, Loaded, Overrides, Request};
use crate::local::programs::Search;
use crate::local::{BINDS_ENV, PROGRAMS_ENV};
use crate::openshell::{Dialect, Openshell, Where};
use crate::plan::repo::{HostRepo, UploadOptions};
use crate::plan::{self, EventFile, Inputs, Plan};
use crate::process::locate;
use crate::remote;
use crate::report::{Ci, Printer};
use crate::scan::unicode;
use crate::secrets::Secret;

/// The outside of a run, found and checked.
#[derive(Debug)]
pub(super) struct World {
    /// The openshell CLI.
    pub openshell: Openshell,
    /// The target repository.
    pub repo: HostRepo,
    /// What the executable of the hooks needs of the sandbox.
    pub hook_needs: Option<crate::scan::elf::Elf>,
    /// What `--env-file` adds to the environment of host scripts.
    pub file_env: BTreeMap<String, String>,
    /// How a run that reviews this one is told of the same world.
    pub again: Vec<OsString>,
    /// What the servers on this host know the agent by, where there are any.
    pub token: Option<Secret>,
    /// Who signed the image, where that was checked.
    pub image_signer: Option<String>,
    /// Where reports for GitLab are written, when it was given.
    pub report_dir: Option<std::path::PathBuf>,
}

/// A plan that can be executed.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// Where it is executed.
    pub world: World,
    /// How much of the agent is shown.
    pub show_agent: ShowAgent,
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
    let local = options.is_local();
    // Beside the reading, what concerns this machine alone.
    let (inputs, able, account, rsync) =
        tokio::join!(gather(options), able(local), remote::check_account(), remote::Rsync::find());
    let shown = inputs.as_ref().map_or(Ok(Shown::default()), |i| shown(options, &i.loaded.harness));
    let (inputs, ((), (openshell, shown))) = both(inputs, both(tools(), both(openshell, shown)))?;
    let mut openshell =
        shown.into_env().into_iter().fold(openshell, |o, (key, value)| o.with_variable(key, value));
    for warning in warnings(&inputs.loaded) {
        ui.warn(&warning);
    }
    let image = inputs.loaded.harness.image.as_deref();
    let (dialect, rows, checked) = tokio::join!(
        openshell.probe(),
        openshell.check_gateway(),
        verify_image::check(&inputs.image_policy, image)
    );
    if let Some(warning) = rsync?.warning() {
        ui.warn(&warning);
    }
    both(able, account)?;
    // A program that is no openshell answers neither; that it is none is the news.
    let dialect = dialect?;
    rows?;
    let image_signer = say_checked(ui, checked?, image);
    let plan = plan::build(inputs.plan_inputs(options, dialect, openshell.is_local()))?;
    for note in &plan.notes {
        ui.warn(note);
    }
    openshell.deadlines = plan.deadlines.openshell();
    let hook_needs = super::security::hook_program(&plan)?;
    let token = if plan.harness.api_servers.is_empty() { None } else { Some(super::servers::token()?) };
    let world = World {
        openshell,
        repo: inputs.repo,
        hook_needs,
        file_env: inputs.file_env,
        again: again(options, &plan.harness),
        token,
        image_signer,
        report_dir: options.report_dir.clone(),
    };
    // Whoever may read the log of CI need not be who may read what an agent says.
    let default = if ui.ci() == Ci::None { ShowAgent::Full } else { ShowAgent::Tools };
    Ok(Prepared { plan, world, show_agent: options.show_agent.unwrap_or(default) })
}

/// Says what the check of the image found; the answer is the signer.
fn say_checked(ui: &Printer, checked: Checked, image: Option<&str>) -> Option<String> {
    let image = image.unwrap_or_default();
    match checked {
        Checked::NotAsked => {}
        Checked::Signed(by) => {
            ui.info("image", &format!("{image} is signed by {by}"));
            return Some(by);
        }
        Checked::NoCosign => {
            ui.warn(&format!("cosign is not installed, so that the signature of {image} was not checked"));
        }
    }
    None
}

/// The options of a further run beside this one, but for its agent and its repository.
fn again(options: &Options, harness: &Harness) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--fullsend-dir".into(), harness.dir.as_str().into()];
    let mut add = |flag: &str, value: &std::ffi::OsStr| args.extend([flag.into(), value.to_owned()]);
    for file in &options.env_files {
        add("--env-file", options.working_dir.join(file).as_os_str());
    }
    for bind in &options.local_binds {
        add("--local-bind", bind.as_ref());
    }
    if let Some(gateway) = &options.gateway {
        add("--gateway", gateway.as_ref());
    }
    match &options.openshell {
        _ if options.is_local() => {}
        // A name without a slash is looked for on PATH, any other from the working directory.
        Some(path) if path.components().count() > 1 => {
            add("--openshell", options.working_dir.as_std_path().join(path).as_os_str());
        }
        Some(path) => add("--openshell", path.as_os_str()),
        None => {}
    }
    if let Some(forge) = harness.forge {
        add("--forge", forge.as_str().as_ref());
    }
    if let Some(binary) = &options.hook_binary {
        add("--fullsend-binary", options.working_dir.join(binary).as_os_str());
    }
    args.extend(options.verify_image.then(|| OsString::from("--verify-image")));
    args.extend(options.shared_executor.then(|| OsString::from("--allow-shell-executor")));
    args.extend(options.is_local().then(|| OsString::from("--local")));
    args.extend(options.fetching.offline.then(|| OsString::from("--offline")));
    if let Some(dir) = &options.fetching.cache_dir {
        args.extend(["--cache-dir".into(), options.working_dir.as_std_path().join(dir).into_os_string()]);
    }
    args
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
    let mut warnings = warnings(&inputs.loaded);
    warnings.extend(plan.notes.iter().cloned());
    Ok(Sketch { plan, repo: inputs.repo, openshell: argv, warnings })
}

/// What is read from disk.
struct Read {
    loaded: Loaded,
    agent_text: Vec<u8>,
    file_env: BTreeMap<String, String>,
    repo: HostRepo,
    repo_path: Utf8PathBuf,
    image_policy: ImagePolicy,
    event: Option<EventFile>,
}

impl Read {
    fn plan_inputs(&self, options: &Options, dialect: Dialect, local: bool) -> Inputs {
        Inputs {
            harness: self.loaded.harness.clone(),
            image_policy: self.image_policy.clone(),
            agent_text: self.agent_text.clone(),
            dialect,
            local,
            repo: self.repo_path.clone(),
            apply: options.apply,
            no_post_script: options.no_post_script,
            keep_sandbox: options.keep_sandbox.is_some(),
            hook_binary: options.hook_binary(),
            guidance: guidance(&self.loaded.harness.dir, &self.repo_path),
            event: self.event.clone(),
            input_dir: options.review.clone(),
        }
    }
}

/// The instructions of the harness directory, for repositories that have none of their own.
fn guidance(dir: &Utf8Path, repo: &Utf8Path) -> Option<Utf8PathBuf> {
    const NAMES: [&str; 7] =
        ["AGENTS.md", "agents.md", "Agents.md", "CLAUDE.md", "claude.md", "Claude.md", ".claude.md"];
    let file = dir.join("AGENTS.md");
    let own = NAMES.iter().any(|name| repo.join(name).symlink_metadata().is_ok());
    (!own && file.is_file()).then_some(file)
}

async fn gather(options: &Options) -> Result<Read> {
    let (loaded, repository) = tokio::join!(load(options), repository(options));
    let loaded = loaded.and_then(|(loaded, file_env)| {
        let image_policy = verify_image::policy(options, &loaded)?;
        Ok((loaded, file_env, image_policy))
    });
    let ((loaded, file_env, image_policy), (repo, repo_path)) = both(loaded, repository)?;
    let agent_text = fs_err::read(&loaded.harness.agent)?;
    let event = event(&Environment::new(std::env::vars_os(), file_env.clone()), &loaded.harness);
    Ok(Read { loaded, agent_text, file_env, repo, repo_path, image_policy, event })
}

/// The variables that name the file with the event that started a CI job: GitHub's, and that of a GitLab pipeline that
/// a trigger started.
pub(super) const EVENT_FILES: [&str; 2] = ["GITHUB_EVENT_PATH", "TRIGGER_PAYLOAD"];
/// The variable with the event itself.
pub(super) const EVENT_TEXT: &str = "EVENT_PAYLOAD";
/// The largest event that is delivered, in bytes; GitHub's are at most 25 MB.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// The event, without what does not show where the scanners look for it.
fn event(env: &Environment, harness: &Harness) -> Option<EventFile> {
    let named = |name: &'static str| {
        let path = env.lookup(name).filter(|path| !path.is_empty())?;
        Some((name, std::fs::read(path).ok()?))
    };
    let text = || Some((EVENT_TEXT, env.lookup(EVENT_TEXT).filter(|t| !t.is_empty())?.as_bytes().to_vec()));
    let (from, bytes) = EVENT_FILES.into_iter().find_map(named).or_else(text)?;
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if harness.security.enabled && harness.security.scanners.unicode => {
            unicode::sanitize(&text).into_owned().into_bytes()
        }
        Ok(text) => text.into_bytes(),
        Err(other) => other.into_bytes(),
    };
    (bytes.len() <= MAX_EVENT).then_some(EventFile { bytes, from })
}

async fn load(options: &Options) -> Result<(Loaded, BTreeMap<String, String>)> {
    let dir = harness::find_dir(options.fullsend_dir.as_deref(), &options.working_dir)?;
    let file_env = harness::read_env_files(&options.env_files)?;
    let mut request = Request {
        dir,
        agent: options.agent.clone(),
        forge: options.forge,
        env: Environment::new(std::env::vars_os(), file_env.clone()),
        overrides: Overrides {
            image: options.image.clone(),
            runtime: options.runtime,
            model: options.model.clone(),
            timeout: options.timeout,
            ready_timeout: options.ready_timeout,
            deadlines: options.deadlines.clone(),
            ttl: options.ttl,
            idle_timeout: options.idle_timeout,
            prompt: options.prompt.clone(),
            debug: options.debug.clone(),
            budgets: options.budgets,
            api_retries: options.api_retries,
            reviewer: options.review.is_some(),
        },
        fetched: Fetched::default(),
    };
    let loaded = fetch::settle(&options.fetching, Pinning::Refuse, |fetched| {
        request.fetched = fetched.clone();
        harness::attempt(&request)
    })
    .await?;
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
    let hooks = harness.security.enabled && harness.security.hooks.any() && harness.runtime.runtime().hooks();
    if hooks || harness.has_schemas() {
        binds.extend(options.hook_binary().map(PathBuf::from).filter(|path| path.is_file()));
    }
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

/// What a run uploads of the repository. What this program writes into a checkout stays out.
pub(super) fn upload_options(plan: &Plan, options: &Options, ci: Ci) -> UploadOptions {
    let output = std::path::absolute(options.output_dir()).into_iter();
    let leave_out = output.chain(handover::report_files(options.report_dir.as_deref(), ci)).collect();
    UploadOptions {
        ignored: plan.harness.upload.ignored,
        exclude: plan.harness.upload.exclude.clone(),
        trust_repo_config: plan.harness.trust_repo_config,
        leave_out,
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
