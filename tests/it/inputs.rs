//! Bad inputs: each gives one clear error with a code and the exit status that its kind has, and no sandbox.

mod gateway;
mod harness;
mod machine;
mod usage;

use crate::fake;
use crate::support::{Done, World};

/// One bad input.
struct Case {
    /// What is wrong.
    name: &'static str,
    /// The code of the error.
    code: &'static str,
    /// The exit status.
    exit: i32,
    /// Parts of the report.
    says: &'static [&'static str],
    /// Makes the input, and returns the arguments after those of an ordinary run.
    make: fn(&mut World) -> Vec<String>,
}

/// When the error shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Before the run begins: nothing is written, and standard output stays empty.
    BeforeRun,
    /// In a run that has its record, before a sandbox was asked for.
    BeforeCreate,
    /// When a sandbox was asked for.
    ByCreate,
}

/// No further arguments.
fn none() -> Vec<String> {
    Vec::new()
}

fn args(args: &[&str]) -> Vec<String> {
    args.iter().map(|a| (*a).to_owned()).collect()
}

/// Runs every case and reports all that went wrong.
#[track_caller]
fn check(cases: &[Case], found: Found) {
    let wrong: Vec<_> = cases.iter().filter_map(|case| complaint(case, found)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
}

fn complaint(case: &Case, found: Found) -> Option<String> {
    let mut world = World::new();
    fake::install(&mut world);
    let more = (case.make)(&mut world);
    let mut args = world.run_args(&more.iter().map(String::as_str).collect::<Vec<_>>());
    for option in ["--fullsend-dir", "--output-dir"].map(String::from) {
        if more.contains(&option) {
            let at = args.iter().position(|a| *a == option).unwrap();
            args.drain(at..at + 2);
        }
    }
    let done = world.fullsend(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut wrong = complaints(case, &done);
    let asked = fake::asked_for_a_sandbox(&world);
    if asked != (found == Found::ByCreate) {
        wrong.push(format!("calls of openshell: {:?}", fake::calls(&world)));
    }
    wrong.extend(leftovers(&world, found));
    if found == Found::BeforeRun && !done.stdout.is_empty() {
        wrong.push("something is on standard output".to_owned());
    }
    if wrong.is_empty() {
        return None;
    }
    let Done { code, stdout, stderr } = done;
    let wrong = wrong.join("; ");
    Some(format!("### {}: {wrong}\nexit {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", case.name))
}

fn complaints(case: &Case, done: &Done) -> Vec<String> {
    let Done { code, stdout, stderr } = done;
    let mut wrong = Vec::new();
    if *code != case.exit {
        wrong.push(format!("exit status {code}, not {}", case.exit));
    }
    if !stderr.starts_with(&format!("error[{}]: ", case.code)) {
        wrong.push(format!("the report does not begin with error[{}]", case.code));
    }
    if stderr.matches("error[FS-").count() != 1 {
        wrong.push("not exactly one report".to_owned());
    }
    let help = stderr.lines().any(|l| l.trim_start().strip_prefix("help: ").is_some_and(|h| !h.is_empty()));
    if !help {
        wrong.push("no help".to_owned());
    }
    // The renderer breaks long lines.
    let flat = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in case.says {
        if !flat.contains(part) {
            wrong.push(format!("it does not say {part:?}"));
        }
    }
    for noise in ["panicked", "RUST_BACKTRACE", "Error {", "Os {", "kind:"] {
        if stdout.contains(noise) || stderr.contains(noise) {
            wrong.push(format!("it says {noise:?}"));
        }
    }
    if stderr.lines().count() > 60 {
        wrong.push("the report is long".to_owned());
    }
    wrong
}

/// What a run that could not start left behind; one that got as far as create leaves its record and nothing else.
fn leftovers(world: &World, found: Found) -> Vec<String> {
    let names = |below: &str| -> Vec<_> {
        std::fs::read_dir(world.path(below)).into_iter().flatten().map(|e| e.unwrap().file_name()).collect()
    };
    let mut wrong = Vec::new();
    for dir in ["tmp", "state/fullsend/runs"] {
        if !names(dir).is_empty() {
            wrong.push(format!("{dir} holds {:?}", names(dir)));
        }
    }
    if names("out").len() != usize::from(found != Found::BeforeRun) {
        wrong.push(format!("run directories: {:?}", names("out")));
    }
    wrong
}
