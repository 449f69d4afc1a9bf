//! A job of GitHub Actions as its runner makes it: variables, command files, signals.

use std::collections::BTreeMap;
use std::time::Duration;

use super::commands::{Command, assert_groups, parse, values};
use super::{HOSTILE, hostile_agent};
use crate::lifecycle::{HANG, Live, wait_in_sandbox};
use crate::support::{Done, World};

/// A job on a checkout.
fn job() -> World {
    let mut world = World::new();
    for file in ["output", "summary", "env", "path", "state"] {
        let path = world.write(&format!("gh/{file}"), "");
        let name = match file {
            "summary" => "GITHUB_STEP_SUMMARY".to_owned(),
            other => format!("GITHUB_{}", other.to_uppercase()),
        };
        world.env(&name, path.to_str().unwrap());
    }
    let workspace = world.repo().to_str().unwrap().to_owned();
    world.env("CI", "true").env("GITHUB_ACTIONS", "true").env("GITHUB_WORKSPACE", workspace);
    world
        .env("GITHUB_SERVER_URL", "https://github.com")
        .env("GITHUB_REPOSITORY", "o/r")
        .env("GITHUB_RUN_ID", "42");
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.01");
    world
}

fn text(world: &World, file: &str) -> String {
    std::fs::read_to_string(world.path("gh").join(file)).unwrap()
}

fn outputs(world: &World) -> BTreeMap<String, String> {
    values(&text(world, "output"))
}

/// What the runner sees: both streams.
fn commands(done: &Done) -> Vec<Command> {
    let commands = parse(&format!("{}\n{}", done.stdout, done.stderr));
    assert_groups(&commands);
    commands
}

fn named<'a>(commands: &'a [Command], name: &str) -> Vec<&'a Command> {
    commands.iter().filter(|c| c.name == name).collect()
}

#[test]
fn a_success_is_told_whole() {
    let mut world = job();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "1");
    world
        .agent("printf 'one\\ntwo\\n' > new.txt; echo '{\"a\": 1}' > $FULLSEND_OUTPUT_DIR/agent-result.json");
    let run = world.run(&[]).success();
    let commands = commands(&run.done);
    assert!(named(&commands, "error").is_empty(), "{commands:?}");
    let groups: Vec<_> = named(&commands, "group").iter().map(|c| c.data.clone()).collect();
    assert_eq!(groups, ["scan", "sandbox", "agent, iteration 1 of 1", "delete", "apply"]);
    let outputs = outputs(&world);
    let expected = [
        ("verdict", "success"),
        ("exit-code", "0"),
        ("error-code", ""),
        ("skipped", "false"),
        ("skip-reason", ""),
        ("changed", "true"),
        ("changed-paths", "1"),
        ("result", "{\"a\":1}"),
        ("run-dir", run.dir.as_ref().unwrap().to_str().unwrap()),
        ("run", run.json["run"].as_str().unwrap()),
    ];
    for (name, value) in expected {
        assert_eq!(outputs.get(name).map(String::as_str), Some(value), "{name}");
    }
    let summary = text(&world, "summary");
    for part in [
        "## ✅ work: success (exit 0)\n",
        "### Changes: 1 path(s), +2 −0 lines, applied to the checkout\n",
        "| new.txt | 2 | 0 |\n",
        "### Phases\n",
        "(https://github.com/o/r/actions/runs/42#artifacts)",
    ] {
        assert!(summary.contains(part), "no {part:?} in\n{summary}");
    }
}

#[test]
fn a_failure_has_one_annotation_and_keeps_what_stood_there() {
    let world = job();
    world.write("gh/summary", "# Of another tool\n");
    world.agent("echo work > half; exit 3");
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    let commands = commands(&run.done);
    let errors = named(&commands, "error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].properties["title"], "FS-AGENT-FAILED");
    let outputs = outputs(&world);
    assert_eq!((outputs["verdict"].as_str(), outputs["exit-code"].as_str()), ("failed", "1"));
    assert_eq!((outputs["error-code"].as_str(), outputs["changed"].as_str()), ("FS-AGENT-FAILED", "true"));
    let summary = text(&world, "summary");
    assert!(summary.starts_with("# Of another tool\n## ❌ work: failed (exit 1)\n"), "{summary}");
    assert!(summary.contains("not applied to the checkout"), "{summary}");
}

#[test]
fn mistakes_of_the_harness_are_annotated_where_they_are() {
    let world = job();
    world.write(
        "repo/.fullsend/harness/work.yaml",
        "agent: agents/none\nruntime: script\ntimout_minutes: 2\n",
    );
    let dir = world.path("repo/.fullsend");
    let done = world.fullsend(&["run", "work", "--local", "--fullsend-dir", dir.to_str().unwrap()]);
    assert_eq!(done.code, 2, "{done:?}");
    let commands = commands(&done);
    let errors = named(&commands, "error");
    let key = errors.iter().find(|c| c.properties["title"] == "FS-YAML-KEY").unwrap();
    assert_eq!(key.properties["file"], ".fullsend/harness/work.yaml");
    assert_eq!((key.properties["line"].as_str(), key.properties["col"].as_str()), ("3", "1"));
    let outputs = outputs(&world);
    assert_eq!((outputs["verdict"].as_str(), outputs["exit-code"].as_str()), ("usage", "2"));
    assert!(text(&world, "summary").contains("## ❌ work: usage (exit 2)"));
}

#[test]
fn a_skip_is_told_with_its_reason() {
    let world = job();
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\n");
    world.script(
        "h/scripts/pre.sh",
        "printf 'skipped=true\\nreason=draft <b>\\nlabel=x\\n' > $FULLSEND_PRESCRIPT_OUTPUT",
    );
    let run = world.run(&[]).success();
    assert!(named(&commands(&run.done), "error").is_empty());
    let outputs = outputs(&world);
    assert_eq!((outputs["verdict"].as_str(), outputs["skipped"].as_str()), ("skipped", "true"));
    assert_eq!((outputs["skip-reason"].as_str(), outputs["label"].as_str()), ("draft <b>", "x"));
    assert!(text(&world, "summary").contains("draft `<b>` |"));
}

/// INT, TERM after 7.5 s, KILL after 10 s: the run ends of itself before the second one.
#[test]
fn a_cancel_is_told_before_the_runner_loses_patience() {
    let mut world = job();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "1");
    world.agent("touch begun; trap '' INT TERM; sleep 600");
    let mut live = Live::start(&world, "cancelled", &[]);
    wait_in_sandbox(&world, "begun");
    live.signal("INT");
    let begun = std::time::Instant::now();
    let mut sent = false;
    while !live.ended() && begun.elapsed() < HANG {
        if !sent && begun.elapsed() > Duration::from_millis(7500) {
            live.signal("TERM");
            sent = true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = live.wait(HANG);
    assert_eq!(done.code, 130, "{done:?}");
    let commands = commands(&done);
    assert_eq!(named(&commands, "error")[0].properties["title"], "FS-CANCELLED");
    let outputs = outputs(&world);
    assert_eq!((outputs["verdict"].as_str(), outputs["exit-code"].as_str()), ("cancelled", "130"));
    assert!(text(&world, "summary").contains("## 🚫 work: cancelled (exit 130)"));
    world.assert_clean();
}

#[test]
fn a_timeout_is_told() {
    let mut world = job();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "1");
    world.agent("sleep 600");
    let run = world.run(&["--timeout", "1s"]).failure("FS-TIMEOUT", 124);
    assert_eq!(named(&commands(&run.done), "error").len(), 1);
    assert_eq!(outputs(&world)["verdict"], "timeout");
    assert!(text(&world, "summary").contains("work: timeout (exit 124)"));
}

#[test]
fn hostile_content_forms_no_command_and_breaks_no_file() {
    let mut world = job();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "1").env("THE_TOKEN", "tok-8sd7f6s8d7f6\nsecond-line-of-it");
    hostile_agent(&world);
    world.harness(
        "agent: agents/work\nruntime: script\nsecurity: {enabled: false}\npost_script: scripts/post\nenv:\n  runner:\n    X: ${THE_TOKEN}\n",
    );
    world.script("h/scripts/post", &format!("echo '{}'", HOSTILE.replace('\'', "")));
    let run = world.run(&[]).success();
    let commands = commands(&run.done);
    for command in &commands {
        assert!(
            matches!(command.name.as_str(), "group" | "endgroup" | "warning" | "add-mask"),
            "{command:?} in\n{}",
            run.done.stdout
        );
        assert!(!command.data.contains("owned"), "{command:?}");
    }
    let groups: Vec<_> = named(&commands, "group").iter().map(|c| c.data.clone()).collect();
    assert_eq!(groups, ["sandbox", "agent, iteration 1 of 1", "delete", "post-script"]);
    let masks: Vec<_> = named(&commands, "add-mask").iter().map(|c| c.data.clone()).collect();
    assert_eq!(masks, ["second-line-of-it", "tok-8sd7f6s8d7f6"]);
    let outputs = outputs(&world);
    assert_eq!(outputs["verdict"], "success");
    assert_eq!(outputs["result"], "{\"text\":\"a\\nverdict<<X\\nb\"}");
    let summary = text(&world, "summary");
    // The name is whole, in one cell, and nothing of it is outside of code.
    assert!(summary.contains("\n| `::error::name \\| <b>.md` | 1 | 0 |\n"), "{summary}");
    let lines = summary.lines().filter(|line| !line.starts_with("| Artefacts | "));
    let bare: String = lines.flat_map(|line| line.split('`').step_by(2)).collect();
    assert!(!bare.contains(['<', '[', '\\', '$', '@']), "{bare}");
    assert_eq!((text(&world, "env"), text(&world, "path")), (String::new(), String::new()));
}
