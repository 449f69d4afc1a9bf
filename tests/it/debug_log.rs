//! The log of the agent program about itself.

use serde_json::json;

use crate::claude::{AGENT, claude_world, run_with, script};
use crate::endings::Cli;
use crate::stub::claude;
use crate::support::World;

fn logs(cli: &Cli, part: &str) {
    let (world, _stub) = cli.world(&json!({"turns": [{"content": []}], "repeat_last": true}), "");
    let run = cli.run(&world, &["--debug"]).success();
    let log = run.file("iteration-1/agent-debug.log");
    assert!(log.contains(part), "{log}");
    let run = cli.run(&world, &[]).success();
    assert!(!run.dir.unwrap().join("iteration-1/agent-debug.log").exists(), "nobody asked for it");
    world.assert_clean();
}

#[test]
fn claude_logs_what_it_does() {
    if let Some(cli) = Cli::claude("debug_log::claude_logs_what_it_does") {
        logs(&cli, "[DEBUG]");
    }
}

#[test]
fn codex_logs_what_it_does() {
    if let Some(cli) = Cli::codex("debug_log::codex_logs_what_it_does") {
        logs(&cli, "DEBUG codex_");
    }
}

#[test]
fn the_log_is_shortened_and_without_secrets() {
    let Some(program) = claude("debug_log::the_log_is_shortened") else { return };
    let turns = json!([{"content": [{"type": "text", "text": "Done."}]}]);
    let (world, _stub) = claude_world(script(&turns), AGENT);
    let yaml = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
    world.harness(&format!("{yaml}debug: '!mcp'\n"));
    let body = "log=$FULLSEND_PROMPT_FILE; log=${log%/*}/agent-debug.log; case \" $* \" in *' --debug=!mcp '*) ;; *) exit 9;; esac\n\
                \"$REAL\" \"$@\"; yes a line | head -c 17000000 >>$log; echo >>$log; echo the key is $ANTHROPIC_API_KEY >>$log";
    world.script("prefix/bin/claude", &format!("REAL='{}'\n{body}", program.display()));
    let run = run_with(&world, &program, &[]).success();
    let log = run.file("iteration-1/agent-debug.log");
    assert!((16_000_000..=16 << 20).contains(&log.len()), "{}", log.len());
    let last = log.lines().last().unwrap();
    let key = world.variable("MODEL_KEY").unwrap();
    assert!(last.starts_with("the key is ") && !log.contains(&key), "{last}");
    world.assert_clean();
}

#[test]
fn a_runtime_without_a_log_says_so() {
    let world = World::new();
    let run = world.run(&["--debug=x"]).success();
    assert!(run.done.stdout.contains("`debug`: there is no log of its own"), "{}", run.done.stdout);
    assert!(!run.dir.unwrap().join("iteration-1/agent-debug.log").exists());
    assert_eq!(world.run(&["--debug="]).done.code, 2);
    world.harness("agent: agents/work\nruntime: script\ndebug: ' '\n");
    let run = world.run(&[]);
    assert!(run.done.code == 2 && run.done.stderr.contains("work.yaml:3:"), "{}", run.done.stderr);
}
