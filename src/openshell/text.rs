//! What the CLI's human texts mean.
//!
//! There are only three exit statuses, so kinds of failure can be told apart by text alone; and the text is
//! wrapped at 80 columns with drawn borders, anywhere between words and after `/` and `-`. Patterns are
//! therefore matched on a normalised form.

/// Text on one line: escape sequences and drawn characters removed, white space collapsed, and words that were
/// wrapped after `/` or `-` joined again.
pub fn normalise(text: &str) -> String {
    let plain = strip_escapes(text);
    let mut out = String::with_capacity(plain.len());
    for line in plain.lines() {
        let line = border(line);
        let mut words = line.split_whitespace().peekable();
        if words.peek().is_none() {
            continue;
        }
        // A line that ends in `/` or in `x-` was broken inside a word.
        let broken = out.ends_with('/') || out.ends_with('-') && ends_in_hyphenated_word(&out);
        if !out.is_empty() && !broken {
            out.push(' ');
        }
        for (i, word) in words.enumerate() {
            if i > 0 {
                out.push(' ');
            }
            out.push_str(word);
        }
    }
    out
}

/// Removes CSI, OSC and two-character escape sequences, and other control characters but newline and tab.
pub fn strip_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {},
                Some(']') => {
                    while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}')).is_some() {}
                    // The terminator is BEL, or ESC and a backslash.
                    if chars.next() == Some('\u{1b}') {
                        chars.next_if_eq(&'\\');
                    }
                    continue;
                }
                _ => continue,
            },
            '\n' | '\t' => {
                out.push(c);
                continue;
            }
            c if c.is_control() => continue,
            c => {
                out.push(c);
                continue;
            }
        }
        // The final character of a CSI sequence.
        chars.next();
    }
    out
}

fn border(line: &str) -> String {
    let drawn = |c: char| ('\u{2500}'..='\u{257f}').contains(&c) || matches!(c, '▶' | '×');
    let line: String = line.chars().map(|c| if drawn(c) { ' ' } else { c }).collect();
    // The reporter draws with ASCII where the locale is not UTF-8: `x`, `|`, `|->`, and a back-quoted arrow.
    let mut rest = line.trim();
    rest = rest.strip_prefix("Error:").unwrap_or(rest).trim_start();
    for mark in ["|-> ", "`-> ", "| ", "x "] {
        if let Some(tail) = rest.strip_prefix(mark) {
            rest = tail.trim_start();
            break;
        }
    }
    rest.to_owned()
}

fn ends_in_hyphenated_word(out: &str) -> bool {
    out.trim_end_matches('-').ends_with(|c: char| c.is_alphanumeric()) && !out.ends_with("--")
}

/// What a failed call ran into, whatever the call was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No gateway is registered or chosen.
    NoGateway,
    /// The chosen gateway has no registration.
    UnknownGateway,
    /// The gateway refused the connection or could not be reached.
    Unreachable,
    /// The gateway wants other credentials.
    Unauthenticated,
    /// The thing does not exist.
    NotFound,
    /// The thing exists already.
    AlreadyExists,
    /// Somebody else changed the thing meanwhile; a repetition may work.
    Conflict,
    /// The gateway is out of something.
    Exhausted,
    /// The thing is in use, or not in a state for this call.
    Precondition,
    /// The command line itself was not understood.
    Usage,
}

/// The texts that stand for each trouble, lower case, in the order in which they are tried.
const TROUBLES: &[(Trouble, &[&str])] = &[
    (Trouble::NoGateway, &["no active gateway", "no gateway configured"]),
    (Trouble::UnknownGateway, &["unknown gateway"]),
    (
        Trouble::Unauthenticated,
        &["the request does not have valid authentication", "the caller does not have permission"],
    ),
    (
        Trouble::Conflict,
        &[
            "modified concurrently",
            "operation was aborted",
            "resource_version",
            "conflict",
            "database is locked",
        ],
    ),
    (Trouble::AlreadyExists, &["already exists", "that we attempted to create already exists"]),
    (Trouble::NotFound, &["requested entity was not found", "not found", "does not exist"]),
    (Trouble::Exhausted, &["some resource has been exhausted", "too many requests"]),
    (
        Trouble::Precondition,
        &["not in a state required for the operation", "is not ready", "is attached to sandbox"],
    ),
    (
        Trouble::Unreachable,
        &[
            "failed to connect to gateway",
            "transport error",
            "tcp connect error",
            "connection refused",
            "connection reset",
            "service is currently unavailable",
            "dns error",
            "broken pipe",
        ],
    ),
    (Trouble::Usage, &["error: unexpected argument", "error: unrecognized subcommand", "usage:"]),
];

/// What `normalised` text (see [`normalise`]) stands for, if it is known.
pub fn trouble(normalised: &str) -> Option<Trouble> {
    let text = normalised.to_ascii_lowercase();
    TROUBLES.iter().find(|(_, patterns)| has_any(&text, patterns)).map(|(trouble, _)| *trouble)
}

/// Whether lower-case `text` holds one of `patterns`.
pub(super) fn has_any(text: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|p| text.contains(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wrapped_reports_become_one_line() {
        let text = "Error:   × code: 'Some entity that we attempted to create already exists', message:\n  │ \
                    \"provider already exists\"\n";
        assert_eq!(
            normalise(text),
            "code: 'Some entity that we attempted to create already exists', message: \"provider already exists\""
        );
    }

    #[test]
    fn words_broken_after_a_slash_are_whole_again() {
        let text =
            "Error:   × sandbox source path '/tmp' is outside the sandbox workspace (/\n  │ sandbox)\n";
        assert_eq!(normalise(text), "sandbox source path '/tmp' is outside the sandbox workspace (/sandbox)");
        assert_eq!(normalise("  × a read-\n  │ write path"), "a read-write path");
        assert_eq!(normalise("try --\n  │ next"), "try -- next");
    }

    #[test]
    fn chains_and_colours_go() {
        let text = "\u{1b}[31mError:\u{1b}[0m   × transport error\n  ├─▶ tcp connect error\n  ╰─▶ Connection \
                    refused (os error 111)\n";
        assert_eq!(normalise(text), "transport error tcp connect error Connection refused (os error 111)");
        assert_eq!(normalise("Error:   x one\n  |-> two\n  `-> three"), "one two three");
        assert_eq!(normalise("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7} end"), "link end");
    }

    #[test]
    fn troubles_of_real_texts() {
        let cases = [
            ("Error:   × No active gateway.", Some(Trouble::NoGateway)),
            ("Error:   × Unknown gateway 'nosuch'.", Some(Trouble::UnknownGateway)),
            (
                "Error:   × transport error\n  ├─▶ tcp connect error\n  ╰─▶ Connection refused (os error 111)",
                Some(Trouble::Unreachable),
            ),
            (
                "Error:   × code: 'Some requested entity was not found', message: \"sandbox not\n  │ found\"",
                Some(Trouble::NotFound),
            ),
            (
                "Error:   × code: 'The system is not in a state required for the operation's\n  │ execution', \
                 message: \"provider 'p1' is attached to sandbox(es): x2\"",
                Some(Trouble::Precondition),
            ),
            (
                "Error:   × code: 'Some resource has been exhausted', message: \"sandbox SSH connection limit \
                 reached\"",
                Some(Trouble::Exhausted),
            ),
            ("provider was modified concurrently (current resource_version: 7)", Some(Trouble::Conflict)),
            ("error: unexpected argument '--detach' found", Some(Trouble::Usage)),
            ("something else", None),
        ];
        for (text, expected) in cases {
            assert_eq!(trouble(&normalise(text)), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_normalises_to_one_clean_line(text in any::<String>()) {
            let line = normalise(&text);
            prop_assert!(!line.contains('\n') && !line.contains('\u{1b}') && !line.contains("  "), "{line:?}");
        }
    }
}
