//! What runs, since when, whose, in which phase, until when.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::standing::{Standing, own_run};
use super::survey::{AtHand, Known, Place, Problem, Survey};
use crate::error::Result;
use crate::openshell::SandboxRow;
use crate::openshell::names::{label, parse_stamp};
use crate::report::duration;

/// What `ps` found.
#[derive(Debug, Serialize)]
pub(crate) struct Ps {
    schema: &'static str,
    /// One per run, by start.
    pub runs: Vec<Row>,
    /// Files of the journal that were not understood.
    pub left_alone: Vec<Alone>,
    /// Gateways that could not be asked.
    pub problems: Vec<Problem>,
    #[serde(skip)]
    now: Timestamp,
}

/// A file that is left alone.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Alone {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl Alone {
    pub(super) fn all(survey: &Survey) -> Vec<Self> {
        survey.strange.iter().map(|(path, why)| Self { path: path.clone(), why: why.clone() }).collect()
    }
}

/// One run.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    /// Its id; nothing when the labels do not say.
    pub run: Option<String>,
    /// The agent's name.
    pub agent: Option<String>,
    /// How things are with it.
    pub state: Standing,
    /// What it is doing, where that is known.
    pub phase: Option<String>,
    /// Since when.
    pub phase_since: Option<Timestamp>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it has ended whatever happens.
    pub expires: Option<Timestamp>,
    /// Until when its sandbox is kept.
    pub keep_until: Option<Timestamp>,
    /// The sandbox.
    pub sandbox: String,
    /// The sandbox's phase; nothing when the gateway does not have it or was not asked.
    pub sandbox_phase: Option<String>,
    /// The gateway.
    pub gateway: String,
    /// Whose it is.
    pub owner: Whose,
    /// Its results.
    pub run_dir: Option<PathBuf>,
}

/// Whose a run is.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Whose {
    /// Whether it was started on this host, since it was booted.
    pub here: bool,
    /// The host's name, where the journal has it.
    pub host: Option<String>,
    /// The process, where the journal has it.
    pub pid: Option<u32>,
    /// The owner's label.
    pub label: Option<String>,
}

/// Looks at everything. Without `all` the runs of other hosts are left out.
pub(crate) async fn ps(at_hand: &AtHand, all: bool) -> Result<Ps> {
    let survey = Survey::take(at_hand).await?;
    Ok(Ps {
        schema: "fullsend.ps/1",
        runs: rows(&survey, all),
        left_alone: Alone::all(&survey),
        problems: survey.problems(),
        now: survey.now,
    })
}

fn rows(survey: &Survey, all: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = survey.known.iter().map(|k| of_entry(survey, k)).collect();
    let here = survey.here.label();
    for place in &survey.places {
        for sandbox in place.view.iter().flat_map(|view| &view.sandboxes) {
            let run = own_run(sandbox).map(|r| r.to_string());
            let mine = sandbox.labels.get(label::OWNER) == Some(&here);
            let known = run.as_ref().is_some_and(|run| survey.entry_of(run).is_some());
            let row = of_sandbox(survey, place, sandbox, run);
            // One gateway may be reached in two ways.
            let twice = rows.iter().any(|r| r.sandbox == row.sandbox && r.run == row.run);
            if (all || mine) && !known && !twice {
                rows.push(row);
            }
        }
    }
    rows.sort_by(|a, b| (a.started, &a.sandbox).cmp(&(b.started, &b.sandbox)));
    rows
}

fn of_entry(survey: &Survey, known: &Known) -> Row {
    let entry = &known.entry;
    let place = known.place.map(|at| &survey.places[at]);
    let sandboxes = place.and_then(|p| p.view.as_ref().ok()).map(|v| v.sandboxes.as_slice());
    let sandbox = sandboxes.unwrap_or_default().iter().find(|s| s.name == entry.sandbox);
    Row {
        run: Some(entry.run.clone()),
        agent: Some(entry.agent.clone()),
        state: known.standing,
        phase: Some(entry.phase.clone()),
        phase_since: Some(entry.phase_since),
        started: Some(entry.started),
        expires: Some(entry.expires),
        keep_until: entry.keep_until,
        sandbox: entry.sandbox.clone(),
        sandbox_phase: sandbox.map(|s| s.phase.to_string()),
        gateway: entry.target.name(),
        owner: Whose {
            here: entry.owner.label() == survey.here.label(),
            host: Some(entry.owner.host.clone()),
            pid: Some(entry.owner.pid),
            label: Some(entry.owner.label()),
        },
        run_dir: Some(entry.run_dir.clone()),
    }
}

fn of_sandbox(survey: &Survey, place: &Place, row: &SandboxRow, run: Option<String>) -> Row {
    let moment = |key| row.labels.get(key).and_then(|text| parse_stamp(text));
    let owner = row.labels.get(label::OWNER);
    Row {
        run,
        agent: row.labels.get(label::AGENT).cloned(),
        state: Standing::of_row(row, survey.now),
        phase: None,
        phase_since: None,
        started: row.created_at.as_deref().and_then(created),
        expires: moment(label::EXPIRES),
        keep_until: moment(label::KEEP),
        sandbox: row.name.clone(),
        sandbox_phase: Some(row.phase.to_string()),
        gateway: place.target.name(),
        owner: Whose {
            here: owner == Some(&survey.here.label()),
            host: None,
            pid: None,
            label: owner.cloned(),
        },
        run_dir: None,
    }
}

/// The moment of creation as a list has it: `2026-11-29 11:09:07`, in UTC, or RFC 3339.
pub(super) fn created(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: jiff::civil::DateTime = text.trim().replace(' ', "T").parse().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    })
}

impl Ps {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut table = vec![
            ["RUN", "AGENT", "STATE", "PHASE", "AGE", "ENDS", "OWNER", "GATEWAY", "SANDBOX"]
                .map(str::to_owned),
        ];
        table.extend(self.runs.iter().map(|row| self.cells(row)));
        let mut out = if self.runs.is_empty() { "nothing runs\n".to_owned() } else { aligned(&table) };
        let over = self.runs.iter().filter(|r| r.state.is_over()).count();
        if over > 0 {
            let _ = writeln!(out, "{over} of them can be deleted: fullsend reap");
        }
        for Alone { path, why } in &self.left_alone {
            let _ = writeln!(out, "left alone: {}: {why}", path.display());
        }
        out
    }

    fn cells(&self, row: &Row) -> [String; 9] {
        let dash = || "-".to_owned();
        let phase = match (&row.phase, row.state, &row.sandbox_phase) {
            (Some(phase), Standing::Running, _) | (_, _, Some(phase)) => phase.clone(),
            _ => dash(),
        };
        let age = row.started.map(|t| duration(between(t, self.now)));
        let ends = row.keep_until.or(row.expires).map(|t| {
            if t > self.now {
                format!("in {}", duration(between(self.now, t)))
            } else {
                format!("{} ago", duration(between(t, self.now)))
            }
        });
        let owner = match (&row.owner, &row.owner.label) {
            (Whose { here: true, pid: Some(pid), .. }, _) => format!("pid {pid}"),
            (Whose { host: Some(host), pid: Some(pid), .. }, _) => format!("{host} pid {pid}"),
            (Whose { here: true, .. }, _) => "this host".into(),
            (_, Some(label)) => label.chars().take(8).collect(),
            (_, None) => dash(),
        };
        [
            row.run.clone().unwrap_or_else(dash),
            row.agent.clone().unwrap_or_else(dash),
            row.state.word().to_owned(),
            phase,
            age.unwrap_or_else(dash),
            ends.unwrap_or_else(dash),
            owner,
            row.gateway.clone(),
            row.sandbox.clone(),
        ]
    }
}

/// From `a` to `b`; zero when `b` is earlier.
pub(super) fn between(a: Timestamp, b: Timestamp) -> Duration {
    Duration::try_from(b.duration_since(a)).unwrap_or_default()
}

fn aligned<const N: usize>(table: &[[String; N]]) -> String {
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut out = String::new();
    for row in table {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_lists_are_read() {
        let at: Timestamp = "2026-11-29T11:09:07Z".parse().unwrap();
        assert_eq!(created("2026-11-29 11:09:07"), Some(at));
        assert_eq!(created("2026-11-29T11:09:07Z"), Some(at));
        assert_eq!(created("yesterday"), None);
    }

    #[test]
    fn columns_line_up() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert_eq!(aligned(&[row("A", "B"), row("longer", "x")]), "A       B\nlonger  x\n");
    }
}
