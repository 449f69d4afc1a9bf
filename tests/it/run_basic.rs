//! The main job: what a run leaves, says, and returns.

use crate::support::{GENERATIONS, World};

#[test]
fn results_come_back_and_the_sandbox_is_gone() {
    for generation in GENERATIONS {
        let mut world = World::new();
        world.personality(generation);
        world.agent(
            r#"
            echo "hello from the agent"
            echo "to stderr" >&2
            echo '{"ok":true}' > "$FULLSEND_OUTPUT_DIR/agent-result.json"
            mkdir -p "$FULLSEND_OUTPUT_DIR/sub dir"; echo x > "$FULLSEND_OUTPUT_DIR/sub dir/x"
            "#,
        );
        let run = world.run(&[]).success();
        assert_eq!(run.json["schema"], "fullsend.run/1");
        assert_eq!(run.json["verdict"], "success");
        assert_eq!(run.json["exit_code"], 0);
        assert_eq!(run.json["iterations"][0]["ended_by"], "itself");
        assert!(run.json["openshell"].as_str().unwrap().contains(generation), "{}", run.json["openshell"]);
        assert_eq!(run.file("iteration-1/stream.jsonl"), "hello from the agent\n");
        assert!(run.file("iteration-1/stderr.log").contains("to stderr"));
        assert_eq!(run.file("iteration-1/output/agent-result.json"), "{\"ok\":true}\n");
        assert_eq!(run.file("iteration-1/output/sub dir/x"), "x\n");
        assert!(run.done.stdout.contains("hello from the agent"));
        let last: Vec<_> = run.done.stdout.lines().rev().take(4).collect();
        assert!(last[3].starts_with("verdict  success (exit 0"), "{last:?}");
        assert!(
            last[2].starts_with("reason") && last[1].starts_with("results") && last[0].starts_with("next")
        );
        world.assert_clean();
    }
}

#[test]
fn a_failing_agent_is_a_failure_and_its_work_is_not_lost() {
    let world = World::new();
    world.agent("echo work > file; echo out > $FULLSEND_OUTPUT_DIR/o; exit 3");
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert_eq!(run.json["verdict"], "failed");
    assert!(!world.repo().join("file").exists(), "a failed run must not touch the checkout");
    assert!(run.file("changes.patch").contains("+work"));
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    world.assert_clean();
}

#[test]
fn a_result_event_with_an_error_is_a_failure_whatever_the_status() {
    let world = World::new();
    world.agent(
        r#"
        echo '{"type":"system","subtype":"init","model":"m","session_id":"s"}'
        echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401","num_turns":1,"total_cost_usd":0}'
        "#,
    );
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("API Error: 401"), "{}", run.done.stderr);
}

#[test]
fn a_stream_without_a_result_is_incomplete() {
    let world = World::new();
    world.agent(
        r#"echo '{"type":"system","subtype":"init","model":"m","session_id":"s"}'; printf '{"type":"assis'"#,
    );
    let run = world.run(&[]).failure("FS-AGENT-INCOMPLETE", 1);
    assert_eq!(run.json["verdict"], "incomplete");
}

#[test]
fn the_deadline_ends_the_agent_and_keeps_its_work() {
    let world = World::new();
    world.agent("echo before > $FULLSEND_OUTPUT_DIR/o; sleep 600 & sleep 600");
    let run = world.run(&["--timeout", "2s"]).failure("FS-TIMEOUT", 124);
    assert_eq!(run.json["verdict"], "timeout");
    assert_eq!(run.json["iterations"][0]["ended_by"], "deadline");
    assert_eq!(run.file("iteration-1/output/o"), "before\n");
    world.assert_clean();
}

#[test]
fn scripts_run_in_order_with_their_environment() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\npost_script: scripts/post.sh\n\
         env:\n  runner: {SAID: \"${WORD} $$1\"}\n  sandbox: {ASK: \"it's $$5\"}\n",
    );
    world.script("h/scripts/pre.sh", "echo pre >> \"$ORDER\"; [ \"$SAID\" = 'good $1' ]");
    world.script(
        "h/scripts/post.sh",
        "echo post >> \"$ORDER\"; cat \"$REPO_DIR/made\" >> \"$ORDER\"; git -C \"$REPO_DIR\" status --porcelain >> \"$ORDER\"; pwd >> \"$ORDER\"",
    );
    world.agent("echo \"$ASK\" > made");
    let env =
        world.write("vars.env", format!("WORD=good\nexport ORDER='{}'\n", world.path("order").display()));
    let run = world.run(&["--env-file", env.to_str().unwrap()]).success();
    let order = std::fs::read_to_string(world.path("order")).unwrap();
    let dir = run.dir.as_ref().unwrap().display();
    assert_eq!(order, format!("pre\npost\nit's $5\n?? made\n{dir}\n"));
    assert!(!world.repo().join("made").exists(), "with a post-script the checkout is left alone");
    world.assert_clean();
}

#[test]
fn a_skip_ends_neutrally_without_touching_the_gateway() {
    let mut world = World::new();
    world.personality("0.1.10");
    world.harness(
        "agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\npost_script: scripts/post.sh\n",
    );
    world.script("h/scripts/pre.sh", "echo nothing to do; exit 78");
    world.script("h/scripts/post.sh", "touch \"$HOME/never\"");
    let run = world.run(&[]).success();
    assert_eq!(run.json["verdict"], "skipped");
    assert_eq!(run.json["skip_reason"], "nothing to do");
    assert!(!world.path("home/never").exists());
    let created = world
        .calls()
        .iter()
        .any(|c| c["argv"].to_string().contains("create") && !c["argv"].to_string().contains("--help"));
    assert!(!created, "{:?}", world.calls());
    world.assert_clean();
}

#[test]
fn a_github_job_learns_of_a_skip() {
    let mut world = World::new();
    let outputs = world.write("outputs", "");
    world.env("GITHUB_ACTIONS", "true").env("GITHUB_OUTPUT", outputs.to_str().unwrap());
    world.run(&[]).success();
    // The end of a run has outputs of its own, behind the name of the first.
    let text = std::fs::read_to_string(&outputs).unwrap();
    assert!(text.starts_with("skipped=false\nverdict<<"), "{text}");
    std::fs::write(&outputs, "").unwrap();
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\n");
    world.script(
        "h/scripts/pre.sh",
        "printf 'skipped=true\\nreason=draft\\nlabel=a b\\n' > $FULLSEND_PRESCRIPT_OUTPUT",
    );
    let run = world.run(&[]).success();
    assert!(run.done.stdout.contains("::endgroup::"), "{}", run.done.stdout);
    let text = std::fs::read_to_string(&outputs).unwrap();
    let text = text.split("verdict<<").next().unwrap();
    let words: Vec<_> = text.lines().filter(|l| !l.starts_with("fullsend_") && !l.contains("<<")).collect();
    assert_eq!(words, ["skipped=true", "draft", "a b"]);
}

#[test]
fn failing_scripts_fail_the_run() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\n");
    world.script("h/scripts/pre.sh", "echo why >&2; exit 4");
    let run = world.run(&[]).failure("FS-PRE-SCRIPT", 5);
    assert!(run.done.stdout.contains("why"));
    world.harness("agent: agents/work\nruntime: script\npost_script: scripts/post.sh\n");
    world.script("h/scripts/post.sh", "exit 1");
    let run = world.run(&[]).failure("FS-POST-SCRIPT", 5);
    assert_eq!(run.json["verdict"], "script_failed");
    world.assert_clean();
}

#[test]
fn the_validation_loop_tries_again_and_the_valid_iteration_counts() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\nvalidation_loop:\n  script: scripts/check.sh\n  schema: schemas/s.json\n  max_iterations: 3\npost_script: scripts/post.sh\n",
    );
    world.write("h/schemas/s.json", r#"{"type":"object","required":["n"]}"#);
    world.script("h/scripts/check.sh", "grep -q 2 output/agent-result.json || { echo not yet; exit 1; }");
    world.script(
        "h/scripts/post.sh",
        "cat \"$FULLSEND_VALIDATED_ITERATION_DIR/agent-result.json\" > \"$HOME/got\"",
    );
    world.agent("n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; echo \"{\\\"n\\\":$n}\" > $FULLSEND_OUTPUT_DIR/agent-result.json");
    let run = world.run(&[]).success();
    assert_eq!(run.json["validated_iteration"], 2);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 2);
    assert_eq!(std::fs::read_to_string(world.path("home/got")).unwrap(), "{\"n\":2}\n");
    world.script("h/scripts/check.sh", "echo never good; exit 1");
    let run = world.run(&[]).failure("FS-VALIDATION", 1);
    assert!(run.done.stderr.contains("after 3 iterations") && run.done.stderr.contains("never good"));
    world.assert_clean();
}

#[test]
fn what_an_iteration_left_is_not_the_result_of_the_next() {
    let world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\nvalidation_loop:\n  script: scripts/check.sh\n  max_iterations: 2\n",
    );
    world.script("h/scripts/check.sh", "ls -A output; [ -e output/late ] || [ -e output/second ]");
    // The first iteration leaves a process that writes later, in a session of its own.
    world.agent(
        "[ -e seen ] && { sleep 3; exit 0; }\ntouch seen \"$FULLSEND_OUTPUT_DIR/.first\"\n\
         setsid nohup sh -c 'sleep 2; touch \"$FULLSEND_OUTPUT_DIR/late\"' >/dev/null 2>&1 &",
    );
    let run = world.run(&[]).failure("FS-VALIDATION", 1);
    let second = run.dir.as_ref().unwrap().join("iteration-2/output");
    assert_eq!(std::fs::read_dir(second).unwrap().count(), 0);
    world.assert_clean();
}

#[test]
fn a_read_only_repository_is_reported_not_imported() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\nreadonly_repo: true\n");
    world.agent("chmod u+w . ; echo x > sneaked");
    let run = world.run(&[]).success();
    assert!(!world.repo().join("sneaked").exists());
    assert!(run.done.stdout.contains("read-only repository"), "{}", run.done.stdout);
}

#[test]
fn a_link_in_place_of_the_repository_is_not_followed() {
    let world = World::new();
    world.agent("cd .. && mv repo away && ln -s /etc repo");
    world.run(&[]).failure("FS-IMPORT-BLOCKED", 4);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert!(!world.repo().join("passwd").exists());
    world.assert_clean();
}

#[test]
fn a_kept_sandbox_is_named_with_the_way_in_and_out() {
    let world = World::new();
    let run = world.run(&["--keep-sandbox"]).success();
    let name = run.json["sandbox"].as_str().unwrap();
    assert!(run.done.stdout.contains(&format!("sandbox exec --name {name}")), "{}", run.done.stdout);
    let out = format!("fullsend stop {}", run.json["run"].as_str().unwrap());
    assert!(run.done.stdout.contains(&out), "{}", run.done.stdout);
    let gone = world.fullsend(&["stop", name]);
    assert_eq!(gone.code, 0, "{gone:?}");
    world.assert_clean();
}

#[test]
fn a_cancel_salvages_deletes_and_says_so() {
    use std::time::{Duration, Instant};
    for (signal, exit) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let world = World::new();
        world.agent("echo salvaged > $FULLSEND_OUTPUT_DIR/o; touch $FULLSEND_OUTPUT_DIR/started; trap '' TERM INT; sleep 600");
        let args = world.run_args(&[]);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let mut command = world.command(crate::support::fullsend(), &args, &world.repo());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_for(&world.path("state/fullsend/local"), "started");
        let begun = Instant::now();
        let kill = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let code = child.wait().unwrap().code().unwrap_or(-1);
        assert!(begun.elapsed() < Duration::from_secs(35), "the end took {:?}", begun.elapsed());
        let output = child.wait_with_output().unwrap();
        let run = world.collect(crate::support::Done {
            code,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
        let run = run.failure("FS-CANCELLED", exit);
        assert_eq!(run.json["verdict"], "cancelled");
        assert_eq!(run.file("iteration-1/output/o"), "salvaged\n");
        world.assert_clean();
    }
}

#[test]
fn a_killed_run_leaves_nothing() {
    let world = World::new();
    world.agent("touch $FULLSEND_OUTPUT_DIR/started; sleep 600");
    let args = world.run_args(&[]);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut command = world.command(crate::support::fullsend(), &args, &world.repo());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_for(&world.path("state/fullsend/local"), "started");
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = std::time::Instant::now();
    while world.path("state/fullsend/runs").read_dir().unwrap().next().is_some() {
        assert!(begun.elapsed().as_secs() < 60, "the guard did not close the journal");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    world.assert_clean();
}

/// Waits until a file of that name appears below a directory.
fn wait_for(dir: &std::path::Path, name: &str) {
    let begun = std::time::Instant::now();
    loop {
        let found = crate::support::files_below(dir).iter().any(|(p, _)| p.ends_with(name));
        if found {
            return;
        }
        assert!(begun.elapsed().as_secs() < 60, "{name} did not appear");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
