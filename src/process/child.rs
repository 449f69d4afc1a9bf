//! A running child.

use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::command::Status;
use super::groups::{Group, signal_group};
use super::trace::{End, Traced};
use rustix::process::Signal;

/// A running child in a process group of its own. Dropping it kills the group.
#[derive(Debug)]
pub struct Child {
    inner: tokio::process::Child,
    group: Group,
    traced: Traced,
    label: String,
    /// The write end of its standard input, when it was asked for.
    pub stdin: Option<ChildStdin>,
    /// The read end of its standard output.
    pub stdout: Option<ChildStdout>,
    /// The read end of its standard error.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    pub(super) fn new(mut inner: tokio::process::Child, group: Group, traced: Traced, label: String) -> Self {
        let (stdin, stdout, stderr) = (inner.stdin.take(), inner.stdout.take(), inner.stderr.take());
        Self { inner, group, traced, label, stdin, stdout, stderr }
    }

    /// What the call is named in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Its process group, which is also its process number.
    pub fn pgid(&self) -> i32 {
        self.group.id()
    }

    /// Waits for the direct child. May be called again after it returned. Cancel-safe.
    pub async fn wait(&mut self) -> std::io::Result<Status> {
        let status = self.inner.wait().await?.into();
        self.group.release();
        self.traced.end(End::Status(status));
        Ok(status)
    }

    /// The status if the direct child has ended.
    pub fn try_wait(&mut self) -> std::io::Result<Option<Status>> {
        let status = self.inner.try_wait()?.map(Status::from);
        if let Some(status) = status {
            self.group.release();
            self.traced.end(End::Status(status));
        }
        Ok(status)
    }

    /// Signals the whole group while the direct child lives.
    pub fn signal(&self, signal: Signal) {
        self.group.signal(signal);
    }

    /// Kills what is left of the group after the direct child was reaped. The group number stays reserved as
    /// long as a member lives, so this cannot hit a stranger while a pipe of the group is still open.
    pub(super) fn kill_leftovers(&self) {
        signal_group(self.group.id(), Signal::KILL);
    }

    /// Ends the group: `first`, then KILL after `grace`. Returns the status of the direct child.
    pub async fn stop(&mut self, first: Signal, grace: Duration) -> std::io::Result<Status> {
        self.signal(first);
        if let Ok(status) = tokio::time::timeout(grace, self.wait()).await {
            return status;
        }
        self.signal(Signal::KILL);
        self.wait().await
    }
}
