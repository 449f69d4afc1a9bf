//! What this host remembers of a comment that has no end yet: one small file per run, from before the comment is
//! written until its end is. Format version 1; no secret.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::forge::{Platform, Thread};
use crate::openshell::names::RunId;
use crate::run::journal;
use crate::run::owner::Owner;

/// The version of the format.
const VERSION: u64 = 1;
/// Larger files are not read, in bytes.
const LIMIT: u64 = 256 * 1024;

/// One file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    /// The version of the format.
    pub version: u64,
    /// Whose API.
    pub platform: Platform,
    /// The base URL of the API.
    pub api: String,
    /// Where the comment is.
    pub thread: Thread,
    /// The key of its marker.
    pub key: String,
    /// The run.
    pub run: String,
    /// The agent.
    pub agent: String,
    /// The number of the comment, once it is known.
    pub comment: Option<u64>,
    /// When the run has ended whatever happens.
    pub until: Timestamp,
    /// Which process writes the end.
    pub owner: Owner,
    /// The text of the end, once it is known; empty when the comment is to be deleted.
    pub ending: Option<String>,
}

impl Record {
    /// A record that is not written yet.
    pub(super) fn new(
        (platform, api): (Platform, &str),
        thread: &Thread,
        key: &str,
        run: &RunId,
        agent: &str,
        until: Timestamp,
    ) -> Self {
        Self {
            version: VERSION,
            platform,
            api: api.to_owned(),
            thread: thread.clone(),
            key: key.to_owned(),
            run: run.to_string(),
            agent: agent.to_owned(),
            comment: None,
            until,
            owner: Owner::this(),
            ending: None,
        }
    }

    /// Writes it, whole or not at all.
    pub(super) fn save(&self) -> Result<()> {
        let path = path(&self.run);
        journal::private_dirs(&dir()).and_then(|()| journal::write(&path, self)).map_err(|e| {
            Error::io(&format!("cannot write {}", path.display()), &e)
                .help("set XDG_STATE_HOME to a directory that can be written")
        })
    }

    /// The end is written.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(path(&self.run));
    }
}

fn dir() -> PathBuf {
    journal::state_dir().join("status")
}

fn path(run: &str) -> PathBuf {
    dir().join(format!("{run}.json"))
}

/// Files that are no record, and why.
pub(super) type Strange = Vec<(PathBuf, String)>;

/// Every record of this user on this host, the newest first, and the files that are none.
pub(super) fn read_all() -> Result<(Vec<Record>, Strange)> {
    let (mut records, mut strange) = (Vec::new(), Vec::new());
    let failed = |e: &std::io::Error| {
        Error::io(&format!("cannot read {}", dir().display()), e).help("make it yours and private: chmod 700")
    };
    match journal::trusted(&dir()) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((records, strange)),
        Err(e) => return Err(failed(&e)),
    }
    for file in std::fs::read_dir(dir()).map_err(|e| failed(&e))? {
        let path = file.map_err(|e| failed(&e))?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        match read(&path) {
            Ok(record) => records.push(record),
            // Its end was written meanwhile.
            Err(_) if !path.exists() => {}
            Err(why) => strange.push((path, why)),
        }
    }
    records.sort_by(|a: &Record, b| (b.until, &b.run).cmp(&(a.until, &a.run)));
    Ok((records, strange))
}

fn read(path: &Path) -> Result<Record, String> {
    let meta = std::fs::symlink_metadata(path).map_err(|e| e.to_string())?;
    if !meta.is_file() || meta.len() > LIMIT {
        return Err("it is not a small regular file".into());
    }
    let text = std::fs::read(path).map_err(|e| e.to_string())?;
    let record: Record = serde_json::from_slice(&text).map_err(|e| format!("it is not a record: {e}"))?;
    if record.version != VERSION {
        return Err(format!("its version is {}, and this program knows {VERSION}", record.version));
    }
    let named = path.file_stem().is_some_and(|stem| stem == record.run.as_str());
    if !named || RunId::parse(&record.run).is_none() || !crate::forge::is_repo(&record.thread.repo) {
        return Err("it is not the record of the run that it is named after".into());
    }
    Ok(record)
}
