//! Where a text or a command would connect to.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::ssrf::{self, Allowed, Refusal, check_host, check_url};
use super::{Hit, Place, Scanner, Severity, expression};

static URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(r#"(?i)\b[a-z][a-z0-9+.-]{1,15}:[/\\]{2,}[^\s"'<>`|;)}\]]+\]?[^\s"'<>`|;)}\]]*"#)
});

/// Finds addresses in a text that it should not send an agent to: metadata services, and inner addresses that are
/// written so that they are not recognised. Plain inner addresses are ordinary in documentation.
pub(super) fn scan(text: &str, place: &Place<'_>) -> Vec<Hit> {
    let allowed = Allowed::default();
    let mut hits = Vec::new();
    for found in URL.iter().flat_map(|regex| regex.find_iter(text.as_bytes())) {
        let url = String::from_utf8_lossy(found.as_bytes());
        let Some(refusal) = check_url(&url, &allowed) else { continue };
        let severity = match refusal.rule {
            "metadata" | "link-local" => Severity::High,
            "scheme" => continue,
            _ if refusal.disguised => Severity::High,
            _ => continue,
        };
        hits.push(Hit {
            scanner: Scanner::Ssrf,
            rule: refusal.rule,
            severity,
            line: place.line(found.start()),
            message: refusal.why,
            excerpt: place.excerpt(found.start()),
        });
    }
    hits
}

/// Programs that connect to what stands on their command line.
const FETCHERS: &[&str] = &[
    "aria2c", "axel", "curl", "curlie", "fetch", "ftp", "git", "grpcurl", "http", "https", "httpie", "lynx",
    "nc", "ncat", "netcat", "node", "openssl", "perl", "php", "ping", "python", "python3", "rsync", "ruby",
    "scp", "sftp", "socat", "ssh", "telnet", "w3m", "wget", "wget2", "websocat", "xh",
];

/// The first address of a shell command that is refused. This is a net for what agents write, not a parser of shell:
/// what a command computes is not seen here, and the sandbox's policy is the boundary.
pub(super) fn command(text: &str, allowed: &Allowed) -> Option<Refusal> {
    let refused = |refusal: Option<Refusal>| refusal.filter(|r| !r.plain_loopback);
    for found in URL.iter().flat_map(|regex| regex.find_iter(text.as_bytes())) {
        let url = String::from_utf8_lossy(found.as_bytes());
        // `git`, `file` and the like are ordinary in commands.
        let refusal = check_url(&url, allowed).filter(|r| r.rule != "scheme" || is_odd(&r.host));
        if let Some(refusal) = refused(refusal) {
            return Some(refusal);
        }
    }
    // /dev/tcp/HOST/PORT of bash.
    for part in text.split("/dev/tcp/").skip(1).chain(text.split("/dev/udp/").skip(1)) {
        let host = part.split(['/', ' ', '\n']).next().unwrap_or_default();
        if let Some(refusal) = refused(check_host(host, allowed)) {
            return Some(refusal);
        }
    }
    if !words(text).any(|word| FETCHERS.contains(&word.rsplit('/').next().unwrap_or_default())) {
        return None;
    }
    words(text).find_map(|word| refused(bare(word, allowed)))
}

fn is_odd(scheme: &str) -> bool {
    matches!(scheme, "gopher" | "dict" | "ldap" | "ldaps" | "tftp" | "ftp" | "jar" | "phar" | "netdoc")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"'`|;&()<>{},=".contains(c)).filter(|word| !word.is_empty())
}

/// A word without a scheme that can only be a host.
fn bare(word: &str, allowed: &Allowed) -> Option<Refusal> {
    let authority = word.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or_default() };
    if !looks_like_host(host) {
        return None;
    }
    check_url(&format!("http://{host}/"), allowed)
}

/// A number is an address only where it is too large to be anything else.
fn looks_like_host(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    if host.starts_with('[') || host.matches('.').count() == 3 {
        return true;
    }
    let lower = host.to_ascii_lowercase();
    match ssrf::inet_aton(&lower) {
        Some(v4) => {
            u32::from(v4) > 0x00ff_ffff
                && (lower.starts_with("0x")
                    || lower.len() >= 8
                    || lower.contains('.') && v4.octets()[0] == 127)
        }
        None => lower == "metadata" || lower == "localhost" || lower.contains('.') && !lower.starts_with('.'),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_that_reach_inside_are_refused() {
        for text in [
            "curl http://169.254.169.254/latest/meta-data/iam/",
            "curl -s 169.254.169.254/latest",
            "curl -s --max-time 2 \"http://0xa9fea9fe/\"",
            "wget -qO- 2852039166",
            "curl --proxy 10.0.0.5:3128 https://example.com",
            "exec 3<>/dev/tcp/169.254.169.254/80",
            "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://[::ffff:169.254.169.254]/\")'",
            "nc metadata.google.internal 80",
            "X=1; curl gopher://example.com/_x",
            "curl http://example.com@192.168.0.1/",
            "curl 127.1:8080",
            "curl http://2130706433/",
        ] {
            assert!(command(text, &Allowed::default()).is_some(), "{text}");
        }
    }

    #[test]
    fn ordinary_commands_pass() {
        for text in [
            "curl -m 10 --retry 3 https://api.github.com/repos/a/b",
            "curl http://localhost:3000/health && curl 127.0.0.1:8080",
            "git log --since=2.weeks | head -20",
            "git clone https://github.com/a/b.git",
            "echo 10.0.0.1 > hosts.txt",
            "sed -i 's/192.168.1.1/10.0.0.1/' config.yaml",
            "python3 -m pytest tests/test_1.py -k 'not slow'",
            "node --version; npm ci",
            "cargo test 2>&1 | tail -20",
            "grep -rn 'http://127.0.0.1' src",
            "git checkout v1.2.3.4 -- file:///x",
            "node build.local.js && ls -la 12345678",
        ] {
            assert_eq!(command(text, &Allowed::default()), None, "{text}");
        }
    }

    #[test]
    fn documents_may_speak_of_inner_addresses_but_not_hide_them() {
        let rules = |text: &str| scan(text, &Place::new(text)).iter().map(|h| h.rule).collect::<Vec<_>>();
        assert!(rules("see http://localhost:8080 and http://192.168.1.1/ (router)").is_empty());
        assert_eq!(rules("fetch http://169.254.169.254/latest"), ["metadata"]);
        assert_eq!(rules("fetch http://0x7f000001/x"), ["loopback"]);
        assert_eq!(rules("fetch [this](http://10.0.0.1.nip.io/x)"), ["name-with-address"]);
    }

    proptest! {
        #[test]
        fn any_command_can_be_judged(text in any::<String>()) {
            let _ = command(&text, &Allowed::default());
        }
    }
}
