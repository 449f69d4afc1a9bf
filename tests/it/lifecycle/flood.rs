//! An agent whose output never ends.

use std::time::{Duration, Instant};

use super::{HANG, Live, assert_nothing_left, run_of, scaled, wait_in_sandbox};
use crate::support::Run;

const INIT: &str = r#"{"type":"system","subtype":"init","model":"m","session_id":"s"}"#;
const LINE: &str = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"again and again and again"}]}}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"the end","num_turns":7,"total_cost_usd":0.5}"#;

fn size(run: &Run, name: &str) -> u64 {
    std::fs::metadata(run.dir.as_ref().unwrap().join("iteration-1").join(name)).unwrap().len()
}

/// What counts of the end of a stream is there although most of it is not.
#[track_caller]
fn assert_end_is_read(run: &Run) {
    let iteration = &run.json["iterations"][0];
    assert_eq!(iteration["result"]["text"], "the end", "{iteration}");
    assert_eq!((&iteration["metrics"]["turns"], &iteration["metrics"]["cost_usd"]), (&7.into(), &0.5.into()));
    assert!(iteration["stream"]["left_out"].as_u64().unwrap() > 0, "{iteration}");
    let stream = run.file("iteration-1/stream.jsonl");
    assert!(stream.starts_with(INIT) && stream.ends_with(&format!("{END}\n")));
    let records = stream.lines().filter(|l| l.contains("fullsend.truncated")).count();
    assert!((1..=2).contains(&records), "{records}");
    for line in stream.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
}

#[test]
fn an_agent_that_writes_without_end_is_ended_and_the_files_are_bounded() {
    let mut world = scaled();
    // 10 MB end it, stream.jsonl takes 2.5 MB and events.jsonl 0.5 MB.
    world.env("FULLSEND_TEST_SIZE_SCALE", "0.01");
    world.agent(&format!(
        "echo work > made; echo '{INIT}'; fin() {{ echo '{END}'; exit 0; }}; trap fin TERM\n\
         while :; do for i in $(seq 2000); do echo '{LINE}'; done; sleep 0.05 & wait $!; done"
    ));
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG * 2)).failure("FS-AGENT-BUDGET", 1);
    assert!(run.done.stderr.contains("more than 10.0 MB"), "{}", run.done.stderr);
    assert!(run.done.stdout.contains("stream.jsonl is full"), "the agent is not spoken of while it runs");
    assert!(run.done.stdout.contains("is not shown") && run.done.stdout.len() < 2_000_000);
    assert_eq!(run.json["iterations"][0]["ended_by"], "flood");
    assert_eq!(run.json["iterations"][0]["partial"], true);
    assert_end_is_read(&run);
    let (stream, events) = (size(&run, "stream.jsonl"), size(&run, "events.jsonl"));
    assert!((2_400_000..2_600_000).contains(&stream), "{stream}");
    assert!((400_000..510_000).contains(&events), "{events}");
    let events = run.file("iteration-1/events.jsonl");
    let last: Vec<serde_json::Value> =
        events.lines().rev().take(2).map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&last[0]["text"], &last[1]["event"]), (&"the end".into(), &"warning".into()));
    assert!(run.file("changes.patch").contains("+work"));
    // What is kept is judged as the run was.
    let dir = run.dir.as_ref().unwrap().join("iteration-1/stream.jsonl");
    let again = world.fullsend(&["replay", dir.to_str().unwrap(), "--format", "json"]);
    let again: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&again[0]["metrics"]["turns"], &again[0]["stats"]["malformed"]), (&7.into(), &0.into()));
    assert_nothing_left(&world);
}

#[test]
fn what_an_agent_wrote_before_its_deadline_does_not_outlast_it() {
    let mut world = scaled();
    // 320 KB are read after the end, and 20 MB are allowed.
    world.env("FULLSEND_TEST_SIZE_SCALE", "0.02");
    world.agent(&format!(
        "echo '{INIT}'; fin() {{ yes '{LINE}' | head -n 150000; echo '{END}'; exit 0; }}; trap fin TERM; sleep 600 & wait $!"
    ));
    let run =
        run_of(&world, Live::start(&world, "a", &["--timeout", "5s"]).wait(HANG)).failure("FS-TIMEOUT", 124);
    assert!(run.done.stdout.contains("much of its output was not read"), "{}", run.done.stdout);
    assert_end_is_read(&run);
    assert_nothing_left(&world);
}

/// Cancels an agent that has written 250 MB, after so many milliseconds. At the deadline either may be first.
fn cancelled(timeout: &str, pause: u64) -> Run {
    let world = scaled();
    world.agent(&format!(
        "echo kept > $FULLSEND_OUTPUT_DIR/o; echo '{INIT}'; yes '{LINE}' | head -c 250000000; sleep 600"
    ));
    let live = Live::start(&world, "a", &["--timeout", timeout]);
    wait_in_sandbox(&world, "output/o");
    std::thread::sleep(Duration::from_millis(pause));
    let begun = Instant::now();
    live.signal("TERM");
    let done = live.wait(HANG);
    // The promise is seven seconds.
    assert!(begun.elapsed() < Duration::from_secs(35), "{:?}", begun.elapsed());
    let run = run_of(&world, done);
    assert!([124, 143].contains(&run.done.code), "{:?}", run.done);
    assert!(!run.done.stderr.contains("failed to create"), "{}", run.done.stderr);
    assert_eq!(run.file("iteration-1/output/o"), "kept\n");
    assert_nothing_left(&world);
    run
}

#[test]
fn a_cancel_in_a_flood_is_prompt_and_keeps_the_results() {
    cancelled("5m", 1000).failure("FS-CANCELLED", 143);
}

#[test]
fn a_cancel_while_the_rest_of_a_flood_is_read_is_prompt_too() {
    cancelled("5s", 5300);
}
