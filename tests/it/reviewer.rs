//! The reviewer of the validation loop: what it costs, how it fails, and what a cancel in the middle of it leaves.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use crate::lifecycle::{HANG, Live, assert_nothing_left, run_of, wait_in_sandbox};
use crate::support::{Run, World, files_below};

/// A world whose agent changes the repository and tells what it used, with a reviewer `judge`.
fn world(more: &str, judge: &str) -> World {
    let world = World::new();
    world.harness(&format!(
        "agent: agents/work\nruntime: script\ntimeout_minutes: 2\nvalidation_loop: {{escalate: judge, max_iterations: 2}}\n{more}"
    ));
    world.agent(&format!("echo work > done-before\n{}", spends(100, "0.25")));
    world.write("h/harness/judge.yaml", "agent: agents/judge\nruntime: script\ntimeout_minutes: 2\n");
    world.script("h/agents/judge", &format!("set -eu\n{judge}"));
    world
}

/// Takes two turns with that many tokens at that cost, and says that it is done.
fn spends(tokens: u64, usd: &str) -> String {
    let turn = |n: u64| json!({"type": "assistant", "message": {"id": format!("m{n}"), "content": [{"type": "text", "text": "at work"}]}});
    let result = format!(
        "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":2,\"result\":\"done\",\
         \"total_cost_usd\":{usd},\"usage\":{{\"input_tokens\":{tokens},\"output_tokens\":0}}}}"
    );
    format!("echo '{}'\necho '{}'\necho '{result}'", turn(1), turn(2))
}

const ACCEPT: &str = "echo '{\"verdict\":\"accept\"}' > $FULLSEND_OUTPUT_DIR/agent-result.json";
const REJECT: &str =
    "echo '{\"verdict\":\"reject\",\"summary\":\"No.\"}' > $FULLSEND_OUTPUT_DIR/agent-result.json";

fn close(value: &Value, to: f64) -> bool {
    value.as_f64().is_some_and(|v| (v - to).abs() < 1e-9)
}

#[test]
fn what_the_reviewer_used_counts_everywhere() {
    let mut world = world("", &format!("{ACCEPT}\n{}", spends(40, "0.5")));
    let (summary, outputs) = (world.write("summary", ""), world.write("outputs", ""));
    world.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", summary.to_str().unwrap());
    world.env("GITHUB_OUTPUT", outputs.to_str().unwrap());
    let metrics = world.path("metrics.prom");
    let run = world.run(&["--metrics-file", metrics.to_str().unwrap()]).success();
    let shown = &run.done.stdout;
    assert!(shown.contains("::group::review") && shown.contains("::endgroup::"), "{shown}");
    assert!(!shown.contains(": :"), "commands of the reviewer's run, made harmless: {shown}");
    assert!(!shown.contains("at work"), "what agents say is not for this log: {shown}");
    let totals = &run.json["totals"];
    assert!(close(&totals["cost_usd"], 0.75), "{totals}");
    assert_eq!(
        (&totals["tokens"]["input"], &totals["turns"]),
        (&json!(140), &json!(2)),
        "turns are the agent's"
    );
    assert!(close(&run.json["reviews"]["cost_usd"], 0.5), "{}", run.json["reviews"]);
    assert_eq!(run.json["reviews"]["turns"], 2);
    let review = &run.json["iterations"][0]["review"];
    assert_eq!((&review["verdict"], &review["metrics"]["tokens"]["input"]), (&json!("accept"), &json!(40)));
    assert!(close(&run.json["iterations"][0]["metrics"]["cost_usd"], 0.25));
    let text = std::fs::read_to_string(&summary).unwrap();
    assert!(
        text.contains("$0.7500") && text.contains("Of it reviews") && text.contains("$0.5000, 40 tokens"),
        "{text}"
    );
    assert!(std::fs::read_to_string(&outputs).unwrap().contains("\n0.750000\n"), "the output `cost`");
    let text = std::fs::read_to_string(&metrics).unwrap();
    assert!(text.contains("fullsend_cost_usd_total{agent=\"work\"} 0.75"), "{text}");
    assert!(!text.contains("agent=\"judge\""), "counted twice: {text}");
    let spans = run.file("otel.jsonl");
    let span = |name: &str| {
        let mut found = spans.lines().filter(|line| line.contains(&format!("\"name\":\"{name}\"")));
        found.next().unwrap_or_else(|| panic!("no span {name}: {spans}")).to_owned()
    };
    assert!(span("review").contains("fullsend.cost_usd"), "{}", span("review"));
    world.assert_clean();
}

#[test]
fn the_budgets_of_the_run_hold_for_the_reviewer_too() {
    // What it rejected is not tried again when nothing is left.
    let world = world("max_cost_usd: 0.6\n", &format!("{REJECT}\n{}", spends(40, "0.5")));
    let run = world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    assert_eq!(
        (&run.json["verdict"], run.json["iterations"].as_array().unwrap().len()),
        (&json!("budget"), 1)
    );
    assert!(run.file("changes.patch").contains("done-before") && !world.repo().join("done-before").exists());
    // Nor is it accepted.
    world.script("h/agents/judge", &format!("{ACCEPT}\n{}", spends(40, "0.5")));
    world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    // One who does not end by itself is ended by what is left, whatever its harness allows.
    world.write(
        "h/harness/judge.yaml",
        "agent: agents/judge\nruntime: script\ntimeout_minutes: 2\nmax_tokens: 1000000\n",
    );
    world.script(
        "h/agents/judge",
        "n=0; while [ $n -lt 300 ]; do n=$((n+1))\n\
         echo \"{\\\"type\\\":\\\"assistant\\\",\\\"message\\\":{\\\"id\\\":\\\"m$n\\\",\\\"content\\\":[],\\\"usage\\\":{\\\"input_tokens\\\":60,\\\"output_tokens\\\":40}}}\"\n\
         sleep 0.2; done",
    );
    let run = world.run(&["--max-tokens", "450", "--max-cost-usd", "0"]).failure("FS-AGENT-BUDGET", 1);
    let used = run.json["totals"]["tokens"]["input"].as_u64().unwrap();
    assert!((300..6000).contains(&used), "{used} tokens");
    assert_eq!(run.json["iterations"][0]["review"]["failed"], "FS-REVIEW");
    // Nothing is left for one.
    world.harness(
        "agent: agents/work\nruntime: script\nmax_tokens: 100\nvalidation_loop: {escalate: judge, max_iterations: 2}\n",
    );
    let run = world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    assert_eq!(run.json["iterations"][0]["review"]["dir"], Value::Null, "it was not started");
    world.assert_clean();
}

/// The file by which the reviewer says that it is at work, and an agent that goes on after it.
const AT_WORK: &str = "touch $FULLSEND_OUTPUT_DIR/reviewing; sleep 600";

fn review_dirs(run: &Run) -> Vec<PathBuf> {
    let dir = run.dir.as_ref().unwrap().join("iteration-1/review");
    std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect()
}

#[test]
fn a_cancel_during_the_review_deletes_both_sandboxes_and_keeps_the_work() {
    for (signal, exit) in [("INT", 130), ("TERM", 143)] {
        let world = world(
            "",
            &format!(
                "{}\n{AT_WORK}",
                spends(40, "0.5").replace("\"type\":\"result\"", "\"type\":\"system\"")
            ),
        );
        let live = Live::start(&world, "a", &[]);
        wait_in_sandbox(&world, "reviewing");
        let begun = Instant::now();
        live.signal(signal);
        let done = live.wait(HANG);
        // Five times what is promised: only a hang gets there.
        assert!(begun.elapsed().as_secs() < 35, "{:?}", begun.elapsed());
        assert_eq!(done.code, exit, "{done:?}");
        assert_nothing_left(&world);
        let run = run_of(&world, done).failure("FS-CANCELLED", exit);
        assert_eq!(run.json["verdict"], "cancelled");
        assert!(
            run.file("changes.patch").contains("done-before") && !world.repo().join("done-before").exists()
        );
        assert_eq!(run.json["iterations"][0]["review"]["failed"], "FS-CANCELLED");
        let judged = review_dirs(&run);
        assert_eq!(judged.len(), 1);
        let own: Value = serde_json::from_slice(&std::fs::read(judged[0].join("run.json")).unwrap()).unwrap();
        assert_eq!(own["verdict"], "cancelled", "it ended in order");
    }
}

#[test]
fn a_run_that_is_killed_during_the_review_leaves_no_sandbox() {
    let world = world("", AT_WORK);
    let live = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "reviewing");
    live.signal("KILL");
    assert_eq!(live.wait(HANG).code, -9);
    // The guard of each deletes its own.
    assert_nothing_left(&world);
    assert!(files_below(&world.path("out")).iter().any(|(path, _)| path.ends_with("stream.jsonl")));
}

#[test]
fn a_review_that_takes_too_long_is_ended_and_named() {
    let world = world(
        "deadlines: {review: 5}\n",
        &format!("{}\n{AT_WORK}", spends(40, "0.5").lines().next().unwrap()),
    );
    let run = world.run(&[]).failure("FS-REVIEW", 1);
    let error = run.json["error"].to_string();
    assert!(
        error.contains("`judge`")
            && error.contains("did not end within")
            && error.contains("deadlines.review"),
        "{error}"
    );
    assert!(run.file("changes.patch").contains("done-before"));
    assert_eq!(run.json["reviews"]["turns"], 1, "what it used until then counts");
    assert_nothing_left(&world);
}

#[test]
fn the_reviewers_own_failures_name_it_and_say_what_to_do() {
    // Its harness is wrong: that is found before it has a run directory.
    let mut world = world("", ACCEPT);
    world.write("h/harness/judge.yaml", "agent: agents/judge\nruntime: script\npolicy: policies/gone.yaml\n");
    let run = world.run(&[]).failure("FS-FILE-MISSING", 2);
    let error = &run.json["error"];
    assert!(error["message"].as_str().unwrap().contains("reviewer `judge`"), "{error}");
    assert!(error["message"].as_str().unwrap().contains("gone.yaml"), "{error}");
    assert!(run.file("changes.patch").contains("done-before"), "the work is kept");
    // Its verdict is malformed.
    world.write("h/harness/judge.yaml", "agent: agents/judge\nruntime: script\n");
    world.script("h/agents/judge", "echo accept > $FULLSEND_OUTPUT_DIR/agent-result.json");
    let run = world.run(&[]).failure("FS-REVIEW", 1);
    let error = run.json["error"].to_string();
    assert!(
        error.contains("`judge`") && error.contains("is no verdict") && error.contains("iteration-1/review"),
        "{error}"
    );
    // Its sandbox cannot be created: the second one that is asked for.
    world.personality("0.1.10");
    world.env(
        "FULLSEND_WRAP_FAULT",
        "sandbox create:4+:exit=1:stderr=Error:   × status: InvalidArgument, message: \"no room for a second one\"",
    );
    let run = world.run(&[]);
    let error = &run.json["error"];
    assert_eq!(run.done.code, 3, "{:?}", run.done);
    assert!(error["message"].as_str().unwrap().contains("reviewer `judge`"), "{error}");
    assert!(error["help"].as_str().unwrap().contains("iteration-1/review"), "{error}");
    assert!(run.file("changes.patch").contains("done-before"));
    world.assert_clean();
}
