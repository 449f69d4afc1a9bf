//! What an agent does with its output, its children and its time.

use super::{HANG, Live, assert_nothing_left, run_of, scaled};

const INIT: &str = r#"{"type":"system","subtype":"init","model":"m","session_id":"s"}"#;
const GOOD: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":1,"total_cost_usd":0}"#;

#[test]
fn a_final_result_ends_an_agent_that_stays() {
    let world = scaled();
    world.agent(&format!("echo '{INIT}'; echo work > made; echo '{GOOD}'; sleep 600"));
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    assert_eq!(run.json["iterations"][0]["ended_by"], "after_result");
    assert_eq!(run.json["iterations"][0]["partial"], false);
    assert!(world.repo().join("made").exists());
    assert_nothing_left(&world);
}

#[test]
fn a_grandchild_that_holds_a_pipe_delays_nothing() {
    let world = scaled();
    world.harness(
        "agent: agents/work\nruntime: script\npre_script: scripts/pre\npost_script: scripts/post\n\
         deadlines: {script: 2}\n",
    );
    world.script("h/scripts/pre", "sleep 600 & echo pre done");
    world.script("h/scripts/post", "sleep 600 & echo post done");
    world.agent("sleep 600 & echo agent done");
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    for said in ["pre done", "agent done", "post done"] {
        assert!(run.done.stdout.contains(said), "{}", run.done.stdout);
    }
    world.script("h/scripts/post", "sleep 600 | cat");
    let run = run_of(&world, Live::start(&world, "b", &[]).wait(HANG)).failure("FS-POST-SCRIPT", 5);
    assert!(run.done.stderr.contains("post-script did not end within 2"), "{}", run.done.stderr);
    assert_nothing_left(&world);
}

#[test]
fn huge_and_broken_lines_are_kept_and_the_result_is_found() {
    let world = scaled();
    world.agent(&format!(
        "echo '{INIT}'; big() {{ printf '{{\"type\":\"assistant\",\"x\":\"'; head -c $1 /dev/zero | tr '\\0' a; echo '\"}}'; }}\n\
         big 3000000; big 70000000; echo '{{\"type\":'; echo 'no json at all'; head -c 5000000 /dev/zero | tr '\\0' b; echo\n\
         echo '{GOOD}'"
    ));
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG * 2)).success();
    let bytes = std::fs::metadata(run.dir.as_ref().unwrap().join("iteration-1/stream.jsonl")).unwrap().len();
    assert!(bytes > 78_000_000, "{bytes}");
    assert_eq!(run.json["iterations"][0]["stream"]["bytes"], bytes);
    assert_eq!(run.json["iterations"][0]["result"]["is_error"], false, "{}", run.json["iterations"][0]);
    assert!(run.done.stdout.len() < 1_000_000, "the console is not flooded");
    assert_nothing_left(&world);
}

#[test]
fn bytes_that_are_no_text_arrive_as_they_are() {
    let world = scaled();
    world.agent(&format!(
        "out() {{ printf '%s' \"$1\" | tee -a $FULLSEND_OUTPUT_DIR/copy; }}\n\
         {{ echo '{INIT}'; printf '{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"\\303\\251 '\n\
         sleep 0.2; printf '\\360\\237'; sleep 0.3; printf '\\230\\200 \\377 \\\\ud800\"}}]}}}}\\n'; echo '{GOOD}'; }} | tee $FULLSEND_OUTPUT_DIR/copy"
    ));
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    let dir = run.dir.as_ref().unwrap().join("iteration-1");
    let stream = std::fs::read(dir.join("stream.jsonl")).unwrap();
    assert_eq!(stream, std::fs::read(dir.join("output/copy")).unwrap());
    assert!(stream.contains(&0xff), "the test itself");
}

#[test]
fn the_turn_limit_is_a_budget_and_the_work_is_kept() {
    let world = scaled();
    world.agent(&format!(
        "echo '{INIT}'; echo half > made\n\
         echo '{{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"is_error\":true,\"num_turns\":9,\"total_cost_usd\":0}}'; exit 1"
    ));
    let run = world.run(&[]).failure("FS-AGENT-BUDGET", 1);
    assert_eq!(run.json["verdict"], "budget");
    assert!(run.file("changes.patch").contains("+half"));
}

#[test]
fn an_agent_that_reads_gets_the_end_of_file() {
    use std::process::Stdio;
    let world = scaled();
    world.agent("cat > $FULLSEND_OUTPUT_DIR/read; echo done");
    let args = world.run_args(&["--timeout", "30s"]);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut command = world.command(crate::support::fullsend(), &args, &world.repo());
    // An input that stays open and never says anything.
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let held = child.stdin.take();
    assert!(child.wait().unwrap().success());
    drop(held);
}

#[test]
fn results_survive_the_agents_deadline() {
    let stage = crate::faults::stage::Stage::new();
    stage.world.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
    stage.world.agent("echo work > made; mkdir -p deep; echo more > deep/made; sleep 5");
    // Collecting goes on well beyond the eight seconds of the agent.
    stage.fault("rsync", 1, "slow=6000");
    let outcome = stage.run(&[], HANG);
    assert_eq!(outcome.run.done.code, 0, "{}\n{}", outcome.run.done.stdout, outcome.run.done.stderr);
    assert!(outcome.struck && stage.path("repo/made").exists());
}

#[test]
fn a_stray_process_of_one_iteration_does_not_reach_the_next() {
    let world = scaled();
    world.harness(
        "agent: agents/work\nruntime: script\nvalidation_loop:\n  script: scripts/check.sh\n  max_iterations: 2\n",
    );
    world.script("h/scripts/check.sh", "grep -q good output/agent-result.json");
    world.agent(
        "if [ -e second ]; then sleep 4; echo good > $FULLSEND_OUTPUT_DIR/agent-result.json; exit; fi\n\
         touch second; out=$FULLSEND_OUTPUT_DIR/agent-result.json\n\
         nohup setsid sh -c \"sleep 2; echo BAD > $out; sleep 600\" >/dev/null 2>&1 &\n\
         nohup sh -c \"sleep 3; echo BAD > $out\" >/dev/null 2>&1 &\n\
         echo first > $out",
    );
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    assert_eq!(run.json["validated_iteration"], 2);
    assert_eq!(run.file("iteration-2/output/agent-result.json"), "good\n");
    assert_nothing_left(&world);
}

#[test]
fn a_post_script_killed_by_a_signal_fails_the_run() {
    let world = scaled();
    world.harness("agent: agents/work\nruntime: script\npost_script: scripts/post.sh\n");
    world.agent("echo work > made");
    world.script("h/scripts/post.sh", "kill -9 $$");
    let run = world.run(&[]).failure("FS-POST-SCRIPT", 5);
    assert!(run.done.stderr.contains("signal 9"), "{}", run.done.stderr);
    assert!(run.file("changes.patch").contains("+work"));
}

#[test]
fn the_error_carries_the_api_message_not_the_missing_file() {
    let world = scaled();
    world.harness(
        "agent: agents/work\nruntime: script\nvalidation_loop:\n  schema: schemas/s.json\n  max_iterations: 2\n",
    );
    world.write("h/schemas/s.json", r#"{"type":"object"}"#);
    world.agent(&format!(
        "echo '{INIT}'; echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"API Error: 429 quota exceeded\",\"num_turns\":1,\"total_cost_usd\":0}}'"
    ));
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("quota exceeded"), "{}", run.done.stderr);
    assert!(!run.done.stderr.contains("agent-result.json"), "{}", run.done.stderr);
    assert!(run.json["error"]["message"].as_str().unwrap().contains("quota exceeded"));
}
