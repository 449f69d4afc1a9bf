//! Evidence to judgement: how an agent run ended.
//!
//! An exit status alone never proves success of an agent that speaks stream-json: agents exit with 0 after a
//! failed login, and with 1 after reaching their turn limit with good work in the tree.

use serde::{Deserialize, Serialize};

use super::event::{Event, ResultEvent};
use super::stream::Stats;
use super::summary::one_line;
use crate::error::Code;

/// The longest reason, in characters.
const REASON: usize = 400;

/// How the agent's process ended, as the sandbox recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Nothing was recorded.
    Unknown,
}

impl Exit {
    /// From a shell's `$?`, where 128 + n stands for signal n.
    pub fn from_shell(status: i32) -> Self {
        match status {
            129..=192 => Exit::Signal(status - 128),
            other => Exit::Status(other),
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Status(status) => write!(f, "exit status {status}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
            Exit::Unknown => f.write_str("no recorded exit status"),
        }
    }
}

/// What is known of a run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The last result event.
    pub result: Option<ResultEvent>,
    /// The last error that the agent or the model API reported.
    pub last_error: Option<String>,
    /// What was seen of the stream.
    pub stream: Stats,
    /// How the process ended.
    pub exit: Exit,
}

impl Evidence {
    /// No evidence yet.
    pub fn new() -> Self {
        Self { result: None, last_error: None, stream: Stats::default(), exit: Exit::Unknown }
    }

    /// Takes note of an event.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::Result(result) => self.result = Some(result.clone()),
            Event::Error { kind, message } if message.is_empty() => self.last_error = Some(kind.clone()),
            Event::Error { message, .. } => self.last_error = Some(message.clone()),
            Event::Retry { error, .. } => self.last_error = Some(format!("model API: {error}")),
            // The work goes on: what was said before is neither the last error nor the end.
            Event::Turn => {
                self.last_error = None;
                self.result = None;
            }
            _ => {}
        }
    }
}

impl Default for Evidence {
    fn default() -> Self {
        Self::new()
    }
}

/// How an agent run ended. The texts are reasons in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum Judgement {
    /// It did what it was asked to.
    Success,
    /// It says, or its exit status says, that it failed.
    Failed(String),
    /// It ended without saying how.
    Incomplete(String),
    /// It reached its limit of turns; partial work may be good.
    MaxTurns(String),
    /// It reached its limit of cost.
    Budget(String),
}

impl Judgement {
    /// Whether the run succeeded.
    pub fn is_success(&self) -> bool {
        *self == Judgement::Success
    }

    /// The error code; none for success.
    pub fn code(&self) -> Option<Code> {
        match self {
            Judgement::Success => None,
            Judgement::Failed(_) => Some(Code::AgentFailed),
            Judgement::Incomplete(_) => Some(Code::AgentIncomplete),
            Judgement::MaxTurns(_) | Judgement::Budget(_) => Some(Code::AgentBudget),
        }
    }

    /// Why, in one line; none for success.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Judgement::Success => None,
            Judgement::Failed(r)
            | Judgement::Incomplete(r)
            | Judgement::MaxTurns(r)
            | Judgement::Budget(r) => Some(r),
        }
    }
}

/// Judges a run. The order: no recorded end › the result event › the exit status.
pub fn judge(evidence: &Evidence) -> Judgement {
    if evidence.exit == Exit::Unknown {
        return Judgement::Incomplete("the end of the agent was not recorded in the sandbox".into());
    }
    if let Some(result) = &evidence.result {
        return by_result(result, evidence);
    }
    if evidence.stream.stream_json == Some(true) {
        return Judgement::Incomplete(unfinished(evidence));
    }
    match evidence.exit {
        Exit::Status(0) if evidence.stream.partial_tail => Judgement::Incomplete(unfinished(evidence)),
        Exit::Status(0) => Judgement::Success,
        exit => Judgement::Failed(format!("the agent ended with {exit}")),
    }
}

fn by_result(result: &ResultEvent, evidence: &Evidence) -> Judgement {
    let said = [&result.text, &result.errors.join("; ")]
        .into_iter()
        .map(|text| one_line(text, REASON))
        .find(|text| !text.is_empty())
        .or_else(|| evidence.last_error.as_deref().map(|e| one_line(e, REASON)));
    let because =
        |what: &str| said.as_ref().map_or_else(|| what.to_owned(), |said| format!("{what}: {said}"));
    match result.subtype.as_str() {
        "error_max_turns" => Judgement::MaxTurns(because("the agent reached its turn limit")),
        "error_max_budget_usd" => Judgement::Budget(because("the agent reached its cost limit")),
        "success" | "" if !result.is_error => Judgement::Success,
        "success" | "" | "error_during_execution" => Judgement::Failed(because("the agent reports an error")),
        other => Judgement::Failed(because(&format!("the agent reports `{}`", one_line(other, 60)))),
    }
}

fn unfinished(evidence: &Evidence) -> String {
    let mut reason = format!("the agent gave no final result ({})", evidence.exit);
    if evidence.stream.partial_tail {
        reason.push_str("; its stream ends in the middle of a line");
    }
    if let Some(error) = &evidence.last_error {
        reason.push_str("; last error: ");
        reason.push_str(&one_line(error, REASON));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(json: Option<bool>, exit: Exit, result: Option<(&str, bool, &str)>) -> Evidence {
        Evidence {
            result: result.map(|(subtype, is_error, text)| ResultEvent {
                subtype: subtype.into(),
                is_error,
                text: text.into(),
                ..Default::default()
            }),
            stream: Stats { stream_json: json, ..Stats::default() },
            exit,
            ..Evidence::new()
        }
    }

    #[test]
    fn the_result_beats_the_exit_status() {
        let (ok, bad) = (Exit::Status(0), Exit::Status(1));
        let json = Some(true);
        let failed = |t: &str| Judgement::Failed(t.into());
        let cases = [
            (evidence(json, ok, Some(("success", false, "done"))), Judgement::Success),
            (evidence(json, Exit::Signal(15), Some(("success", false, "done"))), Judgement::Success),
            (
                evidence(json, ok, Some(("success", true, "API Error: 401"))),
                failed("the agent reports an error: API Error: 401"),
            ),
            (
                evidence(json, bad, Some(("error_max_turns", true, ""))),
                Judgement::MaxTurns("the agent reached its turn limit".into()),
            ),
            (
                evidence(json, bad, Some(("error_max_budget_usd", true, ""))),
                Judgement::Budget("the agent reached its cost limit".into()),
            ),
            (
                evidence(json, ok, Some(("error_new_kind", false, ""))),
                failed("the agent reports `error_new_kind`"),
            ),
            (
                evidence(json, ok, None),
                Judgement::Incomplete("the agent gave no final result (exit status 0)".into()),
            ),
            (evidence(Some(false), ok, None), Judgement::Success),
            (evidence(None, ok, None), Judgement::Success),
            (evidence(Some(false), Exit::Status(3), None), failed("the agent ended with exit status 3")),
            (evidence(None, Exit::Signal(9), None), failed("the agent ended with signal 9")),
        ];
        for (evidence, expected) in cases {
            assert_eq!(judge(&evidence), expected, "{evidence:?}");
        }
    }

    #[test]
    fn no_exit_file_is_never_success() {
        for result in [None, Some(("success", false, "done"))] {
            for json in [None, Some(true), Some(false)] {
                let judgement = judge(&evidence(json, Exit::Unknown, result));
                assert!(matches!(judgement, Judgement::Incomplete(_)), "{judgement:?}");
            }
        }
    }

    #[test]
    fn an_incomplete_run_carries_the_last_error_and_the_tail() {
        let mut e = evidence(Some(true), Exit::Status(1), None);
        e.stream.partial_tail = true;
        e.observe(&Event::Retry { attempt: 1, max: 2, delay_ms: 3, error: "overloaded".into() });
        let judgement = judge(&e);
        let reason = judgement.reason().unwrap();
        assert!(reason.contains("middle of a line") && reason.ends_with("model API: overloaded"), "{reason}");
        assert_eq!(judgement.code(), Some(Code::AgentIncomplete));
    }

    #[test]
    fn shell_statuses_name_signals() {
        assert_eq!(Exit::from_shell(143), Exit::Signal(15));
        assert_eq!(Exit::from_shell(255), Exit::Status(255));
        assert_eq!(Exit::from_shell(128), Exit::Status(128));
    }
}
