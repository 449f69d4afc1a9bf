//! Repositories as people and CI systems have them, through the whole program; and what the host's own rules stop.

use std::path::Path;

use serde_json::Value;

use crate::support::World;

const WORK: &str = r#"
git config user.name Agent; git config user.email agent@example.com
test "$(git status --porcelain)" = ""
test -d .git
echo work > made; git add made; git commit -q -m Work
echo loose > loose
"#;

/// Runs the agent on `target` and checks that commit and file are there.
fn works_on(world: &World, target: &Path) {
    world.agent(WORK);
    world.run(&["--target-repo", target.to_str().unwrap()]).success();
    let git = |args: &[&str]| {
        let out = world.command("git", args, target).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    assert_eq!(git(&["log", "-1", "--format=%s"]), "Work\n");
    assert_eq!(git(&["status", "--porcelain"]), "?? loose\n");
    world.assert_clean();
}

#[test]
fn a_linked_worktree_a_shared_clone_and_a_sparse_checkout_work() {
    let world = World::new();
    world.write("repo/far/x", "x");
    world.commit("More");
    world.git(&["worktree", "add", "-q", "-b", "side", "../linked"]);
    works_on(&world, &world.path("linked"));
    world.git(&["clone", "-q", "--shared", ".", "../shared"]);
    works_on(&world, &world.path("shared"));
    world.git(&["sparse-checkout", "set", "near"]);
    works_on(&world, &world.repo());
    assert!(!world.path("repo/far").exists());
}

fn list(run_dir: Option<&Path>) -> Value {
    serde_json::from_slice(&std::fs::read(run_dir.unwrap().join("changes.json")).unwrap()).unwrap()
}

#[test]
fn every_run_leaves_its_change_as_patch_and_list() {
    let world = World::new();
    world.agent("echo work > made; rm README.md; git checkout -q -b side");
    let run = world.run(&["--apply", "never"]).success();
    let changes = list(run.dir.as_deref());
    assert_eq!(changes["schema"], "fullsend.changes/1");
    let sha = "4c7a03f2c9a663a0678eef8293f7609a609c92a6b3bccb2e556301f8b290c7f2";
    let made = &changes["paths"][1];
    assert_eq!((&made["path"], &made["kind"], &made["old"]), (&"made".into(), &"added".into(), &Value::Null));
    assert_eq!(made["new"], serde_json::json!({"mode": "100644", "size": 5, "sha256": sha}));
    let gone = &changes["paths"][0];
    assert_eq!(
        (&gone["kind"], &gone["old"]["size"], &gone["new"]),
        (&"deleted".into(), &15.into(), &Value::Null)
    );
    assert_eq!(
        (&changes["head"], &changes["refs"][0]["name"]),
        (&"refs/heads/side".into(), &"refs/heads/side".into())
    );
    assert!(run.file("changes.patch").contains("+work"));
    assert!(world.repo().join("README.md").exists());

    // Applied, and nothing to apply.
    let run = world.run(&[]).success();
    assert!(run.file("changes.patch").contains("+work") && world.repo().join("made").exists());
    world.agent("true");
    let run = world.run(&[]).success();
    assert_eq!(run.file("changes.patch"), "");
    assert_eq!(list(run.dir.as_deref())["paths"], serde_json::json!([]));
}

#[test]
fn a_change_past_the_limits_is_not_handed_to_the_post_script() {
    let world = World::new();
    world.script("h/post.sh", "touch \"$(dirname \"$0\")/ran\"");
    world.harness(
        "agent: agents/work\nruntime: script\ntimeout_minutes: 2\npost_script: post.sh\n\
         limits: {max_changed_files: 1, protected_paths: [.github/, '*.lock']}\n",
    );
    world.agent("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo x > a.lock; echo x > b");
    let run = world.run(&[]);
    assert_eq!(run.done.code, 4, "{}", run.done.stderr);
    assert_eq!(run.json["error"]["code"], "FS-IMPORT-BLOCKED");
    let detail = run.json["error"]["detail"].as_str().unwrap();
    for part in ["3 files changed", ".github/workflows/ci.yml", "a.lock"] {
        assert!(detail.contains(part), "{detail}");
    }
    assert!(!world.path("h/ran").exists() && !world.repo().join("b").exists());
    assert!(run.file("changes.patch").contains("a.lock"));

    world.agent("echo x > b");
    world.run(&[]).success();
    assert!(world.path("h/ran").exists());
}

#[test]
fn a_protected_path_that_only_a_branch_changes_is_found_by_what_the_error_names() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\ntimeout_minutes: 2\nlimits: {protected_paths: ['*.lock']}\n",
    );
    world.agent(
        "git checkout -q -b side; echo x > a.lock; git add a.lock; git commit -q -m Side; git checkout -q main",
    );
    let run = world.run(&[]).failure("FS-IMPORT-BLOCKED", 4);
    let help = run.json["error"]["help"].as_str().unwrap();
    assert!(help.contains("changes.bundle") && help.contains("`a.lock`"), "{help}");
    assert_eq!(run.file("changes.patch"), "");
    let bundle = run.dir.as_ref().unwrap().join("changes.bundle");
    world.git(&["fetch", "-q", bundle.to_str().unwrap(), "refs/heads/*:refs/agent/*"]);
    assert_eq!(world.git(&["show", "refs/agent/side:a.lock"]), "x\n");

    // Staged and gone from the working tree: no file has it.
    world.agent("echo x > a.lock; git add a.lock; rm a.lock");
    let run = world.run(&[]).failure("FS-IMPORT-BLOCKED", 4);
    let help = run.json["error"]["help"].as_str().unwrap();
    assert!(help.contains("staged") && help.contains("does not have it"), "{help}");
}

#[test]
fn plain_git_in_the_scripts_obeys_neither_the_agent_nor_the_callers_environment() {
    let mut world = World::new();
    let trap = world.script("trap", "touch \"$(dirname \"$0\")/marker\"; exit 1");
    let trap = trap.to_str().unwrap().to_owned();
    world.git(&["config", "filter.host.clean", &trap]);
    world.git(&["config", "diff.host.textconv", &trap]);
    world.script("repo/.git/hooks/pre-commit", &trap);
    world.script("repo/.git/hooks/pre-push", &trap);
    world.git(&["init", "-q", "--bare", "../remote.git"]);
    world.git(&["remote", "add", "origin", "../remote.git"]);
    world.git(&["config", "remote.origin.url", world.path("remote.git").to_str().unwrap()]);
    // A run that a hook of git starts.
    world.env("GIT_DIR", world.repo().join(".git").to_str().unwrap());
    world.env("GIT_INDEX_FILE", world.repo().join(".git/index").to_str().unwrap());
    world.script(
        "h/post.sh",
        "set -eu; cd \"$REPO_DIR\"; git status; git diff; git add -A; git diff --cached; git commit -q -m Post; \
         git push -q origin HEAD:refs/heads/result",
    );
    world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\npost_script: post.sh\n");
    world.agent(
        "echo '* filter=host diff=host' > .gitattributes; echo edit > README.md; echo x > new\n\
         git config core.fsmonitor /bin/false",
    );
    world.run(&[]).success();
    assert!(!world.path("marker").exists(), "a program of the host ran on the agent's files");
    let remote = world.path("remote.git");
    let mut log = world.command("git", &["log", "-1", "--format=%s", "result"], &remote);
    let out = log.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "Post\n", "{out:?}");
}

#[test]
fn an_encoding_that_makes_git_add_fail_is_told_before_the_post_script_meets_it() {
    let world = World::new();
    world.script("h/post.sh", "cd \"$REPO_DIR\"; git add -A");
    world.harness("agent: agents/work\nruntime: script\npost_script: post.sh\n");
    // Two bytes a letter, as it says.
    world.agent(
        "echo '*.wide working-tree-encoding=UTF-16LE' > .gitattributes; printf 'a\\0b\\0' > good.wide",
    );
    let run = world.run(&[]).success();
    assert!(!run.done.stdout.contains("encoding that they do not have"), "{}", run.done.stdout);
    world.agent("echo '*.wide working-tree-encoding=UTF-16LE' > .gitattributes; printf odd > odd.wide");
    let run = world.run(&[]).failure("FS-POST-SCRIPT", 5);
    assert!(run.done.stdout.contains("encoding that they do not have"), "{}", run.done.stdout);
    assert!(run.done.stdout.contains("'odd.wide' from UTF-16LE"), "{}", run.done.stdout);
    world.assert_clean();
}
