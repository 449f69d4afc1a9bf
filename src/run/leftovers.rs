//! Directories on this host that a dead run has left.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::journal::Entry;

/// In this phase the staged tree may be the only whole copy of the agent's work: the checkout is being changed.
const APPLY: &str = "apply";

/// What became of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was removed.
    Removed(PathBuf),
    /// It stays, and this is why.
    Left(PathBuf, String),
    /// It should have gone, and this is what happened.
    Failed(PathBuf, String),
}

/// The directories of a dead run that may go, and those that stay with the reason; nothing is touched.
pub(crate) fn look(entry: &Entry) -> Vec<(PathBuf, Option<String>)> {
    let there = entry.dirs.iter().filter(|dir| std::fs::symlink_metadata(dir).is_ok());
    there.map(|dir| (dir.clone(), objection(entry, dir))).collect()
}

/// Removes the directories that the entry of a dead run names; those that are gone are not mentioned.
pub(crate) fn remove(entry: &Entry) -> Vec<Fate> {
    let mut fates = Vec::new();
    for (dir, objection) in look(entry) {
        fates.push(match objection {
            Some(why) => Fate::Left(dir, why),
            None => match remove_tree(&dir) {
                Ok(()) => Fate::Removed(dir),
                Err(e) => Fate::Failed(dir, e.to_string()),
            },
        });
    }
    fates
}

/// Why a recorded directory must not be removed.
fn objection(entry: &Entry, dir: &Path) -> Option<String> {
    let name = dir.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let staged = name.contains(&format!(".fullsend-{}-", entry.run));
    let plain = dir.is_absolute() && !dir.components().any(|c| c == Component::ParentDir);
    if !plain || !(staged || name.starts_with("fullsend-")) {
        return Some("it is not a directory that a run makes".into());
    }
    if staged && entry.phase == APPLY {
        return Some("the run ended while it applied the result: this tree holds the agent's work".into());
    }
    match std::fs::symlink_metadata(dir) {
        Ok(meta) if meta.is_symlink() => Some("it is a symbolic link".into()),
        Ok(meta) if !meta.is_dir() => Some("it is not a directory".into()),
        Ok(meta) if meta.uid() != rustix::process::geteuid().as_raw() => {
            Some("it belongs to another user".into())
        }
        Ok(_) => None,
        Err(e) => Some(e.to_string()),
    }
}

/// Removes a tree without following a link. Directories that deny their owner are opened up first. One that
/// somebody else removes at the same time is as good.
pub(crate) fn remove_tree(dir: &Path) -> std::io::Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        match std::fs::remove_dir_all(dir) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::NotFound && std::fs::symlink_metadata(dir).is_err() => {
                return Ok(());
            }
            Err(e) if tries == 4 => return Err(e),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => open_up(dir),
            Err(_) => {}
        }
    }
}

/// Gives the owner all permissions on every directory, outer ones first.
fn open_up(dir: &Path) {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        if !std::fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let _ = std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700));
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        pending.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::tests::entry;
    use super::*;

    const RUN: &str = "0123456789ab";

    #[test]
    fn only_directories_of_the_run_go() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let names =
            ["fullsend-abc", ".repo.fullsend-0123456789ab-1", "home", "fullsend-link", "fullsend-file"];
        for name in ["fullsend-abc/deep", ".repo.fullsend-0123456789ab-1/x", "home/x", "target"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("target"), at("fullsend-link")).unwrap();
        std::os::unix::fs::symlink(at("target"), at("fullsend-abc/link")).unwrap();
        std::fs::write(at("fullsend-file"), "x").unwrap();
        let mut entry = entry(RUN);
        entry.dirs = names.iter().map(|n| at(n)).collect();
        entry.dirs.push(at("fullsend-gone"));
        entry.dirs.push(at("home/../fullsend-abc"));
        entry.dirs.push("fullsend-relative".into());
        let fates = remove(&entry);
        let removed: Vec<_> = fates.iter().filter(|f| matches!(f, Fate::Removed(_))).collect();
        assert_eq!(removed.len(), 2, "{fates:?}");
        for (name, there) in [
            ("fullsend-abc", false),
            (".repo.fullsend-0123456789ab-1", false),
            ("home/x", true),
            ("target", true),
            ("fullsend-link", true),
            ("fullsend-file", true),
        ] {
            assert_eq!(std::fs::symlink_metadata(at(name)).is_ok(), there, "{name}");
        }
        assert!(remove(&entry).iter().all(|f| matches!(f, Fate::Left(..))));
    }

    #[test]
    fn a_result_that_was_half_applied_stays() {
        let dir = tempfile::tempdir().unwrap();
        let staged = dir.path().join(format!(".repo.fullsend-{RUN}-1"));
        std::fs::create_dir(&staged).unwrap();
        let mut entry = entry(RUN);
        entry.dirs = vec![staged.clone()];
        entry.phase = "apply".into();
        assert!(matches!(&remove(&entry)[..], [Fate::Left(_, why)] if why.contains("agent's work")));
        assert!(staged.exists());
    }
}
