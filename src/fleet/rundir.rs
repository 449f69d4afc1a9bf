//! The directories that past runs have left.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::openshell::names::{RunId, parse_stamp};

/// A `run.json` is never longer, in bytes.
const LIMIT: u64 = 64 * 1024 * 1024;
/// What the schema of every `run.json` starts with.
const SCHEMA: &str = "fullsend.run/";

/// A run directory.
#[derive(Debug)]
pub(super) struct RunDir {
    /// Where it is.
    pub path: PathBuf,
    /// The agent's name.
    pub agent: String,
    /// The run's id.
    pub run: String,
    /// When the run began.
    pub started: Timestamp,
    /// What `run.json` says, when it is there.
    pub record: Option<Record>,
}

/// The part of `run.json` that is read.
#[derive(Debug, Deserialize)]
pub(super) struct Record {
    pub schema: String,
    pub run: String,
    pub agent: String,
    pub started: Timestamp,
    pub duration_ms: u64,
    pub verdict: String,
    pub exit_code: i64,
    #[serde(default)]
    pub error: Option<Failure>,
    #[serde(default)]
    pub skip_reason: Option<String>,
}

/// The failure of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Failure {
    pub code: String,
    pub message: String,
}

impl RunDir {
    /// When the run ended, as far as that is known.
    pub(super) fn ended(&self) -> Timestamp {
        let took = self.record.as_ref().map_or(0, |r| r.duration_ms);
        self.started.checked_add(Duration::from_millis(took)).unwrap_or(self.started)
    }
}

/// The run directories in an output directory, by start. Links are passed over, and so is what belongs to others.
/// An output directory that does not exist has none.
pub(super) fn scan(output: &Path) -> Result<Vec<RunDir>> {
    let mut found = Vec::new();
    let failed = |e: std::io::Error| {
        Error::io(&format!("cannot read {}", output.display()), &e)
            .help("name the directory with --output-dir")
    };
    let entries = match std::fs::read_dir(output) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(failed(e)),
    };
    for entry in entries {
        found.extend(look(&entry.map_err(failed)?.path()));
    }
    found.sort_by(|a, b| (a.started, &a.run).cmp(&(b.started, &b.run)));
    Ok(found)
}

/// The run directory at a path, when it is one: by its name, or by its `run.json`.
pub(super) fn look(path: &Path) -> Option<RunDir> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let path = path.to_owned();
    let record = record(&path.join("run.json"));
    let named = path.file_name().and_then(|n| n.to_str()).and_then(parse_name);
    match (named, record) {
        (Some((agent, started, run)), record) => Some(RunDir { path, agent, run, started, record }),
        (None, Some(record)) => {
            let (agent, run) = (record.agent.clone(), record.run.clone());
            Some(RunDir { path, agent, run, started: record.started, record: Some(record) })
        }
        (None, None) => None,
    }
}

fn record(path: &Path) -> Option<Record> {
    let mut text = Vec::new();
    open_plain(path).ok()?.take(LIMIT).read_to_end(&mut text).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    record.schema.starts_with(SCHEMA).then_some(record)
}

/// Opens a regular file without following a link and without waiting for a pipe.
pub(super) fn open_plain(path: &Path) -> std::io::Result<std::fs::File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).map_err(std::io::Error::other)?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("not a regular file")) }
}

/// Agent, start and run of a directory named `<agent>-<UTC time>-<id>`.
pub(super) fn parse_name(name: &str) -> Option<(String, Timestamp, String)> {
    let (rest, run) = name.rsplit_once('-')?;
    let (agent, time) = rest.rsplit_once('-')?;
    let run = RunId::parse(run)?;
    let started = parse_stamp(time).filter(|_| time.len() == 16)?;
    (!agent.is_empty()).then(|| (agent.to_owned(), started, run.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_run_directories_are_read() {
        let (agent, started, run) = parse_name("code-review-20260301T120000Z-0123456789ab").unwrap();
        assert_eq!((agent.as_str(), run.as_str()), ("code-review", "0123456789ab"));
        assert_eq!(started, "2026-03-01T12:00:00Z".parse().unwrap());
        for other in [
            "code-review",
            "-20260301T120000Z-0123456789ab",
            "a-1772366400-0123456789ab",
            "a-20260301T120000Z-0123456789abc",
            "a-20260301T120000Z-0123456789ab.bak",
            "20260301T120000Z-0123456789ab",
        ] {
            assert!(parse_name(other).is_none(), "{other}");
        }
    }

    #[test]
    fn only_directories_that_are_ours_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let real = "work-20260301T120000Z-0123456789ab";
        let record = r#"{"schema":"fullsend.run/1","run":"aaaaaaaaaaaa","agent":"a","started":"2026-03-01T12:00:00Z",
            "duration_ms":60000,"verdict":"success","exit_code":0}"#;
        for name in [real, "renamed", "mine", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("renamed/run.json"), record).unwrap();
        std::fs::write(at("other/run.json"), r#"{"schema":"other/1"}"#).unwrap();
        std::os::unix::fs::symlink(at("renamed/run.json"), at("mine/run.json")).unwrap();
        std::os::unix::fs::symlink(at(real), at("work-20260301T120000Z-bbbbbbbbbbbb")).unwrap();
        std::fs::write(at("work-20260301T120000Z-cccccccccccc"), "a file").unwrap();
        let found = scan(dir.path()).unwrap();
        let runs: Vec<_> = found.iter().map(|d| d.run.as_str()).collect();
        assert_eq!(runs, ["0123456789ab", "aaaaaaaaaaaa"]);
        assert_eq!(found[1].ended(), "2026-03-01T12:01:00Z".parse().unwrap());
        assert!(scan(&at("nowhere")).unwrap().is_empty());
    }
}
