//! A sandbox that wants more than it is given.

use super::*;

/// A script that leaves a marker when anybody runs it.
pub(super) struct Trap {
    dir: tempfile::TempDir,
}

impl Trap {
    pub(super) fn new() -> Self {
        let trap = Self { dir: tempfile::tempdir().unwrap() };
        write(trap.dir.path(), b"trap", format!("#!/bin/sh\ntouch '{}'\nexit 1\n", trap.marker().display()));
        chmod(trap.dir.path(), b"trap", 0o755);
        trap
    }

    pub(super) fn script(&self) -> String {
        self.dir.path().join("trap").display().to_string()
    }

    pub(super) fn marker(&self) -> PathBuf {
        self.dir.path().join("marker")
    }

    /// Uses a repository as a validation or post-script would.
    pub(super) fn use_git(&self, top: &Path) {
        for args in [
            &["status"][..],
            &["diff"],
            &["diff", "HEAD"],
            &["add", "-A"],
            &["commit", "-q", "--allow-empty", "-m", "x"],
            &["log", "-p"],
            &["checkout", "-q", "-b", "y"],
            &["stash"],
            &["gc", "-q"],
            &["fsck"],
        ] {
            let _ = command("git", top).args(args).output().unwrap();
        }
        assert!(!self.marker().exists(), "a program of the sandbox ran");
    }
}

#[tokio::test]
async fn config_hooks_and_attributes_do_not_arrive() {
    let host = Host::new();
    let config = read(&host.top, b".git/config");
    let trip = host.upload().await;
    let marked = Trap::new();
    let script = marked.script();
    for key in [
        "core.fsmonitor",
        "core.hooksPath",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "diff.external",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "diff.x.textconv",
        "merge.x.driver",
        "gpg.program",
        "alias.status",
        "credential.helper",
        "core.alternateRefsCommand",
        "remote.origin.uploadpack",
    ] {
        trip.git(&["config", key, &script]);
    }
    trip.git(&["config", "commit.gpgsign", "true"]);
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
    ] {
        std::fs::create_dir_all(trip.top.join(".git/hooks")).unwrap();
        std::fs::copy(&script, trip.top.join(".git/hooks").join(hook)).unwrap();
    }
    write(&trip.top, b".git/info/attributes", "* filter=x diff=x merge=x\n");
    write(&trip.top, b".gitattributes", "* filter=x diff=x merge=x\n");
    write(&trip.top, b".git/config.worktree", format!("[core]\n\tfsmonitor = {script}\n"));
    write(&trip.top, b".git/commondir", "/tmp\n");
    write(&trip.top, b".git/objects/info/alternates", "/tmp\n");
    write(&trip.top, b"a", "edited\n");
    let back = trip.collect();
    assert!(!back.incoming.path().join(".git/config").exists());
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(read(&host.top, b".git/config"), config);
    assert!(
        !host.top.join(".git/hooks/pre-commit").exists() && !host.top.join(".git/info/attributes").exists()
    );
    assert_eq!(read(&host.top, b"a"), b"edited\n");
    marked.use_git(tree.path());
    marked.use_git(&host.top);
}

#[tokio::test]
async fn flags_of_a_forged_index_are_dropped() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "evil\n");
    write(&trip.top, b"b", "evil\n");
    trip.git(&["update-index", "--assume-unchanged", "a"]);
    trip.git(&["update-index", "--skip-worktree", "b"]);
    assert_eq!(trip.git(&["status", "--porcelain"]), "");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    for top in [tree.path(), &host.top] {
        assert_eq!(git(top, &["status", "--porcelain"]), " M a\n M b\n");
    }
}

#[tokio::test]
async fn replace_refs_stashes_notes_and_remotes_are_ignored() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "other\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    trip.git(&["replace", "HEAD~1", "HEAD"]);
    for name in
        ["refs/stash", "refs/notes/x", "refs/remotes/origin/main", "refs/fullsend/x", "refs/pull/1/head"]
    {
        trip.git(&["update-ref", name, "HEAD"]);
    }
    trip.git(&["pack-refs", "--all"]);
    write(&trip.top, b".git/shallow", trip.git(&["rev-parse", "HEAD"]));
    write(&trip.top, b".git/info/grafts", trip.git(&["rev-parse", "HEAD"]));
    let (_back, tree) = trip.import().await;
    for top in [tree.path(), &host.top] {
        assert_eq!(git(top, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
        assert_eq!(git(top, &["rev-list", "--count", "HEAD"]), "2\n");
        assert!(!top.join(".git/shallow").exists());
    }
}

#[tokio::test]
async fn links_that_lead_out_are_reported_and_not_made() {
    let host = Host::new();
    let trip = host.upload().await;
    link(&trip.top, "abs", "/etc/passwd");
    link(&trip.top, "up", "../../../etc");
    link(&trip.top, "hop", "up/passwd");
    link(&trip.top, "gitdir", ".git/hooks");
    std::fs::remove_file(trip.top.join("a")).unwrap();
    link(&trip.top, "a", "/etc/passwd");
    std::fs::remove_dir_all(trip.top.join("dir")).unwrap();
    link(&trip.top, "dir", "/etc");
    trip.git(&["add", "-A"]);
    rustix::fs::mkfifoat(rustix::fs::CWD, trip.top.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    for name in ["abs", "up", "hop", "gitdir", "fifo"] {
        assert!(host.top.join(name).symlink_metadata().is_err(), "{name}");
        assert!(tree.notes().iter().any(|n| n.contains(name)), "{name}: {:?}", tree.notes());
    }
    assert_eq!(read(&host.top, b"a"), b"one\n", "what a refused link replaced stays");
    assert!(host.top.join("dir").symlink_metadata().unwrap().is_dir());
    assert!(host.top.join("dir").read_dir().unwrap().next().is_none());
    for top in [tree.path(), &host.top] {
        let staged = git(top, &["ls-files", "-s"]);
        assert!(!staged.contains("120000"), "a refused link is staged: {staged}");
    }
}

#[tokio::test]
async fn a_link_that_is_only_staged_is_judged_by_what_is_staged() {
    let host = Host::new();
    link(&host.top, "own", "/etc/hostname");
    host.commit("the host's own link out");
    let trip = host.upload().await;
    let stage = |path: &str, target: &[u8]| {
        write(&trip.top, b".git/target", target);
        let oid = trip.git(&["hash-object", "-w", ".git/target"]);
        trip.git(&["update-index", "--add", "--cacheinfo", &format!("120000,{},{path}", oid.trim())]);
    };
    stage("ghost", b"/etc/passwd");
    stage("up", b"../../x");
    stage("long", &[b'a'; 5000]);
    stage("own", b"/etc/shadow");
    stage("fine", b"dir/c");
    // The working tree says something harmless.
    link(&trip.top, "up", "a");
    link(&trip.top, "fine", "dir/c");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    for top in [tree.path(), &host.top] {
        let staged = git(top, &["ls-files", "-s"]);
        let links: Vec<&str> = staged.lines().filter(|l| l.starts_with("120000")).collect();
        assert_eq!(links.len(), 2, "{links:?}");
        assert!(links[0].ends_with("\tfine") && links[1].ends_with("\town"), "{links:?}");
        assert_eq!(git(top, &["show", ":own"]), "/etc/hostname");
    }
    assert!(
        ["ghost", "long", "own", "up"].iter().all(|p| tree.notes().iter().any(|n| n.contains(p))),
        "{:?}",
        tree.notes()
    );
}

#[tokio::test]
async fn names_that_stand_for_git_and_nested_repositories_are_refused() {
    type Make = fn(&Path);
    let cases: &[(&str, Make)] = &[
        (".GIT/config", |t| write(t, b".GIT/config", "x")),
        ("git~1", |t| write(t, b"git~1", "x")),
        (".git.", |t| write(t, b".git./hooks/x", "x")),
        ("sub/.git", |t| {
            std::fs::create_dir(t.join("sub")).unwrap();
            git(&t.join("sub"), &["init", "-q"]);
        }),
        ("dir/.git", |t| write(t, b"dir/.git", "gitdir: /tmp/evil\n")),
        (".g\\u{200c}it", |t| write(t, ".g\u{200c}it/config".as_bytes(), "x")),
        ("A", |t| write(t, b"A", "twin")),
        ("directory", |t| {
            std::fs::rename(t.join(".git"), t.join("real")).unwrap();
            write(t, b".git", "gitdir: real\n");
        }),
        ("directory", |t| {
            std::fs::rename(t.join(".git"), t.join("real")).unwrap();
            link(t, ".git", "real");
        }),
    ];
    for (what, make) in cases {
        let host = Host::new();
        let trip = host.upload().await;
        make(&trip.top);
        let error = trip.refused().await;
        let text = format!("{error}\n{}", error.detail_text().unwrap_or_default());
        assert!(text.contains(what), "{what}: {text}");
    }
}

#[tokio::test]
async fn bad_refs_and_heads_are_refused() {
    type Make = fn(&Trip<'_>);
    let cases: &[(&str, Make)] = &[
        ("HEAD outside", |t| write(&t.top, b".git/HEAD", "ref: ../../x\n")),
        ("HEAD elsewhere", |t| write(&t.top, b".git/HEAD", "ref: refs/remotes/origin/main\n")),
        ("HEAD empty", |t| write(&t.top, b".git/HEAD", "")),
        ("HEAD missing object", |t| write(&t.top, b".git/HEAD", format!("{}\n", "1".repeat(40)))),
        ("ref without object", |t| write(&t.top, b".git/refs/heads/x", format!("{}\n", "2".repeat(40)))),
        ("ref text", |t| write(&t.top, b".git/refs/heads/x", "$(touch /tmp/x)\n")),
        ("ref name", |t| write(&t.top, b".git/refs/heads/a..b", t.git(&["rev-parse", "HEAD"]))),
        ("ref option", |t| write(&t.top, b".git/refs/heads/-x", t.git(&["rev-parse", "HEAD"]))),
        ("branch of a blob", |t| write(&t.top, b".git/refs/heads/blob", t.git(&["rev-parse", "HEAD:a"]))),
        ("packed rubbish", |t| write(&t.top, b".git/packed-refs", "rubbish\n")),
    ];
    for (what, make) in cases {
        let host = Host::new();
        let trip = host.upload().await;
        write(&trip.top, b"a", "edited\n");
        make(&trip);
        let back = trip.collect();
        let before = snapshot(&host.top);
        let error = trip.stage(&back, false).await.expect_err(what);
        assert_eq!(error.code(), crate::Code::ImportBlocked, "{what}: {error:?}");
        assert_untouched(&before, &host.top, what);
    }
}

/// Puts `content` where a loose object of another name belongs.
fn forge(trip: &Trip<'_>, name: &str, content: &str) {
    let source = trip.top.join("forged source");
    std::fs::write(&source, content).unwrap();
    let real = trip.git(&["hash-object", "-w", "forged source"]);
    std::fs::remove_file(source).unwrap();
    let at = |oid: &str| trip.top.join(".git/objects").join(&oid[..2]).join(&oid[2..]);
    let bytes = std::fs::read(at(real.trim())).unwrap();
    let _ = std::fs::remove_file(at(name));
    std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
    std::fs::write(at(name), bytes).unwrap();
}

#[tokio::test]
async fn a_forged_object_never_enters_the_host() {
    // Staged under the name of other content, which the host would use when it commits that content later.
    let host = Host::new();
    let trip = host.upload().await;
    let good = host.git(&["hash-object", "-t", "blob", "--stdin-paths"]).len();
    assert_eq!(good, 0);
    write(&trip.top, b"later", "good content\n");
    let name = trip.git(&["hash-object", "later"]).trim().to_owned();
    trip.git(&["add", "later"]);
    forge(&trip, &name, "evil content\n");
    let error = trip.refused().await;
    assert!(error.message().contains("refused"), "{error}");

    // Unreferenced: it is left behind.
    let host = Host::new();
    let trip = host.upload().await;
    forge(&trip, &name, "evil content\n");
    write(&trip.top, b"a", "edited\n");
    trip.import().await;
    assert_eq!(run_code(&host.top, &["cat-file", "-e", &name]), Some(1));

    // Under the name of an object that the host has: the host's own wins.
    let host = Host::new();
    let trip = host.upload().await;
    let old = trip.git(&["rev-parse", "HEAD:a"]).trim().to_owned();
    forge(&trip, &old, "evil content\n");
    write(&trip.top, b"b", "edited\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    let back = trip.collect();
    if let Ok(Staged::Tree(tree)) = trip.stage(&back, false).await {
        apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    }
    assert_eq!(host.git(&["cat-file", "-p", &old]), "one\n");
    host.git(&["fsck", "--full"]);
}

fn run_code(top: &Path, args: &[&str]) -> Option<i32> {
    command("git", top).args(args).output().unwrap().status.code()
}

#[tokio::test]
async fn malformed_trees_and_broken_packs_are_refused() {
    // A tree with an entry `.git`, which fsck refuses.
    let host = Host::new();
    let trip = host.upload().await;
    let blob = trip.git(&["rev-parse", "HEAD:a"]).trim().to_owned();
    let raw: Vec<u8> = (0..20).map(|n| u8::from_str_radix(&blob[2 * n..2 * n + 2], 16).unwrap()).collect();
    let tree = [b"100644 .git\0".as_slice(), &raw].concat();
    write(&trip.top, b"raw", tree);
    let oid = trip.git(&["hash-object", "-t", "tree", "-w", "--literally", "raw"]).trim().to_owned();
    std::fs::remove_file(trip.top.join("raw")).unwrap();
    let commit = trip.git(&["commit-tree", &oid, "-p", "HEAD", "-m", "evil"]);
    trip.git(&["update-ref", "refs/heads/evil", commit.trim()]);
    let error = trip.refused().await;
    assert!(error.detail_text().unwrap().contains(".git"), "{error:?}");

    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b".git/objects/pack/pack-1234567890123456789012345678901234567890.pack", "PACK rubbish");
    trip.git(&["branch", "x"]);
    trip.refused().await;
}

#[tokio::test]
async fn a_hostile_index_text_is_refused() {
    for text in [
        format!("100644 {} 0\t.git/hooks/pre-commit\0", "1".repeat(40)),
        format!("100644 {} 0\t../outside\0", "1".repeat(40)),
        format!("100644 {} 0\tmissing object\0", "1".repeat(40)),
        "rubbish".to_owned(),
    ] {
        let host = Host::new();
        let trip = host.upload().await;
        write(&trip.top, b"new", "x");
        trip.git(&["add", "new"]);
        let mut back = trip.collect();
        back.index = Some(text.clone().into_bytes());
        let before = snapshot(&host.top);
        let error = trip.stage(&back, false).await.expect_err(&text);
        assert_eq!(error.code(), crate::Code::ImportBlocked, "{text}");
        assert_untouched(&before, &host.top, "untouched");
    }
}

#[tokio::test]
async fn a_checkout_with_a_link_put_in_the_way_is_not_written_through() {
    let host = Host::new();
    let outside = host.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    write(&outside, b"c", "three\n");
    let trip = host.upload().await;
    write(&trip.top, b"dir/c", "agent\n");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    std::fs::rename(host.top.join("dir"), host.dir.path().join("moved")).unwrap();
    link(&host.top, "dir", "../outside");
    let error = apply(&tree, &trip.repo, &trip.manifest).await.unwrap_err();
    assert_eq!(error.code(), crate::Code::CheckoutChanged);
    assert_eq!(read(&outside, b"c"), b"three\n");
}

#[tokio::test]
async fn a_file_that_the_hosts_git_obeys_may_not_change() {
    let host = Host::new();
    write(&host.top, b".gitconfig", "[alias]\n\tx = status\n");
    write(&host.top, b".husky/pre-commit", "#!/bin/sh\nexit 0\n");
    chmod(&host.top, b".husky/pre-commit", 0o755);
    host.commit("steering");
    host.git(&["config", "include.path", "../.gitconfig"]);
    host.git(&["config", "core.hooksPath", ".husky"]);
    let marked = Trap::new();
    let trip = host.upload().await;
    std::fs::copy(marked.script(), trip.top.join(".husky/pre-commit")).unwrap();
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    assert!(tree.notes().iter().any(|n| n.contains(".husky")));
    assert_eq!(git(tree.path(), &["config", "alias.x"]), "status\n");
    // The hooks of the host's checkout count in the staged one, not those that came.
    marked.use_git(tree.path());
    write(&trip.top, b".gitconfig", format!("[core]\n\tfsmonitor = {}\n", marked.script()));
    trip.stage(&trip.collect(), false).await.expect_err("the include changed");
    drop(back);
}

#[tokio::test]
async fn conditional_includes_of_the_host_count_in_the_staged_tree_once() {
    let host = Host::new();
    let extra = host.dir.path().canonicalize().unwrap().join("credentials");
    std::fs::write(&extra, "[http]\n\textraheader = X: 1\n").unwrap();
    let key = format!("includeIf.gitdir:{}/.git.path", host.top.display());
    host.git(&["config", &key, &extra.display().to_string()]);
    host.git(&["config", "http.extraheader", "Y: 2"]);
    let trip = host.upload().await;
    assert!(run_code(&trip.top, &["config", "http.extraheader"]) == Some(1));
    write(&trip.top, b"a", "x\n");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    let all = git(tree.path(), &["config", "--get-all", "http.extraheader"]);
    assert_eq!((all.matches("X: 1").count(), all.matches("Y: 2").count()), (1, 1), "{all}");
}

#[tokio::test]
async fn a_deleted_git_directory_leaves_the_files() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    std::fs::remove_dir_all(trip.top.join(".git")).unwrap();
    let mut back = trip.collect();
    back.index = None;
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(host.status(), " M a\n");
    assert!(tree.notes().iter().any(|n| n.contains("deleted .git")));
}
