//! The claude CLI and a stub of its model API, for tests that run the real thing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{World, helper};

/// The pinned claude executable, or nothing after saying so where the log of the tests shows it.
pub fn claude(test: &str) -> Option<PathBuf> {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/claude-2.1.332/node_modules");
    let why = match std::env::var_os("FULLSEND_TEST_CLAUDE") {
        Some(path) if path.is_empty() => "FULLSEND_TEST_CLAUDE is empty".to_owned(),
        Some(path) => {
            // Tests bind the directory of the program, so it must lie there itself, under its own name.
            let path = PathBuf::from(path);
            let plain = path.symlink_metadata().is_ok_and(|m| m.is_file()) && path.ends_with("claude");
            assert!(plain, "FULLSEND_TEST_CLAUDE={} is not a file named claude", path.display());
            return Some(path);
        }
        None => {
            let packages = fetched.join("@anthropic-ai");
            let found = std::fs::read_dir(&packages).into_iter().flatten().flatten();
            match found.map(|e| e.path().join("claude")).find(|p| p.is_file()) {
                Some(path) => return Some(path),
                None => "FULLSEND_TEST_CLAUDE is not set; .ci/claude fetches the program".to_owned(),
            }
        }
    };
    not_run(test, &why);
    None
}

/// Another agent CLI as its script in `.ci` fetches it: the file `program` below the tools of that version.
pub fn fetched(test: &str, cli: &str, version: &str, program: &str) -> Option<PathBuf> {
    let tools =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/tools/{cli}-{version}/node_modules"));
    let files = walkdir::WalkDir::new(tools).max_depth(8).into_iter().flatten();
    let found = files.map(walkdir::DirEntry::into_path).find(|p| p.ends_with(program) && p.is_file());
    if found.is_none() {
        not_run(test, &format!("there is no {cli} {version}; .ci/{cli} fetches it"));
    }
    found
}

/// A world whose agent `work` runs under `runtime`, with a skill and instructions in the repository.
pub fn world_for(runtime: &str, model: &str, turns: &Value) -> (World, Stub) {
    let mut world = World::new();
    let stub = Stub::start(&world, turns);
    world.env("STUB_URL", &stub.url);
    world.write("repo/AGENTS.md", "marker-of-the-project\n");
    world.commit("Instruct agents");
    world.write(
        "h/agents/coder.md",
        "---\nname: the-coder\ndescription: Makes a change\n---\nYou are the coder (marker-of-the-agent).\n",
    );
    world.write(
        "h/skills/small/SKILL.md",
        "---\nname: small\ndescription: marker-of-the-skill\n---\nSmall.\n",
    );
    world.write(
        "h/policies/net.yaml",
        "version: 1\nfilesystem_policy:\n  read_only: [/usr, /lib, /etc]\n  read_write: [/sandbox, /tmp]\n\
         network_policies:\n  model:\n    name: model\n    endpoints: [{host: 127.0.0.1, port: 443}]\n    \
         binaries: [{path: '**'}]\n",
    );
    world.harness(&format!(
        "agent: agents/coder.md\nruntime: {runtime}\nmodel: {model}\npolicy: policies/net.yaml\n\
         skills: [skills/small]\ntimeout_minutes: 4\nenv:\n  sandbox:\n    OPENAI_BASE_URL: ${{STUB_URL}}/v1\n    \
         ANTHROPIC_BASE_URL: ${{STUB_URL}}/v1\n    OPENAI_API_KEY: dummy-key-of-the-stub\n    \
         ANTHROPIC_API_KEY: dummy-key-of-the-stub\n"
    ));
    (world, stub)
}

/// Says that a test did not run. Past the capture of the test harness, so that nobody takes it for passed.
pub fn not_run(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "\nNOT RUN {test}: {why}");
}

/// A running stub.
pub struct Stub {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    log: PathBuf,
}

impl Stub {
    /// Starts a stub with a script; it ends with this value.
    pub fn start(world: &World, script: &Value) -> Self {
        let file = world.write("stub/script.json", script.to_string());
        let log = world.path("stub/log.jsonl");
        let mut child = Command::new(helper("model-stub"))
            .args([&file, &log])
            .arg("300")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening ").unwrap().to_owned();
        Self { child, url, log }
    }

    /// What was asked, a value per request.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result event of a recorded stream.
pub fn result_event(stream: &str) -> Value {
    let mut events = stream.lines().rev().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.find(|e| e["type"] == "result").expect("a result event")
}
