//! `fullsend prune`.

use std::path::PathBuf;
use std::time::Duration;

use super::run::{Format, default_output_dir};
use super::{age, first_problem, json};
use crate::error::Result;
use crate::fleet;
use crate::report::Printer;

/// Remove old run directories.
///
/// Only directories that a run made are removed: those with its kind of name, or with its `run.json`. Links are not
/// followed, and the directory of a run that lives stays. Exit status: 0; 3 when something could not be removed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only runs that ended at least this long ago, e.g. `12h`, `30d`.
    #[arg(long, value_name = "DURATION", value_parser = age::age)]
    older_than: Duration,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Where run directories are [default: `fullsend` under the system's temp dir].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// The form of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let output = args.output_dir.clone().unwrap_or_else(default_output_dir);
    let pruned = fleet::prune(&output, args.older_than, args.dry_run)?;
    match args.format {
        Format::Json => ui.data(&json(&pruned)?),
        Format::Text => ui.plain(&pruned.text()),
    }
    first_problem(&pruned.problems, ui)
}
