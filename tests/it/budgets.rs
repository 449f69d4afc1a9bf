//! Budgets: a run-away agent is ended soon after it crosses one, and what it did is kept.

use serde_json::json;

use crate::claude::{AGENT, claude_world, run_with, script};
use crate::stub::{Stub, claude, result_event};
use crate::support::{Run, World};

/// An agent that takes turns until somebody ends it; each turn uses 100 tokens.
const RUN_AWAY: &str = r#"
echo work > done-before
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m","claude_code_version":"0"}'
n=0
while [ $n -lt 300 ]; do
  n=$((n+1))
  echo "{\"type\":\"assistant\",\"message\":{\"id\":\"m$n\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"turn $n\"}],\"usage\":{\"input_tokens\":60,\"output_tokens\":40}}}"
  sleep 0.2
done
"#;

fn assert_over(world: &World, run: &Run, key: &str) {
    assert_eq!(run.json["verdict"], "budget", "{}", run.done.stdout);
    assert_eq!(run.json["error"]["code"], "FS-AGENT-BUDGET");
    assert!(run.json["error"]["message"].as_str().unwrap().contains(key), "{}", run.json["error"]);
    assert_eq!(run.json["iterations"][0]["ended_by"], "budget");
    assert_eq!(run.json["iterations"][0]["partial"], true);
    assert!(run.file("changes.patch").contains("done-before"), "the work is lost");
    assert!(!world.repo().join("done-before").exists(), "half-done work was applied");
    world.assert_clean();
}

#[test]
fn too_many_turns_end_the_agent_and_keep_its_work() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\nmax_turns: 3\n");
    world.agent(RUN_AWAY);
    let run = world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    assert_over(&world, &run, "`max_turns`");
    let turns = run.json["totals"]["turns"].as_u64().unwrap();
    assert!((4..100).contains(&turns), "{turns} turns");
}

#[test]
fn too_many_tokens_end_the_agent_and_the_option_wins_over_the_harness() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\nmax_tokens: 100000\n");
    world.agent(RUN_AWAY);
    let run = world.run(&["--max-tokens", "450"]).failure("FS-AGENT-BUDGET", 1);
    assert_over(&world, &run, "`max_tokens`");
    let tokens = run.json["totals"]["tokens"]["input"].as_u64().unwrap();
    assert!((300..6000).contains(&tokens), "{tokens} input tokens");
}

/// An agent of a program that tells its cost with every step.
const SPENDER: &str = r#"
echo work > done-before
n=0
while [ $n -lt 300 ]; do
  n=$((n+1))
  echo "{\"type\":\"step_start\",\"sessionID\":\"ses_1\",\"part\":{\"type\":\"step-start\"}}"
  echo "{\"type\":\"step_finish\",\"sessionID\":\"ses_1\",\"part\":{\"type\":\"step-finish\",\"reason\":\"tool-calls\",\"cost\":0.01,\"tokens\":{\"input\":5,\"output\":5,\"reasoning\":0,\"cache\":{\"read\":0,\"write\":0}}}}"
  sleep 0.2
done
"#;

#[test]
fn too_much_cost_ends_the_agent() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\nmax_cost_usd: 0.05\n");
    world.agent(SPENDER);
    let run = world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    assert_over(&world, &run, "`max_cost_usd`");
    let cost = run.json["totals"]["cost_usd"].as_f64().unwrap();
    assert!(0.05 < cost && cost < 2.5, "${cost}");
}

#[test]
fn the_agents_time_ends_it_and_keeps_its_work() {
    let world = World::new();
    world.agent("echo begin > done-before; sleep 300");
    let run = world.run(&["--timeout", "2s"]).failure("FS-TIMEOUT", 124);
    assert_eq!(
        (&run.json["verdict"], &run.json["iterations"][0]["ended_by"]),
        (&json!("timeout"), &json!("deadline"))
    );
    assert!(run.file("changes.patch").contains("done-before") && !world.repo().join("done-before").exists());
    world.assert_clean();
}

#[test]
fn zero_is_no_limit_on_the_command_line_as_in_the_harness() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\nmax_turns: 1\nmax_tokens: 1\nmax_cost_usd: 0.001\n");
    world.agent(&RUN_AWAY.replace("300", "4"));
    let limits = ["--max-turns", "0", "--max-tokens", "0", "--max-cost-usd", "0"];
    // It ends by itself, without a result.
    let run = world.run(&limits).failure("FS-AGENT-INCOMPLETE", 1);
    assert_eq!(run.json["totals"]["turns"], 4);
    world.run(&[]).failure("FS-AGENT-BUDGET", 1);
}

#[test]
fn a_script_whose_output_is_text_is_said_to_have_no_budgets() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\nmax_turns: 3\nvalidation_loop: {script: scripts/check.sh, max_iterations: 2}\n",
    );
    world.script("h/scripts/check.sh", "exit 1");
    let told =
        |run: &Run| format!("{}{}", run.done.stdout, run.done.stderr).matches("have no effect").count();
    for body in ["echo at work; echo still", "true"] {
        world.agent(body);
        let run = world.run(&["--max-tokens", "10"]).failure("FS-VALIDATION", 1);
        assert_eq!(told(&run), 1, "{:?}", run.done);
        assert!(run.done.stdout.contains("`max_turns`, `max_tokens` have"), "{}", run.done.stdout);
    }
    world.agent(&RUN_AWAY.replace("300", "2"));
    assert_eq!(told(&world.run(&[])), 0);
}

#[test]
fn silence_ends_the_agent_by_option() {
    let world = World::new();
    world.agent("echo begin > done-before; sleep 300");
    let run = world.run(&["--idle-timeout", "2s"]).failure("FS-TIMEOUT", 124);
    assert!(run.file("changes.patch").contains("done-before"));
    world.assert_clean();
}

#[test]
fn at_four_fifths_the_agent_is_told_and_may_still_end_well() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\nmax_turns: 5\n");
    world.agent(
        "for n in 1 2 3 4; do echo \"{\\\"type\\\":\\\"assistant\\\",\\\"message\\\":{\\\"id\\\":\\\"m$n\\\",\\\"content\\\":[]}}\"; done\n\
         left=300; while [ ! -f \"$FULLSEND_NOTICE_FILE\" ] && [ $left -gt 0 ]; do sleep 0.2; left=$((left-1)); done\n\
         cp \"$FULLSEND_NOTICE_FILE\" \"$FULLSEND_OUTPUT_DIR/notice\"\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":4,\"result\":\"done\"}'",
    );
    let run = world.run(&[]).success();
    let notice = run.file("iteration-1/output/notice");
    assert!(notice.contains("max_turns") && notice.contains("Wrap up"), "{notice}");
    assert!(!notice.contains(['"', '\\']), "{notice}");
    world.assert_clean();
}

#[test]
fn what_was_used_before_counts_in_the_next_iteration() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\nmax_turns: 3\n\
         validation_loop: {script: scripts/check.sh, max_iterations: 5}\n",
    );
    world.script("h/scripts/check.sh", "exit 1");
    world.agent(
        "for n in 1 2 3; do echo \"{\\\"type\\\":\\\"assistant\\\",\\\"message\\\":{\\\"id\\\":\\\"m$n\\\",\\\"content\\\":[]}}\"; done\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":3,\"result\":\"done\"}'",
    );
    let run = world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 1, "nothing was left for a second start");
    assert_eq!(run.json["verdict"], "budget");
}

/// Uses a tool for ever.
fn for_ever(usage: &serde_json::Value) -> impl FnOnce(&World) -> Stub {
    let first = json!({"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "echo kept > kept"}}], "usage": usage});
    let more = json!({"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "true"}}], "usage": usage});
    let script = json!({"turns": [first, more], "repeat_last": true});
    move |world| Stub::start(world, &script)
}

#[test]
fn claude_is_ended_by_each_budget() {
    let Some(program) = claude("budgets::claude_is_ended_by_each_budget") else { return };
    let usage = json!({"input_tokens": 20000, "output_tokens": 20000});
    let cases: [(&[&str], &str); 3] = [
        (&["--max-turns", "3"], "turn"),
        (&["--max-tokens", "100000"], "max_tokens"),
        (&["--max-cost-usd", "0.50"], "cost"),
    ];
    for (options, part) in cases {
        let (world, stub) = claude_world(for_ever(&usage), AGENT);
        let run = run_with(&world, &program, options).failure("FS-AGENT-BUDGET", 1);
        assert_eq!(run.json["verdict"], "budget");
        let message = run.json["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{options:?}: {message}");
        assert!(run.file("changes.patch").contains("kept"), "{options:?}: the work is lost");
        let asked = stub.requests().iter().filter(|r| r["kind"] == "main").count();
        assert!(asked < 12, "{options:?}: {asked} requests");
        world.assert_clean();
    }
}

/// Every start costs 0.48 dollars: two answers of 20000 tokens in and 20000 out.
#[test]
fn the_cost_of_a_session_that_goes_on_counts_once() {
    let Some(program) = claude("budgets::the_cost_of_a_session_that_goes_on") else { return };
    let usage = json!({"input_tokens": 20000, "output_tokens": 20000});
    let tool = json!({"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "true"}}], "usage": usage});
    let end = json!({"content": [{"type": "text", "text": "Done."}], "usage": usage});
    let turns = json!([tool, end, tool, end, tool, end]);
    let (world, stub) = claude_world(script(&turns), AGENT);
    let yaml = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
    world.harness(&format!("{yaml}validation_loop: {{script: scripts/check.sh, max_iterations: 5}}\n"));
    world.script("h/scripts/check.sh", "exit 1");
    let run = run_with(&world, &program, &["--max-cost-usd", "1"]).failure("FS-AGENT-BUDGET", 1);
    let costs: Vec<_> =
        run.json["iterations"].as_array().unwrap().iter().map(|i| &i["metrics"]["cost_usd"]).collect();
    assert_eq!(costs.len(), 3, "there was room for a third start: {costs:?}");
    let sum: f64 = costs.iter().map(|cost| cost.as_f64().unwrap()).sum();
    let theirs = result_event(&run.file("iteration-3/stream.jsonl"))["total_cost_usd"].as_f64().unwrap();
    assert!((sum - theirs).abs() < 1e-9 && sum > 1.0, "{costs:?}, {theirs}");
    // The third start ended with its first answer: the rest of the budget was its own limit.
    assert_eq!(stub.requests().iter().filter(|r| r["kind"] == "main").count(), 5);
    world.assert_clean();
}

#[test]
fn a_budget_that_is_no_number_is_refused_at_its_place() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\nmax_turns: -1\nmax_cost_usd: lots\nmax_tokens: many\napi_retries: 11\nprompt: ' '\n",
    );
    let run = world.run(&[]);
    for part in ["work.yaml:3:", "work.yaml:4:", "work.yaml:5:", "work.yaml:6:", "work.yaml:7:"] {
        assert!(run.done.stderr.contains(part), "{part}: {}", run.done.stderr);
    }
    assert_eq!(run.done.code, 2);
    for (option, value) in
        [("--max-turns", "-1"), ("--max-cost-usd", "-1"), ("--max-tokens", "x"), ("--api-retries", "11")]
    {
        assert_eq!(world.run(&[&format!("{option}={value}")]).done.code, 2, "{option}");
    }
}
