//! Credentials in a text: tokens by the shapes that their issuers gave them, and what stands where a credential stands,
//! in a header or before the host of an address.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{Hit, Place, Scanner, Severity, expression};
use crate::secrets::find_tokens;

/// What stands in place of a credential.
pub(crate) const MASKED: &str = crate::secrets::MASK;

/// Each with one group around what is secret.
const PLACES: &[(&str, &str)] = &[
    (
        "authorization",
        r"(?i)\b(?:authorization|x-api-key|x-auth-token|private-token)\b[\x22']?\s*[:=]\s*[\x22']?(?:(?:bearer|basic|token)\s+)?([A-Za-z0-9._~+/=-]{16,})",
    ),
    ("password-in-url", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\x22'<>]{1,64}:([^\s/@\x22'<>$\{]{6,256})@"),
];

static RULES: LazyLock<Vec<(&'static str, Regex)>> =
    LazyLock::new(|| PLACES.iter().filter_map(|(name, text)| Some((*name, expression(text)?))).collect());

/// What it is, and where it stands in bytes: in their order, none within another.
fn find(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut found: Vec<_> = find_tokens(bytes).map(|token| (token.kind, token.at)).collect();
    for (name, regex) in RULES.iter() {
        let places = regex.captures_iter(bytes).filter_map(|place| Some((*name, place.get(1)?.range())));
        let others: Vec<_> = places.filter(|(_, at)| !found.iter().any(|(_, b)| overlap(at, b))).collect();
        found.extend(others);
    }
    found.retain(|(_, at)| !placeholder(&text[at.clone()]));
    found.sort_by_key(|(_, at)| at.start);
    found
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Finds credentials. They are high: a definition or a context file with one would hand it to the model.
pub(super) fn scan(text: &str, place: &Place<'_>) -> Vec<Hit> {
    let hit = |(rule, at): (&'static str, Range<usize>)| Hit {
        scanner: Scanner::Secret,
        rule,
        severity: Severity::High,
        line: place.line(at.start),
        message: "what looks like a credential".to_owned(),
        excerpt: place.excerpt(at.start),
    };
    find(text).into_iter().map(hit).collect()
}

/// The text with credentials masked.
pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let found = find(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for (_, at) in found {
        out.push_str(&text[shown..at.start]);
        out.push_str(MASKED);
        shown = at.end;
    }
    out.push_str(&text[shown..]);
    Cow::Owned(out)
}

/// Whether a value stands for one that comes later: `xxxx…`, `${…}`, or what OpenShell's proxy replaces.
fn placeholder(text: &str) -> bool {
    let body = text
        .trim_start_matches(|c: char| c.is_ascii_alphanumeric() && !c.is_ascii_uppercase())
        .trim_matches('-');
    let letters: std::collections::BTreeSet<char> =
        text.chars().rev().take(12).filter(char::is_ascii_alphanumeric).collect();
    letters.len() <= 2 || body.contains("openshell:") || text.contains("EXAMPLE")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_are_masked_and_their_surroundings_stay() {
        let ghp = format!("ghp_{}", "aB3dE6gH9".repeat(4));
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----";
        let cases = [
            (format!("token {ghp}, ok"), "token ***, ok".to_owned()),
            ("k=sk-ant-api03-AbCdEf012345678901".into(), "k=***".into()),
            ("AKIAQ3EGTHKL7Z2MNB4C here".into(), "*** here".into()),
            (key.into(), "-----BEGIN OPENSSH PRIVATE KEY-----***-----END OPENSSH PRIVATE KEY-----".into()),
            ("postgres://app:s3cr3t-pw@db/x".into(), "postgres://app:***@db/x".into()),
            ("Authorization: Bearer abcDEF0123456789xyz".into(), "Authorization: Bearer ***".into()),
            ("{\"x-api-key\": \"abcDEF0123456789xyz\"}".into(), "{\"x-api-key\": \"***\"}".into()),
        ];
        for (text, want) in cases {
            assert_eq!(mask(&text), want);
            assert_eq!(mask(&want), want, "masking again changes nothing");
            let hits = scan(&text, &Place::new(&text));
            assert_eq!(hits.len(), 1, "{text}: {hits:?}");
            assert!(!hits[0].excerpt.contains("aB3dE6gH9"));
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "Authorization: Bearer $TOKEN and https://user:${PASS}@host/",
            "https://example.com:8443/a@b",
            "sk-learn, task-list, risk-assessment-of-the-new-system",
            "authorization: required",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn every_expression_compiles() {
        assert_eq!(RULES.len(), PLACES.len());
    }

    proptest! {
        #[test]
        fn any_text_can_be_masked(text in any::<String>()) {
            let once = mask(&text).into_owned();
            prop_assert_eq!(mask(&once).into_owned(), once);
        }
    }
}
