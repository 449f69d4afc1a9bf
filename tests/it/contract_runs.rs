//! The contract of the command line against every personality of the wrapper, and by hand against a real one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::contract::{self, Known, Outcome, Personality, run};
use crate::wrapper::wrapper;

fn report(outcomes: &[Outcome]) {
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|o| o.result.as_ref().err().map(|why| format!("- {} ({:?}): {why}", o.name, o.known)))
        .collect();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), outcomes.len(), failed.join("\n"));
}

fn against_the_wrapper(personality: Personality) {
    let dir = tempfile::tempdir().unwrap();
    let env: Vec<(OsString, OsString)> = [
        ("FULLSEND_WRAP_TARGET", env!("CARGO_BIN_EXE_fullsend").into()),
        ("FULLSEND_WRAP_PERSONALITY", personality.name().into()),
        ("FULLSEND_LOCAL_STATE", dir.path().join("state").into_os_string()),
    ]
    .map(|(k, v): (&str, OsString)| (k.into(), v))
    .into();
    let outcomes = run(&wrapper(), personality, &env);
    report(&outcomes);
}

#[test]
fn personality_0_0_83() {
    against_the_wrapper(Personality::V0_0_83);
}

#[test]
fn personality_0_0_110() {
    against_the_wrapper(Personality::V0_0_110);
}

#[test]
fn personality_0_0_116() {
    against_the_wrapper(Personality::V0_0_116);
}

#[test]
fn personality_0_1() {
    against_the_wrapper(Personality::V0_1);
}

#[test]
fn every_expectation_applies_somewhere_and_has_a_name_of_its_own() {
    let all = contract::expectations::ALL;
    for (at, e) in all.iter().enumerate() {
        assert!(e.on.0 <= e.on.1, "{}", e.name);
        assert!(!e.steps.is_empty(), "{}", e.name);
        assert!(all[at + 1..].iter().all(|other| other.name != e.name), "{}", e.name);
    }
    for personality in Personality::ALL {
        assert!(all.iter().any(|e| e.on == (personality, personality) || e.on.0 == personality));
    }
}

/// Against the executable in `FULLSEND_CONTRACT_OPENSHELL`, when it is set.
#[test]
fn by_hand() {
    let Some(exe) = std::env::var_os("FULLSEND_CONTRACT_OPENSHELL").map(PathBuf::from) else {
        eprintln!("FULLSEND_CONTRACT_OPENSHELL is not set: nothing was checked against a real release");
        return;
    };
    let version = Command::new(&exe).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let personality = Personality::of_version(&version);
    let outcomes = run(&exe, personality, &[]);
    for outcome in &outcomes {
        let mark = if outcome.result.is_ok() { "ok  " } else { "FAIL" };
        let known = match outcome.known {
            Known::Seen(releases) => releases,
            Known::Read => "read only",
        };
        eprintln!("{mark} {} [{known}]", outcome.name);
    }
    report(&outcomes);
}
