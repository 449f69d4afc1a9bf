//! `changes.json`: the change as a list for programs, with sizes and hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base64::Engine as _;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::git;
use super::ops::{Change, ChangeKind, Ops};
use super::quarantine::Quarantine;
use super::refs::RefUpdate;
use crate::error::{Error, Result};
use crate::plan::repo::{Head, HostRepo, Kind, Manifest, names};
use crate::process::Stdin;
use crate::report::hex;

/// The name of the schema of `changes.json`.
const SCHEMA: &str = "fullsend.changes/1";

/// A file or link on one side.
#[derive(Debug, Serialize)]
struct Side {
    /// As git writes it: 100644, 100755, 120000.
    mode: &'static str,
    /// Bytes of the file, or of the target of the link.
    size: u64,
    /// Of the file, or of the target of the link, in hex. Nothing for a file of the host that was gone by then.
    sha256: Option<String>,
}

#[derive(Debug, Serialize)]
struct PathChange {
    path: String,
    /// The bytes of the path where `path` shows them in another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
    kind: ChangeKind,
    old: Option<Side>,
    new: Option<Side>,
}

#[derive(Debug, Serialize)]
struct RefMove {
    name: String,
    old: Option<String>,
    new: String,
}

#[derive(Debug, Serialize)]
struct List {
    schema: &'static str,
    paths: Vec<PathChange>,
    refs: Vec<RefMove>,
    /// What `HEAD` names now, when it names something else than before.
    head: Option<String>,
}

/// An empty list, for a sandbox that changed nothing.
pub(super) fn nothing() -> Result<Vec<u8>> {
    text(&List { schema: SCHEMA, paths: Vec::new(), refs: Vec::new(), head: None })
}

/// The list of a change.
pub(super) fn list(
    changes: &[Change],
    ops: &Ops,
    incoming: &Path,
    refs: &RefUpdate,
    repo: &HostRepo,
    manifest: &Manifest,
) -> Result<Vec<u8>> {
    let mut paths = Vec::new();
    for Change { path, kind } in changes {
        let old = manifest.get(path).filter(|e| e.kind != Kind::Dir);
        let old_side = old.map(|entry| match &entry.kind {
            Kind::Link(target) => link(target),
            _ => file(&repo.top.join(names::as_path(path)), entry.executable()),
        });
        let new = match (ops.writes.get(path), ops.links.get(path), ops.mode_of(path)) {
            (Some(executable), ..) => Some(file(&incoming.join(names::as_path(path)), *executable)),
            (_, Some(target), _) => Some(link(target)),
            (.., Some(executable)) => Some(file(&repo.top.join(names::as_path(path)), executable)),
            _ => None,
        };
        let shown = names::shown(path);
        let path_base64 = (shown.as_bytes() != path.as_slice())
            .then(|| base64::engine::general_purpose::STANDARD.encode(path));
        paths.push(PathChange { path: shown, path_base64, kind: *kind, old: old_side, new });
    }
    let head = refs.head.as_ref().map(|head| match head {
        Head::Branch { name, .. } => names::shown(name),
        Head::Detached(oid) => oid.to_string(),
    });
    let refs = refs.refs.iter().map(|c| RefMove {
        name: names::shown(&c.name),
        old: c.old.as_ref().map(ToString::to_string),
        new: c.new.to_string(),
    });
    text(&List { schema: SCHEMA, paths, refs: refs.collect(), head })
}

fn text(list: &List) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(list).map_err(|e| Error::bug(e.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

fn link(target: &[u8]) -> Side {
    Side { mode: "120000", size: target.len() as u64, sha256: Some(hex(Sha256::digest(target))) }
}

fn file(path: &Path, executable: bool) -> Side {
    let mode = if executable { "100755" } else { "100644" };
    let hashed = || -> std::io::Result<(u64, String)> {
        let mut file = std::fs::File::open(path)?;
        let (mut hash, mut size, mut buf) = (Sha256::new(), 0_u64, vec![0; 128 * 1024]);
        loop {
            match file.read(&mut buf)? {
                0 => return Ok((size, hex(hash.finalize()))),
                n => {
                    hash.update(&buf[..n]);
                    size += n as u64;
                }
            }
        }
    };
    match hashed() {
        Ok((size, sha256)) => Side { mode, size, sha256: Some(sha256) },
        Err(_) => Side { mode, size: 0, sha256: None },
    }
}

/// Sizes of new and changed files, in bytes.
pub(super) fn sizes(ops: &Ops, incoming: &Path) -> BTreeMap<Vec<u8>, u64> {
    let size = |path: &Vec<u8>| {
        let full = incoming.join(std::ffi::OsStr::from_bytes(path));
        Some((path.clone(), full.symlink_metadata().ok()?.len()))
    };
    ops.writes.keys().filter_map(size).collect()
}

/// Every path that a new commit changes against all of its parents, so that a merge of what the host has counts for
/// nothing.
pub(super) async fn committed(quarantine: &Quarantine, repo: &HostRepo) -> Result<BTreeSet<Vec<u8>>> {
    let mut input: Vec<u8> = quarantine.commits().flat_map(|oid| format!("{oid}\n").into_bytes()).collect();
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    for oid in repo.refs.refs.values().chain(repo.head.oid()) {
        input.extend(format!("^{oid}\n").bytes());
    }
    let call = |label: &str| git::neutral(label, quarantine.dir(), quarantine.dir()).deadline(git::LONG);
    let command = call("git rev-list").args(["rev-list", "--ignore-missing", "--stdin"]);
    let commits = git::run(command.stdin(Stdin::Bytes(input))).await?;
    let args =
        ["diff-tree", "--stdin", "-r", "-c", "--root", "--no-commit-id", "--name-only", "-z", "--no-renames"];
    let command = call("git diff-tree").args(args).args(["--no-ext-diff", "--no-textconv"]);
    let names = git::run(command.stdin(Stdin::Bytes(commits))).await?;
    Ok(names.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect())
}
