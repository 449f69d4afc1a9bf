//! `fullsend replay`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::run::{Format, default_output_dir};
use crate::agent::render::ShowAgent;
use crate::agent::{Exit, runtime::Kind as Runtime};
use crate::fleet::{
    self,
    replay::{self, Wanted},
};
use crate::report::Printer;

/// Show a recorded run again, and judge it anew.
///
/// Reads the stream of an agent as a run does, and says what a run would conclude from it and from the exit
/// status of the agent's program. Needs neither OpenShell nor a network. Exit status: that of the judgement.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A run (its id, a unique start of its id, its sandbox, or its directory), or a stream (`stream.jsonl`, or what an
    /// agent CLI printed).
    #[arg(value_name = "RUN|FILE")]
    path: PathBuf,
    /// Where run directories are [default: `fullsend` under the system's temp dir].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Whose stream it is [default: what its first line shows].
    #[arg(long, value_name = "NAME")]
    runtime: Option<Runtime>,
    /// For a stream: the exit status of the agent's program, as a shell gives it.
    #[arg(long, value_name = "STATUS", default_value_t = 0)]
    exit: i32,
    /// How much of what the agent says and does is shown.
    #[arg(long, value_name = "WHAT", default_value = "full")]
    show_agent_output: ShowAgent,
    /// The form of the answer; `json` is the judgement and the figures of each iteration alone.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Decode and count only, and say how fast that was.
    #[arg(long, hide = true)]
    stats: bool,
}

pub(super) fn main(args: &Args, ui: &Printer) -> ExitCode {
    match replay(args, ui) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn replay(args: &Args, ui: &Printer) -> crate::Result<()> {
    let wanted = Wanted {
        format: args.runtime.map(|kind| kind.runtime().format()),
        exit: Exit::from_shell(args.exit),
        show: args.show_agent_output,
    };
    if args.stats {
        let speed = replay::measure(&args.path, &wanted)?;
        ui.data(&super::json(&speed)?);
        return Ok(());
    }
    let path = run_or_stream(args)?;
    let shown = (args.format == Format::Text).then_some(ui);
    let replayed = replay::replay(&path, &wanted, shown)?;
    if args.format == Format::Json {
        ui.data(&super::json(&replayed)?);
    }
    replayed.last().and_then(replay::Replayed::error).map_or(Ok(()), Err)
}

/// A path that exists is meant as it stands; what is none is a run.
fn run_or_stream(args: &Args) -> crate::Result<PathBuf> {
    match args.path.to_str() {
        Some(word) if !args.path.exists() => {
            let output_dir = args.output_dir.clone().unwrap_or_else(default_output_dir);
            fleet::run_dir(word, &output_dir)
        }
        _ => Ok(args.path.clone()),
    }
}
