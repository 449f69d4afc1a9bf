//! One import as the rest of the program sees it.

use std::path::Path;
use std::rc::Rc;

use super::apply::{Applied, apply};
use super::change_list;
use super::ops::Change;
use super::staged::Staged;
use super::whole::Whole;
use crate::error::Result;
use crate::harness::ChangeLimits;
use crate::plan::repo::{HostRepo, Manifest};

/// The file of new commits.
const BUNDLE: &str = "changes.bundle";

/// The staged result of an iteration, ready to be applied or left.
#[derive(Debug)]
pub struct Import {
    staged: Staged,
    manifest: Rc<Manifest>,
}

impl Import {
    /// Wraps what was staged against a manifest.
    pub fn new(staged: Staged, manifest: Rc<Manifest>) -> Self {
        Self { staged, manifest }
    }

    /// What changed, in path order.
    pub fn changes(&self) -> Vec<Change> {
        match &self.staged {
            Staged::Unchanged { .. } => Vec::new(),
            Staged::Tree(tree) => tree.changes(&self.manifest),
        }
    }

    /// What the user should hear.
    pub fn notes(&self) -> &[String] {
        match &self.staged {
            Staged::Unchanged { notes } => notes,
            Staged::Tree(tree) => tree.notes(),
        }
    }

    /// Whether the sandbox changed nothing that is taken over.
    pub fn is_unchanged(&self) -> bool {
        match &self.staged {
            Staged::Unchanged { .. } => true,
            Staged::Tree(tree) => !tree.has_changes(),
        }
    }

    /// The staged repository, when there is one.
    pub fn dir(&self) -> Option<&Path> {
        match &self.staged {
            Staged::Unchanged { .. } => None,
            Staged::Tree(tree) => Some(tree.path()),
        }
    }

    /// Brings the result into the user's checkout.
    pub async fn apply(&self, repo: &HostRepo) -> Result<Applied> {
        match &self.staged {
            Staged::Unchanged { .. } => Ok(Applied::default()),
            Staged::Tree(tree) => apply(tree, repo, &self.manifest).await,
        }
    }

    /// Writes the change into a directory: `changes.patch` for people and git, `changes.json` for programs. A change
    /// of nothing is written too. Each appears when it is whole and on the disk, in the place of an earlier one.
    /// Returns the size of the patch in bytes.
    pub async fn write_changes(&self, dir: &Path, repo: &HostRepo) -> Result<u64> {
        let (patch, list) = (Whole::begin(dir)?, Whole::begin(dir)?);
        match &self.staged {
            Staged::Tree(tree) if tree.has_changes() => {
                tree.write_patch(patch.path(), repo, &self.manifest).await?;
                fs_err::write(list.path(), tree.change_list(repo, &self.manifest)?)?;
            }
            _ => fs_err::write(list.path(), change_list::nothing()?)?,
        }
        let bytes = patch.finish("changes.patch")?;
        list.finish("changes.json")?;
        Ok(bytes)
    }

    /// Judges the change by the limits of the harness; `patch_bytes` is the size of the patch.
    ///
    /// # Errors
    /// [`crate::Code::ImportBlocked`] with everything that is past a limit.
    pub async fn check_limits(&self, limits: &ChangeLimits, patch_bytes: u64, repo: &HostRepo) -> Result<()> {
        match &self.staged {
            Staged::Tree(tree) if tree.has_changes() && !limits.is_default() => {
                tree.check_limits(limits, patch_bytes, repo, &self.manifest).await
            }
            _ => Ok(()),
        }
    }

    /// Writes the new commits into a directory as `changes.bundle`, in the same way. False when there are none; an
    /// earlier bundle goes then.
    pub async fn write_bundle(&self, dir: &Path, repo: &HostRepo) -> Result<bool> {
        if let Staged::Tree(tree) = &self.staged {
            let bundle = Whole::begin(dir)?;
            if tree.write_bundle(bundle.path(), repo).await? {
                bundle.finish(BUNDLE)?;
                return Ok(true);
            }
        }
        match fs_err::remove_file(dir.join(BUNDLE)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
            _ => Ok(false),
        }
    }

    /// Removes the staged tree.
    pub fn discard(self) -> Result<()> {
        match self.staged {
            Staged::Unchanged { .. } => Ok(()),
            Staged::Tree(tree) => tree.remove(),
        }
    }
}
