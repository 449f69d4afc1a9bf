//! The world of one vector, its run, and what is asked of it.

use super::checks::{self, Kept, OUTSIDE};
use super::secret::{CANARY, key};
use super::vector::{Body, Expected, Vector};
use crate::support::{Run, World, fullsend};

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ci {
    GitHub,
    GitLab,
}

/// The log vectors are read by both systems.
pub(super) fn readers(vector: &Vector) -> &'static [Ci] {
    if vector.class == "log" { &[Ci::GitHub, Ci::GitLab] } else { &[Ci::GitHub] }
}

/// What a validation script and a post-script of a team do: ordinary git, in the repository they are given.
const VALIDATION: &str = r#"
set -eu
cd "$TARGET_REPO_DIR"
git status
git status --porcelain
git diff
git log -1 --stat
git stash list
"#;

const POST: &str = r#"
set -eu
cd "$REPO_DIR"
git status
git add -A
git diff --cached
git diff HEAD
git commit -q --allow-empty -m 'Take over'
git log -p -3
git push -q "$BARE" HEAD:refs/heads/taken
git checkout -q -b another
git status --porcelain
echo "the post-script is done"
"#;

/// Before the body of an agent. The repository is the working directory; `set -e` shows a vector that could not
/// do what it says.
fn prelude(world: &World) -> String {
    let at = |name: &str| world.path(name).display().to_string();
    format!(
        "export MARKER='{}' TRAP='{}' OUTSIDE='{}'\nexport CANARY=\"${{TOOL_TOKEN:-}}\" KEY=\"${{TOOL_KEY:-}}\"\n\
         export OUT=\"$FULLSEND_OUTPUT_DIR\"\ngit config user.name Agent\ngit config user.email agent@example.com\n",
        at("marker"),
        at("trap"),
        at("outside"),
    )
}

fn make(ci: Ci) -> World {
    let mut world = World::new();
    world.script("trap", &format!("touch '{}'", world.path("marker").display()));
    world.write("outside/file", format!("{OUTSIDE}\n"));
    world.write("outside/dir/file", format!("{OUTSIDE}\n"));
    for file in ["env", "path", "output", "summary"] {
        world.write(&format!("gh/{file}"), "");
    }
    let set = |world: &mut World, key: &str, below: &str| {
        let path = world.path(below).to_str().unwrap().to_owned();
        world.env(key, path);
    };
    match ci {
        Ci::GitHub => {
            world.env("GITHUB_ACTIONS", "true");
            set(&mut world, "GITHUB_ENV", "gh/env");
            set(&mut world, "GITHUB_PATH", "gh/path");
            set(&mut world, "GITHUB_OUTPUT", "gh/output");
            set(&mut world, "GITHUB_STEP_SUMMARY", "gh/summary");
        }
        Ci::GitLab => {
            world.env("GITLAB_CI", "true");
        }
    }
    set(&mut world, "BARE", "remote.git");
    world.env("CI", "true").env("NO_COLOR", "1").env("HOSTILE_TOKEN", CANARY).env("HOSTILE_KEY", key());
    world.write(
        "h/profiles/tool.yaml",
        "id: test-tool\ndisplay_name: Tool\ncategory: other\ncredentials:\n  - name: token\n    \
         env_vars: [TOOL_TOKEN]\n    required: true\n  - name: key\n    env_vars: [TOOL_KEY]\n    required: true\n\
         endpoints: []\n",
    );
    world.write(
        "h/providers/tool.yaml",
        "name: tool\ntype: test-tool\ncredentials:\n  TOOL_TOKEN: ${HOSTILE_TOKEN}\n  TOOL_KEY: ${HOSTILE_KEY}\n",
    );
    world.script("h/scripts/check", VALIDATION);
    world.script("h/scripts/post", POST);
    world.harness(
        "agent: agents/work\nruntime: script\nproviders: [tool]\npost_script: scripts/post\n\
         validation_loop: {script: scripts/check, max_iterations: 1}\ntimeout_minutes: 2\n",
    );
    seed(&world);
    world
}

/// The checkout: some files, a tracked link, a tag, a remote.
fn seed(world: &World) {
    world.write("repo/a", "one\n");
    world.write("repo/b", "two\n");
    world.write("repo/dir/inner", "three\n");
    world.script("repo/run.sh", "echo hello");
    std::os::unix::fs::symlink("dir/inner", world.path("repo/link")).unwrap();
    world.commit("Files");
    world.git(&["tag", "v0"]);
    world.git(&["branch", "other"]);
    let bare = world.path("remote.git");
    world.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    world.git(&["push", "-q", bare.to_str().unwrap(), "HEAD:refs/heads/main"]);
    world.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
}

/// Runs a vector; what is wrong with the answer.
pub(super) fn run(vector: &Vector, ci: Ci) -> Vec<String> {
    let mut world = make(ci);
    match &vector.body {
        Body::Agent(body) => world.agent(&format!("{}{body}", prelude(&world))),
        Body::Printed(bytes) => {
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            world.agent(&format!("base64 -d <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT"));
        }
        Body::Checkout(body) => {
            prepare_checkout(&world, body);
            world.agent(&probe(vector));
        }
        Body::SshConfig(text) => gateway(&mut world, text),
    }
    let before = Kept::of(&world);
    let mut args = vec!["--apply", "always", "--show-agent-output", "full"];
    args.extend(vector.deadlines.iter().flat_map(|d| ["--deadline", d.as_str()]));
    let run = world.run(&args);
    let after = Kept::of(&world);
    let mut wrong = before.compare(&after, vector.expected != Expected::Safe);
    wrong.extend(outcome(vector, &world, &run));
    wrong.extend(checks::invariants(&world, &run, ci));
    wrong.extend(checks::odd_files(&world.repo()));
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.assert_clean())) {
        let what = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        wrong.push(format!("something is left behind: {what}"));
    }
    wrong.extend(use_checkout(&world, &vector.class));
    if world.path("marker").exists() {
        wrong.push("A PROGRAM OF THE SANDBOX RAN ON THE HOST".to_owned());
    }
    if !wrong.is_empty() {
        wrong.push(format!("stdout:\n{}\nstderr:\n{}", run.done.stdout, run.done.stderr));
    }
    wrong
}

/// Exit status, finding, and the paths that the vector names.
fn outcome(vector: &Vector, world: &World, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let (exit, code) = match vector.expected {
        Expected::Safe => (0, None),
        Expected::Refused => (4, Some("FS-IMPORT-BLOCKED")),
        Expected::Secret => (4, Some("FS-SECRET-FOUND")),
        Expected::Failed => (1, None),
        Expected::Rejected => (3, Some("FS-SSH-CONFIG")),
    };
    if run.done.code != exit {
        wrong.push(format!("exit status {}, not {exit}", run.done.code));
    }
    if let Some(code) = code.filter(|code| !run.done.stderr.contains(&format!("error[{code}]"))) {
        wrong.push(format!("no {code}"));
    }
    if vector.expected == Expected::Safe {
        if !run.done.stdout.contains("the post-script is done") {
            wrong.push("the post-script did not come to its end".to_owned());
        }
        let taken = ["rev-parse", "--verify", "-q", "refs/heads/taken"];
        if !world.command("git", &taken, &world.path("remote.git")).output().unwrap().status.success() {
            wrong.push("the post-script pushed nothing".to_owned());
        }
    }
    let there = |path: &str| world.repo().join(path).symlink_metadata().is_ok();
    wrong.extend(vector.gone.iter().filter(|p| there(p)).map(|p| format!("{p} was taken over")));
    wrong.extend(vector.kept.iter().filter(|p| !there(p)).map(|p| format!("{p} did not arrive")));
    let log = format!("{}{}", run.done.stdout, run.done.stderr);
    wrong.extend(
        vector.says.iter().filter(|t| !log.contains(*t)).map(|t| format!("the log does not say: {t}")),
    );
    if matches!(vector.body, Body::Checkout(_)) {
        wrong.extend(probed(run));
    }
    wrong
}

/// Ordinary git in the checkout afterwards, as its owner would use it.
fn use_checkout(world: &World, class: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for args in [
        &["fsck", "--full", "--strict", "--no-dangling"][..],
        &["status"],
        &["diff"],
        &["add", "-A"],
        &["diff", "--cached"],
        &["commit", "-q", "--allow-empty", "-m", "By hand"],
        &["log", "-p", "--all", "-5"],
        &["checkout", "-q", "-b", "by-hand"],
        &["gc", "-q"],
    ] {
        // Slow, and only what a repository holds could matter to it.
        if args[0] == "gc" && class != "git" {
            continue;
        }
        let out = world.command("git", args, &world.repo()).output().unwrap();
        if !out.status.success() {
            wrong.push(format!("git {args:?} in the checkout: {}", String::from_utf8_lossy(&out.stderr)));
        }
    }
    wrong
}

/// Runs the body in the host's checkout, which a pull request could have made so.
fn prepare_checkout(world: &World, body: &str) {
    let script = world.script("prepare", &format!("set -eu\n{}{body}", checkout_prelude(world)));
    let out = world.command(&script, &[], &world.repo()).output().unwrap();
    assert!(out.status.success(), "the checkout could not be made: {}", String::from_utf8_lossy(&out.stderr));
    std::fs::remove_file(script).unwrap();
}

fn checkout_prelude(world: &World) -> String {
    format!(
        "export MARKER='{}' TRAP='{}' OUTSIDE='{}'\n",
        world.path("marker").display(),
        world.path("trap").display(),
        world.path("outside").display()
    )
}

/// An agent that looks for what should not be in the sandbox, and says what it found.
fn probe(vector: &Vector) -> String {
    use std::fmt::Write as _;
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut script =
        "cd \"$FULLSEND_TARGET_REPO_DIR\"; found=$FULLSEND_OUTPUT_DIR/found; : > \"$found\"\n".to_owned();
    for text in &vector.absent {
        let _ = writeln!(script, "grep -rlaF -e {} . >> \"$found\" || true", quote(text));
    }
    for path in &vector.missing {
        let path = quote(path);
        let _ = writeln!(script, "if [ -e {path} ] || [ -L {path} ]; then echo {path} >> \"$found\"; fi");
    }
    script
}

/// What the probe found.
fn probed(run: &Run) -> Vec<String> {
    let Some(dir) = &run.dir else { return vec!["there is no run directory".to_owned()] };
    match std::fs::read_to_string(dir.join("iteration-1/output/found")) {
        Ok(text) => text.lines().map(|l| format!("the sandbox got what it should not: {l}")).collect(),
        Err(e) => vec![format!("the sandbox was not searched: {e}")],
    }
}

/// An openshell whose gateway gives this ssh configuration.
fn gateway(world: &mut World, text: &[u8]) {
    let text = String::from_utf8_lossy(text).replace("@MARKER@", world.path("marker").to_str().unwrap());
    let answer = world.write("gateway/answer", text);
    let program = fullsend().display();
    let script = world.script(
        "gateway/openshell",
        &format!(
            "case \"$*\" in\n*--help*) ;;\n*ssh-config*) cat '{}'; exit 0 ;;\nesac\nexec '{program}' openshell \"$@\"",
            answer.display()
        ),
    );
    world.env("FULLSEND_OPENSHELL", script.to_str().unwrap());
}
