//! What exists beyond one run: what runs, what is left over, what past runs have left.
//!
//! ```text
//! journal of this user ──┐
//!                        ├─► survey ──► standing (pure: who lives, who is over) ──► ps, reap, stop
//! lists of the gateways ─┘
//! run directories ─────────► rundir (pure: whose directory is this) ──► find ────────► logs, report, replay, prune
//! ```
//! Nothing is ever deleted by a part of its name: a sandbox or provider has to carry the whole identity of its run,
//! and the run has to be known to be over.

mod find;
mod logs;
mod prune;
mod ps;
mod reap;
pub(crate) mod replay;
mod rundir;
mod standing;
mod stop;
mod survey;

pub(crate) use find::run_dir;
pub(crate) use logs::{Wanted, past};
pub(crate) use prune::prune;
pub(crate) use ps::ps;
pub(crate) use reap::{Reap, reap};
pub(crate) use stop::stop;
pub(crate) use survey::{AtHand, Problem};

use crate::error::{Error, Result};

/// Waits for INT, TERM or HUP; its number. From the call on they do not end the process by themselves.
pub(crate) fn signal() -> Result<impl Future<Output = i32>> {
    use tokio::signal::unix::{SignalKind, signal};
    let open = |kind| signal(kind).map_err(|e| Error::io("cannot listen for signals", &e));
    let mut int = open(SignalKind::interrupt())?;
    let mut term = open(SignalKind::terminate())?;
    let mut hup = open(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = int.recv() => 2,
            _ = term.recv() => 15,
            _ = hup.recv() => 1,
        }
    })
}
