//! What an agent left is on the host also where it made that hard.

use super::{HANG, Live, assert_nothing_left, run_of, scaled};
use crate::support::{Run, World};

#[test]
fn directories_and_files_closed_by_the_agent_are_opened_up() {
    let world = scaled();
    world.agent(
        "echo out > $FULLSEND_OUTPUT_DIR/o; mkdir $FULLSEND_OUTPUT_DIR/closed\n\
         echo in > $FULLSEND_OUTPUT_DIR/closed/f; chmod 0 $FULLSEND_OUTPUT_DIR/closed\n\
         echo secret > $FULLSEND_OUTPUT_DIR/mute; chmod 0 $FULLSEND_OUTPUT_DIR/mute\n\
         mkdir z; echo work > z/made; chmod 0 z; echo more > made; chmod 0 made",
    );
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    assert_eq!(run.file("iteration-1/output/closed/f"), "in\n");
    assert_eq!(run.file("iteration-1/output/mute"), "secret\n");
    let text = |below: &str| std::fs::read_to_string(world.repo().join(below)).unwrap();
    assert_eq!((text("z/made"), text("made")), ("work\n".to_owned(), "more\n".to_owned()));
    assert_nothing_left(&world);
}

/// What the agent can close around its results, and not only in them.
#[test]
fn directories_closed_around_the_results_are_opened_up() {
    for closed in ["$PWD", "$FULLSEND_OUTPUT_DIR", "$PWD/.git"] {
        let (_world, run) = closing(closed);
        let run = run.success();
        assert_eq!(run.file("iteration-1/output/o"), "out\n", "{closed}");
    }
    // With these the runner's own files are closed too, which counts as an attack on it; what the agent made comes home.
    for closed in ["$PWD/..", "$HOME", "$PWD/../.fullsend"] {
        let (_world, run) = closing(closed);
        let run = run.failure("FS-IMPORT-BLOCKED", 4);
        assert_eq!(run.file("iteration-1/output/o"), "out\n", "{closed}\n{}", run.done.stdout);
        assert_eq!(run.file("iteration-1/stream.jsonl"), "said\n", "{closed}");
    }
}

/// A run whose agent closes a directory at its end.
fn closing(dir: &str) -> (World, Run) {
    let world = scaled();
    world.agent(&format!(
        "echo said; echo out > $FULLSEND_OUTPUT_DIR/o; echo work > made; sleep 1; chmod 0 \"{dir}\""
    ));
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG));
    assert_eq!(world.repo().join("made").exists(), run.done.code == 0, "{dir}\n{}", run.done.stdout);
    assert_nothing_left(&world);
    (world, run)
}

#[test]
fn words_and_ends_in_the_login_files_break_no_answer() {
    for line in ["echo noise", "printf 'no newline'; trap 'echo bye' EXIT", "exit 3", "exec sleep 600"] {
        let world = scaled();
        world.agent(&format!(
            "echo said; echo out > $FULLSEND_OUTPUT_DIR/o; echo work > made\n\
             echo \"{line}\" >> ~/.profile; echo \"{line}\" >> ~/.bash_profile"
        ));
        let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
        assert_eq!(run.file("iteration-1/output/o"), "out\n", "{line}");
        assert_eq!(run.file("iteration-1/stream.jsonl"), "said\n", "{line}");
        assert!(world.repo().join("made").exists(), "{line}");
        assert_nothing_left(&world);
    }
}

#[test]
fn artefacts_survive_a_listing_that_cannot_be_had_and_an_import_that_is_refused() {
    for (what, code, exit) in [
        ("rm -rf \"$PWD\"", "FS-IMPORT", 3),
        ("mv \"$PWD\" ../away; ln -s /etc \"$PWD\"", "FS-IMPORT-BLOCKED", 4),
        ("mkdir -p sub/.git; echo x > sub/.git/config", "FS-IMPORT-BLOCKED", 4),
    ] {
        let world = scaled();
        world.agent(&format!("echo said; echo out > $FULLSEND_OUTPUT_DIR/o; echo err >&2; {what}"));
        let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure(code, exit);
        assert_eq!(run.file("iteration-1/output/o"), "out\n", "{what}");
        assert_eq!(run.file("iteration-1/stream.jsonl"), "said\n", "{what}");
        assert_eq!(run.file("iteration-1/stderr.log"), "err\n", "{what}");
        assert_nothing_left(&world);
    }
}

#[test]
fn an_agent_that_kills_everything_is_told_as_that() {
    let world = scaled();
    world.agent("echo said; echo out > $FULLSEND_OUTPUT_DIR/o; sleep 2; kill -9 -1; sleep 60");
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG));
    let told = &run.done.stderr;
    assert!(!told.contains("could not be started"), "{told}");
    let run = run.failure("FS-SUPERVISOR", 3);
    assert!(run.done.stderr.contains("was killed"), "{}", run.done.stderr);
    // Its first process ended too, and a sandbox without it cannot be entered: the output went with it, and that is said.
    assert!(
        run.done.stdout.contains("not everything of iteration 1 could be fetched"),
        "{}",
        run.done.stdout
    );
    assert_eq!(run.file("iteration-1/stream.jsonl"), "said\n");
    assert_nothing_left(&world);
}

#[test]
fn a_supervisor_that_was_killed_alone_costs_no_output() {
    let world = scaled();
    world.agent(
        "echo said; echo out > $FULLSEND_OUTPUT_DIR/o; echo 'echo noise' >> ~/.profile\n\
         kill -9 $(cat /sandbox/workspace/.fullsend/iteration-1/watch); sleep 60",
    );
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-SUPERVISOR", 3);
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    assert_eq!(run.file("iteration-1/stream.jsonl"), "said\n");
    assert_nothing_left(&world);
}

#[test]
fn links_and_special_files_of_the_output_are_spoken_of() {
    let world = scaled();
    world.agent(
        "cd $FULLSEND_OUTPUT_DIR; echo out > o; ln -s o link; ln -s /etc/passwd away; mkdir d; mkfifo d/fifo",
    );
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).success();
    let mut left: Vec<_> = run.json["iterations"][0]["left_out"].as_array().unwrap().clone();
    left.sort_by_key(ToString::to_string);
    assert_eq!(left, ["output/away", "output/d/fifo", "output/link"]);
    assert!(run.done.stdout.contains("links and special files are not handed over"), "{}", run.done.stdout);
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    assert_nothing_left(&world);
}

#[test]
fn a_transfer_that_hangs_is_no_attack() {
    let stage = crate::faults::stage::Stage::new();
    stage.fault("rsync", 1, "hang");
    let outcome = stage.run(&[], HANG * 2);
    assert!(outcome.struck);
    assert_eq!(outcome.run.done.code, 0, "{}\n{}", outcome.run.done.stdout, outcome.run.done.stderr);
    assert!(outcome.run.done.stdout.contains("took longer"), "{}", outcome.run.done.stdout);
}

#[test]
fn repositories_that_the_agent_made_are_told_in_a_line_each_and_the_rest_is_a_patch() {
    let world = scaled();
    let tell = "echo work > made; echo edit >> README.md; git add made; git commit -q -m Work\n\
                mkdir vendor; git init -q vendor/lib; echo c > vendor/lib/c\n\
                git -C vendor/lib add -A; git -C vendor/lib commit -q -m Lib\n\
                git worktree add -q trees/side -b side; echo out > $FULLSEND_OUTPUT_DIR/o";
    world.agent(tell);
    let before = world.git(&["status", "--porcelain"]);
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-IMPORT-BLOCKED", 4);
    let detail = run.json["error"]["detail"].as_str().unwrap();
    let lines: Vec<_> = detail.lines().collect();
    assert_eq!(
        lines,
        [
            "trees/side/.git: a git repository inside the repository",
            "vendor/lib/.git: a git repository inside the repository"
        ]
    );
    let help = run.json["error"]["help"].as_str().unwrap();
    assert!(help.contains("git apply") && help.contains("vendor/lib"), "{help}");
    assert_eq!(world.git(&["status", "--porcelain"]), before, "refused means untouched");
    assert_eq!(run.file("iteration-1/output/o"), "out\n");
    // The next step that it names works: everything but the .git of those repositories.
    let at = |name: &str| run.dir.as_ref().unwrap().join(name).to_str().unwrap().to_owned();
    world.git(&["apply", &at("changes.patch")]);
    for (path, text) in [("made", "work\n"), ("vendor/lib/c", "c\n"), ("trees/side/made", "work\n")] {
        assert_eq!(std::fs::read_to_string(world.repo().join(path)).unwrap(), text);
    }
    assert!(!world.repo().join("vendor/lib/.git").exists() && !world.repo().join("trees/side/.git").exists());
    world.git(&["fetch", "-q", &at("changes.bundle"), "refs/heads/main:refs/heads/agent"]);
    assert_eq!(world.git(&["show", "agent:made"]), "work\n");
    assert_nothing_left(&world);
}

#[test]
fn a_repository_beside_a_name_that_is_no_accident_gives_no_patch() {
    let world = scaled();
    world.agent("git init -q lib; echo x > lib/x; mkdir up; echo evil > up/.GIT");
    let run = run_of(&world, Live::start(&world, "a", &[]).wait(HANG)).failure("FS-IMPORT-BLOCKED", 4);
    assert_eq!(run.json["error"]["detail"].as_str().unwrap().lines().count(), 2, "{}", run.json["error"]);
    assert!(!run.dir.unwrap().join("changes.patch").exists());
    assert_nothing_left(&world);
}
