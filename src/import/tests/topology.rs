//! The kinds of repositories that people and CI systems have: each makes the whole trip, or is refused with what
//! to do.

use super::*;
use crate::plan::repo::{GitSource, RefBackend, RepoKind};

/// A repository at `top` that a directory of its own holds.
fn at(dir: tempfile::TempDir, top: &str) -> Host {
    let top = dir.path().canonicalize().unwrap().join(top);
    Host { dir, top }
}

/// What an agent does: an edit, a new file, a deletion and a commit, then a staged file and an edit on top.
async fn work(host: &Host) -> Box<StagedTree> {
    let trip = host.upload().await;
    assert_eq!(trip.git(&["status", "--porcelain"]), "", "clean as the host");
    write(&trip.top, b"a", "agent\n");
    write(&trip.top, b"fresh new", "agent\n");
    std::fs::remove_file(trip.top.join("b")).unwrap();
    trip.git(&["add", "-A"]);
    trip.git(&["commit", "-q", "-m", "agent"]);
    trip.git(&["fsck", "--strict"]);
    write(&trip.top, b"staged", "s");
    trip.git(&["add", "staged"]);
    write(&trip.top, b"a", "agent, later\n");
    let (_back, tree) = trip.import().await;
    trip.assert_same();
    tree
}

#[tokio::test]
async fn a_linked_worktree_makes_the_trip() {
    let main = Host::new();
    main.git(&["config", "extensions.worktreeConfig", "true"]);
    main.git(&["worktree", "add", "-q", "-b", "side", "../w"]);
    let before = snapshot(&main.top);
    let host = at(main.dir, "w");
    let repo = HostRepo::discover(&host.top).await.unwrap();
    assert_eq!(repo.kind, RepoKind::LinkedWorktree);
    let tree = work(&host).await;
    assert!(tree.path().join(".git").is_dir(), "scripts get an ordinary repository");
    // The files, index and branch of the main working tree are its own.
    let outside: BTreeMap<_, _> = before.into_iter().filter(|(p, _)| !p.starts_with(b".git")).collect();
    let now = snapshot(&main.top);
    assert!(outside.iter().all(|(p, text)| now.get(p) == Some(text)));
    assert_eq!(git(&main.top, &["status", "--porcelain", "-b"]), "## main\n");
    assert_eq!(git(&main.top, &["log", "--format=%s", "-1", "side"]), "agent\n");
}

#[tokio::test]
async fn a_worktree_of_a_bare_repository_makes_the_trip() {
    let origin = Host::new();
    let dir = tempfile::tempdir().unwrap();
    run("git", dir.path(), &["clone", "-q", "--bare", &origin.top.display().to_string(), ".bare"]);
    run("git", &dir.path().join(".bare"), &["worktree", "add", "-q", "../main", "main"]);
    work(&at(dir, "main")).await;
}

#[tokio::test]
async fn a_branch_of_another_worktree_is_not_moved() {
    let main = Host::new();
    main.git(&["worktree", "add", "-q", "-b", "side", "../w"]);
    let host = at(main.dir, "w");
    let trip = host.upload().await;
    trip.git(&["switch", "-q", "main"]);
    write(&trip.top, b"a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    let before = snapshot(host.dir.path());
    let error = apply(&tree, &trip.repo, &trip.manifest).await.unwrap_err();
    assert_eq!(error.code(), crate::Code::CheckoutChanged);
    assert!(error.message().contains("refs/heads/main (checked out in"), "{error}");
    assert_untouched(&before, host.dir.path(), "another worktree");
    assert_eq!(git(tree.path(), &["log", "--format=%s", "-1"]), "agent\n");
}

#[tokio::test]
async fn a_worktree_that_was_moved_is_refused_with_the_repair() {
    let main = Host::new();
    main.git(&["worktree", "add", "-q", "../w"]);
    let dir = main.dir.path();
    std::fs::rename(dir.join("w"), dir.join("moved")).unwrap();
    for (top, gone) in [("moved", false), ("moved", true)] {
        if gone {
            std::fs::rename(&main.top, dir.join("main moved")).unwrap();
        }
        let error = HostRepo::discover(&dir.join(top)).await.unwrap_err();
        assert_eq!(error.code(), crate::Code::RepoInvalid);
        assert!(error.help_text().contains("git worktree repair"), "{error:?}");
    }
}

#[tokio::test]
async fn borrowed_objects_come_along_and_nothing_else_of_the_store() {
    let pool = Host::new();
    pool.git(&["switch", "-q", "-c", "unrelated"]);
    write(&pool.top, b"private", "of another repository");
    pool.commit("unrelated");
    pool.git(&["switch", "-q", "main"]);
    let private = pool.git(&["rev-parse", "unrelated:private"]);
    let dir = tempfile::tempdir().unwrap();
    let source = pool.top.display().to_string();
    run("git", dir.path(), &["clone", "-q", "--shared", "--single-branch", "-b", "main", &source, "s"]);
    let host = at(dir, "s");
    write(&host.top, b"own", "x");
    host.commit("own");
    write(&host.top, b"only staged", "y");
    host.git(&["add", "-A"]);
    let trip = host.upload().await;
    trip.git(&["fsck", "--strict"]);
    assert_eq!(trip.git(&["show", ":only staged"]), "y");
    let there = command("git", &trip.top).args(["cat-file", "-e", private.trim()]).output().unwrap();
    assert!(!there.status.success(), "an object that nothing here reaches");
    assert!(!trip.top.join(".git/objects/info/alternates").exists());
    host.git(&["reset", "-q", "--hard"]);
    work(&host).await;
}

#[tokio::test]
async fn a_sparse_checkout_stays_sparse() {
    for index in ["false", "true"] {
        let host = Host::new();
        write(&host.top, b"far/away", "x\n");
        write(&host.top, b"near/by", "x\n");
        host.commit("more");
        host.git(&["config", "index.sparse", index]);
        host.git(&["sparse-checkout", "set", "--cone", "dir", "near"]);
        host.git(&["branch", "-q", "other"]);
        assert!(!host.top.join("far").exists());
        let trip = host.upload().await;
        assert_eq!(trip.git(&["ls-files", "-v", "far/away"]), "S far/away\n");
        trip.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
        // What lies outside changes by a commit, without a file.
        let blob = trip.git(&["rev-parse", "HEAD:near/by"]);
        let entry = format!("100755,{},far/away", blob.trim());
        trip.git(&["update-index", "--cacheinfo", &entry]);
        trip.git(&["commit", "-q", "-m", "outside"]);
        trip.git(&["update-index", "--skip-worktree", "far/away"]);
        assert_eq!(trip.git(&["status", "--porcelain"]), "");
        trip.import().await;
        trip.assert_same();
        assert!(!host.top.join("far").exists());
        work(&host).await;
        assert_eq!(host.git(&["ls-files", "-t", "far/away"]), "S far/away\n", "index.sparse={index}");
    }
}

/// A clone of `origin` without the blobs that are not checked out.
fn partial(origin: &Host, args: &[&str]) -> Host {
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    origin.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", origin.top.display());
    let all = [&["clone", "-q", "--filter=blob:none"], args, &[&url, "p"]].concat();
    run("git", dir.path(), &all);
    at(dir, "p")
}

#[tokio::test]
async fn a_partial_clone_makes_the_trip_without_fetching() {
    let origin = Host::new();
    let old = origin.git(&["rev-parse", "HEAD:a"]);
    write(&origin.top, b"a", "second\n");
    write(&origin.top, b"far/away", "x\n");
    origin.commit("second");
    for args in [&[][..], &["--sparse"]] {
        let host = partial(&origin, args);
        // Nobody can be asked.
        let away = origin.top.with_extension("away");
        std::fs::rename(&origin.top, &away).unwrap();
        write(&host.top, b"own", "x");
        host.git(&["add", "own"]);
        host.git(&["commit", "-q", "-m", "own"]);
        let trip = host.upload().await;
        let there = command("git", &trip.top)
            .env("GIT_NO_LAZY_FETCH", "1")
            .args(["cat-file", "-e", old.trim()])
            .output()
            .unwrap();
        assert!(!there.status.success(), "what is missing here is missing there");
        work(&host).await;
        std::fs::rename(&away, &origin.top).unwrap();
    }
}

#[tokio::test]
async fn a_submodule_checkout_makes_the_trip() {
    let other = Host::new();
    let outer = Host::new();
    let url = other.top.display().to_string();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "mod"]);
    outer.commit("submodule");
    let host = at(outer.dir, "re po/mod");
    let trip = host.upload().await;
    assert_eq!(trip.repo.kind, RepoKind::Separate);
    write(&trip.top, b"a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, true).await.unwrap() else { panic!() };
    assert_eq!(git(tree.path(), &["rev-parse", "--show-toplevel"]).trim(), tree.path().display().to_string());
    assert_eq!(git(tree.path(), &["status", "--porcelain"]), "");
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    trip.assert_same();
    assert_eq!(outer_status(&outer.top), " M mod\n");
}

fn outer_status(top: &Path) -> String {
    git(top, &["status", "--porcelain", "-uno"])
}

#[tokio::test]
async fn a_superproject_runs_with_and_without_its_submodules() {
    let other = Host::new();
    let host = Host::new();
    let url = other.top.display().to_string();
    host.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "mod"]);
    host.commit("submodule");
    let gitlink = host.git(&["rev-parse", "HEAD:mod"]);
    host.git(&["submodule", "--quiet", "deinit", "-f", "mod"]);
    let tree = work(&host).await;
    assert_eq!(host.git(&["rev-parse", "HEAD:mod"]), gitlink);
    host.git(&["reset", "-q", "--hard"]);
    // What the agent may put into an empty one is no part of the gitlink.
    let trip = host.upload().await;
    write(&trip.top, b"mod/x", "agent\n");
    trip.git(&["add", "-A"]);
    assert_eq!(trip.git(&["status", "--porcelain"]), "");
    trip.import().await;
    assert_eq!(read(&host.top, b"mod/x"), b"agent\n");
    assert_eq!(host.git(&["rev-parse", ":mod"]), gitlink);
    drop(tree);
}

#[tokio::test]
async fn a_repository_with_reftable_makes_the_trip() {
    let dir = tempfile::tempdir().unwrap();
    let init =
        command("git", dir.path()).args(["init", "-q", "-b", "main", "--ref-format=reftable", "t"]).output();
    let host = at(dir, "t");
    if !init.unwrap().status.success() {
        // An older git: what it says of one that a newer git made.
        run("git", host.dir.path(), &["init", "-q", "t"]);
        write(
            &host.top,
            b".git/config",
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n",
        );
        let error = HostRepo::discover(&host.top).await.unwrap_err();
        assert_eq!(error.code(), crate::Code::Unsupported);
        assert!(error.help_text().contains("git refs migrate"), "{error:?}");
        return;
    }
    for (path, text) in [("a", "1"), ("b", "2")] {
        write(&host.top, path.as_bytes(), text);
    }
    host.commit("first");
    host.git(&["branch", "other"]);
    host.git(&["tag", "-a", "-m", "v", "v1"]);
    let repo = HostRepo::discover(&host.top).await.unwrap();
    assert_eq!((repo.ref_backend, repo.refs.refs.len()), (RefBackend::Reftable, 3));
    let trip = host.upload().await;
    assert!(
        trip.manifest.git.iter().any(|f| f.path == b"packed-refs" && matches!(f.source, GitSource::Text(_)))
    );
    work(&host).await;
    // A commit of the user meanwhile is seen.
    let trip = host.upload().await;
    host.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert_eq!(trip.manifest.changed_since(&trip.repo).await.unwrap(), ["HEAD"]);
}

#[tokio::test]
async fn a_repository_whose_git_directory_is_elsewhere_makes_the_trip() {
    let dir = tempfile::tempdir().unwrap();
    run("git", dir.path(), &["init", "-q", "-b", "main", "--separate-git-dir", "elsewhere.git", "t"]);
    let host = at(dir, "t");
    for (path, text) in [("a", "1"), ("b", "2")] {
        write(&host.top, path.as_bytes(), text);
    }
    host.commit("first");
    work(&host).await;
    // Inside the working tree it would be uploaded as files.
    std::fs::rename(host.dir.path().join("elsewhere.git"), host.top.join("inside")).unwrap();
    std::fs::write(host.top.join(".git"), "gitdir: inside\n").unwrap();
    let error = HostRepo::discover(&host.top).await.unwrap_err();
    assert_eq!(error.code(), crate::Code::Unsupported);
}

#[tokio::test]
async fn a_repository_of_another_user_is_refused_unless_git_trusts_it() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a repository away.
        return;
    }
    let host = Host::new();
    run("chown", host.dir.path(), &["-R", "12345", &host.top.display().to_string()]);
    let error = HostRepo::discover(&host.top).await.unwrap_err();
    assert_eq!(error.code(), crate::Code::RepoInvalid);
    assert!(error.help_text().contains("safe.directory"), "{error:?}");
}
