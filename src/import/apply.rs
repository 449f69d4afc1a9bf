//! The agent's work into the user's checkout: last, and only when the checkout is as it was uploaded.

use std::path::Path;

use super::git;
use super::limits::Limits;
use super::ops::Change;
use super::refs;
use super::staged::{StagedTree, host_index};
use crate::error::{Code, Error, Result};
use crate::import::index::Index;
use crate::plan::repo::{HostRepo, Manifest, names};

/// What was done to the checkout.
#[derive(Debug, Default)]
pub struct Applied {
    /// Changed paths of the working tree.
    pub changes: Vec<Change>,
    /// Branches and tags that moved, by full name.
    pub refs: Vec<Vec<u8>>,
}

/// Applies the staged change to the checkout: objects, refs, files, deletions, index. The directory itself
/// stays the same one, so a shell inside it goes on working.
///
/// # Errors
/// [`Code::CheckoutChanged`] when the checkout is no longer what was uploaded: nothing is touched then. Any
/// failure names the staged tree, which stays.
pub async fn apply(staged: &StagedTree, repo: &HostRepo, manifest: &Manifest) -> Result<Applied> {
    if !staged.has_changes() {
        return Ok(Applied::default());
    }
    verify(staged, repo, manifest).await?;
    let interrupted = |e: Error| {
        let mut text = e.to_string();
        if let Some(detail) = e.detail_text() {
            text.push('\n');
            text.push_str(detail);
        }
        Error::new(e.code(), "the checkout was only partly updated").detail(text).help(kept(staged))
    };
    if let Some(quarantine) = &staged.quarantine {
        quarantine.fetch_into(&repo.git_dir, &repo.top).await?;
    }
    refs::update(&repo.git_dir, &repo.top, &staged.refs).await.map_err(|e| e.help(kept(staged)))?;
    staged.ops.run(&repo.top, &staged.incoming).map_err(interrupted)?;
    staged.update_index(repo, &repo.git_dir, &repo.top).await.map_err(interrupted)?;
    Ok(Applied {
        changes: staged.changes(manifest),
        refs: staged.refs.refs.iter().map(|c| c.name.clone()).collect(),
    })
}

fn kept(staged: &StagedTree) -> String {
    format!("the agent's work is complete in {}: take it from there", staged.path().display())
}

async fn verify(staged: &StagedTree, repo: &HostRepo, manifest: &Manifest) -> Result<()> {
    let mut changed = manifest.changed_since(repo)?;
    changed.extend(staged.ops.conflicts(&repo.top, manifest).iter().map(|p| names::shown(p)));
    if repo.git_dir.join("index.lock").exists() {
        changed.push(".git/index.lock (another git is at work)".to_owned());
    }
    if index_changed(staged, repo, manifest).await? {
        changed.push("the index (something was staged)".to_owned());
    }
    let Some(first) = changed.first() else { return Ok(()) };
    let more = if changed.len() > 1 { format!(" and {} more", changed.len() - 1) } else { String::new() };
    Err(Error::new(
        Code::CheckoutChanged,
        format!("the checkout changed while the agent ran, so it was not touched: {first}{more}"),
    )
    .detail(changed.iter().take(50).map(String::as_str).collect::<Vec<_>>().join("\n"))
    .help(kept(staged)))
}

/// Whether the index says something else than at the upload. A `git status` writes it without changing what it
/// says, so a difference in bytes is not enough.
async fn index_changed(staged: &StagedTree, repo: &HostRepo, manifest: &Manifest) -> Result<bool> {
    let now = match fs_err::read(repo.git_dir.join("index")) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::io("cannot read the index", &e)),
    };
    if now == manifest.index {
        return Ok(false);
    }
    let (Some(_), Some(old)) = (&now, &manifest.index) else { return Ok(true) };
    let limits = Limits::default();
    Ok(host_index(repo, &limits).await? != saved_index(staged, repo, old, &limits).await?)
}

async fn saved_index(staged: &StagedTree, repo: &HostRepo, bytes: &[u8], limits: &Limits) -> Result<Index> {
    let file: &Path = &staged.base.join("index-at-upload");
    fs_err::write(file, bytes).map_err(|e| Error::io("cannot write a copy of the index", &e))?;
    let command = git::neutral("git ls-files", &repo.git_dir, &repo.top).env("GIT_INDEX_FILE", file).args([
        "ls-files",
        "-s",
        "-z",
        "--full-name",
    ]);
    Index::parse(&git::run(command).await?, repo.object_format, limits)
}
