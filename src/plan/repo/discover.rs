//! Finding the repository and refusing, before anything is created, the kinds that are not handled.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::config::Config;
use super::refs::{Loose, ObjectFormat, Oid, RefStore, parse_loose};
use crate::error::{Code, Error, Result};

/// What `HEAD` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch; no object while it is unborn.
    Branch {
        /// Its full name, `refs/heads/…`.
        name: Vec<u8>,
        /// Its commit.
        oid: Option<Oid>,
    },
    /// A commit without a branch.
    Detached(Oid),
}

impl Head {
    /// The commit that is checked out.
    pub fn oid(&self) -> Option<&Oid> {
        match self {
            Head::Branch { oid, .. } => oid.as_ref(),
            Head::Detached(oid) => Some(oid),
        }
    }

    /// The text of a `HEAD` file.
    pub fn text(&self) -> Vec<u8> {
        match self {
            Head::Branch { name, .. } => [b"ref: ", name.as_slice(), b"\n"].concat(),
            Head::Detached(oid) => format!("{oid}\n").into_bytes(),
        }
    }
}

/// A repository on the host that can be uploaded.
#[derive(Debug, Clone)]
pub struct HostRepo {
    /// The top of its working tree: absolute, without links.
    pub top: PathBuf,
    /// Its `.git` directory.
    pub git_dir: PathBuf,
    /// What is checked out.
    pub head: Head,
    /// Its hash.
    pub object_format: ObjectFormat,
    /// The last component of `top`; the name of the repository in the sandbox.
    pub name: OsString,
    /// Its own configuration, without what it includes.
    pub config: Config,
    /// Its refs as they were found.
    pub refs: RefStore,
    /// Whether its history is cut off.
    pub shallow: bool,
}

fn refuse(code: Code, what: impl Into<String>, help: impl Into<String>) -> Error {
    Error::new(code, what).help(help)
}

impl HostRepo {
    /// The repository that holds `target`: the nearest directory upwards with a `.git`. One git call.
    ///
    /// # Errors
    /// [`Code::RepoInvalid`] when there is none or it is broken, [`Code::Unsupported`] for a kind that this
    /// version does not take.
    pub async fn discover(target: &Path) -> Result<Self> {
        let start = target.canonicalize().map_err(|e| {
            let why = if e.kind() == std::io::ErrorKind::NotFound {
                "it does not exist".to_owned()
            } else {
                e.to_string()
            };
            let what = format!("{} cannot be used: {why}", target.display());
            refuse(Code::RepoInvalid, what, "name a directory inside a git repository with --target-repo")
        })?;
        let top = find_top(&start)?;
        let git_dir = top.join(".git");
        check_layout(&top, &git_dir)?;
        let config = Config::read(&git_dir.join("config"), &top).await?;
        let object_format = check_config(&top, &git_dir, &config).await?;
        let refs = RefStore::read(&git_dir, object_format)?;
        let head = read_head(&git_dir, object_format, &refs)?;
        let name = top
            .file_name()
            .ok_or_else(|| {
                refuse(
                    Code::RepoInvalid,
                    "the root directory cannot be the repository",
                    "move it to a directory",
                )
            })?
            .to_owned();
        let shallow = fs_err::metadata(git_dir.join("shallow")).is_ok_and(|m| m.len() > 0);
        Ok(Self { top, git_dir, head, object_format, name, config, refs, shallow })
    }
}

fn find_top(start: &Path) -> Result<PathBuf> {
    for dir in start.ancestors() {
        if dir.join(".git").symlink_metadata().is_ok() {
            return Ok(dir.to_owned());
        }
        if ["HEAD", "objects", "refs"].iter().all(|n| dir.join(n).exists()) && dir.join("HEAD").is_file() {
            return Err(refuse(
                Code::RepoInvalid,
                format!("{} is a bare repository, without files to work on", dir.display()),
                format!("clone it (`git clone {} work`) and name the clone", dir.display()),
            ));
        }
    }
    Err(refuse(
        Code::RepoInvalid,
        format!("{} is not in a git repository", start.display()),
        "name one with --target-repo, or run `git init` there",
    ))
}

fn check_layout(top: &Path, git_dir: &Path) -> Result<()> {
    let clone = format!("clone it (`git clone {} work`) and name the clone", top.display());
    let kind =
        fs_err::symlink_metadata(git_dir).map_err(|e| Error::io("cannot look at the repository", &e))?;
    if kind.is_file() {
        let what = format!("{} is a linked worktree or a submodule: its .git is a file", top.display());
        return Err(refuse(Code::Unsupported, what, clone));
    }
    if !kind.is_dir() {
        let what = format!("{} is a link, not a directory", git_dir.display());
        return Err(refuse(Code::Unsupported, what, clone));
    }
    for part in ["HEAD", "objects", "refs"] {
        let path = git_dir.join(part);
        let sound =
            path.symlink_metadata().is_ok_and(|m| if part == "HEAD" { m.is_file() } else { m.is_dir() });
        if !sound {
            let what = format!("{} is missing or of the wrong kind", path.display());
            return Err(refuse(
                Code::RepoInvalid,
                what,
                "run `git fsck` there, or clone the repository again",
            ));
        }
    }
    let alternates = git_dir.join("objects/info/alternates");
    if fs_err::metadata(&alternates).is_ok_and(|m| m.len() > 0) {
        return Err(refuse(
            Code::Unsupported,
            format!("{} borrows objects from another repository", top.display()),
            format!("run `git repack -a -d && rm {}` in it", alternates.display()),
        ));
    }
    Ok(())
}

async fn check_config(top: &Path, git_dir: &Path, config: &Config) -> Result<ObjectFormat> {
    let at = top.display();
    if config.is_true("core.bare") {
        let help = "run `git config core.bare false` in it if it has files to work on";
        return Err(refuse(Code::RepoInvalid, format!("{at} is marked as bare"), help));
    }
    if config.get("core.worktree").is_some() {
        let help = "unset core.worktree, or clone the repository and name the clone";
        return Err(refuse(
            Code::Unsupported,
            format!("{at} keeps its files elsewhere (core.worktree)"),
            help,
        ));
    }
    let own = git_dir.join("config.worktree");
    let more = if config.is_true("extensions.worktreeconfig") {
        Config::read(&own, top).await?
    } else {
        Config::default()
    };
    if config.is_true("core.sparsecheckout") || more.is_true("core.sparsecheckout") {
        let what = format!("{at} is a sparse checkout");
        return Err(refuse(Code::Unsupported, what, "run `git sparse-checkout disable` in it"));
    }
    let promisor = |key: &[u8]| key.starts_with(b"remote.") && key.ends_with(b".promisor");
    if config.get("extensions.partialclone").is_some() || config.0.iter().any(|(k, _)| promisor(k)) {
        let help = "make a full clone: `git clone` without --filter";
        return Err(refuse(Code::Unsupported, format!("{at} is a partial clone"), help));
    }
    if config.get("extensions.refstorage").is_some_and(|v| v != b"files") {
        let help = "run `git refs migrate --ref-format=files` in it";
        return Err(refuse(Code::Unsupported, format!("{at} keeps its refs as reftable"), help));
    }
    match config.get("extensions.objectformat") {
        None | Some(b"sha1") => Ok(ObjectFormat::Sha1),
        Some(b"sha256") => Ok(ObjectFormat::Sha256),
        Some(other) => {
            let what = format!("{at} uses the unknown hash {}", super::names::shown(other));
            Err(refuse(Code::Unsupported, what, "use a repository with sha1 or sha256"))
        }
    }
}

/// Reads `HEAD` of a host repository.
pub(crate) fn read_head(git_dir: &Path, format: ObjectFormat, refs: &RefStore) -> Result<Head> {
    let text = fs_err::read(git_dir.join("HEAD"))
        .map_err(|e| Error::io("cannot read HEAD of the repository", &e))?;
    match parse_loose(&text, format) {
        Some(Loose::Object(oid)) => Ok(Head::Detached(oid)),
        Some(Loose::Symbolic(name)) if name.starts_with(b"refs/heads/") => {
            let oid = refs.resolve(&name).cloned();
            Ok(Head::Branch { name, oid })
        }
        _ => Err(refuse(
            Code::RepoInvalid,
            "HEAD of the repository names neither a branch nor a commit",
            "check out a branch in it: `git switch <branch>`",
        )),
    }
}
