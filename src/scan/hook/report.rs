//! What hooks noted, read on the host. The agent could have written all of it: it is counted, cut and cleaned, and
//! never followed.

use serde_json::Value;

use super::super::chain::Action;
use super::super::{Finding, Hit, Scanner, Severity};
use crate::report::{Ci, sanitize};

/// The most findings that are taken over.
const MOST: usize = 1000;

/// Rules that hooks can break; a name that is not among them is not taken over.
const RULES: &[&str] = &[
    "token-in-call",
    "tool-not-named",
    "unreadable-call",
    "known-value",
    "token-shape",
    "token-in-result",
    "hidden-text",
    "metadata",
    "loopback",
    "link-local",
    "private",
    "reserved",
    "name-with-address",
    "inside-name",
    "scheme",
    "override-instructions",
    "system-prompt",
    "no-restrictions",
    "send-credentials",
    "read-credentials",
    "encode-credentials",
    "conceal",
    "new-instructions",
    "role-change",
    "dump-environment",
    "run-what-was-fetched",
];

/// What hooks did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// How often one ran before a call.
    pub(crate) before: u64,
    /// How often one ran after a call.
    pub(crate) after: u64,
    /// How many calls were denied.
    pub(crate) denied: u64,
    /// What they found.
    pub(crate) findings: Vec<(Finding, Action)>,
}

/// Reads the notes. Lines that make no sense are passed over.
pub(crate) fn read(text: &[u8]) -> Report {
    let mut report = Report::default();
    for line in text.split(|b| *b == b'\n') {
        let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
        match value["ran"].as_str() {
            Some("PreToolUse") => report.before += 1,
            Some("PostToolUse" | "PostToolUseFailure") => report.after += 1,
            _ => {}
        }
        if value["found"].is_string()
            && let Some((finding, action)) = finding(&value)
        {
            report.denied += u64::from(action == Action::Denied);
            if report.findings.len() < MOST {
                report.findings.push((finding, action));
            }
        }
    }
    report
}

fn finding(value: &Value) -> Option<(Finding, Action)> {
    let text = |key: &str| {
        let text = sanitize::line(value[key].as_str().unwrap_or_default(), Ci::None);
        sanitize::truncate(&text, 200).into_owned()
    };
    let named = value["rule"].as_str()?;
    let rule = RULES.iter().find(|rule| **rule == named)?;
    let scanner: Scanner = serde_json::from_value(value["scanner"].clone()).ok()?;
    let severity: Severity = serde_json::from_value(value["severity"].clone()).ok()?;
    let action: Action = serde_json::from_value(value["action"].clone()).ok()?;
    let hit = Hit { scanner, rule, severity, line: 0, message: text("message"), excerpt: text("excerpt") };
    Some((Finding { file: format!("tool:{}", text("tool")), hit }, action))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn notes_are_counted_and_cleaned() {
        let notes = concat!(
            r#"{"ran":"PreToolUse","tool":"Bash"}"#,
            "\n",
            r#"{"found":"PreToolUse","tool":"Ba\u001b[31msh","scanner":"ssrf","rule":"metadata","severity":"high","message":"m\n::error::x","excerpt":"e","action":"denied"}"#,
            "\n",
            r#"{"found":"PreToolUse","tool":"Bash","scanner":"ssrf","rule":"made-up","severity":"high","message":"m","excerpt":"e","action":"denied"}"#,
            "\n",
            "not json\n",
            r#"{"ran":"PostToolUse"}"#,
            "\n",
            r#"{"ran":7,"found":[]}"#,
        );
        let report = read(notes.as_bytes());
        assert_eq!((report.before, report.after, report.denied), (1, 1, 1));
        assert_eq!(report.findings.len(), 1);
        assert_eq!(report.findings[0].0.file, "tool:Bash");
        assert!(!report.findings[0].0.hit.message.contains('\n'));
    }

    proptest! {
        #[test]
        fn any_notes_can_be_read(bytes in any::<Vec<u8>>()) {
            let _ = read(&bytes);
        }
    }
}
