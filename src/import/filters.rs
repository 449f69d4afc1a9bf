//! Files that go through a filter: git has another content of them than the working tree. A sandbox that lacks the
//! filter would stage the wrong one: a large file instead of a Git LFS pointer, plain text instead of encrypted.

use std::collections::BTreeMap;

use super::git;
use super::index::{IndexUpdate, Mode};
use super::limits::Refusals;
use super::quarantine::Quarantine;
use crate::error::Result;
use crate::plan::repo::{HostRepo, Manifest, filtered, names};
use crate::process::Stdin;

/// How a pointer of Git LFS begins (its specification, version 1); one is shorter than 1024 bytes.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// How a file that git-crypt encrypted begins.
const GIT_CRYPT: &[u8] = b"\0GITCRYPT\0";
/// Enough of a file to tell either, in bytes.
const HEAD: usize = 1024;

/// Refuses what was staged or committed of a filtered file unless it has the form that the filter makes.
///
/// # Errors
/// [`crate::Code::ImportBlocked`] with every such path.
pub(super) async fn check(
    quarantine: &Quarantine,
    update: &IndexUpdate,
    repo: &HostRepo,
    manifest: &Manifest,
) -> Result<()> {
    let names_filter = |e: &&crate::plan::repo::Entry| {
        let is_attributes = e.path == b".gitattributes" || e.path.ends_with(b"/.gitattributes");
        let text = || std::fs::read(repo.top.join(names::as_path(&e.path))).unwrap_or_default();
        is_attributes && memchr::memmem::find(&text(), b"filter=").is_some()
    };
    if manifest.entries.iter().find(names_filter).is_none() {
        return Ok(());
    }
    let mut staged: BTreeMap<&[u8], String> = BTreeMap::new();
    for (path, (mode, oid)) in &update.set {
        if matches!(mode, Mode::File | Mode::Executable) {
            staged.insert(path, oid.to_string());
        }
    }
    let mut refusals = Refusals::default();
    for (path, filter) in filtered(repo, staged.keys().copied()).await? {
        let Some(oid) = staged.get(path.as_slice()) else { continue };
        let head = head_of(quarantine, oid).await?;
        let good = match filter.as_slice() {
            b"lfs" => head.len() < HEAD && head.starts_with(LFS),
            b"git-crypt" => head.is_empty() || head.starts_with(GIT_CRYPT),
            // Of another filter nothing is known.
            _ => false,
        };
        if !good {
            refusals
                .add(&path, format!("staged or committed without the filter `{}`", names::shown(&filter)));
        }
    }
    refusals.finish().map_err(|e| {
        e.help(
            "nothing was taken over; let the agent leave such files uncommitted (their content comes back and git adds \
             it here), or use an image with the filter",
        )
    })
}

/// The first bytes of a blob.
async fn head_of(quarantine: &Quarantine, oid: &str) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let command = git::neutral("git cat-file", quarantine.dir(), quarantine.dir())
        .args(["cat-file", "blob", oid])
        .keep_stdout(0)
        .deadline(git::LONG)
        .stdin(Stdin::Null);
    let output = command
        .stream(|stream, chunk| {
            if stream == crate::process::Stream::Stdout && head.len() < HEAD {
                head.extend_from_slice(&chunk[..chunk.len().min(HEAD - head.len())]);
            }
        })
        .await?;
    if output.status.success() { Ok(head) } else { Err(git::failed("git cat-file", &output)) }
}
