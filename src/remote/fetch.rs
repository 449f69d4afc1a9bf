//! A tree out of the sandbox, into an empty directory.
//!
//! The other side is not trusted: nothing but files and directories is taken, no owner, no set-id bit, and the
//! host watches what arrives. The destination is never the live checkout: with a basis, rsync dropped edits of equal
//! size in the same second and followed a link of the host (both tried).

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::argv;
use super::session::Session;
use super::watch::{Size, count, exceeded};
use crate::error::{Code, Error, Result};
use crate::process::{Command, Failure, Output, Stdin, locate};

/// What may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The sum of file sizes, in bytes.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
    /// How long one rsync may take.
    pub time: Duration,
}

/// What is fetched.
#[derive(Debug, Clone, Copy)]
pub struct FetchSpec<'a> {
    /// The directory in the sandbox.
    pub remote_dir: &'a Path,
    /// An existing, empty directory.
    pub local_dir: &'a Path,
    /// Paths relative to `remote_dir`; everything below it when absent.
    pub files: Option<&'a [Vec<u8>]>,
    /// Patterns of rsync that are left out, besides `.git/hooks/`.
    pub excludes: &'a [String],
    /// What may arrive.
    pub budget: Budget,
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Whether something could not be transferred, after a repetition.
    pub partial: bool,
    /// Whether files vanished in the sandbox while rsync ran.
    pub vanished: bool,
    /// What rsync said it could not transfer; text from the sandbox.
    pub missing: Vec<String>,
    /// Links, FIFOs, sockets and devices that were left out, as rsync names them; text from the sandbox.
    pub skipped: Vec<String>,
    /// The sum of the sizes of what arrived, in bytes.
    pub bytes: u64,
    /// Files and directories that arrived.
    pub inodes: u64,
}

/// Messages that are kept of a partial transfer.
const MISSING_MAX: usize = 100;

/// rsync's statuses, as in its manual.
const PARTIAL: i32 = 23;
const VANISHED: i32 = 24;
const FILE_IO: i32 = 11;
/// Socket, protocol stream, time-out, connection time-out, and ssh's own.
const TRANSPORT: &[i32] = &[10, 12, 30, 35, 255];

/// Variables that change what rsync does.
const RSYNC_ENV: &[&str] = &[
    "RSYNC_RSH",
    "RSYNC_PROTECT_ARGS",
    "RSYNC_OLD_ARGS",
    "RSYNC_CONNECT_PROG",
    "RSYNC_PARTIAL_DIR",
    "RSYNC_ICONV",
    "RSYNC_CHECKSUM_LIST",
    "RSYNC_COMPRESS_LIST",
    "RSYNC_PROXY",
    "RSYNC_PASSWORD",
    "CVSIGNORE",
];

impl Session {
    /// Fetches a tree. A partial transfer is repeated once.
    ///
    /// # Errors
    /// [`Code::ImportBlocked`] over the budget, [`Code::SshFailed`] when the connection failed,
    /// [`Code::ImageLacks`] without rsync in the sandbox, [`Code::TransferFailed`] else, also when it takes too long.
    pub async fn fetch(&self, spec: &FetchSpec<'_>) -> Result<Fetched> {
        let rsync = locate("rsync", "install rsync (package rsync)")?;
        let limit = Size { bytes: spec.budget.bytes, inodes: spec.budget.inodes };
        let mut again = false;
        loop {
            let output = self.rsync(self.rsync_command(rsync.clone(), spec, again)?, spec, limit).await?;
            let code = output.status.code().unwrap_or(255);
            let words = output.stderr_text();
            if matches!(code, PARTIAL | VANISHED) && !again {
                tracing::debug!(code, words, "rsync is repeated");
                again = true;
                continue;
            }
            if !matches!(code, 0 | PARTIAL | VANISHED) {
                return Err(self.fetch_error(code, &words, spec.local_dir));
            }
            let (dir, unlimited) = (spec.local_dir.to_owned(), limit);
            let size = tokio::task::spawn_blocking(move || count(&dir, unlimited)).await.unwrap_or_default();
            if size.exceeds(limit) {
                return Err(over(size, limit));
            }
            return Ok(Fetched {
                partial: code == PARTIAL,
                vanished: code == VANISHED,
                missing: if code == 0 { Vec::new() } else { missing(&words) },
                skipped: skipped(&output.stdout_text()),
                bytes: size.bytes,
                inodes: size.inodes,
            });
        }
    }

    fn rsync_command(&self, rsync: std::path::PathBuf, spec: &FetchSpec<'_>, again: bool) -> Result<Command> {
        let mut source = OsString::from(format!("{}:", self.alias()));
        source.push(spec.remote_dir);
        source.push("/");
        let local =
            std::path::absolute(spec.local_dir).map_err(|e| Error::io("cannot resolve a path", &e))?;
        let mut target = local.into_os_string();
        target.push("/");
        let options = argv::rsync_options(self.ssh(), spec.files.is_some(), spec.excludes, again);
        let mut command = self.transfer("rsync", rsync).args(argv::rsync(options, source, target));
        for key in RSYNC_ENV {
            command = command.env_remove(key);
        }
        if let Some(files) = spec.files {
            let mut list = Vec::with_capacity(files.iter().map(|f| f.len() + 1).sum());
            for file in files {
                list.extend_from_slice(file);
                list.push(0);
            }
            command = command.stdin(Stdin::Bytes(list));
        }
        Ok(command.deadline(spec.budget.time))
    }

    async fn rsync(&self, command: Command, spec: &FetchSpec<'_>, limit: Size) -> Result<Output> {
        let outcome = tokio::select! {
            outcome = command.output() => outcome,
            // Leaving the other branch kills rsync's group.
            size = exceeded(spec.local_dir.to_owned(), limit) => return Err(over(size, limit)),
        };
        match outcome {
            Ok(output) => Ok(output),
            Err(Failure::Deadline { after, .. }) => Err(Error::new(
                Code::TransferFailed,
                format!("fetching the results took longer than {}", crate::report::duration(after)),
            )
            .help("raise `deadlines.collect` in the harness, or let the agent leave less in output/ and in the repository")),
            Err(failure) => Err(failure.into()),
        }
    }

    fn fetch_error(&self, code: i32, words: &str, to: &Path) -> Error {
        let lower = words.to_ascii_lowercase();
        if lower.contains("rsync: command not found") || lower.contains("rsync: not found") {
            return Error::new(Code::ImageLacks, "the sandbox image has no rsync")
                .help("install rsync in the image; fullsend's own images have it")
                .detail(words);
        }
        if TRANSPORT.contains(&code) {
            return self.broken("rsync", words);
        }
        let error = Error::new(Code::TransferFailed, format!("rsync ended with status {code}"));
        match code {
            FILE_IO => error
                .help(format!("check the free space where {} is; TMPDIR chooses another place", to.display()))
                .detail(words),
            _ => error.detail(words),
        }
    }
}

fn over(size: Size, limit: Size) -> Error {
    let what = if size.inodes > limit.inodes {
        format!("the results hold more than {} files and directories", limit.inodes)
    } else {
        format!("the results are larger than {} bytes", limit.bytes)
    };
    Error::new(Code::ImportBlocked, what).help("let the agent clean up what it does not hand over")
}

/// The lines in which rsync says what it could not do.
fn missing(words: &str) -> Vec<String> {
    let own = |line: &&str| {
        let about_a_file = ["rsync: ", "file has vanished", "skipping", "cannot delete"];
        about_a_file.iter().any(|start| line.starts_with(start))
    };
    words.lines().filter(own).take(MISSING_MAX).map(str::to_owned).collect()
}

/// The paths that rsync says it does not take because they are no regular files.
fn skipped(words: &str) -> Vec<String> {
    let path =
        |line: &str| Some(line.strip_prefix("skipping non-regular file \"")?.strip_suffix('"')?.to_owned());
    words.lines().filter_map(path).take(MISSING_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_is_listed() {
        let words = "skipping non-regular file \"output/l\"\nfile\nskipping non-regular file \"a \\\"b\"\"\n";
        assert_eq!(skipped(words), ["output/l", "a \\\"b\""]);
    }

    #[test]
    fn what_is_missing_is_listed() {
        let words = "rsync: [sender] send_files failed to open \"/sandbox/r/x\": Permission denied (13)\n\
                     file has vanished: \"/sandbox/r/y\"\n\
                     rsync error: some files/attrs were not transferred (see previous errors) (code 23)\n";
        let list = missing(words);
        assert_eq!(list.len(), 2, "{list:?}");
        assert!(list[0].contains("/sandbox/r/x"));
    }

    #[test]
    fn the_budget_says_what_was_too_much() {
        let limit = Size { bytes: 10, inodes: 2 };
        assert!(over(Size { bytes: 11, inodes: 1 }, limit).message().contains("10 bytes"));
        assert!(over(Size { bytes: 1, inodes: 3 }, limit).message().contains("2 files"));
    }
}
