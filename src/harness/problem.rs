//! A problem of an input file: what is wrong, where, and what to do.

use std::fmt;
use std::sync::Arc;

use camino::Utf8PathBuf;

use crate::error::Code;

/// Where a problem is: a file and, when it is known, a region of its text.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file, as the user would name it.
    pub file: Utf8PathBuf,
    /// 1-based line; 0 when the problem concerns the whole file.
    pub line: usize,
    /// 1-based column in characters; 0 when the problem concerns the whole line or file.
    pub column: usize,
    /// Byte range in `text`.
    pub span: std::ops::Range<usize>,
    /// The text of the file, for the excerpt.
    pub text: Option<Arc<str>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}", self.file),
            (line, 0) => write!(f, "{}:{line}", self.file),
            (line, column) => write!(f, "{}:{line}:{column}", self.file),
        }
    }
}

/// Whether a problem stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The run cannot start.
    Error,
    /// The run goes on; the user is told once.
    Warning,
}

/// One problem.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Its stable code.
    pub code: Code,
    /// Whether it stops the run.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Where it is.
    pub place: Option<Box<Place>>,
}

impl Problem {
    /// A problem that stops the run.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), help: None, place: None }
    }

    /// A problem that the user is only told about.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds where it is.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place.map(Box::new);
        self
    }
}

/// All problems of an input.
#[derive(Debug, Clone, Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Whether any problem stops the run.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|p| p.severity == Severity::Error)
    }

    /// The code that stands for the whole.
    pub fn first_code(&self) -> Code {
        self.0.iter().find(|p| p.severity == Severity::Error).or(self.0.first()).map_or(Code::Bug, |p| p.code)
    }

    /// One line for the whole.
    pub fn headline(&self) -> String {
        let errors = self.0.iter().filter(|p| p.severity == Severity::Error).count();
        match (errors, self.0.iter().find(|p| p.severity == Severity::Error)) {
            (1, Some(p)) => p.message.clone(),
            (n, _) => format!("{n} problems were found"),
        }
    }
}
