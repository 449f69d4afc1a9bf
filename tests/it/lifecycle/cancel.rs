//! Cancels as people and CIs send them, and runs beside each other.

use std::time::{Duration, Instant};

use super::{HANG, Live, assert_nothing_left, wait_in_sandbox};
use crate::faults::stage::Stage;
use crate::support::{Done, World, files_below};

/// Says what it has, ignores every polite request, and never ends.
const DEAF: &str = "trap '' TERM INT HUP; echo kept > $FULLSEND_OUTPUT_DIR/o; touch $FULLSEND_OUTPUT_DIR/started; \
                    while :; do sleep 1; done";

/// Sends `steps` (signal, then the pause before the next one) in real time to a run whose results take two
/// seconds to fetch.
fn sequence(steps: &[(&str, Duration)]) -> (Stage, Done) {
    let stage = Stage::new();
    stage.world.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
    stage.world.agent(DEAF);
    stage.fault("rsync", 1, "slow=2000");
    let mut live = Live::start(&stage.world, "a", &["--timeout", "5m"]);
    wait_in_sandbox(&stage.world, "started");
    for (name, pause) in steps {
        live.signal(name);
        let begun = Instant::now();
        while begun.elapsed() < *pause && !live.ended() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    (stage, live.wait(HANG))
}

#[track_caller]
fn assert_salvaged(stage: &Stage, done: &Done, exit: i32) {
    assert_eq!(done.code, exit, "{}\n{}", done.stdout, done.stderr);
    let kept = files_below(&stage.path("out"));
    assert!(kept.iter().any(|(p, text)| p.ends_with("output/o") && text == b"kept\n"), "{kept:?}");
    assert_nothing_left(&stage.world);
}

#[test]
fn the_sequence_of_github_finds_everything_done() {
    let s = Duration::from_millis;
    let (stage, done) = sequence(&[("INT", s(7500)), ("TERM", s(2500)), ("KILL", s(0))]);
    assert_salvaged(&stage, &done, 130);
}

#[test]
fn the_sequence_of_gitlab_finds_everything_done() {
    let s = Duration::from_millis;
    let (stage, done) = sequence(&[("TERM", s(10_000)), ("KILL", s(0))]);
    assert_salvaged(&stage, &done, 143);
}

#[test]
fn a_second_signal_does_not_wait_for_results() {
    let s = Duration::from_millis;
    let (stage, done) = sequence(&[("HUP", s(300)), ("HUP", s(0))]);
    assert_eq!(done.code, 129, "{}\n{}", done.stdout, done.stderr);
    assert_nothing_left(&stage.world);
}

#[test]
fn a_cancel_in_a_pause_between_tries_ends_it() {
    let mut world = World::new();
    let exhausted = "stderr=Error:   × code: 'Some resource has been exhausted', message: \"x\"";
    world.personality("0.1.10").env("FULLSEND_WRAP_FAULT", format!("sandbox create:2+:exit=1:{exhausted}"));
    let live = Live::start(&world, "a", &[]);
    let begun = Instant::now();
    while !std::fs::read_to_string(&live.out).unwrap().contains("trying again") {
        assert!(begun.elapsed() < HANG);
        std::thread::sleep(Duration::from_millis(20));
    }
    live.signal("TERM");
    let done = live.wait(HANG);
    assert_eq!(done.code, 143, "{}\n{}", done.stdout, done.stderr);
    assert_nothing_left(&world);
}

#[test]
fn a_cancel_leaves_the_other_run_alone() {
    let world = World::new();
    world.agent("touch $FULLSEND_OUTPUT_DIR/started; sleep 6; echo out > $FULLSEND_OUTPUT_DIR/o");
    let (one, two) = (Live::start(&world, "one", &[]), Live::start(&world, "two", &[]));
    let begun = Instant::now();
    let started = || {
        files_below(&world.path("state/fullsend/local"))
            .iter()
            .filter(|(p, _)| p.ends_with("started"))
            .count()
    };
    while started() < 2 {
        assert!(begun.elapsed() < HANG);
        std::thread::sleep(Duration::from_millis(30));
    }
    one.signal("INT");
    assert_eq!(one.wait(HANG).code, 130);
    let two = two.wait(HANG);
    assert_eq!(two.code, 0, "{}\n{}", two.stdout, two.stderr);
    assert_nothing_left(&world);
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn twenty_runs_at_once_half_of_them_cancelled() {
    let world = World::new();
    world.agent("echo said; sleep 3; echo out > $FULLSEND_OUTPUT_DIR/o");
    let mut dice = Dice(20);
    let runs: Vec<_> = (0..20)
        .map(|n| {
            let live = Live::start(&world, &format!("run-{n}"), &["--apply", "never"]);
            let cancel = (n % 2 == 0).then(|| Duration::from_millis(dice.below(9000)));
            (live, cancel)
        })
        .collect();
    let signals = [("INT", 130), ("TERM", 143), ("HUP", 129), ("KILL", -9)];
    let done: Vec<_> = std::thread::scope(|scope| {
        let wait = |(n, (live, cancel)): (usize, (Live, Option<Duration>))| {
            let (name, exit) = signals[(n / 2) % signals.len()];
            if let Some(after) = cancel {
                std::thread::sleep(after.saturating_sub(live.begun.elapsed()));
                live.signal(name);
            }
            // Under load a run may be done before its cancel.
            (n, live.wait(HANG * 3), if cancel.is_some() { vec![0, exit] } else { vec![0] })
        };
        let all: Vec<_> = runs.into_iter().enumerate().map(|run| scope.spawn(move || wait(run))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (n, done, may) in &done {
        assert!(
            may.contains(&done.code),
            "run {n}: {} not in {may:?}\n{}\n{}",
            done.code,
            done.stdout,
            done.stderr
        );
    }
    let records = files_below(&world.path("out"));
    let ended = records.iter().filter(|(p, _)| p.ends_with("output/o")).count();
    assert!(ended >= 10, "only {ended} runs have their output");
    assert_nothing_left(&world);
}
