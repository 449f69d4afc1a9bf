//! The conformance suite of the trust boundary: a run for every file of `tests/hostile`, with a sandbox that answers
//! with what the file says. `tests/hostile/README.md` has the format and what is checked.

mod checks;
mod log;
mod secret;
mod stage;
mod vector;

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use stage::Ci;
use vector::{Body, Vector};

use crate::stub::not_run;

/// Runs per class at the same time; the test harness runs classes side by side as well.
const WORKERS: usize = 2;

/// Runs every vector of a class, and says how many there were.
fn class(name: &str) {
    let vectors = vector::class(name);
    let only = std::env::var("FULLSEND_TEST_VECTOR").ok();
    let vectors: Vec<_> = vectors
        .into_iter()
        .filter(|v| only.as_ref().is_none_or(|only| only.split(',').any(|o| v.name.contains(o))))
        .collect();
    let wanted = |v: &Vector| v.slow.is_none() || std::env::var_os("FULLSEND_TEST_SLOW").is_some();
    let (vectors, slow): (Vec<_>, Vec<_>) = vectors.into_iter().partition(wanted);
    for vector in slow {
        not_run(
            &format!("hostile::{}", vector.name),
            &format!("{}; FULLSEND_TEST_SLOW is not set", vector.slow.unwrap()),
        );
    }
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(vector) = vectors.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(failure) = verdict(vector) {
                        // At once, past the capture of the test harness: a class takes its time.
                        let _ = writeln!(std::io::stderr(), "\nhostile: {failure}");
                        failures.lock().unwrap().push(vector.name.clone());
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let (all, bad, took) = (vectors.len(), failures.len(), begun.elapsed().as_secs());
    let _ = writeln!(std::io::stderr(), "\nhostile: {name}: {all} vectors, {bad} failed, {took} s");
    assert!(failures.is_empty(), "not answered as they ask: {}", failures.join(", "));
}

/// What is wrong with a vector's run.
fn verdict(vector: &Vector) -> Option<String> {
    let mut wrong = Vec::new();
    for ci in stage::readers(vector) {
        wrong.extend(stage::run(vector, *ci).into_iter().map(|what| format!("({ci:?}) {what}")));
    }
    (!wrong.is_empty()).then(|| {
        format!(
            "{} ({}):
{}",
            vector.name,
            vector.title,
            wrong.join(
                "
"
            )
        )
    })
}

#[test]
fn symbolic_links() {
    class("link");
}

#[test]
fn paths() {
    class("path");
}

#[test]
fn repositories() {
    class("git");
}

#[test]
fn names() {
    class("name");
}

#[test]
fn sizes() {
    class("size");
}

#[test]
fn types_of_files() {
    class("type");
}

#[test]
fn streams() {
    class("stream");
}

#[test]
fn logs() {
    class("log");
}

#[test]
fn redaction() {
    class("redaction");
}

#[test]
fn uploads() {
    class("upload");
}

#[test]
fn gateways() {
    class("gateway");
}

#[test]
fn senders() {
    class("sender");
}

#[test]
fn the_suite_is_large_and_well_formed() {
    let mut all = Vec::new();
    for name in vector::CLASSES {
        let vectors = vector::class(name);
        assert!(vectors.len() >= 5, "{name} has only {} vectors", vectors.len());
        all.extend(vectors);
    }
    assert!(all.len() >= 120, "only {} vectors", all.len());
    let git = all.iter().filter(|v| v.class == "git").count();
    assert!(git >= 20, "only {git} vectors for git");
    let dirs: Vec<_> = std::fs::read_dir(vector::root())
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.file_type().unwrap().is_dir())
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    assert!(dirs.iter().all(|d| vector::CLASSES.contains(&d.as_str())), "a class nobody runs: {dirs:?}");
    assert!(all.iter().any(|v| matches!(v.body, Body::Printed(_))));
}

/// The checks themselves: a run of an agent that wins each time must be found out.
#[test]
fn the_checks_find_what_they_are_for() {
    checks::prove();
    log::prove();
    secret::prove();
    assert_ne!(Ci::GitHub, Ci::GitLab);
}
