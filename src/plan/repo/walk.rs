//! One walk over the working tree: a `readdir` and an `lstat` per entry, nothing is opened but
//! `.gitattributes`.

use std::collections::BTreeSet;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use super::manifest::{Entry, Kind, LeftOut, Why};
use super::names;
use crate::error::{Code, Error, Result};

/// What the walk found.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) entries: Vec<Entry>,
    pub(super) left_out: Vec<LeftOut>,
    /// Directories whose `.gitattributes` names a filter.
    pub(super) filters: Vec<Vec<u8>>,
}

/// Paths that stay out, with the reason.
#[derive(Debug, Default, Clone)]
pub(super) struct Skip {
    pub(super) ignored: BTreeSet<Vec<u8>>,
    pub(super) excluded: BTreeSet<Vec<u8>>,
    pub(super) output: BTreeSet<Vec<u8>>,
    pub(super) agent_config: BTreeSet<Vec<u8>>,
}

impl Skip {
    fn why(&self, path: &[u8]) -> Option<Why> {
        if self.output.contains(path) {
            Some(Why::Output)
        } else if self.agent_config.contains(path) {
            Some(Why::AgentConfig)
        } else if self.excluded.contains(path) {
            Some(Why::Excluded)
        } else {
            self.ignored.contains(path).then_some(Why::Ignored)
        }
    }
}

/// Walks the tree below `top`; entries come sorted by path bytes, so a directory stands before what it holds.
pub(super) fn walk(top: &Path, skip: &Skip) -> Result<Walk> {
    let mut found = Walk::default();
    let mut pending: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(dir) = pending.pop() {
        let full = top.join(names::as_path(&dir));
        let list = std::fs::read_dir(&full).map_err(|e| unreadable(&dir, &e))?;
        for item in list {
            let item = item.map_err(|e| unreadable(&dir, &e))?;
            let name = item.file_name().into_vec();
            if dir.is_empty() && name == b".git" {
                continue;
            }
            let path = if dir.is_empty() { name.clone() } else { [dir.as_slice(), b"/", &name].concat() };
            if names::is_dot_git(&name) {
                found.left_out.push(LeftOut { path, why: Why::NestedGit });
                continue;
            }
            if let Some(why) = skip.why(&path) {
                found.left_out.push(LeftOut { path, why });
                continue;
            }
            let Ok(meta) = item.metadata() else { continue };
            let Some(kind) = kind_of(&item.path(), &meta)? else {
                let why = if meta.file_type().is_socket() { Why::Socket } else { Why::Special };
                found.left_out.push(LeftOut { path, why });
                continue;
            };
            match kind {
                Kind::Dir => pending.push(path.clone()),
                Kind::File if name == b".gitattributes" && names_filter(&item.path()) => {
                    found.filters.push(dir.clone());
                }
                _ => {}
            }
            found.entries.push(entry(path, kind, &meta));
        }
    }
    found.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    found.left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The kind of an entry; `None` for a FIFO, socket or device.
fn kind_of(path: &Path, meta: &std::fs::Metadata) -> Result<Option<Kind>> {
    let kind = meta.file_type();
    Ok(if kind.is_file() {
        Some(Kind::File)
    } else if kind.is_dir() {
        Some(Kind::Dir)
    } else if kind.is_symlink() {
        let target = fs_err::read_link(path).map_err(|e| Error::io("cannot read a link", &e))?;
        Some(Kind::Link(target.as_os_str().as_bytes().to_vec()))
    } else {
        None
    })
}

fn entry(path: Vec<u8>, kind: Kind, meta: &std::fs::Metadata) -> Entry {
    let ns = |sec: i64, nsec: i64| sec.saturating_mul(1_000_000_000).saturating_add(nsec);
    Entry {
        path,
        kind,
        size: meta.size(),
        mode: meta.mode() & 0o7777,
        mtime_ns: ns(meta.mtime(), meta.mtime_nsec()),
        ctime_ns: ns(meta.ctime(), meta.ctime_nsec()),
        ino: meta.ino(),
    }
}

/// Looks at one path again. `None` when it is gone or of a kind that is not uploaded.
pub(super) fn look(top: &Path, path: &[u8]) -> Option<Entry> {
    let full = top.join(names::as_path(path));
    let meta = std::fs::symlink_metadata(&full).ok()?;
    let kind = kind_of(&full, &meta).ok()??;
    Some(entry(path.to_vec(), kind, &meta))
}

fn names_filter(path: &Path) -> bool {
    let small = std::fs::metadata(path).is_ok_and(|m| m.len() < 1 << 20);
    small && std::fs::read(path).is_ok_and(|text| memchr::memmem::find(&text, b"filter=").is_some())
}

fn unreadable(dir: &[u8], error: &std::io::Error) -> Error {
    Error::new(Code::RepoInvalid, format!("cannot read the directory `{}`: {error}", names::shown(dir)))
        .help("make it readable, or name it under `upload: exclude:` in the harness")
}
