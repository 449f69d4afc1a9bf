//! Discovery and manifest on real repositories.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::error::Code;

fn git(top: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(top).args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "protocol.file.allow=always",
    ]);
    let out = command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn repo() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("r");
    std::fs::create_dir_all(top.join("sub/deep")).unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    std::fs::write(top.join("a"), "a").unwrap();
    git(&top, &["add", "-A"]);
    git(&top, &["commit", "-q", "-m", "first"]);
    dir
}

async fn take(top: &Path, options: &UploadOptions) -> Manifest {
    let repo = HostRepo::discover(top).await.unwrap();
    Manifest::take(&repo, options).await.unwrap()
}

fn paths(manifest: &Manifest) -> Vec<String> {
    manifest.entries.iter().map(|e| names::shown(&e.path)).collect()
}

#[tokio::test]
async fn the_repository_is_found_from_below() {
    let dir = repo();
    let found = HostRepo::discover(&dir.path().join("r/sub/deep")).await.unwrap();
    assert_eq!(found.top, dir.path().canonicalize().unwrap().join("r"));
    assert_eq!(found.name, "r");
    assert!(matches!(&found.head, Head::Branch { name, oid: Some(_) } if name == b"refs/heads/main"));
    git(&found.top, &["switch", "-q", "--detach"]);
    assert!(matches!(HostRepo::discover(&found.top).await.unwrap().head, Head::Detached(_)));
    git(&found.top, &["switch", "-q", "--orphan", "empty"]);
    let unborn = HostRepo::discover(&found.top).await.unwrap();
    assert_eq!(unborn.head.oid(), None);
}

#[tokio::test]
async fn kinds_that_are_not_handled_are_refused_with_what_to_do() {
    type Make = fn(&Path) -> std::path::PathBuf;
    let cases: &[(&str, Code, &str, Make)] = &[
        ("no repository", Code::RepoInvalid, "git init", |d| d.to_owned()),
        ("nothing there", Code::RepoInvalid, "directory", |d| d.join("none")),
        ("bare", Code::RepoInvalid, "git clone", |d| {
            git(d, &["clone", "-q", "--bare", "r", "bare"]);
            d.join("bare")
        }),
        ("a link for .git", Code::Unsupported, "separate-git-dir", |d| {
            std::fs::rename(d.join("r/.git"), d.join("elsewhere")).unwrap();
            std::os::unix::fs::symlink(d.join("elsewhere"), d.join("r/.git")).unwrap();
            d.join("r")
        }),
        ("alternates that are gone", Code::RepoInvalid, "--reference", |d| {
            git(d, &["clone", "-q", "--shared", "r", "s"]);
            std::fs::rename(d.join("r"), d.join("gone")).unwrap();
            d.join("s")
        }),
        ("an unknown ref storage", Code::Unsupported, "git refs migrate", |d| {
            git(&d.join("r"), &["config", "extensions.refStorage", "other"]);
            d.join("r")
        }),
        ("core.worktree", Code::Unsupported, "core.worktree", |d| {
            git(&d.join("r"), &["config", "core.worktree", "/tmp"]);
            d.join("r")
        }),
        ("broken", Code::RepoInvalid, "git fsck", |d| {
            std::fs::remove_file(d.join("r/.git/HEAD")).unwrap();
            d.join("r")
        }),
        ("HEAD nowhere", Code::RepoInvalid, "git switch", |d| {
            std::fs::write(d.join("r/.git/HEAD"), "ref: refs/remotes/x\n").unwrap();
            d.join("r")
        }),
    ];
    for (what, code, help, make) in cases {
        let dir = repo();
        let target = make(dir.path());
        let error = HostRepo::discover(&target).await.expect_err(what);
        assert_eq!(error.code(), *code, "{what}: {error}");
        assert!(error.help_text().contains(help), "{what}: {}", error.help_text());
    }
}

#[tokio::test]
async fn everything_goes_in_unless_told_otherwise() {
    let dir = repo();
    let top = dir.path().join("r");
    std::fs::write(top.join(".gitignore"), "*.o\nbuild/\n").unwrap();
    std::fs::create_dir_all(top.join("build/x")).unwrap();
    for path in ["build/x/y", "z.o", "sub/deep/w.o", "new", "sub/tracked.o"] {
        std::fs::write(top.join(path), "1234").unwrap();
    }
    git(&top, &["add", "-f", "sub/tracked.o"]);
    let all = take(&top, &UploadOptions { ignored: true, ..UploadOptions::default() }).await;
    let expected = [
        ".gitignore",
        "a",
        "build",
        "build/x",
        "build/x/y",
        "new",
        "sub",
        "sub/deep",
        "sub/deep/w.o",
        "sub/tracked.o",
        "z.o",
    ];
    assert_eq!(paths(&all), expected);
    assert!(all.bytes > 20 && all.left_out.is_empty() && all.warnings.is_empty(), "{:?}", all.warnings);

    let few = take(&top, &UploadOptions::default()).await;
    assert_eq!(paths(&few), [".gitignore", "a", "new", "sub", "sub/deep", "sub/tracked.o"]);
    assert!(few.is_left_out(b"build/x/y") && few.is_left_out(b"z.o") && !few.is_left_out(b"a"));

    let options = UploadOptions {
        ignored: true,
        exclude: vec!["/a".into(), "deep/".into(), "*.o".into(), "!z.o".into()],
        leave_out: vec![top.join("out/not yet"), dir.path().join("elsewhere")],
        ..UploadOptions::default()
    };
    std::fs::create_dir_all(top.join("out/not yet")).unwrap();
    let chosen = take(&top, &options).await;
    assert_eq!(paths(&chosen), [".gitignore", "build", "build/x", "build/x/y", "new", "out", "sub", "z.o"]);
}

#[tokio::test]
async fn special_files_and_nested_repositories_stay_out_with_a_warning() {
    let dir = repo();
    let top = dir.path().join("r");
    rustix::fs::mkfifoat(rustix::fs::CWD, top.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
    git(&top.join("sub"), &["init", "-q"]);
    std::fs::write(top.join("sub/file"), "x").unwrap();
    let manifest = take(&top, &UploadOptions::default()).await;
    assert_eq!(paths(&manifest), ["a", "sub", "sub/deep", "sub/file"]);
    assert_eq!(manifest.warnings.len(), 2, "{:?}", manifest.warnings);
    assert!(manifest.is_left_out(b"sub/.git/config"));
}

#[tokio::test]
async fn only_an_allow_list_of_git_travels() {
    let dir = repo();
    let top = dir.path().join("r");
    std::fs::write(top.join("a"), "stash me").unwrap();
    git(&top, &["stash", "-q"]);
    git(&top, &["pack-refs", "--all"]);
    git(&top, &["repack", "-q", "-a", "-d"]);
    std::fs::write(top.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    std::fs::write(top.join(".git/objects/pack/tmp_pack_x"), "x").unwrap();
    std::fs::write(top.join(".git/info/attributes"), "x").unwrap();
    git(&top, &["config", "remote.origin.url", "https://user:secret@h/x"]);
    let manifest = take(&top, &UploadOptions::default()).await;
    let names: Vec<_> = manifest.git.iter().map(|f| names::shown(&f.path)).collect();
    let plain: Vec<_> = names.iter().filter(|n| !n.starts_with("objects/")).map(String::as_str).collect();
    assert_eq!(plain, ["HEAD", "config", "index", "info/exclude", "packed-refs"]);
    assert!(names.iter().any(|n| n.contains(".pack")) && !names.iter().any(|n| n.contains("tmp_")));
    for file in &manifest.git {
        if let GitSource::Text(text) = &file.source {
            let text = String::from_utf8_lossy(text);
            assert!(!text.contains("secret") && !text.contains("refs/stash"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_change_of_the_checkout_is_seen() {
    let dir = repo();
    let top = dir.path().join("r");
    let repo = HostRepo::discover(&top).await.unwrap();
    let manifest = Manifest::take(&repo, &UploadOptions::default()).await.unwrap();
    assert_eq!(manifest.changed_since(&repo).await.unwrap(), Vec::<String>::new());
    let time = top.join("a").metadata().unwrap().modified().unwrap();
    std::fs::write(top.join("a"), "b").unwrap();
    std::fs::File::options().write(true).open(top.join("a")).unwrap().set_modified(time).unwrap();
    git(&top, &["switch", "-q", "-c", "x"]);
    assert_eq!(manifest.changed_since(&repo).await.unwrap(), ["a", "HEAD"]);
}

#[tokio::test]
async fn configuration_of_agent_programs_stays_out_and_git_does_not_miss_it() {
    let dir = repo();
    let top = dir.path().join("r");
    for (path, text) in [(".claude/settings.json", "{}"), (".codex/config.toml", "x"), (".mcp.json", "{}")] {
        std::fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        std::fs::write(top.join(path), text).unwrap();
    }
    std::fs::write(top.join(".claude/notes.md"), "text").unwrap();
    git(&top, &["add", ".claude", ".codex"]);
    git(&top, &["commit", "-q", "-m", "second"]);
    let out = take(&top, &UploadOptions { ignored: true, ..UploadOptions::default() }).await;
    assert_eq!(paths(&out), [".claude", ".claude/notes.md", "a", "sub", "sub/deep"]);
    let left: Vec<_> = out.left_out.iter().map(|l| (names::shown(&l.path), l.why)).collect();
    let why = Why::AgentConfig;
    assert_eq!(
        left,
        [(".claude/settings.json".into(), why), (".codex".into(), why), (".mcp.json".into(), why)]
    );
    // With the index that goes in, git asks for none of the files; the host's index has no such marks.
    let index = out.git.iter().find(|f| f.path == b"index").unwrap();
    let GitSource::Text(text) = &index.source else { panic!("the index is a file") };
    std::fs::write(dir.path().join("index"), text).unwrap();
    let flags = |index: &Path| {
        let mut command = Command::new("git");
        command.current_dir(&top).env("GIT_INDEX_FILE", index).args(["ls-files", "-v"]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(
        flags(&dir.path().join("index")),
        "H .claude/notes.md\nS .claude/settings.json\nS .codex/config.toml\nH a\n"
    );
    assert!(!flags(&top.join(".git/index")).contains("S "));

    let options = UploadOptions { ignored: true, trust_repo_config: true, ..UploadOptions::default() };
    let trusted = take(&top, &options).await;
    assert!(trusted.left_out.is_empty() && paths(&trusted).contains(&".mcp.json".to_owned()));
}
