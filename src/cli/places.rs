//! Whether what the command line names as a destination can be written, before a run spends an hour to find out.

use std::path::Path;

use crate::error::{Code, Error, Result};

/// A file that will be written: its directory exists, and it is no directory itself.
pub(super) fn file(option: &str, path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(refused(option, path, "it is a directory").help("name a file"));
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !parent.is_dir() {
        let why = format!("there is no directory {}", parent.display());
        return Err(refused(option, path, &why).help("create the directory, or name a file in another one"));
    }
    writable(option, path, parent)
}

/// A directory that will be created when it is missing.
pub(super) fn directory(option: &str, path: &Path) -> Result<()> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let Some(there) = absolute.ancestors().find(|dir| dir.symlink_metadata().is_ok()) else { return Ok(()) };
    if !there.is_dir() {
        let why = format!("{} is not a directory", there.display());
        return Err(refused(option, path, &why).help("name a directory"));
    }
    writable(option, path, there)
}

/// Tried, not asked: rights do not say that a file system takes files.
fn writable(option: &str, path: &Path, dir: &Path) -> Result<()> {
    tempfile::tempfile_in(dir).map(drop).map_err(|error| {
        let why = format!("{} cannot be written: {}", dir.display(), plain(&error));
        refused(option, path, &why).help("correct its rights, or name another place")
    })
}

/// The words of the system without the name of the file that was tried.
fn plain(error: &std::io::Error) -> String {
    error.raw_os_error().map(std::io::Error::from_raw_os_error).as_ref().unwrap_or(error).to_string()
}

fn refused(option: &str, path: &Path, why: &str) -> Error {
    Error::new(Code::Usage, format!("{option} {}: {why}", path.display()))
}
