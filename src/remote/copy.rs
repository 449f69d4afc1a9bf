//! One file into the sandbox.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use super::argv;
use super::session::Session;
use super::ssh_config::shell_quote;
use crate::error::{Code, Error, Result};
use crate::process::{Failure, Output, Stdin, locate, scale};

/// How a file travelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// scp over the SFTP subsystem.
    Sftp,
    /// scp over its old protocol, with an `scp` in the sandbox.
    Rcp,
    /// A pipe into `cat`.
    Pipe,
}

/// What arrived, as far as the host knows. The size in the sandbox is still to be checked; the caller does so in
/// the command that uses the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// The size that the file must have there, in bytes.
    pub bytes: u64,
    /// How it travelled.
    pub way: Way,
}

/// What scp says where the SFTP subsystem is missing or is no SFTP.
const NO_SFTP: &[&str] =
    &["subsystem request failed", "connection closed", "received message too long", "sftp-server: not found"];
/// What it says where the sandbox has no `scp`.
const NO_SCP: &[&str] = &["scp: not found", "scp: command not found", "lost connection", "scp: no such file"];

impl Session {
    /// Copies `local` to `remote`, an absolute path whose directory exists. Where the image lacks the SFTP
    /// subsystem the old protocol of scp is used, and where it lacks `scp` a pipe.
    ///
    /// # Errors
    /// [`Code::TransferFailed`] with the words of the transfer program, [`Code::SshFailed`] when the connection
    /// failed.
    pub async fn push(&mut self, local: &Path, remote: &Path, deadline: Duration) -> Result<Pushed> {
        let local = std::path::absolute(local).map_err(|e| Error::io("cannot resolve a path", &e))?;
        let bytes = fs_err::metadata(&local).map_err(|e| Error::io("cannot read a file to send", &e))?.len();
        for (way, absent) in [(Way::Sftp, NO_SFTP), (Way::Rcp, NO_SCP)] {
            let output = self.scp(way, &local, remote, deadline).await?;
            if output.status.success() {
                return Ok(Pushed { bytes, way });
            }
            let words = output.stderr_text();
            let lower = words.to_ascii_lowercase();
            if !self.is_open() || !absent.iter().any(|text| lower.contains(text)) {
                return Err(self.not_sent(&local, &words));
            }
            tracing::debug!(?way, "not available in the sandbox");
        }
        self.pipe(&local, remote, deadline).await?;
        Ok(Pushed { bytes, way: Way::Pipe })
    }

    async fn scp(&self, way: Way, local: &Path, remote: &Path, deadline: Duration) -> Result<Output> {
        let scp = locate("scp", "install the OpenSSH client (package openssh-client)")?;
        let mut target = OsString::from(format!("{}:", self.alias()));
        if way == Way::Rcp {
            // The old protocol hands the path to a shell in the sandbox.
            target.push(OsString::from_vec(shell_quote(remote.as_os_str().as_bytes())));
        } else {
            target.push(remote);
        }
        let command = self.transfer("scp", scp).args(argv::scp(way == Way::Rcp, local, target));
        match command.deadline(deadline).output().await {
            Ok(output) => Ok(output),
            Err(failure @ Failure::Deadline { .. }) => self.finish("scp", Err(failure)),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn pipe(&mut self, local: &Path, remote: &Path, deadline: Duration) -> Result<()> {
        let label = "ssh cat";
        let mut script = b"cat > ".to_vec();
        script.extend(shell_quote(remote.as_os_str().as_bytes()));
        let script = String::from_utf8(script)
            .map_err(|_| Error::new(Code::TransferFailed, "a path in the sandbox is not UTF-8"))?;
        let mut child = self.command(label, &script).stdin(Stdin::Piped).spawn()?;
        let mut file =
            tokio::fs::File::open(local).await.map_err(|e| Error::io("cannot read a file to send", &e))?;
        let (stdin, mut stderr) = (child.stdin.take(), child.stderr.take());
        let send = async {
            if let Some(mut stdin) = stdin {
                // An error here shows in the status of the other side.
                let _ = tokio::io::copy(&mut file, &mut stdin).await;
                let _ = stdin.shutdown().await;
            }
        };
        let words = async {
            let mut words = Vec::new();
            if let Some(stderr) = stderr.as_mut() {
                let mut stderr = tokio::io::AsyncReadExt::take(stderr, 64 * 1024);
                let _ = tokio::io::AsyncReadExt::read_to_end(&mut stderr, &mut words).await;
            }
            String::from_utf8_lossy(&words).into_owned()
        };
        let all = async {
            let ((), words, status) = tokio::join!(send, words, child.wait());
            (words, status)
        };
        let Ok((words, status)) = tokio::time::timeout(scale::limit(deadline), all).await else {
            return Err(Error::new(
                Code::SshFailed,
                format!("`{label}` did not end within {}", crate::report::duration(deadline)),
            ));
        };
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(self.not_sent(local, &words)),
            Err(e) => Err(Error::io("cannot wait for ssh", &e)),
        }
    }

    fn not_sent(&mut self, local: &Path, words: &str) -> Error {
        if !self.is_open() {
            return self.broken("scp", words);
        }
        let error = Error::new(
            Code::TransferFailed,
            format!("scp could not send {} to the sandbox", local.display()),
        );
        let full = words.to_ascii_lowercase().contains("no space left");
        let error = if full {
            error.help("the disk of the sandbox is full: send less, or use a larger one")
        } else {
            error.help(
                "the words of scp are above; is there space in /tmp of the sandbox, and may it be written?",
            )
        };
        error.detail(words)
    }
}
