//! Which values are secrets: by the name they are kept under, and by what they look like.

use super::{MIN_LEN, Registry, Secret};

/// Tokens that CI systems put into the environment of every job. GitHub Actions, GitLab CI.
const CI_TOKENS: [&str; 9] = [
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "CI_BUILD_TOKEN",
    "CI_DEPENDENCY_PROXY_PASSWORD",
    "CI_DEPLOY_PASSWORD",
    "CI_JOB_TOKEN",
    "CI_REGISTRY_PASSWORD",
    "GH_TOKEN",
    "GITHUB_TOKEN",
];

/// Words that stand where a secret could, from [`MIN_LEN`] letters on.
const WORDS: [&str; 22] = [
    "anonymous",
    "automatic",
    "basic-auth",
    "changeit",
    "changeme",
    "credentials",
    "development",
    "disabled",
    "dummy-key",
    "external",
    "internal",
    "keychain",
    "localhost",
    "not-needed",
    "not-used",
    "password",
    "placeholder",
    "production",
    "required",
    "test-key",
    "undefined",
    "unlimited",
];

/// Whether a variable's name says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "API_KEY",
        "APIKEY",
        "PRIVATE_KEY",
    ];
    const ENDS: [&str; 4] = ["_KEY", "_PAT", "_PASS", "_AUTH"];
    // Names of files and switches beside the secret itself are ordinary values.
    const NOT: [&str; 9] =
        ["_FILE", "_PATH", "_SOURCE", "_URL", "_CREDENTIALS", "_NAME", "_TYPE", "_SOCK", "PUBLIC_KEY"];
    let name = name.to_ascii_uppercase();
    let named = PARTS.iter().any(|p| name.contains(p)) || ENDS.iter().any(|e| name.ends_with(e));
    named && !NOT.iter().any(|n| name.ends_with(n))
}

/// Whether a credential can be told from ordinary text: not too short, and no word that people write where none is
/// needed.
pub fn is_credential(value: &str) -> bool {
    let value = value.trim();
    value.len() >= MIN_LEN && !WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// The same for a variable that merely has a telling name: no path, address, number, date or plain word either.
fn is_named_secret(value: &str) -> bool {
    let value = value.trim();
    let path = value.starts_with(['/', '~']) || value.starts_with("./") || value.starts_with("../");
    let number = value.bytes().all(|b| b.is_ascii_digit() || b"-:.+TZ_, ".contains(&b));
    let letters =
        value.bytes().all(|b| b.is_ascii_lowercase()) || value.bytes().all(|b| b.is_ascii_uppercase());
    let plain = path || value.contains("://") || number || letters && value.len() <= 12;
    is_credential(value) && !plain
}

/// The secrets of one variable.
pub fn of_variable(name: &str, value: &str) -> Vec<Secret> {
    let mut found = within(value);
    let named = if CI_TOKENS.contains(&name) {
        is_credential(value)
    } else {
        is_secret_name(name) && is_named_secret(value)
    };
    if named {
        found.push(Secret::new(value));
    }
    found
}

/// The secrets that a text shows by their shape: tokens, passwords in addresses, private keys, accounts of services.
pub fn within(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    if text.contains("PRIVATE KEY-----") {
        found.push(Secret::new(text));
    }
    found.extend(passwords(text).filter(|p| is_credential(p)).map(Secret::new));
    let tokens = Registry::default();
    let words = text.split(|c: char| c.is_whitespace() || "\"'`,;<>()[]{}".contains(c));
    for word in words.filter(|w| w.len() >= 2 * MIN_LEN && tokens.shows(w.as_bytes())) {
        // What stands before the token (a name, a user) is not part of it.
        let token = word.rsplit(['=', ':', '@', '/']).find(|part| tokens.shows(part.as_bytes()));
        found.push(Secret::new(token.unwrap_or(word)));
    }
    found
}

/// The secrets of a file of `NAME=value` lines, or of any other text.
pub fn of_file(text: &str) -> Vec<Secret> {
    let mut found = within(text);
    if text.trim_start().starts_with('{') && (text.contains("private_key") || text.contains("refresh_token"))
    {
        found.push(Secret::new(text));
    }
    for line in text.lines() {
        let line = line.trim();
        let Some((name, value)) = line.strip_prefix("export ").unwrap_or(line).split_once('=') else {
            continue;
        };
        let value = value.trim();
        let bare = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q)).unwrap_or(value);
        if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            found.extend(of_variable(name, bare));
        }
    }
    found
}

/// Passwords of addresses: `scheme://user:password@host`.
fn passwords(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("://").filter_map(|(at, _)| {
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(rest.len());
        let (user, _) = rest[..end].rsplit_once('@')?;
        let (_, password) = user.split_once(':')?;
        Some(password)
    })
}

/// Whether a value that stands in the harness itself may still be a secret: it looks as if a machine had made it.
pub fn looks_made(value: &str) -> bool {
    let any = |is: fn(u8) -> bool| value.bytes().any(is);
    Registry::default().shows(value.as_bytes())
        || value.len() >= 20
            && !value.contains(' ')
            && any(|b| b.is_ascii_digit())
            && any(|b| b.is_ascii_lowercase())
            && any(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_secret() {
        for name in
            ["GH_TOKEN", "ANTHROPIC_API_KEY", "db_password", "PUSH_TOKEN", "GITLAB_PAT", "SSH_PRIVATE_KEY"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "PUSH_TOKEN_SOURCE",
            "GCP_OIDC_TOKEN_FILE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "KEYBOARD",
            "PATH",
            "SSH_AUTH_SOCK",
            "TOKEN_URL",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    fn of(name: &str, value: &str) -> Vec<String> {
        of_variable(name, value).iter().map(|s| s.expose().to_owned()).collect()
    }

    #[test]
    fn innocent_values_do_not_count() {
        for (name, value) in [
            ("AUTH_TOKEN", "none"),
            ("AUTH_TOKEN", "disabled"),
            ("CACHE_KEY", "2026-11-30"),
            ("MAX_TOKENS_KEY", "1000000000"),
            ("API_KEY", "production"),
            ("SIGNING_KEY", "/etc/keys/signing.pem"),
            ("TOKEN", "https://example.com/token"),
            ("GITHUB_TOKEN", "changeme"),
            ("SOME_KEY", "keyvault"),
            ("TEXT", "a perfectly ordinary sentence with words"),
            ("SHA", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ] {
            assert!(of(name, value).is_empty(), "{name}={value}");
        }
    }

    #[test]
    fn secrets_count_by_name_and_by_shape() {
        let token = format!("ghs_{}", "aB3dZ9".repeat(6));
        assert_eq!(of("GITHUB_TOKEN", "longenough1"), ["longenough1"]);
        assert_eq!(of("MY_TOKEN", "t0k-9876"), ["t0k-9876"]);
        assert_eq!(of("DATABASE", "postgres://app:s3cr3t-pw@db:5432/x"), ["s3cr3t-pw"]);
        assert_eq!(
            of("ORIGIN", &format!("https://x-access-token:{token}@github.com/o/r")),
            [token.clone(), token.clone()]
        );
        assert_eq!(of("HEADER", &format!("Authorization: Bearer {token}")), [token]);
        let file = "# comment\nexport DB_PASSWORD='hunter2-hunter2'\nMODE=fast\n";
        let found: Vec<_> = of_file(file).iter().map(|s| s.expose().to_owned()).collect();
        assert_eq!(found, ["hunter2-hunter2"]);
    }

    #[test]
    fn literals_that_a_machine_made_are_told_from_names() {
        assert!(looks_made("sk-ant-test-0123456789abcdefABCDEF"));
        for name in ["dummy-key", "my-test-placeholder-value", "Use the token of the day 1"] {
            assert!(!looks_made(name), "{name}");
        }
    }
}
