//! The agent's work into the user's checkout: last, and only when the checkout is as it was uploaded.

use super::git;
use super::limits::Limits;
use super::ops::Change;
use super::refs;
use super::staged::{StagedTree, host_index, read_index};
use crate::error::{Code, Error, Result};
use crate::import::index::Index;
use crate::plan::repo::{Head, HostRepo, Manifest, names};

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
    room(staged, repo)?;
    let interrupted = |e: Error, touched: bool| {
        let mut text = e.to_string();
        if let Some(detail) = e.detail_text() {
            text.push('\n');
            text.push_str(detail);
        }
        let what = if touched {
            "the checkout was only partly updated"
        } else {
            "the checkout could not be updated, and nothing of it was changed"
        };
        Error::new(e.code(), what).detail(text).help(kept(staged))
    };
    if let Some(quarantine) = &staged.quarantine {
        quarantine.fetch_into(&repo.git_dir, &repo.top).await?;
    }
    refs::update(&repo.git_dir, &repo.top, &staged.refs).await.map_err(|e| e.help(kept(staged)))?;
    let mut done = 0;
    let files = staged.ops.run_counted(&repo.top, &staged.incoming, &mut done);
    files.map_err(|e| interrupted(e, done > 0 || !staged.refs.is_empty()))?;
    let index = staged.update_index(repo, &repo.git_dir, &repo.top).await;
    index.map_err(|e| interrupted(e, true))?;
    Ok(Applied {
        changes: staged.changes(manifest),
        refs: staged.refs.refs.iter().map(|c| c.name.clone()).collect(),
    })
}

fn kept(staged: &StagedTree) -> String {
    format!("the agent's work is complete in {}: take it from there", staged.path().display())
}

/// A disk that is too full is told before the first file is changed.
fn room(staged: &StagedTree, repo: &HostRepo) -> Result<()> {
    let need = staged.ops.space(&repo.top, &staged.incoming);
    // Where it cannot be asked, the writes will tell.
    let Ok(stat) = rustix::fs::statvfs(&repo.top) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if need <= free {
        return Ok(());
    }
    let (need, free) = (crate::report::bytes(need), crate::report::bytes(free));
    Err(Error::new(
        Code::Io,
        format!(
            "no space left for the result: {} has {free} free and needs {need}; nothing was changed",
            repo.top.display()
        ),
    )
    .help(format!("free space there; {}", kept(staged))))
}

async fn verify(staged: &StagedTree, repo: &HostRepo, manifest: &Manifest) -> Result<()> {
    let mut changed = manifest.changed_since(repo).await?;
    changed.extend(staged.ops.conflicts(&repo.top, manifest).iter().map(|p| names::shown(p)));
    if repo.git_dir.join("index.lock").exists() {
        changed.push(".git/index.lock (another git is at work)".to_owned());
    }
    if index_changed(staged, repo, manifest).await? {
        changed.push("the index (something was staged)".to_owned());
    }
    changed.extend(busy_branches(staged, repo).await?);
    let Some(first) = changed.first() else { return Ok(()) };
    let more = if changed.len() > 1 { format!(" and {} more", changed.len() - 1) } else { String::new() };
    Err(Error::new(
        Code::CheckoutChanged,
        format!("the checkout changed while the agent ran, so it was not touched: {first}{more}"),
    )
    .detail(changed.iter().take(50).map(String::as_str).collect::<Vec<_>>().join("\n"))
    .help(kept(staged)))
}

/// Branches that the agent moved or switched to and that another working tree of the same repository has checked
/// out: its files would no longer be those of its `HEAD`.
async fn busy_branches(staged: &StagedTree, repo: &HostRepo) -> Result<Vec<String>> {
    let switched = match &staged.refs.head {
        Some(Head::Branch { name, .. }) => Some(name),
        _ => None,
    };
    let moved: Vec<&Vec<u8>> = staged.refs.refs.iter().map(|c| &c.name).chain(switched).collect();
    if moved.is_empty() || !repo.common_dir.join("worktrees").exists() {
        return Ok(Vec::new());
    }
    let command = git::neutral("git worktree list", &repo.git_dir, &repo.top);
    let text = git::run(command.args(["worktree", "list", "--porcelain"])).await?;
    let (mut busy, mut at) = (Vec::new(), &b""[..]);
    for line in text.split(|b| *b == b'\n') {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            at = path;
        } else if let Some(name) = line.strip_prefix(b"branch ")
            && names::as_path(at) != repo.top
            && moved.iter().any(|m| m.as_slice() == name)
        {
            busy.push(format!("{} (checked out in {})", names::shown(name), names::shown(at)));
        }
    }
    Ok(busy)
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
    let file = staged.base.join("index-at-upload");
    fs_err::write(&file, bytes).map_err(|e| Error::io("cannot write a copy of the index", &e))?;
    read_index(repo, Some(&file), limits).await
}
