//! Whole trips with real git, tar, find and rsync; a plain directory stands in for the sandbox.

mod hostile;
mod patch;
mod round_trip;
mod secrets;
mod special;
mod steering;
mod topology;
mod weight;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;
use crate::plan::repo::{HostRepo, Manifest, UploadOptions, names};
use crate::secrets::Registry;

/// Runs a program and returns what it printed.
fn run(program: &str, cwd: &Path, args: &[&str]) -> Vec<u8> {
    let out = command(program, cwd).args(args).output().unwrap();
    assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

fn command(program: &str, cwd: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(cwd)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "t")
        .env("GIT_AUTHOR_EMAIL", "t@t")
        .env("GIT_COMMITTER_NAME", "t")
        .env("GIT_COMMITTER_EMAIL", "t@t");
    command
}

fn git(repo: &Path, args: &[&str]) -> String {
    String::from_utf8_lossy(&run("git", repo, args)).into_owned()
}

fn write(top: &Path, path: &[u8], text: impl AsRef<[u8]>) {
    let full = top.join(names::as_path(path));
    std::fs::create_dir_all(full.parent().unwrap()).unwrap();
    std::fs::write(full, text).unwrap();
}

fn read(top: &Path, path: &[u8]) -> Vec<u8> {
    std::fs::read(top.join(names::as_path(path))).unwrap()
}

fn link(top: &Path, path: &str, target: &str) {
    let _ = std::fs::remove_file(top.join(path));
    std::os::unix::fs::symlink(target, top.join(path)).unwrap();
}

fn chmod(top: &Path, path: &[u8], mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(top.join(names::as_path(path)), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Everything about a tree that a user could notice: type, mode, content or target, modification time.
fn snapshot(top: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut out = BTreeMap::new();
    for entry in walkdir::WalkDir::new(top).min_depth(1) {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        let content = match meta.file_type() {
            t if t.is_file() => format!("{:?}", std::fs::read(entry.path()).unwrap()),
            t if t.is_symlink() => format!("{:?}", std::fs::read_link(entry.path()).unwrap()),
            _ => String::new(),
        };
        // The times of a directory change with a lock file that comes and goes.
        let time = if meta.is_dir() { 0 } else { meta.mtime() * 1_000_000_000 + meta.mtime_nsec() };
        let path = names::as_bytes(entry.path().strip_prefix(top).unwrap()).to_vec();
        out.insert(path, format!("{:o} {time} {content}", meta.mode()));
    }
    out
}

/// Nothing that a user could notice has changed since `before`.
fn assert_untouched(before: &BTreeMap<Vec<u8>, String>, top: &Path, what: &str) {
    let after = snapshot(top);
    let paths = before.keys().chain(after.keys());
    let changed: Vec<_> =
        paths.filter(|p| before.get(*p) != after.get(*p)).map(|p| names::shown(p)).collect();
    assert!(changed.is_empty(), "{what}: {changed:?}");
}

/// A host with a repository.
struct Host {
    dir: tempfile::TempDir,
    top: PathBuf,
}

impl Host {
    /// A repository with one commit on `main` that holds `a`, `b` and `dir/c`.
    fn new() -> Self {
        Self::named("re po")
    }

    fn named(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(&top).unwrap();
        git(&top, &["init", "-q", "-b", "main"]);
        let host = Self { dir, top };
        for (path, text) in [("a", "one\n"), ("b", "two\n"), ("dir/c", "three\n")] {
            write(&host.top, path.as_bytes(), text);
        }
        host.commit("first");
        host
    }

    fn commit(&self, message: &str) {
        git(&self.top, &["add", "-A"]);
        git(&self.top, &["commit", "-q", "-m", message]);
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.top, args)
    }

    fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--ignored"])
    }

    async fn upload(&self) -> Trip<'_> {
        self.upload_with(&UploadOptions { ignored: true, ..UploadOptions::default() }).await
    }

    async fn upload_with(&self, options: &UploadOptions) -> Trip<'_> {
        let repo = HostRepo::discover(&self.top).await.unwrap();
        let manifest = Manifest::take(&repo, options).await.unwrap();
        let sandbox = tempfile::tempdir().unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        crate::run::archive::append_repo(&mut tar, "work/repo", &repo, &manifest).unwrap();
        std::fs::write(sandbox.path().join("t.tar"), tar.into_inner().unwrap()).unwrap();
        run("tar", sandbox.path(), &["-xpf", "t.tar", "--no-same-owner"]);
        let top = sandbox.path().join("work/repo");
        let before = list(&top);
        check_arrived(&before, &manifest).unwrap();
        Trip { host: self, repo, manifest, sandbox, top, before }
    }
}

/// Every odd thing that a working tree may hold.
fn odd_host() -> Host {
    let host = Host::named("it's a $(repo)");
    let long = [b"l".repeat(150), b"/".to_vec(), b"m".repeat(150)].concat();
    for path in [
        &b"sp ace"[..],
        b"quo\"te's",
        b"new\nline",
        b"\xff\xfe",
        "n\u{e4}me".as_bytes(),
        b"-rf",
        b"..;x",
        b"trail. ",
        b"\x1b[31m",
        b"back\\slash",
        &long,
    ] {
        write(&host.top, path, path);
    }
    write(&host.top, b"empty", "");
    write(&host.top, b"tool", "#!/bin/sh\n");
    chmod(&host.top, b"tool", 0o755);
    write(&host.top, b"private", "x");
    chmod(&host.top, b"private", 0o600);
    link(&host.top, "to file", "dir/c");
    link(&host.top, "to dir", "dir");
    link(&host.top, "dangling", "no/such");
    link(&host.top, "abs", "/etc/hostname");
    write(&host.top, b".gitignore", "*.o\nbuild/\n");
    host.commit("odd");
    write(&host.top, b"x.o", "object");
    write(&host.top, b"build/deep/y", "y");
    std::fs::create_dir(host.top.join("empty dir")).unwrap();
    write(&host.top, b"untracked", "u");
    write(&host.top, b"a", "dirty\n");
    write(&host.top, b"b", "staged\n");
    host.git(&["add", "b"]);
    write(&host.top, b"b", "staged and edited\n");
    host
}

fn list(top: &Path) -> Listing {
    let text =
        command("sh", Path::new("/")).arg("-c").arg(listing::script(top.as_os_str())).output().unwrap();
    assert!(text.status.success(), "{text:?}");
    Listing::parse(&text.stdout, &Limits::default()).unwrap()
}

/// One upload, and what the agent does with it.
struct Trip<'h> {
    host: &'h Host,
    repo: HostRepo,
    manifest: Manifest,
    #[expect(dead_code, reason = "holds the directory")]
    sandbox: tempfile::TempDir,
    /// The repository in the sandbox.
    top: PathBuf,
    before: Listing,
}

/// What came back.
struct Back {
    delta: Delta,
    after: Listing,
    incoming: tempfile::TempDir,
    index: Option<Vec<u8>>,
    work: tempfile::TempDir,
}

impl Trip<'_> {
    fn git(&self, args: &[&str]) -> String {
        git(&self.top, args)
    }

    fn collect(&self) -> Back {
        let index = command("sh", &self.top).args(["-c", index::LS_FILES]).output().unwrap();
        let index = index.status.success().then_some(index.stdout);
        let after = list(&self.top);
        let delta = diff(&self.before, &after, &self.manifest);
        let incoming = tempfile::tempdir().unwrap();
        let mut rsync = command("rsync", &self.top)
            .args([
                "-a",
                "-W",
                "--no-links",
                "--no-D",
                "--no-H",
                "--no-o",
                "--no-g",
                "--chmod=ug-s",
                "--from0",
            ])
            .args(["--files-from=-", "--no-inc-recursive"])
            .arg("./")
            .arg(incoming.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(rsync.stdin.as_mut().unwrap(), &delta.files_from()).unwrap();
        drop(rsync.stdin.take());
        assert!(rsync.wait().unwrap().success());
        Back { delta, after, incoming, index, work: tempfile::tempdir().unwrap() }
    }

    async fn stage(&self, back: &Back, need_tree: bool) -> crate::Result<Staged> {
        self.stage_without(back, need_tree, &Registry::default()).await
    }

    async fn stage_without(&self, back: &Back, need_tree: bool, secrets: &Registry) -> crate::Result<Staged> {
        stage(StageInput {
            repo: &self.repo,
            manifest: &self.manifest,
            delta: &back.delta,
            after: &back.after,
            incoming: back.incoming.path(),
            index: back.index.as_deref(),
            work_dir: back.work.path(),
            run_id: "r1",
            secrets,
            limits: &Limits::default(),
            need_tree,
        })
        .await
    }

    /// Collects, stages and applies; returns the staged tree.
    async fn import(&self) -> (Back, Box<StagedTree>) {
        let back = self.collect();
        let staged = match self.stage(&back, false).await.unwrap() {
            Staged::Tree(tree) => tree,
            Staged::Unchanged { notes } => panic!("nothing changed: {notes:?}"),
        };
        assert_eq!(
            git(staged.path(), &["status", "--porcelain", "--ignored"]),
            self.git(&["status", "--porcelain", "--ignored"]),
            "the staged tree has the sandbox's status"
        );
        apply(&staged, &self.repo, &self.manifest).await.unwrap();
        (back, staged)
    }

    /// Collects and stages what must be refused.
    async fn refused(&self) -> crate::Error {
        let back = self.collect();
        let before = snapshot(&self.host.top);
        let error = self.stage(&back, false).await.expect_err("must be refused");
        assert_eq!(error.code(), crate::Code::ImportBlocked, "{error:?}");
        assert_untouched(&before, &self.host.top, "refused");
        assert_eq!(std::fs::read_dir(self.host.dir.path()).unwrap().count(), 1, "no staged tree stays");
        error
    }

    /// The host's status and content equal the sandbox's.
    fn assert_same(&self) {
        let status = |top: &Path| git(top, &["status", "--porcelain", "--ignored", "-b"]);
        assert_eq!(status(&self.host.top), status(&self.top));
        assert_eq!(self.host.git(&["rev-parse", "HEAD"]), self.git(&["rev-parse", "HEAD"]));
        assert_eq!(self.host.git(&["ls-files", "-s"]), self.git(&["ls-files", "-s"]));
        let strip = |top: &Path| -> BTreeMap<Vec<u8>, (String, String)> {
            snapshot(top)
                .into_iter()
                .filter(|(p, _)| p != b".git" && !p.starts_with(b".git/"))
                .map(|(p, text)| {
                    let mut parts = text.splitn(3, ' ');
                    let mode = u32::from_str_radix(parts.next().unwrap(), 8).unwrap() & 0o170_100;
                    (p, (format!("{mode:o}"), parts.nth(1).unwrap().to_owned()))
                })
                .collect()
        };
        assert_eq!(strip(&self.host.top), strip(&self.top));
        self.host.git(&["fsck", "--strict"]);
    }
}

fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
