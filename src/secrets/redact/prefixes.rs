//! The shapes that issuers give their tokens so that they can be recognised.
//!
//! Each begins with letters that ordinary text does not have, so nothing is asked of what stands before: a token directly
//! after a colour code or a JSON escape is found. Hashes, UUIDs and the integrity strings of lock files have no such
//! beginning.

/// What follows a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// At least so many characters of a class.
    Least(Class, usize),
    /// Exactly so many characters of a class, and then another character.
    Exact(Class, usize),
    /// At least so many characters, among them a digit, a small and a capital letter within that length.
    Mixed(Class, usize),
    /// The rest of a JSON web token (RFC 7519) whose header and claims are JSON objects.
    Jwt,
    /// The rest of the first line of a private key (RFC 7468), and the key.
    Pem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Letters and digits.
    Alnum,
    /// And `-`, `_`.
    Word,
    /// And `.`.
    Dotted,
    /// Capital letters and `2` to `7` (base32).
    Base32,
    /// Small hexadecimal.
    Hex,
    /// Of a path: letters, digits, `/`.
    Path,
    /// Base64, white space, and the letters of escaped line breaks.
    Key,
}

impl Class {
    pub(super) fn has(self, b: u8) -> bool {
        match self {
            Class::Alnum => b.is_ascii_alphanumeric(),
            Class::Word => b.is_ascii_alphanumeric() || b == b'-' || b == b'_',
            Class::Dotted => Class::Word.has(b) || b == b'.',
            Class::Base32 => b.is_ascii_uppercase() || matches!(b, b'2'..=b'7'),
            Class::Hex => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
            Class::Path => b.is_ascii_alphanumeric() || b == b'/',
            Class::Key => b.is_ascii_alphanumeric() || b"+/=\\ \t\r\n".contains(&b),
        }
    }

    /// The length of the run at the start of `bytes`.
    pub(super) fn run(self, bytes: &[u8]) -> usize {
        bytes.iter().position(|b| !self.has(*b)).unwrap_or(bytes.len())
    }
}

/// What it is, prefix, and body. No prefix is within another (a test sees to it), so the first one found is the only one there.
/// Sources: GitHub's token formats (of 2021, and `ghs_<app>_<JWT>` of April 2026); GitLab's token overview; AWS's
/// unique identifiers of IAM; the scanners' lists that the others are entered in.
pub(super) const SHAPES: &[(&str, &str, Body)] = &[
    ("github-token", "ghp_", Body::Least(Class::Alnum, 36)),
    ("github-token", "gho_", Body::Least(Class::Alnum, 36)),
    ("github-token", "ghu_", Body::Least(Class::Dotted, 36)),
    ("github-token", "ghs_", Body::Least(Class::Dotted, 36)),
    ("github-token", "ghr_", Body::Least(Class::Alnum, 36)),
    ("github-token", "github_pat_", Body::Least(Class::Word, 36)),
    ("gitlab-token", "glpat-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "gldt-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glrt-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glrtr-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glcbt-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glptt-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glft-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glimt-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glagent-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glsoat-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "gloas-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glffct-", Body::Least(Class::Dotted, 20)),
    ("gitlab-token", "glwt-", Body::Least(Class::Dotted, 20)),
    ("aws-access-key", "AKIA", Body::Exact(Class::Base32, 16)),
    ("aws-access-key", "ASIA", Body::Exact(Class::Base32, 16)),
    ("anthropic-key", "sk-ant-", Body::Least(Class::Word, 20)),
    ("openai-key", "sk-proj-", Body::Mixed(Class::Word, 40)),
    ("openai-key", "sk-svcacct-", Body::Mixed(Class::Word, 40)),
    ("openai-key", "sk-admin-", Body::Mixed(Class::Word, 40)),
    // OpenAI's infix ("OpenAI" in base64): the beginning of its keys of before 2024 is too short to be told.
    ("openai-key", "T3BlbkFJ", Body::Least(Class::Alnum, 20)),
    ("xai-key", "xai-", Body::Mixed(Class::Alnum, 60)),
    ("groq-key", "gsk_", Body::Mixed(Class::Alnum, 50)),
    ("hugging-face-token", "hf_", Body::Exact(Class::Alnum, 34)),
    ("slack-token", "xoxb-", Body::Least(Class::Word, 20)),
    ("slack-token", "xoxp-", Body::Least(Class::Word, 20)),
    ("slack-token", "xoxa-", Body::Least(Class::Word, 20)),
    ("slack-token", "xoxr-", Body::Least(Class::Word, 20)),
    ("slack-token", "xoxs-", Body::Least(Class::Word, 20)),
    ("slack-token", "xoxe-", Body::Least(Class::Word, 20)),
    ("slack-token", "xapp-", Body::Least(Class::Word, 20)),
    ("slack-webhook", "hooks.slack.com/services/", Body::Least(Class::Path, 30)),
    ("npm-token", "npm_", Body::Exact(Class::Alnum, 36)),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc", Body::Least(Class::Word, 50)),
    ("pypi-token", "pypi-AgENdGVzdC5weXBpLm9yZw", Body::Least(Class::Word, 50)),
    ("rubygems-key", "rubygems_", Body::Exact(Class::Hex, 48)),
    ("docker-token", "dckr_pat_", Body::Least(Class::Word, 27)),
    ("google-api-key", "AIza", Body::Exact(Class::Word, 35)),
    ("google-client-secret", "GOCSPX-", Body::Least(Class::Word, 28)),
    ("google-oauth-token", "ya29.", Body::Least(Class::Word, 40)),
    ("stripe-key", "sk_live_", Body::Least(Class::Alnum, 16)),
    ("stripe-key", "rk_live_", Body::Least(Class::Alnum, 16)),
    ("stripe-key", "sk_test_", Body::Least(Class::Alnum, 16)),
    ("stripe-key", "rk_test_", Body::Least(Class::Alnum, 16)),
    ("sendgrid-key", "SG.", Body::Mixed(Class::Dotted, 60)),
    ("vault-token", "hvs.", Body::Least(Class::Word, 24)),
    ("vault-token", "hvb.", Body::Least(Class::Word, 24)),
    ("vault-token", "hvr.", Body::Least(Class::Word, 24)),
    ("age-key", "AGE-SECRET-KEY-1", Body::Exact(Class::Alnum, 58)),
    ("digitalocean-token", "dop_v1_", Body::Exact(Class::Hex, 64)),
    ("shopify-token", "shpat_", Body::Exact(Class::Hex, 32)),
    ("json-web-token", "eyJ", Body::Jwt),
    ("private-key", "-----BEGIN ", Body::Pem),
];
