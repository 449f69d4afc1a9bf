//! URLs in a harness: `https://HOST/PATH`, with `#sha256=…` the content that is meant.

use std::fmt;

/// A URL in its one form: https, host in lower case, no fragment, no query, a path that climbs nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Url {
    text: String,
    /// Bytes of `text` before the path.
    authority: usize,
}

/// A URL and the content that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Where it is.
    pub(crate) url: Url,
    /// The SHA-256 in lower-case hexadecimal, when the text says it.
    pub(crate) sha256: Option<String>,
}

/// Why a text is no usable URL, and what to do.
pub(crate) type Fault = (String, &'static str);

/// Whether a text is meant as a URL.
pub(crate) fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// The text without a fragment, for names of files; a path stays as it is.
pub(crate) fn without_fragment(text: &str) -> &str {
    if is_url(text) { text.split('#').next().unwrap_or(text) } else { text }
}

impl Reference {
    /// Reads a URL of a harness.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let (place, fragment) = match text.split_once('#') {
            Some((place, fragment)) => (place, Some(fragment)),
            None => (text, None),
        };
        let url = Url::parse(place)?;
        let sha256 = fragment.map(pin).transpose()?;
        Ok(Self { url, sha256 })
    }
}

/// `sha256=` and 64 hexadecimal digits.
fn pin(fragment: &str) -> Result<String, Fault> {
    let digest = fragment.strip_prefix("sha256=").map(str::to_ascii_lowercase);
    digest.filter(|digest| is_sha256(digest)).ok_or_else(|| {
        ("the part after `#` is not a digest".to_owned(), "write `#sha256=` and 64 hexadecimal digits")
    })
}

/// 64 lower-case hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl Url {
    /// Reads a URL without a fragment.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let fault = |why: &str, help| Err((why.to_owned(), help));
        let Some((scheme, rest)) = text.split_once("://") else {
            return fault("it is not a URL", "begin it with https://");
        };
        if !scheme.eq_ignore_ascii_case("https") {
            return fault("it is not https", "give an https URL");
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        if authority.contains('@') {
            return fault("it holds a user name or password", "remove what stands before the `@`");
        }
        if rest.contains('?') {
            return fault("it holds a query", "give a URL that names a file without `?`");
        }
        let odd =
            |c: char| c.is_whitespace() || c.is_control() || !c.is_ascii() || "\\\"<>^`{|}$#".contains(c);
        if rest.contains(odd) {
            return fault(
                "it holds a character that URLs do not have",
                "write other characters as %XX; variables are not expanded",
            );
        }
        let lower = path.to_ascii_lowercase();
        if ["%00", "%25", "%2e", "%2f", "%5c"].iter().any(|code| lower.contains(code)) {
            return fault("it hides a separator or a dot behind %", "write the path out");
        }
        let inner = path.strip_suffix('/').unwrap_or(path);
        if inner.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
            return fault("its path has `.`, `..` or an empty part", "write the path out");
        }
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(":443").unwrap_or(&authority);
        let (host, port) = split_port(authority);
        if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return fault("it has no usable host", "write https://HOST/PATH");
        }
        let start = format!("https://{authority}");
        Ok(Self { authority: start.len(), text: format!("{start}{path}") })
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host, with brackets around an IPv6 address.
    pub fn host(&self) -> &str {
        split_port(&self.text["https://".len()..self.authority]).0
    }

    /// The port.
    pub fn port(&self) -> u16 {
        split_port(&self.text["https://".len()..self.authority])
            .1
            .and_then(|port| port.parse().ok())
            .unwrap_or(443)
    }

    /// The path, beginning with `/`.
    pub fn path(&self) -> &str {
        &self.text[self.authority..]
    }

    /// The last part of the path; empty when there is none.
    pub fn name(&self) -> &str {
        self.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// The directory that holds this, without a slash at the end.
    pub(crate) fn parent(&self) -> Option<Self> {
        Self::parse(self.directory(0)?.trim_end_matches('/')).ok()
    }

    /// The URL of the directory that holds this, `up` directories above, with a slash at the end.
    fn directory(&self, up: usize) -> Option<&str> {
        let mut end = self.text.trim_end_matches('/').len();
        for _ in 0..=up {
            end = self.text[..end].rfind('/').filter(|at| *at >= self.authority)?;
        }
        Some(&self.text[..=end])
    }

    /// A relative path of a harness at this URL that is looked for from its own directory.
    pub(crate) fn beside(&self, path: &str) -> Option<String> {
        join(self.directory(0)?, path)
    }

    /// Any other relative path of a harness at this URL: `…/harness/NAME.yaml` stands in a harness directory.
    pub(crate) fn below_root(&self, path: &str) -> Option<String> {
        join(self.directory(1).or(self.directory(0))?, path)
    }
}

/// `path` below `directory`; `None` when it leaves it for another host, or at all.
fn join(directory: &str, path: &str) -> Option<String> {
    let (start, inside) = directory.split_at(directory.find("://")? + 3);
    let (host, inside) = inside.split_once('/')?;
    let joined = super::super::check::normal(&format!("{inside}{path}"))?;
    Some(format!("{start}{host}/{joined}"))
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A directory of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The URL that git fetches from.
    pub repository: Url,
    /// A commit, branch or tag.
    pub revision: String,
    /// The path in the repository, without slashes at its ends.
    pub path: String,
}

/// What a URL of a directory means: `HOST/OWNER/REPO/tree/REV/PATH`, `HOST/GROUP/PROJECT/-/tree/REV/PATH`, and the
/// raw forms of both, which is how paths of a base are resolved. A revision is one part of the path.
pub(crate) fn tree(url: &Url) -> Option<Tree> {
    let path = url.path().trim_matches('/');
    let (project, rest) = if let Some((project, rest)) = path.split_once("/-/") {
        (project.to_owned(), rest.strip_prefix("tree/").or_else(|| rest.strip_prefix("raw/"))?)
    } else {
        let mut parts = path.splitn(3, '/');
        let (owner, repository, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let raw = url.host() == "raw.githubusercontent.com";
        let rest = if raw { rest } else { rest.strip_prefix("tree/")? };
        let rest =
            rest.strip_prefix("refs/heads/").or_else(|| rest.strip_prefix("refs/tags/")).unwrap_or(rest);
        (format!("{owner}/{repository}"), rest)
    };
    let (revision, inside) = rest.split_once('/')?;
    let plain = |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains('%');
    if !plain(revision) || !plain(inside) || !plain(&project) {
        return None;
    }
    let start = match url.host() {
        "raw.githubusercontent.com" => "https://github.com",
        _ => &url.text[..url.authority],
    };
    let repository = Url::parse(&format!("{start}/{project}.git")).ok()?;
    Some(Tree { repository, revision: revision.to_owned(), path: inside.to_owned() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHA: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn one_form_for_one_place() {
        let reference =
            Reference::parse(&format!("HTTPS://Host.Example:443/A/b.md#sha256={}", SHA.to_uppercase()));
        let reference = reference.unwrap();
        assert_eq!(reference.url.as_str(), "https://host.example/A/b.md");
        assert_eq!(reference.sha256.as_deref(), Some(SHA));
        let url = Url::parse("https://[::1]:8443/x/").unwrap();
        assert_eq!((url.host(), url.port(), url.path(), url.name()), ("[::1]", 8443, "/x/", "x"));
        assert_eq!(Url::parse("https://h/a%20b").unwrap().name(), "a%20b");
    }

    #[test]
    fn odd_urls_are_refused() {
        for (bad, why) in [
            ("http://h/x", "not https"),
            ("ftp://h/x", "not https"),
            ("https://u:p@h/x", "user name"),
            ("https://h/x?token=1", "query"),
            ("https://h/../x", "`..`"),
            ("https://h/a/./x", "`.`"),
            ("https://h//x", "empty"),
            ("https://h/%2e%2E/x", "hides"),
            ("https://h/a%2fx", "hides"),
            ("https://h/a%252e", "hides"),
            ("https://h\\evil/x", "character"),
            ("https://h/a b", "character"),
            ("https://h/${X}", "character"),
            ("https:///x", "host"),
            ("https://h:99999/x", "host"),
            ("https://h/x#sha256=12", "digest"),
            ("https://h/x#md5=12", "digest"),
        ] {
            let (message, _) = Reference::parse(bad).unwrap_err();
            assert!(message.contains(why), "{bad}: {message}");
        }
    }

    #[test]
    fn relative_paths_stay_where_they_live() {
        let url = Url::parse("https://h/o/r/main/harness/a.yaml").unwrap();
        assert_eq!(url.beside("base.yaml").unwrap(), "https://h/o/r/main/harness/base.yaml");
        assert_eq!(url.beside("../x/base.yaml").unwrap(), "https://h/o/r/main/x/base.yaml");
        assert_eq!(url.below_root("agents/a.md").unwrap(), "https://h/o/r/main/agents/a.md");
        assert_eq!(url.below_root("../../../../../x"), None);
        let alone = Url::parse("https://h/a.yaml").unwrap();
        assert_eq!(alone.below_root("x").unwrap(), "https://h/x");
    }

    #[test]
    fn directories_are_trees_of_a_repository() {
        let get = |text: &str| {
            let tree = tree(&Url::parse(text).unwrap())?;
            Some(format!("{} {} {}", tree.repository, tree.revision, tree.path))
        };
        for (url, want) in [
            ("https://github.com/o/r/tree/abc/skills/x", Some("https://github.com/o/r.git abc skills/x")),
            ("https://github.com/o/r/tree/abc/skills/x/", Some("https://github.com/o/r.git abc skills/x")),
            (
                "https://raw.githubusercontent.com/o/r/abc/skills/x",
                Some("https://github.com/o/r.git abc skills/x"),
            ),
            (
                "https://raw.githubusercontent.com/o/r/refs/heads/main/s/x",
                Some("https://github.com/o/r.git main s/x"),
            ),
            ("https://h:8443/g/s/p/-/tree/v1/x", Some("https://h:8443/g/s/p.git v1 x")),
            ("https://gitlab.com/g/p/-/raw/v1/a/b", Some("https://gitlab.com/g/p.git v1 a/b")),
            ("https://github.com/o/r/blob/abc/skills/x", None),
            ("https://github.com/o/r/tree/abc", None),
            ("https://github.com/o/r/tree/-x/y", None),
            ("https://github.com/o/r", None),
        ] {
            assert_eq!(get(url).as_deref(), want, "{url}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_url_parses_to_itself(text in "https://[a-zA-Z0-9.:\\[\\]@%/\\\\#?$ -]{0,40}") {
            if let Ok(url) = Url::parse(&text) {
                prop_assert_eq!(&Url::parse(url.as_str()).unwrap(), &url);
                prop_assert!(!url.host().contains('@') && !url.path().contains("/../"));
            }
        }
    }
}
