//! The untrusted object store: a bare repository that we initialise and that holds what came back. Its
//! objects enter another repository by `git fetch` only, which hashes, checks (fsck) and connects them anew.
//!
//! Nothing that describes objects is taken from outside: pack indexes are computed here, refs are written
//! from parsed text, and so is a tree with what the sandbox had staged, so that staged blobs travel too.

use std::path::{Path, PathBuf};

use super::delta::is_object_name;
use super::git;
use super::index::{IndexUpdate, whole};
use super::inspect::Incoming;
use super::refs::RefUpdate;
use crate::error::{Code, Error, Result};
use crate::plan::repo::{Head, HostRepo, ObjectFormat, Oid, names, packed_text};
use crate::process::Stdin;

/// The ref of a detached `HEAD`.
const HEAD_REF: &[u8] = b"refs/fullsend/head";
/// The ref of the tree of staged entries.
const INDEX_REF: &[u8] = b"refs/fullsend/index";

/// A zlib stream of `blob 0\0`. Git knows the empty blob without storing it, but a transfer needs it stored.
const EMPTY_BLOB: &[u8] =
    &[0x78, 0x01, 0x4b, 0xca, 0xc9, 0x4f, 0x52, 0x30, 0x60, 0x00, 0x00, 0x09, 0xb0, 0x01, 0xf0];

/// The store, ready to be fetched from.
#[derive(Debug)]
pub(super) struct Quarantine {
    dir: PathBuf,
    refs: Vec<(Vec<u8>, Oid)>,
}

impl Quarantine {
    /// Builds the store in `dir`, which must not exist.
    ///
    /// # Errors
    /// [`Code::ImportBlocked`] for a pack that is broken or a staged object that did not come.
    pub(super) async fn build(
        dir: &Path,
        repo: &HostRepo,
        incoming_dir: &Path,
        incoming: &Incoming,
        refs: &RefUpdate,
        index: &IndexUpdate,
    ) -> Result<Self> {
        init(dir, repo.object_format)?;
        let write = |name: &str, text: &[u8]| fs_err::write(dir.join(name), text).map_err(|e| io(&e));
        write("objects/info/alternates", &alternates(repo))?;
        if repo.shallow {
            fs_err::copy(repo.common_dir.join("shallow"), dir.join("shallow")).map_err(|e| io(&e))?;
        }
        let mut packs = Vec::new();
        for path in incoming.files.keys() {
            let Some(inner) = path.strip_prefix(b".git/").filter(|p| is_object_name(p)) else { continue };
            let to = dir.join(names::as_path(inner));
            if let Some(parent) = to.parent() {
                fs_err::create_dir_all(parent).map_err(|e| io(&e))?;
            }
            // The empty blob is there already, and ours is known to be good.
            if to.exists() {
                continue;
            }
            reflink_copy::reflink_or_copy(incoming_dir.join(names::as_path(path)), &to)
                .map_err(|e| io(&e))?;
            if inner.ends_with(b".pack") {
                packs.push(to);
            }
        }
        for pack in packs {
            let command =
                git::neutral("git index-pack", dir, dir).deadline(git::LONG).arg("index-pack").arg(&pack);
            let output = command.output().await?;
            if !output.status.success() {
                return Err(blocked("a pack that the sandbox returned is broken", &output.stderr_text()));
            }
        }
        let mut wanted: Vec<(Vec<u8>, Oid)> =
            refs.refs.iter().map(|c| (c.name.clone(), c.new.clone())).collect();
        if let Some(Head::Detached(oid)) = &refs.head {
            wanted.push((HEAD_REF.to_vec(), oid.clone()));
        }
        if !index.set.is_empty() {
            wanted.push((INDEX_REF.to_vec(), staged_tree(dir, repo.object_format, index).await?));
        }
        wanted.sort();
        let text = packed_text(wanted.iter().map(|(n, o)| (n, o)));
        fs_err::write(dir.join("packed-refs"), text).map_err(|e| io(&e))?;
        Ok(Self { dir: dir.to_owned(), refs: wanted })
    }

    /// The repository itself.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The objects that everything else is reached from.
    pub(super) fn tips(&self) -> impl Iterator<Item = &Oid> {
        self.refs.iter().map(|(_, oid)| oid)
    }

    /// The commits and tags among them.
    pub(super) fn commits(&self) -> impl Iterator<Item = &Oid> {
        self.refs.iter().filter(|(name, _)| name != INDEX_REF).map(|(_, oid)| oid)
    }

    /// Brings the objects into another repository, checked. No ref is written there.
    ///
    /// # Errors
    /// [`Code::ImportBlocked`] with git's words when an object is missing, forged or malformed.
    pub(super) async fn fetch_into(&self, git_dir: &Path, top: &Path) -> Result<()> {
        if self.refs.is_empty() {
            return Ok(());
        }
        let refspecs: Vec<u8> = self.refs.iter().flat_map(|(n, _)| [n.as_slice(), b"\n"].concat()).collect();
        let mut command = git::neutral("git fetch", git_dir, top).deadline(git::LONG);
        // The rule for one transport beats the general `never`.
        command = command.args(["-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"]);
        let command = command
            .args(["--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--no-prune"])
            .args(["--no-show-forced-updates", "--upload-pack=git-upload-pack", "--stdin"])
            .arg(&self.dir)
            .stdin(Stdin::Bytes(refspecs));
        let output = command.output().await?;
        if output.status.success() {
            return Ok(());
        }
        Err(blocked(
            "git refused the commits or staged files that the sandbox returned",
            &output.stderr_text(),
        ))
    }

    /// Writes a bundle with the branches and tags that moved. `false` when they hold no commit that the host
    /// lacks.
    pub(super) async fn bundle(&self, path: &Path, repo: &HostRepo) -> Result<bool> {
        let named = self.refs.iter().filter(|(n, _)| n != INDEX_REF).map(|(n, _)| n.as_slice());
        let mut input: Vec<u8> = named.flat_map(|n| [n, b"\n"].concat()).collect();
        if input.is_empty() {
            return Ok(false);
        }
        for oid in repo.refs.refs.values().chain(repo.head.oid()) {
            input.extend(format!("^{oid}\n").bytes());
        }
        let command = git::neutral("git bundle", &self.dir, &self.dir)
            .args(["bundle", "create", "--quiet"])
            .arg(path)
            .arg("--stdin")
            .deadline(git::LONG)
            .stdin(Stdin::Bytes(input));
        let output = command.output().await?;
        if output.stderr_text().contains("empty bundle") {
            return Ok(false);
        }
        if output.status.success() { Ok(true) } else { Err(git::failed("git bundle", &output)) }
    }
}

fn io(error: &std::io::Error) -> Error {
    Error::io("cannot write the quarantine of git objects", error)
}

fn blocked(what: &str, stderr: &str) -> Error {
    Error::new(Code::ImportBlocked, what)
        .detail(stderr)
        .help("nothing was taken over; the files that changed are still in the run directory")
}

/// A bare repository, written by hand: `git init` would copy a template directory.
pub(super) fn init(dir: &Path, format: ObjectFormat) -> Result<()> {
    for sub in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs_err::create_dir_all(dir.join(sub)).map_err(|e| io(&e))?;
    }
    let write = |name: &str, text: &[u8]| fs_err::write(dir.join(name), text).map_err(|e| io(&e));
    write("HEAD", b"ref: refs/heads/none\n")?;
    write("config", format_config(format, true).as_bytes())?;
    let empty = format.empty_blob();
    let (head, tail) = empty.as_str().split_at(2);
    fs_err::create_dir_all(dir.join("objects").join(head)).map_err(|e| io(&e))?;
    write(&format!("objects/{head}/{tail}"), EMPTY_BLOB)
}

/// The part of a configuration that says how a repository is stored.
pub(super) fn format_config(format: ObjectFormat, bare: bool) -> String {
    match format {
        ObjectFormat::Sha1 => format!("[core]\n\trepositoryformatversion = 0\n\tbare = {bare}\n"),
        ObjectFormat::Sha256 => format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = {bare}\n[extensions]\n\tobjectformat = {}\n",
            format.as_str()
        ),
    }
}

/// The text of `objects/info/alternates` that lends every object of the host. What the host borrows is named too:
/// git follows alternates of alternates only so far.
pub(super) fn alternates(repo: &HostRepo) -> Vec<u8> {
    repo.stores.iter().flat_map(|store| alternate_line(names::as_bytes(store))).collect()
}

/// A line of `objects/info/alternates`; git reads it in C quotes when it begins with one.
pub(crate) fn alternate_line(objects: &[u8]) -> Vec<u8> {
    let mut out = super::report::c_quoted(objects);
    out.push(b'\n');
    out
}

/// A tree with the staged entries that differ from the host's. `git write-tree` fails when one is missing.
async fn staged_tree(dir: &Path, format: ObjectFormat, index: &IndexUpdate) -> Result<Oid> {
    let file = dir.join("fullsend-index");
    let entries = super::index::Index { entries: index.set.clone(), ..super::index::Index::default() };
    let command = git::neutral("git update-index", dir, dir)
        .env("GIT_INDEX_FILE", &file)
        .args(["-c", "core.bare=false", "update-index", "-z", "--index-info"])
        .stdin(Stdin::Bytes(whole(&entries)));
    let output = command.output().await?;
    if !output.status.success() {
        return Err(blocked("git refused the index that the sandbox returned", &output.stderr_text()));
    }
    let command = git::neutral("git write-tree", dir, dir).env("GIT_INDEX_FILE", &file).arg("write-tree");
    let output = command.output().await?;
    let oid = Oid::parse(output.stdout.trim_ascii_end(), format);
    match oid.filter(|_| output.status.success()) {
        Some(oid) => Ok(oid),
        None => Err(blocked("git refused the index that the sandbox returned", &output.stderr_text())),
    }
}
