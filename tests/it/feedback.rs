//! The validation loop: what the next iteration is told, what it starts from, and who reviews.

use serde_json::json;

use crate::claude::{AGENT, claude_world, run_with, script};
use crate::stub::claude;
use crate::support::{GENERATIONS, World};

const SCHEMA: &str = r#"{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"}}}"#;

/// A world whose agent writes a wrong answer first, and shows from then on what it was told.
fn world(yaml: &str) -> World {
    let world = World::new();
    world.harness(&format!("agent: agents/work\nruntime: script\n{yaml}"));
    world.write("h/schemas/s.json", SCHEMA);
    world.agent(
        "cp \"$FULLSEND_PROMPT_FILE\" \"$FULLSEND_OUTPUT_DIR/prompt\"\n\
         [ -z \"${FULLSEND_FEEDBACK_FILE:-}\" ] || cp \"$FULLSEND_FEEDBACK_FILE\" \"$FULLSEND_OUTPUT_DIR/feedback\"\n\
         echo $FULLSEND_ITERATION >> seen; cp seen \"$FULLSEND_OUTPUT_DIR/seen\"; echo changed > README.md\n\
         [ $FULLSEND_ITERATION = 1 ] && answer='\"four\"' || answer=4\n\
         echo \"{\\\"answer\\\":$answer}\" > \"$FULLSEND_OUTPUT_DIR/agent-result.json\"",
    );
    world
}

#[test]
fn the_places_of_the_schema_reach_the_next_iteration() {
    let world = world("prompt: Answer me.\nvalidation_loop: {schema: schemas/s.json, max_iterations: 2}\n");
    let run = world.run(&[]).success();
    assert_eq!(run.file("iteration-1/output/prompt"), "Answer me.");
    let told = run.file("iteration-2/output/feedback");
    assert!(told.contains("/answer: \"four\" is not of type \"integer\""), "{told}");
    assert_eq!(told, run.file("iteration-2/feedback.txt"));
    let prompt = run.file("iteration-2/output/prompt");
    assert!(prompt.starts_with("Answer me.\n\n") && prompt.ends_with(&told), "{prompt}");
    assert_eq!(run.json["iterations"][1]["why"], "invalid");
    assert_eq!(run.file("iteration-2/output/seen"), "1\n2\n", "the repository is kept");
    world.assert_clean();
}

#[test]
fn a_script_is_quoted_bounded_and_without_secrets() {
    let mut world = world("validation_loop: {script: scripts/check.sh, max_iterations: 2}\nproviders: [p]\n");
    world.env("THE_KEY", "very-secret-value-4711");
    world.write("h/providers/p.yaml", "name: p\ntype: t\ncredentials: {API_KEY: '${THE_KEY}'}\n");
    world.write(
        "h/profiles/t.yaml",
        "id: t\ndisplay_name: T\ncategory: other\ncredentials:\n  - {name: k, env_vars: [API_KEY], required: true}\n",
    );
    world.script(
        "h/scripts/check.sh",
        "grep -q 4 output/agent-result.json && exit 0\nseq 1 20000\nprintf '\\033[31mthe answer is a word\\n'\n\
         echo \"the key is $THE_KEY\" >&2; exit 3",
    );
    let run = world.run(&[]).success();
    let told = run.file("iteration-2/output/feedback");
    for part in ["exit status 3", "the answer is a word", "are left out]", "20000"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("very-secret-value-4711") && told.contains("the key is"), "{told}");
    assert!(told.len() < 40_000 && !told.contains('\u{1b}'), "{} bytes", told.len());
}

#[test]
fn without_feedback_the_next_iteration_begins_anew() {
    let world = world(
        "validation_loop: {schema: schemas/s.json, max_iterations: 2, feedback_mode: none, on_retry: reset}\n",
    );
    let run = world.run(&[]).success();
    assert_eq!(run.file("iteration-2/output/prompt"), "Run the agent task");
    let dir = run.dir.clone().unwrap();
    assert!(
        !dir.join("iteration-2/output/feedback").exists() && !dir.join("iteration-2/feedback.txt").exists()
    );
    assert_eq!(run.file("iteration-2/output/seen"), "2\n", "the repository is as it was uploaded");
    assert_eq!(std::fs::read_to_string(world.repo().join("seen")).unwrap(), "2\n");
    assert_eq!(std::fs::read_to_string(world.repo().join("README.md")).unwrap(), "changed\n");
    world.assert_clean();
}

#[test]
fn several_files_are_checked_and_a_near_name_is_found() {
    let world = world(
        "validation_loop:\n  schema: schemas/s.json\n  schemas: {reports/list.json: schemas/list.json}\n",
    );
    world.write("h/schemas/list.json", r#"{"type":"array","minItems":1}"#);
    world.agent(
        "echo '{\"answer\":1}' > $FULLSEND_OUTPUT_DIR/agent_result.json\n\
         mkdir $FULLSEND_OUTPUT_DIR/reports; printf '```json\\n[1]\\n```\\n' > $FULLSEND_OUTPUT_DIR/reports/list.json",
    );
    let run = world.run(&[]).failure("FS-VALIDATION", 1);
    let error = run.done.stderr;
    assert!(error.contains("there is agent_result.json") && error.contains("code fence"), "{error}");
    world.agent(
        "echo '{\"answer\":1}' > $FULLSEND_OUTPUT_DIR/agent-result.json\n\
         mkdir $FULLSEND_OUTPUT_DIR/reports; echo '[1]' > $FULLSEND_OUTPUT_DIR/reports/list.json\n\
         fullsend-check-output > $FULLSEND_OUTPUT_DIR/said",
    );
    let run = world.run(&[]).success();
    let said = run.file("iteration-1/output/said");
    assert!(said.contains("agent-result.json") && said.contains("reports/list.json"), "{said}");
}

/// Without `--local` nothing of this machine is seen in the sandbox, and a script has no hooks that would bring the program.
#[test]
fn the_check_is_in_the_sandbox_of_every_generation() {
    for version in GENERATIONS {
        let mut world = world("validation_loop: {schema: schemas/s.json, max_iterations: 1}\n");
        world.personality(version);
        world.agent(
            "result=$FULLSEND_OUTPUT_DIR/agent-result.json; echo '{\"answer\":\"x\"}' > $result\n\
             if fullsend-check-output > $FULLSEND_OUTPUT_DIR/said 2>&1; then exit 9; fi\n\
             echo '{\"answer\":4}' > $result; fullsend-check-output",
        );
        let run = world.run(&[]).success();
        let said = run.file("iteration-1/output/said");
        assert!(said.contains("/answer: \"x\" is not of type"), "{version}: {said}");
        world.assert_clean();
    }
}

#[test]
fn the_check_is_uploaded_only_where_there_is_something_to_check() {
    let mut world = world("");
    world.personality("0.1.10");
    world.agent("! command -v fullsend-check-output; [ ! -e /sandbox/workspace/bin/fullsend ]");
    world.run(&[]).success();
    // Nor where nothing that the agent gets names it.
    world.harness("agent: agents/work\nruntime: script\nvalidation_loop: {schema: schemas/s.json}\n");
    world.agent(
        "ls /sandbox/workspace/bin >&2; echo '{\"answer\":4}' > $FULLSEND_OUTPUT_DIR/agent-result.json",
    );
    let run = world.run(&[]).success();
    assert!(
        !run.file("iteration-1/stderr.log").contains("fullsend"),
        "{}",
        run.file("iteration-1/stderr.log")
    );
    // A program that cannot run there is taken away, and the run goes on.
    let other = world.write("other", "not for this machine\n");
    world.harness("agent: agents/work\nruntime: script\nvalidation_loop: {schema: schemas/s.json}\n");
    world.agent(
        "! command -v fullsend-check-output; echo '{\"answer\":4}' > $FULLSEND_OUTPUT_DIR/agent-result.json",
    );
    let run = world.run(&["--fullsend-binary", other.to_str().unwrap()]).success();
    let said = format!("{}{}", run.done.stdout, run.done.stderr);
    assert!(said.contains("fullsend-check-output cannot run in the sandbox"), "{said}");
    world.assert_clean();
}

#[test]
fn check_output_is_the_same_check_on_a_laptop() {
    let world = World::new();
    world.write("repo/s.json", SCHEMA);
    world.write("repo/out/agent-result.json", r#"{"answer":"four"}"#);
    let done = world.fullsend(&["check-output", "--schema", "s.json", "--output-dir", "out"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.contains("FS-VALIDATION") && done.stderr.contains("/answer: "), "{}", done.stderr);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert_eq!(said.matches("is not of type").count(), 1, "the same is said twice: {said}");
    world.write("repo/out/agent-result.json", r#"{"answer":4}"#);
    assert_eq!(world.fullsend(&["check-output", "out/agent-result.json", "--schema", "s.json"]).code, 0);
    assert_eq!(world.fullsend(&["check-output", "out/agent-result.json"]).code, 2);
    world.write("repo/s.json", "{");
    assert_eq!(world.fullsend(&["check-output", "--schema", "s.json", "--output-dir", "out"]).code, 2);
}

/// A reviewer that accepts what says `tested`, and tries to change what it reviews.
fn reviewer(world: &World) {
    world.write(
        "h/harness/judge.yaml",
        "agent: agents/judge\nruntime: script\ntimeout_minutes: 2\nvalidation_loop: {schema: schemas/verdict.json}\n",
    );
    world.write(
        "h/schemas/verdict.json",
        r#"{"required":["verdict"],"properties":{"verdict":{"enum":["accept","reject"]}}}"#,
    );
    world.script(
        "h/agents/judge",
        "set -eu\n\
         input=/sandbox/workspace/agent-input; grep -q . $input/changes.patch; grep -q answer $input/output/agent-result.json\n\
         grep -q 'Run the agent task' $input/prompt.txt; ! echo mine 2>/dev/null > README.md; chmod -R u+w . ; echo mine > sneaked\n\
         if grep -q tested note; then verdict='{\"verdict\":\"accept\",\"summary\":\"Good.\"}'\n\
         else verdict='{\"verdict\":\"reject\",\"summary\":\"No test.\",\"findings\":[{\"message\":\"write a test\",\"path\":\"note\",\"line\":1}]}'; fi\n\
         echo \"$verdict\" > $FULLSEND_OUTPUT_DIR/agent-result.json",
    );
}

#[test]
fn a_reviewer_rejects_and_then_accepts() {
    let world = world(
        "validation_loop: {schema: schemas/s.json, escalate: judge, max_iterations: 3}\npost_script: scripts/post.sh\n",
    );
    world.script(
        "h/scripts/post.sh",
        "cp \"$FULLSEND_VALIDATED_ITERATION_DIR/told\" \"$HOME/told\"; cp \"$REPO_DIR/note\" \"$HOME/note\"",
    );
    reviewer(&world);
    world.agent(
        "echo '{\"answer\":4}' > $FULLSEND_OUTPUT_DIR/agent-result.json\n\
         if [ -n \"${FULLSEND_FEEDBACK_FILE:-}\" ]; then cp $FULLSEND_FEEDBACK_FILE $FULLSEND_OUTPUT_DIR/told; echo tested > note\n\
         else echo quick > note; fi",
    );
    let run = world.run(&[]).success();
    assert_eq!(run.json["validated_iteration"], 2);
    assert_eq!(run.json["iterations"][0]["review"]["verdict"], "reject");
    assert_eq!(run.json["iterations"][1]["review"]["verdict"], "accept");
    let told = std::fs::read_to_string(world.path("home/told")).unwrap();
    assert!(told.contains("No test.") && told.contains("- note:1: write a test"), "{told}");
    assert_eq!(std::fs::read_to_string(world.path("home/note")).unwrap(), "tested\n");
    let dir = run.json["iterations"][0]["review"]["dir"].as_str().unwrap();
    assert!(run.file(&format!("{dir}/run.json")).contains("\"agent\": \"judge\""));
    assert!(!world.repo().join("sneaked").exists());
    world.assert_clean();
}

#[test]
fn without_a_verdict_nothing_is_accepted() {
    let world =
        world("validation_loop: {escalate: judge, max_iterations: 3}\npost_script: scripts/post.sh\n");
    world.script("h/scripts/post.sh", "touch \"$HOME/posted\"");
    reviewer(&world);
    world.script(
        "h/agents/judge",
        "echo '{\"verdict\":\"perhaps\"}' > $FULLSEND_OUTPUT_DIR/agent-result.json",
    );
    let run = world.run(&[]).failure("FS-REVIEW", 1);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 1);
    assert!(run.done.stderr.contains("judge"), "{}", run.done.stderr);
    assert!(!world.path("home/posted").exists());
    world.assert_clean();
    world.harness("agent: agents/work\nruntime: script\nvalidation_loop: {escalate: jugde}\n");
    let run = world.run(&[]);
    assert!(run.done.code == 2 && run.done.stderr.contains("work.yaml:3:"), "{}", run.done.stderr);
}

#[test]
fn claude_goes_on_in_its_session_with_what_was_wrong() {
    let Some(program) = claude("feedback::claude_goes_on_in_its_session") else { return };
    let write = |text: &str| {
        json!({"type": "tool_use", "name": "Bash", "input":
        {"command": format!("printf '%s' '{text}' > $FULLSEND_OUTPUT_DIR/agent-result.json")}})
    };
    let turns = json!([
        {"content": [{"type": "text", "text": "marker-of-the-first-session"}, write(r#"{"answer":"four"}"#)],
         "expect": ["a-prompt-of-its-own"]},
        {"content": [{"type": "text", "text": "First done."}]},
        // The same conversation, and the exact place that was wrong.
        {"content": [write(r#"{"answer":4}"#)],
         "expect": ["marker-of-the-first-session", "/answer: \"four\" is not of type \"integer\"", "was emptied"]},
        {"content": [{"type": "text", "text": "Mended."}]},
    ]);
    let (world, stub) = claude_world(script(&turns), AGENT);
    world.write("h/schemas/s.json", SCHEMA);
    let yaml = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
    world.harness(&format!("{yaml}validation_loop: {{schema: schemas/s.json, max_iterations: 2}}\n"));
    let prompt = world.write("prompt.txt", format!("a-prompt-of-its-own {}", "long ".repeat(60_000)));
    let run = run_with(&world, &program, &["--prompt-file", prompt.to_str().unwrap()]).success();
    assert_eq!(run.json["validated_iteration"], 2);
    let first = run.json["iterations"][0]["metrics"]["session"].as_str().unwrap();
    assert_eq!(run.json["iterations"][1]["resumed"], first);
    let main = stub.requests().into_iter().filter(|r| r["kind"] == "main").count();
    assert_eq!(main, 4);
    assert_eq!(run.json["totals"]["turns"], 4);
    world.assert_clean();
}
