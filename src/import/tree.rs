//! Changing a directory tree without ever following a link in it: every component is opened relative to the
//! one before with `O_NOFOLLOW`, and a file appears under its name only when it is complete.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};

use crate::error::{Code, Error, Result};
use crate::plan::repo::names;

/// A tree that is being changed.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
    path: PathBuf,
    /// The directory that was used last; changes come sorted, so the next one is often the same.
    last: Option<(Vec<u8>, OwnedFd)>,
    as_root: bool,
    clone_files: bool,
    counter: u64,
    /// Directories that were made writable for a change, with the mode that they get back.
    opened: Vec<(OwnedFd, Mode)>,
}

/// A directory that only its owner may write, or nobody, is still the user's own: `git checkout` would stop there, and
/// half a change is worse. Its mode is as before in the end.
impl Drop for Tree {
    fn drop(&mut self) {
        for (dir, mode) in self.opened.drain(..).rev() {
            let _ = rustix::fs::fchmod(dir, mode);
        }
    }
}

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

impl Tree {
    /// Opens the tree at `path`.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let root = rustix::fs::open(path, DIR, Mode::empty())
            .map_err(|e| Error::io(&format!("cannot open {}", path.display()), &e.into()))?;
        let as_root = rustix::process::geteuid().is_root();
        Ok(Self {
            root,
            path: path.to_owned(),
            last: None,
            as_root,
            clone_files: true,
            counter: 0,
            opened: Vec::new(),
        })
    }

    fn fail(&self, what: &str, path: &[u8], error: &io::Error) -> Error {
        let place = self.path.display();
        let steered = matches!(
            rustix::io::Errno::from_io_error(error),
            Some(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR)
        );
        if steered {
            let what = format!(
                "cannot {what} `{}` in {place}: a directory on the way is not one",
                names::shown(path)
            );
            return Error::new(Code::CheckoutChanged, what);
        }
        Error::io(&format!("cannot {what} `{}` in {place}", names::shown(path)), error)
    }

    /// The directory that holds `path`, and the last name of `path`.
    fn parent<'p>(&mut self, path: &'p [u8]) -> io::Result<(&OwnedFd, &'p Path)> {
        let Some(dir) = names::parent(path) else {
            return Ok((&self.root, names::as_path(path)));
        };
        let name = names::as_path(&path[dir.len() + 1..]);
        if self.last.as_ref().is_none_or(|(at, _)| at != dir) {
            let mut fd: Option<OwnedFd> = None;
            for part in dir.split(|b| *b == b'/') {
                let from = fd.as_ref().unwrap_or(&self.root);
                fd = Some(rustix::fs::openat(from, names::as_path(part), DIR, Mode::empty())?);
            }
            self.last = fd.map(|fd| (dir.to_vec(), fd));
        }
        match &self.last {
            Some((_, fd)) => Ok((fd, name)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Does `step` in the directory of `path`, and once more with the right to write there when that is what lacks.
    fn attempt<T>(&mut self, path: &[u8], step: impl Fn(&mut Self) -> io::Result<T>) -> io::Result<T> {
        match step(self) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && self.open_up(path) => step(self),
            done => done,
        }
    }

    /// Makes the directory of `path` writable for us; `false` when it is already, or is not ours.
    fn open_up(&mut self, path: &[u8]) -> bool {
        let opened = |tree: &mut Self| -> io::Result<Option<(OwnedFd, Mode)>> {
            let (dir, _) = tree.parent(path)?;
            let mode = rustix::fs::fstat(dir)?.st_mode & 0o7777;
            if mode & 0o300 == 0o300 {
                return Ok(None);
            }
            rustix::fs::fchmod(dir, Mode::from_raw_mode(mode | 0o300))?;
            Ok(Some((rustix::io::dup(dir)?, Mode::from_raw_mode(mode))))
        };
        match opened(self) {
            Ok(Some(entry)) => {
                self.opened.push(entry);
                true
            }
            _ => false,
        }
    }

    /// Gives a file another name. `false` when it is gone, or something has taken the new name: the content is at
    /// hand in another place then.
    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<bool> {
        let step = |tree: &mut Self| -> io::Result<bool> {
            let (dir, old) = tree.parent(from)?;
            let regular = match rustix::fs::statat(dir, old, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
                Err(rustix::io::Errno::NOENT) => false,
                Err(e) => return Err(e.into()),
            };
            let old_dir = rustix::io::dup(dir)?;
            let (dir, new) = tree.parent(to)?;
            if !regular || rustix::fs::statat(dir, new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Ok(false);
            }
            rustix::fs::renameat(&old_dir, old, dir, new)?;
            Ok(true)
        };
        let both = |tree: &mut Self| tree.attempt(to, step);
        self.attempt(from, both).map_err(|e| self.fail("rename", from, &e))
    }

    /// Makes a directory; one that exists is fine.
    pub(super) fn mkdir(&mut self, path: &[u8]) -> Result<()> {
        let owner = self.as_root;
        let make = |tree: &mut Self| -> io::Result<()> {
            let (dir, name) = tree.parent(path)?;
            match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) if owner => {
                    let above = rustix::fs::fstat(dir)?;
                    let flags = AtFlags::SYMLINK_NOFOLLOW;
                    rustix::fs::chownat(dir, name, Some(uid(above.st_uid)), Some(gid(above.st_gid)), flags)?;
                    Ok(())
                }
                Ok(()) => Ok(()),
                Err(rustix::io::Errno::EXIST) => {
                    let now = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let is_dir = FileType::from_raw_mode(now.st_mode) == FileType::Directory;
                    if is_dir { Ok(()) } else { Err(rustix::io::Errno::NOTDIR.into()) }
                }
                Err(e) => Err(e.into()),
            }
        };
        self.attempt(path, make).map_err(|e| self.fail("make the directory", path, &e))
    }

    /// Puts the content of `source` at `path`, replacing a file or link there. Of the mode only the right to
    /// execute follows `executable`; owner and group stay, and a new file of root goes to the owner of its
    /// directory.
    pub(super) fn write(&mut self, path: &[u8], source: &Path, executable: bool) -> Result<()> {
        let temporary = self.temporary();
        let clone_files = self.clone_files;
        let as_root = self.as_root;
        let put = |tree: &mut Self| -> io::Result<bool> {
            let from =
                rustix::fs::open(source, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            let mut from = File::from(from);
            let (dir, name) = tree.parent(path)?;
            let old = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    Some(stat).filter(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile)
                }
                Err(rustix::io::Errno::NOENT) => None,
                Err(e) => return Err(e.into()),
            };
            let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut to = File::from(rustix::fs::openat(dir, temporary.as_str(), flags, mode)?);
            let finish = || -> io::Result<bool> {
                let cloned = clone_files && reflink_copy::reflink_file(&from, &to).is_ok();
                if !cloned {
                    io::copy(&mut from, &mut to)?;
                }
                let owner = match &old {
                    Some(old) => Some((old.st_uid, old.st_gid)),
                    None if as_root => rustix::fs::fstat(dir).ok().map(|s| (s.st_uid, s.st_gid)),
                    None => None,
                };
                let born = rustix::fs::fstat(&to)?;
                if let Some((u, g)) = owner.filter(|o| *o != (born.st_uid, born.st_gid)) {
                    // Not fatal: an ordinary user cannot give a file away.
                    let _ = rustix::fs::fchown(&to, Some(uid(u)), Some(gid(g)));
                }
                if let Some(old) = &old {
                    let mode = with_execute(old.st_mode & 0o777, executable);
                    rustix::fs::fchmod(&to, Mode::from_raw_mode(mode))?;
                }
                rustix::fs::renameat(dir, temporary.as_str(), dir, name)?;
                Ok(cloned)
            };
            let mut finish = finish;
            let result = finish();
            if result.is_err() {
                let _ = rustix::fs::unlinkat(dir, temporary.as_str(), AtFlags::empty());
            }
            result
        };
        let cloned = self.attempt(path, put).map_err(|e| self.fail("write", path, &e))?;
        self.clone_files = cloned;
        Ok(())
    }

    /// Gives or takes the right to execute.
    pub(super) fn set_executable(&mut self, path: &[u8], executable: bool) -> Result<()> {
        let set = |tree: &mut Self| -> io::Result<()> {
            let (dir, name) = tree.parent(path)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::openat(dir, name, flags, Mode::empty())?;
            let mode = rustix::fs::fstat(&file)?.st_mode & 0o7777;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(with_execute(mode, executable)))?;
            Ok(())
        };
        set(self).map_err(|e| self.fail("set the mode of", path, &e))
    }

    /// Puts a link at `path`, replacing a file or link there.
    pub(super) fn link(&mut self, path: &[u8], target: &[u8]) -> Result<()> {
        let temporary = self.temporary();
        let put = |tree: &mut Self| -> io::Result<()> {
            let (dir, name) = tree.parent(path)?;
            rustix::fs::symlinkat(std::ffi::OsStr::from_bytes(target), dir, temporary.as_str())?;
            rustix::fs::renameat(dir, temporary.as_str(), dir, name).inspect_err(|_| {
                let _ = rustix::fs::unlinkat(dir, temporary.as_str(), AtFlags::empty());
            })?;
            Ok(())
        };
        self.attempt(path, put).map_err(|e| self.fail("make the link", path, &e))
    }

    /// Removes a file or link; one that is gone is fine.
    pub(super) fn unlink(&mut self, path: &[u8]) -> Result<()> {
        let remove = |tree: &mut Self| -> io::Result<()> {
            let (dir, name) = tree.parent(path)?;
            rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
            Ok(())
        };
        match self.attempt(path, remove) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.fail("remove", path, &e)),
            _ => Ok(()),
        }
    }

    /// Removes a directory. Returns whether it is gone; one that still holds something stays.
    pub(super) fn rmdir(&mut self, path: &[u8]) -> Result<bool> {
        self.last = None;
        let remove = |tree: &mut Self| -> io::Result<()> {
            let (dir, name) = tree.parent(path)?;
            rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?;
            Ok(())
        };
        match self.attempt(path, remove) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(e) => Err(self.fail("remove the directory", path, &e)),
        }
    }

    fn temporary(&mut self) -> String {
        self.counter += 1;
        format!(".fullsend-{}-{}.tmp", std::process::id(), self.counter)
    }
}

fn uid(raw: u32) -> Uid {
    Uid::from_raw(raw)
}

fn gid(raw: u32) -> Gid {
    Gid::from_raw(raw)
}

/// `mode` with the right to execute given to whoever may read, or taken from all.
fn with_execute(mode: u32, executable: bool) -> u32 {
    match (mode & 0o100 != 0, executable) {
        (false, true) => mode | ((mode & 0o444) >> 2),
        (true, false) => mode & !0o111,
        _ => mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn setup() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (top, source) = (dir.path().join("top"), dir.path().join("source"));
        std::fs::create_dir(&top).unwrap();
        std::fs::write(&source, "new").unwrap();
        (dir, top, source)
    }

    #[test]
    fn a_link_on_the_way_is_never_followed() {
        let (dir, top, source) = setup();
        let outside = dir.path().join("outside");
        std::fs::create_dir_all(outside.join("d")).unwrap();
        std::fs::write(outside.join("f"), "old").unwrap();
        symlink(&outside, top.join("l")).unwrap();
        let mut tree = Tree::open(&top).unwrap();
        for error in [
            tree.write(b"l/f", &source, false).unwrap_err(),
            tree.mkdir(b"l/new").unwrap_err(),
            tree.mkdir(b"l").unwrap_err(),
            tree.unlink(b"l/f").unwrap_err(),
            tree.rmdir(b"l/d").unwrap_err(),
            tree.link(b"l/x", b"y").unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::CheckoutChanged, "{error}");
        }
        assert_eq!(std::fs::read_to_string(outside.join("f")).unwrap(), "old");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 2);
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_not_written_through() {
        let (dir, top, source) = setup();
        let outside = dir.path().join("victim");
        std::fs::write(&outside, "old").unwrap();
        symlink(&outside, top.join("f")).unwrap();
        Tree::open(&top).unwrap().write(b"f", &source, false).unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "old");
        assert!(top.join("f").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn a_hard_link_elsewhere_keeps_its_content_and_the_mode_only_gains_execute() {
        let (dir, top, source) = setup();
        std::fs::write(top.join("f"), "old").unwrap();
        std::fs::set_permissions(top.join("f"), std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::hard_link(top.join("f"), dir.path().join("twin")).unwrap();
        let mut tree = Tree::open(&top).unwrap();
        tree.write(b"f", &source, true).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("twin")).unwrap(), "old");
        assert_eq!(top.join("f").metadata().unwrap().mode() & 0o777, 0o750);
        tree.set_executable(b"f", false).unwrap();
        assert_eq!(top.join("f").metadata().unwrap().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(&top).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let (_dir, top, source) = setup();
        std::fs::create_dir_all(top.join("f/x")).unwrap();
        assert!(Tree::open(&top).unwrap().write(b"f", &source, false).is_err());
        assert_eq!(std::fs::read_dir(&top).unwrap().count(), 1);
        assert!(!Tree::open(&top).unwrap().rmdir(b"f").unwrap());
    }

    #[test]
    fn a_read_only_directory_is_opened_for_the_change_and_closed_again() {
        let (_dir, top, source) = setup();
        let mode = |path: &str| top.join(path).metadata().unwrap().mode() & 0o7777;
        std::fs::create_dir_all(top.join("ro")).unwrap();
        std::fs::write(top.join("ro/old"), "old").unwrap();
        std::fs::set_permissions(top.join("ro"), std::fs::Permissions::from_mode(0o555)).unwrap();
        let mut tree = Tree::open(&top).unwrap();
        tree.write(b"ro/new", &source, false).unwrap();
        tree.rename(b"ro/old", b"ro/older").unwrap();
        tree.unlink(b"ro/older").unwrap();
        // Root needs no right to write; the others took this way above.
        tree.open_up(b"ro/x");
        drop(tree);
        assert_eq!((mode("ro"), std::fs::read_dir(top.join("ro")).unwrap().count()), (0o555, 1));
        let mut tree = Tree::open(&top).unwrap();
        assert!(tree.open_up(b"ro/x") && !tree.open_up(b"ro/x"));
        assert_eq!(mode("ro"), 0o755);
        drop(tree);
        assert_eq!(mode("ro"), 0o555);
    }
}
