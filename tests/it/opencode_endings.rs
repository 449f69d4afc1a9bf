//! How runs of the real opencode CLI end: the verdict, its words, and the figures that are kept.

use std::path::Path;

use serde_json::{Value, json};

use crate::opencode::{bash, refused, run_in, says};
use crate::stub::world_for;
use crate::support::{Run, World};

const WORK: &str = "echo work > made";

/// One way to end.
struct Ending {
    name: &'static str,
    turns: Value,
    /// Code and words of the error; none for success.
    error: Option<(&'static str, &'static str)>,
    /// Turns, tool calls, input tokens.
    figures: (u64, u64, u64),
    exit: Value,
    ended_by: &'static str,
}

impl Ending {
    fn check(self) {
        let Self { name, turns, error, figures, exit, ended_by } = self;
        let test = format!("opencode_endings::{name}");
        let Some((world, run, _)) = run_in(&test, &turns, &["--api-retries", "0"], |_| ()) else { return };
        let run = match error {
            None => run.success(),
            Some((code, words)) => {
                let run = run.failure(code, 1);
                assert!(run.done.stderr.contains(words), "{name}: {}", run.done.stderr);
                run
            }
        };
        let totals = &run.json["totals"];
        let got =
            ["/turns", "/tool_calls", "/tokens/input"].map(|p| totals.pointer(p).unwrap().as_u64().unwrap());
        assert_eq!(<(u64, u64, u64)>::from(got), figures, "{name}: {}", run.file("iteration-1/stream.jsonl"));
        let iteration = &run.json["iterations"][0];
        assert_eq!((&iteration["exit"], &iteration["ended_by"]), (&exit, &json!(ended_by)), "{name}");
        assert_eq!(run.json["iterations"].as_array().unwrap().len(), 1, "{name}");
        made(&world, &run, figures.1 > 0, error.is_none());
        world.assert_clean();
    }
}

/// What a tool changed is applied after success, and kept as a patch otherwise.
fn made(world: &World, run: &Run, changed: bool, success: bool) {
    if changed && success {
        assert!(world.repo().join("made").exists());
    } else if changed {
        assert!(run.file("changes.patch").contains("+work"));
    }
}

/// A turn that uses a tool, then these.
fn after_work(rest: Vec<Value>, repeat_last: bool) -> Value {
    let work = json!({"content": [bash(WORK)], "usage": {"input_tokens": 100, "output_tokens": 9}});
    let turns: Vec<_> = std::iter::once(work).chain(rest).collect();
    json!({"turns": turns, "repeat_last": repeat_last})
}

#[test]
fn a_rate_limit_that_passes() {
    let limited = refused(429, "rate_limit_error", "Slow down");
    let ending = Ending {
        name: "a_rate_limit_that_passes",
        turns: after_work(vec![limited, says("Done.")], false),
        error: None,
        figures: (2, 1, 110),
        exit: json!({"status": 0}),
        ended_by: "itself",
    };
    ending.check();
}

#[test]
fn an_api_that_stays_overloaded() {
    let ending = Ending {
        name: "an_api_that_stays_overloaded",
        turns: after_work(vec![refused(529, "overloaded_error", "Come back later")], true),
        error: Some(("FS-AGENT-FAILED", "Come back later (HTTP 529)")),
        figures: (1, 1, 100),
        exit: json!({"status": 1}),
        ended_by: "itself",
    };
    ending.check();
}

#[test]
fn a_stream_that_is_cut_once() {
    let cut = json!({"content": [{"type": "text", "text": "half of it, and"}], "cut": true});
    let ending = Ending {
        name: "a_stream_that_is_cut_once",
        turns: after_work(vec![cut, says("Done.")], false),
        error: None,
        figures: (2, 1, 110),
        exit: json!({"status": 0}),
        ended_by: "itself",
    };
    ending.check();
}

/// The CLI shortens the conversation for ever; the run does not wait for that.
#[test]
fn a_conversation_that_stays_too_long() {
    let long = refused(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    let turns = after_work(vec![long], true);
    let prepare = |world: &mut World| {
        world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.5");
    };
    let name = "opencode_endings::a_conversation_that_stays_too_long";
    let Some((world, run, _)) = run_in(name, &turns, &[], prepare) else { return };
    let run = run.failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("prompt is too long: 210000 tokens"), "{}", run.done.stderr);
    assert_eq!(run.json["iterations"][0]["ended_by"], "after_result");
    // Two summaries lie between three refusals; what the loop used while it was ended counts as well.
    let totals = &run.json["totals"];
    assert_eq!((&totals["turns"], &totals["tool_calls"]), (&json!(3), &json!(1)));
    assert!(totals["tokens"]["input"].as_u64().unwrap() >= 120, "{totals}");
    made(&world, &run, true, false);
    world.assert_clean();
}

/// Its exit status is 1 then, as after every error.
#[test]
fn a_conversation_that_was_too_long_and_was_shortened() {
    let long = refused(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    let ending = Ending {
        name: "a_conversation_that_was_too_long_and_was_shortened",
        turns: after_work(vec![long, says("Done.")], false),
        error: None,
        figures: (3, 1, 120),
        exit: json!({"status": 1}),
        ended_by: "itself",
    };
    ending.check();
}

#[test]
fn an_answer_that_was_cut_short_ends_with_status_0() {
    let short = json!({"content": [{"type": "text", "text": "half an"}], "stop_reason": "max_tokens"});
    let ending = Ending {
        name: "an_answer_that_was_cut_short_ends_with_status_0",
        turns: after_work(vec![short], false),
        error: Some(("FS-AGENT-FAILED", "the last answer of the model ended early: length")),
        figures: (2, 1, 110),
        exit: json!({"status": 0}),
        ended_by: "itself",
    };
    ending.check();
}

/// A minute passes: the CLI repeats the request with pauses of its own.
#[test]
fn an_api_that_nobody_serves() {
    let prepare = |world: &mut World| {
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        world.env("STUB_URL", format!("http://{free}"));
    };
    let name = "opencode_endings::an_api_that_nobody_serves";
    let turns = json!({"turns": [says("Never asked for.")]});
    let Some((world, run, requests)) = run_in(name, &turns, &["--api-retries", "0"], prepare) else { return };
    let run = run.failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("Cannot connect to API: Unable to connect"), "{}", run.done.stderr);
    assert_eq!((requests.len(), &run.json["iterations"][0]["exit"]), (0, &json!({"status": 1})));
    world.assert_clean();
}

/// What the CLI does not do (1.18.33), by a program in its place that shows a recorded stream and then ends so.
fn in_its_place(stream: &str, end: &str) -> (World, Run) {
    let (mut world, _stub) =
        world_for("opencode", "anthropic/any", &json!({"turns": [says("Never asked for.")]}));
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.05");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams").join(stream);
    world.write("bin/stream", std::fs::read(recorded).unwrap());
    world.script(
        "bin/opencode",
        &format!(
            "case $1 in run) ;; export) printf '{{\"half\":'; exit 1;; *) exit 1;; esac\n\
             cat >/dev/null\ncat \"$(dirname \"$0\")/stream\"\n{end}"
        ),
    );
    let run = world.run(&["--local-bind", world.path("bin").to_str().unwrap(), "--api-retries", "0"]);
    world.assert_clean();
    (world, run)
}

#[test]
fn an_error_and_status_0() {
    let (_world, run) = in_its_place("opencode-1.18.33-overloaded.jsonl", "exit 0");
    let run = run.failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("Overloaded for the test (HTTP 529)"), "{}", run.done.stderr);
    assert_eq!(run.json["iterations"][0]["exit"], json!({"status": 0}));
    // The export did not come to its end.
    let session = run.json["iterations"][0]["metrics"]["session"].as_str().unwrap();
    assert_eq!(run.file(&format!("iteration-1/transcripts/{session}.partial.json")), "{\"half\":");
    assert!(!run.dir.unwrap().join(format!("iteration-1/transcripts/{session}.json")).exists());
}

#[test]
fn a_result_and_no_exit() {
    let (_world, run) = in_its_place("opencode-1.18.33-retry.jsonl", "exec sleep 600");
    let run = run.success();
    assert_eq!(run.json["iterations"][0]["ended_by"], "after_result");
    assert_eq!(
        (&run.json["totals"]["turns"], &run.json["totals"]["tokens"]["input"]),
        (&json!(1), &json!(10))
    );
}
