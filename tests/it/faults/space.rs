//! Disk full in the run directory or the temp dir, at every call of a run.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use super::stage::Stage;
use super::{BOUND, Combination, WORKERS, judge, measure};

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
    let combination = Combination { generation: None, kind: kind.to_owned(), nth: 1, what };
    let mut wrong = judge::after_all(&stage, &outcome);
    let sandboxes = std::fs::read_dir(stage.path("state/fullsend/local/sandboxes"));
    wrong.extend(sandboxes.into_iter().flatten().flatten().map(|e| format!("left: {}", e.path().display())));
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
    let kinds: BTreeSet<String> = measure(None).into_keys().collect();
    let mut all: Vec<(&str, &str)> = Vec::new();
    for below in ["out", "tmp", "state"] {
        // The state is written by the backend and by the runner at the start.
        let of_it = kinds.iter().filter(|k| below != "state" || k.starts_with("openshell "));
        all.extend(of_it.map(|kind| (kind.as_str(), below)));
    }
    let count = all.len();
    let (queue, wrong, skipped) = (Mutex::new(all), Mutex::new(Vec::new()), Mutex::new(false));
    let worker = || {
        loop {
            let Some((kind, below)) = queue.lock().unwrap().pop() else { return };
            match attempt(kind, below) {
                Some(complaints) => wrong.lock().unwrap().extend(complaints),
                None => *skipped.lock().unwrap() = true,
            }
        }
    };
    std::thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(worker))));
    if skipped.into_inner().unwrap() {
        let _ = std::io::stderr().write_all(b"SKIPPED full disk: this user may not mount a tmpfs\n");
        return;
    }
    let wrong = wrong.into_inner().unwrap();
    let _ = std::io::stderr().write_all(format!("full disk: {count} combinations\n").as_bytes());
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_checkout_without_room_for_the_result_is_not_touched() {
    let world = crate::support::World::new();
    let repo = world.repo();
    let Some(_small) = Small::mount(&repo) else {
        let _ = std::io::stderr().write_all(b"SKIPPED full checkout: this user may not mount a tmpfs\n");
        return;
    };
    world.git(&["init", "-q", "-b", "main"]);
    world.git(&["config", "user.name", "Test"]);
    world.git(&["config", "user.email", "test@example.com"]);
    world.write("repo/a", "a\n");
    world.commit("Begin");
    world.agent("echo changed > a; head -c 3000000 /dev/urandom > zbig");
    let run = world.run(&[]).failure("FS-IO", 3);
    assert!(run.done.stderr.contains("no space left for the result"), "{}", run.done.stderr);
    assert!(run.done.stderr.contains("nothing was changed"), "{}", run.done.stderr);
    assert_eq!(std::fs::read_to_string(repo.join("a")).unwrap(), "a\n");
    let staged = run.json["staged"].as_str().expect("the staged tree is named");
    assert!(std::path::Path::new(staged).exists() && run.done.stderr.contains(staged), "{}", run.done.stderr);
    std::fs::remove_dir_all(staged).unwrap();
}
