//! A world in which every call of a program goes through the fault wrapper, and a run in it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Done, Run, World, fullsend, helper};

/// The programs that a run calls by name.
const TOOLS: [&str; 4] = ["ssh", "scp", "rsync", "git"];
/// The scripts of the harness.
const SCRIPTS: [&str; 3] = ["pre-script", "post-script", "check-script"];

/// What the agent leaves.
pub(crate) const RESULT: &str = "{\"n\":1}\n";
/// What the agent says.
pub(crate) const SAID: &str = "a word of the agent";

/// A world with the wrapper in front of everything.
pub(crate) struct Stage {
    pub(crate) world: World,
}

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) run: Run,
    /// From start to the end of the process.
    pub(crate) took: Duration,
    /// The kinds of the calls, in order.
    pub(crate) calls: Vec<String>,
    /// Whether the fault happened.
    pub(crate) struck: bool,
}

impl Stage {
    /// Small, but with every part that a run can have.
    pub(crate) fn new() -> Self {
        Self::under(None)
    }

    /// The same under the personality of an older OpenShell.
    pub(crate) fn under(generation: Option<&str>) -> Self {
        let mut world = World::new();
        world.harness(
            "agent: agents/work\nruntime: script\npre_script: scripts/pre-script\n\
             post_script: scripts/post-script\nproviders: [p]\ndeadlines: {script: 4, preflight_check: 4}\n\
             validation_loop:\n  script: scripts/check-script\n  schema: schemas/s.json\n  max_iterations: 2\n",
        );
        world.write("h/schemas/s.json", r#"{"type":"object","required":["n"]}"#);
        world.write("h/providers/p.yaml", "name: p\ntype: t\ncredentials: {TOKEN: \"${CRED}\"}\n");
        world.write(
            "h/profiles/t.yaml",
            "id: t\ndisplay_name: T\ncredentials:\n  - name: token\n    env_vars: [TOKEN]\nendpoints: []\n",
        );
        world.agent(&format!(
            "echo '{SAID}'; echo work > made; mkdir -p deep; echo more > deep/made\n\
             printf '{{\"n\":1}}\\n' > $FULLSEND_OUTPUT_DIR/agent-result.json"
        ));
        let mut real = json!({ "openshell": [fullsend(), "openshell"] });
        if let Some(generation) = generation {
            world.personality(generation);
            real["openshell"] = json!([helper("openshell-wrapper")]);
        }
        std::fs::create_dir_all(world.path("w/bin")).unwrap();
        let link = |name: &str| {
            std::os::unix::fs::symlink(helper("fault-wrapper"), world.path("w/bin").join(name)).unwrap();
        };
        link("openshell");
        for tool in TOOLS {
            link(tool);
            real[tool] = json!([which(tool)]);
        }
        for script in SCRIPTS {
            link(script);
            let body = world.write(&format!("h/real/{script}"), "echo it ran\n");
            real[script] = json!(["/bin/sh", body]);
            let through = format!("#!/bin/sh\nexec '{}'\n", world.path("w/bin").join(script).display());
            world.write(&format!("h/scripts/{script}"), through);
        }
        world.write("w/real.json", real.to_string());
        let path = std::env::var("PATH").unwrap();
        world.env("PATH", format!("{}:{path}", world.path("w/bin").display()));
        world.env("FULLSEND_OPENSHELL", world.path("w/bin/openshell").to_str().unwrap());
        world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.01");
        world.env("CRED", "a-credential-of-the-test");
        Self { world }
    }

    /// Breaks the `nth` call of a kind.
    pub(crate) fn fault(&self, kind: &str, nth: usize, what: &str) {
        self.world.write("w/fault.json", json!({ "kind": kind, "nth": nth, "what": what }).to_string());
    }

    /// A path of the world.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.world.path(below)
    }

    /// Runs `fullsend run`; ends it when it hangs for longer than `bound`.
    pub(crate) fn run(&self, more: &[&str], bound: Duration) -> Outcome {
        let mut args = vec!["--apply", "always", "--timeout", "8s"];
        args.extend(more);
        let args = self.world.run_args(&args);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        // Files, not pipes: what a child of the run left behind could hold a pipe open.
        let (out, err) = (self.path("w/stdout"), self.path("w/stderr"));
        let mut command = self.world.command(fullsend(), &args, &self.world.repo());
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        command.stdin(Stdio::null());
        let begun = Instant::now();
        let mut child = command.spawn().unwrap();
        std::fs::write(self.path("w/runner.pid.new"), child.id().to_string()).unwrap();
        std::fs::rename(self.path("w/runner.pid.new"), self.path("w/runner.pid")).unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if begun.elapsed() > bound {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let took = begun.elapsed();
        let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let code = status.map_or(-1000, |s| s.code().unwrap_or_else(|| -s.signal().unwrap_or(0)));
        let done = Done { code, stdout: text(&out), stderr: text(&err) };
        let calls = std::fs::read_to_string(self.path("w/calls")).unwrap_or_default();
        Outcome {
            run: self.world.collect(done),
            took,
            calls: calls.lines().map(str::to_owned).collect(),
            struck: self.path("w/struck").exists(),
        }
    }

    /// The real git in the checkout.
    pub(crate) fn plain_git(&self, args: &[&str]) -> std::process::Command {
        self.world.command(which("git"), args, &self.world.repo())
    }

    /// Waits until nothing of the run is left, or `bound` is over. Returns what is left.
    pub(crate) fn leftovers(&self, bound: Duration) -> Vec<String> {
        leftovers(&self.world, bound)
    }
}

/// What is left of the runs of a world after at most `bound`: processes, sandboxes, journal entries, temp files.
pub(crate) fn leftovers(world: &World, bound: Duration) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let mut left = processes(&world.path(""));
        left.extend(files(world));
        if left.is_empty() {
            let list = world.finish(world.command(
                fullsend(),
                &["openshell", "sandbox", "list", "--names"],
                &world.repo(),
            ));
            left.extend(list.stdout.lines().map(|l| format!("sandbox {l}")));
            let list = world.finish(world.command(
                fullsend(),
                &["openshell", "provider", "list", "-o", "json"],
                &world.repo(),
            ));
            if list.stdout.contains("\"name\"") {
                left.push(format!("providers {}", list.stdout));
            }
        }
        if left.is_empty() || begun.elapsed() > bound {
            return left;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Files that only a run that lives may have.
fn files(world: &World) -> Vec<String> {
    let mut left = Vec::new();
    for dir in ["state/fullsend/runs", "tmp"] {
        for entry in std::fs::read_dir(world.path(dir)).into_iter().flatten().flatten() {
            if entry.file_name() != ".ballast" {
                left.push(format!("{dir}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    let beside = std::fs::read_dir(world.path("")).into_iter().flatten().flatten();
    left.extend(
        beside
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|n| n.contains("fullsend-staged")),
    );
    left
}

/// The processes whose environment or arguments name the world: nothing else has that path.
fn processes(world: &Path) -> Vec<String> {
    use std::os::unix::ffi::OsStrExt as _;
    let mark = world.as_os_str().as_bytes();
    let mark = mark.strip_suffix(b"/").unwrap_or(mark);
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        if !name.as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let (environ, cmdline) = (read("environ"), read("cmdline"));
        if [&environ, &cmdline].iter().any(|text| memchr::memmem::find(text, mark).is_some()) {
            let line = String::from_utf8_lossy(&cmdline).replace('\0', " ");
            found.push(format!(
                "process {} {}",
                name.to_string_lossy(),
                line.chars().take(200).collect::<String>()
            ));
        }
    }
    found
}

fn which(tool: &str) -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&paths).map(|dir| dir.join(tool)).find(|p| p.exists()).unwrap()
}
