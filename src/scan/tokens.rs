//! Shapes of credentials: prefixes that issuers promise, headers, private keys, passwords in addresses.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use super::{Hit, Place, Scanner, Severity, expression, group};

/// What stands in place of a credential.
pub(crate) const MASKED: &str = crate::secrets::MASK;

/// Each with one group around what is secret. Sources: the issuers' documentation of their token formats.
const SHAPES: &[(&str, &str)] = &[
    ("anthropic-key", r"(sk-ant-[A-Za-z0-9_-]{16,})"),
    ("openai-key", r"\b(sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{32,})"),
    ("github-token", r"\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})"),
    ("gitlab-token", r"\b(gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_.-]{20,})"),
    ("aws-access-key", r"\b((?:AKIA|ASIA)[A-Z2-7]{16})\b"),
    ("slack-token", r"\b(xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})"),
    ("google-api-key", r"\b(AIza[A-Za-z0-9_-]{35})"),
    ("google-oauth-token", r"\b(ya29\.[A-Za-z0-9_-]{20,})"),
    ("stripe-key", r"\b((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,})"),
    ("sendgrid-key", r"\b(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"),
    ("hugging-face-token", r"\b(hf_[A-Za-z0-9]{30,})"),
    ("npm-token", r"\b(npm_[A-Za-z0-9]{36})"),
    ("pypi-token", r"\b(pypi-AgE[A-Za-z0-9_-]{40,})"),
    ("vault-token", r"\b(hv[sbr]\.[A-Za-z0-9_-]{24,})"),
    ("age-key", r"\b(AGE-SECRET-KEY-1[A-Z0-9]{58})"),
    ("json-web-token", r"\b(eyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"),
    (
        "private-key",
        r"(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(.+?)-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    ),
    (
        "authorization",
        r"(?i)\b(?:authorization|x-api-key|x-auth-token|private-token)\b[\x22']?\s*[:=]\s*[\x22']?(?:(?:bearer|basic|token)\s+)?([A-Za-z0-9._~+/=-]{16,})",
    ),
    ("password-in-url", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\x22'<>]{1,64}:([^\s/@\x22'<>$\{]{6,256})@"),
];

static RULES: LazyLock<Vec<(&'static str, Regex)>> =
    LazyLock::new(|| SHAPES.iter().filter_map(|(name, text)| Some((*name, expression(text)?))).collect());

/// Finds credentials. They are high: a definition or a context file with one would hand it to the model.
pub(super) fn scan(text: &str, place: &Place<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (name, regex) in RULES.iter() {
        let found = regex.captures_iter(text.as_bytes()).filter_map(|found| group(&found, 1));
        for (at, _) in found.filter(|(_, secret)| !placeholder(secret)) {
            hits.push(Hit {
                scanner: Scanner::Secret,
                rule: name,
                severity: Severity::High,
                line: place.line(at),
                message: "what looks like a credential".to_owned(),
                excerpt: place.excerpt(at),
            });
        }
    }
    hits
}

/// The text with credentials masked.
pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    for (_, regex) in RULES.iter() {
        if !regex.is_match(out.as_bytes()) {
            continue;
        }
        let replaced = regex.replace_all(out.as_bytes(), |found: &Captures<'_>| {
            let (whole, secret) = (found.get(0), found.get(1));
            let (Some(whole), Some(secret)) = (whole, secret) else { return Vec::new() };
            if placeholder(&String::from_utf8_lossy(secret.as_bytes())) {
                return whole.as_bytes().to_vec();
            }
            let (before, after) = (secret.start() - whole.start(), secret.end() - whole.start());
            [&whole.as_bytes()[..before], MASKED.as_bytes(), &whole.as_bytes()[after..]].concat()
        });
        // What is replaced begins and ends beside ASCII, so that no character is cut.
        out = Cow::Owned(String::from_utf8_lossy(&replaced).into_owned());
    }
    out
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
        assert_eq!(RULES.len(), SHAPES.len());
    }

    proptest! {
        #[test]
        fn any_text_can_be_masked(text in any::<String>()) {
            let once = mask(&text).into_owned();
            prop_assert_eq!(mask(&once).into_owned(), once);
        }
    }
}
