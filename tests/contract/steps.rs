//! Making the calls of an expectation and looking at what comes back.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Call, Expect, Personality, Shape, Step};

/// How long any call may take; a pull of an image is not part of the contract.
const LIMIT: Duration = Duration::from_mins(1);

/// The files that expectations name, and what their names stand for.
pub(crate) struct Workshop<'a> {
    exe: &'a Path,
    personality: Personality,
    env: &'a [(OsString, OsString)],
    dir: tempfile::TempDir,
    sandbox: String,
}

const FILES: [(&str, &str); 6] = [
    (
        "policy.yaml",
        "version: 1\nfilesystem_policy:\n  read_only: [/usr, /lib, /etc, /proc]\n  read_write: [/sandbox, /tmp, /dev/null]\nprocess:\n  run_as_user: sandbox\n  run_as_group: sandbox\n",
    ),
    ("unknown-field.yaml", "version: 1\nbogus_field: 1\n"),
    ("broad.yaml", "version: 1\nfilesystem_policy:\n  read_write: [/]\n"),
    ("root.yaml", "version: 1\nprocess:\n  run_as_user: root\n"),
    ("broken-profile.yaml", "id: fs-contract-broken\n"),
    ("payload", "bytes\n"),
];

impl<'a> Workshop<'a> {
    /// `at` makes the names unlike those of other expectations.
    pub(crate) fn new(
        exe: &'a Path,
        personality: Personality,
        env: &'a [(OsString, OsString)],
        at: usize,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in FILES {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let unique = std::process::id() % 100_000;
        let sandbox = format!("fsc-{unique}-{at}");
        // From 0.0.103 a credential is given only where the profile binds it to an endpoint.
        let profile = format!(
            "id: {sandbox}-t\ndisplay_name: Contract\ncategory: other\ncredentials:\n  - name: token\n    \
             description: token\n    env_vars: [FS_CONTRACT_TOKEN]\n    required: true\n    auth_style: header\n    \
             header_name: x-api-key\nendpoints:\n  - host: api.example.com\n    port: 443\n    protocol: rest\n    \
             access: read-only\n    enforcement: enforce\nbinaries: [/usr/bin/curl]\n"
        );
        fs::write(dir.path().join("profile.yaml"), profile).unwrap();
        Self { exe, personality, env, dir, sandbox }
    }

    fn fill(&self, word: &str) -> String {
        word.replace("{N}", &self.sandbox)
            .replace("{P}", &format!("{}-p", self.sandbox))
            .replace("{T}", &format!("{}-t", self.sandbox))
            .replace("{D}", &self.dir.path().to_string_lossy())
    }

    fn words(&self, line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for word in shell_words::split(line).unwrap() {
            if word == "{KEEP}" {
                let image = std::env::var("FULLSEND_CONTRACT_IMAGE").unwrap_or("contract:1".to_owned());
                words.extend(
                    ["--keep", "--no-auto-providers", "--no-tty", "--from", &image].map(str::to_owned),
                );
            } else if word == "{MAIN}" {
                let main: &[&str] = if self.personality >= Personality::V0_0_116 {
                    &["--detach", "--", "sleep", "infinity"]
                } else {
                    &["--", "true"]
                };
                words.extend(main.iter().map(|w| (*w).to_owned()));
            } else {
                words.push(self.fill(&word));
            }
        }
        words
    }

    fn cli(&self, words: &[String], env: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.exe);
        command.args(words).envs(self.env.iter().map(|(k, v)| (k, v))).envs(env.iter().copied());
        bounded(command)
    }

    /// Makes the call and compares.
    pub(crate) fn check(&mut self, step: &Step) -> Result<(), String> {
        let (what, output) = match step.call {
            Call::Cli(line) => (line.to_owned(), self.cli(&self.words(line), &[])),
            Call::CliEnv(line, env) => (line.to_owned(), self.cli(&self.words(line), env)),
            Call::Ssh(line) => (format!("ssh: {line}"), self.ssh(&self.fill(line))?),
            Call::ScpRoundTrip(path) => return self.scp(path),
            Call::Phase(phase) => return self.wait_phase(Some(phase)),
            Call::Gone => return self.wait_phase(None),
        };
        let shown = || {
            let text = |b: &[u8]| String::from_utf8_lossy(b).trim().to_owned();
            format!(
                "`{what}`\n  status {:?}\n  out: {}\n  err: {}",
                output.status.code(),
                text(&output.stdout),
                text(&output.stderr)
            )
        };
        if output.status.code() != Some(step.code) {
            return Err(format!("expected status {}: {}", step.code, shown()));
        }
        for expect in step.expect {
            let holds = match expect {
                Expect::Out(text) => normal(&output.stdout).contains(&self.fill(text)),
                Expect::NotOut(text) => !normal(&output.stdout).contains(&self.fill(text)),
                Expect::Err(text) => normal(&output.stderr).contains(&self.fill(text)),
                Expect::Json(shape) => has_shape(&output.stdout, *shape),
            };
            if !holds {
                return Err(format!("expected {expect:?}: {}", shown()));
            }
        }
        Ok(())
    }

    /// Writes the configuration and returns the file and the alias in it.
    fn ssh_config(&self) -> Result<(PathBuf, String), String> {
        let output = self.cli(&self.words("sandbox ssh-config {N}"), &[]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let alias = text
            .lines()
            .find_map(|line| line.strip_prefix("Host "))
            .ok_or_else(|| format!("no Host line in {text:?}"))?
            .trim()
            .to_owned();
        let path = self.dir.path().join("ssh_config");
        fs::write(&path, &text).map_err(|e| e.to_string())?;
        Ok((path, alias))
    }

    fn ssh(&self, line: &str) -> Result<Output, String> {
        let (config, alias) = self.ssh_config()?;
        let mut command = Command::new("ssh");
        command.arg("-F").arg(config).args(["-o", "BatchMode=yes"]).arg(alias).arg(line);
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        Ok(bounded(command))
    }

    fn scp(&self, path: &str) -> Result<(), String> {
        let (config, alias) = self.ssh_config()?;
        let (from, back) = (self.dir.path().join("payload"), self.dir.path().join("payload.back"));
        let remote = format!("{alias}:{path}");
        for (a, b) in [(from.as_os_str(), remote.as_ref()), (remote.as_ref(), back.as_os_str())] {
            let mut command = Command::new("scp");
            command.args(["-q", "-F"]).arg(&config).arg(a).arg(b).envs(self.env.iter().map(|(k, v)| (k, v)));
            let output = bounded(command);
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr);
                return Err(format!("scp {} {}: {why}", a.display(), b.display()));
            }
        }
        let read = |p: &Path| fs::read(p).map_err(|e| e.to_string());
        if read(&from)? == read(&back)? { Ok(()) } else { Err("scp changed the bytes".to_owned()) }
    }

    /// Nothing stands for a sandbox that is not listed.
    fn wait_phase(&self, wanted: Option<&str>) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let output = self.cli(&self.words("sandbox list -o json"), &[]);
            let found = phase(&output.stdout, &self.sandbox);
            if output.status.success() && found.as_deref() == wanted {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("expected phase {wanted:?}, last was {found:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Removes what the steps may have left.
    pub(crate) fn tidy(&self) {
        for line in ["sandbox delete {N}", "provider delete {P}", "provider profile delete {T}"] {
            self.cli(&self.words(line), &[]);
        }
    }
}

/// Runs a child with nothing on standard input. One that does not end in time is killed and has no status.
fn bounded(mut command: Command) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::File::create(dir.path().join(name)).unwrap();
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    Output { status, stdout: read("out"), stderr: read("err") }
}

/// Text without escapes, without the frame of reports, with single blanks.
fn normal(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                let _ = chars.by_ref().find(char::is_ascii_alphabetic);
            }
            '│' | '├' | '╰' | '─' | '▶' | '×' => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_shape(bytes: &[u8], shape: Shape) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return false };
    match shape {
        Shape::Array => value.is_array(),
        Shape::Object => value.is_object(),
        Shape::Page(key) => {
            value.get(key).is_some_and(Value::is_array) && value.get("next_page_token").is_some()
        }
    }
}

/// The phase of a sandbox in either form of the list.
fn phase(bytes: &[u8], name: &str) -> Option<String> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let items = value.get("sandboxes").unwrap_or(&value).as_array()?;
    let item = items.iter().find(|i| i.get("name").and_then(Value::as_str) == Some(name))?;
    item.get("phase")?.as_str().map(str::to_owned)
}

#[test]
fn output_is_compared_without_its_frame() {
    assert_eq!(normal("Error:   × a 'b',\n  │ c\n  ╰─▶ \x1b[2md\x1b[0m\n".as_bytes()), "Error: a 'b', c d");
}

#[test]
fn versions_are_sorted_into_generations() {
    for (version, want) in [
        ("openshell 0.0.83", Personality::V0_0_83),
        ("openshell 0.0.110", Personality::V0_0_110),
        ("openshell 0.0.112-dev.7+g2f7fb6559", Personality::V0_0_116),
        ("openshell 0.1.10+fullsend\n", Personality::V0_1),
        ("openshell 0.2.0", Personality::V0_1),
    ] {
        assert_eq!(Personality::of_version(version), want, "{version}");
    }
}
