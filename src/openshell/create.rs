//! Creating a sandbox, and what a failure means.

use tokio::time::sleep;

use super::argv;
use super::client::{Answer, Openshell, not_run};
use super::dialect::Dialect;
use super::gateway::gateway_error;
use super::rows::Phase;
use super::sandbox::not_ready;
use super::spec::CreateSpec;
use super::text::{Trouble, has_any, trouble};
use crate::error::{Code, Error};
use crate::process::Failure;

/// Looks in a row that must agree before a create that does not return is given up.
const LOOKS_AGREE: usize = 3;

/// Why there is no sandbox. Except for refused arguments a record of it may exist; the caller deletes it.
#[derive(Debug)]
pub enum CreateError {
    /// A repetition would fail the same way: policy, image, provider, name.
    Permanent(Error),
    /// The transport or the capacity; a repetition under a fresh name may work.
    Retry(Error),
}

impl CreateError {
    /// The error, when nothing is tried again.
    pub fn into_error(self) -> Error {
        match self {
            Self::Permanent(error) | Self::Retry(error) => error,
        }
    }
}

/// Texts that name a permanent cause, lower case, in the order in which they are tried: an image that cannot be
/// pulled says `connection refused` too.
const CAUSES: &[(Code, &[&str], &str)] = &[
    (
        Code::PolicyRefused,
        &[
            "failed to parse sandbox policy",
            "failed to read sandbox policy",
            "policy contains unsafe content",
            "run_as_user must be",
            "run_as_group must be",
            "invalid policy",
            "policy validation",
        ],
        "correct the policy file of the harness; OpenShell's policy reference has the rules",
    ),
    (
        Code::ImageRefused,
        &[
            "imagepullfailed",
            "image_pull_policy",
            "failed to pull",
            "pull access denied",
            "manifest unknown",
            "--from path does not exist",
            "'--from' no longer builds",
            "invalid reference format",
            "was not found in the image",
            "oci user",
        ],
        "check the image reference and that the gateway can pull it: it needs bash, tar, and a user `sandbox`",
    ),
    (
        Code::ProviderRefused,
        &[
            "is not a recognized provider type",
            "no provider profile named",
            "skipping provider",
            "provider not found",
            "provider profile",
        ],
        "create the provider on the gateway, or define it in `providers/` of the harness directory",
    ),
    (
        Code::CreateFailed,
        &["name exceeds maximum length", "name must contain only", "invalid sandbox name"],
        "the gateway has another rule for names than fullsend knows; please report it",
    ),
    (
        Code::CreateFailed,
        &["no space left on device"],
        "free disk space where sandboxes are kept: on the gateway's machine, with --local in XDG_STATE_HOME",
    ),
    (
        Code::CreateFailed,
        &["containerexited", "entered error phase"],
        "the container ended at once: the image may lack bash, `ip` (iproute2) or the user `sandbox`",
    ),
    (
        Code::NotReady,
        &["provisioning timed out"],
        "a large image takes long the first time: raise `sandbox_timeout_seconds` or OPENSHELL_PROVISION_TIMEOUT",
    ),
];

/// What a failed create means. `text` is normalised.
fn classify(answer: &Answer) -> CreateError {
    let text = answer.text.to_ascii_lowercase();
    if let Some((code, _, help)) = CAUSES.iter().find(|(_, patterns, _)| has_any(&text, patterns)) {
        return CreateError::Permanent(answer.error(*code).help(*help));
    }
    if text.contains("provider '") && text.contains("not found") {
        return CreateError::Permanent(answer.error(Code::ProviderRefused));
    }
    match trouble(&text) {
        Some(Trouble::NoGateway | Trouble::UnknownGateway | Trouble::Unauthenticated) => {
            CreateError::Permanent(gateway_error(&answer.text, answer.reason()))
        }
        Some(Trouble::Unreachable) => CreateError::Retry(gateway_error(&answer.text, answer.reason())),
        // The name is random: it exists because an earlier attempt of ours left a record behind.
        Some(Trouble::Exhausted | Trouble::Conflict | Trouble::AlreadyExists) => {
            CreateError::Retry(answer.error(Code::CreateFailed))
        }
        Some(Trouble::Usage) => CreateError::Permanent(
            answer
                .error(Code::OpenshellUnsupported)
                .help("this openshell speaks another dialect; update one of the two"),
        ),
        _ => CreateError::Permanent(answer.error(Code::CreateFailed)),
    }
}

impl Openshell {
    /// Creates a sandbox. Success does not mean that it is Ready: see [`Openshell::wait_ready`].
    ///
    /// A create that does not return although the sandbox is Ready ends as a success, one whose configuration
    /// the gateway rejected ends at once.
    pub async fn create(&self, d: &Dialect, spec: &CreateSpec) -> Result<(), CreateError> {
        let label = "openshell sandbox create";
        let call = self.run(label, argv::create(d, spec), self.deadlines.create);
        let outcome = tokio::select! {
            outcome = call => outcome,
            seen = self.look_beside(d, &spec.name) => return seen,
        };
        match outcome {
            Ok(answer) if answer.success() => {
                // 0.1.x skips a provider that it cannot find, with status 0, when a profile has its name.
                if answer.text.to_ascii_lowercase().contains("skipping provider") {
                    return Err(classify(&answer));
                }
                Ok(())
            }
            Ok(answer) => match classify(&answer) {
                // Why a container ended is only in its log.
                CreateError::Permanent(error) if error.code() == Code::CreateFailed => {
                    Err(CreateError::Permanent(self.with_logs(&spec.name, error).await))
                }
                error => Err(error),
            },
            Err(failure @ Failure::Deadline { .. }) => {
                let message = failure.to_string();
                Err(CreateError::Permanent(
                    self.with_logs(&spec.name, Error::new(Code::NotReady, message)).await,
                ))
            }
            Err(failure) => Err(CreateError::Permanent(not_run(failure))),
        }
    }

    /// Looks at the sandbox while a create takes long; returns only with a verdict.
    async fn look_beside(&self, d: &Dialect, name: &str) -> Result<(), CreateError> {
        sleep(self.deadlines.look_after).await;
        let (mut ready, mut ended) = (0, 0);
        loop {
            if let Ok(Some(state)) = self.state(d, name).await {
                ready = if state.phase == Phase::Ready { ready + 1 } else { 0 };
                // The CLI sees the end of a sandbox too, and says more about it: it goes first.
                ended = if state.phase.is_terminal() { ended + 1 } else { 0 };
                if ready >= LOOKS_AGREE {
                    tracing::warn!(name, "create did not return although the sandbox is Ready");
                    return Ok(());
                }
                if state.rejected || ended >= LOOKS_AGREE {
                    let error = self.with_logs(name, not_ready(name, &state)).await;
                    return Err(CreateError::Permanent(error));
                }
            }
            sleep(self.deadlines.look_every).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;
    use std::time::Duration;

    async fn outcome(stderr: &str, status: i32) -> Result<(), CreateError> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("stderr"), stderr).unwrap();
        let body = format!("cat '{}/stderr' >&2; exit {status}", dir.path().display());
        let spec = CreateSpec { name: "fs-x".into(), ..CreateSpec::default() };
        scripted(dir.path(), &body).create(&Dialect::newest(), &spec).await
    }

    #[tokio::test]
    async fn permanent_causes_are_never_retried() {
        let cases = [
            (
                "Error:   × failed to parse sandbox policy YAML\n  ╰─▶ unknown field `bogus_field`, expected one of\n      \
                 `version`, at line 2 column 1",
                Code::PolicyRefused,
            ),
            (
                "Error:   × code: 'Client specified an invalid argument', message: \"policy\n  │ contains unsafe content: \
                 read-write path is overly broad: /\"",
                Code::PolicyRefused,
            ),
            (
                "Error:   × sandbox entered error phase while provisioning: ImagePullFailed:\n  │ pull Docker image failed: \
                 Docker responded with status code 500: Get \"http://\n  │ localhost/v2/\": dial tcp 127.0.0.1:80: \
                 connect: connection refused",
                Code::ImageRefused,
            ),
            ("Error:   × local --from path does not exist: ./nosuchdir", Code::ImageRefused),
            (
                "Error:   × provider 'nope' not found and 'nope' is not a recognized provider\n  │ type. Create it first with \
                 `openshell provider create --type <type> --name\n  │ nope`",
                Code::ProviderRefused,
            ),
            (
                "Error:   × code: 'Client specified an invalid argument', message: \"name exceeds\n  │ maximum length (20 > \
                 19)\"",
                Code::CreateFailed,
            ),
            (
                "Error:   × sandbox entered error phase while provisioning: ContainerExited:\n  │ Container exited",
                Code::CreateFailed,
            ),
            ("Error:   × sandbox provisioning timed out after 300s", Code::NotReady),
            ("Error:   × No active gateway.", Code::GatewayDown),
            ("error: unexpected argument '--detach' found", Code::OpenshellUnsupported),
            ("something new", Code::CreateFailed),
        ];
        for (stderr, code) in cases {
            match outcome(stderr, 1).await {
                Err(CreateError::Permanent(error)) => assert_eq!(error.code(), code, "{stderr}"),
                other => panic!("{stderr}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn transport_and_capacity_are_retried() {
        let cases = [
            (
                "Error:   × failed to connect to gateway 'local' at http://127.0.0.1:18080.\n  ├─▶ transport error\n  ╰─▶ \
                 Connection refused (os error 111)",
                Code::GatewayDown,
            ),
            ("Error:   × code: 'The service is currently unavailable', message: \"x\"", Code::GatewayDown),
            ("Error:   × code: 'Some resource has been exhausted', message: \"x\"", Code::CreateFailed),
            (
                "Error:   × sandbox 'fs-x' already exists\n\nhint: delete it first with: openshell sandbox delete <name>",
                Code::CreateFailed,
            ),
        ];
        for (stderr, code) in cases {
            match outcome(stderr, 1).await {
                Err(CreateError::Retry(error)) => assert_eq!(error.code(), code, "{stderr}"),
                other => panic!("{stderr}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_skipped_provider_is_a_failure_despite_status_0() {
        assert!(outcome("", 0).await.is_ok());
        match outcome("\u{1b}[33m!\u{1b}[0m Skipping provider 'gh' (--no-auto-providers)", 0).await {
            Err(CreateError::Permanent(error)) => assert_eq!(error.code(), Code::ProviderRefused),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_create_that_never_returns_is_a_success_once_ready() {
        let dir = tempfile::tempdir().unwrap();
        let mut openshell = scripted(
            dir.path(),
            "case $2 in create) exec sleep 600;; *) echo '{\"phase\":\"Ready\"}';; esac",
        );
        openshell.deadlines.look_after = Duration::from_millis(20);
        openshell.deadlines.look_every = Duration::from_millis(5);
        let spec = CreateSpec { name: "fs-x".into(), ..CreateSpec::default() };
        openshell.create(&Dialect::newest(), &spec).await.unwrap();
    }
}
