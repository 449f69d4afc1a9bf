//! What of `.git` goes into the sandbox: an allow-list. Refs and configuration are written anew; hooks, logs,
//! stashes, other worktrees, lock and temporary files stay on the host.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::config::reduced;
use super::discover::HostRepo;
use super::names;
use super::refs::packed_text;
use crate::error::Result;

/// Where the content of a file comes from.
#[derive(Debug, Clone)]
pub enum GitSource {
    /// A file of the host's `.git`.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// When it was changed, in seconds.
        mtime: i64,
    },
    /// A file that was made for the upload.
    Made {
        /// Its directory; removed when the last that refers to it is gone.
        dir: Arc<TempDir>,
        /// Where it is.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// Text that we wrote.
    Text(Vec<u8>),
}

/// One file of the `.git` that goes into the sandbox.
#[derive(Debug, Clone)]
pub struct GitFile {
    /// Relative to `.git`.
    pub path: Vec<u8>,
    /// Its content.
    pub source: GitSource,
}

impl GitFile {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        match &self.source {
            GitSource::File { size, .. } | GitSource::Made { size, .. } => *size,
            GitSource::Text(text) => text.len() as u64,
        }
    }
}

/// Refs of one working tree or of work in progress, which stay out.
pub(super) fn private_ref(name: &[u8]) -> bool {
    name == b"refs/stash"
        || [&b"refs/bisect/"[..], b"refs/worktree/", b"refs/rewritten/", b"refs/replace/"]
            .iter()
            .any(|p| name.starts_with(p))
}

/// The files of `.git` that travel, sorted by path, and the bytes of the index. `packs` stand for the object store
/// where they are given.
pub(super) fn collect(
    repo: &HostRepo,
    packs: Option<Vec<GitFile>>,
) -> Result<(Vec<GitFile>, Option<Vec<u8>>)> {
    let text = |path: &str, text: Vec<u8>| GitFile { path: path.into(), source: GitSource::Text(text) };
    let mut files = vec![text("HEAD", repo.head.text()), text("config", reduced(&repo.config))];
    files.push(text("packed-refs", packed_text(repo.refs.refs.iter().filter(|(n, _)| !private_ref(n)))));
    for (name, target) in &repo.refs.symbolic {
        if !private_ref(name) {
            let line = [b"ref: ", target.as_slice(), b"\n"].concat();
            files.push(GitFile { path: name.clone(), source: GitSource::Text(line) });
        }
    }
    let read = |dir: &Path, name: &str| match fs_err::read(dir.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(super::unreadable(&e)),
    };
    // The index is kept in memory as it was, to tell later whether the user has staged something meanwhile.
    let index = read(&repo.git_dir, "index")?;
    files.extend(index.clone().map(|bytes| text("index", bytes)));
    for name in ["shallow", "info/exclude"] {
        files.extend(read(&repo.common_dir, name)?.map(|bytes| text(name, bytes)));
    }
    if repo.sparse {
        let name = "info/sparse-checkout";
        files.extend(read(&repo.git_dir, name)?.map(|bytes| text(name, bytes)));
    }
    for entry in fs_err::read_dir(&repo.git_dir).map_err(|e| super::unreadable(&e))? {
        let entry = entry.map_err(|e| super::unreadable(&e))?;
        let name = entry.file_name();
        // A split index keeps most of its entries in a second file.
        if name.to_string_lossy().starts_with("sharedindex.") {
            push_file(&mut files, &repo.git_dir, names::as_bytes(name.as_ref()).to_vec());
        }
    }
    match packs {
        Some(packs) => files.extend(packs),
        None => objects(repo, &mut files),
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((files, index))
}

fn push_file(files: &mut Vec<GitFile>, dir: &Path, path: Vec<u8>) {
    let full = dir.join(names::as_path(&path));
    if let Ok(meta) = std::fs::symlink_metadata(&full)
        && meta.is_file()
    {
        let source = GitSource::File { path: full, size: meta.len(), mtime: meta.mtime() };
        files.push(GitFile { path, source });
    }
}

fn objects(repo: &HostRepo, files: &mut Vec<GitFile>) {
    for entry in walkdir::WalkDir::new(repo.common_dir.join("objects")).follow_links(false) {
        let Ok(entry) = entry else { continue };
        let Ok(path) = entry.path().strip_prefix(&repo.common_dir) else { continue };
        let path = names::as_bytes(path);
        if entry.file_type().is_file() && is_object_file(path, repo.object_format.hex_len()) {
            push_file(files, &repo.common_dir, path.to_vec());
        }
    }
}

/// Whether a path relative to `.git` is a file of the object store (temporary files are not).
fn is_object_file(path: &[u8], hex_len: usize) -> bool {
    let Some(rest) = path.strip_prefix(b"objects/") else { return false };
    if is_loose_object(path, hex_len) {
        return true;
    }
    let parts: Vec<_> = rest.split(|b| *b == b'/').collect();
    match parts.as_slice() {
        [b"pack", name] => {
            let known = [&b".pack"[..], b".idx", b".rev", b".bitmap", b".mtimes", b".promisor"];
            (name.starts_with(b"pack-") && known.iter().any(|e| name.ends_with(e)))
                || name.starts_with(b"multi-pack-index")
        }
        [b"info", b"commit-graph" | b"packs"] => true,
        [b"info", b"commit-graphs", name] => *name == b"commit-graph-chain" || name.ends_with(b".graph"),
        _ => false,
    }
}

/// Whether a path relative to `.git` names a loose object.
pub(crate) fn is_loose_object(path: &[u8], hex_len: usize) -> bool {
    let hex = |s: &[u8]| s.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    path.strip_prefix(b"objects/").is_some_and(|rest| {
        rest.len() == hex_len + 1 && rest[2] == b'/' && hex(&rest[..2]) && hex(&rest[3..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_object_store_proper_travels() {
        let loose = format!("objects/ab/{}", "c".repeat(38));
        for good in
            [&loose, "objects/pack/pack-1.pack", "objects/pack/multi-pack-index", "objects/info/commit-graph"]
        {
            assert!(is_object_file(good.as_bytes(), 40), "{good}");
        }
        for bad in [
            "objects/ab/tmp_obj_x",
            "objects/pack/tmp_pack_x",
            "objects/pack/pack-1.keep.lock",
            "objects/info/alternates",
            "objects/info/commit-graphs/tmp",
            "hooks/pre-commit",
            "objects/AB/cc",
            "objects/pack/x/pack-1.pack",
        ] {
            assert!(!is_object_file(bad.as_bytes(), 40), "{bad}");
        }
    }

    #[test]
    fn work_in_progress_refs_stay_out() {
        assert!(
            private_ref(b"refs/stash") && private_ref(b"refs/bisect/bad") && private_ref(b"refs/replace/x")
        );
        assert!(!private_ref(b"refs/heads/stash") && !private_ref(b"refs/notes/commits"));
    }
}
