//! What is to be done to a tree so that it holds what the sandbox left: one value, carried out twice, on the
//! staged copy and on the checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::delta::Delta;
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::plan::repo::{Kind, Manifest, names};

/// How a path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// Only the right to execute it changed.
    Mode,
    /// It is a link that is new or leads elsewhere.
    Link,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the top of the repository.
    pub path: Vec<u8>,
    /// How it changed.
    pub kind: ChangeKind,
}

/// Steps, in the order in which they are taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ops {
    /// Makes room where a path changes its kind, or its case only: `true` for a directory. Deepest first.
    clear: Vec<(Vec<u8>, bool)>,
    dirs: BTreeSet<Vec<u8>>,
    /// Files of the host that get another name and keep their content: new name to old name. They are among `writes`
    /// and `deletes` too, so that both stay complete.
    renames: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Files to write, and whether they may be executed.
    pub(super) writes: BTreeMap<Vec<u8>, bool>,
    pub(super) links: BTreeMap<Vec<u8>, Vec<u8>>,
    modes: BTreeMap<Vec<u8>, bool>,
    /// Deletions: `true` for a directory. Deepest first.
    deletes: Vec<(Vec<u8>, bool)>,
}

impl Ops {
    /// Works out the steps. `links` are those that come back; every other changed link leaves the host as it
    /// is. A file whose bytes are the host's is no change, whatever its times say.
    pub(super) fn plan(
        delta: &Delta,
        manifest: &Manifest,
        links: BTreeMap<Vec<u8>, Vec<u8>>,
        incoming: &Path,
        top: &Path,
    ) -> Result<Self> {
        let mut ops = Self { dirs: delta.dirs.clone(), ..Self::default() };
        for (path, executable) in &delta.files {
            let known = manifest.get(path).filter(|e| e.kind == Kind::File);
            let same = match known {
                Some(entry) => same_content(top, incoming, path, entry.size)?,
                None => false,
            };
            if !same {
                ops.writes.insert(path.clone(), *executable);
            } else if known.is_some_and(|e| e.executable() != *executable) {
                ops.modes.insert(path.clone(), *executable);
            }
        }
        let same_link =
            |p: &[u8], t: &Vec<u8>| manifest.get(p).is_some_and(|e| e.kind == Kind::Link(t.clone()));
        ops.links = links.into_iter().filter(|(p, t)| !same_link(p, t)).collect();
        // Refused links and special files are still there in the sandbox, so nothing was deleted.
        let still_there = |p: &[u8]| {
            (delta.links.contains_key(p) && !ops.links.contains_key(p)) || delta.specials.contains(p)
        };
        // Where case makes no difference, the new name is the old one: deleting that at the end would take the new
        // content with it.
        let made = delta.files.keys().chain(&delta.dirs).chain(ops.links.keys());
        let folded: BTreeSet<Vec<u8>> =
            if delta.deleted.is_empty() { BTreeSet::new() } else { made.map(|p| names::folded(p)).collect() };
        let other_case = |p: &[u8]| {
            let twin = |p: &[u8]| !delta.files.contains_key(p) && folded.contains(&names::folded(p));
            twin(p) || names::ancestors(p).any(|a| delta.deleted.contains(a) && twin(a))
        };
        let becomes_file = |p: &[u8]| ops.writes.contains_key(p) || ops.links.contains_key(p);
        let known: Vec<_> = delta.deleted.iter().rev().filter(|p| !still_there(p)).collect();
        for path in known {
            let Some(entry) = manifest.get(path) else { continue };
            let is_dir = entry.kind == Kind::Dir;
            let step = (path.clone(), is_dir);
            let makes_room = names::ancestors(path).any(becomes_file);
            let kind = makes_room || (is_dir && becomes_file(path)) || delta.dirs.contains(path);
            if kind || (!becomes_file(path) && other_case(path)) {
                ops.clear.push(step);
            } else if !becomes_file(path) {
                ops.deletes.push(step);
            }
        }
        ops.find_renames(manifest, incoming, top)?;
        Ok(ops)
    }

    /// Finds new files that hold what a file that goes held: the size first, then the bytes.
    fn find_renames(&mut self, manifest: &Manifest, incoming: &Path, top: &Path) -> Result<()> {
        let mut gone: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
        for (path, _) in self.deletes.iter().filter(|(_, dir)| !dir) {
            let entry = manifest.get(path).filter(|e| e.kind == Kind::File && e.size > 0);
            if let Some(entry) = entry {
                gone.entry(entry.size).or_default().push(path);
            }
        }
        let mut found = BTreeMap::new();
        for path in self.writes.keys().filter(|p| manifest.get(p).is_none()) {
            let new = incoming.join(names::as_path(path));
            let Ok(size) = new.symlink_metadata().map(|m| m.size()) else { continue };
            let Some(candidates) = gone.get_mut(&size) else { continue };
            // The bytes of a few are compared, not of a thousand files of one size.
            for at in (0..candidates.len().min(8)).rev() {
                if same_bytes(&top.join(names::as_path(candidates[at])), &new, size)? {
                    found.insert(path.clone(), candidates.swap_remove(at).to_vec());
                    break;
                }
            }
        }
        self.renames = found;
        Ok(())
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Every path that is added, changed or deleted.
    pub(super) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        let removed = self.clear.iter().chain(&self.deletes).map(|(p, _)| p);
        let made =
            self.dirs.iter().chain(self.writes.keys()).chain(self.links.keys()).chain(self.modes.keys());
        removed.chain(made).map(Vec::as_slice)
    }

    /// Files that are new or have new content.
    pub(super) fn writes(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.writes.keys()
    }

    /// Paths of files and links that are only removed.
    pub(super) fn removed(&self) -> impl Iterator<Item = &[u8]> {
        self.clear.iter().chain(&self.deletes).filter(|(_, dir)| !dir).map(|(p, _)| p.as_slice())
    }

    /// Files of which only the right to execute changes.
    pub(super) fn modes(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.modes.iter().map(|(p, x)| (p.as_slice(), *x))
    }

    /// The right to execute that a file of unchanged content gets.
    pub(super) fn mode_of(&self, path: &[u8]) -> Option<bool> {
        self.modes.get(path).copied()
    }

    /// The change of each path, sorted by path.
    pub(super) fn changes(&self, manifest: &Manifest) -> Vec<Change> {
        let mut out: BTreeMap<&[u8], ChangeKind> = self.removed().map(|p| (p, ChangeKind::Deleted)).collect();
        for path in self.writes.keys() {
            let old = manifest.get(path).is_some_and(|e| e.kind != Kind::Dir);
            out.insert(path, if old { ChangeKind::Modified } else { ChangeKind::Added });
        }
        out.extend(self.links.keys().map(|p| (p.as_slice(), ChangeKind::Link)));
        out.extend(self.modes.keys().map(|p| (p.as_slice(), ChangeKind::Mode)));
        out.into_iter().map(|(path, kind)| Change { path: path.to_vec(), kind }).collect()
    }

    /// Paths at which `top` holds something that the manifest does not know and that a step would hit.
    pub(super) fn conflicts(&self, top: &Path, manifest: &Manifest) -> Vec<Vec<u8>> {
        let cleared: BTreeSet<&[u8]> = self.clear.iter().map(|(p, _)| p.as_slice()).collect();
        let cleared_folded: BTreeSet<Vec<u8>> = cleared.iter().map(|p| names::folded(p)).collect();
        let look = |path: &[u8]| top.join(names::as_path(path)).symlink_metadata().ok();
        let unknown = |path: &[u8]| {
            manifest.get(path).is_none()
                && !names::ancestors(path).any(|a| cleared.contains(a))
                // Where case makes no difference, this is what makes room.
                && !cleared_folded.contains(&names::folded(path))
        };
        let mut found: Vec<Vec<u8>> = Vec::new();
        for path in self.writes.keys().chain(self.links.keys()).filter(|p| unknown(p)) {
            if look(path).is_some() {
                found.push(path.clone());
            }
        }
        for path in self.dirs.iter().filter(|p| unknown(p)) {
            if look(path).is_some_and(|m| !m.is_dir()) {
                found.push(path.clone());
            }
        }
        for (dir, _) in self.clear.iter().filter(|(_, is_dir)| *is_dir) {
            let Ok(list) = std::fs::read_dir(top.join(names::as_path(dir))) else { continue };
            for item in list.flatten() {
                let path = [dir.as_slice(), b"/", names::as_bytes(item.file_name().as_ref())].concat();
                if !cleared.contains(path.as_slice()) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Carries the steps out: room and directories first, then renames, what is new, modes, and deletions last.
    pub(super) fn run(&self, top: &Path, incoming: &Path) -> Result<()> {
        self.run_counted(top, incoming, &mut 0)
    }

    /// The same; `done` counts the steps that were taken, also of a run that fails.
    pub(super) fn run_counted(&self, top: &Path, incoming: &Path, done: &mut usize) -> Result<()> {
        let mut tree = Tree::open(top)?;
        let remove = |tree: &mut Tree, steps: &[(Vec<u8>, bool)], done: &mut usize| -> Result<()> {
            for (path, _) in steps.iter().filter(|(_, dir)| !dir) {
                tree.unlink(path)?;
                *done += 1;
            }
            // A directory that still holds files of the host stays.
            for (path, _) in steps.iter().filter(|(_, dir)| *dir) {
                *done += usize::from(tree.rmdir(path)?);
            }
            Ok(())
        };
        remove(&mut tree, &self.clear, done)?;
        for path in &self.dirs {
            tree.mkdir(path)?;
            *done += 1;
        }
        let mut renamed: BTreeSet<&[u8]> = BTreeSet::new();
        for (path, old) in &self.renames {
            if tree.rename(old, path)? {
                renamed.insert(path);
            }
        }
        for (path, executable) in &self.writes {
            if renamed.contains(path.as_slice()) {
                tree.set_executable(path, *executable)?;
                continue;
            }
            tree.write(path, &incoming.join(names::as_path(path)), *executable)?;
            *done += 1;
        }
        for (path, target) in &self.links {
            tree.link(path, target)?;
            *done += 1;
        }
        for (path, executable) in &self.modes {
            tree.set_executable(path, *executable)?;
            *done += 1;
        }
        remove(&mut tree, &self.deletes, done)
    }

    /// The free space that the steps need at `top`, in bytes: files grow one by one, each beside the one that it
    /// replaces.
    pub(super) fn space(&self, top: &Path, incoming: &Path) -> u64 {
        let size = |dir: &Path, path: &[u8]| {
            dir.join(names::as_path(path)).symlink_metadata().map_or(0, |m| m.len())
        };
        let (mut new, mut old, mut largest) = (0_u64, 0_u64, 0);
        for path in self.writes.keys() {
            let bytes = size(incoming, path);
            (new, old, largest) = (new + bytes, old + size(top, path), largest.max(bytes));
        }
        new.saturating_sub(old).max(largest)
    }
}

/// Whether the host's file and the incoming one hold the same bytes.
fn same_content(top: &Path, incoming: &Path, path: &[u8], size: u64) -> Result<bool> {
    same_bytes(&top.join(names::as_path(path)), &incoming.join(names::as_path(path)), size)
}

/// Whether `old`, which had `size` bytes, and what the sandbox returned as `new` hold the same bytes.
fn same_bytes(old: &Path, new: &Path, size: u64) -> Result<bool> {
    let failed = |e: &std::io::Error| Error::io("cannot read what the sandbox returned", e);
    let mut new = fs_err::File::open(new).map_err(|e| failed(&e))?;
    if new.metadata().map_err(|e| failed(&e))?.size() != size {
        return Ok(false);
    }
    let regular = old.symlink_metadata().is_ok_and(|m| m.is_file() && m.size() == size);
    let Ok(mut old) = std::fs::File::open(old) else { return Ok(false) };
    if !regular {
        return Ok(false);
    }
    let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let n = new.read(&mut a).map_err(|e| failed(&e))?;
        if n == 0 {
            return Ok(true);
        }
        if old.read_exact(&mut b[..n]).is_err() || a[..n] != b[..n] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::repo::Entry;

    fn manifest(files: &[&str], dirs: &[&str]) -> Manifest {
        let entry = |path: &&str, kind: Kind| Entry {
            path: path.as_bytes().to_vec(),
            kind,
            size: 1,
            mode: 0o644,
            mtime_ns: 0,
            ctime_ns: 0,
            ino: 1,
        };
        let mut entries: Vec<_> = files.iter().map(|p| entry(p, Kind::File)).collect();
        entries.extend(dirs.iter().map(|p| entry(p, Kind::Dir)));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Manifest { entries, git: vec![], left_out: vec![], warnings: vec![], bytes: 0, index: None }
    }

    fn set(paths: &[&str]) -> BTreeSet<Vec<u8>> {
        paths.iter().map(|p| p.as_bytes().to_vec()).collect()
    }

    /// On a file system where case makes no difference, a deletion at the end would take the new file with it.
    #[test]
    fn a_change_of_case_makes_room_first() {
        let host = manifest(&["Readme", "Dir/a", "gone"], &["Dir"]);
        let dir = tempfile::tempdir().unwrap();
        let delta = Delta {
            files: [("README", false), ("dir/a", false)].map(|(p, x)| (p.as_bytes().to_vec(), x)).into(),
            dirs: set(&["dir"]),
            deleted: set(&["Readme", "Dir", "Dir/a", "gone"]),
            ..Delta::default()
        };
        let ops = Ops::plan(&delta, &host, BTreeMap::new(), dir.path(), dir.path()).unwrap();
        let cleared: Vec<_> = ops.clear.iter().map(|(p, _)| names::shown(p)).collect();
        assert_eq!(cleared, ["Readme", "Dir/a", "Dir"]);
        assert_eq!(ops.deletes, [(b"gone".to_vec(), false)]);
        // What lies there under the other case is what was uploaded, and no conflict.
        std::fs::write(dir.path().join("README"), "x").unwrap();
        assert_eq!(ops.conflicts(dir.path(), &host), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_file_that_keeps_its_content_is_renamed_with_all_that_is_the_hosts() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let (top, incoming) = (dir.path().join("top"), dir.path().join("incoming"));
        for d in [top.join("d"), incoming.join("e")] {
            std::fs::create_dir_all(d).unwrap();
        }
        std::fs::write(top.join("d/a"), "1").unwrap();
        std::fs::write(top.join("d/b"), "2").unwrap();
        std::fs::set_permissions(top.join("d/a"), std::fs::Permissions::from_mode(0o640)).unwrap();
        for (name, text) in [("e/x", "1"), ("e/y", "1"), ("z", "3")] {
            std::fs::write(incoming.join(name), text).unwrap();
        }
        let inode = top.join("d/a").metadata().unwrap().ino();
        let delta = Delta {
            files: [("e/x", true), ("e/y", false), ("z", false)]
                .map(|(p, x)| (p.as_bytes().to_vec(), x))
                .into(),
            dirs: set(&["e"]),
            deleted: set(&["d", "d/a", "d/b"]),
            ..Delta::default()
        };
        let host = manifest(&["d/a", "d/b"], &["d"]);
        let ops = Ops::plan(&delta, &host, BTreeMap::new(), &incoming, &top).unwrap();
        assert_eq!(ops.renames, BTreeMap::from([(b"e/x".to_vec(), b"d/a".to_vec())]));
        ops.run(&top, &incoming).unwrap();
        let moved = top.join("e/x").metadata().unwrap();
        assert_eq!((moved.ino(), moved.mode() & 0o777), (inode, 0o750));
        assert_eq!(std::fs::read(top.join("e/y")).unwrap(), b"1");
        assert!(!top.join("d").exists());
    }
}
