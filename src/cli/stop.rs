//! `fullsend stop`.

use super::backend::{Backend, runtime};
use crate::error::Result;
use crate::fleet;
use crate::report::Printer;

/// Stop a run, or delete a kept sandbox.
///
/// A run of this host is asked to end as if it were cancelled, so that what the agent has done is fetched. If it does
/// not end within 15 seconds, and where its process cannot be reached, its sandbox is deleted.
///
/// Exit status: 0 when nothing of it is left on the gateway; 2 when there is no such run; 3 when it could not be deleted.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: its id, a unique start of its id, or its sandbox. `fullsend ps` shows them.
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    backend: Backend,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let stopped = runtime()?.block_on(fleet::stop(&args.backend.at_hand()?, &args.run))?;
    ui.plain(&stopped.text());
    Ok(())
}
