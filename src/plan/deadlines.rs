//! How long each part of a run may take.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// The names by which a harness (`deadlines:`) and the command line (`--deadline`) change a deadline.
pub const NAMES: &[&str] = &[
    "api_server",
    "bootstrap",
    "collect",
    "connect",
    "delete",
    "openshell",
    "preflight_check",
    "queue",
    "review",
    "run",
    "script",
];

/// What is added to the limit until the sandbox is ready for the call that creates it: a gateway has its own limit
/// for that, and says more about it than we could.
const CREATE_SLACK: Duration = Duration::from_secs(30);

/// The deadlines of a run; serialised in whole seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Deadlines {
    /// One short call of the openshell CLI.
    #[serde(serialize_with = "secs")]
    pub openshell_call: Duration,
    /// From create to Ready.
    #[serde(serialize_with = "secs")]
    pub ready: Duration,
    /// From the start of a server on the host until it is healthy.
    #[serde(serialize_with = "secs")]
    pub api_server: Duration,
    /// Opening the connection.
    #[serde(serialize_with = "secs")]
    pub connect: Duration,
    /// Moving the archive in and unpacking it.
    #[serde(serialize_with = "secs")]
    pub bootstrap: Duration,
    /// The agent, per iteration.
    #[serde(serialize_with = "secs")]
    pub agent: Duration,
    /// Without a word from the agent for this long it is ended; never, unless asked for.
    #[serde(serialize_with = "maybe_secs", skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// Fetching results, per iteration. Apart from the agent's budget: a timeout never costs the results.
    #[serde(serialize_with = "secs")]
    pub collect: Duration,
    /// A pre-, post- or validation script.
    #[serde(serialize_with = "secs")]
    pub script: Duration,
    /// The preflight check of a validation loop.
    #[serde(serialize_with = "secs")]
    pub preflight_check: Duration,
    /// Waiting for other runs of the agent to end, where `max_concurrent` says so. Zero: no waiting.
    #[serde(serialize_with = "secs")]
    pub queue: Duration,
    /// A review of the work by another agent, from the start of its run to the end.
    #[serde(serialize_with = "secs")]
    pub review: Duration,
    /// Deleting the sandbox and confirming that it is gone.
    #[serde(serialize_with = "secs")]
    pub delete: Duration,
    /// The whole run up to the end of its last agent. What comes after (collecting, deleting) has its own.
    #[serde(serialize_with = "maybe_secs", skip_serializing_if = "Option::is_none")]
    pub run: Option<Duration>,
}

impl Deadlines {
    /// The defaults around the two that a harness sets.
    pub fn new(agent: Duration, ready: Duration) -> Self {
        let s = Duration::from_secs;
        Self {
            openshell_call: s(30),
            ready,
            api_server: s(30),
            connect: s(60),
            bootstrap: s(900),
            agent,
            idle: None,
            collect: s(900),
            script: s(3600),
            preflight_check: s(30),
            queue: s(600),
            review: s(3600),
            delete: s(60),
            run: None,
        }
    }

    /// The same with changes by name (see [`NAMES`]); other names change nothing.
    #[must_use]
    pub fn with(mut self, changes: &BTreeMap<String, Duration>) -> Self {
        for (name, value) in changes {
            match name.as_str() {
                "api_server" => self.api_server = *value,
                "bootstrap" => self.bootstrap = *value,
                "collect" => self.collect = *value,
                "connect" => self.connect = *value,
                "delete" => self.delete = *value,
                "openshell" => self.openshell_call = *value,
                "preflight_check" => self.preflight_check = *value,
                "queue" => self.queue = *value,
                "review" => self.review = *value,
                "run" => self.run = Some(*value),
                "script" => self.script = *value,
                _ => {}
            }
        }
        self
    }

    /// What a sandbox may still need once the work of its run is ended: fetching, deleting, and the grace of both.
    pub fn teardown(&self) -> Duration {
        self.collect.saturating_add(self.delete).saturating_add(Duration::from_mins(1))
    }

    /// The same for the openshell client.
    pub fn openshell(&self) -> crate::openshell::Deadlines {
        crate::openshell::Deadlines {
            read: self.openshell_call,
            change: self.openshell_call,
            logs: self.openshell_call,
            create: self.ready + CREATE_SLACK,
            delete: self.delete,
            ..crate::openshell::Deadlines::default()
        }
    }
}

/// `90s`, `45m`, `2h`, `1h30m`, or plain seconds; 1 second to a week.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn parse(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration such as 90s, 45m, 2h or 1h30m");
    let mut total = 0_u64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let (unit, after) = match rest[digits..].chars().next() {
            None if total == 0 => (1, ""),
            Some('s') => (1, &rest[digits + 1..]),
            Some('m') => (60, &rest[digits + 1..]),
            Some('h') => (3600, &rest[digits + 1..]),
            _ => return Err(bad()),
        };
        total = number.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(bad)?;
        rest = after;
    }
    if total == 0 || total > 7 * 24 * 3600 {
        return Err(format!("{text:?} is outside 1s to 168h"));
    }
    Ok(Duration::from_secs(total))
}

/// How often a create is tried.
pub const CREATE_TRIES: u32 = 3;
/// What the sum of deadlines leaves out: pauses between tries, grace times, files of the host.
const SLACK: Duration = Duration::from_mins(15);

impl Deadlines {
    /// After how long a run has ended: `iterations` of the agent with `checks` validation scripts each, `scripts`
    /// before and after, `calls` of openshell for providers and profiles.
    pub fn sum(&self, iterations: u32, scripts: u32, checks: u32, calls: u32) -> Duration {
        let create = crate::openshell::Deadlines::default().create;
        let times = |d: Duration, n: u32| d.checked_mul(n).unwrap_or(Duration::MAX);
        let iteration = self.agent.saturating_add(self.collect).saturating_add(times(self.script, checks));
        [
            self.preflight_check,
            times(self.script, scripts),
            times(self.openshell_call, calls.saturating_mul(2).saturating_add(2)),
            times(create.saturating_add(self.ready).saturating_add(self.delete), CREATE_TRIES),
            self.connect,
            self.bootstrap,
            times(iteration, iterations),
            self.delete,
            SLACK,
        ]
        .into_iter()
        .fold(Duration::ZERO, Duration::saturating_add)
    }
}

fn secs<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(d.as_secs())
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn maybe_secs<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    d.map(|d| d.as_secs()).serialize(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_grows_with_everything_in_it() {
        let d = Deadlines::new(Duration::from_mins(10), Duration::from_mins(5));
        let base = d.sum(1, 0, 0, 0);
        assert!(base > d.agent + d.collect + d.bootstrap + d.ready);
        assert_eq!(d.sum(3, 0, 0, 0), base + (d.agent + d.collect) * 2);
        assert_eq!(d.sum(1, 2, 0, 0), base + d.script * 2);
        assert_eq!(d.sum(2, 0, 1, 0), d.sum(2, 0, 0, 0) + d.script * 2);
        let long = Deadlines::new(Duration::MAX, Duration::MAX);
        assert_eq!(long.sum(u32::MAX, 1, 1, 1), Duration::MAX);
    }

    #[test]
    fn durations_are_read() {
        let secs = |t| parse(t).map(|d| d.as_secs());
        assert_eq!(secs("90"), Ok(90));
        assert_eq!(secs("1h30m"), Ok(5400));
        assert_eq!(secs("45m"), Ok(2700));
        for bad in ["", "0", "m", "5d", "1h30", "-1s", "1.5h", "99999999999999999999s", "200h"] {
            assert!(secs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_name_changes_a_deadline() {
        let base = Deadlines::new(Duration::from_secs(1), Duration::from_secs(2));
        for name in NAMES {
            let changed = base.clone().with(&BTreeMap::from([((*name).to_owned(), Duration::from_secs(7))]));
            assert_ne!(format!("{changed:?}"), format!("{base:?}"), "{name}");
        }
    }
}
