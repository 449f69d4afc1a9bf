//! Patch and bundle: what a run leaves that did not succeed.

use super::*;

#[tokio::test]
async fn the_patch_makes_one_tree_of_the_other() {
    let host = Host::new();
    write(&host.top, b"bin\xff\n", [0u8, 1, 2, 255]);
    write(&host.top, b"tool", "t\n");
    link(&host.top, "l", "a");
    host.commit("more");
    write(&host.top, b"untracked", "u\n");
    let trip = host.upload().await;
    write(&trip.top, b"a", "edited\n");
    write(&trip.top, b"bin\xff\n", [0u8, 9, 255]);
    write(&trip.top, b"untracked", "u2\n");
    write(&trip.top, b"new \"x\"", "n");
    chmod(&trip.top, b"tool", 0o755);
    link(&trip.top, "l", "b");
    std::fs::remove_file(trip.top.join("dir/c")).unwrap();
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    let kinds: Vec<_> =
        tree.changes(&trip.manifest).iter().map(|c| (names::shown(&c.path), c.kind)).collect();
    let expected = [
        ("a", ChangeKind::Modified),
        ("bin\\xff\\n", ChangeKind::Modified),
        ("dir/c", ChangeKind::Deleted),
        ("l", ChangeKind::Link),
        ("new \"x\"", ChangeKind::Added),
        ("tool", ChangeKind::Mode),
        ("untracked", ChangeKind::Modified),
    ];
    assert_eq!(kinds, expected.map(|(p, k)| (p.to_owned(), k)));
    let out = tempfile::tempdir().unwrap();
    let (patch, bundle) = (out.path().join("changes.patch"), out.path().join("commits.bundle"));
    let before = snapshot(&host.top);
    tree.write_patch(&patch, &trip.repo, &trip.manifest).await.unwrap();
    assert!(tree.write_bundle(&bundle, &trip.repo).await.unwrap());
    assert_untouched(&before, &host.top, "untouched");
    host.git(&["apply", &patch.to_string_lossy()]);
    for path in [&b"a"[..], b"bin\xff\n", b"untracked", b"new \"x\""] {
        assert_eq!(read(&host.top, path), read(&trip.top, path));
    }
    assert!(!host.top.join("dir/c").exists());
    assert_eq!(std::fs::read_link(host.top.join("l")).unwrap(), Path::new("b"));
    assert_eq!(host.top.join("tool").metadata().unwrap().mode() & 0o111, 0o111);
    host.git(&["fetch", "-q", &bundle.to_string_lossy(), "main:from-bundle"]);
    assert_eq!(host.git(&["rev-parse", "from-bundle"]), trip.git(&["rev-parse", "main"]));
}

#[tokio::test]
async fn a_branch_without_a_new_commit_makes_no_bundle() {
    let host = Host::new();
    let trip = host.upload().await;
    trip.git(&["branch", "mark"]);
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    let out = tempfile::tempdir().unwrap();
    assert!(!tree.write_bundle(&out.path().join("b"), &trip.repo).await.unwrap());
    tree.write_patch(&out.path().join("p"), &trip.repo, &trip.manifest).await.unwrap();
    assert_eq!(std::fs::read(out.path().join("p")).unwrap(), b"");
}

#[tokio::test]
async fn limits_of_the_harness_count_files_commits_and_the_index() {
    use crate::harness::ChangeLimits;
    let host = Host::new();
    let trip = host.upload().await;
    trip.git(&["switch", "-q", "-c", "side"]);
    write(&trip.top, b".GitHub/workflows/ci.yml", "evil");
    trip.git(&["add", "-A"]);
    trip.git(&["commit", "-q", "-m", "on another branch"]);
    trip.git(&["switch", "-q", "main"]);
    write(&trip.top, b"a", "agent");
    write(&trip.top, b":(top)odd", "12345678");
    write(&trip.top, b"vendor/keep/x", "x");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    let judge = async |limits: ChangeLimits, patch: u64| match tree
        .check_limits(&limits, patch, &trip.repo, &trip.manifest)
        .await
    {
        Ok(()) => String::new(),
        Err(e) => {
            assert_eq!(e.code(), crate::Code::ImportBlocked);
            e.detail_text().unwrap().to_owned()
        }
    };
    let paths = |list: &[&str]| ChangeLimits {
        protected_paths: list.iter().map(|p| (*p).to_owned()).collect(),
        ..ChangeLimits::default()
    };
    let of = |files, patch, file| ChangeLimits {
        max_changed_files: files,
        max_patch_bytes: patch,
        max_file_bytes: file,
        protected_paths: vec![],
    };
    assert_eq!(judge(of(Some(4), Some(10), Some(8)), 10).await, "");
    let all = judge(of(Some(3), Some(9), Some(7)), 10).await;
    assert_eq!(all.lines().count(), 3, "{all}");
    assert!(all.contains("4 files changed") && all.contains(":(top)odd: 8 bytes"), "{all}");
    // A commit of a branch that is not checked out counts, and case does not.
    assert!(
        judge(paths(&[".github/"]), 0).await.contains(".GitHub/workflows/ci.yml: limits.protected_paths has")
    );
    assert!(judge(paths(&["*odd"]), 0).await.contains(":(top)odd"));
    assert_eq!(judge(paths(&["/dir/", "b", "vendor/*", "!vendor/keep"]), 0).await, "");
    assert!(judge(paths(&["vendor/"]), 0).await.contains("vendor/keep/x"));
}
