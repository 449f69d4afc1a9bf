//! The wrapper itself: what it writes down, and the faults on demand. Other tests lean on both.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The wrapper, which `cargo test` builds as an example.
pub(crate) fn wrapper() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_fullsend")).with_file_name("examples").join("openshell-wrapper");
    assert!(path.exists(), "build it first: cargo build --example openshell-wrapper");
    path
}

struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn command(&self, line: &str, fault: &str) -> Command {
        let mut command = Command::new(wrapper());
        command
            .args(shell_words::split(line).unwrap())
            .env("FULLSEND_WRAP_TARGET", env!("CARGO_BIN_EXE_fullsend"))
            .env("FULLSEND_WRAP_LOG", self.dir.path().join("log"))
            .env("FULLSEND_WRAP_FAULT", fault)
            .env("FULLSEND_LOCAL_STATE", self.dir.path().join("state"))
            .stdin(Stdio::null());
        command
    }

    fn call(&self, line: &str, fault: &str) -> Output {
        self.command(line, fault).output().unwrap()
    }
}

#[test]
fn each_call_is_written_down_with_names_but_no_values() {
    let setup = Setup::new();
    let mut call = setup.command("-g local sandbox list -o json", "");
    assert!(call.env("TOK", "the-value").output().unwrap().status.success());
    let mut piped = setup.command("--version", "");
    piped.stdin(Stdio::piped()).output().unwrap();
    let log = fs::read_to_string(setup.dir.path().join("log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["argv"].as_array().unwrap().len(), 6);
    assert!(lines[0]["env"].as_array().unwrap().iter().any(|name| name == "TOK"));
    assert!(!log.contains("the-value"));
    assert_eq!((&lines[0]["stdin_null"], &lines[1]["stdin_null"]), (&Value::Bool(true), &Value::Bool(false)));
}

#[test]
fn a_fault_strikes_the_call_that_it_names() {
    let setup = Setup::new();
    let fault = "sandbox list:2:exit=7:stdout=some\\nwords:stderr=why: this";
    assert!(setup.call("sandbox list", fault).status.success());
    assert!(setup.call("sandbox get nope", fault).status.code() == Some(1));
    let struck = setup.call("sandbox list", fault);
    assert_eq!(struck.status.code(), Some(7));
    assert_eq!((&struck.stdout[..], &struck.stderr[..]), (&b"some\nwords"[..], &b"why: this"[..]));
    assert!(setup.call("sandbox list", fault).status.success());
    for _ in 0..2 {
        assert_eq!(setup.call("sandbox list", "sandbox list:4+:exit=3").status.code(), Some(3));
    }
}

#[test]
fn the_kinds_do_what_they_say() {
    let setup = Setup::new();
    let garbage = setup.call("sandbox list -o json", "sandbox list:*:garbage");
    assert!(garbage.status.success() && serde_json::from_slice::<Value>(&garbage.stdout).is_err());
    assert_eq!(setup.call("sandbox list", "sandbox list:*:kill").status.signal(), Some(9));
    let started = Instant::now();
    assert!(setup.call("sandbox list", "sandbox list:*:slow=300").status.success());
    assert!(started.elapsed() >= Duration::from_millis(300));
    let mut hanging = setup.command("sandbox list", "sandbox list:*:hang").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(hanging.try_wait().unwrap().is_none());
    hanging.kill().unwrap();
    hanging.wait().unwrap();
    assert_eq!(setup.call("sandbox list", "sandbox list:x:hang").status.code(), Some(99));
}

#[test]
fn a_fault_can_come_after_the_call() {
    let setup = Setup::new();
    let create = "sandbox create --name a --detach -- sleep infinity";
    assert_eq!(setup.call(create, "sandbox create:1:then-exit=1").status.code(), Some(1));
    assert_eq!(setup.call("sandbox list --names", "").stdout, b"a\n");
    assert!(setup.call("sandbox delete a", "").status.success());
}
