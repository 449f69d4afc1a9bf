//! One error type for everything a user can meet.
//!
//! [`Code`] is the closed list of failures; its exit status and family are exhaustive matches, so that a new
//! code does not compile without them. [`Error`] is one occurrence: the code, what happened, what to do next.

use std::fmt;

use crate::harness::problem::{Problem, Problems};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to act on a failure; decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Usage, harness or environment: found before a sandbox is created. Exit 2.
    User,
    /// OpenShell, ssh, disk, or a bug of ours. Exit 3.
    Infrastructure,
    /// The agent failed, was incomplete, or its output did not validate. Exit 1.
    Agent,
    /// A security check stopped the run. Exit 4.
    Blocked,
    /// A pre- or post-script failed. Exit 5.
    Script,
    /// A deadline was reached. Exit 124.
    Deadline,
    /// A signal asked for the end. Exit 128 + signal (see [`Error::exit_code`]).
    Cancelled,
}

macro_rules! codes {
    ($($variant:ident => $text:literal, $family:ident, $doc:literal;)*) => {
        /// Stable identifiers of failures, shown as `FS-…` and explained by `fullsend explain CODE`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $doc] $variant,)* }

        impl Code {
            /// Every code, in the order of the reference page.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable text form, e.g. `FS-YAML-SYNTAX`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// Who has to act.
            pub const fn family(self) -> Family {
                match self { $(Code::$variant => Family::$family,)* }
            }

            /// One line that says what the code stands for.
            pub const fn summary(self) -> &'static str {
                match self { $(Code::$variant => $doc,)* }
            }
        }
    };
}

// One line per code: name, text, family, summary. `docs/reference/errors.md` has a section for each.
codes! {
    Usage => "FS-USAGE", User, "The command line cannot be carried out as given.";
    DirMissing => "FS-DIR-MISSING", User, "No harness directory was found.";
    AgentUnknown => "FS-AGENT-UNKNOWN", User, "The harness directory has no agent of that name.";
    YamlSyntax => "FS-YAML-SYNTAX", User, "A YAML file cannot be parsed.";
    YamlKey => "FS-YAML-KEY", User, "A key is unknown, misplaced or repeated.";
    YamlType => "FS-YAML-TYPE", User, "A value has the wrong type.";
    Required => "FS-REQUIRED", User, "A required key is missing.";
    Value => "FS-VALUE", User, "A value is outside what is allowed.";
    PathEscape => "FS-PATH-ESCAPE", User, "A path leads outside the harness directory.";
    FileMissing => "FS-FILE-MISSING", User, "A file that the harness names does not exist or cannot be read.";
    FileType => "FS-FILE-TYPE", User, "A path names the wrong kind of file.";
    ImageUnpinned => "FS-IMAGE-UNPINNED", User, "The image policy asks for a digest, and the image has none.";
    ImageUnverified => "FS-IMAGE-UNVERIFIED", Blocked, "The image is not signed by whom the image policy accepts.";
    RunUnknown => "FS-RUN-UNKNOWN", User, "There is no run of that name.";
    EnvUnset => "FS-ENV-UNSET", User, "A variable that the harness refers to is not set.";
    EnvFile => "FS-ENV-FILE", User, "An --env-file cannot be read.";
    CredentialEmpty => "FS-CREDENTIAL-EMPTY", User, "A provider credential expands to an empty value.";
    ProviderUnknown => "FS-PROVIDER-UNKNOWN", User, "A provider is defined nowhere.";
    ProfileMissing => "FS-PROFILE-MISSING", User, "A provider has no profile, so OpenShell would drop its credentials.";
    RemoteUrl => "FS-REMOTE-URL", User, "A URL in the harness cannot be used.";
    RemoteDenied => "FS-REMOTE-DENIED", User, "A URL is not among the allowed remote resources.";
    RemoteUnpinned => "FS-REMOTE-UNPINNED", User, "Nothing says what must be behind a URL.";
    RemoteOffline => "FS-REMOTE-OFFLINE", User, "Something is not in the cache, and nothing may be fetched.";
    RemoteHash => "FS-REMOTE-HASH", Blocked, "What is behind a URL is not what was locked.";
    RemoteFetch => "FS-REMOTE-FETCH", Infrastructure, "Something could not be fetched.";
    Lock => "FS-LOCK", User, "The lock file cannot be used.";
    Unsupported => "FS-UNSUPPORTED", User, "The harness asks for something this version does not do.";
    RepoInvalid => "FS-REPO", User, "The target repository is not usable.";
    ToolMissing => "FS-TOOL-MISSING", User, "A program that fullsend needs is not installed.";
    NoAccount => "FS-NO-ACCOUNT", User, "The user of this process has no account, and ssh refuses to work for it.";
    SharedExecutor => "FS-SHELL-EXECUTOR", User, "The CI job shares its user and its machine with other jobs.";
    LocalUnavailable => "FS-LOCAL", User, "The embedded backend cannot work on this machine.";
    OpenshellMissing => "FS-OPENSHELL-MISSING", User, "The openshell executable was not found.";
    OpenshellUnsupported => "FS-OPENSHELL-VERSION", User, "The openshell at hand lacks something fullsend needs.";
    GatewayDown => "FS-GATEWAY", Infrastructure, "No live OpenShell gateway answered.";
    OpenshellCall => "FS-OPENSHELL-CALL", Infrastructure, "A call of the openshell CLI failed.";
    PolicyRefused => "FS-POLICY", Infrastructure, "OpenShell refused the sandbox policy.";
    ImageRefused => "FS-IMAGE", Infrastructure, "OpenShell could not use the sandbox image.";
    ProviderRefused => "FS-PROVIDER", Infrastructure, "OpenShell refused a provider or profile.";
    Busy => "FS-BUSY", Infrastructure, "As many runs of the agent as allowed are at work on the gateway.";
    ApiServer => "FS-API-SERVER", Infrastructure, "A server on the host that the agent is to call does not work.";
    Forge => "FS-FORGE", Infrastructure, "The forge did not take or show a status comment.";
    CreateFailed => "FS-CREATE", Infrastructure, "The sandbox could not be created.";
    NotReady => "FS-NOT-READY", Infrastructure, "The sandbox did not become ready.";
    SshConfig => "FS-SSH-CONFIG", Infrastructure, "The ssh configuration from OpenShell is not acceptable.";
    SshFailed => "FS-SSH", Infrastructure, "The connection to the sandbox failed.";
    TransferFailed => "FS-TRANSFER", Infrastructure, "Files could not be moved to or from the sandbox.";
    BootstrapFailed => "FS-BOOTSTRAP", Infrastructure, "The sandbox could not be prepared.";
    ImageLacks => "FS-IMAGE-LACKS", Infrastructure, "The sandbox image lacks a program that the run needs.";
    SupervisorLost => "FS-SUPERVISOR", Infrastructure, "The process that watches the agent in the sandbox was lost.";
    ImportFailed => "FS-IMPORT", Infrastructure, "The results could not be taken over.";
    GitFailed => "FS-GIT", Infrastructure, "A git command on the host failed.";
    Process => "FS-PROCESS", Infrastructure, "A program could not be run.";
    Io => "FS-IO", Infrastructure, "A file of the run could not be read or written.";
    Bug => "FS-BUG", Infrastructure, "fullsend met a state that should not exist.";
    AgentFailed => "FS-AGENT-FAILED", Agent, "The agent failed.";
    AgentIncomplete => "FS-AGENT-INCOMPLETE", Agent, "The agent ended without a final result.";
    AgentBudget => "FS-AGENT-BUDGET", Agent, "The agent ran over a budget.";
    ValidationFailed => "FS-VALIDATION", Agent, "The output of the agent did not validate.";
    Review => "FS-REVIEW", Agent, "The reviewing agent came to no verdict.";
    ImportBlocked => "FS-IMPORT-BLOCKED", Blocked, "What the sandbox returned was refused.";
    SecretFound => "FS-SECRET-FOUND", Blocked, "A known secret value is in what the sandbox returned.";
    RedactionFailed => "FS-REDACTION", Blocked, "Secrets cannot be kept out of what is shown.";
    ScanBlocked => "FS-SCAN-BLOCKED", Blocked, "What goes into the sandbox holds something critical.";
    HooksFailed => "FS-HOOKS", Blocked, "The tool hooks did not take effect in the sandbox.";
    ToolBlocked => "FS-TOOL-BLOCKED", Blocked, "A hook on the agent's tool calls ended the run.";
    RecordBroken => "FS-RECORD", Blocked, "The record of findings is not what was written.";
    CheckoutChanged => "FS-CHECKOUT-CHANGED", Infrastructure, "The checkout changed while the agent ran.";
    PreScript => "FS-PRE-SCRIPT", Script, "The pre-script failed.";
    PostScript => "FS-POST-SCRIPT", Script, "The post-script failed.";
    Timeout => "FS-TIMEOUT", Deadline, "The deadline of the agent or of the run was reached.";
    Cancelled => "FS-CANCELLED", Cancelled, "The run was cancelled by a signal.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl std::str::FromStr for Code {
    type Err = ();

    fn from_str(s: &str) -> std::result::Result<Self, ()> {
        Code::ALL.iter().copied().find(|c| c.as_str().eq_ignore_ascii_case(s)).ok_or(())
    }
}

/// One occurrence of a failure.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    code: Code,
    message: String,
    help: Option<String>,
    detail: Option<String>,
    problems: Option<Problems>,
    signal: Option<i32>,
}

impl Error {
    /// An error with its one-line message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner {
                code,
                message: message.into(),
                help: None,
                detail: None,
                problems: None,
                signal: None,
            }),
        }
    }

    /// A state that should not exist.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Code::Bug, message)
    }

    /// A failed file operation; `fs_err` errors name the path themselves.
    pub fn io(what: &str, error: &std::io::Error) -> Self {
        let e = Self::new(Code::Io, format!("{what}: {error}"));
        let places = "choose another place: --output-dir for the run directory, TMPDIR for temporary files, \
                      XDG_STATE_HOME for the state";
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                e.help(format!("free disk space there, or {places}"))
            }
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                e.help(format!("let this user read and write there, or {places}"))
            }
            _ => e,
        }
    }

    /// The end of a run by `signal` (its number).
    pub fn cancelled(signal: i32) -> Self {
        let name = match signal {
            1 => "SIGHUP",
            2 => "SIGINT",
            15 => "SIGTERM",
            _ => "a signal",
        };
        let mut e = Self::new(Code::Cancelled, format!("cancelled by {name}"));
        e.inner.signal = Some(signal);
        e
    }

    /// All problems of an input at once; the code of the first one stands for the whole.
    pub fn problems(problems: Problems) -> Self {
        let code = problems.first_code();
        let message = problems.headline();
        let mut e = Self::new(code, message);
        // The advice on the only problem is the advice on the whole.
        e.inner.help = match problems.0.as_slice() {
            [only] => only.help.clone(),
            _ => None,
        };
        e.inner.problems = Some(problems);
        e
    }

    /// This error and another one that was found beside it, as one report.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut all = self.into_problems();
        for other in other.into_problems().0 {
            // Two parts may have missed the same thing; the later one, which looked for it, knows what to do.
            let same = |known: &&mut Problem| {
                let whole = known.place.is_none() && other.place.is_none();
                whole && known.code == other.code && known.message == other.message
            };
            match all.0.iter_mut().find(same) {
                Some(known) => *known = other,
                None => all.0.push(other),
            }
        }
        Self::problems(all)
    }

    fn into_problems(self) -> Problems {
        let help = self.help_text();
        let inner = *self.inner;
        inner.problems.unwrap_or_else(|| Problems(vec![Problem::error(inner.code, inner.message).help(help)]))
    }

    /// Adds what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.inner.help = Some(help.into());
        self
    }

    /// Adds text from elsewhere (the stderr of a child, a log tail); shown indented and sanitised.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let detail = detail.trim();
        if !detail.is_empty() {
            self.inner.detail = Some(detail.to_owned());
        }
        self
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.inner.code
    }

    /// What happened, in one line.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// What to do next: the occurrence's own advice, else the general advice of the code.
    pub fn help_text(&self) -> String {
        self.inner.help.clone().unwrap_or_else(|| format!("`fullsend explain {}` says more", self.inner.code))
    }

    /// Text from elsewhere that explains the failure.
    pub fn detail_text(&self) -> Option<&str> {
        self.inner.detail.as_deref()
    }

    /// The problems of an input, when this error stands for several.
    pub fn problem_list(&self) -> Option<&Problems> {
        self.inner.problems.as_ref()
    }

    /// The exit status of the process (design: 2 user, 3 infrastructure, 1 agent, 4 blocked, 5 scripts, 124
    /// deadline, 128 + signal when cancelled).
    pub fn exit_code(&self) -> u8 {
        match self.inner.code.family() {
            Family::User => 2,
            Family::Infrastructure => 3,
            Family::Agent => 1,
            Family::Blocked => 4,
            Family::Script => 5,
            Family::Deadline => 124,
            Family::Cancelled => {
                128_u8.saturating_add(u8::try_from(self.inner.signal.unwrap_or(15)).unwrap_or(15))
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.inner.code, self.inner.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        // The errors of `fs_err` say themselves what was done to which file.
        match error.to_string() {
            text if text.starts_with("failed to ") => {
                let e = Self::io("", &error);
                Self { inner: Box::new(Inner { message: text, ..*e.inner }) }
            }
            _ => Self::io("file operation failed", &error),
        }
    }
}
