//! The real codex CLI in a local sandbox, against a stub of its model API on the loopback interface.

use serde_json::{Value, json};

use crate::stub::{fetched, world_for};
use crate::support::{Run, World};

const VERSION: &str = "0.171.0";

/// Runs the agent with the CLI; nothing when there is none.
fn run(test: &str, turns: &Value) -> Option<(World, Run, Vec<Value>)> {
    let program = fetched(test, "codex", VERSION, "bin/codex")?;
    let (world, stub) = world_for("codex", "gpt-5-codex", turns);
    let prefix = program.parent().unwrap().parent().unwrap();
    let run = world.run(&["--local-bind", prefix.to_str().unwrap()]);
    let requests = stub.requests();
    Some((world, run, requests))
}

#[test]
fn it_edits_commits_and_writes_output_and_its_figures_are_in_run_json() {
    let work = "echo '# An edited repository' > README.md && git config user.name Agent && \
                git config user.email agent@example.com && git commit -qam 'Edit it' && \
                echo '{\"done\": true}' > \"$FULLSEND_OUTPUT_DIR/agent-result.json\"";
    let turns = json!({"turns": [
        {"content": [{"type": "thinking", "thinking": "A thought."}, {"type": "text", "text": "I work."},
                     {"type": "tool_use", "name": "exec_command", "input": {"cmd": work}}],
         "usage": {"input_tokens": 101, "output_tokens": 23, "cache_read_input_tokens": 7},
         "expect": ["marker-of-the-agent", "marker-of-the-skill", "marker-of-the-project", "Run the agent task"]},
        {"content": [{"type": "text", "text": "All done, é."}], "usage": {"input_tokens": 211, "output_tokens": 31}},
    ]});
    let Some((world, run, requests)) = run("codex::it_edits_commits_and_writes_output", &turns) else {
        return;
    };
    let run = run.success();
    assert_eq!(world.git(&["log", "-1", "--format=%s %an"]), "Edit it Agent\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(run.file("iteration-1/output/agent-result.json"), "{\"done\": true}\n");
    assert!(requests.iter().any(|r| r["body"]["model"] == "gpt-5-codex"), "{requests:?}");

    let stream = run.file("iteration-1/stream.jsonl");
    let end = stream
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .find(|l| l["type"] == "turn.completed");
    let usage = end.unwrap()["usage"].clone();
    let metrics = &run.json["totals"];
    assert_eq!(metrics["tokens"]["input"], 101 + 211);
    assert_eq!(metrics["tokens"]["cache_read"], usage["cached_input_tokens"]);
    assert_eq!(usage["input_tokens"], 101 + 211 + 7);
    assert_eq!(metrics["tokens"]["output"], usage["output_tokens"]);
    assert_eq!(
        (&metrics["turns"], &metrics["tool_calls"], &metrics["tool_errors"]),
        (&json!(2), &json!(1), &json!(0))
    );
    assert_eq!((&metrics["agent_version"], &metrics["model"]), (&json!(VERSION), &json!("gpt-5-codex")));

    let events = run.file("iteration-1/events.jsonl");
    let events: Vec<Value> = events.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let kinds: Vec<_> =
        events.iter().filter(|e| e["event"] != "warning").map(|e| e["event"].as_str().unwrap()).collect();
    let expected =
        ["init", "turn", "thinking", "text", "tool_use", "tool_result", "turn", "text", "tokens", "result"];
    assert_eq!(kinds, expected);
    assert!(events.iter().all(|e| e["schema"] == "fullsend.event/1"));
    assert!(run.done.stdout.contains("All done, é.") && run.done.stdout.contains("shell: echo"));
    world.assert_clean();
}
