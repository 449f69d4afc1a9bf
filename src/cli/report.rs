//! `fullsend report`.

use std::path::PathBuf;

use super::run::default_output_dir;
use crate::error::{Error, Result};
use crate::fleet;
use crate::report::{Printer, html};

/// Write a page about a run: verdict, timeline, cost, changes, findings, log.
///
/// One HTML file that needs nothing else: no network, and no JavaScript except for searching the log.
///
/// Exit status: 0; 2 when there is no such run; 3 when the file cannot be written.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, a unique start of its id, its sandbox, or its directory.
    #[arg(value_name = "RUN")]
    run: String,
    /// The file to write; `-` is standard output [default: `report.html` in the run directory].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where run directories are [default: `fullsend` under the system's temp dir].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let output_dir = args.output_dir.clone().unwrap_or_else(default_output_dir);
    let dir = fleet::run_dir(&args.run, &output_dir)?;
    let page = html::page(&dir);
    if args.output.as_deref().is_some_and(|path| path.as_os_str() == "-") {
        ui.data(&page);
        return Ok(());
    }
    let path = args.output.clone().unwrap_or_else(|| dir.join("report.html"));
    fs_err::write(&path, page).map_err(|e| {
        Error::io("cannot write the report", &e).help("name a file that can be written with --output")
    })?;
    ui.closing("report", &path.display().to_string());
    Ok(())
}
