//! Scanners of what goes into the sandbox, and of what an agent's tools ask and answer.
//!
//! A scanner is a pure function from text to [`Hit`]s. [`Scanners`] says which of them are on; `sweep` gives
//! them the files of a run; [`hook`] gives them the tool calls inside the sandbox; `chain` keeps what they found.

pub(crate) mod allow;
pub(crate) mod chain;
pub(crate) mod context;
pub(crate) mod elf;
pub(crate) mod fold;
pub mod hook;
mod html;
mod injection;
pub(crate) mod payload;
mod place;
pub(crate) mod ssrf;
pub(crate) mod sweep;
mod targets;
pub(crate) mod tokens;
pub(crate) mod unicode;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use place::Place;

use crate::report::hex;

/// How bad a hit is. Only [`Severity::Critical`] stops a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a line in the record.
    Low,
    /// Unusual.
    Medium,
    /// Most likely meant to deceive, but with innocent uses.
    High,
    /// Has no innocent use in a place like this.
    Critical,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// Which scanner found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scanner {
    /// Characters that do not show or that reorder text.
    Unicode,
    /// Phrases that give an agent other orders.
    Injection,
    /// Text that a rendered page hides.
    Html,
    /// Addresses that only somebody inside may reach.
    Ssrf,
    /// Shapes of credentials.
    Secret,
    /// The planted token.
    Canary,
    /// Tools that the agent's definition does not name.
    ToolAllowlist,
    /// The scanning itself: a file that could not be read, a hook that did not run.
    Scan,
}

impl Scanner {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scanner::Unicode => "unicode",
            Scanner::Injection => "injection",
            Scanner::Html => "html",
            Scanner::Ssrf => "ssrf",
            Scanner::Secret => "secret",
            Scanner::Canary => "canary",
            Scanner::ToolAllowlist => "tool_allowlist",
            Scanner::Scan => "scan",
        }
    }
}

/// Something found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Who found it.
    pub scanner: Scanner,
    /// The rule, a stable name in kebab case.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// 1-based line; 0 when it concerns the whole.
    pub line: usize,
    /// What it is, in one line.
    pub message: String,
    /// The line it stands in, fit to be shown.
    pub excerpt: String,
}

/// A hit and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, or a name for what is no file, such as `EVENT_PAYLOAD#issue.body`.
    pub file: String,
    /// What was found.
    pub hit: Hit,
}

impl Finding {
    /// Twelve hexadecimal digits that stand for this rule on this text, wherever it is; for the allow-file.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.hit.scanner.as_str(), self.hit.rule, &self.hit.message, &self.hit.excerpt] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hex(&hash.finalize()[..6])
    }

    /// `scanner/rule`.
    pub fn rule(&self) -> String {
        format!("{}/{}", self.hit.scanner.as_str(), self.hit.rule)
    }

    /// `file:line`, or the file alone.
    pub fn place(&self) -> String {
        match self.hit.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }
}

/// Which scanners are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "one switch per scanner, as the harness has them")]
pub struct Scanners {
    /// `unicode_normalizer`
    pub unicode: bool,
    /// `context_injection`: phrases and hidden HTML.
    pub injection: bool,
    /// `ssrf_validator`
    pub ssrf: bool,
    /// `secret_redactor`
    pub secrets: bool,
}

impl Default for Scanners {
    fn default() -> Self {
        Self { unicode: true, injection: true, ssrf: true, secrets: true }
    }
}

/// An expression over ASCII classes; what is not ASCII are bytes to it. Compiled at each start of a hook, so that size
/// counts.
fn expression(text: &str) -> Option<regex::bytes::Regex> {
    regex::bytes::RegexBuilder::new(text).unicode(false).build().ok()
}

/// The matched text of a group.
fn group<'t>(
    found: &regex::bytes::Captures<'t>,
    number: usize,
) -> Option<(usize, std::borrow::Cow<'t, str>)> {
    let found = found.get(number)?;
    Some((found.start(), String::from_utf8_lossy(found.as_bytes())))
}

/// The most hits that are kept of one text; a hostile one could make any number.
const HITS: usize = 200;

/// Scans one text. Takes time linear in its length.
pub fn scan(text: &str, on: Scanners) -> Vec<Hit> {
    let place = Place::new(text);
    let mut hits = Vec::new();
    if on.unicode {
        hits.extend(unicode::scan(text, &place));
    }
    if on.injection {
        hits.extend(injection::scan(text, &place));
        hits.extend(html::scan(text, &place));
    }
    if on.ssrf {
        hits.extend(targets::scan(text, &place));
    }
    if on.secrets {
        hits.extend(tokens::scan(text, &place));
    }
    hits.sort_by_key(|hit| (hit.line, std::cmp::Reverse(hit.severity), hit.scanner, hit.rule));
    hits.dedup_by(|a, b| (a.line, a.scanner, a.rule, &a.message) == (b.line, b.scanner, b.rule, &b.message));
    if hits.len() > HITS {
        // The worst stay.
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.severity));
        hits.truncate(HITS);
        hits.sort_by_key(|hit| hit.line);
    }
    hits
}

#[cfg(test)]
mod tests;
