//! What holds after every run, whatever the sandbox did.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::log;
use super::secret::{self, text_below};
use super::stage::Ci;
use crate::support::{Run, World};

/// The text of the file outside of the repository.
pub(super) const OUTSIDE: &str = "outside-5b1d9c-kept";

/// Parts of `.git` that git itself rewrites as it works.
const LIVELY: [&str; 10] = [
    "objects",
    "index",
    "logs",
    "refs/heads",
    "refs/tags",
    "packed-refs",
    "HEAD",
    "ORIG_HEAD",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
];

/// A tree: kind and mode, and content.
pub(super) type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Everything below a directory, except what `skip` names.
pub(super) fn tree(dir: &Path, skip: &dyn Fn(&Path) -> bool) -> Tree {
    let mut out = Tree::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(dir).unwrap().to_owned();
            if skip(&below) {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if meta.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if meta.is_dir() {
                todo.push(path);
            }
            out.insert(below, (meta.mode(), content));
        }
    }
    out
}

/// What must stay as it is.
pub(super) struct Kept {
    /// `.git` without objects, branches, tags and index.
    git: Tree,
    /// The directory outside.
    outside: Tree,
    /// The working tree.
    work: Tree,
    /// What lies in the world.
    world: Vec<PathBuf>,
    /// Refs that are no branches and no tags.
    refs: Vec<String>,
}

impl Kept {
    pub(super) fn of(world: &World) -> Self {
        let git = tree(&world.path("repo/.git"), &|p| LIVELY.iter().any(|l| p == Path::new(l)));
        let outside = tree(&world.path("outside"), &|_| false);
        let work = tree(&world.repo(), &|p| p == Path::new(".git"));
        let mut entries: Vec<_> =
            std::fs::read_dir(world.path("")).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        let refs = world.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
        let odd = |line: &&str| !line.contains(" refs/heads/") && !line.contains(" refs/tags/");
        let refs = refs.lines().filter(odd).map(str::to_owned).collect();
        Self { git, outside, work, world: entries, refs }
    }

    /// What changed that may not. `refused`: the working tree may not either.
    pub(super) fn compare(&self, after: &Self, refused: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut differ = |what: &str, a: &Tree, b: &Tree| {
            let paths = a.keys().chain(b.keys()).filter(|p| a.get(*p) != b.get(*p));
            wrong.extend(paths.map(|p| format!("{what} changed: {}", p.display())));
        };
        differ(".git", &self.git, &after.git);
        differ("the directory outside", &self.outside, &after.outside);
        if refused {
            differ("the checkout", &self.work, &after.work);
        }
        if self.refs != after.refs {
            wrong.push(format!("refs that are no branches changed: {:?}", after.refs));
        }
        if self.world != after.world {
            wrong.push(format!("files appeared or went beside the checkout: {:?}", after.world));
        }
        wrong.sort();
        wrong.dedup();
        wrong
    }
}

/// Links that lead out, special files, set-id bits and hard links in the checkout.
pub(super) fn odd_files(top: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, (mode, content)) in tree(top, &|p| p == Path::new(".git")) {
        let shown = path.display();
        let meta = top.join(&path).symlink_metadata().unwrap();
        match mode & 0o170_000 {
            0o120_000 if leads_out(&path, Path::new(std::ffi::OsStr::from_bytes(&content))) => {
                wrong.push(format!("a link leads out: {shown}"));
            }
            0o100_000 if mode & 0o6000 != 0 => wrong.push(format!("a set-id file: {shown}")),
            0o100_000 if meta.nlink() > 1 => wrong.push(format!("a hard link: {shown}")),
            0o120_000 | 0o040_000 | 0o100_000 => {}
            _ => wrong.push(format!("a special file: {shown}")),
        }
    }
    wrong
}

/// Read as text; a chain is judged link by link.
fn leads_out(path: &Path, target: &Path) -> bool {
    let mut depth = i64::try_from(path.components().count()).unwrap() - 1;
    for part in target.components() {
        match part {
            Component::Normal(name) if name == ".git" => return true,
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            _ => return true,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

/// What a run showed and left, as far as it does not depend on the vector.
pub(super) fn invariants(world: &World, run: &Run, ci: Ci) -> Vec<String> {
    let mut wrong = log::wrong(&run.done.stdout, ci);
    wrong.extend(log::wrong(&run.done.stderr, ci));
    for (what, text) in [("the log", &run.done.stdout), ("standard error", &run.done.stderr)] {
        // The masks themselves are commands that GitHub hides.
        let lines = text.lines().filter(|l| ci != Ci::GitHub || !l.starts_with("::add-mask::"));
        let text: Vec<_> = lines.collect();
        if let Some(form) = secret::in_bytes(text.join("\n").as_bytes()) {
            wrong.push(format!("{what} shows a secret as {form}"));
        }
    }
    wrong.extend(secret::in_world(world));
    for dir in ["out", "repo", "remote.git"] {
        wrong.extend(
            text_below(&world.path(dir), OUTSIDE).map(|at| format!("a file from outside was read: {at}")),
        );
    }
    for file in ["env", "path"] {
        if std::fs::read(world.path("gh").join(file)).unwrap() != b"" {
            wrong.push(format!("something was written to the file of GITHUB_{}", file.to_uppercase()));
        }
    }
    for file in ["output", "summary"] {
        let text = std::fs::read_to_string(world.path("gh").join(file)).unwrap_or_default();
        if text.lines().any(|l| l.starts_with(log::INJECTED)) {
            wrong.push(format!("a line of {file} was forged"));
        }
    }
    wrong
}

/// The checks find what they are for.
pub(super) fn prove() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::os::unix::fs::symlink("../x", at("up")).unwrap();
    std::os::unix::fs::symlink("/etc", at("abs")).unwrap();
    std::os::unix::fs::symlink(".git/config", at("git")).unwrap();
    std::os::unix::fs::symlink("fine", at("inside")).unwrap();
    std::fs::write(at("fine"), "").unwrap();
    std::fs::write(at("one"), "").unwrap();
    std::fs::hard_link(at("one"), at("two")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RWXU).unwrap();
    assert_eq!(odd_files(dir.path()).len(), 6);
    let world = World::new();
    let before = Kept::of(&world);
    world.write("repo/.git/hooks/post-commit", "x");
    world.write("repo/new", "x");
    world.write("beside", "x");
    let after = Kept::of(&world);
    assert_eq!(before.compare(&after, true).len(), 3);
    assert_eq!(before.compare(&after, false).len(), 2);
}
