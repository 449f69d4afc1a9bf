//! `fullsend reap`.

use std::time::Duration;

use super::backend::{Backend, runtime};
use super::run::Format;
use super::{age, first_problem, json};
use crate::error::{Error, Result};
use crate::fleet::{self, AtHand, Reap};
use crate::report::Printer;

/// Delete what runs have left behind.
///
/// A run is over when its process has ended (judged on the same host, boot and container only), when its time is over
/// by its labels, or when the time for which its sandbox was kept is over. Its sandbox, its own providers and its
/// directories on this host are deleted, by their exact names. Runs that live are not touched; it may run beside
/// them, several times, and from several hosts at once.
///
/// Exit status: 0; 3 when something could not be asked or deleted.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only what began at least this long ago, e.g. `2h`, `7d`.
    #[arg(long, value_name = "DURATION", value_parser = age::age)]
    older_than: Option<Duration>,
    /// Only say what would be deleted.
    #[arg(long)]
    dry_run: bool,
    /// Go on for ever, with this pause, until a signal.
    #[arg(long, value_name = "DURATION", value_parser = age::some_time)]
    watch: Option<Duration>,
    /// The form of the answer; with --watch one JSON object per line and pass.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    backend: Backend,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let at_hand = args.backend.at_hand()?;
    let runtime = runtime()?;
    let Some(pause) = args.watch else { return runtime.block_on(pass(args, &at_hand, ui)) };
    runtime.block_on(async {
        let signals = fleet::signal()?;
        tokio::pin!(signals);
        loop {
            // A pass is not cut short: what it has begun to delete is deleted.
            if let Err(error) = pass(args, &at_hand, ui).await {
                ui.error(&error);
            }
            tokio::select! {
                number = &mut signals => return Err(Error::cancelled(number)),
                () = tokio::time::sleep(pause) => {}
            }
        }
    })
}

async fn pass(args: &Args, at_hand: &AtHand, ui: &Printer) -> Result<()> {
    let options = Reap { older_than: args.older_than, dry_run: args.dry_run };
    let reaped = fleet::reap(at_hand, options).await?;
    match args.format {
        Format::Json if args.watch.is_some() => {
            let line = serde_json::to_string(&reaped).map_err(|e| Error::bug(e.to_string()))?;
            ui.data(&(line + "\n"));
        }
        Format::Json => ui.data(&json(&reaped)?),
        // A watcher that has nothing to say says nothing.
        Format::Text if args.watch.is_some() && reaped.runs.is_empty() => {}
        Format::Text => ui.plain(&reaped.text()),
    }
    first_problem(&reaped.problems, ui)
}
