//! The fault matrix: every call of a small run × everything that can go wrong with it, and every signal at every call.
//!
//! A good run is measured first. Then each call of it is broken in each way, once per run, and the run is judged:
//! [`judge`] has the invariants. Deadlines are scaled, so that calls that hang fit; that they end is asserted
//! generously, and what is promised in seconds is for benchmarks to measure.

mod judge;
mod space;
pub(crate) mod stage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stage::Stage;

/// Runs at once. Most of the time is spent in waiting for deadlines.
const WORKERS: usize = 6;
/// When a run is ended that does not end by itself.
const BOUND: Duration = Duration::from_secs(150);
/// What is done to a call.
const FAULTS: [&str; 9] =
    ["exit=1", "exit=255", "hang", "signal=KILL", "signal=TERM", "garbage", "half", "slow=300", "nospace"];
/// What is done to the runner while a call is being made.
const SIGNALS: [&str; 4] = ["runner=KILL", "runner=INT", "runner=TERM", "runner=HUP"];
/// Calls of one kind that are broken; later ones are like these.
const NTH_MAX: usize = 2;

/// Older generations, whose calls of openshell are broken once in a few ways.
const OLDER: [&str; 3] = ["0.0.83", "0.0.110", "0.0.116"];
/// What is done to those.
const FAULTS_OF_OLDER: [&str; 3] = ["exit=1", "garbage", "runner=KILL"];

/// One run of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Combination {
    /// The personality; the embedded backend's own when absent.
    generation: Option<&'static str>,
    kind: String,
    nth: usize,
    what: String,
}

impl std::fmt::Display for Combination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} #{} {}", self.kind, self.nth, self.what)?;
        self.generation.map_or(Ok(()), |generation| write!(f, " under {generation}"))
    }
}

/// The calls of a good run: how many there are of each kind.
fn measure(generation: Option<&str>) -> BTreeMap<String, usize> {
    let stage = Stage::under(generation);
    let outcome = stage.run(&[], BOUND);
    let calls = outcome.calls.clone();
    assert_eq!(outcome.run.done.code, 0, "{}\n{}", outcome.run.done.stdout, outcome.run.done.stderr);
    assert_eq!(stage.leftovers(Duration::from_secs(30)), Vec::<String>::new());
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call).or_insert(0) += 1;
    }
    counts
}

fn combinations(calls: &BTreeMap<String, usize>) -> Vec<Combination> {
    let mut all = Vec::new();
    for (kind, count) in calls {
        for nth in 1..=(*count).min(NTH_MAX) {
            for what in FAULTS {
                all.push(Combination { generation: None, kind: kind.clone(), nth, what: what.to_owned() });
            }
        }
        for what in SIGNALS {
            all.push(Combination { generation: None, kind: kind.clone(), nth: 1, what: what.to_owned() });
        }
    }
    all
}

/// The calls of openshell, which is what differs between generations.
fn combinations_of_older() -> Vec<Combination> {
    let mut all = Vec::new();
    for generation in OLDER {
        let kinds = measure(Some(generation)).into_keys().filter(|kind| kind.starts_with("openshell "));
        for kind in kinds {
            for what in FAULTS_OF_OLDER {
                let (generation, kind) = (Some(generation), kind.clone());
                all.push(Combination { generation, kind, nth: 1, what: what.to_owned() });
            }
        }
        for what in ["hang", "half", "runner=TERM"] {
            let (generation, kind) = (Some(generation), "openshell sandbox create".to_owned());
            all.push(Combination { generation, kind, nth: 1, what: what.to_owned() });
        }
    }
    all
}

/// Those that `FULLSEND_TEST_FAULTS` names by a part of their text; all, when it is not set.
fn wanted(mut all: Vec<Combination>) -> Vec<Combination> {
    if let Ok(part) = std::env::var("FULLSEND_TEST_FAULTS") {
        all.retain(|c| c.to_string().contains(&part));
    }
    // Hanging ones first: they take longest and cost nothing.
    all.sort_by_key(|c| c.what != "hang");
    all.reverse();
    all
}

fn attempt(combination: &Combination) -> (bool, Vec<String>, String) {
    let stage = Stage::under(combination.generation);
    stage.fault(&combination.kind, combination.nth, &combination.what);
    let outcome = stage.run(&[], BOUND);
    let wrong = judge::complaints(&stage, combination, &outcome);
    let told = format!(
        "exit {} after {:?}\n--- stdout\n{}\n--- stderr\n{}",
        outcome.run.done.code, outcome.took, outcome.run.done.stdout, outcome.run.done.stderr
    );
    (outcome.struck, wrong, told)
}

#[test]
fn no_fault_loses_results_or_leaves_anything_behind() {
    let calls = measure(None);
    let (total, struck) = sweep("fault matrix", combinations(&calls));
    if std::env::var_os("FULLSEND_TEST_FAULTS").is_none() {
        assert!(total >= 300 && struck * 10 >= total * 9, "{total} combinations, {struck} struck");
    }
}

#[test]
fn no_fault_of_an_older_openshell_does_either() {
    let (total, struck) = sweep("fault matrix of older generations", combinations_of_older());
    if std::env::var_os("FULLSEND_TEST_FAULTS").is_none() {
        assert!(total >= 90 && struck * 10 >= total * 9, "{total} combinations, {struck} struck");
    }
}

/// Tries all combinations; how many there were, and how many faults struck.
#[track_caller]
fn sweep(title: &str, all: Vec<Combination>) -> (usize, usize) {
    let begun = Instant::now();
    let queue = Mutex::new(wanted(all));
    let total = queue.lock().unwrap().len();
    let (report, struck) = (Mutex::new(String::new()), Mutex::new(0_usize));
    let worker = || {
        loop {
            let Some(combination) = queue.lock().unwrap().pop() else { return };
            let (hit, wrong, told) = attempt(&combination);
            *struck.lock().unwrap() += usize::from(hit);
            if !wrong.is_empty() {
                let mut report = report.lock().unwrap();
                let _ = writeln!(report, "### {combination}: {}\n{told}\n", wrong.join("; "));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(worker);
        }
    });
    let (report, struck) = (report.into_inner().unwrap(), struck.into_inner().unwrap());
    let failed = report.matches("### ").count();
    let took = begun.elapsed();
    let line = format!("{title}: {total} combinations, {struck} faults struck, {failed} failed, {took:?}\n");
    // Past the test's capture, so that the count is seen when all is well too.
    let _ = std::io::stderr().write_all(line.as_bytes());
    assert!(report.is_empty(), "{failed} of {total}:\n{report}");
    (total, struck)
}
