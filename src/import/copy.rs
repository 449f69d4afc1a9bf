//! A copy of the host's checkout: shared blocks where the file system can, real copies elsewhere, hard links
//! never (a write through one would reach the checkout).

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use crate::error::{Error, Result};
use crate::plan::repo::{Entry, Kind, Manifest, Why, names};

/// Copies the working tree at `top` to `to`, which exists and is empty. What was left out of the upload comes
/// too, since it is the host's own; `.git` directories, special files and our own output do not.
pub(super) fn tree(top: &Path, manifest: &Manifest, to: &Path) -> Result<()> {
    let mut copier = Copier { reflink: true };
    let failed = |e: &io::Error| Error::io("cannot copy the checkout", e);
    for Entry { path, kind, mode, .. } in &manifest.entries {
        copier.one(top, to, path, kind, *mode).map_err(|e| failed(&e))?;
    }
    for left in
        manifest.left_out.iter().filter(|l| matches!(l.why, Why::Ignored | Why::Excluded | Why::AgentConfig))
    {
        for entry in walkdir::WalkDir::new(top.join(names::as_path(&left.path))).follow_links(false) {
            let Ok(entry) = entry else { continue };
            let Ok(path) = entry.path().strip_prefix(top) else { continue };
            let path = names::as_bytes(path);
            if path.split(|b| *b == b'/').any(names::is_dot_git) {
                continue;
            }
            let kind = entry.file_type();
            let kind = if kind.is_dir() {
                Kind::Dir
            } else if kind.is_file() {
                Kind::File
            } else if let Ok(target) = std::fs::read_link(entry.path()) {
                Kind::Link(target.as_os_str().as_bytes().to_vec())
            } else {
                continue;
            };
            let mode = entry.metadata().map_or(0o755, |m| m.mode());
            copier.one(top, to, path, &kind, mode).map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}

struct Copier {
    reflink: bool,
}

impl Copier {
    fn one(&mut self, top: &Path, to: &Path, path: &[u8], kind: &Kind, mode: u32) -> io::Result<()> {
        let (from, to) = (top.join(names::as_path(path)), to.join(names::as_path(path)));
        match kind {
            Kind::Dir => {
                std::fs::create_dir(&to)?;
                // Its owner must be able to work in it.
                std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode & 0o777 | 0o700))
            }
            Kind::Link(target) => symlink(std::ffi::OsStr::from_bytes(target), &to),
            Kind::File => match self.file(&from, &to) {
                // The user deleted it meanwhile; applying will say so.
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                result => result,
            },
        }
    }

    fn file(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let meta = std::fs::symlink_metadata(from)?;
        if !meta.is_file() {
            return Ok(());
        }
        if !self.reflink || reflink_copy::reflink(from, to).is_err() {
            self.reflink = false;
            std::fs::copy(from, to)?;
        }
        let copy = std::fs::File::open(to)?;
        copy.set_permissions(std::fs::Permissions::from_mode(meta.mode() & 0o777))?;
        copy.set_times(std::fs::FileTimes::new().set_modified(meta.modified()?))
    }
}
