//! One sandbox: its state, becoming ready, its logs, its end.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::argv;
use super::client::{Answer, Openshell, not_run};
use super::dialect::Dialect;
use super::rows::{self, Phase, SandboxState};
use super::text::{Trouble, strip_escapes, trouble};
use crate::error::{Code, Error, Result};
use crate::process::scale;

/// The first and the longest pause between two looks at a sandbox.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Looks in a row that may fail while a sandbox becomes ready; a gateway under restart fails a few.
const FAILED_LOOKS_MAX: usize = 5;
/// How long a deleted sandbox may still be listed before the delete is sent again.
const DELETE_AGAIN: Duration = Duration::from_secs(5);
/// Lines of log that go with a failure.
const LOG_TAIL: usize = 20;

/// Pauses that double from [`FIRST_PAUSE`] to [`LONGEST_PAUSE`].
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// The next pause, cut to what is left until `end`.
    pub(super) fn next(&mut self, end: Instant) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        pause.min(end.saturating_duration_since(Instant::now()))
    }
}

/// What is left until `end`, but never so little that a healthy call cannot answer.
pub(super) fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now()).max(Duration::from_secs(2))
}

/// Whether a failed call says that the sandbox does not exist.
fn is_missing(answer: &Answer) -> bool {
    let text = answer.text.to_ascii_lowercase();
    !matches!(trouble(&text), Some(Trouble::NoGateway | Trouble::UnknownGateway | Trouble::Unauthenticated))
        && (text.contains("requested entity was not found")
            || text.contains("sandbox") && (text.contains("not found") || text.contains("does not exist")))
}

impl Openshell {
    /// What is known about a sandbox; `None` when it does not exist.
    pub async fn state(&self, d: &Dialect, name: &str) -> Result<Option<SandboxState>> {
        let label = "openshell sandbox get";
        let answer =
            self.run(label, argv::sandbox_get(d, name), self.deadlines.read).await.map_err(not_run)?;
        if !answer.success() {
            return if is_missing(&answer) { Ok(None) } else { Err(answer.error(Code::OpenshellCall)) };
        }
        let stdout = &answer.output.stdout;
        let state = if d.facts.get_json {
            rows::state_json(stdout)
        } else {
            rows::state_text(&String::from_utf8_lossy(stdout))
        };
        state.map(Some).map_err(|why| {
            Error::new(Code::OpenshellCall, format!("`{label} {name}` printed something else: {why}"))
        })
    }

    /// Waits until a sandbox is Ready: exit 0 of create does not mean that it is. Most often it is: the first look is at
    /// once.
    ///
    /// # Errors
    /// At once, with the reason and the end of the log, when it reached a phase that waiting does not change or
    /// its configuration was rejected; [`Code::NotReady`] after `limit`.
    pub async fn wait_ready(&self, d: &Dialect, name: &str, limit: Duration) -> Result<()> {
        let limit = scale::limit(limit);
        let end = Instant::now() + limit;
        let mut pauses = Pauses::new();
        let mut failed = 0;
        let mut last = None;
        loop {
            match self.state(d, name).await {
                Ok(None) => {
                    let what = format!("sandbox {name} vanished while it was becoming ready");
                    return Err(Error::new(Code::NotReady, what));
                }
                Ok(Some(state)) if state.phase == Phase::Ready => return Ok(()),
                Ok(Some(state)) if state.rejected || state.phase.is_terminal() => {
                    return Err(self.with_logs(name, not_ready(name, &state)).await);
                }
                Ok(Some(state)) => {
                    failed = 0;
                    last = Some(state);
                }
                Err(error) if failed >= FAILED_LOOKS_MAX => return Err(error),
                Err(_) => failed += 1,
            }
            if Instant::now() >= end {
                let phase = last.as_ref().map_or("unknown".to_owned(), |s| s.phase.to_string());
                let reason = last.and_then(|s| s.reason).map(|r| format!(": {r}")).unwrap_or_default();
                let after = crate::report::duration(limit);
                let what = format!("sandbox {name} was not ready after {after} (phase {phase}{reason})");
                let error = Error::new(Code::NotReady, what).help(
                    "a large image takes long the first time: raise `sandbox_timeout_seconds` or --ready-timeout",
                );
                return Err(self.with_logs(name, error).await);
            }
            sleep(pauses.next(end)).await;
        }
    }

    /// The ssh configuration that OpenShell prints for a sandbox: text from outside, see
    /// [`crate::remote::ssh_config`].
    pub async fn ssh_config(&self, name: &str) -> Result<Vec<u8>> {
        let label = "openshell sandbox ssh-config";
        Ok(self.ok(label, argv::ssh_config(name), self.deadlines.probe).await?.output.stdout)
    }

    /// The last `lines` lines of a sandbox's log, without escape sequences. The content is not trusted.
    pub async fn logs(&self, name: &str, lines: usize) -> Result<String> {
        let answer = self.ok("openshell logs", argv::logs(name, lines), self.deadlines.logs).await?;
        Ok(strip_escapes(&answer.output.stdout_text()))
    }

    /// Deletes a sandbox and confirms that it is gone. A missing one is a success; a conflict is retried.
    ///
    /// # Errors
    /// The last failure when the sandbox is not confirmed to be gone within `deadline`.
    pub async fn delete(&self, d: &Dialect, name: &str, deadline: Duration) -> Result<()> {
        let end = Instant::now() + scale::limit(deadline);
        let mut pauses = Pauses::new();
        let mut failure = None;
        while Instant::now() < end {
            let limit = self.deadlines.delete.min(left(end));
            match self.run("openshell sandbox delete", argv::sandbox_delete(name), limit).await {
                Ok(answer) if answer.success() || is_missing(&answer) => {
                    // From 0.1 on it may only have been accepted.
                    match self
                        .confirm_gone(d, name, end.min(Instant::now() + scale::pause(DELETE_AGAIN)))
                        .await
                    {
                        Ok(()) => return Ok(()),
                        Err(error) => failure = Some(error),
                    }
                }
                Ok(answer) => {
                    let lasting = matches!(
                        trouble(&answer.text),
                        Some(Trouble::NoGateway | Trouble::UnknownGateway | Trouble::Usage)
                    );
                    let error = answer.error(Code::OpenshellCall);
                    if lasting {
                        return Err(delete_help(name, error));
                    }
                    failure = Some(error);
                }
                Err(error) => failure = Some(not_run(error)),
            }
            sleep(pauses.next(end)).await;
        }
        let failure = failure.unwrap_or_else(|| {
            Error::new(Code::OpenshellCall, format!("no time was left to delete sandbox {name}"))
        });
        Err(delete_help(name, failure))
    }

    async fn confirm_gone(&self, d: &Dialect, name: &str, end: Instant) -> Result<()> {
        let mut pauses = Pauses::new();
        loop {
            let failure = match self.state(d, name).await {
                Ok(None) => return Ok(()),
                Ok(Some(state)) => Error::new(
                    Code::OpenshellCall,
                    format!("sandbox {name} was deleted but is still there (phase {})", state.phase),
                ),
                Err(error) => error,
            };
            if Instant::now() >= end {
                return Err(failure);
            }
            sleep(pauses.next(end)).await;
        }
    }

    /// `error` with the end of the sandbox's log, when there is one.
    pub(super) async fn with_logs(&self, name: &str, error: Error) -> Error {
        match self.logs(name, LOG_TAIL).await {
            Ok(log) => error.detail(log),
            Err(_) => error,
        }
    }
}

fn delete_help(name: &str, error: Error) -> Error {
    error.help(format!("delete it by hand when the gateway is back: openshell sandbox delete {name}"))
}

/// The error for a sandbox that will not become ready.
pub(super) fn not_ready(name: &str, state: &SandboxState) -> Error {
    let reason = state.reason.as_deref().unwrap_or("OpenShell gave no reason");
    if state.rejected {
        let code = match reason.to_ascii_lowercase() {
            r if r.contains("provider") || r.contains("profile") => Code::ProviderRefused,
            _ => Code::PolicyRefused,
        };
        return Error::new(code, format!("OpenShell rejected the configuration of sandbox {name}: {reason}"));
    }
    let error = Error::new(Code::NotReady, format!("sandbox {name} is in phase {}: {reason}", state.phase));
    match state.phase {
        Phase::Completed | Phase::Stopped => {
            error.help("its main process ended; use a newer openshell, or look at the log below")
        }
        _ => error.help("the log below, or the log of the gateway's container engine, has the cause"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn old() -> Dialect {
        Dialect::of_version("openshell 0.0.83").unwrap()
    }

    /// An `openshell` that counts its calls of each verb in files of `dir`.
    fn counting(dir: &std::path::Path, body: &str) -> Openshell {
        let count = format!(
            "n=$(cat '{0}/'$2 2>/dev/null || echo 0); n=$((n+1)); echo $n >'{0}/'$2\n{body}",
            dir.display()
        );
        scripted(dir, &count)
    }

    fn calls(dir: &std::path::Path, verb: &str) -> u32 {
        fs_err::read_to_string(dir.join(verb)).map_or(0, |t| t.trim().parse().unwrap())
    }

    #[tokio::test]
    async fn ready_comes_after_some_looks() {
        let dir = tempfile::tempdir().unwrap();
        let body = "[ $n -lt 3 ] && echo '{\"phase\":\"Provisioning\"}' || echo '{\"phase\":\"Ready\"}'";
        let openshell = counting(dir.path(), body);
        openshell.wait_ready(&Dialect::newest(), "x", LONG).await.unwrap();
        assert_eq!(calls(dir.path(), "get"), 3);
        let openshell = scripted(dir.path(), "printf '  Phase: Ready\\n'");
        openshell.wait_ready(&old(), "x", LONG).await.unwrap();
    }

    #[tokio::test]
    async fn a_lasting_phase_ends_the_wait_with_reason_and_log() {
        let dir = tempfile::tempdir().unwrap();
        let body = "case $1 in logs) echo 'last words';; *) echo '{\"phase\":\"Completed\",\"conditions\":[{\"status\":\
                    \"False\",\"reason\":\"MainProcessCompleted\"}]}';; esac";
        let openshell = scripted(dir.path(), body);
        let error = openshell.wait_ready(&Dialect::newest(), "x", LONG).await.unwrap_err();
        assert_eq!(error.code(), Code::NotReady);
        assert!(error.message().contains("MainProcessCompleted"), "{}", error.message());
        assert_eq!(error.detail_text(), Some("last words"));
    }

    #[tokio::test]
    async fn a_rejected_configuration_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let body = "echo '{\"phase\":\"Provisioning\",\"configuration_admission\":{\"state\":\"rejected\",\"error\":\
                    \"policy: bad\"}}'";
        let error = scripted(dir.path(), body).wait_ready(&Dialect::newest(), "x", LONG).await.unwrap_err();
        assert_eq!(error.code(), Code::PolicyRefused);
    }

    #[tokio::test]
    async fn the_limit_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = scripted(dir.path(), "echo '{\"phase\":\"Starting\"}'");
        let limit = Duration::from_millis(100);
        let error = openshell.wait_ready(&Dialect::newest(), "x", limit).await.unwrap_err();
        assert_eq!(error.code(), Code::NotReady);
        assert!(error.message().contains("phase Starting"), "{}", error.message());
    }

    const MISSING: &str = "printf \"Error:   × code: 'Some requested entity was not found', message: \\\"sandbox not\\n  \
                           │ found\\\"\\n\" >&2; exit 1";

    #[tokio::test]
    async fn deleting_a_missing_sandbox_is_a_success() {
        let dir = tempfile::tempdir().unwrap();
        scripted(dir.path(), MISSING).delete(&old(), "x", LONG).await.unwrap();
    }

    #[tokio::test]
    async fn a_conflict_is_retried_and_absence_confirmed() {
        let dir = tempfile::tempdir().unwrap();
        let body = format!(
            "case $2-$n in delete-1) echo 'Error:   × conflict' >&2; exit 1;; delete-*) exit 0;; get-1) echo \
             '{{\"phase\":\"Deleting\"}}';; *) {MISSING};; esac"
        );
        let openshell = counting(dir.path(), &body);
        openshell.delete(&Dialect::newest(), "x", LONG).await.unwrap();
        assert_eq!((calls(dir.path(), "delete"), calls(dir.path(), "get")), (2, 2));
    }

    #[tokio::test]
    async fn a_sandbox_that_stays_is_reported_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = scripted(dir.path(), "echo '{\"phase\":\"Ready\"}'");
        let limit = Duration::from_millis(200);
        let error = openshell.delete(&Dialect::newest(), "fs-x", limit).await.unwrap_err();
        assert!(error.help_text().contains("openshell sandbox delete fs-x"));
        let broken = scripted(dir.path(), "echo 'bash: line 1: jq: not found' >&2; exit 1");
        assert!(broken.delete(&Dialect::newest(), "fs-x", limit).await.is_err());
    }
}
