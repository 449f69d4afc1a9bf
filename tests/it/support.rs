//! What every test needs: a private world with a repository, a harness directory and a state of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The four generations of OpenShell that a run has to work with.
pub const GENERATIONS: [&str; 4] = ["0.0.83", "0.0.110", "0.0.116", "0.1.10"];

/// The binary under test.
pub fn fullsend() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fullsend"))
}

/// A helper program of tests/support, built as an example.
pub fn helper(name: &str) -> PathBuf {
    let path = fullsend().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} was not built; run the tests with `cargo test`", path.display());
    path
}

/// A world of its own: nothing of the user's home, state or environment is seen.
pub struct World {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// What a command left.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    pub done: Done,
    /// The run directory, when one was made.
    pub dir: Option<PathBuf>,
    /// `run.json`, or null.
    pub json: Value,
}

impl World {
    /// A repository `repo` with one commit, and a harness directory `harness` with one script agent `work`.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fs-test-").tempdir().unwrap();
        let world = Self { dir, env: Vec::new() };
        for sub in ["home", "state", "tmp", "out", "repo", "h/harness", "h/agents"] {
            std::fs::create_dir_all(world.path(sub)).unwrap();
        }
        world.git(&["init", "-q", "-b", "main"]);
        world.git(&["config", "user.name", "Test"]);
        world.git(&["config", "user.email", "test@example.com"]);
        world.write("repo/README.md", "# A repository\n");
        world.commit("Begin");
        world.agent("true");
        world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\n");
        world
    }

    /// A path in the world.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The repository.
    pub fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    /// Sets a variable for every command.
    pub fn env(&mut self, key: &str, value: impl AsRef<str>) -> &mut Self {
        self.env.push((key.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// What a variable was set to last.
    pub fn variable(&self, key: &str) -> Option<String> {
        self.env.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.clone())
    }

    /// Uses the embedded backend under the personality of an older OpenShell.
    pub fn personality(&mut self, version: &str) -> &mut Self {
        self.env("FULLSEND_OPENSHELL", helper("openshell-wrapper").to_str().unwrap());
        self.env("FULLSEND_WRAP_TARGET", fullsend().to_str().unwrap());
        self.env("FULLSEND_WRAP_PERSONALITY", version);
        self.env("FULLSEND_WRAP_LOG", self.path("calls.jsonl").to_str().unwrap())
    }

    /// What the wrapper recorded, a JSON value per call of openshell.
    pub fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("calls.jsonl")).unwrap_or_default();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    /// Writes a file, with its directories.
    pub fn write(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes an executable script.
    pub fn script(&self, below: &str, body: &str) -> PathBuf {
        let path = self.write(below, format!("#!/bin/bash\n{body}\n"));
        make_executable(&path);
        path
    }

    /// Sets what the agent `work` does: a bash script that runs in the repository inside the sandbox.
    pub fn agent(&self, body: &str) {
        self.script("h/agents/work", &format!("set -eu\n{body}"));
    }

    /// Sets `harness/work.yaml`.
    pub fn harness(&self, yaml: &str) {
        self.write("h/harness/work.yaml", yaml);
    }

    /// Runs git in the repository and returns its output.
    pub fn git(&self, args: &[&str]) -> String {
        let out = self.command("git", args, &self.repo()).output().unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Commits everything.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// A command in this world, not started.
    pub fn command(&self, program: impl AsRef<OsStr>, args: &[&str], cwd: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(cwd).env_clear().stdin(Stdio::null());
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// Runs fullsend in the repository.
    pub fn fullsend(&self, args: &[&str]) -> Done {
        self.finish(self.command(fullsend(), args, &self.repo()))
    }

    /// Runs a command to its end.
    #[allow(clippy::unused_self, reason = "reads better at the call")]
    pub fn finish(&self, mut command: Command) -> Done {
        let out = command.output().unwrap();
        Done {
            code: out.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
        }
    }

    /// The arguments of `fullsend run work` in this world.
    pub fn run_args(&self, more: &[&str]) -> Vec<String> {
        let mut args: Vec<String> = ["run", "work", "--fullsend-dir"].map(String::from).into();
        args.push(self.path("h").to_str().unwrap().into());
        args.push("--output-dir".into());
        args.push(self.path("out").to_str().unwrap().into());
        if !self.env.iter().any(|(k, _)| k == "FULLSEND_OPENSHELL") {
            args.push("--local".into());
        }
        args.extend(more.iter().map(|a| (*a).to_owned()));
        args
    }

    /// `fullsend run work`.
    pub fn run(&self, more: &[&str]) -> Run {
        let args = self.run_args(more);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let done = self.fullsend(&args);
        self.collect(done)
    }

    /// Adds the newest run directory to what a command left.
    pub fn collect(&self, done: Done) -> Run {
        let mut dirs: Vec<_> =
            std::fs::read_dir(self.path("out")).unwrap().map(|e| e.unwrap().path()).collect();
        // Names of one second are in no order.
        let born = |dir: &PathBuf| dir.metadata().and_then(|m| m.created().or_else(|_| m.modified())).ok();
        dirs.sort_by_key(|dir| (born(dir), dir.clone()));
        let dir = dirs.pop();
        let json = dir
            .as_ref()
            .and_then(|d| std::fs::read(d.join("run.json")).ok())
            .map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
        Run { done, dir, json }
    }

    /// Nothing may be left of a run: no sandbox, no journal entry, no temp file.
    pub fn assert_clean(&self) {
        let list =
            self.finish(self.command(fullsend(), &["openshell", "sandbox", "list", "--names"], &self.repo()));
        assert_eq!(list.stdout.trim(), "", "a sandbox is left: {list:?}");
        let names = |dir: &str| -> Vec<_> {
            std::fs::read_dir(self.path(dir)).into_iter().flatten().map(|e| e.unwrap().file_name()).collect()
        };
        assert!(names("state/fullsend/runs").is_empty(), "a journal entry is left");
        assert!(names("tmp").is_empty(), "temp files are left: {:?}", names("tmp"));
    }
}

impl Run {
    /// The run went well.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.done.code, 0, "{}\n{}", self.done.stdout, self.done.stderr);
        self
    }

    /// The run failed with this code and exit status.
    #[track_caller]
    pub fn failure(self, code: &str, exit: i32) -> Self {
        let Done { stdout, stderr, .. } = &self.done;
        assert!(stderr.contains(&format!("error[{code}]")), "no {code}:\n{stdout}\n{stderr}");
        assert!(stderr.contains("help: "), "no help:\n{stderr}");
        assert_eq!(self.done.code, exit, "{stdout}\n{stderr}");
        self
    }

    /// A file of the run directory.
    #[track_caller]
    pub fn file(&self, below: &str) -> String {
        let path = self.dir.as_ref().expect("a run directory").join(below);
        String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
            .into_owned()
    }
}

/// Sets the executable bits.
pub fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Every regular file below a directory, with its content.
pub fn files_below(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                todo.push(entry.path());
            } else if kind.is_file() {
                files.push((entry.path(), std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    files
}
