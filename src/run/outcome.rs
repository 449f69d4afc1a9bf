//! How a run ended.

use serde::Serialize;

use crate::error::{Code, Error, Family};

/// The one word for a run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The agent did its work, and everything after it went well.
    Success,
    /// The pre-script asked for a neutral end.
    Skipped,
    /// The agent said that it failed, or its program did.
    Failed,
    /// The agent ended without a final result.
    Incomplete,
    /// The agent ran over a budget.
    Budget,
    /// The output did not validate.
    Invalid,
    /// A security check stopped the run.
    Blocked,
    /// A pre- or post-script failed.
    ScriptFailed,
    /// OpenShell, ssh, disk, or a bug of ours.
    Infrastructure,
    /// Usage, harness or environment is wrong.
    Usage,
    /// A deadline was reached.
    Timeout,
    /// A signal asked for the end.
    Cancelled,
}

impl Verdict {
    /// The verdict that an error stands for.
    pub fn of(error: &Error) -> Self {
        match (error.code(), error.code().family()) {
            (Code::AgentIncomplete, _) => Verdict::Incomplete,
            (Code::AgentBudget, _) => Verdict::Budget,
            (Code::ValidationFailed, _) => Verdict::Invalid,
            (_, Family::Agent) => Verdict::Failed,
            (_, Family::Blocked) => Verdict::Blocked,
            (_, Family::Script) => Verdict::ScriptFailed,
            (_, Family::Infrastructure) => Verdict::Infrastructure,
            (_, Family::User) => Verdict::Usage,
            (_, Family::Deadline) => Verdict::Timeout,
            (_, Family::Cancelled) => Verdict::Cancelled,
        }
    }

    /// The word as it stands in `run.json` and in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Success => "success",
            Verdict::Skipped => "skipped",
            Verdict::Failed => "failed",
            Verdict::Incomplete => "incomplete",
            Verdict::Budget => "budget",
            Verdict::Invalid => "invalid",
            Verdict::Blocked => "blocked",
            Verdict::ScriptFailed => "script_failed",
            Verdict::Infrastructure => "infrastructure",
            Verdict::Usage => "usage",
            Verdict::Timeout => "timeout",
            Verdict::Cancelled => "cancelled",
        }
    }
}

/// Where a failure stands in the order of evidence: cancelled, timed out, budget, blocked by security,
/// infrastructure, what the agent said, validation, scripts. Lower counts more.
fn rank(error: &Error) -> u8 {
    match (error.code(), error.code().family()) {
        (_, Family::Cancelled) => 0,
        (_, Family::Deadline) => 1,
        (Code::AgentBudget, _) => 2,
        (_, Family::Blocked) => 3,
        (_, Family::Infrastructure | Family::User) => 4,
        (Code::ValidationFailed, _) => 6,
        (_, Family::Agent) => 5,
        (_, Family::Script) => 7,
    }
}

/// The failure that counts among several; the earlier one on equal terms.
pub(super) fn weightiest(failures: Vec<Error>) -> Option<Error> {
    failures.into_iter().min_by_key(rank)
}

impl EndedBy {
    /// Whether the agent was ended before it was done.
    pub(super) fn is_early(self) -> bool {
        matches!(
            self,
            Self::Deadline | Self::Silence | Self::ApiServer | Self::Budget | Self::Flood | Self::Cancel
        )
    }
}

/// Who ended the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EndedBy {
    /// It exited by itself.
    Itself,
    /// Its deadline.
    Deadline,
    /// Its silence was longer than `idle_timeout`.
    Silence,
    /// A budget that was used up.
    Budget,
    /// It wrote more than anybody can want to read.
    Flood,
    /// A server on the host that it needs has ended.
    ApiServer,
    /// A cancel of the run.
    Cancel,
    /// The run, because the agent did not exit after its final result.
    AfterResult,
    /// Not known: the supervisor left no exit file.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_verdict_and_a_rank() {
        for code in Code::ALL {
            let error = Error::new(*code, "x");
            assert_ne!(Verdict::of(&error), Verdict::Success, "{code}");
            assert!(rank(&error) <= 7);
        }
    }

    #[test]
    fn a_cancel_outweighs_what_it_caused() {
        let failures = vec![
            Error::new(Code::ValidationFailed, "v"),
            Error::new(Code::SshFailed, "s"),
            Error::cancelled(15),
            Error::new(Code::Timeout, "t"),
        ];
        assert_eq!(weightiest(failures).unwrap().code(), Code::Cancelled);
    }

    #[test]
    fn the_first_of_equals_counts() {
        let failures = vec![Error::new(Code::SshFailed, "a"), Error::new(Code::Io, "b")];
        assert_eq!(weightiest(failures).unwrap().message(), "a");
    }
}
