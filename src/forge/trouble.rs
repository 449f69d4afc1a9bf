//! Why a call of a forge failed.

use std::time::Duration;

use crate::error::{Code, Error};
use crate::http::Failure;
use crate::report::duration;

/// Why there is no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// There was no answer.
    #[error("{0}")]
    Http(#[from] Failure),
    /// The server refuses.
    #[error("the server answers HTTP {status}{said}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// What it says, with a separator, or nothing.
        said: String,
    },
    /// The rate limit is reached.
    #[error("the rate limit of the server is reached for another {}", duration(*.0))]
    Limited(Duration),
    /// The answer is not what the API promises.
    #[error("the answer of the server is not understood: {0}")]
    Answer(String),
    /// The time for the whole call is over.
    #[error("there was no time left to ask")]
    Late,
}

impl Trouble {
    /// Whether the same call may work later.
    pub fn is_transient(&self) -> bool {
        match self {
            Trouble::Http(failure) => failure.is_transient() || matches!(failure, Failure::Deadline(_)),
            Trouble::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Trouble::Limited(_) => true,
            Trouble::Answer(_) | Trouble::Late => false,
        }
    }

    /// Whether what was asked for may have been done all the same.
    pub(super) fn is_open(&self) -> bool {
        self.is_transient() && !matches!(self, Trouble::Limited(_))
    }

    /// Whether the thing asked for does not exist, or may not be seen.
    pub fn is_gone(&self) -> bool {
        matches!(self, Trouble::Status { status: 404 | 410, .. })
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Trouble::Http(Failure::Redirect { .. }) => {
                "the repository may have moved: name it with --status-repo as it is called now"
            }
            Trouble::Http(failure @ (Failure::Trust(_) | Failure::Tls(_))) => failure.help(),
            Trouble::Status { status: 401, .. } => {
                "the token is not valid (any more); give the job a new one"
            }
            Trouble::Status { status: 403 | 404, .. } => {
                "check --status-repo and --status-number, and that the token may write comments there"
            }
            Trouble::Status { status: 400..=499, .. } => "check --status-repo and --status-number",
            Trouble::Limited(_) => {
                "run `fullsend reconcile-status` later, or give the job a token of its own"
            }
            _ => "check the connection and the forge, then run `fullsend reconcile-status`",
        }
    }

    /// The same as an error of ours.
    pub fn error(&self, what: &str) -> Error {
        Error::new(Code::Forge, format!("{what}: {self}")).help(self.help())
    }
}
