//! A job of GitLab CI: sections on every ending, reports in the formats that GitLab takes, the shell executor.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::commands::{dotenv, sections};
use super::hostile_agent;
use crate::lifecycle::{HANG, Live, wait_in_sandbox};
use crate::support::{Done, World};

fn job() -> World {
    let mut world = World::new();
    let project = world.path("project");
    std::fs::create_dir_all(&project).unwrap();
    world.env("CI", "true").env("GITLAB_CI", "true").env("CI_DISPOSABLE_ENVIRONMENT", "true");
    world.env("CI_PROJECT_DIR", project.to_str().unwrap()).env("NO_COLOR", "1");
    world
}

fn report(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path("project").join(name)).unwrap()
}

fn variables(world: &World) -> BTreeMap<String, String> {
    dotenv(&report(world, "fullsend.env"))
}

/// Sections close on every ending; returns how many there were.
#[track_caller]
fn closed(done: &Done) -> usize {
    assert!(!done.stderr.contains("section_start:"), "{}", done.stderr);
    sections(&done.stdout).len()
}

/// Well-formed as far as tags go: each is closed by its own.
#[track_caller]
fn assert_xml(text: &str) {
    let tag = regex::Regex::new(r#"<(/?)([a-z]+)((?: [a-z]+="[^"<&]*(?:&[a-z]+;[^"<&]*)*")*)(/?)>"#).unwrap();
    let body = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let mut open = Vec::new();
    for found in tag.captures_iter(body) {
        match (&found[1], &found[4]) {
            ("/", _) => assert_eq!(open.pop().as_deref(), Some(&found[2]), "{text}"),
            (_, "/") => {}
            _ => open.push(found[2].to_owned()),
        }
    }
    assert!(open.is_empty(), "{text}");
    assert!(!tag.replace_all(body, "").contains(['<', '>']), "{text}");
}

#[test]
fn a_success_leaves_reports_that_gitlab_takes() {
    let mut world = job();
    world.env("NO_COLOR", "");
    world.agent("echo x > new");
    let run = world.run(&[]).success();
    assert_eq!(closed(&run.done), 5, "scan, sandbox, agent, delete, apply");
    assert!(run.done.stdout.contains("\u{1b}[32m✓"), "GitLab shows colours: {}", run.done.stdout);
    let v = variables(&world);
    assert_eq!((v["FULLSEND_VERDICT"].as_str(), v["FULLSEND_EXIT_CODE"].as_str()), ("success", "0"));
    assert_eq!((v["FULLSEND_CHANGED"].as_str(), v["FULLSEND_CHANGED_PATHS"].as_str()), ("true", "1"));
    assert_xml(&report(&world, "fullsend-junit.xml"));
    assert_eq!(report(&world, "fullsend-code-quality.json"), "[]\n");
    let left = std::fs::read_dir(world.path("project")).unwrap().count();
    assert_eq!(left, 3, "no half-written file stays");
}

#[test]
fn iterations_are_tests_and_a_failure_closes_its_sections() {
    let world = job();
    world.harness(
        "agent: agents/work\nruntime: script\nvalidation_loop: {script: scripts/check, max_iterations: 2}\n",
    );
    world.script("h/scripts/check", "echo 'a <b> & \"c\"'; exit 1");
    let run = world.run(&[]).failure("FS-VALIDATION", 1);
    assert!(closed(&run.done) >= 3);
    let xml = report(&world, "fullsend-junit.xml");
    assert_xml(&xml);
    assert!(xml.contains("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"1\""), "{xml}");
    for number in 1..=2 {
        let took = run.json["iterations"][number - 1]["duration_ms"].as_u64().unwrap();
        let time =
            format!("iteration {number}: the output is valid\" time=\"{}.{:03}\"", took / 1000, took % 1000);
        assert!(took > 0 && xml.contains(&time), "{time}: {xml}");
    }
    assert_eq!(variables(&world)["FULLSEND_ERROR_CODE"], "FS-VALIDATION");
}

#[test]
fn a_skip_and_a_mistake_are_told() {
    let world = job();
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\n");
    world.script("h/scripts/pre.sh", "echo 'a=b $CI_JOB_TOKEN'; exit 78");
    let run = world.run(&[]).success();
    assert_eq!(closed(&run.done), 1);
    let v = variables(&world);
    assert_eq!(
        (v["FULLSEND_SKIPPED"].as_str(), v["FULLSEND_SKIP_REASON"].as_str()),
        ("true", "a_b _CI_JOB_TOKEN")
    );
    world.harness("agent: agents/work\nruntime: script\ntimout_minutes: 1\n");
    let reports = world.path("reports");
    let done = world.run(&["--report-dir", reports.to_str().unwrap()]).done;
    assert_eq!(done.code, 2);
    let text = std::fs::read_to_string(reports.join("fullsend-code-quality.json")).unwrap();
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&list[0]["check_name"], &list[0]["location"]["lines"]["begin"]),
        (&"FS-YAML-KEY".into(), &3.into())
    );
    for field in ["description", "fingerprint", "severity"] {
        assert!(list[0][field].as_str().is_some_and(|v| !v.is_empty()), "{text}");
    }
}

#[test]
fn outputs_of_the_pre_script_reach_later_jobs_as_they_are_or_not_at_all() {
    let world = job();
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\n");
    world.script(
        "h/scripts/pre.sh",
        "printf 'label=a bug\\nPATH=/tmp\\nissue-title=Why is $HOME empty?\\nreason=new issue\\n' > $FULLSEND_PRESCRIPT_OUTPUT",
    );
    let run = world.run(&[]).success();
    let v = variables(&world);
    assert_eq!((v["FULLSEND_PRE_LABEL"].as_str(), v["FULLSEND_PRE_PATH"].as_str()), ("a bug", "/tmp"));
    assert_eq!(v["FULLSEND_PRE_REASON"], "new issue");
    assert!(!v.contains_key("PATH") && !v.contains_key("FULLSEND_PRE_ISSUE_TITLE"), "{v:?}");
    let said = format!("{}{}", run.done.stdout, run.done.stderr);
    assert!(said.contains("fullsend.env: the pre-script's output `issue-title` is left out"), "{said}");
    assert_eq!(run.json["outputs"]["issue-title"], "Why is $HOME empty?");
    // A dotenv file has no form for a value of several lines; neither have the outputs of a pre-script.
    world.script("h/scripts/pre.sh", "printf 'a<<EOF\\nx\\ny\\nEOF\\n' > $FULLSEND_PRESCRIPT_OUTPUT");
    let run = world.run(&[]).failure("FS-PRE-SCRIPT", 5);
    assert!(run.done.stderr.contains("several lines"), "{}", run.done.stderr);
    // Also of a skip.
    world.script("h/scripts/pre.sh", "printf 'skipped=true\\nlabel=b\\n' > $FULLSEND_PRESCRIPT_OUTPUT");
    world.run(&[]).success();
    assert_eq!(variables(&world)["FULLSEND_PRE_LABEL"], "b");
}

#[test]
fn a_cancel_closes_its_sections() {
    let world = job();
    world.agent("touch begun; sleep 600");
    let live = Live::start(&world, "cancelled", &[]);
    wait_in_sandbox(&world, "begun");
    live.signal("TERM");
    let done = live.wait(HANG);
    assert_eq!(done.code, 143, "{done:?}");
    assert_eq!(closed(&done), 4);
    assert_eq!(variables(&world)["FULLSEND_VERDICT"], "cancelled");
    world.assert_clean();
}

#[test]
fn a_timeout_closes_its_sections() {
    let world = job();
    world.agent("sleep 600");
    let run = world.run(&["--timeout", "1s"]).failure("FS-TIMEOUT", 124);
    assert_eq!(closed(&run.done), 4);
    assert_xml(&report(&world, "fullsend-junit.xml"));
}

#[test]
fn hostile_content_closes_no_section_and_breaks_no_report() {
    let world = job();
    hostile_agent(&world);
    let run = world.run(&[]).success();
    let names: Vec<_> = sections(&run.done.stdout).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["fullsend_1", "fullsend_2", "fullsend_3", "fullsend_4"]);
    assert_xml(&report(&world, "fullsend-junit.xml"));
    assert_eq!(variables(&world)["FULLSEND_VERDICT"], "success");
}

#[test]
fn the_shell_executor_is_refused_unless_told_otherwise() {
    let mut world = job();
    world.env("CI_SHARED_ENVIRONMENT", "true");
    let begun = std::time::Instant::now();
    let run = world.run(&[]).failure("FS-SHELL-EXECUTOR", 2);
    assert!(run.dir.is_none() && begun.elapsed() < Duration::from_mins(1), "nothing is begun");
    assert_eq!(variables(&world)["FULLSEND_ERROR_CODE"], "FS-SHELL-EXECUTOR");
    world.run(&["--allow-shell-executor"]).success();
    world.env("FULLSEND_ALLOW_SHELL_EXECUTOR", "true");
    world.run(&[]).success();
}
