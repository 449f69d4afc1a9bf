//! What git has to compute for the upload: the pack of a repository that borrows objects, and an index that the
//! sandbox can read.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::discover::HostRepo;
use super::gitdir::{GitFile, GitSource, private_ref};
use super::names;
use crate::error::{Error, Result};
use crate::import::git;
use crate::process::{Command, Stdin};

/// One pack with what the refs, `HEAD` and the index of the repository reach. A store that is shared with other
/// repositories holds their objects too, and those are nobody's business in the sandbox.
pub(super) async fn reachable(repo: &HostRepo) -> Result<Vec<GitFile>> {
    let io = |e: std::io::Error| Error::io("cannot pack the repository", &e);
    let dir = Arc::new(tempfile::tempdir().map_err(io)?);
    let tips = repo.refs.refs.iter().filter(|(name, _)| !private_ref(name)).map(|(_, oid)| oid);
    let tips: BTreeSet<_> = tips.chain(repo.head.oid()).collect();
    let input = tips.into_iter().flat_map(|oid| format!("{oid}\n").into_bytes()).collect();
    let mut command = git::neutral("git pack-objects", &repo.git_dir, &repo.top).args([
        "pack-objects",
        "--quiet",
        "--revs",
        "--indexed-objects",
        "--delta-base-offset",
        "--non-empty",
    ]);
    if repo.partial {
        command = command.arg("--missing=allow-promisor");
    }
    let command = command.arg(dir.path().join("pack")).deadline(git::LONG).stdin(Stdin::Bytes(input));
    git::run(command).await?;
    let mut files = Vec::new();
    for item in fs_err::read_dir(dir.path()).map_err(io)? {
        let item = item.map_err(io)?;
        let size = item.metadata().map_err(io)?.len();
        let name = item.file_name();
        let path = [b"objects/pack/", names::as_bytes(name.as_ref())].concat();
        if repo.partial && path.ends_with(b".pack") {
            files.push(promised(&path));
        }
        files.push(GitFile {
            path,
            source: GitSource::Made { dir: Arc::clone(&dir), path: item.path(), size },
        });
    }
    Ok(files)
}

/// The file that says of a pack that what it lacks has been promised by a remote.
fn promised(pack: &[u8]) -> GitFile {
    let path = [pack.strip_suffix(b".pack").unwrap_or(pack), b".promisor"].concat();
    GitFile { path, source: GitSource::Text(Vec::new()) }
}

/// What of the index has to differ in the sandbox.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Tracked files that were not uploaded: marked as having no file, so that `git commit -a` in the sandbox does
    /// not commit their deletion.
    pub(super) absent: BTreeSet<Vec<u8>>,
    /// Files whose content a filter made from what git has: marked as unchanged, since the sandbox has no filter to
    /// see that they are.
    pub(super) unchanged: BTreeSet<Vec<u8>>,
}

/// Whether an index names whole directories, which git before 2.32 does not read.
fn is_sparse_index(index: &[u8]) -> bool {
    memchr::memmem::find(index, b"sdir").is_some()
}

/// The index with these marks and every entry spelled out; `None` when it can travel as it is.
pub(super) async fn index(repo: &HostRepo, index: &[u8], marks: &Marks) -> Result<Option<Vec<u8>>> {
    let expand = repo.sparse && is_sparse_index(index);
    if marks.absent.is_empty() && marks.unchanged.is_empty() && !expand {
        return Ok(None);
    }
    let io = |e: std::io::Error| Error::io("cannot write a copy of the index", &e);
    let dir = tempfile::tempdir().map_err(io)?;
    let file = dir.path().join("index");
    fs_err::write(&file, index).map_err(io)?;
    if expand {
        git::run(update(repo, &file, &["--force-write-index"])).await?;
    }
    for (flag, paths) in [("--skip-worktree", &marks.absent), ("--assume-unchanged", &marks.unchanged)] {
        if !paths.is_empty() {
            let input = paths.iter().flat_map(|p| [p.as_slice(), b"\0"].concat()).collect();
            git::run(update(repo, &file, &[flag, "-z", "--stdin"]).stdin(Stdin::Bytes(input))).await?;
        }
    }
    fs_err::read(&file).map(Some).map_err(io)
}

fn update(repo: &HostRepo, file: &Path, args: &[&str]) -> Command {
    git::neutral("git update-index", &repo.git_dir, &repo.top)
        .env("GIT_INDEX_FILE", file)
        .args(repo.without_filters())
        .args(["-c", "core.splitIndex=false", "-c", "index.sparse=false", "update-index"])
        .args(args.iter().copied())
}

/// Tracked files to which the attributes of the host's tree give a filter, with the name of the filter.
pub(crate) async fn filtered(
    repo: &HostRepo,
    paths: impl IntoIterator<Item = &[u8]>,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let input: Vec<u8> = paths.into_iter().flat_map(|p| [p, b"\0"].concat()).collect();
    if input.is_empty() {
        return Ok(Vec::new());
    }
    let command = git::neutral("git check-attr", &repo.git_dir, &repo.top)
        .args(["check-attr", "-z", "--stdin", "filter"])
        .stdin(Stdin::Bytes(input));
    let text = git::run(command).await?;
    let fields: Vec<&[u8]> = text.split(|b| *b == 0).collect();
    let named = fields.chunks_exact(3).filter(|f| !matches!(f[2], b"unspecified" | b"unset" | b"set" | b""));
    Ok(named.map(|f| (f[0].to_vec(), f[2].to_vec())).collect())
}
