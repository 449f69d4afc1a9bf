//! What goes into the sandbox, as it was when it was read. The same value later tells whether the checkout
//! has changed meanwhile and which paths the sandbox may delete.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::agent_config::agent_config;
use super::discover::HostRepo;
use super::gitdir::{GitFile, GitSource, collect};
use super::names;
use super::pack::{self, Marks};
use super::walk::{Skip, look, walk};
use crate::error::{Error, Result};
use crate::import::git;
use crate::process::{Command, Stdin};

/// Above this the user is told what makes the upload large, in bytes.
const LARGE: u64 = 500 << 20;

/// What an entry of the working tree is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link with its target.
    Link(Vec<u8>),
}

/// One entry of the working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the top.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// In bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Last change of the content, ns since 1970.
    pub mtime_ns: i64,
    /// Last change of anything, ns since 1970.
    pub ctime_ns: i64,
    /// Inode number.
    pub ino: u64,
}

impl Entry {
    /// Whether its owner may execute it.
    pub fn executable(&self) -> bool {
        self.mode & 0o100 != 0
    }
}

/// Why a path does not travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Git ignores it, and the harness says `upload: {ignored: false}`.
    Ignored,
    /// The harness excludes it.
    Excluded,
    /// It belongs to this program.
    Output,
    /// It is the `.git` of a repository inside the repository.
    NestedGit,
    /// It is a socket; left by a running program and of no use elsewhere.
    Socket,
    /// It is a FIFO or a device.
    Special,
    /// It configures agent programs, and the harness does not trust the repository.
    AgentConfig,
}

/// A path that does not travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Relative to the top; everything below it stays out too.
    pub path: Vec<u8>,
    /// The reason.
    pub why: Why,
}

/// What the harness and the run say about the upload.
#[derive(Debug, Clone, Default)]
pub struct UploadOptions {
    /// Whether git-ignored files go in.
    pub ignored: bool,
    /// Patterns of gitignore(5), relative to the top, of what stays out; tracked files too.
    pub exclude: Vec<String>,
    /// Absolute paths of this program's own (the output directory, reports); stay out when they lie inside.
    pub leave_out: Vec<PathBuf>,
    /// Whether configuration of agent programs goes in (see [`super::agent_config`]).
    pub trust_repo_config: bool,
}

/// What goes in.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The working tree, sorted by path bytes (a directory before what it holds).
    pub entries: Vec<Entry>,
    /// The `.git` of the sandbox.
    pub git: Vec<GitFile>,
    /// What stays out.
    pub left_out: Vec<LeftOut>,
    /// What the user should hear, one line each.
    pub warnings: Vec<String>,
    /// All content, in bytes.
    pub bytes: u64,
    /// The bytes of the host's index.
    pub index: Option<Vec<u8>>,
}

impl Manifest {
    /// Takes the manifest: one walk, and a git call only where the options ask for one.
    pub async fn take(repo: &HostRepo, options: &UploadOptions) -> Result<Self> {
        let Selection { skip, tracked } = skip(repo, options).await?;
        let packs = if repo.stores.len() > 1 { Some(pack::reachable(repo).await?) } else { None };
        let owned = repo.clone();
        let taken = tokio::task::spawn_blocking(move || {
            Ok::<_, Error>((walk(&owned.top, &skip)?, collect(&owned, packs)?))
        });
        let (walked, (mut git, index)) =
            taken.await.map_err(|e| Error::bug(format!("the walk of the checkout ended early: {e}")))??;
        let mut marks = Marks { absent: tracked, ..Marks::default() };
        if !walked.filters.is_empty() {
            let files = list(repo, &["-c"], &[]).await?;
            let filtered = pack::filtered(repo, files.iter().map(Vec::as_slice)).await?;
            marks.unchanged = filtered.into_iter().map(|(path, _)| path).collect();
        }
        let filtered = marks.unchanged.len();
        if let Some(bytes) = &index
            && let Some(marked) = pack::index(repo, bytes, &marks).await?
            && let Some(file) = git.iter_mut().find(|f| f.path == b"index")
        {
            file.source = GitSource::Text(marked);
        }
        let files = walked.entries.iter().filter(|e| e.kind == Kind::File).map(|e| e.size);
        let bytes = files.chain(git.iter().map(GitFile::size)).sum();
        let mut manifest = Self {
            entries: walked.entries,
            git,
            left_out: walked.left_out,
            warnings: Vec::new(),
            bytes,
            index,
        };
        manifest.warn(filtered);
        if bytes > LARGE {
            let largest = manifest.largest_ignored(repo).await;
            manifest.warnings.push(large_warning(bytes, largest));
        }
        Ok(manifest)
    }

    /// The entry of a path.
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.binary_search_by(|e| e.path.as_slice().cmp(path)).ok().map(|at| &self.entries[at])
    }

    /// Whether a path, or a directory above it, stayed on the host.
    pub fn is_left_out(&self, path: &[u8]) -> bool {
        let out = |p: &[u8]| self.left_out.binary_search_by(|l| l.path.as_slice().cmp(p)).is_ok();
        out(path) || names::ancestors(path).any(out)
    }

    /// Everything about the host checkout that is no longer as it was: paths of the working tree, and words
    /// for `HEAD` or a ref. Empty when nothing changed. The index is compared by its user, who can tell a
    /// refresh from a change.
    pub async fn changed_since(&self, repo: &HostRepo) -> Result<Vec<String>> {
        let mut changed: Vec<String> = Vec::new();
        for entry in &self.entries {
            let same = look(&repo.top, &entry.path).is_some_and(|now| match entry.kind {
                // A directory's times change with every temporary file of an editor.
                Kind::Dir => now.kind == Kind::Dir,
                _ => now == *entry,
            });
            if !same {
                changed.push(names::shown(&entry.path));
            }
        }
        if repo.read_refs().await?.1 != repo.head {
            changed.push("HEAD".to_owned());
        }
        Ok(changed)
    }

    fn warn(&mut self, filtered: usize) {
        let of = |why: Why| self.left_out.iter().filter(move |l| l.why == why).map(|l| l.path.as_slice());
        let special: Vec<_> = of(Why::Special).chain(of(Why::Socket)).collect();
        let mut warnings = Vec::new();
        if !special.is_empty() {
            let list = names::shown_list(special).replace('\n', ", ");
            warnings.push(format!("not uploaded, since they are no files: {list}"));
        }
        let nested: Vec<_> = of(Why::NestedGit).collect();
        if !nested.is_empty() {
            let list = names::shown_list(nested).replace('\n', ", ");
            warnings.push(format!(
                "repositories inside the repository go in as plain files, without their history: {list}"
            ));
        }
        if filtered > 0 {
            warnings.push(format!(
                "{filtered} tracked file(s) go through a filter (Git LFS or the like) that the sandbox may lack; git \
                 there takes them for unchanged"
            ));
        }
        self.warnings.append(&mut warnings);
    }

    /// The largest directory that git ignores, with its size in bytes.
    async fn largest_ignored(&self, repo: &HostRepo) -> Option<(Vec<u8>, u64)> {
        let ignored = ignored(repo).await.ok()?;
        let size = |dir: &[u8]| {
            let from = self.entries.partition_point(|e| e.path.as_slice() < dir);
            let below = self.entries[from..].iter().skip_while(|e| e.path == dir);
            // Names such as `dir-x` sort between `dir` and `dir/…`.
            below
                .take_while(|e| e.path.starts_with(dir))
                .filter(|e| names::is_below(&e.path, dir))
                .map(|e| e.size)
                .sum()
        };
        ignored.into_iter().map(|dir| (size(&dir), dir)).max().map(|(size, dir)| (dir, size))
    }
}

fn large_warning(bytes: u64, largest: Option<(Vec<u8>, u64)>) -> String {
    let mb = bytes >> 20;
    match largest {
        Some((dir, size)) if size > 0 => format!(
            "the upload has {mb} MB; `{}`, which git ignores, has {} MB of it: `upload: {{ignored: false}}` in \
             the harness leaves ignored files out",
            names::shown(&dir),
            size >> 20
        ),
        _ => format!("the upload has {mb} MB; `upload: exclude:` in the harness leaves paths out"),
    }
}

/// What stays out, and which tracked files are among it.
struct Selection {
    skip: Skip,
    tracked: BTreeSet<Vec<u8>>,
}

async fn skip(repo: &HostRepo, options: &UploadOptions) -> Result<Selection> {
    let mut skip = Skip::default();
    let mut tracked = BTreeSet::new();
    for path in &options.leave_out {
        // The directory may not exist yet; its nearest existing ancestor tells where it will be.
        if let Some(inside) = inside(&repo.top, path) {
            skip.output.insert(inside);
        }
    }
    // One that git tracks all the same is not to look deleted in the sandbox.
    let file = |path: &&Vec<u8>| repo.top.join(names::as_path(path)).is_file();
    let own: BTreeSet<_> = skip.output.iter().filter(file).cloned().collect();
    if !own.is_empty() {
        tracked.extend(tracked_at(repo, &own).await?);
    }
    if !options.exclude.is_empty() {
        let excluded = list(repo, &["-c", "-i"], &options.exclude).await?;
        let other = list(repo, &["-o", "-i", "--directory"], &options.exclude).await?;
        skip.excluded = excluded.iter().cloned().chain(other).collect();
        tracked.extend(excluded);
    }
    if !options.trust_repo_config {
        skip.agent_config = agent_config(&repo.top).into_iter().map(|c| c.path.into_bytes()).collect();
        if !skip.agent_config.is_empty() {
            tracked.extend(tracked_at(repo, &skip.agent_config).await?);
        }
    }
    if !options.ignored {
        skip.ignored = ignored(repo).await?;
    }
    Ok(Selection { skip, tracked })
}

fn inside(top: &Path, path: &Path) -> Option<Vec<u8>> {
    let existing = path.ancestors().find(|p| p.exists())?;
    let rest = path.strip_prefix(existing).ok()?;
    let full = fs_err::canonicalize(existing).ok()?.join(rest);
    let inside = names::as_bytes(full.strip_prefix(top).ok()?).to_vec();
    let inside: &[u8] = inside.strip_suffix(b"/").unwrap_or(&inside);
    (!inside.is_empty()).then(|| inside.to_vec())
}

/// What git ignores: files, and directories as a whole where a pattern matches the directory itself. Git also
/// folds a directory that merely holds nothing but ignored files; such a one is uploaded, since a file that
/// the agent adds to it counts.
async fn ignored(repo: &HostRepo) -> Result<BTreeSet<Vec<u8>>> {
    let all = list(repo, &["-o", "-i", "--exclude-standard", "--directory"], &[]).await?;
    let top = &repo.top;
    let (dirs, files): (BTreeSet<_>, BTreeSet<_>) = all
        .into_iter()
        .partition(|p| top.join(names::as_path(p)).symlink_metadata().is_ok_and(|m| m.is_dir()));
    if dirs.is_empty() {
        return Ok(files);
    }
    let input = dirs.iter().flat_map(|d| [d.as_slice(), b"/\0"].concat()).collect();
    let command = git::neutral("git check-ignore", &repo.git_dir, top).env_remove("GIT_CONFIG_GLOBAL");
    let command = command.args(["check-ignore", "-z", "--stdin"]).stdin(Stdin::Bytes(input));
    let output = command.output().await?;
    // 1 says that no path is ignored.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(git::failed("git check-ignore", &output));
    }
    let matched = paths(&output.stdout);
    let folded: Vec<_> =
        dirs.difference(&matched).map(|d| [b":(top,literal)", d.as_slice()].concat()).collect();
    let mut found: BTreeSet<_> = files.into_iter().chain(matched).collect();
    if !folded.is_empty() {
        let command = ls_files(repo).args(["-o", "-i", "--exclude-standard", "-z", "--"]);
        found.extend(paths(&git::run(command.args(folded.iter().map(|p| names::as_path(p)))).await?));
    }
    Ok(found)
}

/// Paths as `git ls-files` selects them; a whole directory comes as one path.
async fn list(repo: &HostRepo, flags: &[&str], patterns: &[String]) -> Result<BTreeSet<Vec<u8>>> {
    let command =
        ls_files(repo).args(flags).arg("-z").args(patterns.iter().map(|p| format!("--exclude={p}")));
    Ok(paths(&git::run(command).await?))
}

/// Files that git tracks at or below these paths.
async fn tracked_at(repo: &HostRepo, at: &BTreeSet<Vec<u8>>) -> Result<BTreeSet<Vec<u8>>> {
    let specs = at.iter().map(|path| [b":(top,literal)", path.as_slice()].concat()).collect::<Vec<_>>();
    let command = ls_files(repo).args(["-c", "-z", "--"]).args(specs.iter().map(|p| names::as_path(p)));
    Ok(paths(&git::run(command).await?))
}

/// The user's own configuration is read here, since it may name a file of ignore patterns.
fn ls_files(repo: &HostRepo) -> Command {
    git::neutral("git ls-files", &repo.git_dir, &repo.top).env_remove("GIT_CONFIG_GLOBAL").arg("ls-files")
}

fn paths(text: &[u8]) -> BTreeSet<Vec<u8>> {
    let paths = text.split(|b| *b == 0).filter(|p| !p.is_empty());
    paths.map(|p| p.strip_suffix(b"/").unwrap_or(p).to_vec()).collect()
}
