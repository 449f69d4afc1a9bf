//! Attributes that make a plain `git add` fail: an encoding that a file does not have, or that nobody knows.
//!
//! The result is whole and safe, so that it is not refused; but a post-script that commits it would end with words of
//! git that say nothing of the agent. Git itself is asked, under a repository of ours that has no filters.

use std::path::Path;

use super::git;
use super::ops::Ops;
use super::quarantine;
use super::report::{c_quoted, private_dir};
use super::steer::is_attributes;
use crate::error::Result;
use crate::plan::repo::{HostRepo, Kind, Manifest, names};
use crate::process::Stdin;

/// The attribute.
const ATTRIBUTE: &str = "working-tree-encoding";
/// No more files are tried.
const MOST: usize = 10_000;

/// What git says of files of the staged tree at `top` that it could not add, where the agent wrote such attributes.
pub(super) async fn check(
    ops: &Ops,
    repo: &HostRepo,
    manifest: &Manifest,
    top: &Path,
    work_dir: &Path,
) -> Result<Option<String>> {
    let names_it = |path: &&Vec<u8>| {
        let text = || std::fs::read(top.join(names::as_path(path))).unwrap_or_default();
        is_attributes(path) && memchr::memmem::find(&text(), ATTRIBUTE.as_bytes()).is_some()
    };
    if ops.writes().find(names_it).is_none() {
        return Ok(None);
    }
    let scratch = work_dir.join("encodings.git");
    private_dir(work_dir)?;
    quarantine::init(&scratch, repo.object_format)?;
    let found = complaints(ops, manifest, &scratch, top).await;
    let _ = fs_err::remove_dir_all(&scratch);
    found
}

async fn complaints(ops: &Ops, manifest: &Manifest, scratch: &Path, top: &Path) -> Result<Option<String>> {
    let call = |label: &str| git::neutral(label, scratch, top).arg("--work-tree=.");
    let of_host = manifest.entries.iter().filter(|e| e.kind == Kind::File).map(|e| &e.path);
    let there =
        |path: &&Vec<u8>| top.join(names::as_path(path)).symlink_metadata().is_ok_and(|m| m.is_file());
    let new = ops.writes().filter(|path| manifest.get(path).is_none());
    let input = of_host.chain(new).filter(there).flat_map(|p| [p.as_slice(), b"\0"].concat()).collect();
    let command = call("git check-attr").args(["check-attr", "-z", "--stdin", ATTRIBUTE]);
    let answer = git::run(command.stdin(Stdin::Bytes(input))).await?;
    let fields: Vec<&[u8]> = answer.split(|b| *b == 0).collect();
    let encoded = fields.chunks_exact(3).filter(|f| !matches!(f[2], b"unspecified" | b"set" | b"unset"));
    let list: Vec<u8> =
        encoded.take(MOST).flat_map(|f| [c_quoted(f[0]).as_slice(), b"\n"].concat()).collect();
    if list.is_empty() {
        return Ok(None);
    }
    let command = call("git hash-object").args(["hash-object", "--stdin-paths"]);
    let output = command.stdin(Stdin::Bytes(list)).output().await?;
    let said = output.stderr_text();
    let said: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    let Some(first) = said.first() else { return Ok(None) };
    let more = if said.len() > 1 { format!(" (and {} more)", said.len() - 1) } else { String::new() };
    Ok(Some(format!(
        "the agent's .gitattributes gives files an encoding that they do not have: {}{more}; `git add` of them fails, \
         also in a post-script, until that file or the attributes are corrected",
        names::shown(first.as_bytes())
    )))
}
