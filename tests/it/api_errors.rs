//! A start that died of the model API is made again, where that can do no harm.

use serde_json::{Value, json};

use crate::claude::{AGENT, claude_world, run_with, script};
use crate::stub::claude;
use crate::support::World;

fn overloaded() -> Value {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    json!({"error": {"status": 529, "body": {"type": "error", "error": error}}})
}

/// A script agent that fails by the API until it was started for the `good`th time.
fn failing(world: &World, good: u32, before: &str) {
    world.agent(&format!(
        "{before}\nif [ $FULLSEND_ITERATION -ge {good} ]; then\n\
         echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"ok\"}}'; exit 0; fi\n\
         echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"num_turns\":1,\"result\":\"API Error: 529 Overloaded\"}}'; exit 1"
    ));
}

#[test]
fn a_start_that_changed_nothing_is_made_again() {
    let mut world = World::new();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.02");
    failing(&world, 3, "true");
    let run = world.run(&[]).success();
    let whys: Vec<_> = run.json["iterations"].as_array().unwrap().iter().map(|i| i["why"].clone()).collect();
    assert_eq!(whys, ["first", "api_error", "api_error"]);
    assert!(run.done.stdout.contains("trying again (2 of 2)"), "{}", run.done.stdout);
    failing(&world, 4, "true");
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 3, "two further starts by default");
    assert_eq!(world.run(&["--api-retries", "0"]).json["iterations"].as_array().unwrap().len(), 1);
    world.assert_clean();
}

#[test]
fn a_start_that_changed_the_repository_is_not_made_again_without_its_session() {
    let mut world = World::new();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.02");
    failing(&world, 2, "echo half > half-done");
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 1);
    assert!(run.done.stdout.contains("changed the repository"), "{}", run.done.stdout);
    assert!(run.file("changes.patch").contains("half-done"));
    world.assert_clean();
}

#[test]
fn what_stays_wrong_is_not_tried_again() {
    let world = World::new();
    world.agent(
        "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"num_turns\":1,\"result\":\"API Error: 401 invalid x-api-key\"}'; exit 1",
    );
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 1);
}

#[test]
fn claude_goes_on_in_its_session_after_the_api_failed() {
    let Some(program) = claude("api_errors::claude_goes_on_in_its_session") else { return };
    let turns = json!([
        {"content": [{"type": "text", "text": "marker-of-the-first-session"},
                     {"type": "tool_use", "name": "Bash", "input": {"command": "echo half > half"}}]},
        overloaded(), overloaded(),
        {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "echo whole > whole"}}],
         "expect": ["marker-of-the-first-session", "where you left off"]},
        {"content": [{"type": "text", "text": "All done."}]},
    ]);
    let (mut world, _stub) = claude_world(script(&turns), AGENT);
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.3");
    let run = run_with(&world, &program, &[]).success();
    assert_eq!(run.json["iterations"][1]["why"], "api_error");
    assert_eq!(run.json["iterations"][1]["resumed"], run.json["iterations"][0]["metrics"]["session"]);
    for name in ["half", "whole"] {
        assert!(world.repo().join(name).exists(), "{name}");
    }
    world.assert_clean();
}
