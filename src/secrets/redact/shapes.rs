//! Finds tokens that this run does not know, in a text or in a stream, by the shapes of [`super::prefixes`].

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::MASK;
use super::prefixes::{Body, Class, SHAPES};

/// The longest header and the longest claims of a web token, in bytes; that much is held back at most.
const JWT_PART: usize = 8 * 1024;
/// The shortest part of a web token: `{"alg":""}` without its first three characters.
const JWT_LEAST: usize = 8;
/// More of a private key than this is not swallowed, in bytes: nobody hides a log behind a fence.
const PEM_LONGEST: usize = 16 * 1024;
/// So many characters of base64 make a fence the beginning of a key.
const PEM_LEAST: usize = 24;

static PREFIXES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(SHAPES.iter().map(|(_, prefix, _)| prefix))
        .expect("a few short prefixes")
});

/// How much of a class may follow so many bytes of a token.
fn longest(class: Class, hidden: usize) -> usize {
    if class == Class::Key { PEM_LONGEST - hidden } else { usize::MAX }
}

/// What a place that begins with a prefix turns out to be.
enum Judgement {
    /// No token.
    No,
    /// More has to be seen.
    Open,
    /// A token: so many bytes are shown, so many are known to be hidden, and the run of a class after them.
    Token { shown: usize, hidden: usize, then: Option<Class> },
}

/// A token in a text that is there as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is, such as `github-token`.
    pub kind: &'static str,
    /// Where what is secret of it stands, in bytes.
    pub at: std::ops::Range<usize>,
}

/// The tokens in `bytes`, in their order.
pub(crate) fn find(bytes: &[u8]) -> impl Iterator<Item = Token> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(found) = PREFIXES.find(&bytes[at..]) {
            let start = at + found.start();
            let shape = found.pattern().as_usize();
            let Judgement::Token { shown, hidden, then } = judge(shape, &bytes[start..], true) else {
                at = start + 1;
                continue;
            };
            let (from, known) = (start + shown, start + shown + hidden);
            let rest = &bytes[known..];
            let run = then.map_or(0, |class| class.run(&rest[..rest.len().min(longest(class, hidden))]));
            at = known + run;
            return Some(Token { kind: SHAPES[shape].0, at: from..at });
        }
        None
    })
}

/// Whether `bytes` hold a token.
pub(super) fn is_in(bytes: &[u8]) -> bool {
    find(bytes).next().is_some()
}

/// Where a token begins that `bytes` do not hold whole; their length when there is none.
pub(super) fn undecided(bytes: &[u8]) -> usize {
    let mut shapes = Shapes::default();
    shapes.push(bytes, false, &mut Vec::new());
    bytes.len() - shapes.held.len()
}

fn judge(shape: usize, bytes: &[u8], end: bool) -> Judgement {
    let (_, prefix, body) = SHAPES[shape];
    let rest = &bytes[prefix.len()..];
    let open = if end { Judgement::No } else { Judgement::Open };
    let (class, least) = match body {
        Body::Least(class, least) | Body::Exact(class, least) | Body::Mixed(class, least) => (class, least),
        Body::Jwt => return jwt(rest, end),
        Body::Pem => return pem(rest, end),
    };
    // One more is looked at, to tell where an exact one ends.
    let run = class.run(&rest[..rest.len().min(least + 1)]);
    let whole = Judgement::Token { shown: 0, hidden: prefix.len() + least, then: None };
    match body {
        _ if run < least => {
            if run == rest.len() {
                open
            } else {
                Judgement::No
            }
        }
        Body::Exact(..) if run > least => Judgement::No,
        Body::Exact(..) if run == rest.len() && !end => Judgement::Open,
        // The keys of AWS's own documentation.
        Body::Exact(..) if rest[..least].ends_with(b"EXAMPLE") => Judgement::No,
        Body::Exact(..) => whole,
        Body::Mixed(..) if !mixed(&rest[..least]) => Judgement::No,
        _ => Judgement::Token { shown: 0, hidden: prefix.len() + least, then: Some(class) },
    }
}

fn mixed(bytes: &[u8]) -> bool {
    let any = |is: fn(&u8) -> bool| bytes.iter().any(is);
    any(u8::is_ascii_digit) && any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase)
}

/// What follows `eyJ`: the header, a dot, claims that begin with `eyJ`, a dot, a signature.
fn jwt(rest: &[u8], end: bool) -> Judgement {
    let mut at = 0;
    for (part, opening) in [&b""[..], b"eyJ"].into_iter().enumerate() {
        let begins = &rest[at..];
        let same = begins.iter().zip(opening).take_while(|(a, b)| a == b).count();
        if same < opening.len() {
            return if same == begins.len() && !end { Judgement::Open } else { Judgement::No };
        }
        let run = Class::Word.run(&begins[..begins.len().min(JWT_PART)]);
        if run == begins.len() {
            return if end { Judgement::No } else { Judgement::Open };
        }
        let least = if part == 0 { JWT_LEAST } else { JWT_LEAST + opening.len() };
        if run < least || begins[run] != b'.' {
            return Judgement::No;
        }
        at += run + 1;
    }
    let run = Class::Word.run(&rest[at..rest.len().min(at + 16)]);
    if run < 16 {
        return if at + run == rest.len() && !end { Judgement::Open } else { Judgement::No };
    }
    Judgement::Token { shown: 0, hidden: 3 + at + run, then: Some(Class::Word) }
}

/// What follows `-----BEGIN `: a label that ends in `PRIVATE KEY` (or `PRIVATE KEY BLOCK`), five dashes, line breaks as
/// they are or escaped, the key. The fence is shown.
fn pem(rest: &[u8], end: bool) -> Judgement {
    const FENCE: &[u8] = b"-----";
    const LABEL: usize = 40;
    let open = || if end { Judgement::No } else { Judgement::Open };
    let label = rest.iter().take(LABEL).position(|b| !(b.is_ascii_uppercase() || *b == b' '));
    let Some(label) = label else { return if rest.len() < LABEL { open() } else { Judgement::No } };
    if !rest[..label].windows(11).any(|w| w == b"PRIVATE KEY") {
        return Judgement::No;
    }
    let fence = &rest[label..];
    let same = fence.iter().zip(FENCE).take_while(|(a, b)| a == b).count();
    if same < FENCE.len() {
        return if same == fence.len() { open() } else { Judgement::No };
    }
    let body = label + FENCE.len();
    let body = body + headers(&rest[body..]);
    let mut at = body;
    let mut letters = 0;
    while letters < PEM_LEAST {
        let Some(b) = rest.get(at) else { return open() };
        if !Class::Key.has(*b) || at - body > 4 * PEM_LEAST {
            return Judgement::No;
        }
        letters += usize::from(!b" \t\r\n\\".contains(b));
        at += 1;
    }
    let prefix = "-----BEGIN ".len();
    Judgement::Token { shown: prefix + body, hidden: at - body, then: Some(Class::Key) }
}

/// The length of the lines `Name: value` at the start of a key (RFC 1421; the armour of `OpenPGP` has them too).
fn headers(rest: &[u8]) -> usize {
    const NAME: usize = 40;
    let mut at = 0;
    loop {
        let line = at + line_breaks(&rest[at..]);
        let name = &rest[line..rest.len().min(line + NAME)];
        let length =
            name.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'-')).unwrap_or(name.len());
        match name.get(length) {
            Some(b':') if length > 0 => {
                let value = &rest[line..];
                at = line + value.iter().position(|b| b"\\\n".contains(b)).unwrap_or(value.len());
            }
            // A name that has not ended: base64 has no dash.
            None if name.len() < NAME && name.contains(&b'-') => return rest.len(),
            _ => return at,
        }
    }
}

/// The length of the white space at the start of `bytes`, line breaks as they are or escaped.
fn line_breaks(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match bytes[at..] {
            [b' ' | b'\t' | b'\r' | b'\n', ..] => at += 1,
            [b'\\', b'n' | b'r', ..] => at += 2,
            _ => return at,
        }
    }
}

/// Replaces tokens in a stream. What comes out does not depend on how the stream was cut.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    held: Vec<u8>,
    /// The rest of a token is being swallowed: its class, and how much more of it may be.
    inside: Option<(Class, usize)>,
    escaped: bool,
    pub(super) replaced: u64,
}

impl Shapes {
    pub(super) fn is_settled(&self) -> bool {
        self.held.is_empty() && self.inside.is_none()
    }

    /// Takes the next bytes and writes what is decided.
    pub(super) fn push(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let decided = self.decide(bytes, end, out);
            self.held.extend_from_slice(&bytes[decided..]);
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let decided = self.decide(&held, end, out);
        held.drain(..decided);
        self.held = held;
    }

    fn decide(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let mut at = self.swallow(bytes);
        let mut from = at;
        while let Some(found) = PREFIXES.find(&bytes[from..]) {
            let start = from + found.start();
            match judge(found.pattern().as_usize(), &bytes[start..], end) {
                Judgement::No => from = start + 1,
                Judgement::Open => {
                    self.plain(&bytes[at..start], out);
                    return start;
                }
                Judgement::Token { shown, hidden, then } => {
                    self.plain(&bytes[at..start + shown], out);
                    if std::mem::take(&mut self.escaped) {
                        out.push(b'\\');
                    }
                    out.extend_from_slice(MASK.as_bytes());
                    self.replaced += 1;
                    at = start + shown + hidden;
                    self.inside = then.map(|class| (class, longest(class, hidden)));
                    at += self.swallow(&bytes[at..]);
                    from = at;
                }
            }
        }
        let limit = if end { bytes.len() } else { bytes.len() - beginning(&bytes[from..]) };
        self.plain(&bytes[at..limit], out);
        limit
    }

    /// How much at the start of `bytes` belongs to the token that has begun.
    fn swallow(&mut self, bytes: &[u8]) -> usize {
        let Some((class, left)) = self.inside else { return 0 };
        let run = class.run(&bytes[..bytes.len().min(left)]);
        self.inside = (run == bytes.len()).then_some((class, left - run));
        run
    }

    fn plain(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(bytes);
        let slashes = bytes.iter().rev().take_while(|b| **b == b'\\').count();
        self.escaped = (slashes % 2 == 1) != (slashes == bytes.len() && self.escaped);
    }
}

/// The length of the end of `bytes` that may be the beginning of a prefix.
fn beginning(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(SHAPES.iter().map(|(_, p, _)| p.len()).max().unwrap_or(0));
    (1..=longest)
        .rev()
        .find(|n| {
            let tail = &bytes[bytes.len() - n..];
            SHAPES.iter().any(|(_, p, _)| p.len() > *n && p.as_bytes().starts_with(tail))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(chunks: &[&[u8]]) -> String {
        let mut shapes = Shapes::default();
        let mut out = Vec::new();
        for chunk in chunks {
            shapes.push(chunk, false, &mut out);
        }
        shapes.push(b"", true, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Tokens in pieces, so that no scanner of repositories takes them for real ones.
    fn tokens() -> Vec<String> {
        let word = |n: usize| "aB3_x-Z9".chars().cycle().take(n).collect::<String>();
        let alnum = |n: usize| "aB3dZ9".chars().cycle().take(n).collect::<String>();
        let jwt = format!("eyJ{}.eyJ{}.{}", alnum(20), alnum(60), word(43));
        vec![
            format!("ghp_{}", alnum(36)),
            format!("gho_{}", alnum(36)),
            format!("ghu_{}", alnum(36)),
            format!("ghr_{}", alnum(76)),
            format!("ghs_{}", alnum(36)),
            format!("ghs_123456_{jwt}"),
            format!("github_pat_{}_{}", alnum(22), alnum(59)),
            format!("glpat-{}", word(20)),
            format!("glpat-{}.01.{}", word(27), alnum(9)),
            format!("glcbt-64_{}", word(20)),
            format!("glrt-t1_{}", word(20)),
            format!("AKIA{}", "ABCDEFGH2345WXYZ"),
            format!("sk-ant-api03-{}AA", word(93)),
            format!("sk-proj-{}", word(120)),
            format!("T3BlbkFJ{}", alnum(20)),
            format!("xoxb-123456789012-{}", alnum(24)),
            format!("hooks.slack.com/services/T0000AB12/B0000CD34/{}", alnum(24)),
            format!("npm_{}", alnum(36)),
            format!("pypi-AgEIcHlwaS5vcmc{}", word(120)),
            format!("AIza{}", word(35)),
            format!("ya29.{}", word(100)),
            jwt,
            format!("sk_test_{}", alnum(24)),
            format!("SG.{}.{}", word(22), word(43)),
            format!("hvs.{}", word(90)),
            format!("AGE-SECRET-KEY-1{}", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"),
        ]
    }

    #[test]
    fn well_known_tokens_are_hidden_whatever_stands_before_them() {
        for token in tokens() {
            for before in ["", "x", "\u{1b}[31m", "\\n", "\\u001b[0;1m", "https://user:", "\"", "="] {
                let text = format!("{before}{token}\" end");
                let out = run(&[text.as_bytes()]);
                assert!(out.ends_with("***\" end") && !out.contains(&token[6..]), "{text} -> {out}");
                assert!(is_in(text.as_bytes()));
            }
        }
        let openai = format!("sk-aaaaBBBB1111cccc2222T3BlbkFJ{}", "aB3dZ9aB3dZ9aB3dZ9aB3");
        assert!(run(&[openai.as_bytes()]).ends_with("***"));
    }

    #[test]
    fn a_private_key_is_hidden_between_its_fences() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
        for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
            let text = format!("key:\n-----BEGIN {label}-----\n{body}-----END {label}-----\nafter");
            let expected = format!("key:\n-----BEGIN {label}-----***-----END {label}-----\nafter");
            assert_eq!(run(&[text.as_bytes()]), expected);
            let json = serde_json::to_string(&[&text]).unwrap();
            let out = run(&[json.as_bytes()]);
            let back: Vec<String> = serde_json::from_str(&out).unwrap();
            assert_eq!(back, [expected]);
        }
        for headers in ["Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", "Version: GnuPG v2\n\n"] {
            let text =
                format!("-----BEGIN RSA PRIVATE KEY-----\n{headers}{body}-----END RSA PRIVATE KEY-----");
            let out = run(&[text.as_bytes()]);
            assert!(out.ends_with("***-----END RSA PRIVATE KEY-----") && !out.contains("MIIE"), "{out}");
            let json = serde_json::to_string(&[&text]).unwrap();
            let out = run(&[json.as_bytes()]);
            assert!(!out.contains("MIIE") && serde_json::from_str::<Vec<String>>(&out).is_ok(), "{out}");
        }
        for harmless in [
            "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
            "grep '-----BEGIN PRIVATE KEY-----' file; then, something else",
        ] {
            assert_eq!(run(&[harmless.as_bytes()]), harmless);
        }
    }

    #[test]
    fn what_only_looks_random_stays() {
        for text in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "npm_config_registry=https://registry.example.com npm_package_version",
            "task-da39a3ee5e6b4b0d3255bfef95601890afd80709da39a3ee",
            "task-proj-a-very-long-name-of-a-branch-in-kebab-case-that-goes-on",
            "hf_hub_download and hf_transfer",
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_short glpat- ghs_",
            "eyJhbGciOiJIUzI1NiJ9 alone, eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
            "C:\\npm_x \\ndone",
        ] {
            assert_eq!(run(&[text.as_bytes()]), text);
            assert!(!is_in(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn no_prefix_is_within_another() {
        for (_, a, _) in SHAPES {
            for (_, b, _) in SHAPES.iter().filter(|(_, b, _)| a != b) {
                assert!(!a.contains(b), "{b} is within {a}");
            }
        }
    }

    #[test]
    fn an_escape_that_runs_into_a_token_stays_one() {
        let text = format!("{{\"a\":\"x\\npm_{}\"}}", "aB3dZ9".repeat(6));
        let out = run(&[text.as_bytes()]);
        serde_json::from_str::<serde_json::Value>(&out).expect(&out);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            picks in prop::collection::vec((0..30_usize, "[ -~\n]{0,12}"), 0..5),
            cuts in prop::collection::vec(1..60_usize, 1..40),
        ) {
            let mut tokens = tokens();
            tokens.push("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END".into());
            let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCMIIEvQIBADAN\n-----END".to_owned();
            let parts = picks.iter().flat_map(|(n, noise)| [noise.as_str(), tokens.get(*n).unwrap_or(&pem)]);
            let text: String = parts.collect();
            let whole = run(&[text.as_bytes()]);
            let mut chunks = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (a, b) = rest.split_at((*cut).min(rest.len()));
                chunks.push(a);
                rest = b;
            }
            prop_assert_eq!(run(&chunks), whole);
        }
    }
}
