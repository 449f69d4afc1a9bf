//! Where the branches of the sandbox stand, read from text, and moving the host's to match.

use std::collections::BTreeMap;
use std::path::Path;

use super::delta::{Delta, GitState};
use super::git;
use super::limits::{Limits, Refusals};
use crate::error::{Code, Error, Result};
use crate::plan::repo::{Head, HostRepo, Loose, Oid, names, parse_loose, parse_packed, valid_ref_name};
use crate::process::Stdin;

/// A branch or tag that moves or comes into being. A ref that the sandbox deleted stays on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// Full name.
    pub name: Vec<u8>,
    /// Where it stood when the checkout was read.
    pub old: Option<Oid>,
    /// Where it stands now.
    pub new: Oid,
}

/// Changes of refs and `HEAD`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefUpdate {
    /// Branches and tags.
    pub refs: Vec<RefChange>,
    /// `HEAD`, when it names something else than before.
    pub head: Option<Head>,
}

impl RefUpdate {
    /// Whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty() && self.head.is_none()
    }
}

fn comes_back(name: &[u8]) -> bool {
    name.starts_with(b"refs/heads/") || name.starts_with(b"refs/tags/")
}

/// Reads the refs of the sandbox: the uploaded ones, as far as the listing says they are untouched, under
/// what was fetched. Returns notes about refs that were passed over.
pub(super) fn read(
    incoming: &Path,
    delta: &Delta,
    repo: &HostRepo,
    limits: &Limits,
) -> Result<(RefUpdate, Vec<String>)> {
    let mut notes = Vec::new();
    if delta.git.state != GitState::Present {
        return Ok((RefUpdate::default(), notes));
    }
    let mut refusals = Refusals::default();
    let file = |path: &[u8]| {
        let full = incoming.join(".git").join(names::as_path(path));
        fs_err::read(full).map_err(|e| Error::io("cannot read what the sandbox returned", &e))
    };
    let packed = b"packed-refs".as_slice();
    let mut now: BTreeMap<Vec<u8>, Oid> = if delta.git.fetch.contains(packed) {
        let (refs, odd) = parse_packed(&file(packed)?, repo.object_format);
        for line in odd.iter().take(20) {
            refusals.add(line, "a line of packed-refs that is no ref");
        }
        refs
    } else if delta.git.deleted.contains(packed) {
        BTreeMap::new()
    } else {
        repo.refs.refs.clone()
    };
    for path in delta.git.fetch.iter().filter(|p| comes_back(p)) {
        // A transaction that was cut off leaves these behind.
        if path.ends_with(b".lock") {
            continue;
        }
        match parse_loose(&file(path)?, repo.object_format) {
            _ if !valid_ref_name(path) => refusals.add(path, "not a valid ref name"),
            Some(Loose::Object(oid)) if !oid.is_zero() => drop(now.insert(path.clone(), oid)),
            Some(Loose::Symbolic(_)) => {
                notes.push(format!("not taken over, since it is a symbolic ref: {}", names::shown(path)));
            }
            _ => refusals.add(path, "a ref without an object name"),
        }
    }
    let gone: Vec<&[u8]> =
        repo.refs.refs.keys().filter(|n| comes_back(n) && !now.contains_key(*n)).map(Vec::as_slice).collect();
    if !gone.is_empty() {
        let list = names::shown_list(gone).replace('\n', ", ");
        notes.push(format!("the agent deleted branches or tags; they stay: {list}"));
    }
    let mut update = RefUpdate::default();
    for (name, new) in now.iter().filter(|(n, _)| comes_back(n)) {
        let old = repo.refs.refs.get(name);
        if old == Some(new) {
            continue;
        }
        if name == b"refs/heads/HEAD" || name.split(|b| *b == b'/').any(|part| part.starts_with(b"-")) {
            refusals.add(name, "a name that git would take for something else");
        }
        update.refs.push(RefChange { name: name.clone(), old: old.cloned(), new: new.clone() });
    }
    if update.refs.len() > limits.refs {
        refusals.say(format!("{} refs changed, more than {}", update.refs.len(), limits.refs));
    }
    if delta.git.deleted.contains(b"HEAD".as_slice()) {
        refusals.say(".git/HEAD was deleted");
    } else if delta.git.fetch.contains(b"HEAD".as_slice()) {
        let head = read_head(&file(b"HEAD")?, &now, repo);
        match head {
            Some(head) if !same_place(&head, &repo.head) => update.head = Some(head),
            Some(_) => {}
            None => refusals.say(".git/HEAD names neither a branch nor a commit"),
        }
    }
    refusals.finish().map(|()| (update, notes))
}

fn read_head(text: &[u8], refs: &BTreeMap<Vec<u8>, Oid>, repo: &HostRepo) -> Option<Head> {
    match parse_loose(text, repo.object_format)? {
        Loose::Object(oid) if !oid.is_zero() => Some(Head::Detached(oid)),
        Loose::Symbolic(name) if name.starts_with(b"refs/heads/") => {
            let oid = refs.get(&name).cloned();
            Some(Head::Branch { name, oid })
        }
        _ => None,
    }
}

/// Whether two heads name the same branch (its commit moves by its own ref) or the same detached commit.
fn same_place(a: &Head, b: &Head) -> bool {
    match (a, b) {
        (Head::Branch { name: a, .. }, Head::Branch { name: b, .. }) => a == b,
        (Head::Detached(a), Head::Detached(b)) => a == b,
        _ => false,
    }
}

/// Moves refs in one transaction that fails when any is no longer where it was, then `HEAD`.
pub(super) async fn update(git_dir: &Path, top: &Path, update: &RefUpdate) -> Result<()> {
    let mut input = Vec::new();
    for change in &update.refs {
        if let Some(old) = &change.old {
            input.extend([b"update ", change.name.as_slice()].concat());
            input.extend(format!("\0{}\0{old}\0", change.new).bytes());
        } else {
            input.extend([b"create ", change.name.as_slice()].concat());
            input.extend(format!("\0{}\0", change.new).bytes());
        }
    }
    if let Some(Head::Detached(oid)) = &update.head {
        input.extend(format!("option no-deref\0update HEAD\0{oid}\0\0").bytes());
    }
    if !input.is_empty() {
        let command = git::neutral("git update-ref", git_dir, top)
            .args(["update-ref", "-m", "fullsend: results of the agent", "--stdin", "-z"])
            .stdin(Stdin::Bytes(input));
        let output = command.output().await?;
        if !output.status.success() {
            return Err(moved(&output.stderr_text()));
        }
    }
    if let Some(Head::Branch { name, .. }) = &update.head {
        let command = git::neutral("git symbolic-ref", git_dir, top)
            .args(["symbolic-ref", "-m", "fullsend: results of the agent", "HEAD"])
            .arg(names::as_path(name));
        git::run(command).await?;
    }
    Ok(())
}

fn moved(stderr: &str) -> Error {
    // Git names the two values when the old one is not what was expected.
    if stderr.contains("but expected") || stderr.contains("already exists") || stderr.contains(".lock") {
        return Error::new(Code::CheckoutChanged, "a branch of the checkout moved while the agent ran")
            .detail(stderr);
    }
    Error::new(Code::ImportBlocked, "git refused the branches that the sandbox returned").detail(stderr)
}
