//! The composite action: its steps' shell, run as the runner runs it.

use std::path::{Path, PathBuf};

use super::commands::values;
use crate::support::{Done, World, fullsend};

/// The directory of the action in the sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/actions/run")
}

/// A job that uses the action; `inputs` by name.
fn job(inputs: &[(&str, &str)]) -> World {
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
fn step(world: &World, script: &str) -> Done {
    let file = world.write("step.sh", script);
    let args = ["--noprofile", "--norc", "-eo", "pipefail", file.to_str().unwrap()];
    world.finish(world.command("bash", &args, &world.repo()))
}

fn output(world: &World) -> std::collections::BTreeMap<String, String> {
    values(&std::fs::read_to_string(world.path("gh/output")).unwrap())
}

/// The script of the step with this id or name in action.yml.
fn script_of(step: &str) -> String {
    let text = std::fs::read_to_string(sources().join("action.yml")).unwrap();
    let steps = text.split("\n    - ").skip(1);
    let found: Vec<_> = steps.filter(|s| s.contains(&format!("id: {step}\n"))).collect();
    let [found] = found.as_slice() else { panic!("there is not one step {step}") };
    let line = found.lines().find_map(|l| l.trim().strip_prefix("run: ")).unwrap();
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

/// The installer of the releases verifies; the action hands it what it was asked for.
#[test]
fn a_release_is_installed_by_the_installer() {
    let mut world = job(&[("VERSION", "9.8.7"), ("ATTESTATION", "required")]);
    let root = world.path("source");
    let action = root.join(".github/actions/run");
    std::fs::create_dir_all(&action).unwrap();
    for entry in std::fs::read_dir(sources()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), action.join(entry.file_name())).unwrap();
    }
    world.write(
        "source/.github/install.sh",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > installer-args\nwhile [ \"$1\" != --dir ]; do shift; done\n\
         printf '#!/bin/sh\\necho fullsend 9.8.7\\n' > \"$2/fullsend\"\nchmod +x \"$2/fullsend\"\n",
    );
    world.env("GITHUB_ACTION_PATH", action.to_str().unwrap()).env("ACTION_REPOSITORY", "o/fullsend");
    let done = step(&world, &script_of("install"));
    assert_eq!(done.code, 0, "{done:?}");
    let args = std::fs::read_to_string(world.repo().join("installer-args")).unwrap();
    for part in ["--version\n9.8.7\n", "--repository\no/fullsend\n", "--require-signature\n"] {
        assert!(args.contains(part), "{args}");
    }
    assert!(output(&world)["program"].ends_with("/fullsend"));
}
