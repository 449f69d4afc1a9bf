//! What goes in arrives whole, and what comes back is neither lost nor taken on trust, also when rsync complains.

use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::support::World;

/// An rsync that does its work, and then ends as it is told: `FIRST` the first time, `THEN` afterwards.
fn complaining(world: &mut World, first: &str, then: &str) {
    let real = which("rsync");
    let seen = world.path("seen");
    world.script(
        "bin/rsync",
        &format!(
            "case $1 in --version) exec {real} \"$@\" ;; esac\n{real} \"$@\" || exit\n\
             if [ -e {seen} ]; then exit {then}; fi\n: > {seen}\nexit {first}\n",
            seen = seen.display()
        ),
    );
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
}

fn which(program: &str) -> String {
    let dirs = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&dirs).map(|dir| dir.join(program)).find(|p| p.is_file());
    found.unwrap().to_str().unwrap().to_owned()
}

#[test]
fn an_rsync_that_complains_once_is_asked_again_and_one_that_goes_on_is_believed() {
    // 24: a file vanished while it was sent. 23: not everything came. 12 and 30: the stream broke.
    for (first, then, code) in [
        ("24", "0", None),
        ("23", "0", None),
        ("24", "24", None),
        ("23", "23", Some("FS-TRANSFER")),
        ("12", "0", None),
        ("30", "0", None),
        ("1", "1", Some("FS-TRANSFER")),
    ] {
        let mut world = World::new();
        complaining(&mut world, first, then);
        world.agent("echo made > made; echo said > \"$FULLSEND_OUTPUT_DIR/said\"");
        let run = world.run(&[]);
        match code {
            None => {
                let run = run.success();
                assert!(world.repo().join("made").exists(), "{first}, {then}");
                assert_eq!(run.file("iteration-1/output/said"), "said\n", "{first}, {then}");
            }
            Some(code) => {
                let run = run.failure(code, 3);
                assert!(!world.repo().join("made").exists(), "{first}, {then}");
                assert_eq!(run.file("iteration-1/output/said"), "said\n", "{first}, {then}");
            }
        }
        world.assert_clean();
    }
}

#[test]
fn a_dirty_checkout_is_updated_in_place() {
    let world = World::new();
    world.write("repo/mine", "not committed\n");
    world.write("repo/README.md", "# Edited by hand\n");
    world.agent("echo made > made");
    let inode = |path: &std::path::Path| path.metadata().unwrap().ino();
    let before = (inode(&world.repo()), inode(&world.repo().join(".git")), inode(&world.repo().join("mine")));
    world.run(&[]).success();
    let after = (inode(&world.repo()), inode(&world.repo().join(".git")), inode(&world.repo().join("mine")));
    assert_eq!(before, after, "a shell that stands in the checkout would stand nowhere");
    let read = |name: &str| std::fs::read_to_string(world.repo().join(name)).unwrap();
    assert_eq!(
        (read("mine"), read("README.md"), read("made")),
        ("not committed\n".to_owned(), "# Edited by hand\n".to_owned(), "made\n".to_owned())
    );
}

#[test]
fn what_git_ignores_and_what_is_behind_links_arrives() {
    let world = World::new();
    world.write("repo/.gitignore", "bin/\n");
    world.commit("Ignore bin");
    world.write("repo/bin/tool", "tool");
    // A skill in a cache elsewhere.
    world.write("cache/review/SKILL.md", "---\nname: review\ndescription: d\n---\nx\n");
    symlink(world.path("cache/review"), world.path("h/review-of-the-cache")).unwrap();
    world.write("h/input/given.txt", "given");
    world.agent(
        "cat bin/tool ../agent-input/given.txt > \"$FULLSEND_OUTPUT_DIR/seen\"; git rev-parse --git-dir >> \"$FULLSEND_OUTPUT_DIR/seen\"",
    );
    world.harness("agent: agents/work\nagent_input: input\n");
    let run = world.run(&[]).success();
    assert_eq!(run.file("iteration-1/output/seen"), "toolgiven.git\n");
    // A link that leads out of the harness directory is refused, never delivered as a link to nowhere.
    world.harness("agent: agents/work\nskills: [review-of-the-cache]\n");
    world.run(&[]).failure("FS-PATH-ESCAPE", 2);
    // One that stays inside is delivered as what it shows.
    world.write("h/store/deep/notes.md", "notes");
    symlink("store", world.path("h/behind")).unwrap();
    world.agent("cp -r ../agent-input/deep \"$FULLSEND_OUTPUT_DIR/\"");
    world.harness("agent: agents/work\nagent_input: behind\n");
    let run = world.run(&[]).success();
    assert_eq!(run.file("iteration-1/output/deep/notes.md"), "notes");
}

#[test]
fn a_run_of_several_iterations_leaves_nothing_beside_the_checkout_and_finds_its_directory() {
    let world = World::new();
    world.agent("echo \"$FULLSEND_ITERATION\" > made; git add -A; git -c user.name=a -c user.email=a@b commit -qm \"$FULLSEND_ITERATION\"; cp made \"$FULLSEND_OUTPUT_DIR/\"");
    world.script("h/check", "grep -q 3 \"$FULLSEND_RUN_DIR\"/iteration-*/output/made\n");
    world.harness("agent: agents/work\nvalidation_loop: {script: check, max_iterations: 3}\n");
    let mut args = world.run_args(&["--apply", "never"]);
    let place = args.iter().position(|a| a == "--output-dir").unwrap() + 1;
    args[place] = "../out".to_owned();
    let command = world.command(
        crate::support::fullsend(),
        &args.iter().map(String::as_str).collect::<Vec<_>>(),
        &world.repo(),
    );
    let run = world.collect(world.finish(command)).success();
    let dir = run.dir.as_ref().unwrap();
    assert!(dir.join("changes.bundle").is_file() && dir.join("iteration-3").is_dir());
    let names: Vec<_> = std::fs::read_dir(world.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    let left: Vec<_> = names.iter().filter(|n| n.to_string_lossy().contains("fullsend-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A run of `claude` (a script that says it is done, after it has asked the hooks' program for its version) on a backend
/// to which that program is uploaded; the gzip of this machine is the one that is given.
fn hooked(gzip: &str) -> (World, crate::support::Run) {
    let mut world = World::new();
    world.personality("0.1.10");
    world.script(
        "h/bin/claude",
        "[ \"$1\" != --version ] || { echo 2.1.332; exit; }\n\
         cd /sandbox/workspace/bin && ./fullsend --version > \"$FULLSEND_OUTPUT_DIR/version\" && ls > \"$FULLSEND_OUTPUT_DIR/bin\"\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\",\"num_turns\":1}'",
    );
    world.write("h/agents/coder.md", crate::claude::AGENT);
    world.harness(
        "agent: agents/coder.md\nruntime: claude\ntimeout_minutes: 2\n\
         host_files:\n  - {src: bin/claude, dest: /sandbox/workspace/bin/claude}\n",
    );
    let real = which("gzip");
    world.script("bin/gzip", &format!("real={real}; seen={}\n{gzip}", world.path("seen").display()));
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
    let run = world.run(&[]);
    (world, run)
}

#[test]
fn the_program_of_the_hooks_travels_compressed_where_that_is_possible() {
    for gzip in [": > $seen; exec $real \"$@\"", "exit 1", "echo half; kill -9 $$"] {
        let (world, run) = hooked(gzip);
        let run = run.success();
        let version = run.file("iteration-1/output/version");
        assert!(version.starts_with("fullsend "), "{gzip}: {version}");
        let bin = run.file("iteration-1/output/bin");
        assert!(bin.lines().any(|l| l == "fullsend") && !bin.contains(".gz"), "{gzip}: {bin}");
        let compressed = world.path("seen").exists();
        assert_eq!(compressed, gzip.contains("exec"), "{gzip}");
        world.assert_clean();
    }
    // What arrives damaged is no program.
    let (world, run) = hooked("$real \"$@\" | head -c 100000");
    run.failure("FS-BOOTSTRAP", 3);
    world.assert_clean();
}

#[test]
fn the_reports_of_one_run_are_not_seen_by_the_next() {
    let mut world = World::new();
    let repo = world.repo().to_str().unwrap().to_owned();
    world.env("CI", "true").env("GITLAB_CI", "true").env("CI_DISPOSABLE_ENVIRONMENT", "true");
    world.env("CI_PROJECT_DIR", repo);
    let reports = ["fullsend.env", "fullsend-junit.xml", "fullsend-code-quality.json"];
    // One that somebody committed by mistake, and a name that only looks like one.
    world.write("repo/fullsend.env", "FULLSEND_VERDICT=old\n");
    world.write("repo/sub/fullsend-junit.xml", "mine");
    world.commit("Committed");
    world.agent(
        "git status --porcelain > $FULLSEND_OUTPUT_DIR/status; ls . sub > $FULLSEND_OUTPUT_DIR/list; echo x >> made",
    );
    for text in ["x\n", "x\nx\n"] {
        world.harness("agent: agents/work\nruntime: script\n");
        let run = world.run(&[]).success();
        let told = if text.len() > 2 { "?? made\n" } else { "" };
        assert_eq!(run.file("iteration-1/output/status"), told);
        assert_eq!(run.json["changes"].as_array().unwrap().len(), 1, "{}", run.json["changes"]);
        assert!(reports.iter().all(|r| world.repo().join(r).is_file()), "they are written");
        assert_eq!(std::fs::read_to_string(world.repo().join("made")).unwrap(), text);
        let list = run.file("iteration-1/output/list");
        assert_eq!(list.matches("fullsend").count(), 1, "{list}");
    }
    // Nor does a script commit them.
    world.script("h/post.sh", "cd \"$REPO_DIR\"; git add -A; git diff --cached --name-only");
    world.harness("agent: agents/work\nruntime: script\npost_script: post.sh\n");
    let run = world.run(&[]).success();
    assert!(run.done.stdout.contains("made") && !run.done.stdout.contains("junit"), "{}", run.done.stdout);
}
