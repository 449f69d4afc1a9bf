//! The cache: content under its own digest, never trusted without being read again.
//!
//! `files/DIGEST/NAME` and `trees/DIGEST/NAME/…`; the name is that of the URL, because names have a meaning to agents
//! and to OpenShell. Everything is written beside its place and moved there, so that runs at the same time see all of
//! it or nothing; two that write the same content write the same.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use sha2::{Digest as _, Sha256};

use crate::error::{Code, Error, Result};
use crate::harness::remote::{Form, Need, Object};

/// The most files of a directory.
pub(super) const MAX_FILES: usize = 1000;
/// The most bytes of a directory.
pub(super) const MAX_TREE_BYTES: u64 = 50 * 1024 * 1024;

/// How old something is that nobody writes any more.
const LEFT: std::time::Duration = std::time::Duration::from_hours(24);

/// Names the cache directory.
const VARIABLE: &str = "FULLSEND_CACHE_DIR";

/// The cache directory.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

/// What the cache knows.
#[derive(Debug)]
pub(super) enum Found {
    /// It is there and what it should be.
    Verified(Object),
    /// It is not there.
    Missing,
    /// It is there and something else.
    Damaged {
        /// Its digest.
        found: String,
    },
}

impl Cache {
    /// The cache at `dir`, else `FULLSEND_CACHE_DIR`, else `fullsend` in the XDG cache directory.
    pub(super) fn open(dir: Option<&Path>) -> Result<Self> {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = dir
            .map(Path::to_owned)
            .or_else(|| var(VARIABLE))
            .or_else(|| var("XDG_CACHE_HOME").filter(|dir| dir.is_absolute()).map(|dir| dir.join("fullsend")))
            .or_else(|| std::env::home_dir().map(|home| home.join(".cache/fullsend")))
            .ok_or_else(|| {
                Error::new(Code::Io, "there is no directory for the cache")
                    .help("set HOME, or give one with --cache-dir")
            })?;
        let root = std::path::absolute(&root)?;
        for dir in ["files", "trees", "tmp"] {
            make(&root.join(dir)).map_err(|e| {
                Error::new(Code::Io, format!("the cache {} cannot be used: {e}", root.display()))
                    .help("give another directory with --cache-dir")
            })?;
        }
        let cache = Self { root };
        cache.sweep();
        Ok(cache)
    }

    /// Removes what processes left that were killed while they wrote.
    fn sweep(&self) {
        for entry in std::fs::read_dir(self.root.join("tmp")).into_iter().flatten().flatten() {
            let age =
                entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > LEFT) {
                let path = entry.path();
                let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
            }
        }
    }

    /// A new directory for what is not complete yet.
    pub(super) fn scratch(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix("part-").tempdir_in(self.root.join("tmp"))
    }

    /// Looks for something and reads all of it.
    pub(super) fn find(&self, need: &Need) -> Found {
        let Some(sha256) = &need.sha256 else { return Found::Missing };
        let home = self.home(need.form, sha256);
        let path = home.join(need.url.name());
        let read = match need.form {
            Form::File if path.is_file() => digest_of(&path).map(|digest| (digest, Vec::new())),
            // The same content may have come from a URL with another name.
            Form::File => return self.sibling(&home, need, sha256),
            Form::Tree if path.is_dir() => list(&path).map(|files| (tree_digest(&files), files)),
            Form::Tree => return Found::Missing,
        };
        match read {
            Ok((found, files)) if found == *sha256 => {
                object(path, found, files).map_or(Found::Missing, Found::Verified)
            }
            Ok((found, _)) => Found::Damaged { found },
            Err(error) => Found::Damaged { found: format!("nothing readable ({error})") },
        }
    }

    fn sibling(&self, home: &Path, need: &Need, sha256: &str) -> Found {
        let others = std::fs::read_dir(home).into_iter().flatten().filter_map(std::result::Result::ok);
        let content =
            others.filter_map(|entry| std::fs::read(entry.path()).ok()).find(|c| digest(c) == sha256);
        match content.map(|content| self.store_file(need, &content)) {
            Some(Ok(object)) => Found::Verified(object),
            _ => Found::Missing,
        }
    }

    /// Keeps a file.
    pub(super) fn store_file(&self, need: &Need, content: &[u8]) -> io::Result<Object> {
        use io::Write as _;
        let sha256 = digest(content);
        let home = self.home(Form::File, &sha256);
        make(&home)?;
        let path = home.join(need.url.name());
        let mut file = tempfile::NamedTempFile::new_in(self.root.join("tmp"))?;
        file.write_all(content)?;
        file.as_file().set_permissions(mode(content))?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        object(path, sha256, Vec::new()).ok_or_else(not_utf8)
    }

    /// Keeps a directory: `from`, which must be inside a [`Self::scratch`], is moved.
    pub(super) fn store_tree(&self, need: &Need, from: &Path) -> io::Result<Object> {
        let files = list(from)?;
        for (file, _) in &files {
            let path = from.join(file);
            std::fs::set_permissions(&path, mode(&std::fs::read(&path)?))?;
        }
        let sha256 = tree_digest(&files);
        let home = self.home(Form::Tree, &sha256);
        make(&home)?;
        let path = home.join(need.url.name());
        // A directory cannot take the place of one that is not empty. Another run may have put the same one there in
        // the meantime; one that is damaged makes room.
        for _ in 0..3 {
            if std::fs::rename(from, &path).is_ok() {
                break;
            }
            if list(&path).is_ok_and(|found| found == files) {
                break;
            }
            let away = self.scratch()?;
            let _ = std::fs::rename(&path, away.path().join("old"));
        }
        if list(&path)? != files {
            return Err(io::Error::other(format!("{} changes while it is written", path.display())));
        }
        object(path, sha256, files).ok_or_else(not_utf8)
    }

    fn home(&self, form: Form, sha256: &str) -> PathBuf {
        let kind = match form {
            Form::File => "files",
            Form::Tree => "trees",
        };
        self.root.join(kind).join(sha256)
    }
}

fn object(path: PathBuf, sha256: String, files: Vec<(String, String)>) -> Option<Object> {
    Some(Object { path: Utf8PathBuf::from_path_buf(path).ok()?, sha256, files })
}

fn not_utf8() -> io::Error {
    io::Error::other("its path is not UTF-8")
}

fn make(dir: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Whether a file can be executed follows from its content, so that the digest covers it.
fn mode(content: &[u8]) -> std::fs::Permissions {
    let program = content.starts_with(b"#!") || content.starts_with(b"\x7fELF");
    std::fs::Permissions::from_mode(if program { 0o700 } else { 0o600 })
}

/// The SHA-256 in lower-case hexadecimal.
pub(super) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn digest_of(path: &Path) -> io::Result<String> {
    std::fs::read(path).map(|content| digest(&content))
}

/// The files of a directory with their digests, sorted by path; only regular files and directories may be there.
pub(super) fn list(dir: &Path) -> io::Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    let mut bytes = 0;
    for entry in walkdir::WalkDir::new(dir).min_depth(1) {
        let entry = entry?;
        let path = entry.path();
        let inside = path.strip_prefix(dir).map_err(io::Error::other)?;
        let name = inside.to_str().ok_or_else(|| io::Error::other("a name in it is not UTF-8"))?;
        if entry.file_type().is_dir() {
            continue;
        }
        if !entry.file_type().is_file() {
            return Err(io::Error::other(format!("`{name}` in it is neither a file nor a directory")));
        }
        bytes += entry.metadata()?.len();
        if out.len() >= MAX_FILES || bytes > MAX_TREE_BYTES {
            let limit = format!("it has more than {MAX_FILES} files or {MAX_TREE_BYTES} bytes");
            return Err(io::Error::other(limit));
        }
        out.push((name.to_owned(), digest_of(path)?));
    }
    out.sort();
    Ok(out)
}

/// The digest of a directory: of the lines `PATH:DIGEST`, sorted, as the format's first implementation has it.
pub(super) fn tree_digest(files: &[(String, String)]) -> String {
    let mut lines: Vec<String> = files.iter().map(|(path, sha256)| format!("{path}:{sha256}")).collect();
    lines.sort();
    digest(format!("{}\n", lines.join("\n")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::remote::Url;

    fn need(url: &str, form: Form, sha256: &str) -> Need {
        Need { url: Url::parse(url).unwrap(), form, sha256: Some(sha256.to_owned()) }
    }

    #[test]
    fn what_is_kept_is_found_and_what_was_changed_is_not_used() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(temp.path())).unwrap();
        let sha = digest(b"#!/bin/sh\n");
        let asked = need("https://h/x/run.sh", Form::File, &sha);
        assert!(matches!(cache.find(&asked), Found::Missing));
        let kept = cache.store_file(&asked, b"#!/bin/sh\n").unwrap();
        let Found::Verified(found) = cache.find(&asked) else { panic!("it is not found") };
        assert_eq!(found, kept);
        assert_eq!(std::fs::metadata(&kept.path).unwrap().permissions().mode() & 0o777, 0o700);
        // The same content under another name.
        let Found::Verified(other) = cache.find(&need("https://h/other.sh", Form::File, &sha)) else {
            panic!()
        };
        assert_eq!(other.path.file_name(), Some("other.sh"));
        std::fs::write(&kept.path, "#!/bin/sh\nevil\n").unwrap();
        let Found::Damaged { found } = cache.find(&asked) else { panic!("the change is not seen") };
        assert_eq!(found, digest(b"#!/bin/sh\nevil\n"));
        cache.store_file(&asked, b"#!/bin/sh\n").unwrap();
        assert!(matches!(cache.find(&asked), Found::Verified(_)));
    }

    #[test]
    fn a_damaged_directory_makes_room() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(temp.path())).unwrap();
        let store = |asked: &Need| {
            let scratch = cache.scratch().unwrap();
            let dir = scratch.path().join("d");
            std::fs::create_dir_all(dir.join("sub")).unwrap();
            std::fs::write(dir.join("SKILL.md"), "one").unwrap();
            std::fs::write(dir.join("sub/x"), "two").unwrap();
            cache.store_tree(asked, &dir).unwrap()
        };
        let lines = format!("SKILL.md:{}\nsub/x:{}\n", digest(b"one"), digest(b"two"));
        let asked = need("https://h/o/r/tree/c/skills/one", Form::Tree, &digest(lines.as_bytes()));
        let kept = store(&asked);
        assert_eq!(Some(&kept.sha256), asked.sha256.as_ref());
        assert_eq!(store(&asked), kept);
        std::fs::write(kept.path.join("more"), "x").unwrap();
        assert!(matches!(cache.find(&asked), Found::Damaged { .. }));
        store(&asked);
        assert!(matches!(cache.find(&asked), Found::Verified(_)));
        std::os::unix::fs::symlink("/etc/passwd", kept.path.join("link")).unwrap();
        assert!(matches!(cache.find(&asked), Found::Damaged { .. }));
    }

    #[test]
    fn writers_at_the_same_time_agree() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(temp.path())).unwrap();
        let content = vec![b'x'; 100_000];
        let asked = need("https://h/big", Form::File, &digest(&content));
        let tree = need("https://h/o/r/tree/c/t", Form::Tree, &tree_digest(&[("f".into(), digest(b"1"))]));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        cache.store_file(&asked, &content).unwrap();
                        assert!(matches!(cache.find(&asked), Found::Verified(_)), "half a file was seen");
                        let scratch = cache.scratch().unwrap();
                        let dir = scratch.path().join("d");
                        std::fs::create_dir(&dir).unwrap();
                        std::fs::write(dir.join("f"), "1").unwrap();
                        cache.store_tree(&tree, &dir).unwrap();
                        assert!(matches!(cache.find(&tree), Found::Verified(_)), "half a directory was seen");
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(temp.path().join("tmp")).unwrap().count(), 0);
    }
}
