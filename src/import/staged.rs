//! The staged repository: the host's checkout as it would be with the agent's work in it, beside the checkout.
//!
//! Plain git is safe in it. Its `.git` is written by us: the configuration is the host's by inclusion, objects
//! come through alternates and the checked fetch, refs and index from text. Validation and post-script work
//! here; the checkout is touched later, if at all, by the same steps (see [`super::apply`]).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::change_limits::Measured;
use super::delta::{Delta, GitState, notes};
use super::index::{Index, IndexUpdate};
use super::index_links::Links;
use super::limits::Limits;
use super::listing::Listing;
use super::ops::{Change, Ops};
use super::quarantine::{self, Quarantine};
use super::refs::{self, RefUpdate};
use super::report::{patch, private_dir};
use super::{
    change_limits, change_list, copy, dotgit, encodings, filters, git, inspect, search, steer, weight,
};
use crate::error::{Code, Error, Result};
use crate::harness::ChangeLimits;
use crate::plan::repo::{Head, HostRepo, Manifest, names};
use crate::process::Stdin;
use crate::secrets::Registry;

/// What [`stage`] works on. Each iteration starts from the host's checkout with everything that changed since
/// the upload, so staging again replaces what was staged before.
#[derive(Debug, Clone, Copy)]
pub struct StageInput<'a> {
    /// The host's repository.
    pub repo: &'a HostRepo,
    /// What was uploaded.
    pub manifest: &'a Manifest,
    /// What changed in the sandbox since it was unpacked.
    pub delta: &'a Delta,
    /// The listing that the delta ends with.
    pub after: &'a Listing,
    /// The directory that the changed files were fetched into, `.git/…` included. Must stay until the result
    /// is applied or dropped.
    pub incoming: &'a Path,
    /// What [`super::index::LS_FILES`] printed in the sandbox; `None` when it failed.
    pub index: Option<&'a [u8]>,
    /// A private directory of this run.
    pub work_dir: &'a Path,
    /// Tells this run's staged directory from others.
    pub run_id: &'a str,
    /// Budgets.
    pub limits: &'a Limits,
    /// Values that must not come in.
    pub secrets: &'a Registry,
    /// Whether a staged repository is wanted even when nothing changed.
    pub need_tree: bool,
}

/// The result of staging.
#[derive(Debug)]
pub enum Staged {
    /// The sandbox changed nothing, and nobody asked for a tree.
    Unchanged {
        /// What the user should hear.
        notes: Vec<String>,
    },
    /// A staged repository.
    Tree(Box<StagedTree>),
}

impl Staged {
    /// What the user should hear: what was seen and is not taken over.
    pub fn notes(&self) -> &[String] {
        match self {
            Staged::Unchanged { notes } => notes,
            Staged::Tree(tree) => tree.notes(),
        }
    }
}

/// How the index follows.
#[derive(Debug)]
pub(super) enum IndexPlan {
    /// It is as it was.
    Keep,
    /// Some entries change.
    Update(IndexUpdate),
    /// The sandbox's could not be read: it is made from the new `HEAD`.
    FromHead,
}

/// A staged repository on disk. Not removed on drop: an interrupted apply needs it.
#[derive(Debug)]
pub struct StagedTree {
    pub(super) base: PathBuf,
    pub(super) top: PathBuf,
    pub(super) incoming: PathBuf,
    pub(super) work_dir: PathBuf,
    pub(super) ops: Ops,
    pub(super) refs: RefUpdate,
    pub(super) index: IndexPlan,
    pub(super) quarantine: Option<Quarantine>,
    notes: Vec<String>,
}

/// Where the staged repository's private directory will be: beside the checkout, where renames and shared
/// blocks work, else in `work_dir`. Known before anything is staged, so that it can be registered for removal.
pub fn place(repo: &HostRepo, work_dir: &Path, run_id: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(&repo.name);
    name.push(format!(".fullsend-{run_id}"));
    let beside = repo.top.parent().filter(|parent| {
        let same = |a: &Path, b: &Path| Some(a.metadata().ok()?.dev() == b.metadata().ok()?.dev());
        name.len() <= names::MAX_NAME
            && same(parent, &repo.top) == Some(true)
            && rustix::fs::access(*parent, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    });
    match beside {
        Some(parent) => parent.join(name),
        None => work_dir.join("staged"),
    }
}

/// Checks what came back and builds the staged repository.
///
/// # Errors
/// [`crate::Code::ImportBlocked`] when something is refused, [`crate::Code::SecretFound`] when a secret of the run
/// is in it; nothing on the host has changed then.
pub async fn stage(input: StageInput<'_>) -> Result<Staged> {
    match attempt(input).await {
        Err(error) if error.code() == Code::SecretFound => {
            // What git tracks on the host already is no secret of this run any more.
            let secrets = search::untracked(input.repo, input.secrets).await?;
            if secrets.values().len() == input.secrets.values().len() {
                return Err(error);
            }
            attempt(StageInput { secrets: &secrets, ..input }).await
        }
        done => done,
    }
}

async fn attempt(input: StageInput<'_>) -> Result<Staged> {
    let StageInput { repo, manifest, delta, incoming, limits, .. } = input;
    inspect::check_names(delta, input.after, manifest, limits)?;
    let arrived = inspect::incoming(incoming, delta, limits)?;
    let texts = delta.files.keys().chain(&delta.dirs).chain(delta.links.iter().flat_map(|(p, t)| [p, t]));
    search::working_tree(
        incoming,
        &repo.top,
        delta.files.keys().map(Vec::as_slice),
        texts.map(Vec::as_slice),
        input.secrets,
    )?;
    let mut notes = notes(delta);
    let (refs, more) = refs::read(incoming, delta, repo, limits)?;
    notes.extend(more);
    let git_there = delta.git.state == GitState::Present;
    let wants_index = git_there && (delta.git.index || !refs.is_empty());
    let host_index = if wants_index { host_index(repo, limits).await? } else { Index::default() };
    let sandbox_index = match input.index.filter(|_| wants_index) {
        Some(text) => Some(Index::parse(text, repo.object_format, limits)?),
        None => None,
    };
    let mut index =
        plan_index(wants_index, &host_index, sandbox_index.as_ref(), manifest, &refs, repo, &mut notes);
    let mut links = Links::of(input);
    let taken = links.plan(&delta.links);
    let ops = Ops::plan(delta, manifest, taken, incoming, &repo.top)?;
    let unchanged = ops.is_empty() && refs.is_empty() && matches!(index, IndexPlan::Keep);
    if unchanged && !input.need_tree {
        notes.extend(links.notes());
        return Ok(Staged::Unchanged { notes });
    }
    let config = dotgit::host_config(repo).await?;
    let more = steer::judge(&ops, incoming, repo, manifest, &config, &mut notes)?;
    let empty = IndexUpdate::default();
    let update = if let IndexPlan::Update(update) = &index { update } else { &empty };
    let quarantine = if refs.is_empty() && update.set.is_empty() {
        None
    } else {
        private_dir(input.work_dir)?;
        let dir = input.work_dir.join("quarantine.git");
        remove_tree(&dir)?;
        Some(Quarantine::build(&dir, repo, incoming, &arrived, &refs, update).await?)
    };
    if let (Some(quarantine), IndexPlan::Update(update)) = (&quarantine, &mut index) {
        links.keep_out(quarantine, update).await?;
        filters::check(quarantine, update, repo, manifest).await?;
    }
    notes.extend(links.notes());
    let base = place(repo, input.work_dir, input.run_id);
    remove_tree(&base)?;
    private_dir(&base)?;
    let top = base.join(&repo.name);
    let mut tree = StagedTree {
        base,
        top,
        incoming: incoming.to_owned(),
        work_dir: input.work_dir.to_owned(),
        ops,
        refs,
        index,
        quarantine,
        notes,
    };
    if let Err(error) = tree.build(input, &config, &more).await {
        // Nobody is handed a tree that is not whole.
        remove_tree(&tree.base)?;
        return Err(error);
    }
    // Only a warning hangs on it.
    match encodings::check(&tree.ops, repo, manifest, &tree.top, &tree.work_dir).await {
        Ok(warning) => tree.notes.extend(warning),
        Err(error) => tracing::debug!(%error, "encodings were not checked"),
    }
    Ok(Staged::Tree(Box::new(tree)))
}

/// The host's index as text.
pub(super) async fn host_index(repo: &HostRepo, limits: &Limits) -> Result<Index> {
    read_index(repo, None, limits).await
}

/// An index of the host, in its place or elsewhere, as text.
pub(super) async fn read_index(repo: &HostRepo, file: Option<&Path>, limits: &Limits) -> Result<Index> {
    let call = |label: &str, args: &[&str]| {
        let command = git::neutral(label, &repo.git_dir, &repo.top).args(args.iter().copied());
        file.into_iter().fold(command, |c, file| c.env("GIT_INDEX_FILE", file))
    };
    // The host's own index may hold what a sandbox's may not, but git itself refuses such paths on checkout.
    let mut text = git::run(call("git ls-files", &["ls-files", "-s", "-z", "--full-name"])).await?;
    let index = Index::parse(&text, repo.object_format, limits)?;
    if !index.has_empty(repo.object_format) {
        return Ok(index);
    }
    let tree = repo.object_format.empty_tree();
    let args = [
        "diff-index",
        "-z",
        "--cached",
        "--ita-invisible-in-index",
        "--diff-filter=A",
        "--no-renames",
        "--no-ext-diff",
        tree.as_str(),
    ];
    let really = git::run(call("git diff-index", &args)).await?;
    text.extend([b":\0", really.as_slice(), b".\0"].concat());
    Index::parse(&text, repo.object_format, limits)
}

fn plan_index(
    wanted: bool,
    host: &Index,
    sandbox: Option<&Index>,
    manifest: &Manifest,
    refs: &RefUpdate,
    repo: &HostRepo,
    notes: &mut Vec<String>,
) -> IndexPlan {
    if !wanted {
        return IndexPlan::Keep;
    }
    let Some(sandbox) = sandbox else {
        let moved = refs.head.is_some()
            || matches!(&repo.head, Head::Branch { name, .. } if refs.refs.iter().any(|c| c.name == *name));
        notes.push(
            "the index of the sandbox could not be read; what was staged there is not taken over".to_owned(),
        );
        return if moved { IndexPlan::FromHead } else { IndexPlan::Keep };
    };
    if !sandbox.unmerged.is_empty() {
        let list = names::shown_list(sandbox.unmerged.iter().map(Vec::as_slice)).replace('\n', ", ");
        notes.push(format!("the agent left conflicts; the index keeps the host's entries for: {list}"));
    }
    let update = IndexUpdate::between(host, sandbox, manifest);
    if update.is_empty() { IndexPlan::Keep } else { IndexPlan::Update(update) }
}

/// Removes a directory of ours; one that is not there is fine.
fn remove_tree(path: &Path) -> Result<()> {
    match fs_err::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove a staged tree", &e))
        }
        _ => Ok(()),
    }
}

impl StagedTree {
    async fn build(&self, input: StageInput<'_>, config: &dotgit::HostConfig, more: &[u8]) -> Result<()> {
        let StageInput { repo, manifest, limits, secrets, .. } = input;
        let io = |e: std::io::Error| Error::io("cannot make the staged tree", &e);
        fs_err::create_dir(&self.top).map_err(io)?;
        let (from, to, owned) = (repo.top.clone(), self.top.clone(), manifest.clone());
        let copied = tokio::task::spawn_blocking(move || copy::tree(&from, &owned, &to)).await;
        copied.map_err(|e| Error::bug(format!("copying the checkout ended early: {e}")))??;
        dotgit::write(repo, config, more, &self.top).await?;
        self.ops.run(&self.top, &self.incoming)?;
        let git_dir = self.git_dir();
        if let Some(quarantine) = &self.quarantine {
            quarantine.fetch_into(&git_dir, &self.top).await?;
            let host_files = manifest.entries.len();
            weight::check(&git_dir, &self.top, repo, quarantine.commits(), host_files, limits).await?;
            let tips = quarantine.tips();
            search::objects(&git_dir, &self.top, repo, tips, &self.refs, limits, secrets).await?;
        }
        refs::update(&git_dir, &self.top, &self.refs).await?;
        self.update_index(repo, &git_dir, &self.top).await
    }

    /// Brings an index in line: the staged one, or the host's.
    pub(super) async fn update_index(&self, repo: &HostRepo, git_dir: &Path, top: &Path) -> Result<()> {
        let call = |args: &[&str], input: Vec<u8>| {
            let command = git::neutral("git index", git_dir, top).args(repo.without_filters());
            git::run(command.args(args.iter().copied()).stdin(Stdin::Bytes(input)))
        };
        let update = match &self.index {
            IndexPlan::Keep => return Ok(()),
            IndexPlan::FromHead => return call(&["read-tree", "HEAD"], Vec::new()).await.map(drop),
            IndexPlan::Update(update) => update,
        };
        call(&["update-index", "-z", "--index-info"], update.index_info(repo.object_format)).await?;
        let there = |p: &&Vec<u8>| top.join(names::as_path(p)).symlink_metadata().is_ok();
        let list =
            |paths: Vec<&Vec<u8>>| paths.into_iter().flat_map(|p| [p.as_slice(), b"\0"].concat()).collect();
        if repo.sparse {
            // What came without a file lies outside of what is checked out.
            let outside: Vec<_> = update.set.keys().filter(|p| !there(p)).collect();
            call(&["update-index", "--skip-worktree", "-z", "--stdin"], list(outside)).await?;
        }
        let intended: Vec<_> = update.intend.iter().filter(there).collect();
        if intended.is_empty() {
            return Ok(());
        }
        self.intend(list(intended), repo, git_dir, top).await
    }

    /// `git add -N` for a list of paths. It asks the filters that attributes name, so it runs under a repository of
    /// ours, whose configuration has none, on the other's index. Where that fails (a split index), the files stay
    /// untracked.
    async fn intend(&self, paths: Vec<u8>, repo: &HostRepo, git_dir: &Path, top: &Path) -> Result<()> {
        let scratch = self.work_dir.join("intend.git");
        private_dir(&self.work_dir)?;
        quarantine::init(&scratch, repo.object_format)?;
        let common = if *git_dir == repo.git_dir { &repo.common_dir } else { git_dir };
        let output = git::neutral("git add", &scratch, top)
            .env("GIT_INDEX_FILE", git_dir.join("index"))
            .env("GIT_OBJECT_DIRECTORY", common.join("objects"))
            .args(["--work-tree=.", "--literal-pathspecs", "add", "-N", "-f"])
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .stdin(Stdin::Bytes(paths))
            .output()
            .await?;
        if !output.status.success() {
            tracing::debug!(stderr = output.stderr_text(), "git add -N");
        }
        remove_tree(&scratch)
    }

    fn git_dir(&self) -> PathBuf {
        self.top.join(".git")
    }

    /// The top of the staged repository.
    pub fn path(&self) -> &Path {
        &self.top
    }

    /// The private directory that holds it.
    pub fn dir(&self) -> &Path {
        &self.base
    }

    /// What the user should hear: links, special files and refs that were not taken over.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Branches, tags and `HEAD` that move.
    pub fn refs(&self) -> &RefUpdate {
        &self.refs
    }

    /// Changed paths of the working tree, sorted.
    pub fn changes(&self, manifest: &Manifest) -> Vec<Change> {
        self.ops.changes(manifest)
    }

    /// Whether anything is to be applied.
    pub fn has_changes(&self) -> bool {
        !self.ops.is_empty() || !self.refs.is_empty() || !matches!(self.index, IndexPlan::Keep)
    }

    /// Writes a patch from the host's files to the agent's (for `git apply`). Committed or not makes no
    /// difference to it.
    pub async fn write_patch(&self, path: &Path, repo: &HostRepo, manifest: &Manifest) -> Result<()> {
        private_dir(&self.work_dir)?;
        patch(path, &self.work_dir.join("patch.git"), repo, manifest, &self.ops, &self.incoming).await
    }

    /// The change as a list for programs (`changes.json`).
    pub fn change_list(&self, repo: &HostRepo, manifest: &Manifest) -> Result<Vec<u8>> {
        change_list::list(&self.changes(manifest), &self.ops, &self.incoming, &self.refs, repo, manifest)
    }

    /// Judges the change by the limits of the harness.
    ///
    /// # Errors
    /// [`crate::Code::ImportBlocked`] with everything that is past a limit.
    pub async fn check_limits(
        &self,
        limits: &ChangeLimits,
        patch_bytes: u64,
        repo: &HostRepo,
        manifest: &Manifest,
    ) -> Result<()> {
        let patched: BTreeSet<Vec<u8>> = self.changes(manifest).into_iter().map(|c| c.path).collect();
        let mut touched = patched.clone();
        if let IndexPlan::Update(update) = &self.index {
            touched.extend(update.set.keys().chain(&update.remove).chain(&update.intend).cloned());
        }
        let committed = match &self.quarantine {
            Some(quarantine) => change_list::committed(quarantine, repo).await?,
            None => BTreeSet::new(),
        };
        touched.extend(committed.iter().cloned());
        let sizes = change_list::sizes(&self.ops, &self.incoming);
        let measured = Measured {
            touched: &touched,
            patched: &patched,
            committed: &committed,
            sizes: &sizes,
            patch: patch_bytes,
        };
        change_limits::check(limits, &measured, repo, &self.work_dir).await
    }

    /// Writes a bundle with the commits that came (for `git fetch`). `false` when there are none.
    pub async fn write_bundle(&self, path: &Path, repo: &HostRepo) -> Result<bool> {
        match &self.quarantine {
            Some(quarantine) => quarantine.bundle(path, repo).await,
            None => Ok(false),
        }
    }

    /// Removes it from disk.
    pub fn remove(self) -> Result<()> {
        remove_tree(&self.base)
    }
}
