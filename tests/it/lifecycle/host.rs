//! What the host does to a run: its directories, its users, its terminals.

use std::os::unix::fs::MetadataExt as _;

use super::{HANG, Live, assert_nothing_left, run_of, scaled, wait_in_sandbox};
use crate::support::{World, fullsend};

#[test]
fn a_checkout_that_moved_is_told_as_that_and_the_work_is_kept() {
    let world = scaled();
    world.agent("echo work > made; touch $FULLSEND_OUTPUT_DIR/started; sleep 3");
    let live = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "started");
    std::fs::rename(world.repo(), world.path("elsewhere")).unwrap();
    let done = live.wait(HANG);
    std::fs::rename(world.path("elsewhere"), world.repo()).unwrap();
    let run = run_of(&world, done);
    assert!(!run.done.stderr.contains("FS-TOOL-MISSING"), "{}", run.done.stderr);
    assert_eq!(run.done.code, 3, "{}", run.done.stderr);
    assert!(run.done.stderr.contains(world.repo().to_str().unwrap()), "{}", run.done.stderr);
    assert_eq!(run.file("iteration-1/changed-files/made"), "work\n");
    assert!(run.done.stderr.contains("changed-files"), "{}", run.done.stderr);
    assert_nothing_left(&world);
}

#[test]
fn a_hangup_that_was_ignored_from_the_start_stays_ignored() {
    let world = scaled();
    world.agent("echo work > made; touch $FULLSEND_OUTPUT_DIR/started; sleep 3");
    let args = world.run_args(&[]);
    let mut command = world.command("sh", &["-c", "trap '' HUP; exec \"$0\" \"$@\""], &world.repo());
    command.arg(fullsend()).args(args);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_in_sandbox(&world, "started");
    super::signal(&child.id().to_string(), "HUP");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(world.repo().join("made").exists());
    assert_nothing_left(&world);
}

#[test]
fn a_user_without_an_account_is_told_before_anything_is_made() {
    // What ssh does for such a user, and a passwd that has nobody: needs the power to change the user.
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("SKIPPED a user without an account: only root may become one");
        return;
    }
    let world = World::new();
    open_to_all(&world.path(""));
    // Its own repository: that of somebody else is another story.
    let done = std::process::Command::new("chown").args(["-R", "54321"]).arg(world.repo()).status().unwrap();
    assert!(done.success());
    let args = world.run_args(&[]);
    let uid = ["--reuid", "54321", "--regid", "54321", "--clear-groups"];
    let mut command = world.command("setpriv", &uid, &world.repo());
    command.arg(fullsend()).args(args);
    let run = world.collect(world.finish(command)).failure("FS-NO-ACCOUNT", 2);
    assert!(run.done.stderr.contains("54321") && run.dir.is_none(), "{}", run.done.stderr);
}

fn open_to_all(dir: &std::path::Path) {
    let done = std::process::Command::new("chmod").args(["-R", "a+rwX"]).arg(dir).status().unwrap();
    assert!(done.success());
}

#[test]
fn temp_files_outside_the_private_directory_go_with_a_killed_run() {
    let mut world = scaled();
    // Too deep for a socket, so that its directory is another one.
    let long = format!("{}/{}", world.path("tmp").display(), "d".repeat(100));
    let runtime = world.path("home/run");
    std::fs::create_dir_all(&long).unwrap();
    std::fs::create_dir_all(&runtime).unwrap();
    world.env("TMPDIR", &long).env("XDG_RUNTIME_DIR", runtime.to_str().unwrap());
    world.agent("touch $FULLSEND_OUTPUT_DIR/started; sleep 60");
    let live = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "started");
    let names = || std::fs::read_dir(&runtime).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names().len(), 1, "the test itself");
    live.signal("KILL");
    assert_eq!(live.wait(HANG).code, -9);
    let begun = std::time::Instant::now();
    while !names().is_empty() || std::fs::read_dir(&long).unwrap().next().is_some() {
        assert!(begun.elapsed() < HANG, "left: {:?}", names());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    std::fs::remove_dir(&long).unwrap();
    assert_nothing_left(&world);
}

#[test]
fn the_profile_that_is_sent_lies_in_the_private_directory() {
    let mut world = scaled();
    world.personality("0.1.10");
    world.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
    world.write("h/providers/p.yaml", "name: p\ntype: t\ncredentials: {TOKEN: some-secret-value}\n");
    let profile = |text: &str| {
        world.write("h/profiles/t.yaml", format!(
            "id: t\ndisplay_name: {text}\ncredentials:\n  - name: token\n    env_vars: [TOKEN]\nendpoints: []\n"
        ));
    };
    profile("One");
    world.run(&[]).success();
    profile("Two");
    world.run(&[]).success();
    let update = world
        .calls()
        .into_iter()
        .find(|c| c["argv"][0] == "profile" && c["argv"][1] == "update" && c["argv"][2] != "--help");
    let argv = update.expect("the profile is updated")["argv"].clone();
    let file = argv
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.as_str().unwrap())
        .find(|a| a.contains("fullsend-profile-"))
        .unwrap()
        .to_owned();
    assert!(
        std::path::Path::new(&file)
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("fullsend-"),
        "{file}"
    );
    world.assert_clean();
}
