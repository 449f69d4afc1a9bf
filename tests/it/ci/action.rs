//! The composite action: its steps' shell, run as the runner runs it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::commands::values;
use crate::support::{Done, World, fullsend};

/// The directory of the action in the sources.
pub(super) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/actions/run")
}

/// A job that uses the action; `inputs` by name.
pub(super) fn job(inputs: &[(&str, &str)]) -> World {
    let mut world = World::new();
    for (variable, file) in [
        ("GITHUB_OUTPUT", "output"),
        ("GITHUB_STEP_SUMMARY", "summary"),
        ("GITHUB_PATH", "path"),
        ("GITHUB_ENV", "env"),
    ] {
        let path = world.write(&format!("gh/{file}"), "");
        world.env(variable, path.to_str().unwrap());
    }
    let (temp, action) = (world.path("runner-temp"), sources());
    std::fs::create_dir_all(&temp).unwrap();
    let workspace = world.repo();
    for (name, path) in
        [("RUNNER_TEMP", temp), ("GITHUB_ACTION_PATH", action), ("GITHUB_WORKSPACE", workspace)]
    {
        world.env(name, path.to_str().unwrap());
    }
    world.env("CI", "true").env("GITHUB_ACTIONS", "true").env("INPUT_AGENT", "work");
    let dir = world.path("h").to_str().unwrap().to_owned();
    world.env("INPUT_FULLSEND_DIR", dir).env("INPUT_OPTIONS", "--local\n");
    for (name, value) in inputs {
        world.env(&format!("INPUT_{name}"), *value);
    }
    world
}

/// A step's script, as `shell: bash` runs it.
pub(super) fn step(world: &World, script: &str) -> Done {
    let file = world.write("step.sh", script);
    let args = ["--noprofile", "--norc", "-eo", "pipefail", file.to_str().unwrap()];
    world.finish(world.command("bash", &args, &world.repo()))
}

pub(super) fn output(world: &World) -> std::collections::BTreeMap<String, String> {
    values(&std::fs::read_to_string(world.path("gh/output")).unwrap())
}

/// The action, read as YAML.
pub(super) fn definition() -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(sources().join("action.yml")).unwrap()).unwrap()
}

/// The steps with this id.
pub(super) fn steps_with(key: &str, value: &str) -> Vec<Value> {
    let steps = definition()["runs"]["steps"].as_array().unwrap().clone();
    steps.into_iter().filter(|s| s[key].as_str().is_some_and(|v| v.starts_with(value))).collect()
}

/// The script of the step with this id.
pub(super) fn script_of(step: &str) -> String {
    let found = steps_with("id", step);
    let [found] = found.as_slice() else { panic!("there is not one step {step}") };
    let line = found["run"].as_str().unwrap();
    assert!(!line.contains("${{"), "an expression in a script: {line}");
    line.to_owned()
}

#[test]
fn a_vendored_program_is_taken_and_run() {
    let mut world = job(&[("BINARY", fullsend().to_str().unwrap())]);
    let done = step(&world, &script_of("install"));
    assert_eq!(done.code, 0, "{done:?}");
    let program = output(&world)["program"].clone();
    assert_eq!(Path::new(&program), fullsend());
    world.env("FULLSEND_PROGRAM", &program);
    world.agent("echo x > new");
    let done = step(&world, &script_of("run"));
    assert_eq!(done.code, 0, "{done:?}");
    let outputs = output(&world);
    assert_eq!((outputs["verdict"].as_str(), outputs["changed"].as_str()), ("success", "true"));
    assert!(outputs["run-dir"].starts_with(world.path("runner-temp").to_str().unwrap()), "{outputs:?}");
    let done = step(&world, &script_of("reap"));
    assert_eq!(done.code, 0, "{done:?}");
}

/// The step's shell is replaced by the program, so that the runner's signal reaches it.
#[test]
fn the_step_becomes_the_program() {
    let mut world = job(&[("OPTIONS", "--dry-run\n--model\na model; $(touch never)\n")]);
    world.script("fake", "echo \"$$\" > pid; printf '%s\\n' \"$@\" > args; exit 7");
    let fake = world.path("fake").to_str().unwrap().to_owned();
    world.env("FULLSEND_PROGRAM", fake).env("INPUT_TARGET_REPO", "some where").env("INPUT_TIMEOUT", "5m");
    let file = world.write("step.sh", script_of("run"));
    let mut command = world.command("bash", &["-e", file.to_str().unwrap()], &world.repo());
    let mut child = command.spawn().unwrap();
    let pid = child.id();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let read = |name: &str| std::fs::read_to_string(world.repo().join(name)).unwrap();
    assert_eq!(read("pid").trim(), pid.to_string());
    let args = read("args");
    let args: Vec<_> = args.lines().collect();
    assert_eq!(args[0], "run");
    for pair in [["--target-repo", "some where"], ["--timeout", "5m"], ["--model", "a model; $(touch never)"]]
    {
        assert!(args.windows(2).any(|w| w == pair), "no {pair:?} in {args:?}");
    }
    assert_eq!(args[args.len() - 2..], ["--", "work"]);
    assert!(!world.repo().join("never").exists());
}

#[test]
fn inputs_that_cannot_be_right_are_named() {
    for (inputs, said) in [
        (vec![("AGENT", "")], "agent"),
        (vec![("BINARY", "/nowhere/fullsend")], "/nowhere/fullsend"),
        (vec![("BINARY", "/x"), ("BUILD", "true")], "one of"),
        (vec![("VERSION", "1.2.3; id")], "version"),
    ] {
        let world = job(&inputs);
        let done = step(&world, &script_of("install"));
        assert_eq!(done.code, 2, "{inputs:?}: {done:?}");
        assert!(done.stdout.contains("::error") && done.stdout.contains(said), "{inputs:?}: {done:?}");
    }
}
