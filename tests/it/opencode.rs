//! The real opencode CLI in a local sandbox, against a stub of its model API on the loopback interface.

use serde_json::{Value, json};

use crate::stub::{fetched, world_for};
use crate::support::{Run, World};

const VERSION: &str = "1.18.33";
const MODEL: &str = "anthropic/claude-sonnet-4-5";

const KEY: &str = "very-secret-value-4711";
const SCHEMA: &str = r#"{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"}}}"#;

/// Runs the agent with the CLI; nothing when there is none.
fn run(test: &str, turns: &Value, agent: Option<&str>) -> Option<(World, Run)> {
    let prepare = |world: &mut World| {
        agent.inspect(|text| drop(world.write("h/agents/coder.md", text)));
    };
    run_in(test, turns, &[], prepare).map(|(world, run, _)| (world, run))
}

/// The same in a world that is prepared further, with more arguments; gives what the API was asked as well.
pub fn run_in(
    test: &str,
    turns: &Value,
    args: &[&str],
    prepare: impl FnOnce(&mut World),
) -> Option<(World, Run, Vec<Value>)> {
    let program = fetched(test, "opencode", VERSION, "bin/opencode")?;
    let (mut world, stub) = world_for("opencode", MODEL, turns);
    prepare(&mut world);
    let bind = ["--local-bind", program.parent().unwrap().to_str().unwrap()];
    let run = world.run(&[&bind, args].concat());
    Some((world, run, stub.requests()))
}

/// Adds lines to the harness.
fn more(world: &World, yaml: &str) {
    let old = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
    world.harness(&format!("{old}{yaml}"));
}

/// An answer of the API that is an error. Where it is repeated, that is done at once.
pub fn refused(status: u16, kind: &str, message: &str) -> Value {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    json!({"error": {"status": status, "headers": {"retry-after-ms": "50"}, "body": body}})
}

pub fn bash(command: &str) -> Value {
    json!({"type": "tool_use", "name": "bash", "input": {"command": command, "description": "Work"}})
}

pub fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The parts of a type in the streams of these iterations.
fn parts(run: &Run, iterations: u32, kind: &str) -> Vec<Value> {
    let streams: String =
        (1..=iterations).map(|n| run.file(&format!("iteration-{n}/stream.jsonl"))).collect();
    let lines = streams.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["type"] == kind).map(|line| line["part"].clone()).collect()
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

#[test]
fn a_further_iteration_goes_on_in_the_session_with_what_was_wrong() {
    let output = |text: &str| format!("printf '%s' '{text}' > $FULLSEND_OUTPUT_DIR/agent-result.json");
    let commit = "echo '# Edited' > README.md && git config user.name Agent && \
                  git config user.email agent@example.com && git commit -qam 'Edit it'";
    let turns = json!({"turns": [
        {"content": [{"type": "text", "text": "marker-of-the-first-session"},
                     bash(&format!("{commit} && echo key: $ANTHROPIC_API_KEY && {}", output(r#"{"answer":"four"}"#)))],
         "usage": {"input_tokens": 101, "output_tokens": 23, "cache_read_input_tokens": 7}},
        {"content": [{"type": "text", "text": "First done."}], "usage": {"input_tokens": 211, "output_tokens": 31}},
        // The same conversation, and the exact place that was wrong.
        {"content": [bash(&output(r#"{"answer":4}"#))], "usage": {"input_tokens": 307, "output_tokens": 41},
         "expect": ["marker-of-the-first-session", "/answer: \"four\" is not of type \"integer\"", "was emptied"]},
        {"content": [{"type": "text", "text": "Mended."}], "usage": {"input_tokens": 401, "output_tokens": 53}},
    ]});
    let test = "opencode::a_further_iteration_goes_on_in_the_session";
    let prepare = |world: &mut World| {
        world.write("h/schemas/s.json", SCHEMA);
        world.env("THE_KEY", KEY);
        let old = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
        world.harness(
            &old.replace("ANTHROPIC_API_KEY: dummy-key-of-the-stub", "ANTHROPIC_API_KEY: ${THE_KEY}"),
        );
        more(world, "validation_loop: {schema: schemas/s.json, max_iterations: 2}\n");
    };
    let Some((world, run, requests)) = run_in(test, &turns, &[], prepare) else { return };
    let run = run.success();
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Edit it\n");
    assert_eq!(run.json["validated_iteration"], 2);
    let session = run.json["iterations"][0]["metrics"]["session"].as_str().unwrap();
    assert_eq!(run.json["iterations"][1]["resumed"], session);
    assert_eq!(requests.iter().filter(|r| r["kind"] == "main").count(), 4);

    let ends = parts(&run, 2, "step_finish");
    let sum = |path: &str| ends.iter().map(|p| p.pointer(path).unwrap().as_u64().unwrap()).sum::<u64>();
    let totals = &run.json["totals"];
    assert_eq!((&totals["turns"], ends.len()), (&json!(4), 4));
    assert_eq!(totals["tokens"]["input"], sum("/tokens/input"));
    assert_eq!((sum("/tokens/input"), sum("/tokens/output")), (101 + 211 + 307 + 401, 23 + 31 + 41 + 53));
    assert_eq!(totals["tokens"]["output"], sum("/tokens/output"));
    assert_eq!(totals["tokens"]["cache_read"], 7);
    let cost: f64 = ends.iter().map(|p| p["cost"].as_f64().unwrap()).sum();
    assert!(cost > 0.0 && (totals["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-12);

    // What the database has of the session is with the transcripts of each iteration.
    for (n, has, lacks) in [(1, "First done.", "Mended."), (2, "Mended.", "of-no-transcript")] {
        let exported = run.file(&format!("iteration-{n}/transcripts/{session}.json"));
        assert_eq!(serde_json::from_str::<Value>(&exported).unwrap()["info"]["id"], session);
        assert!(exported.contains("marker-of-the-first-session") && exported.contains(has), "{exported}");
        assert!(!exported.contains(lacks), "{exported}");
        assert!(exported.contains("key: ") && !exported.contains(KEY), "{exported}");
    }
    world.assert_clean();
}

#[test]
fn it_goes_on_in_its_session_after_the_api_failed() {
    let failing = refused(529, "overloaded_error", "Come back in a while");
    let mut turns = vec![
        json!({"content": [{"type": "text", "text": "marker-of-the-first-session"}, bash("echo half > half")]}),
    ];
    // The CLI repeats a request five times.
    turns.extend(std::iter::repeat_n(failing, 6));
    turns.push(json!({"content": [bash("echo whole > whole")],
                      "expect": ["marker-of-the-first-session", "where you left off"]}));
    turns.push(says("All done."));
    let test = "opencode::it_goes_on_in_its_session_after_the_api_failed";
    let prepare = |world: &mut World| {
        world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.5");
    };
    let Some((world, run, _)) = run_in(test, &json!({"turns": turns}), &[], prepare) else { return };
    let run = run.success();
    let iterations = run.json["iterations"].as_array().unwrap();
    assert_eq!((iterations.len(), &iterations[1]["why"]), (2, &json!("api_error")));
    assert_eq!(iterations[1]["resumed"], iterations[0]["metrics"]["session"]);
    assert!(run.done.stdout.contains("Come back in a while (HTTP 529)"), "{}", run.done.stdout);
    for name in ["half", "whole"] {
        assert!(world.repo().join(name).exists(), "{name}");
    }
    world.assert_clean();
}

#[test]
fn the_instructions_of_the_harness_directory_are_for_repositories_without_any() {
    let turn =
        |word: &str| json!({"turns": [{"content": [{"type": "text", "text": "Done."}], "expect": [word]}]});
    let organisation = |world: &World| world.write("h/AGENTS.md", "Always say marker-of-the-organisation.\n");
    let test = "opencode::the_instructions_of_the_harness_directory";
    let without = |world: &mut World| {
        organisation(world);
        world.git(&["rm", "-q", "AGENTS.md"]);
        world.commit("No instructions");
    };
    let turns = turn("marker-of-the-organisation");
    let Some((world, run, _)) = run_in(test, &turns, &[], without) else { return };
    run.success();
    assert_eq!(world.git(&["status", "--porcelain"]), "");

    let with = |world: &mut World| drop(organisation(world));
    let (_, run, requests) = run_in(test, &turn("marker-of-the-project"), &[], with).unwrap();
    run.success();
    let told: String = requests.iter().map(|r| r["body"].to_string()).collect();
    assert!(!told.contains("marker-of-the-organisation"), "{told}");
}

#[test]
fn it_logs_what_it_does_and_gets_the_skills_that_its_definition_names() {
    let turns = json!({"turns": [{"content": [{"type": "text", "text": "Done."}],
        "expect": ["marker-of-the-skill", "marker-of-the-named-one"]}]});
    let prepare = |world: &mut World| {
        let skill = "---\nname: named-one\ndescription: marker-of-the-named-one\n---\nText.\n";
        world.write("h/skills/named-one/SKILL.md", skill);
        let agent = "---\nname: n\ndescription: d\nskills: small, named-one\n---\nWork.\n";
        world.write("h/agents/coder.md", agent);
    };
    let test = "opencode::it_logs_what_it_does";
    let Some((world, run, _)) = run_in(test, &turns, &["--debug"], prepare) else { return };
    let run = run.success();
    let log = run.file("iteration-1/agent-debug.log");
    assert!(log.contains("level=DEBUG"), "{log}");
    world.assert_clean();
}
