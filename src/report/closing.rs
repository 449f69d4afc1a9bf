//! What the end of a run is to a CI system. The run fills it in; [`super::github`], [`super::gitlab`] and
//! [`super::markdown`] turn it into text.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::diffstat::FileStat;
use crate::agent::Metrics;
use crate::error::Error;

/// The end of a run.
#[derive(Debug, Default)]
pub struct Closing<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The run's name; none when it ended before it had one.
    pub run: Option<String>,
    /// The verdict's word, as in `run.json`.
    pub verdict: &'a str,
    /// The exit status.
    pub exit_code: u8,
    /// What went wrong.
    pub error: Option<&'a Error>,
    /// Why there was nothing to do.
    pub skip_reason: Option<&'a str>,
    /// What the pre-script handed on, by name.
    pub outputs: Option<&'a BTreeMap<String, String>>,
    /// One sentence on how it ended.
    pub reason: String,
    /// What to do now.
    pub next: Option<String>,
    /// The run directory.
    pub dir: Option<&'a Path>,
    /// How long the run took, in milliseconds.
    pub duration_ms: u64,
    /// The phases, in order.
    pub phases: Vec<Bar>,
    /// Turns, tokens, cost of all iterations; none when no agent ran.
    pub totals: Option<Metrics>,
    /// What of it reviewers used.
    pub reviews: Option<Metrics>,
    /// How many paths of the repository changed.
    pub changed: usize,
    /// The changed paths with what happened to each, at most as many as are shown.
    pub changes: Vec<(String, &'static str)>,
    /// The same with counts of lines, when the patch could be read.
    pub stat: Vec<FileStat>,
    /// Whether the checkout has the result.
    pub applied: bool,
    /// What the scanners found, worst first.
    pub findings: Vec<Found>,
    /// How the iterations were judged.
    pub attempts: Vec<Attempt>,
    /// The agent's result file, in one line, when it is small enough to be handed on.
    pub result: Option<String>,
}

/// One phase on the time line.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Milliseconds from the start of the run.
    pub start_ms: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// One line of the record of findings, as far as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Which scanner.
    pub scanner: String,
    /// Which of its rules.
    pub rule: String,
    /// `low`, `medium`, `high` or `critical`.
    pub severity: String,
    /// The file, or a name for what is no file.
    pub file: String,
    /// The line; 0 when there is none.
    pub line: u64,
    /// What was found.
    pub message: String,
    /// What stands for this rule on this text.
    pub fingerprint: String,
}

impl Found {
    /// 0 for the worst.
    pub fn rank(&self) -> u8 {
        match self.severity.as_str() {
            "critical" => 0,
            "high" => 1,
            "medium" => 2,
            _ => 3,
        }
    }

    /// `scanner/rule`.
    pub fn check(&self) -> String {
        format!("{}/{}", self.scanner, self.rule)
    }
}

/// How one iteration was judged.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Whether its output validated; nothing when it was not asked.
    pub valid: Option<bool>,
    /// How long agent and checks took, in milliseconds, where it is known.
    pub duration_ms: Option<u64>,
}

/// The findings in a record (JSON lines), worst first, at most `limit`; lines that are none are passed over.
pub fn findings(record: &str, limit: usize) -> Vec<Found> {
    let mut list: Vec<Found> = record.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    list.sort_by_key(Found::rank);
    list.truncate(limit);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_come_worst_first() {
        let record = "{\"rule\":\"a\",\"severity\":\"low\"}\nno json\n{\"rule\":\"b\",\"severity\":\"critical\",\"line\":3,\"more\":1}\n{\"rule\":\"c\",\"severity\":\"high\"}\n";
        let rules: Vec<_> = findings(record, 2).iter().map(|f| f.rule.clone()).collect();
        assert_eq!(rules, ["b", "c"]);
    }
}
