//! Two runs side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::duration;
use super::run_dir::Record;

/// What is known of both, in the order in which it is shown: name, first, second.
fn values(a: &Record, b: &Record) -> Vec<(&'static str, Value, Value)> {
    let both = |name: &'static str, f: &dyn Fn(&Record) -> Value| (name, f(a), f(b));
    vec![
        both("agent", &|r| json!(r.agent)),
        both("verdict", &|r| json!(r.verdict)),
        both("exit_code", &|r| json!(r.exit_code)),
        both("error", &|r| json!(r.error.as_ref().map(|e| &e.code))),
        both("model", &|r| json!(r.totals.model)),
        both("agent_version", &|r| json!(r.totals.agent_version)),
        both("iterations", &|r| json!(r.iterations.len())),
        both("duration_ms", &|r| json!(r.duration_ms)),
        both("cost_usd", &|r| json!(r.totals.cost_usd)),
        both("turns", &|r| json!(r.totals.turns)),
        both("tool_calls", &|r| json!(r.totals.tool_calls)),
        both("tool_errors", &|r| json!(r.totals.tool_errors)),
        both("api_retries", &|r| json!(r.totals.api_retries)),
        both("tokens_output", &|r| json!(r.totals.tokens.output)),
        both("tokens_input", &|r| json!(r.totals.tokens.input)),
        both("tokens_cache_read", &|r| json!(r.totals.tokens.cache_read)),
        both("tokens_cache_creation", &|r| json!(r.totals.tokens.cache_creation)),
        both("changed_paths", &|r| json!(r.changes.len())),
        both("findings", &|r| json!(r.security.findings.values().sum::<u64>())),
        both("harness_digest", &|r| json!(r.harness_digest)),
        both("plan_digest", &|r| json!(r.plan_digest)),
        both("image", &|r| json!(r.image)),
        both("openshell", &|r| json!(r.openshell)),
        both("fullsend", &|r| json!(r.fullsend)),
    ]
}

/// Milliseconds of each phase, repeated ones added, in the order of the first run.
fn phases(a: &Record, b: &Record) -> Vec<(String, Option<u64>, Option<u64>)> {
    let sums = |r: &Record| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for phase in &r.phases {
            *sums.entry(phase.name.clone()).or_default() += phase.duration_ms;
        }
        sums
    };
    let (first, second) = (sums(a), sums(b));
    let mut seen = BTreeSet::new();
    let names = a.phases.iter().chain(&b.phases).map(|p| &p.name);
    names
        .filter(|name| seen.insert((*name).clone()))
        .map(|name| (name.clone(), first.get(name).copied(), second.get(name).copied()))
        .collect()
}

/// Paths that only one of them changed, and those that both changed.
fn paths(a: &Record, b: &Record) -> [Vec<String>; 3] {
    let set = |r: &Record| r.changes.iter().map(|c| c.path.clone()).collect::<BTreeSet<_>>();
    let (a, b) = (set(a), set(b));
    let list = |set: BTreeSet<&String>| set.into_iter().cloned().collect();
    [list(a.difference(&b).collect()), list(b.difference(&a).collect()), list(a.intersection(&b).collect())]
}

/// For programs.
pub fn json(a: &Record, b: &Record) -> Value {
    let pair = |a: &Value, b: &Value| json!({ "a": a, "b": b, "same": a == b });
    let values: serde_json::Map<_, _> =
        values(a, b).iter().map(|(name, a, b)| ((*name).to_owned(), pair(a, b))).collect();
    let phases: serde_json::Map<_, _> =
        phases(a, b).into_iter().map(|(name, a, b)| (name, json!({ "a": a, "b": b }))).collect();
    let [only_a, only_b, both] = paths(a, b);
    json!({
        "schema": "fullsend.diff-runs/1",
        "a": a.run,
        "b": b.run,
        "values": values,
        "phases_ms": phases,
        "paths": { "only_a": only_a, "only_b": only_b, "both": both },
    })
}

/// For people: what is the same is said once.
pub fn text(a: &Record, b: &Record) -> String {
    let mut out = String::new();
    let mut row = |name: &str, a: &str, b: &str, more: &str| {
        let _ = writeln!(out, "{}", format!("{name:<22} {a:<24} {b:<24} {more}").trim_end());
    };
    row("", &a.run, &b.run, "");
    for (name, a, b) in values(a, b) {
        let name = name.replace('_', " ");
        let (name, short) = match name.strip_suffix(" ms") {
            Some(name) => (name.to_owned(), shown_ms as fn(&Value) -> String),
            None => (name, shown as fn(&Value) -> String),
        };
        if a.is_null() && b.is_null() {
            continue;
        }
        row(
            &name,
            &short(&a),
            &short(&b),
            &match name.as_str() {
                _ if a == b => "=".to_owned(),
                // A number that is no amount.
                "exit code" => "≠".to_owned(),
                _ => change(&a, &b),
            },
        );
    }
    for (name, a, b) in phases(a, b) {
        let (a, b) = (json!(a), json!(b));
        row(&format!("phase {name}"), &shown_ms(&a), &shown_ms(&b), &change(&a, &b));
    }
    let [only_a, only_b, both] = paths(a, b);
    for (title, list) in
        [("changed by both", both), ("changed by the first", only_a), ("changed by the second", only_b)]
    {
        if !list.is_empty() {
            let _ = writeln!(out, "{title}: {}", list.join(", "));
        }
    }
    out
}

/// How much a number grew, in percent.
fn change(a: &Value, b: &Value) -> String {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if a > 0.0 => format!("{:+.0} %", (b - a) * 100.0 / a),
        _ if a == b => String::new(),
        _ => "≠".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.len() > 24 => format!("{}…", &text[..text.floor_char_boundary(16)]),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn shown_ms(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), |ms| duration(Duration::from_millis(ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run_dir::{Change, Phase};

    fn record(run: &str, ms: u64, path: &str) -> Record {
        let change = |path: &str| Change { path: path.into(), kind: "modified".into() };
        Record {
            run: run.into(),
            verdict: "success".into(),
            duration_ms: ms,
            harness_digest: "d".repeat(64),
            phases: vec![
                Phase { name: "agent".into(), duration_ms: ms / 2, ..Phase::default() },
                Phase { name: "agent".into(), duration_ms: 10, ..Phase::default() },
                Phase { name: path.into(), duration_ms: 1, ..Phase::default() },
            ],
            changes: vec![change("both"), change(path)],
            ..Record::default()
        }
    }

    #[test]
    fn what_differs_is_told() {
        let (a, b) = (record("a1", 1000, "one"), record("b1", 2000, "two"));
        let value = json(&a, &b);
        assert_eq!(value["values"]["verdict"], json!({ "a": "success", "b": "success", "same": true }));
        assert_eq!(value["values"]["duration_ms"], json!({ "a": 1000, "b": 2000, "same": false }));
        assert_eq!(value["phases_ms"]["agent"], json!({ "a": 510, "b": 1010 }));
        assert_eq!(value["phases_ms"]["two"], json!({ "a": null, "b": 1 }));
        assert_eq!(value["paths"], json!({ "only_a": ["one"], "only_b": ["two"], "both": ["both"] }));
        let text = text(&a, &b);
        for line in [
            "duration               1.0s                     2.0s                     +100 %",
            "changed by both: both",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.contains("dddddddddddddddd…"));
    }
}
