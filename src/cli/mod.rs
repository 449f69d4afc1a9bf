//! One file per subcommand: clap types and a call; no logic.

mod age;
mod backend;
mod check_output;
mod completions;
mod diff_runs;
mod doctor;
mod explain;
mod fetching;
mod hook;
mod list;
mod lock;
mod logs;
mod man;
mod places;
mod prune;
mod ps;
mod reap;
mod reference;
mod replay;
mod report;
mod run;
mod scan;
mod schema;
mod show;
mod status;
mod stop;
mod usage;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::report::{ColorChoice, Printer, Verbosity, note, written};

/// Run a coding agent unattended in an OpenShell sandbox, and bring its results back safely.
#[derive(Debug, Parser)]
#[command(name = "fullsend", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Start here: `fullsend doctor` checks this machine, `fullsend list` shows the agents of \
                        the harness directory, `fullsend run <AGENT> --dry-run` shows what a run would do."
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Apart from a command's own options in its help.
const EVERY: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Say more: every call of another program.
    #[arg(short, long, global = true, conflicts_with = "quiet", help_heading = EVERY)]
    verbose: bool,
    /// Say only how it ended.
    #[arg(short, long, global = true, help_heading = EVERY)]
    quiet: bool,
    /// When to colour the output.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = EVERY)]
    color: ColorChoice,
}

impl Global {
    fn printer(&self) -> Printer {
        let verbosity = match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        Printer::new(self.color, verbosity)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    List(list::Args),
    Validate(validate::Args),
    Show(show::Args),
    Lock(lock::Args),
    Schema(schema::Args),
    Doctor(doctor::Args),
    Ps(ps::Args),
    Stop(stop::Args),
    Reap(reap::Args),
    Logs(logs::Args),
    Report(report::Args),
    DiffRuns(diff_runs::Args),
    Prune(prune::Args),
    ReconcileStatus(status::Args),
    Replay(replay::Args),
    Scan(scan::Args),
    CheckOutput(check_output::Args),
    Explain(explain::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
    #[command(hide = true)]
    Reference(reference::Args),
    #[command(hide = true)]
    Hook(hook::Args),
    /// What deletes the sandbox when the run cannot; started by `run`.
    #[command(hide = true)]
    Guard {
        #[arg(long)]
        detached: bool,
    },
}

/// Parses the command line, runs the command, and returns the exit status.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // The embedded backend parses its own command line: it speaks another program's language.
    if args.nth(1).is_some_and(|a| a == "openshell") {
        return crate::local::main(args.collect());
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if usage::answer(&error) => {
            note(error.print());
            let ui = Printer::new(ColorChoice::Auto, Verbosity::Normal);
            return answered(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)), &ui);
        }
        Err(error) => {
            let words: Vec<_> = std::env::args_os().filter_map(|w| w.into_string().ok()).collect();
            let ui = Printer::new(ColorChoice::Auto, Verbosity::Normal);
            return finish(Err(usage::error(&error, &words)), &ui);
        }
    };
    let ui = cli.global.printer();
    start_log();
    let run = matches!(&cli.command, Command::Run(args) if !args.is_dry_run());
    let status = dispatch(cli.command, &ui);
    // A run tells of itself in its run directory, and its status is that of its agent.
    if run { status } else { answered(status, &ui) }
}

fn dispatch(command: Command, ui: &Printer) -> ExitCode {
    match command {
        Command::Run(args) => run::main(&args, ui),
        Command::List(args) => finish(list::main(&args, ui), ui),
        Command::Validate(args) => validate::main(&args, ui),
        Command::Show(args) => finish(show::main(&args, ui), ui),
        Command::Lock(args) => finish(lock::main(&args, ui), ui),
        Command::Schema(args) => finish(schema::main(&args, ui), ui),
        Command::Doctor(args) => doctor::main(&args, ui),
        Command::Ps(args) => finish(ps::main(&args, ui), ui),
        Command::Stop(args) => finish(stop::main(&args, ui), ui),
        Command::Reap(args) => finish(reap::main(&args, ui), ui),
        Command::Logs(args) => finish(logs::main(&args, ui), ui),
        Command::Report(args) => finish(report::main(&args, ui), ui),
        Command::DiffRuns(args) => finish(diff_runs::main(&args, ui), ui),
        Command::Prune(args) => finish(prune::main(&args, ui), ui),
        Command::ReconcileStatus(args) => finish(status::main(&args, ui), ui),
        Command::CheckOutput(args) => finish(check_output::main(&args, ui), ui),
        Command::Replay(args) => replay::main(&args, ui),
        Command::Scan(args) => finish(scan::main(&args, ui), ui),
        Command::Hook(args) => hook::main(args, ui),
        Command::Explain(args) => finish(explain::main(&args, ui), ui),
        Command::Completions(args) => {
            completions::main(&args, ui);
            ExitCode::SUCCESS
        }
        Command::Reference(args) => {
            reference::main(&args, ui);
            ExitCode::SUCCESS
        }
        Command::Man(args) => finish(man::main(&args, ui), ui),
        Command::Guard { detached } => crate::run::guard::main(detached),
    }
}

/// An answer that did not arrive is none, whatever the command found.
fn answered(status: ExitCode, ui: &Printer) -> ExitCode {
    match written() {
        Err(error) if status == ExitCode::SUCCESS => finish(Err(error), ui),
        _ => status,
    }
}

fn finish(result: crate::Result<()>, ui: &Printer) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// An answer for a program.
fn json(value: &impl serde::Serialize) -> crate::Result<String> {
    let text = serde_json::to_string_pretty(value).map_err(|e| crate::Error::bug(e.to_string()))?;
    Ok(text + "\n")
}

/// The first of several problems is the error of the command; the others are shown before it.
fn first_problem(problems: &[crate::fleet::Problem], ui: &Printer) -> crate::Result<()> {
    let Some((first, others)) = problems.split_first() else { return Ok(()) };
    for other in others {
        ui.error(&other.error());
    }
    Err(first.error())
}

/// Diagnostic events go to standard error, and only when `FULLSEND_LOG` asks for them (its value is a filter such as `debug`).
fn start_log() {
    let Ok(filter) = std::env::var("FULLSEND_LOG") else { return };
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}

/// The whole command line.
fn command() -> clap::Command {
    use clap::CommandFactory as _;
    Cli::command()
}

/// The command line without what users have no use for, for completions, manual pages and the reference.
fn visible_command() -> clap::Command {
    let all = command();
    let mut shown = clap::Command::new("fullsend")
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|c| !c.is_hide_set()).cloned())
        .subcommand_required(true);
    if let Some(about) = all.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(text) = all.get_after_help() {
        shown = shown.after_help(text.clone());
    }
    shown
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
