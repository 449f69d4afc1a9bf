//! What an honest agent does arrives; what it does not do stays as it was.

use super::*;

#[tokio::test]
async fn a_do_nothing_agent_changes_nothing() {
    let host = odd_host();
    let status = host.status();
    let before = snapshot(&host.top);
    let trip = host.upload().await;
    assert_eq!(
        trip.git(&["status", "--porcelain", "--ignored"]),
        status,
        "the sandbox has the host's status"
    );
    let mut back = trip.collect();
    back.incoming = tempfile::tempdir().unwrap();
    std::fs::remove_dir(back.incoming.path()).unwrap();
    assert!(back.delta.files.is_empty() && back.delta.git.fetch.is_empty(), "{:?}", back.delta);
    assert!(matches!(trip.stage(&back, false).await.unwrap(), Staged::Unchanged { .. }));
    assert_untouched(&before, &host.top, "untouched");
    assert_eq!(host.status(), status);
}

#[tokio::test]
async fn what_arrives_in_the_sandbox_is_what_the_host_has() {
    let host = odd_host();
    let trip = host.upload().await;
    let strip = |top: &Path| -> BTreeMap<_, _> {
        let all = snapshot(top).into_iter().filter(|(p, _)| p != b".git" && !p.starts_with(b".git/"));
        all.map(|(p, text)| {
            let (mode, rest) = text.split_once(' ').unwrap();
            let (time, content) = rest.split_once(' ').unwrap();
            // An archive has whole seconds.
            (p, format!("{mode} {} {content}", time.parse::<i64>().unwrap() / 1_000_000_000))
        })
        .collect()
    };
    assert_eq!(strip(&host.top), strip(&trip.top));
    trip.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn an_unchanged_tree_can_be_asked_for_and_is_a_whole_repository() {
    let host = odd_host();
    let trip = host.upload().await;
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, true).await.unwrap() else { panic!("a tree was asked for") };
    assert!(!tree.has_changes());
    assert_eq!(git(tree.path(), &["status", "--porcelain", "--ignored"]), host.status());
    assert_eq!(
        tree.path().parent().unwrap().parent().unwrap(),
        host.top.parent().unwrap(),
        "beside the checkout"
    );
    assert_eq!(tree.dir().metadata().unwrap().mode() & 0o777, 0o700);
    let before = snapshot(&host.top);
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert_untouched(&before, &host.top, "untouched");
    tree.remove().unwrap();
    assert_eq!(std::fs::read_dir(host.dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn uncommitted_work_arrives() {
    let host = odd_host();
    let trip = host.upload().await;
    write(&trip.top, b"new/deep/file", "n");
    write(&trip.top, b"new/exec", "x");
    chmod(&trip.top, b"new/exec", 0o755);
    write(&trip.top, b"sp ace", "SP ACE".to_ascii_lowercase().replace(' ', "_"));
    std::fs::rename(trip.top.join("dir"), trip.top.join("moved")).unwrap();
    std::fs::remove_file(trip.top.join(os(b"new\nline"))).unwrap();
    write(&trip.top, b"added\n\xff", "odd name");
    chmod(&trip.top, b"tool", 0o644);
    chmod(&trip.top, b"empty", 0o755);
    write(&trip.top, b"fresh.o", "ignored");
    write(&trip.top, b"staged new", "s1");
    trip.git(&["add", "staged new"]);
    write(&trip.top, b"staged new", "s2");
    std::fs::create_dir(trip.top.join("another empty")).unwrap();
    trip.import().await;
    trip.assert_same();
    assert_eq!(host.git(&["show", ":staged new"]), "s1");
}

#[tokio::test]
async fn committed_work_arrives() {
    let host = odd_host();
    host.git(&["branch", "other"]);
    let trip = host.upload().await;
    write(&trip.top, b"a", "committed\n");
    std::fs::rename(trip.top.join("tool"), trip.top.join("tool2")).unwrap();
    trip.git(&["rm", "-q", "sp ace"]);
    trip.git(&["add", "-A", "."]);
    trip.git(&["commit", "-q", "-m", "by the agent"]);
    trip.git(&["tag", "-a", "-m", "tagged", "v1"]);
    trip.git(&["switch", "-q", "-c", "feature/x"]);
    write(&trip.top, b"only here", "f");
    trip.git(&["add", "-A"]);
    trip.git(&["commit", "-q", "-m", "on a branch"]);
    write(&trip.top, b"only here", "edited after");
    let other = host.git(&["rev-parse", "other"]);
    trip.import().await;
    trip.assert_same();
    assert_eq!(host.git(&["symbolic-ref", "HEAD"]), "refs/heads/feature/x\n");
    for name in ["main", "v1", "v1^{}"] {
        assert_eq!(host.git(&["rev-parse", name]), trip.git(&["rev-parse", name]), "{name}");
    }
    assert_eq!(host.git(&["rev-parse", "other"]), other);
    assert!(host.git(&["reflog"]).contains("fullsend"));
    assert_eq!(host.git(&["for-each-ref", "refs/fullsend"]), "");
}

#[tokio::test]
async fn a_detached_head_and_a_repacked_sandbox_arrive() {
    let host = Host::new();
    let trip = host.upload().await;
    trip.git(&["switch", "-q", "--detach"]);
    write(&trip.top, b"a", "detached\n");
    trip.git(&["commit", "-q", "-a", "-m", "detached"]);
    write(&trip.top, b"b", "staged only\n");
    trip.git(&["add", "b"]);
    trip.git(&["repack", "-q", "-a", "-d"]);
    trip.git(&["gc", "-q"]);
    trip.git(&["pack-refs", "--all"]);
    trip.import().await;
    trip.assert_same();
    assert_eq!(run_status(&host.top, &["symbolic-ref", "-q", "HEAD"]), Some(1));
    assert_eq!(host.git(&["show", ":b"]), "staged only\n");
}

fn run_status(top: &Path, args: &[&str]) -> Option<i32> {
    command("git", top).args(args).output().unwrap().status.code()
}

#[tokio::test]
async fn an_edit_of_equal_size_with_its_time_set_back_arrives() {
    let host = Host::new();
    let trip = host.upload().await;
    let time = trip.top.join("a").metadata().unwrap().modified().unwrap();
    write(&trip.top, b"a", "ONE\n");
    std::fs::File::options().write(true).open(trip.top.join("a")).unwrap().set_modified(time).unwrap();
    trip.import().await;
    assert_eq!(read(&host.top, b"a"), b"ONE\n");
    assert_eq!(host.status(), " M a\n");
}

#[tokio::test]
async fn a_rewrite_of_the_same_bytes_is_no_change() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "one\n");
    trip.git(&["status"]);
    let before = snapshot(&host.top);
    let back = trip.collect();
    assert_eq!(back.delta.files.len(), 1);
    assert!(matches!(trip.stage(&back, false).await.unwrap(), Staged::Unchanged { .. }));
    assert_untouched(&before, &host.top, "untouched");
}

#[tokio::test]
async fn what_belongs_to_the_host_is_untouched() {
    let host = Host::new();
    host.git(&["branch", "other"]);
    write(&host.top, b"a", "stashed\n");
    host.git(&["stash", "-q"]);
    host.git(&["config", "alias.x", "!true"]);
    host.git(&["config", "http.https://h/.extraheader", "AUTHORIZATION: basic c2VjcmV0"]);
    write(&host.top, b".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    chmod(&host.top, b".git/hooks/pre-commit", 0o755);
    write(&host.top, b".git/info/exclude", "mine\n");
    let keep = |host: &Host| -> Vec<(Vec<u8>, String)> {
        let kept = [
            &b".git/config"[..],
            b".git/hooks",
            b".git/info",
            b".git/refs/stash",
            b".git/logs/refs/stash",
            b".git/refs/heads/other",
        ];
        snapshot(&host.top).into_iter().filter(|(p, _)| kept.iter().any(|k| p.starts_with(k))).collect()
    };
    let inode = host.top.metadata().unwrap().ino();
    let before = keep(&host);
    assert!(before.len() > 6, "{before:?}");
    let trip = host.upload().await;
    assert!(!git(&trip.top, &["config", "--list"]).contains("c2VjcmV0"));
    assert!(!trip.top.join(".git/hooks/pre-commit").exists());
    assert_eq!(trip.git(&["stash", "list"]), "");
    write(&trip.top, b"a", "agent\n");
    trip.git(&["commit", "-q", "-a", "-m", "agent"]);
    write(&trip.top, b"stash me", "x");
    trip.git(&["add", "-A"]);
    trip.git(&["stash", "-q"]);
    trip.git(&["branch", "-D", "-q", "other"]);
    trip.import().await;
    assert_eq!(keep(&host), before);
    assert_eq!(host.git(&["stash", "show", "-p"]).matches("stashed").count(), 1);
    assert_eq!(host.top.metadata().unwrap().ino(), inode);
    assert_eq!(host.status(), "");
    assert_eq!(read(&host.top, b"a"), b"agent\n");
}

#[tokio::test]
async fn paths_that_change_their_kind_arrive() {
    let host = odd_host();
    let trip = host.upload().await;
    let rm = |p: &str| std::fs::remove_file(trip.top.join(p)).unwrap();
    rm("a");
    write(&trip.top, b"a/now/dir", "x");
    std::fs::remove_dir_all(trip.top.join("dir")).unwrap();
    write(&trip.top, b"dir", "now a file");
    rm("to dir");
    write(&trip.top, b"to dir/inside", "y");
    rm("tool");
    link(&trip.top, "tool", "sp ace");
    rm("dangling");
    write(&trip.top, b"dangling", "now a file");
    trip.git(&["add", "-A"]);
    trip.import().await;
    trip.assert_same();
}

#[tokio::test]
async fn links_that_stay_inside_arrive_whether_git_tracks_them_or_not() {
    let host = odd_host();
    let trip = host.upload().await;
    link(&trip.top, "to file", "sp ace");
    link(&trip.top, "committed link", "dir/../b");
    trip.git(&["add", "committed link"]);
    link(&trip.top, "untracked link", "b");
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    let target = |p: &str| std::fs::read_link(host.top.join(p)).map(PathBuf::into_os_string);
    assert_eq!(target("to file").unwrap(), "sp ace");
    assert_eq!(target("committed link").unwrap(), "dir/../b");
    assert_eq!(target("untracked link").unwrap(), "b");
    assert_eq!(tree.notes(), Vec::<String>::new());
}

#[tokio::test]
async fn staging_again_replaces_what_was_staged() {
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b"a", "first\n");
    write(&trip.top, b"wrong", "x");
    trip.git(&["commit", "-q", "-a", "-m", "first try"]);
    let back = trip.collect();
    let Staged::Tree(first) = trip.stage(&back, false).await.unwrap() else { panic!() };
    write(first.path(), b"validation left this", "x");
    std::fs::remove_file(trip.top.join("wrong")).unwrap();
    write(&trip.top, b"a", "second\n");
    trip.git(&["commit", "-q", "-a", "-m", "second try"]);
    let (_back, second) = trip.import().await;
    assert_eq!(first.path(), second.path());
    trip.assert_same();
    assert!(!host.top.join("validation left this").exists());
    assert_eq!(host.git(&["rev-list", "--count", "HEAD"]), "3\n");
}

#[tokio::test]
async fn an_intention_to_add_arrives_as_one() {
    let host = Host::new();
    write(&host.top, b"mine", "m");
    host.git(&["add", "-N", "mine"]);
    let trip = host.upload().await;
    assert_eq!(trip.git(&["status", "--porcelain"]), " A mine\n");
    write(&trip.top, b"in tended", "x");
    write(&trip.top, b"empty", "");
    trip.git(&["add", "empty"]);
    trip.git(&["add", "-N", "in tended"]);
    trip.import().await;
    trip.assert_same();
    assert_eq!(host.git(&["status", "--porcelain"]), "A  empty\n A \"in tended\"\n A mine\n");
    host.git(&["diff", "--cached", "--quiet", "--", "in tended"]);
}

#[tokio::test]
async fn branches_and_tags_that_the_agent_deletes_stay_and_are_named() {
    let host = Host::new();
    host.git(&["branch", "old"]);
    host.git(&["tag", "v1"]);
    let trip = host.upload().await;
    trip.git(&["branch", "-D", "old"]);
    trip.git(&["tag", "-d", "v1"]);
    write(&trip.top, b"a", "agent\n");
    let (_back, tree) = trip.import().await;
    host.git(&["rev-parse", "old", "v1"]);
    let note = tree.notes().iter().find(|n| n.contains("deleted branches")).expect("a note");
    assert!(note.contains("refs/heads/old") && note.contains("refs/tags/v1"), "{note}");
}
