//! What goes in comes back: unchanged by an agent that does nothing, changed as the agent changed it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::support::{GENERATIONS, World, make_executable};

/// Kind, mode, modification time, content: everything that must not change.
type Snapshot = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

fn snapshot(dir: &Path) -> Snapshot {
    fn walk(dir: &Path, out: &mut Snapshot) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_symlink() {
                std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if meta.is_file() {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if meta.is_dir() {
                walk(&path, out);
            }
            // git refreshes its index when it is asked for the status, and a directory's time changes with it.
            if !path.ends_with(".git/index") && !path.ends_with(".git") {
                out.insert(path, (meta.mode(), meta.mtime(), meta.mtime_nsec(), content));
            }
        }
    }
    let mut out = Snapshot::new();
    walk(dir, &mut out);
    out
}

/// A repository with everything that file systems and git allow and that transfers are known to lose.
fn difficult(world: &World) {
    world.script("repo/tools/run me.sh", "echo hi");
    world.write("repo/empty", "");
    world.write("repo/sp ace/a \"quoted\" 'name'", "q");
    world.write("repo/new\nline", "n");
    world.write("repo/ünïcødé-漢", "u");
    world.write("repo/-leading dash", "d");
    world.write("repo/trailing ", "t");
    world.write("repo/back\\slash", "b");
    let bytes = world.repo().join(OsStr::from_bytes(b"not-\xff-utf8"));
    std::fs::write(bytes, "x").unwrap();
    let long = format!("repo/{}/{}/{}", "a".repeat(120), "b".repeat(120), "c".repeat(120));
    world.write(&long, "long");
    world.write("repo/dir/inner", "i");
    symlink("README.md", world.repo().join("link to file")).unwrap();
    symlink("dir", world.repo().join("link-to-dir")).unwrap();
    symlink("../dir/inner", world.repo().join("dir/up")).unwrap();
    symlink("nowhere/at/all", world.repo().join("dangling")).unwrap();
    world.write("repo/.gitignore", "ignored/\n*.log\n");
    world.commit("Everything difficult");
    world.write("repo/ignored/deep/file", "kept");
    world.write("repo/debug.log", "log");
    world.write("repo/untracked file", "u");
    let staged = world.write("repo/staged", "s");
    make_executable(&staged);
    world.git(&["add", "staged"]);
    world.write("repo/README.md", "# Edited by hand\n");
}

#[test]
fn an_agent_that_does_nothing_changes_nothing() {
    for generation in GENERATIONS {
        let mut world = World::new();
        difficult(&world);
        world.personality(generation);
        let status = world.git(&["status", "--porcelain", "-z"]);
        let before = snapshot(&world.repo());
        world.run(&[]).success();
        assert_eq!(snapshot(&world.repo()), before, "{generation}");
        assert_eq!(world.git(&["status", "--porcelain", "-z"]), status);
        world.assert_clean();
    }
}

#[test]
fn a_repository_whose_name_needs_quoting_works() {
    let world = World::new();
    let odd = world.path("it's a \"repo\" $HOME; x");
    std::fs::rename(world.repo(), &odd).unwrap();
    std::fs::create_dir(world.repo()).unwrap();
    world.agent("pwd > name.txt; echo \"$FULLSEND_TARGET_REPO_DIR\" >> name.txt");
    let target = odd.to_str().unwrap();
    world.run(&["--target-repo", target]).success();
    let name = std::fs::read_to_string(odd.join("name.txt")).unwrap();
    let expected = "/sandbox/workspace/it's a \"repo\" $HOME; x\n";
    assert_eq!(name, expected.repeat(2));
}

#[test]
fn changes_of_every_kind_come_back() {
    let world = World::new();
    difficult(&world);
    world.write("repo/same-size", "aaaa");
    world.write("repo/doomed", "d");
    world.write("repo/old name", "content that moves");
    world.commit("More");
    world.agent(
        r#"
        echo new > "added file"
        printf bbbb > same-size; touch -r README.md same-size
        rm doomed
        mv "old name" "new name"
        chmod +x empty
        chmod -x "tools/run me.sh"
        mkdir -p fresh/deep && echo x > fresh/deep/x
        echo more >> ignored/deep/file
        rm dangling && ln -s dir/inner dangling
        ln -s README.md "made link"
        rm -r "sp ace"
        "#,
    );
    world.run(&[]).success();
    let repo = world.repo();
    let read = |name: &str| std::fs::read_to_string(repo.join(name)).unwrap();
    assert_eq!(read("added file"), "new\n");
    assert_eq!(read("same-size"), "bbbb");
    assert!(!repo.join("doomed").exists() && !repo.join("old name").exists());
    assert_eq!(read("new name"), "content that moves");
    let mode = |name: &str| std::fs::metadata(repo.join(name)).unwrap().mode() & 0o111;
    assert_ne!(mode("empty"), 0);
    assert_eq!(mode("tools/run me.sh"), 0);
    assert_eq!(read("fresh/deep/x"), "x\n");
    assert_eq!(read("ignored/deep/file"), "keptmore\n");
    assert_eq!(std::fs::read_link(repo.join("dangling")).unwrap(), Path::new("dir/inner"));
    assert_eq!(std::fs::read_link(repo.join("made link")).unwrap(), Path::new("README.md"));
    assert!(!repo.join("sp ace").exists());
    // What was edited by hand before the run is still there.
    assert_eq!(read("README.md"), "# Edited by hand\n");
    world.assert_clean();
}

#[test]
fn commits_come_back_and_the_rest_of_git_stays() {
    for generation in GENERATIONS {
        let mut world = World::new();
        world.personality(generation);
        world.git(&["branch", "other"]);
        world.write("repo/README.md", "stashed\n");
        world.git(&["stash", "-q"]);
        world.script("repo/.git/hooks/pre-commit", "touch /tmp/never; exit 1");
        world.git(&["config", "alias.x", "status"]);
        let kept = |w: &World| {
            let config = std::fs::read(w.repo().join(".git/config")).unwrap();
            let hook = std::fs::read(w.repo().join(".git/hooks/pre-commit")).unwrap();
            (w.git(&["stash", "list"]), w.git(&["rev-parse", "other"]), config, hook)
        };
        let before = kept(&world);
        world.agent(
            r"
            git config user.name Agent; git config user.email agent@example.com
            git checkout -q -b feature
            echo one > one; git add one; git commit -q -m One
            echo two > two; git add two; git commit -q -m Two
            git tag v1
            echo staged > staged; git add staged
            echo loose > loose
            mkdir -p .git/hooks; echo 'exit 1' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit
            git config core.fsmonitor /bin/false
            ",
        );
        world.run(&[]).success();
        assert_eq!(world.git(&["log", "--format=%s"]), "Two\nOne\nBegin\n", "{generation}");
        assert_eq!(world.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "feature\n");
        assert_eq!(world.git(&["rev-parse", "v1"]), world.git(&["rev-parse", "HEAD"]));
        assert_eq!(world.git(&["status", "--porcelain"]), "A  staged\n?? loose\n");
        assert_eq!(kept(&world), before);
        assert!(!world.repo().join(".git/hooks/post-commit").exists());
        world.git(&["fsck", "--strict"]);
        world.assert_clean();
    }
}

#[test]
fn an_agent_can_commit_where_nobody_says_who_it_is() {
    let world = World::new();
    let commit = "echo $RANDOM > made; git add made; git commit -q -m Work";
    let author = |args: &[&str]| {
        world.run(args).success();
        world.git(&["log", "-1", "--format=%an <%ae>, %cn <%ce>"])
    };
    world.agent(commit);
    assert_eq!(author(&[]), "Test <test@example.com>, Test <test@example.com>\n", "the repository's own");
    for key in ["user.name", "user.email"] {
        world.git(&["config", "--unset", key]);
    }
    let own = "fullsend agent <agent@fullsend.invalid>";
    assert_eq!(author(&[]), format!("{own}, {own}\n"));
    assert_eq!(
        world.command("git", &["config", "user.name"], &world.repo()).status().unwrap().code(),
        Some(1)
    );
    world.git(&["config", "user.email", "half@example.com"]);
    assert_eq!(author(&[]), "fullsend agent <half@example.com>, fullsend agent <half@example.com>\n");
    world.harness(
        "agent: agents/work\nruntime: script\nenv: {sandbox: {GIT_AUTHOR_NAME: Robot, GIT_AUTHOR_EMAIL: r@example.com}}\n",
    );
    assert_eq!(author(&[]), "Robot <r@example.com>, fullsend agent <half@example.com>\n");
    // A configuration that the harness delivers is read, and stays as it is.
    world.write("h/gitconfig", "[user]\n\tname = Delivered\n\temail = d@example.com\n");
    world.git(&["config", "--unset", "user.email"]);
    world.harness(
        "agent: agents/work\nruntime: script\nhost_files: [{src: gitconfig, dest: /sandbox/.gitconfig}]\n",
    );
    world.agent(&format!("{commit}; cp ~/.gitconfig $FULLSEND_OUTPUT_DIR/"));
    assert_eq!(author(&[]), "Delivered <d@example.com>, Delivered <d@example.com>\n");
    let run = world.run(&[]).success();
    assert_eq!(run.file("iteration-1/output/.gitconfig").matches("user").count(), 1);
}
