//! Deadlines that a harness or the command line sets, and what the agent knows of its own.

use std::time::Duration;

use super::{HANG, Live, assert_nothing_left, run_of, scaled};

#[test]
fn the_agent_knows_when_its_time_is_over() {
    let world = scaled();
    world.agent(
        "date -u +%s > $FULLSEND_OUTPUT_DIR/now; echo \"$FULLSEND_DEADLINE\" > $FULLSEND_OUTPUT_DIR/deadline",
    );
    let run = world.run(&["--timeout", "10m"]).success();
    let deadline: jiff::Timestamp = run.file("iteration-1/output/deadline").trim().parse().unwrap();
    let now: i64 = run.file("iteration-1/output/now").trim().parse().unwrap();
    let left = deadline.as_second() - now;
    assert!((300..=600).contains(&left), "{left}");
}

#[test]
fn the_deadline_of_the_run_ends_the_agent_and_keeps_its_work() {
    let world = scaled();
    world.harness("agent: agents/work\nruntime: script\ndeadlines:\n  run: 8s\n");
    world.agent("echo work > made; echo out > $FULLSEND_OUTPUT_DIR/o; sleep 600");
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-TIMEOUT", 124);
    assert!(run.done.stderr.contains("the run did not finish within 8"), "{}", run.done.stderr);
    assert_eq!(run.json["iterations"][0]["partial"], true);
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    assert!(run.file("changes.patch").contains("+work"));
    assert_nothing_left(&world);
}

#[test]
fn the_deadline_of_the_run_counts_in_a_script_too() {
    let world = scaled();
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre\n");
    world.script("h/scripts/pre", "sleep 600");
    let live = Live::start(&world, "a", &["--deadline", "run=2s"]);
    run_of(&world, live.wait(HANG)).failure("FS-TIMEOUT", 124);
    assert_nothing_left(&world);
}

#[test]
fn silence_ends_the_agent_only_when_it_is_asked_to() {
    let world = scaled();
    world.harness("agent: agents/work\nruntime: script\nidle_timeout: 3s\n");
    world
        .agent("echo out > $FULLSEND_OUTPUT_DIR/o; for i in 1 2 3 4 5; do echo $i; sleep 1; done; sleep 600");
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-TIMEOUT", 124);
    assert!(run.done.stderr.contains("nothing was heard of the agent for 3"), "{}", run.done.stderr);
    assert_eq!(run.json["iterations"][0]["ended_by"], "silence");
    assert_eq!(run.json["iterations"][0]["partial"], true);
    assert_eq!(run.file("iteration-1/stream.jsonl"), "1\n2\n3\n4\n5\n");
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    assert_nothing_left(&world);
}

#[test]
fn a_bad_deadline_is_refused_with_its_place() {
    let world = scaled();
    for (yaml, says) in [
        ("deadlines: {collect: soon}", "not a duration"),
        ("deadlines: {colect: 5}", "did you mean `collect`?"),
        ("idle_timeout: 0", "outside 1s to 168h"),
        ("deadlines: 5", "not a mapping"),
    ] {
        world.harness(&format!("agent: agents/work\nruntime: script\n{yaml}\n"));
        let run = world.run(&[]);
        assert_eq!(run.done.code, 2, "{yaml}: {}", run.done.stderr);
        assert!(run.done.stderr.contains(says), "{yaml}: {}", run.done.stderr);
        assert!(run.done.stderr.contains("work.yaml:3"), "{yaml}: {}", run.done.stderr);
    }
    let begun = std::time::Instant::now();
    let run = world.run(&["--deadline", "colect=5"]);
    assert_eq!(run.done.code, 2);
    assert!(run.done.stderr.contains("collect") && begun.elapsed() < Duration::from_secs(30));
}
