//! What runs that died have left, and deleting it.

use std::process::Stdio;

use serde_json::Value;

use super::{
    Sweep, WORKING, backend, dead_run, entries, json, kill, kill_with_guard, look, provider, providers,
    sandboxes, start, started, until,
};
use crate::support::{GENERATIONS, World, fullsend};

#[test]
fn a_run_that_died_with_its_guard_is_reaped_once() {
    for generation in GENERATIONS {
        let mut world = World::new();
        world.personality(generation);
        world.agent(WORKING);
        dead_run(&world);
        let _sweep = Sweep(world.path("state"));

        let ps = json(&world, &["ps"]);
        let row = &ps["runs"][0];
        assert_eq!((&ps["schema"], &row["state"]), (&"fullsend.ps/1".into(), &"orphaned".into()), "{ps:#}");
        assert_eq!(row["sandbox_phase"], "Ready");
        assert_eq!((&row["phase"], &row["agent"]), (&"agent".into(), &"work".into()));
        assert_eq!(row["owner"]["here"], true);
        assert!(look(&world, &["ps"]).stdout.contains("can be deleted: fullsend reap"));

        let name = row["sandbox"].as_str().unwrap();
        let dry = json(&world, &["reap", "--dry-run"]);
        assert_eq!((&dry["runs"][0]["sandbox"], &dry["runs"][0]["done"]), (&name.into(), &false.into()));
        assert_eq!(dry["runs"][0]["dirs"].as_array().unwrap().len(), 1, "{dry:#}");
        assert_eq!((sandboxes(&world).len(), entries(&world).len()), (1, 1), "a dry run changes nothing");
        let young = look(&world, &["reap", "--older-than", "1h"]);
        assert_eq!((young.code, young.stdout.as_str()), (0, "nothing to reap\n"));

        let reaped = look(&world, &["reap"]);
        assert_eq!(reaped.code, 0, "{reaped:?}");
        assert!(reaped.stdout.contains(&format!("sandbox   {name}")), "{reaped:?}");
        world.assert_clean();
        let again = look(&world, &["reap"]);
        assert_eq!((again.code, again.stdout.as_str()), (0, "nothing to reap\n"), "{again:?}");
        assert_eq!(look(&world, &["ps"]).stdout, "nothing runs\n");
    }
}

#[test]
fn a_live_run_survives_every_reap_beside_it() {
    let world = World::new();
    world.agent(WORKING);
    let mut live = start(&world, &[]);
    until("the start of the agent", || started(&world) == 1);
    let name = sandboxes(&world).remove(0);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let states = |ps: &Value| -> Vec<_> {
        ps["runs"].as_array().unwrap().iter().map(|r| r["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(states(&json(&world, &["ps"])), ["running", "orphaned"]);
    for _ in 0..2 {
        let reaped = look(&world, &["reap"]);
        assert_eq!(reaped.code, 0, "{reaped:?}");
        assert_eq!(sandboxes(&world), [name.as_str()]);
    }
    assert_eq!(states(&json(&world, &["ps"])), ["running"]);
    backend(&world, &["sandbox", "exec", "--name", &name, "--", "touch", "/sandbox/workspace/output/go"]);
    assert_eq!(live.wait().unwrap().code(), Some(0));
    world.assert_clean();
}

#[test]
fn two_reaps_at_once_are_both_content() {
    let world = World::new();
    world.agent(WORKING);
    dead_run(&world);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let reap = || {
        let mut command = world.command(fullsend(), &["reap", "--local"], &world.repo());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [reap(), reap(), reap()] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    world.assert_clean();
}

#[test]
fn a_create_that_was_cut_off_is_reaped_too() {
    let mut world = World::new();
    world.personality("0.1.10");
    world.env("FULLSEND_WRAP_FAULT", "sandbox create:2:then-hang");
    let child = start(&world, &[]);
    until("the sandbox", || !sandboxes(&world).is_empty());
    kill_with_guard(&world, child, &[]);
    drop(Sweep(world.path("state")));
    let ps = json(&world, &["ps"]);
    assert_eq!((&ps["runs"][0]["phase"], &ps["runs"][0]["state"]), (&"sandbox".into(), &"orphaned".into()));
    let reaped = look(&world, &["reap"]);
    assert_eq!(reaped.code, 0, "{reaped:?}");
    world.assert_clean();
}

#[test]
fn the_staged_tree_of_a_run_that_died_in_its_post_script_goes() {
    let world = World::new();
    world.harness("agent: agents/work\nruntime: script\npost_script: scripts/post.sh\n");
    world.script("h/scripts/post.sh", "touch \"$HOME/started\"; sleep 600");
    world.agent("echo new > made");
    let child = start(&world, &[]);
    until("the post-script", || world.path("home/started").exists());
    kill_with_guard(&world, child, &[]);
    drop(Sweep(world.path("state")));
    let staged = || {
        let names = std::fs::read_dir(world.path("")).unwrap().map(|e| e.unwrap().file_name());
        names.filter(|n| n.to_string_lossy().starts_with(".repo.fullsend-")).count()
    };
    assert_eq!(staged(), 1, "there is something to remove");
    let reaped = json(&world, &["reap"]);
    assert_eq!(reaped["runs"][0]["sandbox"], Value::Null, "{reaped:#}");
    assert_eq!(staged(), 0, "{reaped:#}");
    let dir = std::path::Path::new(reaped["runs"][0]["run_dir"].as_str().unwrap());
    assert!(std::fs::read_to_string(dir.join("changes.patch")).unwrap().contains("+new"));
    world.assert_clean();
}

#[test]
fn providers_of_a_dead_run_go_with_it() {
    let world = World::new();
    world.write("h/profiles/tool.yaml", "id: tool\ndisplay_name: Tool\n");
    world.write("h/providers/gh.yaml", "name: gh\ntype: tool\ncredentials:\n  K: some-secret-value\n");
    world.harness("agent: agents/work\nruntime: script\nproviders: [gh]\n");
    world.agent(WORKING);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let own = providers(&world).remove(0);
    provider(&world, "gh");
    let ps = json(&world, &["ps"]);
    let entry = std::fs::read_to_string(&entries(&world)[0]).unwrap();
    assert!(!entry.contains("some-secret-value"));
    assert_eq!(own, format!("gh-{}", ps["runs"][0]["run"].as_str().unwrap()));
    let reaped = json(&world, &["reap"]);
    assert_eq!(reaped["runs"][0]["providers"], serde_json::json!([own]));
    assert_eq!(providers(&world), ["gh"]);
}

#[test]
fn a_gateway_that_does_not_answer_costs_nothing_but_itself() {
    let mut world = World::new();
    world.personality("0.1.10");
    world.agent(WORKING);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let down = "sandbox list:*:exit=1:stderr=Error: × transport error: Connection refused (os error 111)";
    world.env("FULLSEND_WRAP_FAULT", down);
    for command in ["ps", "reap"] {
        let done = look(&world, &[command]);
        assert_eq!(done.code, 3, "{done:?}");
        assert!(done.stderr.contains("error[FS-GATEWAY]") && done.stderr.contains("help: "), "{done:?}");
    }
    assert_eq!(entries(&world).len(), 1, "what could not be deleted is not forgotten");
    world.env("FULLSEND_WRAP_FAULT", "");
    assert_eq!(look(&world, &["reap"]).code, 0);
    world.assert_clean();
}

#[test]
fn a_watching_reap_goes_on_until_a_signal() {
    let world = World::new();
    world.agent(WORKING);
    let args = ["reap", "--local", "--watch", "1s", "--format", "json"];
    let mut command = world.command(fullsend(), &args, &world.repo());
    let mut watcher = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    until("the end of what was left", || entries(&world).is_empty());
    assert!(watcher.try_wait().unwrap().is_none());
    kill("TERM", watcher.id());
    assert_eq!(watcher.wait().unwrap().code(), Some(143));
    world.assert_clean();
}
