//! A run that is killed after the agent's work is on the host: what the agent made is in the run directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{HANG, Live, assert_nothing_left, scaled};
use crate::support::World;

const CHECK: &str =
    "agent: agents/work\nruntime: script\nvalidation_loop: {script: check, max_iterations: 2}\n";
const POST: &str = "agent: agents/work\nruntime: script\npost_script: post\n";
/// Commits one file and leaves another.
const WORK: &str =
    "echo $FULLSEND_ITERATION > committed; git add committed; git commit -q -m Work; echo more > loose";

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !there() {
        assert!(begun.elapsed() < HANG, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills the run once the file `started` is in the home directory. Returns the run directory, when nothing else is left.
fn killed(world: &World) -> PathBuf {
    killed_when(world, || world.path("home/started").exists())
}

fn killed_when(world: &World, there: impl Fn() -> bool) -> PathBuf {
    let live = Live::start(world, "a", &[]);
    wait_for("the moment to kill", there);
    live.signal("KILL");
    assert_eq!(live.wait(HANG).code, -9);
    assert_nothing_left(world);
    let beside: Vec<_> = std::fs::read_dir(world.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!beside.iter().any(|n| n.to_string_lossy().starts_with(".repo.fullsend-")), "{beside:?}");
    let dirs: Vec<_> = std::fs::read_dir(world.path("out")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs[0].clone()
}

/// Patch and bundle give the work of that iteration.
#[track_caller]
fn assert_whole(world: &World, dir: &Path, iteration: &str) {
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    assert!(!world.repo().join("loose").exists(), "the checkout was touched");
    world.git(&["fetch", "-q", &at("changes.bundle"), "refs/heads/main:refs/heads/agent"]);
    assert_eq!(world.git(&["show", "agent:committed"]), format!("{iteration}\n"));
    world.git(&["apply", &at("changes.patch")]);
    let text = |name: &str| std::fs::read_to_string(world.repo().join(name)).unwrap();
    assert_eq!((text("committed"), text("loose")), (format!("{iteration}\n"), "more\n".to_owned()));
    let list = std::fs::read_to_string(dir.join("changes.json")).unwrap();
    assert!(list.contains("\"loose\"") && list.contains("refs/heads/main"), "{list}");
}

#[test]
fn in_the_check_of_its_output() {
    let world = scaled();
    world.harness(CHECK);
    world.agent(WORK);
    world.script("h/check", "touch \"$HOME/started\"; sleep 600");
    let dir = killed(&world);
    assert_whole(&world, &dir, "1");
}

#[test]
fn in_the_check_of_a_later_iteration_the_work_is_that_ones() {
    let world = scaled();
    world.harness(CHECK);
    world.agent(WORK);
    world.script("h/check", "[ \"${PWD##*/}\" = iteration-2 ] || exit 1; touch \"$HOME/started\"; sleep 600");
    let dir = killed(&world);
    assert_whole(&world, &dir, "2");
}

#[test]
fn while_its_sandbox_is_deleted() {
    let mut world = scaled();
    world.personality("0.1.10");
    world.env("FULLSEND_WRAP_FAULT", "sandbox delete:1:hang");
    world.agent(WORK);
    let deletes = |world: &World| {
        // The last line may be half written.
        let text = std::fs::read_to_string(world.path("calls.jsonl")).unwrap_or_default();
        text.lines().filter(|l| l.contains("\"sandbox\",\"delete\"") && !l.contains("--help")).count()
    };
    let dir = killed_when(&world, || deletes(&world) > 0);
    assert_whole(&world, &dir, "1");
}

#[test]
fn in_its_post_script() {
    let world = scaled();
    world.harness(POST);
    world.agent(WORK);
    // What a post-script makes of the staged repository is its own.
    world.script(
        "h/post",
        "cd \"$REPO_DIR\"; git add -A; git commit -q -m Post; touch \"$HOME/started\"; sleep 600",
    );
    let dir = killed(&world);
    assert_whole(&world, &dir, "1");
}

#[test]
fn a_change_that_cannot_be_written_yet_fails_nothing_and_is_written_at_the_end() {
    let world = scaled();
    // What stands in the way is taken away by the check.
    world.script("h/pre", "mkdir \"${FULLSEND_PRESCRIPT_OUTPUT%/*}/changes.patch\"");
    world.script("h/check", "rmdir \"$FULLSEND_RUN_DIR/changes.patch\"");
    world.harness(&format!("{CHECK}pre_script: pre\n"));
    world.agent(WORK);
    let run = world.run(&["--apply", "never"]).success();
    assert!(
        run.done.stdout.contains("could not be written into the run directory yet"),
        "{}",
        run.done.stdout
    );
    assert!(run.file("changes.patch").contains("+more"));
    assert!(run.dir.as_ref().unwrap().join("changes.bundle").is_file());
    let names: Vec<_> =
        std::fs::read_dir(run.dir.unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.iter().any(|n| n.to_string_lossy().starts_with('.')), "half a file stays: {names:?}");
    world.assert_clean();
}

#[test]
fn an_iteration_that_brings_nothing_leaves_the_change_of_the_one_before_and_says_so() {
    let world = scaled();
    world.harness(CHECK);
    world.agent("[ $FULLSEND_ITERATION = 1 ] || rm -rf \"$PWD\"; echo first > made");
    world.script("h/check", "exit 1");
    let run = world.run(&[]).failure("FS-IMPORT", 3);
    assert!(run.file("changes.patch").contains("+first"));
    assert!(run.done.stdout.contains("changes.patch has the change of iteration 1"), "{}", run.done.stdout);
}
