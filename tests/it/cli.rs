//! The commands beside `run`: their texts, and what they say when something is missing.

use std::process::{Command, Stdio};

use crate::fake;
use crate::support::{Done, World, fullsend as binary};

fn ok(world: &World, args: &[&str]) -> String {
    let done = world.fullsend(args);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{args:?}: {done:?}");
    done.stdout
}

#[test]
fn the_version_is_one_line() {
    assert_eq!(ok(&World::new(), &["--version"]), format!("fullsend {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let main = ok(&world, &["--help"]);
    insta::assert_snapshot!("help", main);
    let commands = main.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    let names: Vec<_> = commands.map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "run",
            "list",
            "validate",
            "show",
            "lock",
            "schema",
            "doctor",
            "ps",
            "stop",
            "reap",
            "logs",
            "report",
            "diff-runs",
            "prune",
            "reconcile-status",
            "replay",
            "scan",
            "check-output",
            "explain",
            "completions",
            "help"
        ]
    );
    for name in names.into_iter().filter(|n| *n != "help") {
        let text = ok(&world, &[name, "--help"]);
        assert_eq!(ok(&world, &["help", name]), text);
        insta::assert_snapshot!(format!("help_{name}"), text);
    }
    // Nothing given is asked for help, and says so with its exit status.
    let done = world.fullsend(&[]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("Usage: fullsend"), "{done:?}");
}

#[test]
fn agents_are_listed_with_what_they_are_for() {
    let world = World::new();
    world.write("h/harness/review.yml", "agent: agents/work\ndescription: |\n  Reads a change\n  and more\n");
    world.write("h/harness/broken.yaml", "agent: [\n");
    let dir = world.path("h");
    let text = ok(&world, &["list", "--fullsend-dir", dir.to_str().unwrap()]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("broken  (cannot be used: "), "{text}");
    assert_eq!(lines[1..], ["review  Reads a change", "work"]);

    let empty = world.path("home");
    std::fs::create_dir(empty.join("harness")).unwrap();
    let done = world.fullsend(&["list", "--fullsend-dir", empty.to_str().unwrap()]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.contains("has no agents") && done.stderr.contains("help: add harness/NAME.yaml"));
    // The directory is found upwards.
    world.write("repo/.fullsend/harness/found.yaml", "agent: x\n");
    world.write("repo/sub/x", "");
    let done = world.finish(world.command(binary(), &["list"], &world.path("repo/sub")));
    assert_eq!(done.stdout, "found\n");
}

#[test]
fn every_code_is_explained() {
    let world = World::new();
    let all = ok(&world, &["explain"]);
    let codes: Vec<_> = all.lines().map(|l| l.split_whitespace().next().unwrap()).collect();
    assert_eq!(codes.len(), fullsend::error::Code::ALL.len());
    for code in codes {
        let page = ok(&world, &["explain", code]);
        assert!(page.starts_with(&format!("{code}: ")), "{page}");
        assert!(page.contains("\nExit status ") && page.lines().count() > 4, "{page}");
        assert_eq!(ok(&world, &["explain", &code.to_lowercase()]), page);
    }
    let done = world.fullsend(&["explain", "FS-NOSUCH"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(done.stderr.starts_with("error[FS-USAGE]: ") && done.stderr.contains("help: "), "{done:?}");
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let world = World::new();
    for (shell, program, mark) in [
        ("bash", "bash", "complete -F _fullsend_agents"),
        ("zsh", "zsh", "#compdef fullsend"),
        ("fish", "fish", "complete -c fullsend"),
    ] {
        let text = ok(&world, &["completions", shell]);
        assert!(text.contains(mark) && text.contains("target-repo"), "{shell}");
        assert!(!text.contains("guard"), "{shell}: what is hidden is not offered");
        let file = world.write("home/completion", &text);
        let check = world.command(program, &["-n", file.to_str().unwrap()], &world.repo()).output();
        match check {
            Ok(out) => assert!(out.status.success(), "{shell}: {}", String::from_utf8_lossy(&out.stderr)),
            // bash is on every machine that runs these tests.
            Err(error) => assert!(shell != "bash", "{error}"),
        }
    }
    // bash really completes with it.
    let file = world.write("home/completion", ok(&world, &["completions", "bash"]));
    let script = format!(
        ". {}; COMP_WORDS=(fullsend run --dr); COMP_CWORD=2; _fullsend fullsend --dr run; echo \"${{COMPREPLY[*]}}\"",
        file.display()
    );
    let done = world.finish(world.command("bash", &["-c", &script], &world.repo()));
    assert_eq!(done.stdout, "--dry-run\n", "{done:?}");
    // Agents where one can stand, and nowhere else.
    world.harness("agent: agents/work\nruntime: script\ndescription: Does the work\n");
    world.write("h/harness/wonder.yaml", "agent: agents/work\nruntime: script\n");
    world.write("repo/words", "");
    let (fullsend, dir) = (binary().display(), world.path("h").display().to_string());
    for (words, offered) in [
        (&["run", "--fullsend-dir", &dir, "w"][..], "wonder work"),
        (&["run", "--fullsend-dir", &dir, "--local", "wor"], "work"),
        (&["validate", "work", "--fullsend-dir", &dir, ""], "wonder work"),
        (&["run", "--fullsend-dir", &dir, "--dry"], "--dry-run"),
        (&["run", "--fullsend-dir", &dir, "--env-file", "wor"], "words"),
        (&["logs", "--fullsend-dir", &dir, "wor"], ""),
    ] {
        let (line, cur, prev) = (words.join(" "), words[words.len() - 1], words[words.len() - 2]);
        let script = format!(
            ". {file}; COMP_WORDS=({fullsend} {line} {empty}); COMP_CWORD={at}; _fullsend_agents {fullsend} '{cur}' \
             {prev}; echo \"${{COMPREPLY[*]}}\"",
            file = file.display(),
            empty = if cur.is_empty() { "''" } else { "" },
            at = words.len(),
        );
        let done = world.finish(world.command("bash", &["-c", &script], &world.repo()));
        assert_eq!(done.stdout.trim_end(), offered, "{words:?}: {done:?}");
    }
}

#[test]
fn manual_pages_are_roff() {
    let world = World::new();
    for (line, words) in [
        (&["man"][..], &["fullsend\\-run(1)", ".TH fullsend 1"][..]),
        (&["man", "run"], &[".TH fullsend-run 1", "\\-\\-target\\-repo", "Exit status"]),
    ] {
        let text = ok(&world, line);
        for word in words {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        let page = world.write("home/page.1", &text);
        // Where groff is at hand, it has nothing to complain about.
        if let Ok(out) = Command::new("groff")
            .args(["-man", "-ww", "-z", "-Tutf8"])
            .arg(&page)
            .stdin(Stdio::null())
            .output()
        {
            assert!(
                out.status.success() && out.stderr.is_empty(),
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
        }
    }
    assert_eq!(world.fullsend(&["man", "nosuch"]).code, 2);
}

#[test]
fn the_reference_in_the_documentation_is_the_programs_own() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/cli.md");
    let text = std::fs::read_to_string(path).unwrap();
    let page = ok(&World::new(), &["reference", "cli"]);
    let expected = format!("<!-- generated by: fullsend reference cli -->\n{page}");
    assert!(text == expected, "bring {path} up to date with .ci/generated --write");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new();
    let dir = world.path("h").to_str().unwrap().to_owned();
    for line in [
        "--help",
        "explain",
        "completions bash",
        "run work --dry-run --fullsend-dir \"$1\"",
        "run work --dry-run --format json --fullsend-dir \"$1\"",
        "run nosuch --fullsend-dir \"$1\" 2>&1",
    ] {
        // The reader is gone before the first byte: no race on who is faster.
        let script = format!(
            "set -o pipefail; {{ sleep 0.2; \"$0\" {line}; echo \"status $?\" >&3; }} 3>\"$2\" | true"
        );
        let status = world.path("home/status").to_str().unwrap().to_owned();
        let exe = binary().to_str().unwrap();
        let done = world.finish(world.command("bash", &["-c", &script, exe, &dir, &status], &world.repo()));
        assert!(!done.stderr.contains("panicked"), "{line}: {done:?}");
        let status = std::fs::read_to_string(status).unwrap();
        let expected = if line.contains("nosuch") { "status 2\n" } else { "status 0\n" };
        assert_eq!(status, expected, "{line}");
    }
}

#[test]
fn an_answer_that_does_not_arrive_is_an_error() {
    let world = World::new();
    let h = world.path("h").to_str().unwrap().to_owned();
    let (dir, repo) = (["--fullsend-dir", &h], world.repo());
    let mut lines: Vec<Vec<&str>> = ["--help", "--version", "explain", "explain FS-IO", "completions zsh"]
        .iter()
        .chain(&[
            "ps --local --format json",
            "ps --local",
            "reap --local --format json",
            "man",
            "reference cli",
        ])
        .map(|line| line.split(' ').collect())
        .collect();
    for line in ["list", "validate", "show work", "run work --dry-run", "run work --dry-run --format json"] {
        lines.push(line.split(' ').chain(dir).collect());
    }
    for line in lines {
        let mut command = world.command(binary(), &line, &repo);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = command.stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let out = out.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(3), "{line:?}: {said}");
        assert!(said.contains("error[FS-IO]: cannot write to standard output"), "{line:?}: {said}");
        assert!(!said.contains("panicked"), "{line:?}: {said}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let mut world = World::new();
    let args = ["run", "nosuch", "--fullsend-dir", "nowhere"];
    assert!(!world.fullsend(&args).stderr.contains('\u{1b}'));
    let painted = world.fullsend(&[&args[..], &["--color", "always"]].concat());
    assert!(painted.stderr.contains('\u{1b}'));
    world.env("LANG", "C");
    assert!(world.fullsend(&args).stderr.is_ascii());
}

/// A PATH without anything.
fn nothing_installed(world: &mut World) {
    let empty = world.path("home").to_str().unwrap().to_owned();
    world.env("PATH", empty);
}

/// The failed lines of a doctor's report, each with its fix.
fn failures(done: &Done) -> Vec<(String, String)> {
    let mut lines = done.stdout.lines().peekable();
    let mut failures = Vec::new();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim_start().strip_prefix('✗') else { continue };
        let name = rest.split_whitespace().next().unwrap().to_owned();
        while lines.peek().is_some_and(|l| l.trim_start().starts_with('│')) {
            lines.next();
        }
        let fix = lines.next().unwrap_or_default().trim();
        let fix = fix.strip_prefix("fix: ").unwrap_or_else(|| panic!("{name} has no fix: {done:?}"));
        failures.push((name, fix.to_owned()));
    }
    failures
}

#[test]
fn the_doctor_of_a_healthy_machine() {
    let mut world = World::new();
    fake::install(&mut world);
    let done = world.fullsend(&["doctor"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    for part in [
        "openshell   0.1.10",
        "gateway     answers; 0 sandbox(es)",
        "OpenSSH",
        "rsync  version",
        "git version",
        "free in",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(failures(&done).is_empty() && !fake::asked_for_a_sandbox(&world));
    assert_eq!(ok(&world, &["doctor", "-q"]), "");
}

#[test]
fn the_doctor_of_a_machine_with_nothing() {
    let mut world = World::new();
    nothing_installed(&mut world);
    let done = world.fullsend(&["doctor"]);
    assert_eq!((done.code, done.stderr.as_str()), (3, ""), "{done:?}");
    let failures = failures(&done);
    let names: Vec<_> = failures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["openshell", "ssh", "rsync", "git", "scp"], "{}", done.stdout);
    for (name, fix) in failures {
        let expected = if name == "openshell" { "--local" } else { "apt-get install" };
        assert!(fix.contains(expected), "{name}: {fix}");
    }
    assert!(world.fullsend(&["doctor", "-q"]).stdout.contains("openshell was not found"));
}

#[test]
fn the_doctor_names_what_is_wrong_with_the_gateway() {
    let mut world = World::new();
    fake::install(&mut world);
    fake::answer(&world, "[[ $* == 'sandbox list'* ]] && fail 'No active gateway.'");
    let done = world.fullsend(&["doctor"]);
    assert_eq!(done.code, 3, "{done:?}");
    let failures = failures(&done);
    assert_eq!(failures.len(), 1, "{}", done.stdout);
    assert!(failures[0].0 == "gateway" && failures[0].1.contains("openshell gateway add"), "{failures:?}");
    // A directory for temporary files that is not there is found as well.
    world.env("TMPDIR", "/nonexistent/tmp");
    assert!(world.fullsend(&["doctor"]).stdout.contains("set TMPDIR"));
}
