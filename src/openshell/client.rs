//! Finding `openshell` and calling it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dialect::{BINARY, ENV_PREFIX};
use super::text::normalise;
use crate::error::{Code, Error, Result};
use crate::harness::DENIED;
use crate::process::{self, Command, Failure, Output};

/// What a list may print, in bytes; beyond it the list is refused rather than cut.
const LIST_LIMIT: usize = 16 * 1024 * 1024;

/// Where the `openshell` executable is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// At this path (`--openshell PATH`, `FULLSEND_OPENSHELL=PATH`); a bare name is looked up on PATH.
    Explicit(PathBuf),
    /// In this executable (`--local`, `FULLSEND_OPENSHELL=local`).
    Local,
    /// On PATH.
    Search,
}

/// How long each call may take. A gateway that accepts the connection and never answers hangs the CLI for ever
/// (seen on 0.0.83 to 0.0.112), so no call is without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// `--version` and help texts: no gateway is asked.
    pub probe: Duration,
    /// The first list, which proves a live gateway.
    pub gateway: Duration,
    /// `get`, `list` and other reads.
    pub read: Duration,
    /// `sandbox create`, which waits for the image to be pulled.
    pub create: Duration,
    /// When a create is still running after this time, the sandbox itself is looked at as well.
    pub look_after: Duration,
    /// The pause between two such looks.
    pub look_every: Duration,
    /// One `sandbox delete`.
    pub delete: Duration,
    /// Creating, changing and deleting providers, profiles and settings.
    pub change: Duration,
    /// `logs`.
    pub logs: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(15),
            gateway: Duration::from_secs(15),
            read: Duration::from_secs(20),
            create: Duration::from_secs(330),
            look_after: Duration::from_secs(5),
            look_every: Duration::from_secs(2),
            delete: Duration::from_mins(1),
            change: Duration::from_secs(30),
            logs: Duration::from_secs(15),
        }
    }
}

/// Changes to the inherited environment of a child.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildEnv {
    set: Vec<(OsString, OsString)>,
    remove: Vec<OsString>,
}

impl ChildEnv {
    /// Sets a variable.
    #[must_use]
    pub fn set(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.push((key.into(), value.into()));
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn remove(mut self, key: impl Into<OsString>) -> Self {
        self.remove.push(key.into());
        self
    }

    /// What a child sees of a variable.
    pub(super) fn seen(&self, key: &str) -> Option<OsString> {
        match self.set.iter().rev().find(|(k, _)| k == key) {
            Some((_, value)) => Some(value.clone()),
            None if self.remove.iter().any(|k| k == key) => None,
            None => std::env::var_os(key),
        }
    }

    /// A command with these changes: removals first.
    pub fn apply(&self, mut command: Command) -> Command {
        for key in &self.remove {
            command = command.env_remove(key);
        }
        for (key, value) in &self.set {
            command = command.env(key, value);
        }
        command
    }
}

/// The `openshell` at hand.
#[derive(Debug, Clone)]
pub struct Openshell {
    exe: PathBuf,
    leading: Vec<OsString>,
    local: bool,
    env: ChildEnv,
    /// How long each call may take; change it before use.
    pub deadlines: Deadlines,
}

impl Openshell {
    /// Finds the executable. `gateway` is the name of a registered gateway, `env` is added to every call.
    ///
    /// # Errors
    /// [`Code::OpenshellMissing`].
    pub fn locate(where_: &Where, gateway: Option<&str>, env: Vec<(String, String)>) -> Result<Self> {
        let missing = |what: &str| {
            Error::new(Code::OpenshellMissing, format!("{what} was not found")).help(
                "install OpenShell (https://github.com/NVIDIA/OpenShell), name the executable with --openshell, or \
                 use --local",
            )
        };
        let (exe, leading) = match where_ {
            Where::Local => (process::own_executable()?, vec![OsString::from(BINARY)]),
            Where::Explicit(path) => {
                let exe = process::locate(path, "").map_err(|_| missing(&path.display().to_string()))?;
                (absolute(&exe)?, Vec::new())
            }
            Where::Search => {
                let exe = process::locate(BINARY, "").map_err(|_| missing("openshell"))?;
                (absolute(&exe)?, Vec::new())
            }
        };
        let mut child = ChildEnv::default().set("NO_COLOR", "1");
        for key in DENIED {
            child = child.remove(key);
        }
        if let Some(gateway) = gateway {
            // An endpoint from the environment would win over the name.
            child = child
                .remove(format!("{ENV_PREFIX}GATEWAY_ENDPOINT"))
                .set(format!("{ENV_PREFIX}GATEWAY"), gateway);
        }
        for (key, value) in env {
            child = child.set(key, value);
        }
        Ok(Self { exe, leading, local: *where_ == Where::Local, env: child, deadlines: Deadlines::default() })
    }

    /// The client that [`Openshell::argv`] of another process describes; gateway and environment are
    /// inherited from there.
    pub fn from_argv(argv: &[String]) -> Option<Self> {
        let (exe, leading) = argv.split_first()?;
        Some(Self {
            exe: exe.into(),
            leading: leading.iter().map(OsString::from).collect(),
            local: leading == [BINARY],
            env: ChildEnv::default().set("NO_COLOR", "1"),
            deadlines: Deadlines::default(),
        })
    }

    /// The same program with other changes to the environment.
    pub(super) fn with_env(mut self, env: ChildEnv) -> Self {
        self.env = DENIED.iter().fold(env, |env, key| env.remove(*key));
        self
    }

    /// The program and the arguments before every subcommand, as text for messages and the journal.
    pub fn argv(&self) -> Vec<String> {
        self.program().iter().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    /// Adds a variable to every call.
    #[must_use]
    pub fn with_variable(mut self, key: &str, value: String) -> Self {
        self.env = self.env.set(key, value);
        self
    }

    /// Whether it is the embedded backend.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// The executable.
    pub fn exe(&self) -> &Path {
        &self.exe
    }

    /// The program and the arguments before every subcommand: what a proxy command or a hint for the user
    /// starts with.
    pub fn program(&self) -> Vec<OsString> {
        std::iter::once(self.exe.clone().into_os_string()).chain(self.leading.iter().cloned()).collect()
    }

    /// The environment of every call, for children that call `openshell` themselves (the proxy command of ssh).
    pub fn child_env(&self) -> &ChildEnv {
        &self.env
    }

    /// A call, not yet run.
    pub(super) fn command(&self, label: &str, args: Vec<OsString>, deadline: Duration) -> Command {
        let command = Command::new(label, &self.exe).args(&self.leading).args(args).deadline(deadline);
        self.env.apply(command).keep_stdout(LIST_LIMIT)
    }

    /// Runs a call; any exit status is an answer.
    pub(super) async fn run(
        &self,
        label: &str,
        args: Vec<OsString>,
        deadline: Duration,
    ) -> Result<Answer, Failure> {
        self.run_command(label, self.command(label, args, deadline)).await
    }

    /// Runs a prepared call; any exit status is an answer.
    pub(super) async fn run_command(&self, label: &str, command: Command) -> Result<Answer, Failure> {
        Ok(Answer::of(label, command.output().await?))
    }

    /// Runs a call that must succeed.
    pub(super) async fn ok(&self, label: &str, args: Vec<OsString>, deadline: Duration) -> Result<Answer> {
        let answer = self.run(label, args, deadline).await.map_err(not_run)?;
        if answer.success() { Ok(answer) } else { Err(answer.error(Code::OpenshellCall)) }
    }
}

/// An absolute path: the proxy command of ssh must not depend on a working directory.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io(&format!("cannot resolve {}", path.display()), &e))
}

/// A finished call.
#[derive(Debug)]
pub(super) struct Answer {
    pub label: String,
    pub output: Output,
    /// Standard error, normalised: what patterns are matched on. Standard output where a failed call was silent.
    pub text: String,
}

impl Answer {
    fn of(label: &str, output: Output) -> Self {
        let mut text = normalise(&output.stderr_text());
        if text.is_empty() && !output.status.success() {
            let tail = &output.stdout[output.stdout.len().saturating_sub(8 * 1024)..];
            text = normalise(&String::from_utf8_lossy(tail));
        }
        Self { label: label.to_owned(), output, text }
    }

    pub(super) fn success(&self) -> bool {
        self.output.status.success()
    }

    /// The one-line reason that the CLI gave, cut to a readable length.
    pub(super) fn reason(&self) -> String {
        reason(&self.text)
    }

    /// An error of `code` that shows the reason in its line and the whole text below.
    pub(super) fn error(&self, code: Code) -> Error {
        let reason = self.reason();
        let message = if reason.is_empty() {
            format!("`{}` ended with {}", self.label, self.output.status)
        } else {
            format!("`{}` failed: {reason}", self.label)
        };
        let error = Error::new(code, message);
        if reason == self.text { error } else { error.detail(&self.text) }
    }
}

/// The first `LIMIT` characters of normalised text.
pub(super) fn reason(text: &str) -> String {
    const LIMIT: usize = 300;
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A call that gave no answer.
pub(super) fn not_run(failure: Failure) -> Error {
    let message = failure.to_string();
    match failure {
        Failure::NotFound { .. } => Error::new(Code::OpenshellMissing, message),
        Failure::NotRun { .. } | Failure::NoDirectory { .. } => Error::new(Code::OpenshellCall, message),
        Failure::Deadline { stderr, .. } => Error::new(Code::OpenshellCall, message)
            .help("the gateway accepts connections but does not answer; see its own log")
            .detail(normalise(&stderr)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An `openshell` whose answers are the body of a shell script; `$*` are the arguments. The script is an
    /// argument of the shell: executing a file that was just written fails now and then with `Text file busy`,
    /// when another thread forks meanwhile.
    pub(crate) fn scripted(dir: &Path, body: &str) -> Openshell {
        let path = dir.join("openshell");
        fs_err::write(&path, body).unwrap();
        let env = vec![("EXTRA".into(), "yes".into())];
        let mut openshell = Openshell::locate(&Where::Explicit("/bin/sh".into()), Some("gw1"), env).unwrap();
        openshell.leading = vec![path.into_os_string()];
        openshell
    }

    #[tokio::test]
    async fn children_get_the_gateway_and_no_colour() {
        let dir = tempfile::tempdir().unwrap();
        let body = "echo \"$NO_COLOR $OPENSHELL_GATEWAY $EXTRA ${OPENSHELL_GATEWAY_ENDPOINT-none} \
                    ${ACTIONS_ID_TOKEN_REQUEST_TOKEN-none}\"";
        let openshell = scripted(dir.path(), body);
        let answer = openshell.ok("x", Vec::new(), Duration::from_secs(20)).await.unwrap();
        assert_eq!(answer.output.stdout_text(), "1 gw1 yes none none\n");
        assert!(!openshell.is_local());
        let env = openshell.child_env();
        assert!(DENIED.iter().all(|key| env.remove.iter().any(|removed| removed == key)));
    }

    #[test]
    fn a_missing_executable_says_what_to_do() {
        let error = Openshell::locate(&Where::Explicit("/nonexistent/openshell".into()), None, Vec::new());
        let error = error.unwrap_err();
        assert_eq!(error.code(), Code::OpenshellMissing);
        assert!(error.message().contains("/nonexistent/openshell"));
        assert!(error.help_text().contains("--local"));
    }

    #[test]
    fn the_embedded_backend_is_this_program() {
        let openshell = Openshell::locate(&Where::Local, None, Vec::new()).unwrap();
        assert!(openshell.is_local());
        assert_eq!(openshell.program()[1..], ["openshell"]);
    }

    #[tokio::test]
    async fn a_call_that_never_returns_names_itself() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = scripted(dir.path(), "sleep 600");
        let error = openshell.ok("openshell logs", Vec::new(), Duration::from_millis(200)).await.unwrap_err();
        assert_eq!(error.code(), Code::OpenshellCall);
        assert!(error.message().contains("openshell logs"), "{}", error.message());
    }
}
