//! What a reader at a terminal sees that a pipe does not get, and the marks beside the phases.

use std::process::Command;

use crate::stub::not_run;
use crate::support::{Done, World, fullsend};

/// Runs a command on a terminal of so many columns; nothing after saying so where there is no `script`.
fn on_terminal(world: &World, columns: u32, line: &str, test: &str) -> Option<Done> {
    if Command::new("script").arg("--version").output().is_err() {
        not_run(test, "there is no script(1) (util-linux)");
        return None;
    }
    let shell = format!("stty cols {columns} rows 40; {} {line}", fullsend().display());
    let mut command = world.command("script", &["-qec", &shell, "/dev/null"], &world.repo());
    command.env("TERM", "dumb").env("NO_COLOR", "1").env("SHELL", "/bin/sh");
    let done = world.finish(command);
    Some(Done { stdout: done.stdout.replace("\r\n", "\n"), ..done })
}

fn widest(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

#[test]
fn errors_fit_the_terminal_and_stay_whole_in_a_pipe() {
    let world = World::new();
    world
        .write("h/harness/broken.yaml", "agent: agents/work\nruntime: script\ntimout_minutes: 3\nmodle: 3\n");
    let dir = world.path("h").display().to_string();
    for (line, words, lines) in [
        ("explain FS-NOSUCH", "help: `fullsend explain` without an argument lists all of them", 2),
        (
            "run work --max-turns -1",
            "help: leave the `-` before the number out; see `fullsend run --help`",
            2,
        ),
        (
            "explain FS-IMAGE-UNPINNED",
            "A tag can be moved to another image at any time; a signature is always",
            0,
        ),
    ] {
        let Some(done) = on_terminal(&world, 60, line, "errors_fit_the_terminal") else { return };
        assert!(widest(&done.stdout) <= 60, "{line}: {}", done.stdout);
        let flat = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{line}: {}", done.stdout);
        if lines > 0 {
            let piped = world.fullsend(&line.split(' ').collect::<Vec<_>>());
            assert_eq!(piped.stderr.lines().count(), lines, "{piped:?}");
            assert!(done.stdout.lines().count() > lines, "{}", done.stdout);
            // An indented line goes on with the one above.
            assert!(done.stdout.lines().all(|l| l.starts_with("  ") || l.contains(": ")), "{}", done.stdout);
        }
    }
    // Several problems: each advice is one line for whoever reads a pipe.
    let line = format!(
        "run broken --local --dry-run --fullsend-dir {dir} --target-repo {}",
        world.path("home").display()
    );
    let piped = world.fullsend(&line.split(' ').collect::<Vec<_>>()).stderr;
    assert!(piped.contains("problems were found"), "{piped}");
    assert!(
        piped.lines().any(|l| l.trim_start().starts_with("help: ") && l.ends_with("`git init` there")),
        "{piped}"
    );
}

#[test]
fn warnings_fit_the_terminal() {
    let world = World::new();
    world.agent("exit 0");
    let args = world.run_args(&["--verbose"]).join(" ");
    let Some(done) = on_terminal(&world, 70, &args, "warnings_fit_the_terminal") else { return };
    let lines: Vec<&str> = done.stdout.lines().collect();
    let at = lines.iter().position(|l| l.starts_with("  ! the embedded backend is not")).unwrap();
    assert!(lines[at].chars().count() <= 70 && lines[at + 1].starts_with("    "), "{}", done.stdout);
    let piped = world.run(&[]).success().done.stdout;
    let warning = piped.lines().find(|l| l.starts_with("  ! ")).unwrap();
    assert!(warning.ends_with("credentials visible to the agent"), "{warning}");
}

#[test]
fn a_phase_that_went_wrong_has_its_own_mark() {
    let mut world = World::new();
    world.env("FULLSEND_TEST_DEADLINE_SCALE", "1");
    world.harness("agent: agents/work\nruntime: script\nvalidation_loop: {script: check}\n");
    world.script("h/check", "echo no >&2; exit 1");
    let mark = |stdout: &str, phase: &str| {
        let line = stdout.lines().find(|l| l.split_whitespace().nth(1) == Some(phase));
        line.and_then(|l| l.split_whitespace().next()).unwrap_or_default().to_owned()
    };
    for (agent, more, code, exit, agent_mark, check_mark) in [
        ("true", &[][..], "FS-VALIDATION", 1, "✓", "✗"),
        ("exit 3", &[], "FS-AGENT-FAILED", 1, "✗", ""),
        ("kill -9 $$", &[], "FS-AGENT-FAILED", 1, "✗", ""),
        ("sleep 600", &["--timeout", "1s"], "FS-TIMEOUT", 124, "✗", ""),
    ] {
        world.agent(agent);
        let run = world.run(more).failure(code, exit);
        let stdout = &run.done.stdout;
        assert_eq!(
            (mark(stdout, "agent").as_str(), mark(stdout, "validate").as_str()),
            (agent_mark, check_mark),
            "{stdout}"
        );
        assert_eq!(mark(stdout, "collect"), "✓", "{stdout}");
        let phases = run.json["phases"].as_array().unwrap();
        let failed = phases.iter().filter(|p| !p["failed"].is_null()).map(|p| p["failed"].as_str().unwrap());
        assert_eq!(failed.collect::<Vec<_>>(), [code], "{phases:?}");
    }
    world.agent("exit 3");
    world.env("LANG", "C");
    let plain = world.run(&[]).done.stdout;
    assert_eq!((mark(&plain, "agent"), mark(&plain, "collect")), ("x".into(), "ok".into()), "{plain}");
    let red = world.run(&["--color", "always"]).done.stdout;
    assert!(red.lines().any(|l| l.contains("\u{1b}[31mx\u{1b}[") && l.contains(" agent ")), "{red:?}");
    world.env("GITHUB_ACTIONS", "true");
    let ci = world.run(&[]).done.stdout;
    assert_eq!((mark(&ci, "agent"), mark(&ci, "collect")), ("✗".into(), "✓".into()), "{ci}");
}
