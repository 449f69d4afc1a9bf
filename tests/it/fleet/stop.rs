//! Ending a run from outside.

use std::path::PathBuf;

use super::{Sweep, WORKING, dead_run, json, sandboxes, start, started, until};
use crate::support::World;

#[test]
fn stop_ends_a_run_as_a_cancel_does() {
    let world = World::new();
    world.agent(&format!("echo so far > $FULLSEND_OUTPUT_DIR/o\n{WORKING}"));
    let mut child = start(&world, &[]);
    until("the start of the agent", || started(&world) == 1);
    let ps = json(&world, &["ps"]);
    assert_eq!((&ps["runs"][0]["state"], &ps["runs"][0]["phase"]), (&"running".into(), &"agent".into()));
    let run = ps["runs"][0]["run"].as_str().unwrap();
    let unknown = world.fullsend(&["stop", "ffffffffffff", "--local"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("error[FS-RUN-UNKNOWN]"), "{unknown:?}");
    let stopped = world.fullsend(&["stop", &run[..4], "--local"]);
    assert_eq!((stopped.code, stopped.stdout), (0, format!("run {run} has ended\n")), "{}", stopped.stderr);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let dir = PathBuf::from(ps["runs"][0]["run_dir"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(dir.join("iteration-1/output/o")).unwrap(), "so far\n");
    world.assert_clean();
}

#[test]
fn stop_deletes_what_a_dead_run_has_left() {
    let world = World::new();
    world.agent(WORKING);
    dead_run(&world);
    let _sweep = Sweep(world.path("state"));
    let name = sandboxes(&world).remove(0);
    let stopped = world.fullsend(&["stop", &name, "--local"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.stdout.contains("was deleted"), "{stopped:?}");
    world.assert_clean();
}
