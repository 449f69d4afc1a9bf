//! Recorded streams once more: every one gets the verdict that lies beside it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::World;

fn streams() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams")
}

#[test]
fn every_recorded_stream_gets_its_recorded_verdict() {
    let world = World::new();
    let text = std::fs::read_to_string(streams().join("verdicts.json")).unwrap();
    let mut verdicts: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    for entry in std::fs::read_dir(streams()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let expected =
            verdicts.remove(&name).unwrap_or_else(|| panic!("{name} has no verdict in verdicts.json"));
        let exit = expected["exit"].to_string();
        let done = world.fullsend(&["replay", path.to_str().unwrap(), "--exit", &exit, "--format", "json"]);
        let got: Value =
            serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{name}: {e}: {}", done.stderr));
        let got = &got[0];
        let outcome = &got["judgement"]["outcome"];
        assert_eq!(*outcome, expected["outcome"], "{name}: {got}");
        assert_eq!(done.code, i32::from(outcome != "success"), "{name}");
        assert_eq!(got["judgement"]["reason"], expected["reason"], "{name}");
        for figure in ["turns", "tool_calls", "cost_usd", "tokens", "permission_denials", "api_retries"] {
            assert_eq!(got["metrics"][figure], expected[figure], "{name}: {figure}");
        }
    }
    assert!(verdicts.is_empty(), "verdicts of streams that are not there: {verdicts:?}");
}

#[test]
fn a_run_directory_is_shown_and_judged_as_the_run_was() {
    let world = World::new();
    let stream = std::fs::read_to_string(streams().join("codex-0.171.0-api-401.jsonl")).unwrap();
    world.write("run/iteration-1/stream.jsonl", &stream);
    let record = json!({"iterations": [{"dir": "iteration-1", "exit": {"status": 1}}]});
    world.write("run/run.json", record.to_string());
    let dir = world.path("run");
    let done = world.fullsend(&["replay", dir.to_str().unwrap()]);
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("FS-AGENT-FAILED") && done.stderr.contains("this key was revoked"),
        "{}",
        done.stderr
    );
    assert!(done.stdout.contains("Retry 1/1"), "{}", done.stdout);
    let quiet = world.fullsend(&["replay", dir.to_str().unwrap(), "--show-agent-output", "none"]);
    assert!(!quiet.stdout.contains("Retry"), "{}", quiet.stdout);
}

/// The bound is generous: the program itself needs about 10 MB.
#[test]
fn a_long_stream_takes_no_more_memory_than_a_short_one() {
    let world = World::new();
    for name in ["claude-2.1.332-edit.jsonl", "codex-0.171.0-edit.jsonl", "opencode-1.18.33-retry.jsonl"] {
        let text = std::fs::read(streams().join(name)).unwrap();
        let path = world.path("long.jsonl");
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
        let mut size = 0;
        while size < 16 << 20 {
            file.write_all(&text).unwrap();
            size += text.len();
        }
        file.flush().unwrap();
        let done = world.fullsend(&["replay", "--stats", path.to_str().unwrap()]);
        let speed: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(speed["bytes"], size, "{name}");
        if let Some(rss) = speed["peak_rss_kib"].as_u64() {
            assert!(rss < 100 * 1024, "{name}: {rss} KiB");
        }
    }
}
