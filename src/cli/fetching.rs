//! The options of every command that may fetch.

use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};
use crate::fetch;

/// Where remote resources come from.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Fetching {
    /// Fetch nothing: what the harness takes from URLs has to be in the cache.
    #[arg(long)]
    offline: bool,
    /// Where what is fetched is kept [default: `fullsend` in the XDG cache directory].
    #[arg(long, value_name = "DIR", env = "FULLSEND_CACHE_DIR", hide_env_values = true)]
    cache_dir: Option<PathBuf>,
}

impl Fetching {
    pub(super) fn options(&self) -> fetch::Options {
        fetch::Options { offline: self.offline, cache_dir: self.cache_dir.clone() }
    }
}

/// Waits for what is fetched. A signal drops it, so that no child and no half-written file is left.
pub(super) fn wait<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::io("cannot start", &e))?;
    let result = runtime.block_on(async {
        let listen = |kind| signal(kind).map_err(|e| Error::io("cannot listen for signals", &e));
        let (mut int, mut term, mut hup) = (
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        );
        tokio::select! {
            result = work => result,
            _ = int.recv() => Err(Error::cancelled(2)),
            _ = term.recv() => Err(Error::cancelled(15)),
            _ = hup.recv() => Err(Error::cancelled(1)),
        }
    });
    // A request that still waits for its server must not keep the process.
    runtime.shutdown_background();
    result
}
