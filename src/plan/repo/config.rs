//! The configuration of the host repository: read once, and reduced to what a sandbox may see.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Result;
use crate::import::git;

/// Entries of one configuration, in order. Section and variable names are lower case, as git prints them.
#[derive(Debug, Clone, Default)]
pub struct Config(pub Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Config {
    /// Reads one file, without what it includes. Not from inside the repository: a git that does not know its format
    /// would fail there.
    pub(super) async fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let command = git::bare("git config --list", Path::new("/"));
        let command = command.args(["config", "--no-includes", "--list", "-z", "--file"]).arg(file);
        Ok(Self::parse(&git::run(command).await?))
    }

    /// Parses what `git config --list -z` prints.
    pub fn parse(text: &[u8]) -> Self {
        let entries = text.split(|b| *b == 0).filter(|e| !e.is_empty()).map(|entry| {
            match entry.iter().position(|b| *b == b'\n') {
                Some(at) => (entry[..at].to_vec(), Some(entry[at + 1..].to_vec())),
                None => (entry.to_vec(), None),
            }
        });
        Self(entries.collect())
    }

    /// The last value of a key.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        let entry = self.0.iter().rev().find(|(k, _)| k == key.as_bytes())?;
        Some(entry.1.as_deref().unwrap_or(b"true"))
    }

    /// The remotes that have promised the objects that are missing here (`git clone --filter`).
    pub(super) fn promisors(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(|(key, _)| key.strip_prefix(b"remote.")?.strip_suffix(b".promisor"))
    }

    /// Whether a key is set to a true value.
    pub fn is_true(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|v| ["true", "yes", "on", "1"].iter().any(|t| v.eq_ignore_ascii_case(t.as_bytes())))
    }
}

/// The `.git/config` that goes into the sandbox: an allow-list. No credentials, headers, includes, helpers,
/// hook paths, filters or aliases; remotes lose their user information. Automatic repacking is off, since a
/// repack would make every object travel back.
pub fn reduced(config: &Config) -> Vec<u8> {
    let mut out = Writer::default();
    let version = config.get("core.repositoryformatversion").unwrap_or(b"0");
    out.entry(b"core", None, b"repositoryformatversion", version);
    out.entry(b"core", None, b"bare", b"false");
    out.entry(b"core", None, b"logallrefupdates", b"true");
    for name in
        ["filemode", "ignorecase", "symlinks", "precomposeunicode", "sparsecheckout", "sparsecheckoutcone"]
    {
        if let Some(value) = config.get(&format!("core.{name}")) {
            out.entry(b"core", None, name.as_bytes(), value);
        }
    }
    if let Some(value) = config.get("extensions.objectformat") {
        out.entry(b"extensions", None, b"objectformat", value);
    }
    out.entry(b"gc", None, b"auto", b"0");
    out.entry(b"maintenance", None, b"auto", b"false");
    for name in ["name", "email"] {
        if let Some(value) = config.get(&format!("user.{name}")) {
            out.entry(b"user", None, name.as_bytes(), value);
        }
    }
    let mut dropped: BTreeSet<&[u8]> = BTreeSet::new();
    for (key, value) in &config.0 {
        let Some((section, subsection, name)) = split_key(key) else { continue };
        let value = value.as_deref().unwrap_or_default();
        match (section, name) {
            (b"remote", b"url") => match without_userinfo(value) {
                Some(url) => out.entry(section, Some(subsection), name, &url),
                None => drop(dropped.insert(subsection)),
            },
            // Without it git would take objects that were never fetched for lost ones.
            (b"remote", b"fetch" | b"promisor" | b"partialclonefilter") if !dropped.contains(subsection) => {
                out.entry(section, Some(subsection), name, value);
            }
            (b"branch", b"remote" | b"merge") => out.entry(section, Some(subsection), name, value),
            _ => {}
        }
    }
    out.0
}

/// `section.sub.section.name` as its three parts.
fn split_key(key: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let first = key.iter().position(|b| *b == b'.')?;
    let last = key.iter().rposition(|b| *b == b'.')?;
    (first < last).then(|| (&key[..first], &key[first + 1..last], &key[last + 1..]))
}

/// A remote URL without what may be a credential. `None` for a form that names a helper program.
fn without_userinfo(url: &[u8]) -> Option<Vec<u8>> {
    let find = |needle: &[u8]| url.windows(needle.len()).position(|w| w == needle);
    let Some(at) = find(b"://") else {
        // `ext::…` runs a program; `git@host:path` has no place for a secret.
        return if find(b"::").is_some() { None } else { Some(url.to_vec()) };
    };
    let (scheme, rest) = (&url[..at], &url[at + 3..]);
    if find(b"::").is_some_and(|helper| helper < at) {
        return None;
    }
    let authority_end = rest.iter().position(|b| b"/?#".contains(b)).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let (user, host) = match authority.iter().rposition(|b| *b == b'@') {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (&b""[..], authority),
    };
    let mut out = [scheme, b"://"].concat();
    let user = user.split(|b| *b == b':').next().unwrap_or_default();
    // The user of an ssh address is part of where it goes; that of an https address is often a token.
    if scheme.to_ascii_lowercase().ends_with(b"ssh") && !user.is_empty() {
        out.extend_from_slice(user);
        out.push(b'@');
    }
    out.extend_from_slice(host);
    // A query can carry a token as well, and no git server needs one.
    out.extend_from_slice(tail.split(|b| *b == b'?' || *b == b'#').next().unwrap_or_default());
    Some(out)
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn entry(&mut self, section: &[u8], subsection: Option<&[u8]>, name: &[u8], value: &[u8]) {
        // A newline cannot stand in a subsection; git would refuse the whole file.
        if subsection.is_some_and(|s| s.contains(&b'\n') || s.contains(&0)) || value.contains(&0) {
            return;
        }
        self.0.push(b'[');
        self.0.extend_from_slice(section);
        if let Some(subsection) = subsection {
            self.0.extend_from_slice(b" \"");
            for b in subsection {
                if matches!(b, b'"' | b'\\') {
                    self.0.push(b'\\');
                }
                self.0.push(*b);
            }
            self.0.push(b'"');
        }
        self.0.extend_from_slice(b"]\n\t");
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(b" = ");
        self.0.extend_from_slice(&quoted(value));
        self.0.push(b'\n');
    }
}

/// A value of a configuration file in quotes.
pub(crate) fn quoted(value: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for b in value {
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b => out.push(*b),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Option<String> {
        without_userinfo(text.as_bytes()).map(|u| String::from_utf8(u).unwrap())
    }

    #[test]
    fn remotes_lose_their_secrets() {
        let cases = [
            ("https://x-access-token:T0KEN@github.com/o/r.git", Some("https://github.com/o/r.git")),
            ("https://T0KEN@github.com/o/r", Some("https://github.com/o/r")),
            ("https://a@b:c@host/x", Some("https://host/x")),
            ("https://host/x@y?token=1#f", Some("https://host/x@y")),
            ("ssh://git:pw@host:22/x", Some("ssh://git@host:22/x")),
            ("git+ssh://git@host/x", Some("git+ssh://git@host/x")),
            ("git@github.com:o/r.git", Some("git@github.com:o/r.git")),
            ("/srv/git/x", Some("/srv/git/x")),
            ("ext::sh -c evil", None),
            ("ext::https://u@h/x", None),
        ];
        for (from, to) in cases {
            assert_eq!(url(from).as_deref(), to, "{from}");
        }
    }

    #[test]
    fn the_reduced_config_is_an_allow_list_that_git_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let hostile = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tfsmonitor = evil\n\thooksPath = evil\n\tsshCommand = evil\n\
            [include]\n\tpath = evil\n[credential]\n\thelper = evil\n[alias]\n\tst = !evil\n\
            [http \"https://github.com/\"]\n\textraheader = AUTHORIZATION: basic c2VjcmV0\n\
            [remote \"o \\\"q\\\\ x\"]\n\turl = https://u:secret@h/p\n\tfetch = +refs/heads/*:refs/remotes/o/*\n\tuploadpack = evil\n\
            [remote \"e\"]\n\turl = ext::evil\n\tfetch = evil\n\
            [branch \"a.b\"]\n\tremote = origin\n\tmerge = refs/heads/a.b\n[filter \"x\"]\n\tclean = evil\n\
            [user]\n\tname = \"A \\\"B\\\" ; # C\"\n\temail = a@b\n\tsigningkey = secret\n";
        std::fs::write(&file, hostile).unwrap();
        let list = |f: &Path| {
            let args = ["config", "--list", "--no-includes", "-z", "--file"];
            let out = std::process::Command::new("git").args(args).arg(f).output().unwrap();
            assert!(out.status.success(), "{out:?}");
            Config::parse(&out.stdout)
        };
        let text = reduced(&list(&file));
        let as_text = String::from_utf8(text.clone()).unwrap();
        assert!(
            !as_text.contains("evil") && !as_text.contains("secret") && !as_text.contains("c2VjcmV0"),
            "{as_text}"
        );
        std::fs::write(&file, text).unwrap();
        let back = list(&file);
        assert_eq!(back.get("user.name"), Some(&b"A \"B\" ; # C"[..]));
        assert_eq!(back.get("remote.o \"q\\ x.url"), Some(&b"https://h/p"[..]));
        assert_eq!(back.get("branch.a.b.merge"), Some(&b"refs/heads/a.b"[..]));
        assert_eq!(back.get("gc.auto"), Some(&b"0"[..]));
        assert!(back.is_true("core.filemode"));
    }
}
