//! What happened in the sandbox, by comparing two listings.

use std::collections::{BTreeMap, BTreeSet};

use super::listing::{Entry, Listing, Type};
use crate::error::{Code, Error, Result};
use crate::plan::repo::{Kind, Manifest, names};

/// The difference between two listings. A sandbox that lies about either hides only its own changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// Regular files that are new or changed; the value says whether the owner may execute it.
    pub files: BTreeMap<Vec<u8>, bool>,
    /// Directories that are new.
    pub dirs: BTreeSet<Vec<u8>>,
    /// Symbolic links that are new or changed, with their targets.
    pub links: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What is gone, or is now of another kind.
    pub deleted: BTreeSet<Vec<u8>>,
    /// FIFOs, sockets and devices that are new.
    pub specials: BTreeSet<Vec<u8>>,
    /// Changes at or below paths that stayed on the host; not taken over.
    pub left_out: BTreeSet<Vec<u8>>,
    /// What happened below `.git`.
    pub git: GitDelta,
}

/// Changes below `.git`; paths are relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitDelta {
    /// Files that are to be fetched: new objects and refs. Nothing else of `.git` ever is.
    pub fetch: BTreeSet<Vec<u8>>,
    /// Refs files (and `packed-refs`) that are gone.
    pub deleted: BTreeSet<Vec<u8>>,
    /// Whether the index was written, which `git status` alone does too.
    pub index: bool,
    /// What `.git` itself has become.
    pub state: GitState,
}

/// What became of the `.git` directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GitState {
    /// It is a directory.
    #[default]
    Present,
    /// It was deleted: its changes are unknown, those of the working tree still count.
    Missing,
    /// It is now a file or a link: an attempt to make another git work for us.
    Replaced,
}

impl Delta {
    /// Whether nothing at all is to be taken over.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.dirs.is_empty()
            && self.links.is_empty()
            && self.deleted.is_empty()
            && self.specials.is_empty()
            && self.git == GitDelta::default()
    }

    /// The paths that are to be fetched, each ended by NUL, for `rsync --from0 --files-from=-`; relative to
    /// the top of the repository.
    pub fn files_from(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for path in self.files.keys() {
            out.extend_from_slice(path);
            out.push(0);
        }
        for path in &self.git.fetch {
            out.extend_from_slice(b".git/");
            out.extend_from_slice(path);
            out.push(0);
        }
        out
    }

    /// How many files are to be fetched.
    pub fn file_count(&self) -> usize {
        self.files.len() + self.git.fetch.len()
    }
}

/// Compares the listing after unpacking with one taken later. `after` must be complete.
pub fn diff(before: &Listing, after: &Listing, manifest: &Manifest) -> Delta {
    let mut delta = Delta::default();
    for (path, now) in &after.0 {
        let old = before.get(path);
        if old == Some(now) {
            continue;
        }
        if let Some(inner) = path.strip_prefix(b".git/") {
            changed_git(&mut delta.git, inner, now);
        } else if path != b".git" {
            changed(&mut delta, path, old, now, manifest);
        }
    }
    for path in before.0.keys() {
        match path.strip_prefix(b".git/") {
            _ if after.get(path).is_some() => {}
            Some(inner) if is_ref_file(inner) => drop(delta.git.deleted.insert(inner.to_vec())),
            Some(_) => {}
            None if path == b".git" => {}
            None => drop(delta.deleted.insert(path.clone())),
        }
    }
    delta.git.state = match (before.get(b".git"), after.get(b".git")) {
        (_, Some(e)) if e.kind == Type::Dir => GitState::Present,
        (_, Some(_)) => GitState::Replaced,
        (Some(_), None) => GitState::Missing,
        (None, None) => GitState::Present,
    };
    delta
}

fn changed(delta: &mut Delta, path: &[u8], old: Option<&Entry>, now: &Entry, manifest: &Manifest) {
    if manifest.is_left_out(path) {
        delta.left_out.insert(path.to_vec());
        return;
    }
    if old.is_some_and(|old| old.kind != now.kind) {
        delta.deleted.insert(path.to_vec());
    }
    let same_kind = old.filter(|old| old.kind == now.kind);
    match now.kind {
        Type::File => drop(delta.files.insert(path.to_vec(), now.executable())),
        // The times of a directory change with what it holds, and its mode does not travel.
        Type::Dir if same_kind.is_some() => {}
        Type::Dir => drop(delta.dirs.insert(path.to_vec())),
        Type::Link if same_kind.is_some_and(|old| old.target == now.target) => {}
        Type::Link => drop(delta.links.insert(path.to_vec(), now.target.clone())),
        Type::Special => drop(delta.specials.insert(path.to_vec())),
    }
}

fn changed_git(git: &mut GitDelta, path: &[u8], now: &Entry) {
    if path == b"index" {
        git.index = true;
    } else if now.kind == Type::File && (is_ref_file(path) || is_object_name(path)) {
        git.fetch.insert(path.to_vec());
    }
}

/// Checks the listing after unpacking against what was sent.
///
/// # Errors
/// [`Code::BootstrapFailed`] naming what did not arrive whole.
pub fn check_arrived(before: &Listing, manifest: &Manifest) -> Result<()> {
    let there = |path: &[u8], kind: &Kind, size: u64| {
        before.get(path).is_some_and(|now| match kind {
            Kind::Dir => now.kind == Type::Dir,
            Kind::Link(target) => now.kind == Type::Link && now.target == *target,
            Kind::File => now.kind == Type::File && now.size == size,
        })
    };
    let files = manifest.entries.iter().filter(|e| !there(&e.path, &e.kind, e.size)).map(|e| e.path.clone());
    let git = manifest.git.iter().map(|f| ([b".git/", f.path.as_slice()].concat(), f.size()));
    let git = git.filter(|(path, size)| !there(path, &Kind::File, *size)).map(|(path, _)| path);
    let missing: Vec<Vec<u8>> = files.chain(git).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("{} paths of the repository did not arrive whole in the sandbox", missing.len());
    Err(Error::new(Code::BootstrapFailed, what)
        .detail(names::shown_list(missing.iter().map(Vec::as_slice)))
        .help("is the disk of the sandbox full, or its file system case-insensitive?"))
}

/// Whether a path relative to `.git` is part of the text that says where branches and tags stand.
pub(super) fn is_ref_file(path: &[u8]) -> bool {
    path == b"HEAD"
        || path == b"packed-refs"
        || path.starts_with(b"refs/heads/")
        || path.starts_with(b"refs/tags/")
}

/// Whether a path relative to `.git` is a loose object or a pack. An index of a pack is never taken: it would
/// say where objects are, and we compute that ourselves.
pub(super) fn is_object_name(path: &[u8]) -> bool {
    use crate::plan::repo::is_loose_object;
    if is_loose_object(path, 40) || is_loose_object(path, 64) {
        return true;
    }
    let Some(name) = path.strip_prefix(b"objects/pack/pack-").and_then(|n| n.strip_suffix(b".pack")) else {
        return false;
    };
    !name.is_empty() && name.len() <= 64 && name.iter().all(u8::is_ascii_hexdigit)
}

/// A line per kind of thing that was seen and is not taken over.
pub(super) fn notes(delta: &Delta) -> Vec<String> {
    let list =
        |paths: &BTreeSet<Vec<u8>>| names::shown_list(paths.iter().map(Vec::as_slice)).replace('\n', ", ");
    let mut notes = Vec::new();
    if !delta.specials.is_empty() {
        notes.push(format!("not taken over, since they are no files: {}", list(&delta.specials)));
    }
    if !delta.left_out.is_empty() {
        let what = list(&delta.left_out);
        notes.push(format!("not taken over, since the host's own were left out of the upload: {what}"));
    }
    if delta.git.state == GitState::Missing {
        notes.push("the agent deleted .git; commits and staged changes are as before the run".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::listing::Time;
    use crate::plan::repo::{LeftOut, Why};
    use proptest::prelude::*;

    fn entry(kind: Type, ctime: u32) -> Entry {
        let time = Time { sec: 1, nsec: ctime };
        let target = if kind == Type::Link { b"t".to_vec() } else { vec![] };
        Entry { kind, size: 1, mode: 0o644, mtime: Time { sec: 1, nsec: 0 }, ctime: time, target }
    }

    fn listing(entries: &[(&str, Type, u32)]) -> Listing {
        Listing(entries.iter().map(|(p, k, c)| (p.as_bytes().to_vec(), entry(*k, *c))).collect())
    }

    fn empty_manifest() -> Manifest {
        Manifest { entries: vec![], git: vec![], left_out: vec![], warnings: vec![], bytes: 0, index: None }
    }

    #[test]
    fn an_edit_of_equal_size_in_the_same_second_is_seen_by_its_ctime() {
        let before = listing(&[("a", Type::File, 1), ("b", Type::File, 1)]);
        let after = listing(&[("a", Type::File, 2), ("b", Type::File, 1)]);
        let delta = diff(&before, &after, &empty_manifest());
        assert_eq!(delta.files.keys().collect::<Vec<_>>(), [b"a"]);
        assert!(diff(&before, &before, &empty_manifest()).is_empty());
    }

    #[test]
    fn only_objects_and_refs_of_git_are_fetched() {
        let oid = format!(".git/objects/ab/{}", "1".repeat(38));
        let names = [
            oid.as_str(),
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/HEAD",
            ".git/refs/heads/x",
            ".git/refs/stash",
            ".git/refs/replace/y",
            ".git/info/attributes",
            ".git/objects/info/alternates",
            ".git/shallow",
            ".git/logs/HEAD",
            ".git/objects/pack/pack-1a.pack",
            ".git/objects/pack/pack-1a.idx",
            ".git/index",
            ".git/commondir",
        ];
        let mut all: Vec<_> = names.iter().map(|n| (*n, Type::File, 1)).collect();
        all.push((".git", Type::Dir, 1));
        let delta = diff(&listing(&[]), &listing(&all), &empty_manifest());
        let fetched: Vec<_> =
            delta.git.fetch.iter().map(|p| String::from_utf8_lossy(p).into_owned()).collect();
        assert_eq!(fetched, ["HEAD", &oid[5..], "objects/pack/pack-1a.pack", "refs/heads/x"]);
        assert!(delta.git.index && delta.files.is_empty());
    }

    #[test]
    fn a_replaced_or_deleted_git_directory_is_told_apart() {
        let before = listing(&[(".git", Type::Dir, 1), ("a", Type::File, 1)]);
        let state = |after: &Listing| diff(&before, after, &empty_manifest()).git.state;
        assert_eq!(state(&listing(&[(".git", Type::File, 1)])), GitState::Replaced);
        assert_eq!(state(&listing(&[(".git", Type::Link, 1)])), GitState::Replaced);
        assert_eq!(state(&listing(&[])), GitState::Missing);
        assert_eq!(state(&before), GitState::Present);
    }

    #[test]
    fn what_stayed_on_the_host_is_not_overwritten() {
        let mut manifest = empty_manifest();
        manifest.left_out.push(LeftOut { path: b"node_modules".to_vec(), why: Why::Ignored });
        let after = listing(&[
            ("node_modules", Type::Dir, 1),
            ("node_modules/x", Type::File, 1),
            ("y", Type::File, 1),
        ]);
        let delta = diff(&listing(&[]), &after, &manifest);
        assert_eq!(delta.files.keys().collect::<Vec<_>>(), [b"y"]);
        assert_eq!(delta.left_out.len(), 2);
        assert_eq!(notes(&delta).len(), 1);
    }

    proptest! {
        /// Applying the delta to the first listing gives the second one.
        #[test]
        fn the_delta_is_complete(
            a in proptest::collection::btree_map("[a-d]{1,2}", (0u8..4, 0u32..2), 0..8),
            b in proptest::collection::btree_map("[a-d]{1,2}", (0u8..4, 0u32..2), 0..8),
        ) {
            let kinds = [Type::File, Type::Dir, Type::Link, Type::Special];
            let list = |m: &std::collections::BTreeMap<String, (u8, u32)>| Listing(
                m.iter().map(|(p, (k, c))| (p.as_bytes().to_vec(), entry(kinds[*k as usize], *c))).collect());
            let (before, after) = (list(&a), list(&b));
            let delta = diff(&before, &after, &empty_manifest());
            let mut result: BTreeMap<Vec<u8>, Type> = before.0.iter().map(|(p, e)| (p.clone(), e.kind)).collect();
            for p in &delta.deleted { result.remove(p); }
            for p in delta.files.keys() { result.insert(p.clone(), Type::File); }
            for p in &delta.dirs { result.insert(p.clone(), Type::Dir); }
            for p in delta.links.keys() { result.insert(p.clone(), Type::Link); }
            for p in &delta.specials { result.insert(p.clone(), Type::Special); }
            let expected: BTreeMap<Vec<u8>, Type> = after.0.iter().map(|(p, e)| (p.clone(), e.kind)).collect();
            prop_assert_eq!(result, expected);
            for (p, e) in &after.0 {
                if e.kind == Type::File && before.get(p) != Some(e) { prop_assert!(delta.files.contains_key(p)); }
            }
        }
    }
}
