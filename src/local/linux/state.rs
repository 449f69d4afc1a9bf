//! The state directory: where it is, its lock, and how its files are written.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::STATE_ENV;
use super::fail::{Fail, Outcome};

/// The state directory. All of its directories have mode 0700, all files 0600.
#[derive(Debug, Clone)]
pub(super) struct State {
    root: PathBuf,
}

/// Holds the lock of the state directory until it is dropped.
#[derive(Debug)]
pub(super) struct Locked {
    _file: File,
}

impl State {
    /// Opens the state directory, creating what is missing.
    pub(super) fn open() -> Outcome<Self> {
        let root = location(
            std::env::var_os(STATE_ENV).map(PathBuf::from),
            std::env::var_os("XDG_STATE_HOME").map(PathBuf::from),
            std::env::home_dir(),
        )
        .ok_or_else(|| Fail::new(format!("no home directory; set {STATE_ENV} to an absolute path")))?;
        let state = Self { root };
        for dir in [state.sandboxes(), state.entries("providers"), state.entries("profiles")] {
            private_dirs(&dir)?;
        }
        Ok(state)
    }

    /// Waits for the lock that every change takes. It is held for moments only, never while a child runs.
    pub(super) fn lock(&self) -> Outcome<Locked> {
        let path = self.root.join("lock");
        let file = File::options().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(|e| Fail::new(format!("cannot open {}: {e}", path.display())))?;
        file.lock()?;
        Ok(Locked { _file: file })
    }

    /// Where the sandboxes are.
    pub(super) fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// The directory of one sandbox. The name was checked, or its absence of `/` and dots is checked here.
    pub(super) fn sandbox(&self, name: &str) -> PathBuf {
        self.sandboxes().join(file_name(name))
    }

    /// Where the entries of a kind (`providers`, `profiles`) are.
    pub(super) fn entries(&self, kind: &str) -> PathBuf {
        self.root.join(kind)
    }

    /// The file of an entry.
    pub(super) fn entry(&self, kind: &str, name: &str) -> PathBuf {
        self.entries(kind).join(format!("{}.json", file_name(name)))
    }

    /// All entries of a kind, by name.
    pub(super) fn all<T: DeserializeOwned>(&self, kind: &str) -> Outcome<Vec<T>> {
        let mut paths = Vec::new();
        for entry in fs_err::read_dir(self.entries(kind))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut found = Vec::new();
        for path in paths {
            found.extend(read(&path)?);
        }
        Ok(found)
    }
}

/// The state directory for these settings; relative values of the environment are not taken (XDG base
/// directory specification).
fn location(own: Option<PathBuf>, xdg: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |p: &PathBuf| p.is_absolute();
    own.filter(absolute)
        .or_else(|| xdg.filter(absolute).map(|p| p.join("fullsend/local")))
        .or_else(|| home.filter(absolute).map(|p| p.join(".local/state/fullsend/local")))
}

/// A file name for any name: bytes that are not plain are written as `%XX`.
fn file_name(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => safe.push(char::from(byte)),
            b'.' if at > 0 => safe.push('.'),
            _ => safe.extend(format!("%{byte:02X}").chars()),
        }
    }
    safe
}

/// Creates a directory and its parents with mode 0700.
pub(super) fn private_dirs(dir: &Path) -> Outcome {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| Fail::new(format!("cannot create {}: {e}", dir.display())))
}

/// Writes a file as a whole: another process sees the old content or the new one.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Outcome {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    serde_json::to_writer(&mut file, value).map_err(|e| Fail::new(e.to_string()))?;
    file.flush()?;
    file.persist(path).map_err(|e| Fail::new(e.to_string()))?;
    Ok(())
}

/// Reads a file; `None` when there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Outcome<Option<T>> {
    match fs_err::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|e| Fail::new(format!("{} is damaged", path.display())).cause(e)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_own_variable_wins_and_relative_paths_are_ignored() {
        let p = |s: &str| Some(PathBuf::from(s));
        assert_eq!(location(p("/s"), p("/x"), p("/h")), p("/s"));
        assert_eq!(location(p("s"), p("/x"), p("/h")), p("/x/fullsend/local"));
        assert_eq!(location(None, p("x"), p("/h")), p("/h/.local/state/fullsend/local"));
        assert_eq!(location(None, None, None), None);
    }

    proptest! {
        #[test]
        fn a_file_name_is_one_plain_component_and_unique(a in ".{0,12}", b in ".{0,12}") {
            let (x, y) = (file_name(&a), file_name(&b));
            prop_assert!(!x.contains('/') && !x.contains('\0') && !x.starts_with('.'));
            prop_assert_eq!(a == b, x == y);
        }
    }
}
