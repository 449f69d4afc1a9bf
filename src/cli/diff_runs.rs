//! `fullsend diff-runs`.

use std::path::PathBuf;

use super::run::{Format, default_output_dir};
use crate::error::{Code, Error, Result};
use crate::fleet;
use crate::report::run_dir::RunDir;
use crate::report::{Printer, diff_runs};

/// Compare two runs: verdict, durations, cost, tokens, changed files, harness.
///
/// Exit status: 0, whether they differ or not; 2 when there is no such run.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The first run: its id, a unique start of its id, its sandbox, or its directory.
    #[arg(value_name = "A")]
    a: String,
    /// The second run.
    #[arg(value_name = "B")]
    b: String,
    /// Where run directories are [default: `fullsend` under the system's temp dir].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// The form of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let output_dir = args.output_dir.clone().unwrap_or_else(default_output_dir);
    let read = |word: &str| {
        let dir = fleet::run_dir(word, &output_dir)?;
        RunDir::read(&dir).record.ok_or_else(|| {
            Error::new(Code::RunUnknown, format!("the run {word} has no run.json"))
                .help("it still goes on, or it was killed; only a run that has ended can be compared")
        })
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    match args.format {
        Format::Json => ui.data(&super::json(&diff_runs::json(&a, &b))?),
        Format::Text => ui.plain(&diff_runs::text(&a, &b)),
    }
    Ok(())
}
