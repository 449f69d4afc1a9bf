//! Disk full in the run directory or the temp dir, at every call of a run.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use super::stage::Stage;
use super::{BOUND, Combination, judge, measure};

/// A small file system, taken away at the end.
struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    /// Mounts it; `None` where this user may not.
    fn mount(at: &'a Path) -> Option<Self> {
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(at).output().ok()?;
        done.status.success().then_some(Self(at))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// Fills the file system of `below` while `kind` is called for the first time.
fn attempt(kind: &str, below: &str) -> Option<Vec<String>> {
    let stage = Stage::new();
    let dir = stage.path(below);
    let _small = Small::mount(&dir)?;
    let what = format!("fill={}", dir.display());
    stage.fault(kind, 1, &what);
    let outcome = stage.run(&[], BOUND);
    let combination = Combination { kind: kind.to_owned(), nth: 1, what };
    let mut wrong = judge::after_all(&stage, &outcome);
    let (code, stderr) = (outcome.run.done.code, &outcome.run.done.stderr);
    match code {
        0 => wrong.extend(judge::success(&stage, &outcome)),
        3 => {
            let named =
                ["No space left", "no space left", "space"].iter().any(|words| stderr.contains(words));
            if !named || !stderr.contains("error[FS-") || !stderr.contains("help: ") {
                wrong.push("the error does not say that the disk is full".to_owned());
            }
        }
        _ => wrong.push(format!("exit status {code}")),
    }
    let told = format!("exit {code}\n{}\n{stderr}", outcome.run.done.stdout);
    Some(if wrong.is_empty() {
        wrong
    } else {
        vec![format!("### {combination}: {}\n{told}", wrong.join("; "))]
    })
}

#[test]
fn a_full_disk_is_named_and_nothing_stays() {
    let kinds: BTreeSet<String> = measure().into_keys().collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for below in ["out", "tmp"] {
        for kind in &kinds {
            let Some(complaints) = attempt(kind, below) else {
                let _ = std::io::stderr().write_all(b"SKIPPED full disk: this user may not mount a tmpfs\n");
                return;
            };
            count += 1;
            wrong.extend(complaints);
        }
    }
    let _ = std::io::stderr().write_all(format!("full disk: {count} combinations\n").as_bytes());
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
