//! What a run directory holds, read back. Whatever is missing, cut off or not understood is left out: a report of a
//! run that was killed is worth having. Nothing follows a link, and everything has a limit.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::agent::Metrics;

/// A `run.json` is never longer, in bytes.
const RECORD: u64 = 64 * 1024 * 1024;
/// Longer lines of spans are passed over, in bytes.
const SPAN_LINE: u64 = 32 * 1024 * 1024;
/// So many spans are read.
const SPANS: usize = 20_000;

/// The part of `run.json` that reports use.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Record {
    /// How it ended, in a word.
    pub verdict: String,
    /// Its exit status.
    pub exit_code: i64,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Why it was skipped.
    pub skip_reason: Option<String>,
    /// The run's id.
    pub run: String,
    /// The agent's name.
    pub agent: String,
    /// The version of this program.
    pub fullsend: String,
    /// The version of OpenShell.
    pub openshell: String,
    /// Whether it was the embedded backend.
    pub local: bool,
    /// The digest of the plan.
    pub plan_digest: String,
    /// The harness's file.
    pub harness: String,
    /// The harness's digest.
    pub harness_digest: String,
    /// The image.
    pub image: Option<String>,
    /// The sandbox.
    pub sandbox: String,
    /// The repository.
    pub repo: String,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: u64,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// The agent's figures.
    pub totals: Metrics,
    /// Each iteration.
    pub iterations: Vec<Iteration>,
    /// What happened to the repository.
    pub changes: Vec<Change>,
    /// Whether the checkout received it.
    pub applied: bool,
    /// The security checks.
    pub security: Security,
    /// The files of the directory.
    pub artefacts: Vec<String>,
}

/// Why a run failed.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// The code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What other programs said.
    pub detail: Option<String>,
    /// What to do.
    pub help: String,
}

/// A phase.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it began, from the start of the run.
    pub start_ms: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// What it failed with.
    pub failed: Option<String>,
}

/// An iteration.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Iteration {
    /// 1 for the first.
    pub number: u32,
    /// Who ended the agent.
    pub ended_by: String,
    /// Whether its output validated.
    pub valid: Option<bool>,
    /// The agent's figures.
    pub metrics: Metrics,
}

/// A change of the repository.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Change {
    /// The path.
    pub path: String,
    /// What happened.
    pub kind: String,
}

/// The security checks.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub struct Security {
    /// Whether they were on.
    pub enabled: bool,
    /// Findings by severity.
    pub findings: BTreeMap<String, u64>,
}

/// A span.
#[derive(Debug, Clone, Default)]
pub struct Span {
    /// Its id.
    pub id: String,
    /// The span above.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Whether it is a call of another program.
    pub call: bool,
    /// When it began, in nanoseconds since 1970.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Why it failed, when it did.
    pub failed: Option<String>,
    /// Its attributes, as texts.
    pub attributes: BTreeMap<String, String>,
    /// What happened within it: when, and its attributes.
    pub events: Vec<(u64, BTreeMap<String, String>)>,
}

/// A run directory.
#[derive(Debug)]
pub struct RunDir {
    /// Where it is.
    pub path: PathBuf,
    /// What `run.json` says; nothing for a run that was killed or still goes on.
    pub record: Option<Record>,
}

impl RunDir {
    /// Reads one.
    pub fn read(path: &Path) -> Self {
        let mut text = Vec::new();
        let record = open(&path.join("run.json"))
            .and_then(|file| file.take(RECORD).read_to_end(&mut text))
            .ok()
            .and_then(|_| serde_json::from_slice(&text).ok());
        Self { path: path.to_owned(), record }
    }

    /// The spans, in the order in which they ended.
    pub fn spans(&self) -> Vec<Span> {
        let Ok(file) = open(&self.path.join(crate::telemetry::FILE)) else { return Vec::new() };
        let mut reader = BufReader::new(file);
        let mut spans = Vec::new();
        let mut line = Vec::new();
        while spans.len() < SPANS {
            line.clear();
            match reader.by_ref().take(SPAN_LINE).read_until(b'\n', &mut line) {
                Ok(n) if n > 0 => {}
                _ => break,
            }
            // The last line of a run that was killed may be cut off.
            if let Ok(value) = serde_json::from_slice::<Value>(&line) {
                let list = &value["resourceSpans"][0]["scopeSpans"][0]["spans"];
                spans.extend(list.as_array().into_iter().flatten().map(span));
            }
        }
        spans
    }

    /// A file as text, its first bytes and its last ones; how many are missing between them.
    pub fn text(&self, below: &str, first: u64, last: u64) -> Option<(String, String, u64)> {
        let mut file = open(&self.path.join(below)).ok()?;
        let size = file.metadata().ok()?.len();
        let mut head = Vec::new();
        file.by_ref().take(first).read_to_end(&mut head).ok()?;
        let rest = size.saturating_sub(first);
        let skipped = rest.saturating_sub(last);
        let mut tail = Vec::new();
        if rest > 0 {
            file.seek(SeekFrom::Start(first + skipped)).ok()?;
            file.take(last).read_to_end(&mut tail).ok()?;
        }
        if skipped == 0 {
            head.append(&mut tail);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(&head), text(&tail), skipped))
    }

    /// The numbers of the iterations that left something.
    pub fn iterations(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut found: Vec<u32> = entries
            .filter_map(|e| e.file_name().to_str()?.strip_prefix("iteration-")?.parse().ok())
            .collect();
        found.sort_unstable();
        found
    }
}

/// Opens a regular file without following a link and without waiting for a pipe.
pub(super) fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).map_err(std::io::Error::other)?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("not a regular file")) }
}

fn span(value: &Value) -> Span {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_str().and_then(|t| t.parse().ok()).unwrap_or_default();
    let events = value["events"].as_array().into_iter().flatten();
    let status = &value["status"];
    Span {
        id: text("spanId"),
        parent: text("parentSpanId"),
        name: text("name"),
        call: value["kind"] == 3,
        start: number(&value["startTimeUnixNano"]),
        end: number(&value["endTimeUnixNano"]),
        failed: (status["code"] == 2).then(|| status["message"].as_str().unwrap_or_default().to_owned()),
        attributes: attributes(&value["attributes"]),
        events: events.map(|e| (number(&e["timeUnixNano"]), attributes(&e["attributes"]))).collect(),
    }
}

fn attributes(list: &Value) -> BTreeMap<String, String> {
    let one = |pair: &Value| {
        let value = pair["value"].as_object()?.values().next()?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((pair["key"].as_str()?.to_owned(), text))
    };
    list.as_array().into_iter().flatten().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::read(dir.path());
        assert!(run.record.is_none() && run.spans().is_empty() && run.iterations().is_empty());
        let line =
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"a","startTimeUnixNano":"5"}]}]}]}"#;
        std::fs::write(dir.path().join("otel.jsonl"), format!("{line}\nnonsense\n{line}\n{}", &line[..40]))
            .unwrap();
        std::fs::write(dir.path().join("run.json"), r#"{"verdict":"failed","unknown":1}"#).unwrap();
        let run = RunDir::read(dir.path());
        assert_eq!(run.record.as_ref().unwrap().verdict, "failed");
        assert_eq!((run.spans().len(), run.spans()[0].start), (2, 5));
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert!(run.text("link", 10, 10).is_none());
    }

    #[test]
    fn a_long_file_loses_its_middle() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "aaaa----bb").unwrap();
        let run = RunDir::read(dir.path());
        assert_eq!(run.text("f", 4, 2), Some(("aaaa".into(), "bb".into(), 4)));
        assert_eq!(run.text("f", 4, 6), Some(("aaaa----bb".into(), String::new(), 0)));
        assert_eq!(run.text("f", 40, 6), Some(("aaaa----bb".into(), String::new(), 0)));
    }
}
