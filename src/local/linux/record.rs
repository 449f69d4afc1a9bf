//! What is remembered of a sandbox, and its phase.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fail::{Fail, Outcome, Rpc};
use super::identity::Identity;
use super::procs::Proc;
use super::state::{self, State};

/// The longest name that a gateway can route (OpenShell 0.0.88 and later).
const MAX_NAME: usize = 19;

/// The file `sandbox.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) name: String,
    /// Seconds since the epoch.
    pub(super) created: i64,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) providers: Vec<String>,
    /// Whether the sandbox shares the host's network.
    pub(super) network: bool,
    pub(super) policy: Value,
    pub(super) identity: Identity,
    /// The environment of every command, credentials included.
    pub(super) env: Vec<(String, String)>,
    /// The `create` call, until it has handed over.
    pub(super) creator: Option<Proc>,
    /// The bubblewrap process on the host; it ends with the main process.
    pub(super) monitor: Option<Proc>,
    /// The first process of the pid namespace.
    pub(super) init: Option<Proc>,
    /// Whether the main process was let go.
    pub(super) started: bool,
}

/// The states of a sandbox that occur here, in the reference's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Provisioning,
    Ready,
    Completed,
    Error,
}

impl Phase {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Phase::Provisioning => "Provisioning",
            Phase::Ready => "Ready",
            Phase::Completed => "Completed",
            Phase::Error => "Error",
        }
    }
}

/// A phase, why, and how the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) phase: Phase,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
    pub(super) exit_code: Option<i32>,
}

impl Record {
    /// Where the file is.
    pub(super) fn path(state: &State, name: &str) -> PathBuf {
        state.sandbox(name).join("sandbox.json")
    }

    /// The sandbox of that name.
    pub(super) fn find(state: &State, name: &str) -> Outcome<Option<Self>> {
        state::read(&Self::path(state, name))
    }

    /// The sandbox of that name, or the reference's words for its absence.
    pub(super) fn get(state: &State, name: &str) -> Outcome<Self> {
        Self::find(state, name)?.ok_or_else(|| Fail::rpc(Rpc::NotFound, "sandbox not found"))
    }

    /// All sandboxes, by name.
    pub(super) fn all(state: &State) -> Outcome<Vec<Self>> {
        let mut names: Vec<_> = fs_err::read_dir(state.sandboxes())?
            .filter_map(|entry| Some(entry.ok()?.path()))
            // Those with a dot are being removed.
            .filter(|dir| !dir.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b".")))
            .map(|dir| dir.join("sandbox.json"))
            .collect();
        names.sort();
        let mut found = Vec::new();
        for path in names {
            found.extend(state::read(&path)?);
        }
        Ok(found)
    }

    /// Writes the file.
    pub(super) fn save(&self, state: &State) -> Outcome {
        state::write(&Self::path(state, &self.name), self)
    }

    /// The present condition, from the processes and bubblewrap's own report of the main process.
    pub(super) fn condition(&self, state: &State) -> Condition {
        let alive = |p: Option<Proc>| p.is_some_and(Proc::alive);
        if self.started && alive(self.init) && alive(self.monitor) {
            return Condition { phase: Phase::Ready, reason: "Ready", message: "", exit_code: None };
        }
        if !self.started && alive(self.creator) {
            return Condition {
                phase: Phase::Provisioning,
                reason: "Starting",
                message: "the sandbox is being created",
                exit_code: None,
            };
        }
        let report = fs_err::read_to_string(state.sandbox(&self.name).join("status")).unwrap_or_default();
        ended(exit_code(&report).filter(|_| self.started))
    }
}

/// The condition after the main process has gone.
fn ended(exit_code: Option<i32>) -> Condition {
    let (phase, reason, message) = match exit_code {
        Some(0) => (Phase::Completed, "MainProcessCompleted", "Main process completed"),
        Some(_) => (Phase::Error, "MainProcessFailed", "Main process failed"),
        None => (Phase::Error, "ContainerExited", "Container exited"),
    };
    Condition { phase, reason, message, exit_code }
}

/// The exit status in what `bwrap --json-status-fd` wrote: one JSON object a line.
fn exit_code(report: &str) -> Option<i32> {
    report
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|v| v.get("exit-code")?.as_i64())
        .and_then(|code| i32::try_from(code).ok())
}

/// The rules for a sandbox name (OpenShell 0.0.88 and later).
pub(super) fn check_name(name: &str) -> Outcome {
    let refuse = |text: String| Err(Fail::rpc(Rpc::InvalidArgument, text));
    if name.len() > MAX_NAME {
        return refuse(format!("name exceeds maximum length ({} > {MAX_NAME})", name.len()));
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return refuse("name must contain only lowercase alphanumeric characters or hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        return refuse("name must start and end with a lowercase alphanumeric character".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules() {
        for good in ["a", "fs-hello-0123456789", "0"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "é", "a/b", "..", "a.b", "fs-hello-01234567890"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_end_of_the_main_process_is_read_from_the_report() {
        assert_eq!(exit_code("{ \"child-pid\": 7 }\n{ \"exit-code\": 3 }\n"), Some(3));
        assert_eq!(exit_code("{ \"child-pid\": 7 }\n{ \"exi"), None);
        assert_eq!(ended(Some(0)).phase, Phase::Completed);
        assert_eq!(ended(Some(3)).reason, "MainProcessFailed");
        assert_eq!((ended(None).phase, ended(None).reason), (Phase::Error, "ContainerExited"));
    }
}
