//! Failures in the words and the shape of the reference CLI: `Error:   × …` on standard error, status 1.

use std::fmt::{self, Write as _};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

/// The width at which the reference CLI wraps its reports.
const WIDTH: usize = 80;

/// A gRPC status as the reference CLI prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rpc {
    NotFound,
    AlreadyExists,
    InvalidArgument,
    FailedPrecondition,
    Aborted,
}

impl Rpc {
    /// The text that stands between `code: '` and `'`.
    const fn text(self) -> &'static str {
        match self {
            Rpc::NotFound => "Some requested entity was not found",
            Rpc::AlreadyExists => "Some entity that we attempted to create already exists",
            Rpc::InvalidArgument => "Client specified an invalid argument",
            Rpc::FailedPrecondition => "The system is not in a state required for the operation's execution",
            Rpc::Aborted => "The operation was aborted",
        }
    }
}

/// A failed call.
#[derive(Debug)]
pub(super) struct Fail {
    message: String,
    cause: Option<Box<Fail>>,
    hint: Option<String>,
}

/// What the calls of this module return.
pub(super) type Outcome<T = ()> = Result<T, Fail>;

impl Fail {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: None, hint: None }
    }

    pub(super) fn rpc(code: Rpc, message: impl fmt::Display) -> Self {
        Self::new(format!("code: '{}', message: \"{message}\"", code.text()))
    }

    #[must_use]
    pub(super) fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(Box::new(Self::new(cause.to_string())));
        self
    }

    /// A line below the report.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The report as it goes to standard error.
    pub(super) fn render(&self) -> String {
        let mut text = String::from("Error: ");
        let theme = GraphicalTheme::unicode_nocolor();
        let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
        if handler.render_report(&mut text, self).is_err() {
            let _ = writeln!(text, "  × {}", self.message);
        }
        if let Some(hint) = &self.hint {
            let _ = write!(text, "\n{hint}\n");
        }
        text
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fail {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|c| c as _)
    }
}

impl Diagnostic for Fail {}

impl From<std::io::Error> for Fail {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<rustix::io::Errno> for Fail {
    fn from(error: rustix::io::Errno) -> Self {
        std::io::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_wrapped_like_the_reference() {
        let fail = Fail::rpc(Rpc::AlreadyExists, "provider already exists");
        assert_eq!(
            fail.render(),
            "Error:   × code: 'Some entity that we attempted to create already exists', message:\n  │ \
             \"provider already exists\"\n"
        );
    }

    #[test]
    fn a_cause_and_a_hint_follow() {
        let text = Fail::new("failed to parse").cause("unknown field `x`").hint("hint: y").render();
        assert_eq!(text, "Error:   × failed to parse\n  ╰─▶ unknown field `x`\n\nhint: y\n");
    }
}
