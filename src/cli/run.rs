//! `fullsend run`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::ValueEnum;

use crate::error::{Code, Error, Result};
use crate::harness::Forge;
use crate::plan::{Apply, deadlines};
use crate::report::Printer;
use crate::run::{self, Options};

/// Run one agent in one sandbox and bring its results back.
///
/// The agent is `harness/<AGENT>.yaml` in the harness directory. Its results end in a run directory that is
/// complete without the sandbox; the last lines of the output name it.
///
/// Exit status: 0 success or a skip asked for by the pre-script; 1 the agent failed or its output did not
/// validate; 2 usage, harness or environment is wrong; 3 infrastructure; 4 blocked by a security check;
/// 5 a script failed; 124 deadline reached; 129, 130, 143 cancelled.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent to run; `fullsend list` shows them.
    agent: String,
    /// The harness directory [default: the nearest `.fullsend/` upwards, else the working directory if it has `harness/`].
    #[arg(long, value_name = "DIR")]
    fullsend_dir: Option<Utf8PathBuf>,
    /// The git checkout the agent works on [default: the top level of the repository around the working directory].
    #[arg(long, value_name = "DIR")]
    target_repo: Option<PathBuf>,
    /// Where run directories are made [default: `fullsend` under the system's temp dir].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// A file of `NAME=value` lines to add to the environment; later files win. May be repeated.
    #[arg(long, value_name = "FILE")]
    env_file: Vec<Utf8PathBuf>,
    /// The forge whose part of the harness applies [default: from the CI environment, else from `config.yaml`].
    #[arg(long, value_name = "NAME")]
    forge: Option<Forge>,
    #[command(flatten)]
    backend: super::backend::Backend,
    /// With --local: a further host directory to show read-only at the same path. May be repeated.
    #[arg(long, value_name = "DIR")]
    local_bind: Vec<Utf8PathBuf>,
    /// The sandbox image, instead of the harness's.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The model, instead of the harness's.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// How long the agent may take per iteration, e.g. `45m`, `90s` [default: the harness's `timeout_minutes`, else 30m].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long the sandbox may take to become ready [default: the harness's `sandbox_timeout_seconds`, else 300s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ready_timeout: Option<Duration>,
    /// Keep the sandbox at the end and print how to get in and how to delete it. `fullsend reap` deletes it after
    /// DURATION [default: 24h].
    #[arg(
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "24h",
        value_parser = super::age::some_time
    )]
    keep_sandbox: Option<Duration>,
    /// How long another part of the run may take, e.g. `collect=10m`. Names: bootstrap, collect, connect, delete,
    /// openshell, `preflight_check`, run, script. May be repeated. [default: the harness's `deadlines`]
    #[arg(long, value_name = "NAME=DURATION", value_parser = deadline)]
    deadline: Vec<(String, Duration)>,
    /// Do not run the harness's post-script.
    #[arg(long)]
    no_post_script: bool,
    /// Whether the result is applied to the checkout. `auto`: when the run succeeded and the harness has no
    /// post-script to take it.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    apply: Apply,
    /// Show what a run would do, and do nothing. Needs neither OpenShell nor a network.
    #[arg(long)]
    dry_run: bool,
    /// The form of a dry run.
    #[arg(long, value_name = "FORMAT", default_value = "text", requires = "dry_run")]
    format: Format,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

pub(super) fn main(args: &Args, ui: &Printer) -> ExitCode {
    let result = options(args).and_then(|options| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| Error::io("cannot start", &e))?;
        let code = if args.dry_run {
            runtime.block_on(run::dry_run(&options, args.format == Format::Json, ui)).map(|()| 0)
        } else {
            Ok(runtime.block_on(run::run(&options, ui)))
        };
        // A blocking task that hangs on a dead disk must not keep the process.
        runtime.shutdown_background();
        code
    });
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            ui.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn options(args: &Args) -> Result<Options> {
    let backend = args.backend.choice();
    let options = Options {
        agent: args.agent.clone(),
        fullsend_dir: args.fullsend_dir.clone(),
        target_repo: args.target_repo.clone(),
        output_dir: args.output_dir.clone(),
        env_files: args.env_file.clone(),
        gateway: backend.gateway,
        openshell: backend.openshell,
        local: backend.local,
        local_binds: args.local_bind.clone(),
        forge: args.forge,
        image: args.image.clone(),
        model: args.model.clone(),
        timeout: args.timeout,
        ready_timeout: args.ready_timeout,
        deadlines: args.deadline.iter().cloned().collect(),
        keep_sandbox: args.keep_sandbox,
        no_post_script: args.no_post_script,
        apply: args.apply,
        working_dir: working_dir()?,
    };
    if !options.local_binds.is_empty() && !options.is_local() {
        return Err(Error::new(Code::Usage, "--local-bind does nothing without the embedded backend")
            .help("add --local, or leave --local-bind out"));
    }
    Ok(options)
}

/// Where run directories are when nothing else is said.
pub(super) fn default_output_dir() -> PathBuf {
    std::env::temp_dir().join("fullsend")
}

pub(super) fn working_dir() -> Result<Utf8PathBuf> {
    let dir = std::env::current_dir().map_err(|e| Error::io("cannot find the working directory", &e))?;
    Utf8PathBuf::from_path_buf(dir).map_err(|dir| {
        Error::new(Code::Usage, format!("the working directory {} is not UTF-8", dir.display()))
            .help("work in a directory whose name is UTF-8")
    })
}

/// `90s`, `45m`, `2h`, `1h30m`, or plain seconds.
fn duration(text: &str) -> std::result::Result<Duration, String> {
    deadlines::parse(text)
}

/// `NAME=DURATION`.
fn deadline(text: &str) -> std::result::Result<(String, Duration), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=DURATION, e.g. collect=10m")?;
    if !deadlines::NAMES.contains(&name) {
        return Err(format!("there is no deadline {name:?}; there are {}", deadlines::NAMES.join(", ")));
    }
    Ok((name.to_owned(), duration(value)?))
}

#[cfg(test)]
mod tests {
    use super::deadline;

    #[test]
    fn a_deadline_has_a_name_and_a_duration() {
        assert_eq!(deadline("collect=10m").unwrap().1.as_secs(), 600);
        assert!(deadline("colect=10m").unwrap_err().contains("collect"));
        assert!(deadline("collect").is_err() && deadline("collect=x").is_err());
    }
}
