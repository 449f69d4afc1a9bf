//! `fullsend run`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;

use super::places;
use crate::agent::render::ShowAgent;
use crate::agent::runtime::Kind as Runtime;
use crate::error::{Code, Error, Result};
use crate::harness::{Budgets, Forge, MAX_PROMPT, usd};
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
#[expect(clippy::struct_excessive_bools, reason = "one per switch of the command line")]
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
    #[command(flatten)]
    fetching: super::fetching::Fetching,
    /// The Linux executable of fullsend that checks tool calls and output in the sandbox [default: this program].
    #[arg(long, value_name = "FILE")]
    fullsend_binary: Option<Utf8PathBuf>,
    /// The sandbox image, instead of the harness's.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Refuse an image that is not named by its digest, or not signed by one of the `image_policy.signers` of
    /// `config.yaml`.
    #[arg(long)]
    verify_image: bool,
    /// The agent program, instead of the harness's `runtime`.
    #[arg(long, value_name = "NAME")]
    runtime: Option<Runtime>,
    /// How much of what the agent says and does is shown: `none`, `tools` (no texts of the agent), or `full`
    /// [default: `tools` in GitHub Actions and GitLab CI, else `full`; the files of the run have everything].
    #[arg(long, value_name = "WHAT")]
    show_agent_output: Option<ShowAgent>,
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
    /// After how long the run is ended, from its start; the sandbox is deleted then [default: the harness's `ttl`].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// How long to wait for other runs of this agent where the harness has `max_concurrent`; 0 does not wait
    /// [default: the harness's `deadlines.queue`, else 10m].
    #[arg(long, value_name = "DURATION", value_parser = patience)]
    queue_timeout: Option<Duration>,
    /// How long another part of the run may take, e.g. `collect=10m`. Names: `api_server`, bootstrap, collect, connect,
    /// delete, openshell, `preflight_check`, queue, review, run, script. May be repeated. [default: the harness's `deadlines`]
    #[arg(long, value_name = "NAME=DURATION", value_parser = deadline)]
    deadline: Vec<(String, Duration)>,
    /// Add the run to this file of metrics in Prometheus' text format, for the textfile collector of the node exporter.
    #[arg(long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    /// How long the agent may be silent, instead of the harness's `idle_timeout`.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    idle_timeout: Option<Duration>,
    /// What the agent is asked, instead of the harness's `prompt`.
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    prompt: Option<String>,
    /// The same from a file; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
    /// Let the agent program log what it does, to `agent-debug.log` in the directory of the iteration; FILTER is in the
    /// words of that program, instead of the harness's `debug`.
    #[arg(long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    debug: Option<String>,
    /// How many turns the agent may take in the whole run, instead of the harness's `max_turns`; 0 is no limit.
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// How many US dollars the agent may cost in the whole run, instead of the harness's `max_cost_usd`; 0 is no limit.
    #[arg(long, value_name = "USD", value_parser = usd)]
    max_cost_usd: Option<f64>,
    /// How many tokens the agent may use in the whole run, instead of the harness's `max_tokens`; 0 is no limit.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// How often the agent is started again when the model API fails, instead of the harness's `api_retries`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10))]
    api_retries: Option<u32>,
    /// What a reviewing agent gets to review; given by the run whose work that is.
    #[arg(long, value_name = "DIR", hide = true)]
    review: Option<Utf8PathBuf>,
    /// Do not run the harness's post-script.
    #[arg(long)]
    no_post_script: bool,
    /// Whether the result is applied to the checkout. `auto`: when the run succeeded and the harness has no
    /// post-script to take it.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    apply: Apply,
    #[command(flatten)]
    comments: super::status::Comments,
    /// Where the reports for GitLab go: `fullsend.env`, code quality, JUnit [default: the project's directory in a
    /// GitLab job, else none are written].
    #[arg(long, value_name = "DIR", env = "FULLSEND_REPORT_DIR", hide_env_values = true)]
    report_dir: Option<PathBuf>,
    /// Run in a GitLab job of the shell or ssh executor, whose machine and user other jobs share.
    #[arg(long, env = "FULLSEND_ALLOW_SHELL_EXECUTOR", hide_env_values = true)]
    allow_shell_executor: bool,
    /// Show what a run would do, and do nothing. Needs neither OpenShell nor, without URLs in the
    /// harness, a network.
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

impl Args {
    /// Whether nothing is done but shown.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

pub(super) fn main(args: &Args, ui: &Printer) -> ExitCode {
    let ui = &if args.review.is_some() { ui.clone().within_another() } else { ui.clone() };
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
    let backend = args.backend.choice()?;
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
        hook_binary: args.fullsend_binary.clone(),
        forge: args.forge,
        fetching: args.fetching.options(),
        image: args.image.clone(),
        verify_image: args.verify_image,
        runtime: args.runtime,
        show_agent: args.show_agent_output,
        model: args.model.clone(),
        timeout: args.timeout,
        ready_timeout: args.ready_timeout,
        ttl: args.ttl,
        deadlines: args
            .deadline
            .iter()
            .cloned()
            .chain(args.queue_timeout.map(|limit| ("queue".to_owned(), limit)))
            .collect(),
        idle_timeout: args.idle_timeout,
        prompt: prompt(args)?,
        debug: args.debug.clone(),
        budgets: Budgets {
            max_turns: args.max_turns,
            max_cost_usd: args.max_cost_usd,
            max_tokens: args.max_tokens,
        },
        api_retries: args.api_retries,
        keep_sandbox: args.keep_sandbox,
        // Whoever reviews changes nothing.
        no_post_script: args.no_post_script || args.review.is_some(),
        apply: if args.review.is_some() { Apply::Never } else { args.apply },
        review: args.review.clone(),
        status: args.comments.asked()?,
        metrics_file: args.metrics_file.clone(),
        shared_executor: args.allow_shell_executor,
        report_dir: args.report_dir.clone(),
        working_dir: working_dir()?,
    };
    if !options.local_binds.is_empty() && !options.is_local() {
        return Err(Error::new(Code::Usage, "--local-bind does nothing without the embedded backend")
            .help("add --local, or leave --local-bind out"));
    }
    options.local_binds.iter().try_for_each(|bind| bindable(bind))?;
    // What is written when all is over is looked at before anything begins.
    options.metrics_file.iter().try_for_each(|file| places::file("--metrics-file", file))?;
    options.report_dir.iter().try_for_each(|dir| places::directory("--report-dir", dir))?;
    Ok(options)
}

/// What the agent is asked.
fn prompt(args: &Args) -> Result<Option<String>> {
    let Some(path) = &args.prompt_file else { return Ok(args.prompt.clone()) };
    let unreadable = |e: std::io::Error| {
        Error::new(Code::FileMissing, format!("the prompt {} cannot be read: {e}", path.display()))
            .help("--prompt-file names a text file in UTF-8, or `-` for standard input")
    };
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin().take(MAX_PROMPT + 1))
    } else {
        std::fs::File::open(path).and_then(|file| std::io::read_to_string(file.take(MAX_PROMPT + 1)))
    };
    text.map(Some).map_err(unreadable)
}

/// Whether the embedded backend can show a path: it stands in a list that colons separate.
fn bindable(bind: &Utf8Path) -> Result<()> {
    let colon = || bind.as_str().contains(':').then(|| "it has a colon in it".to_owned());
    match colon().or_else(|| crate::local::unusable_binds(bind.as_str())) {
        Some(why) => Err(Error::new(Code::Usage, format!("--local-bind {bind}: {why}"))
            .help("name a directory or file of this machine by its absolute path")),
        None => Ok(()),
    }
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

/// The same, or 0.
fn patience(text: &str) -> std::result::Result<Duration, String> {
    if matches!(text, "0" | "0s") { Ok(Duration::ZERO) } else { duration(text) }
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
