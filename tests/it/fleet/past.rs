//! Results of past runs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Sweep, WORKING, kill_with_guard, start, started, until};
use crate::support::{World, fullsend};

#[test]
fn logs_show_what_was_said_and_how_it_ended() {
    let world = World::new();
    world.agent(r"printf 'first\n\033[31mred\033[0m words\n'; exit 3");
    let first = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    std::thread::sleep(Duration::from_millis(1100));
    world.agent("echo second");
    world.run(&[]).success();
    let out = world.path("out");
    let out = out.to_str().unwrap();
    let id = first.json["run"].as_str().unwrap();
    for word in [id, &id[..8], first.json["sandbox"].as_str().unwrap()] {
        let done = world.fullsend(&["logs", word, "--output-dir", out]);
        assert_eq!(done.code, 0, "{done:?}");
        assert!(done.stdout.contains("  first\n  red words\n"), "{done:?}");
        assert!(done.stdout.contains("verdict  failed (exit 1") && done.stdout.contains("FS-AGENT-FAILED: "));
        assert!(!done.stdout.contains("second"));
    }
    let both = world.fullsend(&["logs", "--agent", "work", "--output-dir", out]).stdout;
    assert!(both.find("  first").unwrap() < both.find("  second").unwrap(), "{both}");
    let newest = world.fullsend(&["logs", "--agent", "work", "--limit", "1", "--output-dir", out]).stdout;
    assert!(newest.contains("  second") && !newest.contains("  first"), "{newest}");
    let done = world.fullsend(&["logs", "--agent", "work", "--output-dir", out, "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&value["runs"][0]["verdict"], &value["runs"][0]["exit_code"]), (&"failed".into(), &1.into()));
    assert!(value["runs"][1]["iterations"][0]["stream"].as_str().unwrap().ends_with("stream.jsonl"));
    let latest = world.fullsend(&["logs", "--output-dir", out]);
    assert!(latest.stdout.starts_with(&format!("The latest run in {out}:\nrun ")), "{latest:?}");
    assert!(latest.stdout.contains("  second") && !latest.stdout.contains("  first"), "{latest:?}");
    for bad in [
        &["logs", "nothing"][..],
        &["logs", "--agent", "other"],
        &["logs", "--since", "1h"],
        &["logs", "x", "--agent", "y"],
    ] {
        let done = world.fullsend(&[bad, &["--output-dir", out]].concat());
        assert_eq!(done.code, 2, "{done:?}");
    }
    let none = world.path("home");
    let done = world.fullsend(&["logs", "--output-dir", none.to_str().unwrap()]);
    assert!(done.code == 2 && done.stderr.contains("there are no runs in"), "{done:?}");
}

/// A run as it is left behind, without running one.
fn past_run(world: &World, id: &str) -> String {
    let name = format!("work-20260301T120000Z-{id}");
    let record = json!({
        "schema": "fullsend.run/1", "run": id, "agent": "work", "started": "2026-03-01T12:00:00Z", "duration_ms": 1000,
        "verdict": "success", "exit_code": 0, "iterations": [{"dir": "iteration-1", "exit": {"status": 0}}],
    });
    world.write(&format!("out/{name}/run.json"), record.to_string());
    world.write(&format!("out/{name}/iteration-1/stream.jsonl"), format!("said by {id}\n"));
    name
}

#[test]
fn every_command_takes_a_run_by_any_of_its_names() {
    let world = World::new();
    let (name, other) = (past_run(&world, "0123456789ab"), past_run(&world, "0123ffffffff"));
    let out = world.path("out");
    let out = out.to_str().unwrap();
    let path = world.path("out").join(&name);
    let commands: [&[&str]; 4] =
        [&["logs"], &["report", "--output", "-"], &["replay"], &["diff-runs", "0123ffffffff"]];
    for command in commands {
        for word in ["0123456789ab", "01234", &name, &format!("{name}/"), path.to_str().unwrap()] {
            let done = world.fullsend(&[command, &[word, "--output-dir", out]].concat());
            assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{command:?} {word}: {done:?}");
            let told = command[0] == "diff-runs" || done.stdout.contains("said by 0123456789ab");
            assert!(told, "{command:?} {word}: {done:?}");
        }
        // From the directory itself, by a relative path.
        let inside = [command, &[".", "--output-dir", out]].concat();
        let done = world.finish(world.command(fullsend(), &inside, &path));
        assert_eq!(done.code, 0, "{command:?}: {done:?}");
        for (word, words) in [
            ("0123", &["is the start of 2 runs", "0123456789ab", "0123ffffffff", "more of the id"][..]),
            ("zz", &["there is no run \"zz\"", "0123456789ab", "0123ffffffff", "--output-dir"]),
            ("/nope/zz", &["/nope/zz does not exist"]),
        ] {
            let done = world.fullsend(&[command, &[word, "--output-dir", out]].concat());
            assert_eq!(done.code, 2, "{command:?} {word}: {done:?}");
            for part in words {
                assert!(done.stderr.contains(part), "no {part:?} in {command:?} {word}: {done:?}");
            }
        }
    }
    assert_ne!(name, other);
}

#[test]
fn prune_removes_old_run_directories_and_nothing_else() {
    let world = World::new();
    world.agent(WORKING);
    let live = start(&world, &[]);
    let _sweep = Sweep(world.path("state"));
    until("the start of the agent", || started(&world) == 1);
    world.agent("true");
    let old = "out/work-20200101T000000Z-0123456789ab";
    world.write(&format!("{old}/iteration-1/stream.jsonl"), "killed before run.json\n");
    world.write("out/notes/keep.txt", "mine");
    world.write("precious/file", "x");
    std::os::unix::fs::symlink(world.path("precious"), world.path(old).join("link")).unwrap();
    std::os::unix::fs::symlink(world.path("precious"), world.path("out/work-20200101T000000Z-bbbbbbbbbbbb"))
        .unwrap();
    world.run(&[]).success();
    // The only one with a record: the live one has none yet.
    let dirs = std::fs::read_dir(world.path("out")).unwrap().map(|e| e.unwrap().path());
    let young = dirs.into_iter().find(|d| d.join("run.json").exists()).unwrap();
    let out = world.path("out");
    let out = out.to_str().unwrap();
    let prune = |more: &[&str]| {
        let done = world.fullsend(&[&["prune", "--output-dir", out], more].concat());
        assert_eq!(done.code, 0, "{done:?}");
        done.stdout
    };
    assert!(prune(&["--older-than", "30d", "--dry-run"]).contains("would remove"));
    assert!(world.path(old).exists());
    let value: Value = serde_json::from_str(&prune(&["--older-than", "30d", "--format", "json"])).unwrap();
    assert_eq!(value["dirs"][0]["run"], "0123456789ab");
    assert!(!world.path(old).exists() && young.exists());
    assert_eq!(prune(&["--older-than", "30d"]), "nothing to prune\n");
    prune(&["--older-than", "0s"]);
    assert!(!young.exists());
    let mut left: Vec<_> = std::fs::read_dir(out).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left.len(), 3, "the live run, the notes and the link stay: {left:?}");
    assert!(world.path("precious/file").exists());
    assert_eq!(world.fullsend(&["prune"]).code, 2, "an age must be given");
    kill_with_guard(&world, live, &[]);
}
