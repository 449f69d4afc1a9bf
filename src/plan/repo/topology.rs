//! Where the parts of a repository lie: a plain `.git` directory, a linked worktree, or a directory that a
//! `.git` file names; and the object stores that it borrows from.

use std::path::{Path, PathBuf};

use super::names;
use crate::error::{Code, Error, Result};

/// How deep alternates may borrow from alternates; git gives up at the same depth.
const MOST_BORROWED: usize = 5;

/// How the working tree and the repository belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `.git` is the repository.
    Plain,
    /// `git worktree add` made it: `HEAD` and index are its own, everything else is shared.
    LinkedWorktree,
    /// `.git` is a file that names the repository: a submodule, or `git init --separate-git-dir`.
    Separate,
}

/// Where the parts lie; absolute, without links.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) kind: Kind,
    /// `HEAD`, index and `config.worktree`.
    pub(super) git_dir: PathBuf,
    /// Refs, configuration, hooks and objects. The same as `git_dir` unless the worktree is a linked one.
    pub(super) common_dir: PathBuf,
}

fn broken(what: String) -> Error {
    Error::new(Code::RepoInvalid, what).help("run `git fsck` there, or clone the repository again")
}

fn absolute(base: &Path, text: &[u8]) -> PathBuf {
    base.join(names::as_path(text.trim_ascii_end()))
}

/// Finds the parts of the repository whose working tree is at `top`.
///
/// # Errors
/// [`Code::RepoInvalid`] for what does not fit together, [`Code::Unsupported`] for a link in place of `.git`.
pub(super) fn places(top: &Path) -> Result<Places> {
    let dot_git = top.join(".git");
    let meta =
        fs_err::symlink_metadata(&dot_git).map_err(|e| Error::io("cannot look at the repository", &e))?;
    if meta.is_symlink() {
        let what = format!("{} is a link, not a directory", dot_git.display());
        let help =
            "name the directory that it leads to, or make `.git` a file: `git init --separate-git-dir`";
        return Err(Error::new(Code::Unsupported, what).help(help));
    }
    let git_dir = if meta.is_file() { named(top, &dot_git)? } else { dot_git.clone() };
    let common = match fs_err::read(git_dir.join("commondir")) {
        Ok(text) => Some(absolute(&git_dir, &text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(super::unreadable(&e)),
    };
    let (kind, common_dir) = match common {
        Some(dir) => {
            let real = dir.canonicalize().map_err(|_| moved(top, &dir))?;
            check_backlink(top, &git_dir)?;
            (Kind::LinkedWorktree, real)
        }
        None if meta.is_file() => (Kind::Separate, git_dir.clone()),
        None => (Kind::Plain, git_dir.clone()),
    };
    for (dir, part, is_dir) in
        [(&git_dir, "HEAD", false), (&common_dir, "objects", true), (&common_dir, "refs", true)]
    {
        let path = dir.join(part);
        if !path.symlink_metadata().is_ok_and(|m| if is_dir { m.is_dir() } else { m.is_file() }) {
            return Err(broken(format!("{} is missing or of the wrong kind", path.display())));
        }
    }
    for dir in [&git_dir, &common_dir] {
        // It would be uploaded as part of the working tree, with its configuration.
        if dir.strip_prefix(top).is_ok_and(|inside| !inside.starts_with(".git")) {
            let what = format!("the repository of {} lies inside its working tree", top.display());
            let help = format!("move {} elsewhere with `git init --separate-git-dir`", dir.display());
            return Err(Error::new(Code::Unsupported, what).help(help));
        }
    }
    Ok(Places { kind, git_dir, common_dir })
}

fn moved(top: &Path, missing: &Path) -> Error {
    let what = format!("{} belongs to {}, which is not there", top.display(), missing.display());
    Error::new(Code::RepoInvalid, what).help(format!(
        "run `git worktree repair {}` in the main repository, or clone the repository again",
        top.display()
    ))
}

/// The directory that a `.git` file names.
fn named(top: &Path, dot_git: &Path) -> Result<PathBuf> {
    let text = fs_err::read(dot_git).map_err(|e| super::unreadable(&e))?;
    let Some(path) = text.strip_prefix(b"gitdir: ").filter(|p| !p.trim_ascii().is_empty()) else {
        return Err(broken(format!("{} does not name a repository", dot_git.display())));
    };
    let path = absolute(top, path);
    path.canonicalize().map_err(|_| moved(top, &path))
}

/// A worktree's repository knows where the worktree is; two that name the same one would share an index.
fn check_backlink(top: &Path, git_dir: &Path) -> Result<()> {
    let text = fs_err::read(git_dir.join("gitdir")).unwrap_or_default();
    let back = absolute(git_dir, &text);
    let here = top.join(".git");
    if back.canonicalize().is_ok_and(|b| b == here) {
        return Ok(());
    }
    let what =
        format!("{} was moved or copied: its repository knows it as {}", top.display(), back.display());
    Err(Error::new(Code::RepoInvalid, what)
        .help(format!("run `git worktree repair {}` in the main repository", top.display())))
}

/// The object stores of the repository at `common_dir`: its own, then those that it borrows from.
///
/// # Errors
/// [`Code::RepoInvalid`] for one that is not there.
pub(super) fn object_stores(common_dir: &Path) -> Result<Vec<PathBuf>> {
    let mut stores = vec![common_dir.join("objects")];
    let mut depth = vec![0];
    let mut at = 0;
    while at < stores.len() {
        let (store, level) = (stores[at].clone(), depth[at]);
        at += 1;
        let file = store.join("info/alternates");
        let text = match fs_err::read(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(super::unreadable(&e)),
        };
        for line in alternates(&text) {
            let named = store.join(names::as_path(&line));
            let real = named.canonicalize().ok().filter(|p| p.is_dir());
            let Some(real) = real.filter(|_| level < MOST_BORROWED) else {
                let what = format!(
                    "{} borrows objects from {}, which is not there",
                    file.display(),
                    named.display()
                );
                return Err(Error::new(Code::RepoInvalid, what)
                    .help("bring it back, or clone the repository again without --reference or --shared"));
            };
            if !stores.contains(&real) {
                stores.push(real);
                depth.push(level + 1);
            }
        }
    }
    Ok(stores)
}

/// The entries of an `alternates` file: a line each, `#` for comments, C quotes where a line begins with one.
fn alternates(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    text.split(|b| *b == b'\n').filter(|l| !l.is_empty() && l[0] != b'#').map(unquoted)
}

/// A line without its C quotes; one that is not well quoted stands for itself, as for git.
fn unquoted(line: &[u8]) -> Vec<u8> {
    let Some(inner) = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")) else {
        return line.to_vec();
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'f') => out.push(12),
            Some(b'v') => out.push(11),
            Some(c @ (b'"' | b'\\')) => out.push(c),
            Some(d @ b'0'..=b'3') => {
                let octal = [Some(d), bytes.next(), bytes.next()];
                let value = octal.iter().try_fold(0_u8, |sum, d| {
                    let digit = d.filter(|d| matches!(d, b'0'..=b'7'))? - b'0';
                    Some(sum.wrapping_mul(8) | digit)
                });
                match value {
                    Some(value) => out.push(value),
                    None => return line.to_vec(),
                }
            }
            _ => return line.to_vec(),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stores_are_found_through_stores_once_each() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, text) in [
            ("a", "../../b/objects\n# c\n"),
            ("b", "\"../../c\\040d/objects\"\n"),
            ("c d", "../../a/objects"),
        ] {
            let info = root.join(name).join("objects/info");
            std::fs::create_dir_all(&info).unwrap();
            std::fs::write(info.join("alternates"), text).unwrap();
        }
        let found = object_stores(&root.join("a")).unwrap();
        assert_eq!(found, ["a", "b", "c d"].map(|n| root.join(n).join("objects")));
        std::fs::write(root.join("b/objects/info/alternates"), "/no/such\n").unwrap();
        let error = object_stores(&root.join("a")).unwrap_err();
        assert!(error.message().contains("/no/such") && error.help_text().contains("--reference"), "{error}");
    }

    proptest! {
        /// What we write into an alternates file, we read back.
        #[test]
        fn quoting_and_unquoting_agree(path in proptest::collection::vec(1u8..=255, 1..40)) {
            prop_assume!(!path.contains(&b'\n'));
            let mut quoted = crate::import::alternate_line(&path);
            quoted.pop();
            prop_assert_eq!(unquoted(&quoted), path);
        }
    }
}
