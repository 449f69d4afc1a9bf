//! `fullsend ps`.

use super::backend::{Backend, runtime};
use super::run::Format;
use super::{first_problem, json};
use crate::error::Result;
use crate::fleet;
use crate::report::Printer;

/// Show what runs, since when, whose, in which phase, until when.
///
/// The runs of this user on this host come from the journal, with the gateways that they use; the others from the
/// labels of the gateway's sandboxes. Exit status: 0; 3 when a gateway could not be asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Also what was started from other hosts.
    #[arg(long)]
    all: bool,
    /// The form of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    backend: Backend,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let ps = runtime()?.block_on(fleet::ps(&args.backend.at_hand()?, args.all))?;
    match args.format {
        Format::Json => ui.data(&json(&ps)?),
        Format::Text => ui.plain(&ps.text()),
    }
    first_problem(&ps.problems, ui)
}
