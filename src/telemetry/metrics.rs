//! Metrics in Prometheus' text format, for the textfile collector of the node exporter.
//!
//! A run is one process among many, so counters go on from what the file has: read, add, replace by rename, under a
//! lock. Series of others in the file are not ours to keep: the file belongs to fullsend alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use crate::agent::Metrics;

/// How long another run may hold the lock.
const PATIENCE: Duration = Duration::from_secs(2);
/// A file is never longer, in bytes.
const LIMIT: u64 = 4 * 1024 * 1024;
/// Upper bounds of the durations of runs, in seconds.
const BUCKETS: [u32; 10] = [10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

/// Name, type, help. A family is written only when it has a series.
const FAMILIES: [(&str, &str, &str); 15] = [
    ("fullsend_runs_total", "counter", "Runs by how they ended."),
    ("fullsend_run_duration_seconds", "histogram", "How long runs took, from their start to their end."),
    ("fullsend_phase_seconds_total", "counter", "Time spent in each phase."),
    ("fullsend_turns_total", "counter", "Turns of agents."),
    ("fullsend_tokens_total", "counter", "Tokens that agents used, by type."),
    ("fullsend_cost_usd_total", "counter", "Cost in US dollars, as the agents reckon it."),
    ("fullsend_tool_calls_total", "counter", "Tool calls of agents."),
    ("fullsend_tool_errors_total", "counter", "Tool calls of agents that failed."),
    ("fullsend_api_retries_total", "counter", "Requests to model APIs that were repeated."),
    ("fullsend_findings_total", "counter", "Findings of the security checks, by severity."),
    (
        "fullsend_blocked_total",
        "counter",
        "Tool calls that hooks denied, and runs that a security check stopped.",
    ),
    (
        "fullsend_active_sandboxes",
        "gauge",
        "Runs of this user on this host that may have a sandbox, after the last run.",
    ),
    ("fullsend_last_run_timestamp_seconds", "gauge", "When the last run ended, in seconds since 1970."),
    ("fullsend_last_run_success", "gauge", "Whether the last run was a success or a skip."),
    ("fullsend_build_info", "gauge", "The version of fullsend that wrote this file."),
];

/// Phases by name, in seconds.
pub(crate) type Phases = BTreeMap<String, f64>;

/// What one run adds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// The agent's name.
    pub agent: String,
    /// How the run ended.
    pub verdict: &'static str,
    /// Whether that is good.
    pub good: bool,
    /// How long it took.
    pub duration: Duration,
    /// How long its phases took.
    pub phases: Phases,
    /// The agent's figures.
    pub totals: Metrics,
    /// Findings by severity.
    pub findings: BTreeMap<&'static str, u64>,
    /// Denied tool calls, and 1 for a blocked run.
    pub blocked: u64,
    /// Runs that may have a sandbox.
    pub active: u64,
    /// When it ended, in seconds since 1970.
    pub ended: f64,
}

/// Series by their text, e.g. `fullsend_runs_total{agent="a"}`.
type Series = BTreeMap<String, f64>;

/// Adds a run to the metrics file; the text says what went wrong.
pub(crate) fn add(path: &Path, figures: &Figures) -> Result<(), String> {
    let said = |e: std::io::Error| e.to_string();
    let lock_path = path.with_added_extension("lock");
    let lock = std::fs::OpenOptions::new().create(true).append(true).open(&lock_path).map_err(said)?;
    let end = Instant::now() + PATIENCE;
    while let Err(error) = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK || Instant::now() > end {
            return Err(format!("{} is locked", lock_path.display()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let old = match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() && meta.len() <= LIMIT => std::fs::read_to_string(path).map_err(said)?,
        Ok(_) => return Err("it is not a text file of metrics".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(said(error)),
    };
    let mut series = parse(&old)?;
    count(&mut series, figures);
    replace(path, &render(&series)).map_err(said)
}

/// Written beside it and renamed, so that a collector never reads half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".fullsend-metrics-").tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    // The collector runs as another user.
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// What a file has. A file with anything else than this program's series is somebody else's.
fn parse(text: &str) -> Result<Series, String> {
    let mut series = Series::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let parts = line.rsplit_once(' ').and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
        match parts {
            Some((name, value)) if name.starts_with("fullsend_") && value.is_finite() => {
                series.insert(name.to_owned(), value);
            }
            _ => return Err(format!("line {} is not from fullsend; it needs a file of its own", at + 1)),
        }
    }
    Ok(series)
}

fn count(series: &mut Series, run: &Figures) {
    let agent = label("agent", &run.agent);
    let mut add = |name: &str, labels: &str, value: f64| {
        *series.entry(format!("fullsend_{name}{{{labels}}}")).or_default() += value;
    };
    let totals = &run.totals;
    add("runs_total", &format!("{agent},{}", label("verdict", run.verdict)), 1.0);
    let seconds = run.duration.as_secs_f64();
    for bound in BUCKETS {
        let within = f64::from(u8::from(seconds <= f64::from(bound)));
        add("run_duration_seconds_bucket", &format!("{agent},le=\"{bound}\""), within);
    }
    add("run_duration_seconds_bucket", &format!("{agent},le=\"+Inf\""), 1.0);
    add("run_duration_seconds_sum", &agent, seconds);
    add("run_duration_seconds_count", &agent, 1.0);
    for (phase, seconds) in &run.phases {
        add("phase_seconds_total", &format!("{agent},{}", label("phase", phase)), *seconds);
    }
    add("turns_total", &agent, float(totals.turns));
    for (kind, tokens) in [
        ("input", totals.tokens.input),
        ("output", totals.tokens.output),
        ("cache_creation", totals.tokens.cache_creation),
        ("cache_read", totals.tokens.cache_read),
    ] {
        add("tokens_total", &format!("{agent},{}", label("type", kind)), float(tokens));
    }
    add("cost_usd_total", &agent, totals.cost_usd.filter(|c| c.is_finite() && *c > 0.0).unwrap_or(0.0));
    add("tool_calls_total", &agent, float(totals.tool_calls));
    add("tool_errors_total", &agent, float(totals.tool_errors));
    add("api_retries_total", &agent, float(totals.api_retries));
    for (severity, n) in &run.findings {
        add("findings_total", &format!("{agent},{}", label("severity", severity)), float(*n));
    }
    add("blocked_total", &agent, float(run.blocked));
    series.insert("fullsend_active_sandboxes".into(), float(run.active));
    series.insert(format!("fullsend_last_run_timestamp_seconds{{{agent}}}"), run.ended);
    series.insert(format!("fullsend_last_run_success{{{agent}}}"), f64::from(u8::from(run.good)));
    series.retain(|name, _| !name.starts_with("fullsend_build_info"));
    series.insert(format!("fullsend_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1.0);
}

#[expect(clippy::cast_precision_loss, reason = "every sample of the format is a float")]
fn float(n: u64) -> f64 {
    n as f64
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

fn render(series: &Series) -> String {
    let mut out = String::new();
    for (family, kind, help) in FAMILIES {
        let of_family = |name: &str| {
            let name = name.split('{').next().unwrap_or(name);
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            name == family || (kind == "histogram" && base == Some(family))
        };
        let mut of_this: Vec<_> = series.iter().filter(|(name, _)| of_family(name)).collect();
        if of_this.is_empty() {
            continue;
        }
        // Buckets come in the order of their bounds, before sum and count.
        of_this
            .sort_by(|(a, _), (b, _)| order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal));
        let _ = writeln!(out, "# HELP {family} {help}\n# TYPE {family} {kind}");
        for (name, value) in of_this {
            let _ = writeln!(out, "{name} {value}");
        }
    }
    out
}

/// Where a series stands in its family.
fn order(name: &str) -> (&str, u8, f64) {
    let (name, labels) = name.split_once('{').unwrap_or((name, ""));
    let kind = if name.ends_with("_sum") { 1 } else { u8::from(name.ends_with("_count")) * 2 };
    match labels.split_once("le=\"") {
        Some((agent, bound)) => {
            (agent.trim_end_matches(','), 0, bound.trim_end_matches("\"}").parse().unwrap_or(f64::INFINITY))
        }
        None => (labels.trim_end_matches('}'), kind, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(seconds: u64) -> Figures {
        Figures {
            agent: "a\"b".into(),
            verdict: "success",
            good: true,
            duration: Duration::from_secs(seconds),
            phases: Phases::from([("agent".into(), 1.5)]),
            totals: Metrics { turns: 3, cost_usd: Some(0.25), ..Metrics::default() },
            findings: BTreeMap::from([("high", 2)]),
            blocked: 1,
            active: 4,
            ended: 1_700_000_000.5,
        }
    }

    #[test]
    fn counters_go_on_from_what_the_file_has() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fullsend.prom");
        add(&path, &figures(20)).unwrap();
        add(&path, &figures(4000)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in [
            "# TYPE fullsend_runs_total counter",
            r#"fullsend_runs_total{agent="a\"b",verdict="success"} 2"#,
            r#"fullsend_run_duration_seconds_bucket{agent="a\"b",le="10"} 0"#,
            r#"fullsend_run_duration_seconds_bucket{agent="a\"b",le="30"} 1"#,
            r#"fullsend_run_duration_seconds_bucket{agent="a\"b",le="+Inf"} 2"#,
            r#"fullsend_run_duration_seconds_sum{agent="a\"b"} 4020"#,
            r#"fullsend_phase_seconds_total{agent="a\"b",phase="agent"} 3"#,
            r#"fullsend_cost_usd_total{agent="a\"b"} 0.5"#,
            r#"fullsend_findings_total{agent="a\"b",severity="high"} 4"#,
            "fullsend_active_sandboxes 4",
            r#"fullsend_last_run_timestamp_seconds{agent="a\"b"} 1700000000.5"#,
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        let le: Vec<_> = text.lines().filter_map(|l| l.split_once("le=\"")).collect();
        assert_eq!((le.len(), le[0].1, le[10].1), (11, "10\"} 0", "+Inf\"} 2"));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["fullsend.prom", "fullsend.prom.lock"]);
    }

    #[test]
    fn every_series_has_a_family() {
        let mut series = Series::new();
        count(&mut series, &figures(1));
        let rendered = render(&series);
        let lines = rendered.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(lines, series.len());
        assert_eq!(parse(&rendered).unwrap(), series);
    }

    #[test]
    fn a_file_of_others_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for text in ["node_load1 1\n", "not metrics\n", "fullsend_x NaN\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(add(&path, &figures(1)).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(add(dir.path(), &figures(1)).is_err());
    }

    #[test]
    fn runs_at_once_do_not_lose_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.prom");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| add(&path, &figures(1)).unwrap());
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("verdict=\"success\"} 8\n"), "{text}");
    }
}
