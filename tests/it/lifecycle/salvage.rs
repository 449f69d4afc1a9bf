//! What an agent left is on the host also where it made that hard.

use super::{HANG, Live, assert_nothing_left, run_of, scaled};

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
    world.agent("echo said; echo out > $FULLSEND_OUTPUT_DIR/o; kill -9 -1; sleep 60");
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
