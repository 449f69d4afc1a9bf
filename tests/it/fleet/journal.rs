//! A journal that is not as we wrote it.

use std::path::Path;

use serde_json::Value;

use super::{Sweep, WORKING, dead_run, entries, json, look, sandboxes};
use crate::support::World;

#[test]
fn strange_files_in_the_journal_are_shown_and_left_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.agent(WORKING);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let entry = entries(&world).remove(0);
    let text = std::fs::read_to_string(&entry).unwrap();
    let runs = "state/fullsend/runs";
    world.write(&format!("{runs}/aaaaaaaaaaaa.json"), &text[..text.len() / 2]);
    world.write(&format!("{runs}/bbbbbbbbbbbb.json"), text.replacen("\"version\": 1", "\"version\": 2", 1));
    std::os::unix::fs::symlink(&entry, world.path(format!("{runs}/cccccccccccc.json"))).unwrap();
    // The same run once more, and a directory to be removed that no run makes.
    world.write(&format!("{runs}/dddddddddddd.json"), &text);
    let ps = json(&world, &["ps"]);
    let why: Vec<_> =
        ps["left_alone"].as_array().unwrap().iter().map(|f| f["why"].as_str().unwrap()).collect();
    assert_eq!(why.len(), 4, "{ps:#}");
    for (why, expected) in
        why.iter().zip(["not a journal entry", "version is 2", "symbolic link", "another name"])
    {
        assert!(why.contains(expected), "{why}");
    }
    assert_eq!(ps["runs"].as_array().unwrap().len(), 1);
    let reaped = look(&world, &["reap"]);
    assert_eq!(reaped.code, 0, "{reaped:?}");
    assert_eq!((entries(&world).len(), sandboxes(&world).len()), (4, 0), "{reaped:?}");

    std::fs::set_permissions(world.path(runs), std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = look(&world, &["reap"]);
    assert_eq!(refused.code, 3, "a journal that others can write is not believed: {refused:?}");
    assert!(refused.stderr.contains("error[FS-IO]"), "{refused:?}");
}

#[test]
fn paths_of_an_entry_that_are_not_ours_stay() {
    let world = World::new();
    world.agent(WORKING);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let entry = entries(&world).remove(0);
    let mut value: Value = serde_json::from_slice(&std::fs::read(&entry).unwrap()).unwrap();
    let real = value["dirs"][0].as_str().unwrap().to_owned();
    world.write("precious/file", "x");
    std::os::unix::fs::symlink(world.path("precious"), world.path("tmp/fullsend-link")).unwrap();
    value["dirs"] = serde_json::json!([world.path("precious"), world.path("tmp/fullsend-link"), real]);
    std::fs::write(&entry, value.to_string()).unwrap();
    let reaped = json(&world, &["reap"]);
    assert_eq!(reaped["runs"][0]["dirs"], serde_json::json!([real]), "{reaped:#}");
    assert_eq!(reaped["runs"][0]["kept_dirs"].as_array().unwrap().len(), 2);
    assert!(world.path("precious/file").exists() && world.path("tmp/fullsend-link").is_symlink());
    assert!(!Path::new(&real).exists() && entries(&world).is_empty());
}

#[test]
fn the_staged_trees_of_further_iterations_after_api_failures_are_named_too() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\napi_retries: 2\n");
    world.agent(WORKING);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let entry: Value = serde_json::from_slice(&std::fs::read(&entries(&world)[0]).unwrap()).unwrap();
    let (run, dirs) = (entry["run"].as_str().unwrap(), entry["dirs"].as_array().unwrap());
    for n in 1..=3 {
        let name = format!(".repo.fullsend-{run}-{n}");
        assert!(dirs.iter().any(|d| d.as_str().unwrap().ends_with(&name)), "{name}: {dirs:?}");
    }
    assert_eq!(look(&world, &["reap"]).code, 0);
    world.assert_clean();
}
