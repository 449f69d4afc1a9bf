//! What OpenShell does with a sandbox: creating, ending, deleting.

use super::{HANG, Live, assert_nothing_left, run_of};
use crate::support::World;

/// A world whose openshell breaks as `fault` says (see `tests/support/wrapper/fault.rs`).
fn broken(fault: &str) -> World {
    let mut world = World::new();
    world.personality("0.1.10").env("FULLSEND_WRAP_FAULT", fault);
    world.agent("echo work > made");
    world
}

/// The sandbox names of the calls `sandbox VERB`, without help texts.
fn calls_of(world: &World, verb: &str) -> usize {
    let is = |argv: &serde_json::Value| argv[0] == "sandbox" && argv[1] == verb && argv[2] != "--help";
    world.calls().iter().filter(|c| is(&c["argv"])).count()
}

#[test]
fn a_create_that_never_returns_is_used_once_ready() {
    let world = broken("sandbox create:2:then-hang");
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG * 2)).success();
    assert!(world.repo().join("made").exists(), "{}", run.done.stdout);
    assert_nothing_left(&world);
}

#[test]
fn a_sandbox_that_ends_at_once_says_why() {
    for phase in ["Completed", "Error", "Stopped"] {
        let world = broken(&format!("sandbox get:1:exit=0:stdout={{\"phase\":\"{phase}\"}}"));
        let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-NOT-READY", 3);
        assert!(run.done.stderr.contains(phase), "{}", run.done.stderr);
        assert_nothing_left(&world);
    }
    let world = broken("sandbox create:2:exit=2:stderr=error: unexpected argument '--detach' found");
    run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-OPENSHELL-VERSION", 2);
    assert_nothing_left(&world);
}

#[test]
fn a_failed_create_leaves_no_record() {
    // It made the record and then said that it could not: the second try must not meet the first.
    let world = broken(
        "sandbox create:2:then-exit=1:stderr=Error:   × code: 'Some resource has been exhausted', message: \"x\"",
    );
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    assert_eq!(calls_of(&world, "create"), 2, "{}", run.done.stdout);
    assert!(run.done.stdout.contains("trying again"), "{}", run.done.stdout);
    assert_nothing_left(&world);
    let world = broken(
        "sandbox create:2:then-exit=1:stderr=Error:   × sandbox entered error phase while provisioning: ImagePullFailed: no",
    );
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-IMAGE", 3);
    assert_eq!(calls_of(&world, "create"), 1, "{}", run.done.stdout);
    assert_nothing_left(&world);
}

#[test]
fn odd_agent_names_give_good_sandbox_names() {
    let world = World::new();
    for agent in ["Code_Review-Agent-With-A-Very-Long-Name", "x-", "1"] {
        world.write(&format!("h/harness/{agent}.yaml"), "agent: agents/work\nruntime: script\n");
        let done = world.fullsend(&[
            "run",
            agent,
            "--local",
            "--fullsend-dir",
            world.path("h").to_str().unwrap(),
            "--output-dir",
            world.path("out").to_str().unwrap(),
        ]);
        let run = world.collect(done);
        assert_eq!(run.done.code, 0, "{agent}: {}{}", run.done.stdout, run.done.stderr);
        let name = run.json["sandbox"].as_str().unwrap();
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.len() <= 19 && name.chars().all(fine) && !name.ends_with('-'), "{name}");
        std::fs::remove_dir_all(world.path("out")).unwrap();
        std::fs::create_dir(world.path("out")).unwrap();
    }
    for agent in ["é", "-x-", "Code_Review.Agent"] {
        let done =
            world.fullsend(&["run", agent, "--local", "--fullsend-dir", world.path("h").to_str().unwrap()]);
        assert_eq!(done.code, 2, "{agent}: {}", done.stderr);
    }
    // Many at the same time.
    let names: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
        let make = || {
            let id = fullsend::openshell::names::RunId::random().unwrap();
            fullsend::openshell::names::sandbox_name("é", &id)
        };
        let all: Vec<_> = (0..50).map(|_| scope.spawn(make)).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(names.len(), 50);
}

#[test]
fn a_delete_that_fails_or_lies_is_repeated() {
    for fault in [
        "sandbox delete:1:exit=1:stderr=Error:   × code: 'The operation was aborted', message: \"conflict\"",
        // It says that it is done, and nothing was.
        "sandbox delete:1:exit=0",
    ] {
        let world = broken(fault);
        let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
        assert!(calls_of(&world, "delete") >= 2, "{}", run.done.stdout);
        assert_nothing_left(&world);
    }
}
