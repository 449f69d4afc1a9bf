//! The record of findings: one JSON value per line, each with the digest of the one before, so that a line that is
//! changed, moved or taken out shows. It is written on the host; what hooks report from inside the sandbox is copied
//! into it and marked as such. `run.json` has the last digest, so that lines missing at the end show as well.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Finding, Severity};
use crate::error::{Code, Error, Result};
use crate::report::hex;

/// The file, relative to the run directory.
pub(crate) const FILE: &str = "security/findings.jsonl";

/// What the first line says of the one before.
const START: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Where a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The host's own scan.
    Host,
    /// A hook in the sandbox, which the agent could have written.
    Sandbox,
}

/// What was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// The run was stopped.
    Blocked,
    /// It was told.
    Warned,
    /// A tool call was denied.
    Denied,
    /// A tool's answer was changed before the model saw it.
    Masked,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct Line<'a> {
    seq: u64,
    time: String,
    origin: Origin,
    phase: &'a str,
    scanner: &'static str,
    rule: &'a str,
    severity: Severity,
    file: &'a str,
    line: usize,
    message: &'a str,
    excerpt: &'a str,
    action: Action,
    fingerprint: String,
    prev: &'a str,
}

/// How many findings there are of each severity.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Chain {
    path: PathBuf,
    head: String,
    seq: u64,
    counts: Counts,
}

impl Chain {
    /// A record in a run directory; the file is made with the first finding.
    pub(crate) fn new(run_dir: &Path) -> Self {
        Self { path: run_dir.join(FILE), head: START.to_owned(), seq: 0, counts: Counts::new() }
    }

    /// Adds a finding.
    pub(crate) fn add(
        &mut self,
        finding: &Finding,
        origin: Origin,
        phase: &str,
        action: Action,
    ) -> Result<()> {
        let hit = &finding.hit;
        let line = Line {
            seq: self.seq + 1,
            time: jiff::Timestamp::now().to_string(),
            origin,
            phase,
            scanner: hit.scanner.as_str(),
            rule: hit.rule,
            severity: hit.severity,
            file: &finding.file,
            line: hit.line,
            message: &hit.message,
            excerpt: &hit.excerpt,
            action,
            fingerprint: finding.fingerprint(),
            prev: &self.head,
        };
        let text = serde_json::to_string(&line).map_err(|e| Error::bug(e.to_string()))?;
        let hash = digest(&text);
        let whole = format!("{},\"hash\":\"{hash}\"}}\n", text.strip_suffix('}').unwrap_or(&text));
        if let Some(dir) = self.path.parent() {
            fs_err::create_dir_all(dir)?;
        }
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(whole.as_bytes())?;
        self.seq += 1;
        self.head = hash;
        *self.counts.entry(hit.severity.as_str()).or_default() += 1;
        Ok(())
    }

    /// The digest of the last line; nothing before the first.
    pub(crate) fn head(&self) -> Option<&str> {
        (self.seq > 0).then_some(self.head.as_str())
    }

    /// How many findings there are of each severity.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
}

fn digest(text: &str) -> String {
    hex(Sha256::digest(text.as_bytes()))
}

/// A record that holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// The number of findings.
    pub(crate) count: u64,
    /// The digest of the last one.
    pub(crate) head: String,
}

/// Checks a record.
///
/// # Errors
/// [`Code::RunUnknown`] when there is none, [`Code::RecordBroken`] with the first line that does not hold.
pub(crate) fn verify(path: &Path) -> Result<Verified> {
    let text = fs_err::read_to_string(path).map_err(|e| {
        Error::new(Code::RunUnknown, format!("there is no record of findings: {e}"))
            .help("name a run directory, or the file security/findings.jsonl in it")
    })?;
    let mut verified = Verified { count: 0, head: START.to_owned() };
    for (at, line) in text.lines().enumerate() {
        verified.head = link(line, &verified.head).ok_or_else(|| {
            Error::new(Code::RecordBroken, format!("{}:{}: the line is not what was written", path.display(), at + 1))
                .help("it, or a line before it, was changed, moved or removed after the run; trust none from here on")
        })?;
        verified.count += 1;
    }
    Ok(verified)
}

/// The digest of a line that holds.
fn link(line: &str, prev: &str) -> Option<String> {
    let (body, hash) = line.strip_suffix("\"}")?.rsplit_once(",\"hash\":\"")?;
    let named = body.rsplit_once(",\"prev\":\"")?.1.strip_suffix('"')?;
    (named == prev && digest(&format!("{body}}}")) == hash).then(|| hash.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{Hit, Scanner};

    fn finding(n: usize) -> Finding {
        let message = format!("a \"message\" {n}");
        let hit = Hit {
            scanner: Scanner::Unicode,
            rule: "zero-width",
            severity: Severity::High,
            line: n,
            message,
            excerpt: "\",\"hash\":\"x\"}".into(),
        };
        Finding { file: "CLAUDE.md".into(), hit }
    }

    #[test]
    fn a_record_holds_until_it_is_touched() {
        let tmp = tempfile::tempdir().unwrap();
        let mut chain = Chain::new(tmp.path());
        assert_eq!(chain.head(), None);
        for n in 1..=4 {
            chain.add(&finding(n), Origin::Host, "scan", Action::Warned).unwrap();
        }
        let path = tmp.path().join(FILE);
        let verified = verify(&path).unwrap();
        assert_eq!((verified.count, Some(verified.head.as_str())), (4, chain.head()));
        assert_eq!(chain.counts()["high"], 4);

        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let broken = [
            text.replacen("\\\"message\\\" 2", "\\\"message\\\" 9", 1),
            [lines[0], lines[2], lines[3]].join("\n"),
            [lines[1], lines[0], lines[2], lines[3]].join("\n"),
            [lines[0], lines[0]].join("\n"),
            format!("{text}{{}}\n"),
        ];
        for text in broken {
            std::fs::write(&path, text).unwrap();
            assert_eq!(verify(&path).unwrap_err().code(), Code::RecordBroken);
        }
        // What is missing at the end shows against the digest in run.json.
        std::fs::write(&path, lines[..3].join("\n")).unwrap();
        assert_ne!(Some(verify(&path).unwrap().head.as_str()), chain.head());
    }
}
