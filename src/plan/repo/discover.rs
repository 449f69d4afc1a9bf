//! Finding the repository, and refusing before anything is created what cannot be uploaded as it is.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::config::Config;
use super::refs::{Loose, ObjectFormat, Oid, RefStore, parse_loose};
use super::topology::{Kind, Places, object_stores, places};
use crate::error::{Code, Error, Result};
use crate::import::git;

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

/// How a repository keeps its refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefBackend {
    /// Files below `refs/` and `packed-refs`, read without git.
    Files,
    /// `reftable/` (git 2.45), read with `git for-each-ref`.
    Reftable,
}

/// A repository on the host that can be uploaded.
#[derive(Debug, Clone)]
pub struct HostRepo {
    /// The top of its working tree: absolute, without links.
    pub top: PathBuf,
    /// How working tree and repository belong together.
    pub kind: Kind,
    /// The directory with `HEAD` and index; what `git --git-dir` is given.
    pub git_dir: PathBuf,
    /// The directory with refs, configuration, hooks and objects; another one than `git_dir` in a linked worktree.
    pub common_dir: PathBuf,
    /// Its object store, then those that it borrows from.
    pub stores: Vec<PathBuf>,
    /// What is checked out.
    pub head: Head,
    /// Its hash.
    pub object_format: ObjectFormat,
    /// How it keeps its refs.
    pub ref_backend: RefBackend,
    /// The last component of `top`; the name of the repository in the sandbox.
    pub name: OsString,
    /// Its own configuration, without what it includes; that of the worktree comes last.
    pub config: Config,
    /// Its refs as they were found.
    pub refs: RefStore,
    /// Whether its history is cut off.
    pub shallow: bool,
    /// Whether only a part of its files is checked out (`git sparse-checkout`).
    pub sparse: bool,
    /// Whether objects may be missing that its remote has promised (`git clone --filter`).
    pub partial: bool,
}

fn refuse(code: Code, what: impl Into<String>, help: impl Into<String>) -> Error {
    Error::new(code, what).help(help)
}

impl HostRepo {
    /// The repository that holds `target`: the nearest directory upwards with a `.git`. One git call for an
    /// ordinary repository.
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
        let Places { kind, git_dir, common_dir } = places(&top)?;
        let stores = object_stores(&common_dir)?;
        check_owner(&top, [&top, &git_dir, &common_dir]).await?;
        let mut config = Config::read(&common_dir.join("config")).await?;
        if config.is_true("extensions.worktreeconfig") {
            config.0.extend(Config::read(&git_dir.join("config.worktree")).await?.0);
        }
        let (object_format, ref_backend) = check_config(&top, &git_dir, kind, &config)?;
        let (refs, head) = read_refs(&top, &git_dir, &common_dir, object_format, ref_backend).await?;
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
        let shallow = fs_err::metadata(common_dir.join("shallow")).is_ok_and(|m| m.len() > 0);
        let sparse = config.is_true("core.sparsecheckout");
        let partial = config.get("extensions.partialclone").is_some() || config.promisors().next().is_some();
        Ok(Self {
            top,
            kind,
            git_dir,
            common_dir,
            stores,
            head,
            object_format,
            ref_backend,
            name,
            config,
            refs,
            shallow,
            sparse,
            partial,
        })
    }

    /// Options for a git that writes an index: it compares files of the same second with what it has, and would ask
    /// the repository's filters about them.
    pub(crate) fn without_filters(&self) -> Vec<OsString> {
        let mut names: Vec<&[u8]> = Vec::new();
        for (key, _) in &self.config.0 {
            let rest = key.strip_prefix(b"filter.");
            if let Some((rest, at)) = rest.and_then(|r| Some((r, r.iter().rposition(|b| *b == b'.')?)))
                && !names.contains(&&rest[..at])
            {
                names.push(&rest[..at]);
            }
        }
        let option = |name: &[u8], setting: &str| {
            let text = [b"filter.", name, b".", setting.as_bytes()].concat();
            [OsString::from("-c"), super::names::as_path(&text).as_os_str().to_owned()]
        };
        let settings = ["clean=", "smudge=", "process=", "required=false"];
        names.iter().flat_map(|name| settings.iter().flat_map(|s| option(name, s))).collect()
    }

    /// Its refs and `HEAD` as they are now.
    pub async fn read_refs(&self) -> Result<(RefStore, Head)> {
        read_refs(&self.top, &self.git_dir, &self.common_dir, self.object_format, self.ref_backend).await
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

/// Git refuses to obey a repository of another user unless it was told to (CVE-2022-24765). The staged repository
/// includes this one's configuration and belongs to us, so the question has to be asked here; git answers it with
/// the user's own settings.
async fn check_owner(top: &Path, dirs: [&PathBuf; 3]) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    if dirs.iter().all(|d| fs_err::metadata(d).is_ok_and(|m| m.uid() == me)) {
        return Ok(());
    }
    let mut command =
        git::bare("git rev-parse", top).env_remove("GIT_CONFIG_GLOBAL").env_remove("GIT_CONFIG_NOSYSTEM");
    // Where CI systems and sudo say whom to trust.
    let told = |key: &str| key == "SUDO_UID" || key.starts_with("GIT_CONFIG_");
    for (key, value) in std::env::vars_os().filter(|(k, _)| k.to_str().is_some_and(told)) {
        command = command.env(key, value);
    }
    let output = command.args(["rev-parse", "--git-dir"]).output().await?;
    if output.status.success() || !output.stderr_text().contains("safe.directory") {
        return Ok(());
    }
    let what = format!("{} belongs to another user, and git does not trust it", top.display());
    let help = format!("if you trust it: git config --global --add safe.directory {}", top.display());
    Err(refuse(Code::RepoInvalid, what, help).detail(output.stderr_text()))
}

fn check_config(
    top: &Path,
    git_dir: &Path,
    kind: Kind,
    config: &Config,
) -> Result<(ObjectFormat, RefBackend)> {
    let at = top.display();
    // A bare repository may have linked worktrees with files.
    if config.is_true("core.bare") && kind != Kind::LinkedWorktree {
        let help = "run `git config core.bare false` in it if it has files to work on";
        return Err(refuse(Code::RepoInvalid, format!("{at} is marked as bare"), help));
    }
    if let Some(named) = config.get("core.worktree").filter(|_| kind != Kind::LinkedWorktree)
        && !git_dir.join(super::names::as_path(named)).canonicalize().is_ok_and(|p| p == top)
    {
        let what = format!("{at} keeps its files elsewhere (core.worktree)");
        let help = "unset core.worktree, or clone the repository and name the clone";
        return Err(refuse(Code::Unsupported, what, help));
    }
    let backend = match config.get("extensions.refstorage") {
        None | Some(b"files") => RefBackend::Files,
        Some(b"reftable") => RefBackend::Reftable,
        Some(other) => {
            let what = format!("{at} keeps its refs as {}", super::names::shown(other));
            let help = "run `git refs migrate --ref-format=files` in it (git 2.46 or newer)";
            return Err(refuse(Code::Unsupported, what, help));
        }
    };
    match config.get("extensions.objectformat") {
        None | Some(b"sha1") => Ok((ObjectFormat::Sha1, backend)),
        Some(b"sha256") => Ok((ObjectFormat::Sha256, backend)),
        Some(other) => {
            let what = format!("{at} uses the unknown hash {}", super::names::shown(other));
            Err(refuse(Code::Unsupported, what, "use a repository with sha1 or sha256"))
        }
    }
}

async fn read_refs(
    top: &Path,
    git_dir: &Path,
    common_dir: &Path,
    format: ObjectFormat,
    backend: RefBackend,
) -> Result<(RefStore, Head)> {
    if backend == RefBackend::Files {
        let refs = RefStore::read(common_dir, format)?;
        let text = fs_err::read(git_dir.join("HEAD"))
            .map_err(|e| Error::io("cannot read HEAD of the repository", &e))?;
        let head = head_of(&text, format, &refs)?;
        return Ok((refs, head));
    }
    let call = |label: &str, args: &[&str]| git::neutral(label, git_dir, top).args(args.iter().copied());
    let list = ["for-each-ref", "--format=%(objectname) %(refname)%00%(symref)"];
    let output = call("git for-each-ref", &list).output().await?;
    if !output.status.success() {
        let what = format!("{} keeps its refs as reftable, which this git does not read", top.display());
        let help =
            "install git 2.45 or newer, or run `git refs migrate --ref-format=files` with git 2.46 or newer";
        return Err(refuse(Code::Unsupported, what, help).detail(output.stderr_text()));
    }
    let refs = RefStore::parse_listing(&output.stdout, format).ok_or_else(|| {
        refuse(Code::RepoInvalid, "git listed a ref that is none", "run `git fsck` in the repository")
    })?;
    let symbolic = call("git symbolic-ref", &["symbolic-ref", "-q", "HEAD"]).output().await?;
    let text = if symbolic.status.success() {
        [b"ref: ", symbolic.stdout.as_slice()].concat()
    } else {
        git::run(call("git rev-parse", &["rev-parse", "--verify", "HEAD"])).await?
    };
    let head = head_of(&text, format, &refs)?;
    Ok((refs, head))
}

/// What the text of a `HEAD` file says.
fn head_of(text: &[u8], format: ObjectFormat, refs: &RefStore) -> Result<Head> {
    match parse_loose(text, format) {
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
