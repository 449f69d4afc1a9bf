//! `fullsend logs`.

use std::path::PathBuf;
use std::time::Duration;

use super::run::{Format, default_output_dir};
use super::{age, json};
use crate::error::Result;
use crate::fleet::{self, Wanted};
use crate::report::Printer;

/// Show what the agents of past runs said, and how the runs ended.
///
/// Without arguments it is the latest run.
///
/// Exit status: 0; 2 when there is no such run.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, a unique start of its id, its sandbox, or its directory [default: the latest].
    #[arg(value_name = "RUN", conflicts_with_all = ["agent", "since", "limit"])]
    run: Option<String>,
    /// The runs of this agent, instead of one run.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// With --agent: only runs that began at most this long ago, e.g. `12h`, `7d`.
    #[arg(long, value_name = "DURATION", requires = "agent", value_parser = age::some_time)]
    since: Option<Duration>,
    /// With --agent: only the newest N runs.
    #[arg(long, value_name = "N", default_value = "5", requires = "agent", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Where run directories are [default: `fullsend` under the system's temp dir].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// The form of the answer; JSON has the verdicts and the paths of the streams.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let latest = args.run.is_none() && args.agent.is_none();
    let runs = fleet::past(&Wanted {
        run: args.run.clone(),
        agent: args.agent.clone(),
        since: args.since,
        limit: if latest { 1 } else { usize::try_from(args.limit).unwrap_or(usize::MAX) },
        output_dir: args.output_dir.clone().unwrap_or_else(default_output_dir),
    })?;
    match args.format {
        Format::Json => ui.data(&json(&serde_json::json!({ "schema": "fullsend.logs/1", "runs": runs }))?),
        Format::Text => {
            if let (true, Some(run)) = (latest, runs.first()) {
                ui.plain(&format!("The latest run in {}:", run.dir.parent().unwrap_or(&run.dir).display()));
            }
            for (at, run) in runs.iter().enumerate() {
                if at > 0 {
                    ui.data("\n");
                }
                run.show(ui);
            }
        }
    }
    Ok(())
}
