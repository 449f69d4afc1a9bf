//! The lines of the GitLab template, as a runner of GitLab wraps, feeds and ends them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::commands::dotenv;
use crate::fleet;
use crate::lifecycle::{HANG, wait_in_sandbox};
use crate::support::{Done, World, fullsend};

/// How the runner hands a script to the job's shell: until version 18 behind a pipe, later in a subshell with a trap.
const WRAPPERS: [(&str, &str); 2] = [(": | eval ", ""), ("(trap 'exit 1' TERM; eval ", ") </dev/null")];

fn template() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".gitlab/templates/run.yml");
    let all: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[".fullsend"].clone()
}

/// A job of the template that runs the agent `work`.
fn job() -> World {
    let mut world = World::new();
    // The job's directory is the checkout.
    let project = world.repo().to_str().unwrap().to_owned();
    for (name, value) in [("CI", "true"), ("GITLAB_CI", "true"), ("CI_DISPOSABLE_ENVIRONMENT", "true")] {
        world.env(name, value);
    }
    world.env("CI_PROJECT_DIR", &project).env("NO_COLOR", "1");
    for (name, value) in template()["variables"].as_object().unwrap() {
        let value = value.as_str().unwrap().replace("$CI_PROJECT_DIR", &project);
        world.env(name, value.replace("$CI_REGISTRY_IMAGE", "registry.test/group"));
    }
    let options = format!("--local --fullsend-dir {}", world.path("h").display());
    world.env("FULLSEND_AGENT", "work").env("FULLSEND_OPTIONS", options);
    // As an image has it.
    std::fs::create_dir_all(world.path("bin")).unwrap();
    std::os::unix::fs::symlink(fullsend(), world.path("bin/fullsend")).unwrap();
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
    world
}

/// The job's shell with a script of the template on its standard input.
fn start(world: &World, key: &str, wrapper: (&str, &str)) -> Child {
    let lines: Vec<_> =
        template()[key].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_owned()).collect();
    let body = lines.join("\n").replace('\'', "'\\''");
    let script = format!(
        "set -o pipefail\nset -o errexit\nset +o noclobber\n{}'{body}\n'{}\nexit 0\n",
        wrapper.0, wrapper.1
    );
    let script = world.write("script", script);
    let mut command: Command = world.command("bash", &[], &world.repo());
    command.stdin(std::fs::File::open(script).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn end(child: Child) -> Done {
    let out = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: out.status.code().unwrap_or(-1), stdout: text(&out.stdout), stderr: text(&out.stderr) }
}

fn verdict(world: &World) -> String {
    let file = world.repo().join(".fullsend-runs/fullsend.env");
    dotenv(&std::fs::read_to_string(file).unwrap())["FULLSEND_VERDICT"].clone()
}

/// The processes of the job, the newest first: what a container has besides its first one.
fn processes(world: &World) -> Vec<u32> {
    let mark = format!("HOME={}", world.path("home").display());
    let mut found: Vec<u32> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|e| {
            let environ = std::fs::read(e.path().join("environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|v| v == mark.as_bytes())
        })
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

/// What the docker executor does to a cancelled job: TERM for every process, the newest first, and some seconds for
/// each before the next one has its turn.
fn cancel(world: &World) {
    for pid in processes(world) {
        let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).stderr(Stdio::null()).status();
        let begun = Instant::now();
        while Path::new(&format!("/proc/{pid}")).exists() && begun.elapsed().as_secs() < 6 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn the_status_of_the_run_is_that_of_the_job() {
    for wrapper in WRAPPERS {
        let world = job();
        world.agent("echo x > new");
        let done = end(start(&world, "script", wrapper));
        assert_eq!((done.code, verdict(&world).as_str()), (0, "success"), "{done:?}");
        world.agent("exit 3");
        let done = end(start(&world, "script", wrapper));
        assert_eq!((done.code, verdict(&world).as_str()), (1, "failed"), "{done:?}");
        for report in template()["artifacts"]["reports"].as_object().unwrap().values() {
            let file = world.repo().join(report.as_str().unwrap());
            assert!(file.is_file(), "{} is not written", file.display());
        }
    }
}

#[test]
fn a_cancelled_job_ends_its_run() {
    for wrapper in WRAPPERS {
        let world = job();
        world.agent("touch begun; sleep 600");
        let child = start(&world, "script", wrapper);
        wait_in_sandbox(&world, "begun");
        cancel(&world);
        let begun = Instant::now();
        let done = end(child);
        assert!(begun.elapsed() < HANG);
        assert_ne!(done.code, 0, "{done:?}");
        assert_eq!(verdict(&world), "cancelled", "{done:?}");
        world.assert_clean();
    }
}

/// Kubernetes leaves the entrypoint of an image out; the template calls it.
#[test]
fn the_launcher_passes_status_and_signals_on() {
    let mut world = job();
    let entrypoint = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/runner/entrypoint");
    std::os::unix::fs::symlink(entrypoint, world.path("bin/runner-entrypoint")).unwrap();
    world.env("FULLSEND_LAUNCHER", "runner-entrypoint").env("FULLSEND_RUNNER_GATEWAY", "none");
    world.agent("exit 3");
    let done = end(start(&world, "script", WRAPPERS[0]));
    assert_eq!((done.code, verdict(&world).as_str()), (1, "failed"), "{done:?}");
    world.agent("touch begun; sleep 600");
    let child = start(&world, "script", WRAPPERS[0]);
    wait_in_sandbox(&world, "begun");
    // A pod that is deleted: TERM for its first process alone, here the entrypoint.
    let launched = processes(&world).into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("runner-entrypoint")
    });
    let pid = launched.expect("the entrypoint runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let done = end(child);
    assert_eq!((done.code, verdict(&world).as_str()), (143, "cancelled"), "{done:?}");
    world.assert_clean();
}

#[test]
fn what_a_killed_job_left_goes_with_its_last_script() {
    let mut world = job();
    world.agent(fleet::WORKING);
    fleet::dead_run(&world);
    world.env("FULLSEND_OPENSHELL", "local");
    let done = end(start(&world, "after_script", WRAPPERS[1]));
    assert_eq!(done.code, 0, "{done:?}");
    world.assert_clean();
}

#[test]
fn the_shell_executor_is_refused_by_the_same_lines() {
    let mut world = job();
    world.env("CI_SHARED_ENVIRONMENT", "true");
    let done = end(start(&world, "script", WRAPPERS[0]));
    assert!(done.code == 2 && done.stderr.contains("error[FS-SHELL-EXECUTOR]"), "{done:?}");
}

#[test]
fn what_is_kept_is_where_the_run_leaves_it() {
    let world = job();
    let runs = world.repo().join(".fullsend-runs");
    assert_eq!(world.variable("FULLSEND_REPORT_DIR").map(PathBuf::from), Some(runs.clone()));
    assert_eq!(world.variable("FULLSEND_CACHE_DIR").map(PathBuf::from), Some(runs.join(".cache")));
    world.agent("[ ! -e .fullsend-runs ]; echo x > new");
    let done = end(start(&world, "script", WRAPPERS[0]));
    assert_eq!(done.code, 0, "{done:?}");
    let kept = template()["artifacts"]["paths"][0].as_str().unwrap().to_owned();
    let dirs = std::fs::read_dir(world.repo().join(kept)).unwrap().flatten();
    assert_eq!(dirs.filter(|d| d.path().join("run.json").is_file()).count(), 1);
}
