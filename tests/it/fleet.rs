//! What exists beyond one run: ps, reap, stop, logs, prune.

mod journal;
mod labels;
mod past;
mod reap;
mod stop;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Done, World, fullsend};

/// An agent that works until it is told to end.
pub const WORKING: &str = "echo at work; touch $FULLSEND_OUTPUT_DIR/started\n\
                       until [ -e $FULLSEND_OUTPUT_DIR/go ]; do sleep 0.1; done";
/// Long ago, and far away.
const PAST: &str = "fullsend-expires=20200101T000000Z";
const FUTURE: &str = "fullsend-expires=20990101T000000Z";

/// Waits for something that another process does; the limit only ends a test that would hang.
fn until(what: &str, fulfilled: impl Fn() -> bool) {
    let begun = Instant::now();
    while !fulfilled() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// The processes of a world, told by its state directory: their numbers and command lines.
fn processes(state: &Path) -> Vec<(u32, String)> {
    let mark = format!("XDG_STATE_HOME={}", state.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|b| *b == 0).any(|v| v == mark.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

fn kill(signal: &str, pid: u32) {
    let status = std::process::Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .stderr(Stdio::null())
        .status();
    status.unwrap();
}

/// Kills what a killed run leaves running, at the end of a test.
struct Sweep(PathBuf);

impl Drop for Sweep {
    fn drop(&mut self) {
        for (pid, _) in processes(&self.0) {
            kill("KILL", pid);
        }
    }
}

fn start(world: &World, more: &[&str]) -> Child {
    let args = world.run_args(more);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut command = world.command(fullsend(), &args, &world.repo());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn guards(world: &World) -> Vec<u32> {
    let all = processes(&world.path("state")).into_iter();
    all.filter(|(_, line)| line.contains(" guard --detached")).map(|(pid, _)| pid).collect()
}

/// Kills a run and its guard, so that nobody is left to clean up. `others` are the guards of other runs.
fn kill_with_guard(world: &World, mut child: Child, others: &[u32]) {
    let own: Vec<_> = guards(world).into_iter().filter(|pid| !others.contains(pid)).collect();
    assert_eq!(own.len(), 1, "a run has one guard");
    kill("KILL", own[0]);
    until("the end of the guard", || !guards(world).contains(&own[0]));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A run that died with its guard while its agent worked.
pub fn dead_run(world: &World) {
    let (before, others) = (started(world), guards(world));
    let child = start(world, &[]);
    until("the start of the agent", || started(world) > before);
    kill_with_guard(world, child, &others);
}

/// How many agents have started, in sandboxes that are there.
fn started(world: &World) -> usize {
    let sandboxes = std::fs::read_dir(world.path("state/fullsend/local/sandboxes")).into_iter().flatten();
    sandboxes.flatten().filter(|s| s.path().join("home/workspace/output/started").exists()).count()
}

/// A command that looks at the embedded backend, unless the world has another openshell.
fn look(world: &World, args: &[&str]) -> Done {
    let mut args = args.to_vec();
    if world.variable("FULLSEND_OPENSHELL").is_none() {
        args.push("--local");
    }
    world.fullsend(&args)
}

fn json(world: &World, args: &[&str]) -> Value {
    let done = look(world, &[args, &["--format", "json"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

fn backend(world: &World, args: &[&str]) -> Done {
    let done = world.fullsend(&[&["openshell"], args].concat());
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    done
}

fn sandboxes(world: &World) -> Vec<String> {
    backend(world, &["sandbox", "list", "--names"]).stdout.lines().map(str::to_owned).collect()
}

fn providers(world: &World) -> Vec<String> {
    let text = backend(world, &["provider", "list", "-o", "json"]).stdout;
    let value: Value = serde_json::from_str(&text).unwrap();
    let rows = value["providers"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// A sandbox with labels as a run of another host would have made it.
fn foreign_sandbox(world: &World, name: &str, run: &str, labels: &[&str]) {
    let run = format!("fullsend-run={run}");
    let mut args = vec!["sandbox", "create", "--name", name, "--label", "managed-by=fullsend"];
    args.extend(["--label", &run, "--label", "fullsend-owner=0123456789abcdef0123456789abcdef"]);
    args.extend(labels.iter().flat_map(|l| ["--label", l]));
    args.extend(["--no-auto-providers", "--no-tty", "--detach", "--", "sleep", "infinity"]);
    backend(world, &args);
}

fn provider(world: &World, name: &str) {
    if world.fullsend(&["openshell", "profile", "export", "tool"]).code != 0 {
        let file = world.write("tool.yaml", "id: tool\ndisplay_name: Tool\n");
        backend(world, &["profile", "import", "--file", file.to_str().unwrap()]);
    }
    backend(world, &["provider", "create", "--name", name, "--type", "tool", "--credential", "K=some-value"]);
}

fn entries(world: &World) -> Vec<PathBuf> {
    let dir = std::fs::read_dir(world.path("state/fullsend/runs")).into_iter().flatten();
    dir.map(|e| e.unwrap().path()).collect()
}
