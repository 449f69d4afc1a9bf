//! A mark in the environment of every child, by which the guard finds one that it was not told of.
//!
//! A run that is killed between starting a child and telling the guard its number would otherwise leave it behind:
//! an ssh connection for ever (seen under load).

use std::path::Path;
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process};

/// The variable.
pub(crate) const VARIABLE: &str = "FULLSEND_CHILD_OF";

static MARK: OnceLock<String> = OnceLock::new();

/// Sets the mark of all children from now on. Later calls are ignored.
pub fn set(value: String) {
    let _ = MARK.set(value);
}

/// The mark, once it is set.
pub(super) fn get() -> Option<&'static str> {
    MARK.get().map(String::as_str)
}

/// Kills every process of this user that carries the mark. Returns how many there were. Does nothing where there is
/// no `/proc`.
pub fn kill_marked(value: &str) -> usize {
    let wanted = format!("{VARIABLE}={value}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let carries = |dir: &Path| {
        let environ = std::fs::read(dir.join("environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|var| var == wanted.as_bytes())
    };
    let mut found = 0;
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let Some(pid) = pid.filter(|_| carries(&entry.path())) else { continue };
        if kill_process(pid, Signal::KILL).is_ok() {
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_process_is_found_and_another_is_not() {
        let value = format!("test-{}", std::process::id());
        let sleep = |mark: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg("600").env(VARIABLE, mark).spawn().unwrap()
        };
        let (mut marked, mut other) = (sleep(&value), sleep(&format!("{value}0")));
        while kill_marked(&value) == 0 {
            std::thread::yield_now();
        }
        assert!(!marked.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
