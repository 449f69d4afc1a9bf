//! A world with a forge on the loopback interface, a bare remote, and the starter harnesses.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harnesses::copy;
use crate::support::{Done, Run, World, helper};

/// What the sandbox and the results must never have.
pub const READ: &str = "read-token-5b1c9d7e02";
pub const WRITE: &str = "write-token-93f1c07a55";

pub const FORGES: [&str; 2] = ["github", "gitlab"];

/// A harness of the starter directory, its forge, and its repository.
pub struct Suite {
    pub world: World,
    pub forge: &'static str,
    stub: Child,
    log: PathBuf,
    state: PathBuf,
}

/// An issue that an agent may work on.
fn issue() -> Value {
    json!({"number": 7, "title": "It crashes", "body": "When I start it.", "author": "ann", "labels": ["agent-code"]})
}

/// A change that an agent may review and fix; its commit is put in by [`Suite::start`].
fn change() -> Value {
    json!({"number": 9, "title": "Improve", "body": "Better.", "author": "robot", "head": "fullsend/issue-7",
        "base": "main", "diff": "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-a\n+b\n"})
}

impl Suite {
    /// An agent of the starter harnesses as the agent `work`, whose sandbox runs `agents/work` instead of claude.
    pub fn new(agent: &str, forge: &'static str) -> Self {
        Self::start(agent, forge, |_| {})
    }

    /// The same, with a forge that is prepared.
    pub fn start(agent: &str, forge: &'static str, prepare: impl FnOnce(&mut Value)) -> Self {
        let mut world = World::new();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("harnesses/starter"), &world.path("h"));
        world.harness(&format!(
            "base: {agent}.yaml\nagent: agents/work\nruntime: script\nvalidation_loop:\n  max_iterations: 1\n"
        ));
        let remote = world.path("remote.git");
        world.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
        world.git(&["push", "-q", remote.to_str().unwrap(), "main"]);
        if matches!(agent, "review" | "fix") {
            world.git(&["checkout", "-q", "-b", "fullsend/issue-7"]);
            world.write("repo/README.md", "# An improved repository\n");
            world.commit("Improve");
            world.git(&["push", "-q", remote.to_str().unwrap(), "fullsend/issue-7"]);
        }
        let mut state = json!({
            "kind": forge, "repository": "acme/widget", "members": ["ann"], "issues": [issue()], "changes": [],
            "tokens": {READ: {"login": "robot"}, WRITE: {"login": "robot", "write": true}},
        });
        if matches!(agent, "review" | "fix") {
            state["changes"] = json!([change()]);
            state["changes"][0]["commit"] = json!(world.git(&["rev-parse", "HEAD"]).trim());
        }
        prepare(&mut state);
        let file = world.write("forge/state.json", state.to_string());
        let (log, now) = (world.path("forge/log.jsonl"), world.path("forge/state.json.now"));
        std::fs::copy(&file, &now).unwrap();
        let mut stub = Command::new(helper("forge-stub"))
            .args([&file, &log])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(stub.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening ").unwrap();
        world.env("GITHUB_API_URL", url).env("GITHUB_REPOSITORY", "acme/widget");
        world.env("CI_API_V4_URL", format!("{url}/api/v4")).env("CI_PROJECT_PATH", "acme/widget");
        world.env("FORGE_READ_TOKEN", READ).env("PUSH_TOKEN", WRITE);
        world.env("PUSH_URL", remote.to_str().unwrap()).env("ANTHROPIC_API_KEY", "key-of-no-use-4a7d");
        world.env(if matches!(agent, "review" | "fix") { "CHANGE_NUMBER" } else { "ISSUE_NUMBER" }, {
            if matches!(agent, "review" | "fix") { "9" } else { "7" }
        });
        Self { world, forge, stub, log, state: now }
    }

    /// Sets what the agent does, and what it says.
    pub fn agent(&self, does: &str, says: &Value) {
        self.world.agent(&act(does, says));
    }

    /// Runs the agent.
    pub fn run(&self) -> Run {
        self.world.run(&["--forge", self.forge])
    }

    /// Runs a script of the harness by itself, as a run does, in a directory `run` of the world, whose
    /// `iteration-1/output` is the agent's.
    pub fn script(&self, name: &str, cwd: &str, more: &[(&str, &str)]) -> Done {
        let script = self.world.path(format!("h/scripts/{name}"));
        let mut command = self.world.command(script, &[], &self.world.path(cwd));
        command.env("FORGE", self.forge).env("FULLSEND_RUN_DIR", self.world.path("run"));
        command.env("FULLSEND_VALIDATED_ITERATION_DIR", self.world.path("run/iteration-1/output"));
        command.envs(more.iter().copied());
        self.world.finish(command)
    }

    /// What was asked of the forge: status, method and path of each request, and its body.
    pub fn requests(&self) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|r| {
                let part = |key: &str| r[key].as_str().unwrap().to_owned();
                (format!("{} {} {}", part("kind"), part("method"), part("target")), r["body"].clone())
            })
            .collect()
    }

    /// The requests that wanted to change something, without bodies.
    pub fn writes(&self) -> Vec<String> {
        let all = self.requests().into_iter().map(|(line, _)| line);
        all.filter(|line| !line.contains(" GET ")).collect()
    }

    /// What the forge holds now.
    pub fn state(&self) -> Value {
        serde_json::from_slice(&std::fs::read(&self.state).unwrap()).unwrap()
    }

    /// The texts of our comments.
    pub fn comments(&self) -> Vec<String> {
        let state = self.state();
        let all = state["comments"].as_array().into_iter().flatten();
        all.filter(|c| c["author"] == "robot").map(|c| c["body"].as_str().unwrap().to_owned()).collect()
    }

    /// Runs git in the bare remote.
    pub fn remote(&self, args: &[&str]) -> String {
        let remote = self.world.path("remote.git");
        let all: Vec<_> = ["--git-dir", remote.to_str().unwrap()].iter().chain(args).copied().collect();
        self.world.git(&all)
    }

    /// The branches of the remote.
    pub fn branches(&self) -> String {
        self.remote(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])
    }

    /// Whether a token is anywhere in what the run left, or in what the sandbox saw.
    #[track_caller]
    pub fn assert_no_token(&self, run: &Run) {
        for (path, bytes) in crate::support::files_below(run.dir.as_ref().unwrap()) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(READ) && !text.contains(WRITE), "a token is in {}", path.display());
        }
        let write = self.world.variable("PUSH_TOKEN").unwrap();
        assert!(!run.done.stdout.contains(&write) && !run.done.stderr.contains(&write));
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        let _ = self.stub.kill();
        let _ = self.stub.wait();
    }
}

/// A line of bash that does something and writes the result.
pub fn act(does: &str, says: &Value) -> String {
    let says = says.to_string().replace('\'', r"'\''");
    format!(
        "env > \"$FULLSEND_OUTPUT_DIR/environment\"; cp -r /sandbox/workspace/agent-input \"$FULLSEND_OUTPUT_DIR/input\"; \
         {does}\nprintf '%s' '{says}' > \"$FULLSEND_OUTPUT_DIR/agent-result.json\""
    )
}

/// How the agent makes a commit.
pub fn commit(does: &str, message: &str) -> String {
    format!(
        "{does}; git add -A; git -c user.name=Linus -c user.email=linus@example.com commit -q -m '{message}'"
    )
}
