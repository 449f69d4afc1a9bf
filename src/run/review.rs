//! What a reviewer's run left: its verdict, or why there is none, and what it used.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{Event, Metrics};
use crate::error::{Code, Error, Family, Result};
use crate::output_check::DEFAULT_OUTPUT;
use crate::process::Status;
use crate::report::{last_lines, truncate};

/// The largest verdict that is read, in bytes.
const MAX_VERDICT: u64 = 1024 * 1024;
/// How many findings are passed on.
const FINDINGS: usize = 50;
/// How many lines of the reviewer's own report are shown.
const SHOWN: usize = 20;
/// How much of one text of a verdict, in bytes.
const TEXT: usize = 2000;

/// What a reviewer writes to its output file `agent-result.json`. Other keys are its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the field is a key of a file that others write")]
pub(super) struct Verdict {
    /// Whether the work is good.
    pub verdict: Word,
    /// Why, in a sentence or two.
    #[serde(default)]
    pub summary: String,
    /// What has to be changed.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// The verdict itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    /// The work is good.
    Accept,
    /// It is not.
    Reject,
}

/// One thing that has to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    /// What is wrong, and what would be right.
    pub message: String,
    /// The file.
    #[serde(default)]
    pub path: Option<String>,
    /// The line in it.
    #[serde(default)]
    pub line: Option<u64>,
}

impl Verdict {
    /// The summary, else the first finding.
    pub(super) fn headline(&self) -> String {
        let first = self.findings.first().map(|f| f.message.as_str());
        let text =
            Some(self.summary.trim()).filter(|s| !s.is_empty()).or(first).unwrap_or("it gave no reason");
        truncate(text.lines().next().unwrap_or_default(), TEXT).into_owned()
    }

    /// The findings, one per line.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for finding in self.findings.iter().take(FINDINGS) {
            let place = match (&finding.path, finding.line) {
                (Some(path), Some(line)) => format!("{path}:{line}: "),
                (Some(path), None) => format!("{path}: "),
                _ => String::new(),
            };
            _ = writeln!(text, "- {}", truncate(&format!("{place}{}", finding.message), TEXT));
        }
        if self.findings.len() > FINDINGS {
            _ = writeln!(text, "- and {} more", self.findings.len() - FINDINGS);
        }
        text
    }
}

/// What `run.json` says of a review.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ReviewRecord {
    /// The reviewing agent.
    pub agent: String,
    /// Its run directory, relative to the one of this run; nothing where it had none.
    pub dir: Option<String>,
    /// What it said; nothing where it came to no verdict.
    #[serde(flatten)]
    pub verdict: Option<Verdict>,
    /// The code of why there is no verdict.
    pub failed: Option<Code>,
    /// What it used.
    pub metrics: Metrics,
}

/// Why there is no verdict.
pub(super) fn none(agent: &str, number: u32, why: &str) -> Error {
    Error::new(Code::Review, format!("the reviewer `{agent}` came to no verdict: {why}")).help(format!(
        "the work is neither accepted nor rejected; the reviewer's run is in iteration-{number}/review, and has to leave \
         `{{\"verdict\": \"accept\"}}` or `\"reject\"` in its agent-result.json",
    ))
}

/// The same for a run that says itself what went wrong. What lies with the machine or with what the user gave keeps its
/// code and its help.
fn failed(agent: &str, number: u32, why: &str, code: Option<Code>, help: Option<&str>) -> Error {
    let error = none(agent, number, why);
    match code.filter(|c| matches!(c.family(), Family::Infrastructure | Family::User)) {
        Some(code) => {
            let help = help.map_or_else(|| Error::new(code, "").help_text(), str::to_owned);
            Error::new(code, error.message()).help(format!(
                "{help}; that is about the reviewer's own run, which is in iteration-{number}/review"
            ))
        }
        None => error,
    }
}

/// What the report of a run that had no directory yet says: its code and message.
pub(super) fn reported(agent: &str, number: u32, status: Status, stderr: &str) -> Error {
    let head = stderr.lines().find_map(|line| line.strip_prefix("error[")?.split_once("]: "));
    let help = stderr.lines().find_map(|line| line.strip_prefix("help: "));
    let code = head.and_then(|(code, _)| code.parse::<Code>().ok());
    let why = head.map_or_else(
        || format!("its run made no run directory and ended with {status}"),
        |(_, said)| said.to_owned(),
    );
    failed(agent, number, &why, code, help).detail(last_lines(stderr, SHOWN))
}

/// The verdict of a review that has ended.
pub(super) fn read(agent: &str, number: u32, dir: &Path) -> Result<Verdict> {
    let none = |why: &str| none(agent, number, why);
    let text = fs_err::read(dir.join("run.json")).map_err(|_| none("its run left no run.json"))?;
    let json: Value = serde_json::from_slice(&text).map_err(|_| none("its run.json cannot be read"))?;
    if json["verdict"] != "success" {
        let error = &json["error"];
        let said = error["message"].as_str().or(json["skip_reason"].as_str()).unwrap_or("no reason");
        let why = format!("{}: {said}", json["verdict"].as_str().unwrap_or("unknown"));
        let code = error["code"].as_str().and_then(|code| code.parse::<Code>().ok());
        let detail = error["detail"].as_str().unwrap_or_default();
        return Err(
            failed(agent, number, &why, code, error["help"].as_str()).detail(last_lines(detail, SHOWN))
        );
    }
    let last = json["iterations"].as_array().and_then(|all| all.last());
    let judged = json["validated_iteration"].as_u64().or_else(|| last?["number"].as_u64()).unwrap_or(1);
    let path = dir.join(format!("iteration-{judged}")).join("output").join(DEFAULT_OUTPUT);
    let meta = std::fs::symlink_metadata(&path).map_err(|_| none("it wrote no agent-result.json"))?;
    if !meta.is_file() || meta.len() > MAX_VERDICT {
        return Err(none("its agent-result.json is no file of at most 1 MiB"));
    }
    let text = fs_err::read(&path)?;
    serde_json::from_slice(&text).map_err(|e| none(&format!("its agent-result.json is no verdict: {e}")))
}

/// What the reviewer's run used: by its own word, or by the events that it had written when it was killed.
pub(super) fn used(dir: &Path) -> Metrics {
    let record = std::fs::read(dir.join("run.json")).ok();
    let record = record.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    if let Some(totals) = record.and_then(|mut json| serde_json::from_value(json["totals"].take()).ok()) {
        return totals;
    }
    let mut sum = Metrics::default();
    for number in 1.. {
        let Ok(file) = std::fs::File::open(dir.join(format!("iteration-{number}/events.jsonl"))) else {
            break;
        };
        let mut one = Metrics::default();
        for line in BufReader::new(file).lines().map_while(std::io::Result::ok) {
            if let Ok(event) = serde_json::from_str::<Event>(&line) {
                one.observe(&event);
            }
        }
        sum.add(&one);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(run: &str, result: Option<&str>) -> Result<Verdict> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("run.json"), run).unwrap();
        let output = dir.path().join("iteration-2/output");
        fs_err::create_dir_all(&output).unwrap();
        if let Some(text) = result {
            fs_err::write(output.join(DEFAULT_OUTPUT), text).unwrap();
        }
        read("r", 2, dir.path())
    }

    const GOOD: &str =
        r#"{"verdict":"success","iterations":[{"number":1},{"number":2}],"validated_iteration":null}"#;

    #[test]
    fn a_verdict_is_read_from_the_last_iteration() {
        let text = r#"{"verdict":"reject","summary":"No tests.","findings":[{"message":"add one","path":"a.rs","line":7},{"message":"b"}],"more":1}"#;
        let verdict = judged(GOOD, Some(text)).unwrap();
        assert_eq!(verdict.verdict, Word::Reject);
        assert_eq!(verdict.headline(), "No tests.");
        assert_eq!(verdict.lines(), "- a.rs:7: add one\n- b\n");
        assert_eq!(judged(GOOD, Some(r#"{"verdict":"accept"}"#)).unwrap().verdict, Word::Accept);
    }

    #[test]
    fn what_is_no_verdict_accepts_nothing() {
        for text in
            [None, Some("{}"), Some(r#"{"verdict":"maybe"}"#), Some("accept"), Some(r#"{"verdict":true}"#)]
        {
            assert_eq!(judged(GOOD, text).unwrap_err().code(), Code::Review, "{text:?}");
        }
        let failed = r#"{"verdict":"failed","error":{"code":"FS-AGENT-FAILED","message":"m"}}"#;
        assert_eq!(judged(failed, Some(r#"{"verdict":"accept"}"#)).unwrap_err().code(), Code::Review);
        let down = r#"{"verdict":"infrastructure","error":{"code":"FS-GATEWAY","message":"down"}}"#;
        let error = judged(down, None).unwrap_err();
        assert_eq!(error.code(), Code::GatewayDown);
        assert!(error.message().contains("down"), "{error}");
    }
}
