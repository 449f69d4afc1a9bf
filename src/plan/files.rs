//! What is put into the sandbox besides the repository.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::layout::real_destination;
use crate::error::{Code, Error, Result};
use crate::secrets::Secret;

/// Where the bytes come from.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A file on the host, read when the archive is built: a pre-script may still write it.
    File(Utf8PathBuf),
    /// A directory on the host, with everything below it, likewise.
    Dir(Utf8PathBuf),
    /// A directory on the host, some of its files replaced.
    Changed {
        /// The directory.
        dir: Utf8PathBuf,
        /// By the path in it: the file that is delivered instead, or `None` for nothing.
        files: BTreeMap<String, Option<Utf8PathBuf>>,
    },
    /// Text made by the runner; masked wherever the plan is shown.
    Text {
        /// The text.
        text: Secret,
        /// What it was made from.
        from: String,
    },
    /// Bytes read from the harness directory.
    Content {
        /// The bytes.
        #[serde(skip)]
        bytes: Vec<u8>,
        /// The file they come from.
        from: String,
    },
    /// An empty directory.
    Empty,
}

/// One file or directory to deliver.
#[derive(Debug, Clone, Serialize)]
pub struct Upload {
    /// The absolute path in the sandbox.
    pub dest: String,
    /// Whether files are made executable; otherwise the owner's executable bit on the host decides.
    pub executable: bool,
    /// Where the bytes come from.
    pub source: Source,
}

impl Upload {
    /// A file on the host.
    pub fn file(dest: impl Into<String>, path: impl Into<Utf8PathBuf>) -> Self {
        Self { dest: real_destination(&dest.into()).0, executable: false, source: Source::File(path.into()) }
    }

    /// A directory on the host.
    pub fn dir(dest: impl Into<String>, path: impl Into<Utf8PathBuf>) -> Self {
        Self { dest: dest.into(), executable: false, source: Source::Dir(path.into()) }
    }

    /// Replaces files of a directory, by their path in it; `None` leaves one out.
    #[must_use]
    pub fn changed(mut self, files: BTreeMap<String, Option<Utf8PathBuf>>) -> Self {
        if let Source::Dir(dir) = &self.source
            && !files.is_empty()
        {
            self.source = Source::Changed { dir: dir.clone(), files };
        }
        self
    }

    /// Bytes read from the harness directory.
    pub fn content(dest: impl Into<String>, bytes: Vec<u8>, from: impl Into<String>) -> Self {
        Self { dest: dest.into(), executable: false, source: Source::Content { bytes, from: from.into() } }
    }

    /// An empty directory.
    pub fn empty(dest: impl Into<String>) -> Self {
        Self { dest: dest.into(), executable: false, source: Source::Empty }
    }

    /// Text made by the runner.
    pub fn text(dest: impl Into<String>, text: Secret, from: impl Into<String>) -> Self {
        Self {
            dest: real_destination(&dest.into()).0,
            executable: false,
            source: Source::Text { text, from: from.into() },
        }
    }

    /// Makes the delivered files executable.
    #[must_use]
    pub fn executable(mut self) -> Self {
        self.executable = true;
        self
    }

    /// The files this stands for right now, with their sizes in bytes.
    pub fn expand(&self) -> Result<Vec<Delivered>> {
        match &self.source {
            Source::File(path) => {
                let meta = fs_err::metadata(path).map_err(|e| unreadable(path, &e))?;
                Ok(vec![self.delivered(self.dest.clone(), Bytes::Host(path.clone()), &meta)])
            }
            Source::Text { text, .. } => Ok(vec![self.made(text.expose().len(), Bytes::Text(text.clone()))]),
            Source::Content { bytes, .. } => Ok(vec![self.made(bytes.len(), Bytes::Content(bytes.clone()))]),
            Source::Dir(dir) => self.expand_dir(dir),
            Source::Changed { dir, files } => {
                let mut all = self.expand_dir(dir)?;
                let dest = |file: &str| format!("{}/{file}", self.dest);
                all.retain(|delivered| !files.keys().any(|file| dest(file) == delivered.dest));
                for (file, path) in files.iter().filter_map(|(file, path)| Some((file, path.as_ref()?))) {
                    let meta = fs_err::metadata(path).map_err(|e| unreadable(path, &e))?;
                    all.push(self.delivered(dest(file), Bytes::Host(path.clone()), &meta));
                }
                all.sort_by(|a, b| a.dest.cmp(&b.dest));
                Ok(all)
            }
            Source::Empty => Ok(Vec::new()),
        }
    }

    /// Links are followed: a skill may be a link into a cache, and what arrives must be content, not a dangling
    /// link. A loop of links is an error.
    fn expand_dir(&self, dir: &Utf8Path) -> Result<Vec<Delivered>> {
        let mut files = Vec::new();
        for entry in walkdir::WalkDir::new(dir).follow_links(true).sort_by_file_name() {
            let entry = entry.map_err(|e| {
                Error::new(Code::FileMissing, format!("cannot read below {dir}: {e}"))
                    .help("repair or remove what is named; links must lead to existing files")
            })?;
            if !entry.file_type().is_file() {
                continue;
            }
            let path = Utf8Path::from_path(entry.path()).ok_or_else(|| {
                Error::new(Code::FileType, format!("a file name below {dir} is not UTF-8"))
                    .help("rename the file")
            })?;
            let below = path.strip_prefix(dir).unwrap_or(path);
            let meta = fs_err::metadata(path).map_err(|e| unreadable(path, &e))?;
            files.push(self.delivered(format!("{}/{below}", self.dest), Bytes::Host(path.to_owned()), &meta));
        }
        Ok(files)
    }

    fn made(&self, size: usize, bytes: Bytes) -> Delivered {
        let mode = if self.executable { 0o755 } else { 0o644 };
        Delivered { dest: self.dest.clone(), mode, size: size as u64, bytes }
    }

    fn delivered(&self, dest: String, bytes: Bytes, meta: &std::fs::Metadata) -> Delivered {
        use std::os::unix::fs::PermissionsExt as _;
        let executable = self.executable || meta.permissions().mode() & 0o100 != 0;
        Delivered { dest, mode: if executable { 0o755 } else { 0o644 }, size: meta.len(), bytes }
    }
}

fn unreadable(path: &Utf8Path, error: &std::io::Error) -> Error {
    Error::new(Code::FileMissing, format!("{path} cannot be read: {error}"))
        .help("the harness delivers this file into the sandbox; create it or remove the entry")
}

/// The bytes of one delivered file.
#[derive(Debug, Clone)]
pub enum Bytes {
    /// A file on the host.
    Host(Utf8PathBuf),
    /// Text made by the runner.
    Text(Secret),
    /// Bytes read from the harness directory.
    Content(Vec<u8>),
}

/// One file as it will be delivered.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The absolute path in the sandbox.
    pub dest: String,
    /// Its permission bits.
    pub mode: u32,
    /// Its size in bytes at this moment.
    pub size: u64,
    /// Its bytes.
    pub bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_directory_arrives_as_content() {
        let tmp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(tmp.path()).unwrap();
        fs_err::create_dir(root.join("cache")).unwrap();
        fs_err::write(root.join("cache/SKILL.md"), "x").unwrap();
        std::os::unix::fs::symlink("cache", root.join("skill")).unwrap();
        let files = Upload::dir("/d", root.join("skill")).expand().unwrap();
        let dests: Vec<_> = files.iter().map(|f| (f.dest.as_str(), f.size)).collect();
        assert_eq!(dests, [("/d/SKILL.md", 1)]);
    }

    #[test]
    fn files_of_a_directory_are_replaced_added_and_left_out() {
        let tmp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(tmp.path()).unwrap();
        fs_err::create_dir_all(root.join("skill/docs")).unwrap();
        for (path, text) in [("SKILL.md", "x"), ("docs/a.md", "yy"), ("docs/b.md", "zzz")] {
            fs_err::write(root.join("skill").join(path), text).unwrap();
        }
        fs_err::write(root.join("mine.md"), "mine!").unwrap();
        let files = [("docs/a.md", Some("mine.md")), ("docs/b.md", None), ("docs/c.md", Some("mine.md"))];
        let files = files.map(|(f, to)| (f.to_owned(), to.map(|to| root.join(to)))).into();
        let upload = Upload::dir("/d", root.join("skill")).changed(files);
        let files: Vec<_> = upload.expand().unwrap().into_iter().map(|f| (f.dest, f.size)).collect();
        let want = [("/d/SKILL.md", 1), ("/d/docs/a.md", 5), ("/d/docs/c.md", 5)];
        assert_eq!(files, want.map(|(dest, size)| (dest.to_owned(), size)));
    }

    #[test]
    fn a_dangling_link_is_named() {
        let tmp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(tmp.path()).unwrap();
        std::os::unix::fs::symlink("nowhere", root.join("gone")).unwrap();
        let error = Upload::dir("/d", root).expand().unwrap_err();
        assert!(error.message().contains("gone"), "{error}");
    }

    #[test]
    fn the_old_workspace_is_rewritten() {
        assert_eq!(Upload::file("/tmp/workspace/.env.d/a.env", "/x").dest, "/sandbox/workspace/.env.d/a.env");
        assert_eq!(Upload::file("/tmp/workspaces/a", "/x").dest, "/tmp/workspaces/a");
    }
}
