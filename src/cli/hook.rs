//! `fullsend hook`: what an agent's CLI calls in the sandbox.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::report::Printer;
use crate::scan::hook::{Config, Event, answer};

/// Check one tool call of an agent. Started by the agent's CLI in the sandbox.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The moment of the call.
    event: Event,
    /// What is checked.
    #[arg(long, value_delimiter = ',')]
    checks: Vec<String>,
    /// A host that may be reached. May be repeated.
    #[arg(long)]
    host: Vec<String>,
    /// A tool that the agent's definition names. May be repeated.
    #[arg(long)]
    tool: Vec<String>,
    /// A tool that it forbids. May be repeated.
    #[arg(long)]
    no_tool: Vec<String>,
    /// Let a call pass that cannot be checked.
    #[arg(long)]
    open: bool,
    /// Where to note what was done.
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(super) fn main(args: Args, ui: &Printer) -> ExitCode {
    let config = Config::new(&args.checks, &args.host, args.open, args.dir).map(|config| Config {
        tools: args.tool,
        disallowed: args.no_tool,
        ..config
    });
    match config.and_then(|config| answer(args.event, &config, std::io::stdin().lock())) {
        Ok(text) => {
            ui.data(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            ui.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
