//! Files of the run directory that came out of the sandbox, without secrets.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};
use crate::secrets::{Registry, Searcher};

/// How many bytes may still be looked through. Looking takes time, and after a cancel there is little: the sandbox
/// has to be deleted and the verdict written before whoever sent the signal sends KILL.
#[derive(Debug)]
pub(super) struct Room {
    bytes: u64,
    /// Files that there was no room for.
    pub left_out: Vec<PathBuf>,
}

impl Room {
    /// So many bytes.
    pub(super) fn of(bytes: u64) -> Self {
        Self { bytes, left_out: Vec::new() }
    }

    /// For everything.
    pub(super) fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    fn takes(&mut self, bytes: u64) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }
}

/// Moves what was fetched into the run directory and takes the known secrets out of text. A binary file is never
/// rewritten: one that holds a known secret is left out, and that is an error. So is a secret in a file's name.
/// Small files come first, those that there is no room for are named in `room`.
pub(super) fn take(from: &Path, to: &Path, secrets: &Registry, room: &mut Room) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    secrets.check()?;
    let (mut refused, mut files) = (Vec::new(), Vec::new());
    for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
        let entry = entry
            .map_err(|e| Error::new(Code::ImportFailed, format!("cannot read what was fetched: {e}")))?;
        let below = entry.path().strip_prefix(from).unwrap_or(entry.path());
        if secrets.is_in(below.as_os_str().as_bytes()) {
            if entry.file_type().is_file() {
                refused.push(below.to_owned());
            }
            continue;
        }
        let target = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() {
            let size = fs_err::symlink_metadata(entry.path())?.len();
            files.push((size, below.to_owned(), entry.path().to_owned(), target));
        }
    }
    files.sort();
    for (size, below, path, target) in files {
        if !room.takes(size) {
            room.left_out.push(below);
            continue;
        }
        if let Some(parent) = target.parent() {
            fs_err::create_dir_all(parent)?;
        }
        if !take_file(&path, &target, secrets)? {
            refused.push(below);
        }
    }
    refused.sort();
    if refused.is_empty() { Ok(()) } else { Err(found(&refused)) }
}

/// Whether the file could be taken. A text loses its secrets; a binary file is taken as it is or not at all.
fn take_file(from: &Path, to: &Path, secrets: &Registry) -> Result<bool> {
    let bytes = fs_err::read(from)?;
    let hidden = |bytes: &[u8]| Searcher::new(secrets).push(bytes);
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
    if !text.is_some_and(|text| secrets.shows(text.as_bytes())) && !hidden(&bytes) {
        fs_err::rename(from, to).or_else(|_| fs_err::write(to, &bytes))?;
        return Ok(true);
    }
    let clean = text.map(|text| secrets.redact_document(text).0);
    match clean.filter(|clean| !hidden(clean.as_bytes())) {
        Some(clean) => fs_err::write(to, clean.as_bytes()).map(|()| true).map_err(Into::into),
        None => Ok(false),
    }
}

fn found(paths: &[PathBuf]) -> Error {
    let list: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    Error::new(Code::SecretFound, format!("a secret of this run cannot be taken out of {}", list[0]))
        .detail(list.join("\n"))
        .help("the file was left out and nothing was taken over; revoke the credential if the sandbox could send it elsewhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_room_for_everything_the_small_files_come_and_the_others_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::create_dir_all(from.join("sub")).unwrap();
        for (name, size) in [("a-large", 4000), ("b", 10), ("sub/c", 30), ("d-large", 5000), ("e", 0)] {
            std::fs::write(from.join(name), vec![b'x'; size]).unwrap();
        }
        let mut room = Room::of(4039);
        take(&from, &to, &Registry::default(), &mut room).unwrap();
        assert_eq!(room.left_out, [Path::new("a-large"), Path::new("d-large")]);
        for (name, there) in
            [("a-large", false), ("b", true), ("sub/c", true), ("d-large", false), ("e", true)]
        {
            assert_eq!(to.join(name).exists(), there, "{name}");
        }

        let mut room = Room::unlimited();
        take(&from, &to, &Registry::default(), &mut room).unwrap();
        assert!(room.left_out.is_empty());
        assert_eq!(std::fs::metadata(to.join("d-large")).unwrap().len(), 5000);
    }
}
