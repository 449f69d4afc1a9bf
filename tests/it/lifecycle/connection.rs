//! Connections that are lost while the agent works, and those that cannot be made where they should be.

use std::time::{Duration, Instant};

use super::{HANG, Live, assert_nothing_left, run_of, scaled, signal};
use crate::support::World;

/// The master connections of a world.
fn masters(world: &World) -> Vec<String> {
    let mark = world.path("").to_string_lossy().trim_end_matches('/').to_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        if words.iter().any(|w| w == "-M") && words.iter().any(|w| w.contains(&mark)) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn three_lost_connections_cost_no_byte() {
    let mut world = scaled();
    world.env("TOKEN_OF_THE_TEST", "a-secret-value-of-the-test");
    world.harness("agent: agents/work\nruntime: script\nenv:\n  runner: {TOKEN: \"${TOKEN_OF_THE_TEST}\"}\n");
    world.agent(
        "{ for i in $(seq 1 400); do printf 'line %s of the stream, with \\377\\n' $i; sleep 0.02; done; } | tee $FULLSEND_OUTPUT_DIR/copy",
    );
    let live = Live::start(&world, "a", &["--timeout", "50s"]);
    let mut last = String::new();
    for _ in 0..3 {
        // One that is new, and in use for a while.
        let begun = Instant::now();
        last = loop {
            assert!(begun.elapsed() < HANG, "no new connection");
            let copied = crate::support::files_below(&world.path("out"))
                .iter()
                .any(|(p, bytes)| p.ends_with("stream.jsonl") && !bytes.is_empty());
            if let Some(pid) = masters(&world).into_iter().find(|pid| copied && *pid != last) {
                break pid;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        std::thread::sleep(Duration::from_millis(600));
        signal(&last, "KILL");
    }
    let run = run_of(&world, live.wait(HANG * 2)).success();
    let dir = run.dir.as_ref().unwrap().join("iteration-1");
    let stream = std::fs::read(dir.join("stream.jsonl")).unwrap();
    assert_eq!(stream, std::fs::read(dir.join("output/copy")).unwrap());
    assert!(run.json["iterations"][0]["reattached"].as_u64().unwrap() >= 3, "{}", run.json["iterations"]);
    for (path, bytes) in crate::support::files_below(run.dir.as_ref().unwrap()) {
        assert!(memchr::memmem::find(&bytes, b"a-secret-value-of-the-test").is_none(), "{}", path.display());
    }
    assert_nothing_left(&world);
}

#[test]
fn a_connection_that_stands_still_hides_neither_the_end_nor_a_byte() {
    let world = scaled();
    world.agent("echo one; touch $FULLSEND_OUTPUT_DIR/started; sleep 2; echo two; echo work > made");
    let live = Live::start(&world, "a", &["--timeout", "8s"]);
    super::wait_in_sandbox(&world, "started");
    let master = masters(&world).pop().expect("there is a connection");
    signal(&master, "STOP");
    let run = run_of(&world, live.wait(HANG * 2)).success();
    assert_eq!(run.file("iteration-1/stream.jsonl"), "one\ntwo\n");
    assert_eq!(run.json["iterations"][0]["ended_by"], "itself");
    assert!(world.repo().join("made").exists());
    assert_nothing_left(&world);
}

#[test]
fn an_agent_that_exits_with_255_is_no_lost_connection() {
    let world = scaled();
    world.agent("echo work > made; exit 255");
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert_eq!(run.json["iterations"][0]["reattached"], 0);
    assert!(run.file("changes.patch").contains("+work"));
}

#[test]
fn a_long_temp_dir_still_has_room_for_a_socket() {
    let mut world = scaled();
    let base = world.path("tmp").to_string_lossy().into_owned();
    let long = format!("{base}/{}", "d".repeat(100));
    std::fs::create_dir_all(&long).unwrap();
    world.env("TMPDIR", &long);
    world.agent("echo work > made");
    let run = world.run(&[]).success();
    assert!(world.repo().join("made").exists());
    assert_eq!(std::fs::read_dir(&long).unwrap().count(), 0, "{}", run.done.stdout);
    std::fs::remove_dir(&long).unwrap();
    assert_nothing_left(&world);
}
