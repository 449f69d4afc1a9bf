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
    /// Makes room where a path changes its kind: `true` for a directory. Deepest first.
    clear: Vec<(Vec<u8>, bool)>,
    dirs: BTreeSet<Vec<u8>>,
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
        let becomes_file = |p: &[u8]| ops.writes.contains_key(p) || ops.links.contains_key(p);
        let known: Vec<_> = delta.deleted.iter().rev().filter(|p| !still_there(p)).collect();
        for path in known {
            let Some(entry) = manifest.get(path) else { continue };
            let is_dir = entry.kind == Kind::Dir;
            let step = (path.clone(), is_dir);
            let makes_room = names::ancestors(path).any(becomes_file);
            if makes_room || (is_dir && becomes_file(path)) || delta.dirs.contains(path) {
                ops.clear.push(step);
            } else if !becomes_file(path) {
                ops.deletes.push(step);
            }
        }
        Ok(ops)
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

    /// Paths of files and links that are only removed.
    pub(super) fn removed(&self) -> impl Iterator<Item = &[u8]> {
        self.clear.iter().chain(&self.deletes).filter(|(_, dir)| !dir).map(|(p, _)| p.as_slice())
    }

    /// Files of which only the right to execute changes.
    pub(super) fn modes(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.modes.iter().map(|(p, x)| (p.as_slice(), *x))
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
        let look = |path: &[u8]| top.join(names::as_path(path)).symlink_metadata().ok();
        let unknown = |path: &[u8]| {
            manifest.get(path).is_none() && !names::ancestors(path).any(|a| cleared.contains(a))
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

    /// Carries the steps out: room first, then what is new, deletions last.
    pub(super) fn run(&self, top: &Path, incoming: &Path) -> Result<()> {
        let mut tree = Tree::open(top)?;
        let remove = |tree: &mut Tree, steps: &[(Vec<u8>, bool)]| -> Result<()> {
            for (path, _) in steps.iter().filter(|(_, dir)| !dir) {
                tree.unlink(path)?;
            }
            // A directory that still holds files of the host stays.
            steps.iter().filter(|(_, dir)| *dir).try_for_each(|(path, _)| tree.rmdir(path).map(drop))
        };
        remove(&mut tree, &self.clear)?;
        for path in &self.dirs {
            tree.mkdir(path)?;
        }
        for (path, executable) in &self.writes {
            tree.write(path, &incoming.join(names::as_path(path)), *executable)?;
        }
        for (path, target) in &self.links {
            tree.link(path, target)?;
        }
        for (path, executable) in &self.modes {
            tree.set_executable(path, *executable)?;
        }
        remove(&mut tree, &self.deletes)
    }
}

/// Whether the host's file and the incoming one hold the same bytes.
fn same_content(top: &Path, incoming: &Path, path: &[u8], size: u64) -> Result<bool> {
    let new = incoming.join(names::as_path(path));
    let failed = |e: &std::io::Error| Error::io("cannot read what the sandbox returned", e);
    let mut new = fs_err::File::open(new).map_err(|e| failed(&e))?;
    if new.metadata().map_err(|e| failed(&e))?.size() != size {
        return Ok(false);
    }
    let old = top.join(names::as_path(path));
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
