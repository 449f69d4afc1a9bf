//! The incoming directory before anything uses it: only what was asked for, only regular files and
//! directories, only names that every file system reads in one way.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::delta::{Delta, GitState, is_object_name, is_ref_file};
use super::limits::{Limits, Refusals};
use super::listing::Listing;
use super::nested::Nested;
use crate::error::{Code, Error, Result};
use crate::plan::repo::{Manifest, names};

/// Checks the names in a delta, before anything is fetched. All problems are reported at once.
///
/// # Errors
/// [`Code::ImportBlocked`] with the list.
pub fn check_names(delta: &Delta, after: &Listing, manifest: &Manifest, limits: &Limits) -> Result<()> {
    let mut refusals = Refusals::default();
    if delta.git.state == GitState::Replaced {
        refusals.say(".git is no longer a directory");
    }
    let count = delta.file_count() + delta.dirs.len() + delta.links.len();
    if count > limits.files {
        refusals.say(format!("{count} paths changed, more than {}", limits.files));
    }
    let mut bytes = 0_u64;
    for path in delta.files.keys() {
        let size = after.0.get(path).map_or(0, |entry| entry.size);
        bytes = bytes.saturating_add(size);
        if size > limits.file_bytes {
            refusals.add(path, format!("{size} bytes, more than {}", limits.file_bytes));
        }
    }
    if bytes > limits.bytes {
        refusals.say(format!("{bytes} bytes changed, more than {}", limits.bytes));
    }
    let nested = Nested::find(delta, after);
    for dir in nested.dirs() {
        refusals.add(&[dir, b"/.git"].concat(), "a git repository inside the repository");
    }
    let added = delta.files.keys().chain(&delta.dirs).chain(delta.links.keys());
    for path in added.filter(|path| !nested.holds(path)) {
        if let Err(why) = names::check(path) {
            refusals.add(path, why);
        }
    }
    let mut twins: BTreeMap<Vec<u8>, Vec<&[u8]>> = BTreeMap::new();
    for path in after.0.keys().filter(|p| !is_git(p)) {
        twins.entry(names::folded(path)).or_default().push(path);
    }
    // A pair that the host has already is its own business.
    let new = |path: &[u8]| manifest.get(path).is_none();
    for group in twins.values().filter(|g| g.len() > 1) {
        if let Some(path) = group.iter().find(|p| new(p)) {
            let other = group.iter().find(|p| *p != path).map(|p| names::shown(p)).unwrap_or_default();
            refusals.add(path, format!("differs from `{other}` only by case or trailing dots"));
        }
    }
    refusals.finish()
}

fn is_git(path: &[u8]) -> bool {
    path == b".git" || path.starts_with(b".git/")
}

/// What lies in the incoming directory.
#[derive(Debug, Clone, Default)]
pub struct Incoming {
    /// Files that arrived, relative to the top, `.git/…` included, with their sizes in bytes.
    pub files: BTreeMap<Vec<u8>, u64>,
    /// All of them together, in bytes.
    pub bytes: u64,
}

/// Walks the incoming directory and checks it against what was asked for.
///
/// # Errors
/// [`Code::ImportBlocked`] with everything that should not be there, [`Code::TransferFailed`] when files that
/// were asked for did not arrive.
pub fn incoming(dir: &Path, delta: &Delta, limits: &Limits) -> Result<Incoming> {
    let mut found = Incoming::default();
    if delta.file_count() == 0 {
        // Nothing was fetched, and nothing of the directory will be used.
        return Ok(found);
    }
    let mut refusals = Refusals::default();
    let wanted = Wanted::of(delta);
    let mut pending: Vec<Vec<u8>> = vec![Vec::new()];
    let failed = |e: &std::io::Error| Error::io("cannot read what the sandbox returned", e);
    while let Some(at) = pending.pop() {
        for item in fs_err::read_dir(dir.join(names::as_path(&at))).map_err(|e| failed(&e))? {
            let item = item.map_err(|e| failed(&e))?;
            let name = item.file_name();
            let path = if at.is_empty() {
                name.as_bytes().to_vec()
            } else {
                [&at, &b"/"[..], name.as_bytes()].concat()
            };
            let meta = item.metadata().map_err(|e| failed(&e))?;
            if meta.is_dir() {
                if wanted.dirs.contains(path.as_slice()) {
                    pending.push(path);
                } else {
                    refusals.add(&path, "a directory that was not asked for");
                }
                continue;
            }
            if let Err(why) = check_file(&path, &meta, &wanted, limits) {
                refusals.add(&path, why);
                continue;
            }
            found.bytes = found.bytes.saturating_add(meta.len());
            found.files.insert(path, meta.len());
            if found.files.len() > limits.files || found.bytes > limits.bytes {
                refusals.say(format!("more than {} files or {} bytes", limits.files, limits.bytes));
                return refusals.finish().map(|()| found);
            }
        }
    }
    refusals.finish()?;
    let missing: Vec<_> = wanted.files.iter().filter(|p| !found.files.contains_key(*p)).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let list = names::shown_list(missing.into_iter().map(Vec::as_slice));
    Err(Error::new(
        Code::TransferFailed,
        "some changed files did not arrive from the sandbox although rsync reported no failure",
    )
    .help("run it again; if it stays, look at the rsync of the image")
    .detail(list))
}

/// What was asked for, and the directories that lead there.
struct Wanted {
    files: BTreeSet<Vec<u8>>,
    dirs: BTreeSet<Vec<u8>>,
}

impl Wanted {
    fn of(delta: &Delta) -> Self {
        let git = delta.git.fetch.iter().map(|p| [b".git/", p.as_slice()].concat());
        let files: BTreeSet<Vec<u8>> = delta.files.keys().cloned().chain(git).collect();
        let dirs = files.iter().flat_map(|p| names::ancestors(p)).map(<[u8]>::to_vec).collect();
        Self { files, dirs }
    }
}

fn check_file(path: &[u8], meta: &std::fs::Metadata, wanted: &Wanted, limits: &Limits) -> Result<(), String> {
    if !meta.is_file() {
        return Err("neither a regular file nor a directory".to_owned());
    }
    if !wanted.files.contains(path) {
        return Err("a file that was not asked for".to_owned());
    }
    if meta.nlink() != 1 {
        return Err("a hard link".to_owned());
    }
    if meta.mode() & 0o6000 != 0 {
        return Err("a set-id file".to_owned());
    }
    if meta.len() > limits.file_bytes {
        return Err(format!("{} bytes, more than {}", meta.len(), limits.file_bytes));
    }
    match path.strip_prefix(b".git/") {
        Some(inner) if is_object_name(inner) => Ok(()),
        Some(inner) if is_ref_file(inner) && meta.len() <= limits.text_bytes => Ok(()),
        Some(_) => Err("not a file that is taken out of .git".to_owned()),
        None => names::check(path).map_err(|why| why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::listing::{Entry, Time, Type};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn delta(files: &[&str], git: &[&str]) -> Delta {
        let files = files.iter().map(|f| (f.as_bytes().to_vec(), false)).collect();
        let mut delta = Delta { files, ..Delta::default() };
        delta.git.fetch = git.iter().map(|f| f.as_bytes().to_vec()).collect();
        delta
    }

    type Make = fn(&Path);

    fn no_manifest() -> Manifest {
        Manifest { entries: vec![], git: vec![], left_out: vec![], warnings: vec![], bytes: 0, index: None }
    }

    fn listing(paths: &[&str]) -> Listing {
        let time = Time { sec: 1, nsec: 0 };
        let file = Entry { kind: Type::File, size: 1, mode: 0o644, mtime: time, ctime: time, target: vec![] };
        Listing(paths.iter().map(|p| (p.as_bytes().to_vec(), file.clone())).collect())
    }

    #[test]
    fn names_are_refused_all_at_once() {
        let bad = [".GIT/config", "sub/.git", "sub/.git/config", "git~1", "x/.git. "];
        let mut paths = bad.to_vec();
        paths.push("fine");
        let error = check_names(&delta(&paths, &[]), &listing(&paths), &no_manifest(), &Limits::default())
            .unwrap_err();
        assert_eq!(error.code(), Code::ImportBlocked);
        let detail = error.detail_text().unwrap();
        // A repository is one line, whatever is in it.
        let told = bad.iter().filter(|b| **b != "sub/.git/config");
        assert!(told.clone().all(|b| detail.contains(b)) && !detail.contains("fine"), "{detail}");
        assert_eq!(detail.lines().count(), told.count(), "{detail}");
    }

    #[test]
    fn case_twins_are_refused_unless_the_host_has_them() {
        let after = listing(&["Makefile", "makefile"]);
        let delta = delta(&["makefile"], &[]);
        assert!(check_names(&delta, &after, &no_manifest(), &Limits::default()).is_err());
        let mut manifest = no_manifest();
        for path in ["Makefile", "makefile"] {
            manifest.entries.push(crate::plan::repo::Entry {
                path: path.into(),
                kind: crate::plan::repo::Kind::File,
                size: 1,
                mode: 0o644,
                mtime_ns: 0,
                ctime_ns: 0,
                ino: 1,
            });
        }
        check_names(&delta, &after, &manifest, &Limits::default()).unwrap();
    }

    #[test]
    fn a_replaced_git_directory_and_too_many_files_are_refused() {
        let mut replaced = Delta::default();
        replaced.git.state = GitState::Replaced;
        assert!(check_names(&replaced, &listing(&[]), &no_manifest(), &Limits::default()).is_err());
        let few = Limits { files: 1, ..Limits::default() };
        assert!(check_names(&delta(&["a", "b"], &[]), &listing(&[]), &no_manifest(), &few).is_err());
    }

    #[test]
    fn hostile_incoming_trees_are_refused() {
        let oid = format!("objects/ab/{}", "1".repeat(38));
        let asked = delta(&["a", "d/b"], &[&oid]);
        let bad: &[(&str, Make)] = &[
            ("link", |d| symlink("/etc/passwd", d.join("a")).unwrap()),
            ("link for a directory", |d| symlink("/etc", d.join("d")).unwrap()),
            ("unasked file", |d| std::fs::write(d.join("evil"), "").unwrap()),
            ("unasked directory", |d| std::fs::create_dir(d.join("e")).unwrap()),
            ("git config", |d| {
                std::fs::create_dir(d.join(".git")).unwrap();
                std::fs::write(d.join(".git/config"), "").unwrap();
            }),
            ("fifo", |d| rustix::fs::mkfifoat(rustix::fs::CWD, d.join("a"), rustix::fs::Mode::RWXU).unwrap()),
            ("set-id", |d| {
                std::fs::write(d.join("a"), "").unwrap();
                std::fs::set_permissions(d.join("a"), std::fs::Permissions::from_mode(0o4755)).unwrap();
            }),
            ("hard link", |d| {
                std::fs::write(d.join("a"), "").unwrap();
                std::fs::create_dir(d.join("d")).unwrap();
                std::fs::hard_link(d.join("a"), d.join("d/b")).unwrap();
            }),
            ("too large", |d| std::fs::write(d.join("a"), [0; 2000]).unwrap()),
        ];
        let limits = Limits { file_bytes: 1000, ..Limits::default() };
        for (what, make) in bad {
            let dir = tempfile::tempdir().unwrap();
            make(dir.path());
            let error = incoming(dir.path(), &asked, &limits).expect_err(what);
            assert_eq!(error.code(), Code::ImportBlocked, "{what}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "abc").unwrap();
        assert_eq!(incoming(dir.path(), &asked, &limits).unwrap_err().code(), Code::TransferFailed);
        std::fs::create_dir_all(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/b"), "").unwrap();
        let full = dir.path().join(".git").join(oid);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, "xx").unwrap();
        let found = incoming(dir.path(), &asked, &limits).unwrap();
        assert_eq!((found.files.len(), found.bytes), (3, 5));
        let tiny = Limits { bytes: 4, ..limits };
        assert!(incoming(dir.path(), &asked, &tiny).is_err());
    }
}
