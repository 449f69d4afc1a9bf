//! The guard: what deletes the sandbox when the run itself cannot.
//!
//! It is this binary re-executed in a session of its own, holding the read end of a pipe from the run. When the
//! pipe closes without a release (the run was killed), or when a deadline passes that the run set at its first
//! signal, the guard kills the run's children, deletes the sandbox and its providers, and confirms that they
//! stay absent: a create that was in flight can still finish late.

mod process;
pub mod protocol;

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use process::{STAGE_TWO, main};
use protocol::{HELLO, Message};

use crate::error::{Error, Result};
use crate::openshell::Openshell;
use crate::openshell::names::RunId;
use crate::process::{Command, GroupEvent, Stdin, mark, observe, own_executable};

/// The run's end of the line to its guard; cheap to clone. Dropping the last clone closes the pipe.
#[derive(Debug, Clone)]
pub struct Guard {
    pipe: Arc<Mutex<std::fs::File>>,
}

impl Guard {
    /// Starts the guard.
    pub async fn start(openshell: &Openshell) -> Result<Self> {
        let command = Command::new("guard", own_executable()?).arg("guard");
        // The guard calls the same gateway as the run.
        let mut child = openshell
            .child_env()
            .apply(command)
            // The Actions runner ends every process that carries its tracking id once the job is over.
            .env("RUNNER_TRACKING_ID", "")
            // So does the guard of the run whose reviewer this is; it is to end the reviewer, not who cleans up after it.
            .env_remove(mark::VARIABLE)
            .stdin(Stdin::Piped)
            .spawn()?;
        let pipe = child.stdin.take().ok_or_else(|| Error::bug("the guard has no pipe"))?;
        let pipe = pipe.into_owned_fd().map_err(|e| Error::io("cannot keep the guard's pipe", &e))?;
        rustix::io::ioctl_fionbio(&pipe, false)
            .map_err(|e| Error::io("cannot keep the guard's pipe", &e.into()))?;
        let status = child.wait().await.map_err(|e| Error::io("the guard could not be waited for", &e))?;
        if !status.success() {
            return Err(Error::bug(format!("the guard did not start: {status}")));
        }
        let guard = Self { pipe: Arc::new(Mutex::new(pipe.into())) };
        guard.write(&format!("{HELLO}\n"));
        let mark = RunId::random()?.to_string();
        guard.tell(&Message::Mark(mark.clone()));
        mark::set(mark);
        let line = guard.clone();
        observe(move |event| {
            line.tell(&match event {
                GroupEvent::Started(pgid) => Message::Child(pgid),
                GroupEvent::Ended(pgid) => Message::Ended(pgid),
            });
        });
        Ok(guard)
    }

    /// Tells the guard something. A guard that is gone cannot be told, and the run goes on without it.
    pub fn tell(&self, message: &Message) {
        self.write(&message.encode());
    }

    /// Arms the guard: it acts after `limit` unless it is released before.
    pub fn arm(&self, limit: Duration) {
        self.tell(&Message::Deadline(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)));
    }

    fn write(&self, line: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = pipe.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the guard is gone");
        }
    }
}
