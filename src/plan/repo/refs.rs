//! Object names and refs of the files backend, read without git: two formats of a few lines each, and the
//! same parser serves the refs that come back from the sandbox.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::names;
use crate::error::{Code, Error, Result};

/// The hash of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// 40 hex digits.
    Sha1,
    /// 64 hex digits.
    Sha256,
}

impl ObjectFormat {
    /// Length of an object name in hex digits.
    pub fn hex_len(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }
    }

    /// The name of the format in git's configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// The object name that stands for "none".
    pub fn zero(self) -> Oid {
        Oid("0".repeat(self.hex_len()))
    }

    /// The name of the empty tree, which git knows without storing it.
    pub fn empty_tree(self) -> Oid {
        Oid(match self {
            Self::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned(),
            Self::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321".to_owned(),
        })
    }

    /// The name of the empty blob, which git knows without storing it.
    pub fn empty_blob(self) -> Oid {
        Oid(match self {
            Self::Sha1 => "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".to_owned(),
            Self::Sha256 => "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813".to_owned(),
        })
    }
}

/// An object name: lower-case hex of the right length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// Parses exactly the digits of an object name.
    pub fn parse(text: &[u8], format: ObjectFormat) -> Option<Self> {
        let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != format.hex_len() || !text.iter().all(hex) {
            return None;
        }
        String::from_utf8(text.to_vec()).ok().map(Self)
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for "none".
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|b| b == b'0')
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether git would accept `name` as a full ref name (the rules of git-check-ref-format(1)).
pub fn valid_ref_name(name: &[u8]) -> bool {
    let bad_byte = |b: &u8| *b < 0x20 || *b == 0x7f || b" ~^:?*[\\".contains(b);
    name.starts_with(b"refs/")
        && name.len() <= 1024
        && !name.iter().any(bad_byte)
        && !name.windows(2).any(|w| w == b".." || w == b"@{" || w == b"//")
        && !name.ends_with(b"/")
        && !name.ends_with(b".")
        && name.split(|b| *b == b'/').all(|part| {
            !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock") && part.len() <= 250
        })
}

/// The refs of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefStore {
    /// Ref to object.
    pub refs: BTreeMap<Vec<u8>, Oid>,
    /// Symbolic ref to ref, e.g. `refs/remotes/origin/HEAD`.
    pub symbolic: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What one loose ref file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loose {
    /// It names an object.
    Object(Oid),
    /// It names another ref.
    Symbolic(Vec<u8>),
}

/// Parses a loose ref file or `HEAD`. `None` when it is neither form.
pub(crate) fn parse_loose(text: &[u8], format: ObjectFormat) -> Option<Loose> {
    let text = text.trim_ascii_end();
    if let Some(target) = text.strip_prefix(b"ref:") {
        let target = target.trim_ascii_start();
        return valid_ref_name(target).then(|| Loose::Symbolic(target.to_vec()));
    }
    Oid::parse(text, format).map(Loose::Object)
}

/// Parses `packed-refs`. Lines that are not of the form are returned as they stand.
pub(crate) fn parse_packed(text: &[u8], format: ObjectFormat) -> (BTreeMap<Vec<u8>, Oid>, Vec<Vec<u8>>) {
    let (mut refs, mut odd) = (BTreeMap::new(), Vec::new());
    for line in text.split(|b| *b == b'\n') {
        if line.is_empty() || line[0] == b'#' || line[0] == b'^' {
            continue;
        }
        let parsed = line.split_at_checked(format.hex_len()).and_then(|(oid, name)| {
            let name = name.strip_prefix(b" ")?;
            let oid = Oid::parse(oid, format).filter(|oid| !oid.is_zero())?;
            valid_ref_name(name).then(|| (name.to_vec(), oid))
        });
        match parsed {
            Some((name, oid)) => drop(refs.insert(name, oid)),
            None => odd.push(line.to_vec()),
        }
    }
    (refs, odd)
}

/// The text of a `packed-refs` file with these refs.
pub(crate) fn packed_text<'a>(refs: impl IntoIterator<Item = (&'a Vec<u8>, &'a Oid)>) -> Vec<u8> {
    let mut out = b"# pack-refs with: sorted \n".to_vec();
    for (name, oid) in refs {
        out.extend_from_slice(oid.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(name);
        out.push(b'\n');
    }
    out
}

impl RefStore {
    /// Reads the refs of `git_dir`. Broken loose refs are passed over, as git does.
    pub fn read(git_dir: &Path, format: ObjectFormat) -> Result<Self> {
        let packed = match fs_err::read(git_dir.join("packed-refs")) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(Error::io("cannot read the refs", &e)),
        };
        let (refs, odd) = parse_packed(&packed, format);
        if let Some(line) = odd.first() {
            return Err(Error::new(
                Code::RepoInvalid,
                format!("packed-refs of the repository has a line that is no ref: {}", names::shown(line)),
            )
            .help("run `git fsck` in the repository"));
        }
        let mut store = Self { refs, symbolic: BTreeMap::new() };
        for entry in walkdir::WalkDir::new(git_dir.join("refs")).follow_links(false) {
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_file() {
                continue;
            }
            let Ok(name) = entry.path().strip_prefix(git_dir) else { continue };
            let name = names::as_bytes(name);
            if !valid_ref_name(name) {
                continue;
            }
            let text = fs_err::read(entry.path()).map_err(|e| Error::io("cannot read a ref", &e))?;
            match parse_loose(&text, format) {
                Some(Loose::Object(oid)) => drop(store.refs.insert(name.to_vec(), oid)),
                Some(Loose::Symbolic(target)) => {
                    store.refs.remove(name);
                    store.symbolic.insert(name.to_vec(), target);
                }
                None => {}
            }
        }
        Ok(store)
    }

    /// Parses `git for-each-ref --format=%(objectname) %(refname)%00%(symref)`. `None` for what git does not print.
    pub(super) fn parse_listing(text: &[u8], format: ObjectFormat) -> Option<Self> {
        let mut store = Self::default();
        for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            let (oid, rest) = line.split_at_checked(format.hex_len())?;
            let (name, target) = rest.strip_prefix(b" ")?.split_at(rest.iter().position(|b| *b == 0)? - 1);
            let (oid, target) = (Oid::parse(oid, format)?, &target[1..]);
            if !valid_ref_name(name) {
                continue;
            }
            if target.is_empty() {
                store.refs.insert(name.to_vec(), oid);
            } else {
                store.symbolic.insert(name.to_vec(), target.to_vec());
            }
        }
        Some(store)
    }

    /// The object a ref stands for, through symbolic refs.
    pub fn resolve(&self, name: &[u8]) -> Option<&Oid> {
        let mut name = name;
        for _ in 0..5 {
            match self.symbolic.get(name) {
                Some(target) => name = target,
                None => return self.refs.get(name),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = "1111111111111111111111111111111111111111";

    #[test]
    fn packed_refs_round_trip_and_odd_lines_are_kept_apart() {
        let text = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{A} refs/heads/a\n^{A}\n{A} refs/tags/v 1\nxx\n"
        );
        let (refs, odd) = parse_packed(text.as_bytes(), ObjectFormat::Sha1);
        assert_eq!(refs.keys().collect::<Vec<_>>(), [b"refs/heads/a"]);
        assert_eq!(odd.len(), 2);
        assert_eq!(parse_packed(&packed_text(&refs), ObjectFormat::Sha1), (refs, vec![]));
    }

    #[test]
    fn loose_refs_have_two_forms() {
        let parse = |t: &str| parse_loose(t.as_bytes(), ObjectFormat::Sha1);
        assert_eq!(parse("ref: refs/heads/main\n"), Some(Loose::Symbolic(b"refs/heads/main".to_vec())));
        assert!(matches!(parse(&format!("{A}\n")), Some(Loose::Object(_))));
        for bad in
            ["", "ref: HEAD", "ref: ../x", "ref: refs/../x", &A[1..], &format!("{A}0"), &A.replace('1', "G")]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_listing_of_git_is_read() {
        let text = format!("{A} refs/heads/a\0\n{A} refs/remotes/o/HEAD\0refs/remotes/o/a\n");
        let store = RefStore::parse_listing(text.as_bytes(), ObjectFormat::Sha1).unwrap();
        assert_eq!(store.refs.keys().collect::<Vec<_>>(), [b"refs/heads/a"]);
        assert_eq!(store.symbolic[&b"refs/remotes/o/HEAD"[..]], b"refs/remotes/o/a");
        for bad in ["x\n", &format!("{A}refs/heads/a\0\n"), &format!("{A} refs/heads/a\n")] {
            assert_eq!(RefStore::parse_listing(bad.as_bytes(), ObjectFormat::Sha1), None, "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// We accept nothing that git refuses, and refuse nothing that git accepts.
        #[test]
        fn ref_names_agree_with_git(tail in "[a@{}./~^: \\-*x\\[\\\\]{1,6}(lock)?") {
            let name = format!("refs/heads/{tail}");
            let git = std::process::Command::new("git").args(["check-ref-format", &name]).status().unwrap();
            prop_assert_eq!(valid_ref_name(name.as_bytes()), git.success(), "{}", name);
        }
    }
}
