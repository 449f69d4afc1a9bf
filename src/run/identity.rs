//! What tells one run from every other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::owner::Owner;
use crate::error::{Error, Result};
use crate::openshell::names::{self, RunId};

/// The identity of a run. The plan does not depend on it: the same plan can be executed many times.
#[derive(Debug, Clone)]
pub struct Identity {
    /// 12 random hexadecimal digits.
    pub id: RunId,
    /// The sandbox's name.
    pub sandbox: String,
    /// The run directory.
    pub dir: PathBuf,
    /// When the run began.
    pub started: Timestamp,
    /// When the run has ended whatever happens.
    pub expires: Timestamp,
    /// For how long a kept sandbox stays.
    pub keep: Duration,
    /// What the sandbox's labels say besides.
    pub marks: Marks,
}

/// Label values that depend on the moment and the host, so that a plan does not have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// Whose the sandbox is.
    pub owner: String,
    /// When the run has ended whatever happens.
    pub expires: String,
    /// Until when a kept sandbox stays.
    pub keep: String,
}

impl Identity {
    /// A new identity with its run directory, `<output dir>/<agent>-<UTC time>-<id>`. The run ends within
    /// `lifetime`; a sandbox that is kept stays for `keep` after that.
    pub fn create(agent: &str, output_dir: &Path, lifetime: Duration, keep: Duration) -> Result<Self> {
        let id = RunId::random()?;
        let started = Timestamp::now();
        let name = format!("{agent}-{}-{id}", names::stamp(started));
        let dir = output_dir.join(name);
        let help = "choose another --output-dir";
        fs_err::create_dir_all(output_dir)
            .and_then(|()| fs_err::create_dir(&dir))
            .map_err(|e| Error::io("cannot make the run directory", &e).help(help))?;
        let expires = after(started, lifetime);
        let marks = Marks {
            owner: Owner::this().label(),
            expires: names::stamp(expires),
            keep: names::stamp(after(expires, keep)),
        };
        Ok(Self { sandbox: names::sandbox_name(agent, &id), id, dir, started, expires, keep, marks })
    }

    /// When the gateway is to forget the credentials that the run lent.
    pub fn credentials_expire(&self) -> Timestamp {
        after(self.expires, self.keep)
    }

    /// What stands for an identity where there is no run: all digits are zero.
    pub fn placeholder(agent: &str) -> Self {
        let id = RunId::from_bytes([0; 6]);
        Self {
            sandbox: names::sandbox_name(agent, &id),
            id,
            dir: "<run dir>".into(),
            started: Timestamp::UNIX_EPOCH,
            expires: Timestamp::UNIX_EPOCH,
            keep: Duration::ZERO,
            marks: Marks { owner: "<owner>".into(), expires: "<expires>".into(), keep: "<until>".into() },
        }
    }
}

/// A moment later; the end of time when that is beyond it.
pub(super) fn after(start: Timestamp, time: Duration) -> Timestamp {
    start.checked_add(time).unwrap_or(Timestamp::MAX)
}
