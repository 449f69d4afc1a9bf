//! The real opencode CLI in a local sandbox, against a stub of its model API on the loopback interface.

use serde_json::{Value, json};

use crate::stub::{fetched, world_for};
use crate::support::{Run, World};

const VERSION: &str = "1.18.33";
const MODEL: &str = "anthropic/claude-sonnet-4-5";

/// Runs the agent with the CLI; nothing when there is none.
fn run(test: &str, turns: &Value, agent: Option<&str>) -> Option<(World, Run)> {
    let program = fetched(test, "opencode", VERSION, "bin/opencode")?;
    let (world, _stub) = world_for("opencode", MODEL, turns);
    agent.inspect(|text| drop(world.write("h/agents/coder.md", text)));
    let run = world.run(&["--local-bind", program.parent().unwrap().to_str().unwrap()]);
    Some((world, run))
}

#[test]
fn it_edits_commits_and_writes_output_and_its_figures_are_in_run_json() {
    let work = "echo '# An edited repository' > README.md && git config user.name Agent && \
                git config user.email agent@example.com && git commit -qam 'Edit it' && \
                echo '{\"done\": true}' > \"$FULLSEND_OUTPUT_DIR/agent-result.json\"";
    let turns = json!({"turns": [
        {"content": [{"type": "text", "text": "I work."},
                     {"type": "tool_use", "name": "bash", "input": {"command": work, "description": "Work"}}],
         "usage": {"input_tokens": 101, "output_tokens": 23, "cache_read_input_tokens": 7},
         "expect": ["marker-of-the-agent", "marker-of-the-skill", "marker-of-the-project", "Run the agent task"]},
        {"content": [{"type": "text", "text": "All done, é."}], "usage": {"input_tokens": 211, "output_tokens": 31}},
    ]});
    let Some((world, run)) = run("opencode::it_edits_commits_and_writes_output", &turns, None) else {
        return;
    };
    let run = run.success();
    assert_eq!(world.git(&["log", "-1", "--format=%s %an"]), "Edit it Agent\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(run.file("iteration-1/output/agent-result.json"), "{\"done\": true}\n");
    let stream = run.file("iteration-1/stream.jsonl");
    let steps: Vec<Value> = stream.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let ends: Vec<_> = steps.iter().filter(|s| s["type"] == "step_finish").map(|s| &s["part"]).collect();
    let metrics = &run.json["totals"];
    let cost: f64 = ends.iter().map(|p| p["cost"].as_f64().unwrap()).sum();
    assert!(cost > 0.0 && (metrics["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-12);
    assert_eq!(
        (&metrics["tokens"]["input"], &metrics["tokens"]["output"]),
        (&json!(101 + 211), &json!(23 + 31))
    );
    assert_eq!((&metrics["turns"], &metrics["tool_calls"]), (&json!(ends.len()), &json!(1)));
    assert_eq!(metrics["agent_version"], VERSION);
    assert!(run.done.stdout.contains("All done, é.") && run.done.stdout.contains("bash: echo"));
    world.assert_clean();
}

#[test]
fn a_refused_key_fails_with_the_words_of_the_api() {
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": "this key was revoked"}});
    let turns = json!({"turns": [{"error": {"status": 401, "body": body}}], "repeat_last": true});
    let Some((world, run)) = run("opencode::a_refused_key_fails", &turns, None) else { return };
    let run = run.failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("this key was revoked (HTTP 401)"), "{}", run.done.stderr);
    world.assert_clean();
}

#[test]
fn a_tool_that_the_definition_disallows_is_not_carried_out() {
    let turns = json!({"turns": [
        {"content": [{"type": "tool_use", "name": "bash", "input": {"command": "git push", "description": "Push"}}]},
        {"content": [{"type": "text", "text": "So be it."}]},
    ]});
    let agent = "---\nname: n\ndescription: d\ndisallowedTools: Bash(git push:*)\n---\nWork.\n";
    let Some((world, run)) = run("opencode::a_tool_that_the_definition_disallows", &turns, Some(agent))
    else {
        return;
    };
    let run = run.success();
    assert_eq!(run.json["totals"]["permission_denials"], 1, "{}", run.file("iteration-1/stream.jsonl"));
    world.assert_clean();
}
