//! Unusual repositories, and checkouts that changed meanwhile.

use super::*;

#[tokio::test]
async fn shallow_and_sha256_and_unborn_repositories_make_the_trip() {
    let origin = Host::new();
    write(&origin.top, b"a", "two\n");
    origin.commit("second");
    let shallow = Host { dir: tempfile::tempdir().unwrap(), top: PathBuf::new() };
    let top = shallow.dir.path().canonicalize().unwrap().join("s");
    let url = format!("file://{}", origin.top.display());
    run("git", shallow.dir.path(), &["clone", "-q", "--depth", "1", &url, "s"]);
    let sha256 = Host { dir: tempfile::tempdir().unwrap(), top: PathBuf::new() };
    let top256 = sha256.dir.path().canonicalize().unwrap().join("s");
    run("git", sha256.dir.path(), &["init", "-q", "--object-format=sha256", "s"]);
    let unborn = Host { dir: tempfile::tempdir().unwrap(), top: PathBuf::new() };
    let top_unborn = unborn.dir.path().canonicalize().unwrap().join("s");
    run("git", unborn.dir.path(), &["init", "-q", "s"]);
    for host in [Host { top, ..shallow }, Host { top: top256, ..sha256 }, Host { top: top_unborn, ..unborn }]
    {
        let trip = host.upload().await;
        write(&trip.top, b"new", "x");
        trip.git(&["add", "-A"]);
        trip.git(&["commit", "-q", "-m", "agent"]);
        write(&trip.top, b"staged", "");
        trip.git(&["add", "-A"]);
        trip.import().await;
        trip.assert_same();
    }
}

#[tokio::test]
async fn a_checkout_that_changed_meanwhile_is_not_touched() {
    type Edit = fn(&Host);
    let edits: &[(&str, Edit)] = &[
        ("an edited file", |h| write(&h.top, b"b", "TWO\n")),
        ("a deleted file", |h| std::fs::remove_file(h.top.join("b")).unwrap()),
        ("a file where the agent made one", |h| write(&h.top, b"new", "mine")),
        ("a commit", |h| drop(h.git(&["commit", "-q", "--allow-empty", "-m", "mine"]))),
        ("another branch", |h| drop(h.git(&["switch", "-q", "-c", "mine"]))),
        ("a staged file", |h| {
            write(&h.top, b"mine", "m");
            h.git(&["add", "mine"]);
        }),
        ("git at work", |h| write(&h.top, b".git/index.lock", "")),
    ];
    for (what, edit) in edits {
        let host = Host::new();
        let trip = host.upload().await;
        write(&trip.top, b"a", "agent\n");
        write(&trip.top, b"new", "agent\n");
        trip.git(&["add", "-A"]);
        trip.git(&["commit", "-q", "-m", "agent"]);
        let back = trip.collect();
        let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
        edit(&host);
        let before = snapshot(&host.top);
        let error = apply(&tree, &trip.repo, &trip.manifest).await.expect_err(what);
        assert_eq!(error.code(), crate::Code::CheckoutChanged, "{what}: {error:?}");
        assert!(error.help_text().contains(&tree.path().display().to_string()), "{what}");
        assert_untouched(&before, &host.top, what);
        assert_eq!(read(tree.path(), b"a"), b"agent\n");
    }
}

#[tokio::test]
async fn a_git_status_of_the_user_meanwhile_is_no_change() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    // A refresh writes the index anew.
    host.git(&["update-index", "--force-write-index"]);
    host.git(&["update-index", "--really-refresh"]);
    assert_ne!(std::fs::read(host.top.join(".git/index")).ok(), None);
    write(&host.top, b"not in the way", "mine");
    trip.import().await;
    assert_eq!(host.status(), " M a\n?? \"not in the way\"\n");
}

#[tokio::test]
async fn what_was_left_out_stays_the_hosts() {
    let host = odd_host();
    write(&host.top, b"docs/secret", "mine");
    write(&host.top, b"docs/open", "mine");
    host.commit("docs");
    write(&host.top, b"x.o", "host object");
    write(&host.top, b"out/run.json", "{}");
    let options = UploadOptions {
        ignored: false,
        exclude: vec!["/docs/secret".to_owned()],
        leave_out: vec![host.top.join("out")],
        ..UploadOptions::default()
    };
    let trip = host.upload_with(&options).await;
    for path in ["x.o", "build", "docs/secret", "out"] {
        assert!(!trip.top.join(path).exists(), "{path}");
    }
    assert!(
        trip.top.join("docs/open").exists()
            && trip.top.join("untracked").exists() == host.top.join("untracked").exists()
    );
    write(&trip.top, b"x.o", "agent object");
    write(&trip.top, b"build/z", "agent");
    write(&trip.top, b"fresh.o", "agent");
    write(&trip.top, b"docs/open", "agent");
    assert!(!trip.git(&["status", "--porcelain"]).contains("secret"));
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    assert_eq!(read(tree.path(), b"docs/secret"), b"mine");
    assert_eq!(read(tree.path(), b"build/deep/y"), b"y");
    assert!(!tree.path().join("out").exists());
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(read(&host.top, b"x.o"), b"host object");
    assert!(!host.top.join("build/z").exists());
    assert_eq!(read(&host.top, b"fresh.o"), b"agent");
    assert_eq!(read(&host.top, b"docs/secret"), b"mine");
    assert_eq!(host.git(&["show", "HEAD:docs/secret"]), "mine", "`commit -a` did not commit its deletion");
    assert!(!host.status().contains("secret"));
    assert!(tree.notes().iter().any(|n| n.contains("left out")), "{:?}", tree.notes());
}

#[tokio::test]
async fn a_file_beside_ignored_ones_arrives_when_ignored_files_stay_out() {
    let host = odd_host();
    write(&host.top, b"gen\xff/x.o", "only ignored files here");
    let trip = host.upload_with(&UploadOptions::default()).await;
    assert!(!trip.top.join(os(b"gen\xff/x.o")).exists() && trip.top.join(os(b"gen\xff")).is_dir());
    write(&trip.top, b"gen\xff/new.c", "agent");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(read(&host.top, b"gen\xff/new.c"), b"agent");
    assert_eq!(read(&host.top, b"gen\xff/x.o"), b"only ignored files here");
}

#[tokio::test]
async fn a_submodule_stays_a_submodule() {
    let other = Host::new();
    let host = Host::new();
    let url = other.top.display().to_string();
    host.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "mod"]);
    host.commit("submodule");
    let trip = host.upload().await;
    assert!(trip.manifest.warnings.iter().any(|w| w.contains("mod/.git")), "{:?}", trip.manifest.warnings);
    assert_eq!(trip.git(&["status", "--porcelain"]), "");
    write(&trip.top, b"a", "agent\n");
    write(&trip.top, b"mod/a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    trip.import().await;
    assert_eq!(host.git(&["status", "--porcelain"]), " M mod\n");
    assert_eq!(git(&host.top.join("mod"), &["status", "--porcelain"]), " M a\n");
    assert_eq!(host.git(&["show", "--format=", "--name-only", "HEAD"]), "a\n");
}

#[tokio::test]
async fn flags_of_the_hosts_own_index_stay() {
    let host = Host::new();
    host.git(&["update-index", "--assume-unchanged", "b"]);
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    trip.import().await;
    assert_eq!(host.git(&["ls-files", "-v", "b"]), "h b\n");
    assert_eq!(host.status(), "");
}

#[tokio::test]
async fn an_unreadable_index_is_made_from_the_new_head() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    write(&trip.top, b".git/index", "rubbish");
    let back = trip.collect();
    assert!(back.index.is_none());
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(host.status(), "");
    assert_eq!(host.git(&["rev-parse", "HEAD"]), trip.git(&["rev-parse", "HEAD"]));
}

#[tokio::test]
async fn a_conflict_that_the_agent_leaves_keeps_the_hosts_entry() {
    let host = Host::new();
    host.git(&["switch", "-q", "-c", "theirs"]);
    write(&host.top, b"a", "theirs\n");
    host.commit("theirs");
    host.git(&["switch", "-q", "main"]);
    let trip = host.upload().await;
    write(&trip.top, b"a", "ours\n");
    trip.git(&["commit", "-q", "-a", "-m", "ours"]);
    assert!(!command("git", &trip.top).args(["merge", "-q", "theirs"]).output().unwrap().status.success());
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    assert!(tree.notes().iter().any(|n| n.contains("conflicts")), "{:?}", tree.notes());
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(host.git(&["show", ":a"]), "one\n");
    assert_eq!(read(&host.top, b"a"), read(&trip.top, b"a"));
}

#[tokio::test]
async fn an_interrupted_apply_names_the_staged_tree() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    write(&trip.top, b"b", "agent\n");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    std::fs::remove_file(back.incoming.path().join("b")).unwrap();
    let error = apply(&tree, &trip.repo, &trip.manifest).await.unwrap_err();
    assert!(error.message().contains("partly"), "{error}");
    assert!(error.help_text().contains(&tree.path().display().to_string()));
    assert_eq!(read(tree.path(), b"a"), b"agent\n");
}

#[tokio::test]
async fn an_apply_that_changed_nothing_does_not_speak_of_half() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    std::fs::remove_file(back.incoming.path().join("a")).unwrap();
    let error = apply(&tree, &trip.repo, &trip.manifest).await.unwrap_err();
    assert!(error.message().contains("nothing of it was changed"), "{error}");
    assert!(error.help_text().contains(&tree.path().display().to_string()));
}

#[tokio::test]
async fn files_behind_a_filter_look_unchanged_and_come_back_as_files_only() {
    let host = Host::new();
    // A filter as Git LFS: git has a pointer, the working tree the content.
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n";
    write(&host.top, b".gitattributes", "*.bin filter=lfs\n*.odd filter=odd\n");
    for path in [&b"x.bin"[..], b"y.bin", b"z.odd"] {
        write(&host.top, path, pointer);
    }
    host.commit("pointers");
    for path in [&b"x.bin"[..], b"y.bin", b"z.odd"] {
        write(&host.top, path, "content of the large file");
    }
    host.git(&["update-index", "--assume-unchanged", "x.bin", "y.bin", "z.odd"]);
    let trip = host.upload().await;
    host.git(&["update-index", "--no-assume-unchanged", "x.bin", "y.bin", "z.odd"]);
    assert!(
        trip.manifest.warnings.iter().any(|w| w.starts_with("3 tracked file(s)")),
        "{:?}",
        trip.manifest.warnings
    );
    assert_eq!(trip.git(&["status", "--porcelain"]), "");
    // An edit that stays in the working tree comes back; the host's git has the filter.
    write(&trip.top, b"x.bin", "edited");
    write(&trip.top, b"a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    assert_eq!(read(tree.path(), b"x.bin"), b"edited");
    assert_eq!(git(tree.path(), &["show", "HEAD:x.bin"]), pointer);
    // What the filter would have made is fine.
    write(&trip.top, b"new.bin", pointer);
    trip.git(&["add", "new.bin"]);
    assert!(trip.stage(&trip.collect(), false).await.is_ok());
    // The content itself is not.
    drop(tree);
    trip.git(&["update-index", "--no-assume-unchanged", "y.bin", "z.odd"]);
    write(&trip.top, b"z.odd", pointer.replace("00", "11"));
    trip.git(&["add", "y.bin", "z.odd"]);
    trip.git(&["commit", "-q", "-m", "raw"]);
    let error = trip.stage(&trip.collect(), false).await.unwrap_err();
    assert_eq!(error.code(), crate::Code::ImportBlocked);
    let detail = error.detail_text().unwrap();
    assert!(detail.contains("y.bin") && detail.contains("z.odd") && !detail.contains("new.bin"), "{detail}");
}
