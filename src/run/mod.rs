//! Plan to outcome: the only part that touches the world. One file per phase, typed hand-over between them.
//!
//! `prepare → pre-script → provision → bootstrap → (agent → collect → validate)* → delete → post-script → apply`

mod after;
mod again;
mod agent_phase;
pub(crate) mod archive;
mod artefacts;
mod before;
mod bootstrap;
mod check_program;
mod claim;
mod cleanup;
mod collect;
mod context;
mod deltas;
mod doctor;
mod events;
mod execute;
mod export;
mod feedback;
pub mod guard;
mod handover;
mod identity;
mod inputs;
mod iterate;
pub(crate) mod journal;
mod keep;
mod known_secrets;
pub(crate) mod leftovers;
mod listing;
mod meter;
mod options;
mod outcome;
pub(crate) mod owner;
mod pack;
mod prepare;
mod provision;
mod queue;
mod record;
mod review;
mod reviewer;
mod script;
mod security;
mod servers;
mod shown;
mod signals;
mod skip;
mod squeeze;
mod stream_copy;
mod telling;
mod tokens;
mod validate;
mod verify_image;
mod watch;

pub use doctor::{Check, doctor};
pub use execute::{dry_run, run};
pub use identity::Identity;
pub use options::Options;
pub use outcome::Verdict;

use crate::error::{Error, Result};

/// Waits for all of them, so that none is left half done, and reports every failure.
async fn join_all(work: impl IntoIterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
    let mut pending: Vec<_> = work.into_iter().map(Box::pin).collect();
    let mut failures: Vec<Error> = Vec::new();
    std::future::poll_fn(|cx| {
        pending.retain_mut(|future| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(done) => {
                failures.extend(done.err());
                false
            }
            std::task::Poll::Pending => true,
        });
        if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    failures.into_iter().reduce(Error::and).map_or(Ok(()), Err)
}
