//! What the agent's files could make the host's git do, in the staged repository and while results are taken over.

use super::hostile::Trap;
use super::*;

#[tokio::test]
async fn the_hosts_hooks_do_not_run_the_agents_files() {
    let host = Host::new();
    let snare = Trap::new();
    let hooks = ["pre-commit", "post-checkout", "pre-push", "reference-transaction", "post-index-change"];
    for hook in hooks {
        std::fs::create_dir_all(host.top.join(".git/hooks")).unwrap();
        std::fs::copy(snare.script(), host.top.join(".git/hooks").join(hook)).unwrap();
        // The way of husky: the hooks of the host run what the tree says.
        std::fs::create_dir_all(host.top.join(".husky")).unwrap();
        std::fs::copy(snare.script(), host.top.join(".husky").join(hook)).unwrap();
    }
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    let back = trip.collect();
    for path in [None, Some(".husky")] {
        if let Some(path) = path {
            host.git(&["config", "core.hooksPath", path]);
        }
        let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
        snare.use_git(tree.path());
        let remote = tempfile::tempdir().unwrap();
        run("git", remote.path(), &["init", "-q", "--bare"]);
        git(tree.path(), &["push", "-q", &remote.path().display().to_string(), "HEAD"]);
        assert!(!snare.marker().exists());
    }
}

#[tokio::test]
async fn attributes_of_the_agent_reach_no_program_of_the_host() {
    let host = Host::new();
    let snare = Trap::new();
    write(&host.top, b".gitattributes", "*.known filter=known\n");
    host.commit("attributes");
    for key in ["filter.own.clean", "filter.own.smudge", "filter.proc.process", "diff.conv.textconv"] {
        host.git(&["config", key, &snare.script()]);
    }
    host.git(&["config", "filter.own.required", "true"]);
    host.git(&["config", "filter.known.clean", "cat"]);
    let trip = host.upload().await;
    let text = "*.known filter=known\n* filter=own diff=conv\n*.p filter=proc\n[attr]m diff=conv\n";
    write(&trip.top, b".gitattributes", text);
    write(&trip.top, b"dir/.gitattributes", "c filter=proc\n");
    for path in [&b"x"[..], b"y.p", b"a", b"dir/c"] {
        write(&trip.top, path, "agent\n");
    }
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, false).await.unwrap() else { panic!() };
    assert!(tree.notes().iter().any(|n| n.contains("`own`")), "{:?}", tree.notes());
    assert!(!tree.notes().iter().any(|n| n.contains("`known`")), "{:?}", tree.notes());
    snare.use_git(tree.path());
    assert_eq!(git(tree.path(), &["show", "y:x"]), "agent\n", "the content was committed as it is");
    // Drivers that cannot be switched off.
    for key in ["diff.conv.command", "merge.drive.driver"] {
        host.git(&["config", key, &snare.script()]);
    }
    write(&trip.top, b".gitattributes", "* diff=conv merge=drive\n");
    drop(tree);
    let error = trip.stage(&trip.collect(), false).await.unwrap_err();
    let detail = error.detail_text().unwrap();
    assert!(detail.contains("diff.conv.command") && detail.contains("merge.drive.driver"), "{detail}");
    assert!(!snare.marker().exists());
}

#[tokio::test]
async fn a_program_in_the_tree_that_the_hosts_git_runs_may_not_change() {
    let cases: &[(&str, &str, &str)] = &[
        ("filter.x.clean", "tools/clean.sh %f", "tools/clean.sh"),
        ("filter.x.clean", "./tools/clean.sh", "tools/lib/common.sh"),
        ("alias.st", "!sh tools/clean.sh", "tools/clean.sh"),
        ("diff.external", "tools/not-there-yet", "tools/not-there-yet"),
        ("core.sshCommand", "ssh -F tools/clean.sh", "tools/clean.sh"),
    ];
    for (key, value, path) in cases {
        let host = Host::new();
        write(&host.top, b"tools/clean.sh", "cat\n");
        host.commit("tools");
        host.git(&["config", key, value]);
        let trip = host.upload().await;
        write(&trip.top, path.as_bytes(), "evil\n");
        let error = trip.refused().await;
        assert!(error.detail_text().unwrap().contains(&key.to_lowercase()), "{key}: {error:?}");
    }
    let host = Host::new();
    let trip = host.upload().await;
    write(&trip.top, b".lfsconfig", "[lfs]\n\turl = https://evil.example\n");
    assert!(trip.refused().await.detail_text().unwrap().contains(".lfsconfig"));
}

#[tokio::test]
async fn no_setting_of_the_host_runs_a_program_during_an_import() {
    let host = Host::new();
    let snare = Trap::new();
    write(&host.top, b".gitattributes", "a filter=x diff=x merge=x\n");
    host.commit("attributes");
    let trip = host.upload().await;
    write(&trip.top, b"a", "agent\n");
    std::fs::rename(trip.top.join("b"), trip.top.join("moved")).unwrap();
    trip.git(&["add", "-A", "b", "moved"]);
    trip.git(&["commit", "-q", "-m", "agent"]);
    write(&trip.top, b"later", "x");
    trip.git(&["add", "-N", "later"]);
    for key in super::super::git::COMMANDS {
        let key = match *key {
            "alias.*" | "pager.*" => key.replace('*', "status"),
            "remote.*.uploadpack" | "remote.*.receivepack" => key.replace('*', "origin"),
            "gpg.*.program" => key.replace('*', "ssh"),
            key => key.replace('*', "x"),
        };
        host.git(&["config", &key, &snare.script()]);
    }
    // `git config` itself looks at some of them.
    let _ = std::fs::remove_file(snare.marker());
    let repo = HostRepo::discover(&host.top).await.unwrap();
    let manifest = Manifest::take(&repo, &UploadOptions::default()).await.unwrap();
    assert_eq!(manifest.changed_since(&repo).await.unwrap(), Vec::<String>::new());
    let back = trip.collect();
    let Staged::Tree(tree) = trip.stage(&back, true).await.unwrap() else { panic!() };
    let out = tempfile::tempdir().unwrap();
    tree.write_patch(&out.path().join("p"), &trip.repo, &trip.manifest).await.unwrap();
    tree.write_bundle(&out.path().join("b"), &trip.repo).await.unwrap();
    apply(&tree, &trip.repo, &trip.manifest).await.unwrap();
    assert!(!snare.marker().exists(), "a setting of the host ran a program");
    assert_eq!(read(&host.top, b"a"), b"agent\n");
}
