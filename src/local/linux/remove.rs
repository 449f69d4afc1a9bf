//! Removing a tree that a stranger wrote: directories without permissions, links, deep nesting.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Removes the tree at `path`; links are removed, not followed. A missing path is fine.
///
/// A directory without write or search permission (a Go module cache has many) gets both first. No process that
/// could change the tree may be alive any more.
pub(super) fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound && !path.exists() => return Ok(()),
        Err(e) if e.kind() != ErrorKind::PermissionDenied => return Err(e),
        Err(_) => {}
    }
    open_up(path)?;
    fs::remove_dir_all(path)
}

/// Gives the owner all permissions on every directory, outer ones first.
fn open_up(path: &Path) -> io::Result<()> {
    let mut pending = vec![path.to_owned()];
    while let Some(dir) = pending.pop() {
        let meta = fs::symlink_metadata(&dir)?;
        if !meta.is_dir() {
            continue;
        }
        if meta.permissions().mode() & 0o700 != 0o700 {
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
        }
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_directories_go_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, other) = (dir.path().join("tree"), dir.path().join("other"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        fs::write(tree.join("a/b/c/file"), "x").unwrap();
        std::os::unix::fs::symlink(&other, tree.join("a/link")).unwrap();
        for sub in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(tree.join(sub), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(other.join("kept").exists());
        remove_tree(&tree).unwrap();
    }
}
