//! The agent's work in the run directory, as soon as it is on the host.
//!
//! From then on until the end the staged repository is the only other copy of it, and that goes with the run: a run that
//! is killed in a check or in its post-script would lose the work.

use super::context::Cx;
use super::prepare::Prepared;
use crate::error::{Code, Error, Result};
use crate::import::{Import, Nested};
use crate::plan::repo::names;

/// The change of an iteration in the run directory: `changes.patch`, `changes.json`, and the bundle where there are
/// commits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// The size of the patch in bytes.
    pub patch_bytes: u64,
    /// Whether the commits are there too.
    pub bundle: bool,
}

/// Writes the change in the place of that of an earlier iteration. Nothing of the run depends on it: what fails is tried
/// again at the end, and after a cancel there is no time while the sandbox is still there.
pub(super) async fn early(cx: &Cx, prepared: &Prepared, import: &Import) -> Option<Kept> {
    match cx.signals.guard(write(cx, prepared, import)).await {
        Ok(kept) => Some(kept),
        Err(_) if cx.signals.stopped().is_some() => None,
        Err(error) => {
            cx.ui.warn(&format!(
                "the change could not be written into the run directory yet ({}): should the run be killed, it is lost",
                error.message()
            ));
            None
        }
    }
}

/// Writes patch, list and bundle.
async fn write(cx: &Cx, prepared: &Prepared, import: &Import) -> Result<Kept> {
    let repo = &prepared.world.repo;
    let patch_bytes = import.write_changes(&cx.id.dir, repo).await?;
    import.write_bundle(&cx.id.dir, repo).await?;
    Ok(Kept { patch_bytes, bundle: true })
}

/// The refusal of repositories inside the repository, with the rest of the change in the run directory. `rest` is that
/// rest, staged; nobody works in it.
pub(super) async fn rest(
    cx: &Cx,
    prepared: &Prepared,
    nested: &Nested,
    refusal: Error,
    rest: Result<Import>,
) -> Error {
    let list = names::shown_list(nested.dirs()).replace('\n', ", ");
    let next = format!(
        "let the agent clone outside of the repository, or remove the .git of what it cloned there when it is done: {list}"
    );
    let written = match rest {
        Ok(import) => {
            let written = write(cx, prepared, &import).await;
            written.and(import.discard())
        }
        // A secret in the rest is the greater news.
        Err(error) if error.code() == Code::SecretFound => return error,
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => {
            let dir = cx.id.dir.display();
            refusal.help(format!(
                "nothing was taken over; changes.patch has everything but these repositories' .git: `git apply \
                 {dir}/changes.patch` takes it. Then {next}"
            ))
        }
        Err(error) => refusal.help(format!("nothing was taken over ({}); {next}", error.message())),
    }
}
