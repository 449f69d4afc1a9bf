//! `max_concurrent`: how many runs of one agent there are at once on a gateway.
//!
//! The sandboxes on the gateway are the count, as every release lists their labels; nothing is kept beside them. A
//! run waits until there is room, creates its sandbox, and looks again: of those that were created at the same time
//! the oldest stay, by the gateway's clock and then by run id, and the others delete theirs and wait again. The clock
//! is printed in whole seconds, so a run looks only when the second of its own creation is over: one that comes later
//! is younger for everybody.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::time::{Instant, sleep, sleep_until};

use super::context::Cx;
use super::journal;
use super::prepare::Prepared;
use crate::error::{Code, Error, Result};
use crate::openshell::SandboxRow;
use crate::openshell::names::{label, label_value, parse_stamp};
use crate::process::scale;
use crate::report::duration;

/// The shortest and the longest pause between two looks at the gateway; in between it is a tenth of the time waited.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often the journal of this host is looked at meanwhile. A run that ends shows there, which costs the gateway nothing.
const JOURNAL_PAUSE: Duration = Duration::from_millis(200);
/// The least between two looks at the gateway, whatever the journal says.
const LEAST_PAUSE: Duration = Duration::from_millis(500);
/// How often the wait is spoken of.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// From the end of a create until no later one can carry the same second.
const SECOND: Duration = Duration::from_millis(1100);

/// The place of this run among the others.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    cx: &'a Cx,
    prepared: &'a Prepared,
    limit: u32,
    end: Instant,
}

impl<'a> Queue<'a> {
    /// The queue of the run's agent; `None` when any number may run.
    pub(super) fn of(cx: &'a Cx, prepared: &'a Prepared) -> Option<Self> {
        let limit = prepared.plan.harness.max_concurrent?;
        let end = Instant::now() + scale::limit(prepared.plan.deadlines.queue);
        Some(Self { cx, prepared, limit, end })
    }

    /// Waits until there is room.
    ///
    /// # Errors
    /// [`Code::Busy`] when there is none in time, or the failure of the list.
    pub(super) async fn wait(&self) -> Result<((), String)> {
        let started = Instant::now();
        let mut told: Option<Instant> = None;
        loop {
            let seen = news(&journal::dir());
            let others: Vec<_> = self.runs().await?.into_iter().filter(|row| !self.is_own(row)).collect();
            if others.len() < self.limit as usize {
                let note =
                    told.map_or_else(String::new, |_| format!("waited {}", duration(started.elapsed())));
                return Ok(((), note));
            }
            let text = self.full(&others);
            let now = Instant::now();
            if now >= self.end {
                return Err(Error::new(Code::Busy, format!("{text}, and none ended in time")).help(
                    "try again later, wait longer with --queue-timeout, or raise `max_concurrent`; `fullsend ps --all` \
                     shows the runs, `fullsend reap` deletes what dead ones left",
                ));
            }
            if told.is_none_or(|at| now.duration_since(at) >= HEARTBEAT) {
                told = Some(now);
                let left = duration(self.end.duration_since(now));
                self.cx.ui.info("queue", &format!("{text}; waiting for one to end, at most {left}"));
            }
            let pause = scale::pause((now - started) / 10).clamp(scale::pause(SHORTEST_PAUSE), LONGEST_PAUSE);
            wait_for_news(&journal::dir(), &seen, pause.min(self.end.duration_since(now))).await;
        }
    }

    /// Whether this run, whose sandbox was `created`, is among the oldest.
    pub(super) async fn admitted(&self, created: Instant) -> Result<bool> {
        sleep_until(created + SECOND).await;
        let rows = self.runs().await?;
        Ok(before(&rows, self.cx.id.id.as_str()) < self.limit as usize)
    }

    fn is_own(&self, row: &SandboxRow) -> bool {
        row.labels.get(label::RUN).is_some_and(|run| run == self.cx.id.id.as_str())
    }

    fn full(&self, others: &[SandboxRow]) -> String {
        let names: Vec<_> =
            others.iter().filter_map(|row| row.labels.get(label::RUN)).take(5).map(String::as_str).collect();
        let agent = &self.prepared.plan.harness.name;
        format!(
            "{} of at most {} runs of {agent} are at work on this gateway ({})",
            others.len(),
            self.limit,
            names.join(", ")
        )
    }

    /// The runs of the agent that count.
    async fn runs(&self) -> Result<Vec<SandboxRow>> {
        let (openshell, plan) = (&self.prepared.world.openshell, &self.prepared.plan);
        let agent = label_value(&plan.harness.name);
        let mut rows = openshell.sandboxes_with(&plan.dialect, label::AGENT, &agent).await?;
        let now = Timestamp::now();
        let over = over_here();
        rows.retain(|row| {
            counts(row, now) && !row.labels.get(label::RUN).is_some_and(|run| over.contains(run))
        });
        Ok(rows)
    }
}

/// Waits, but no longer than until the runs of this host have changed since `seen`.
async fn wait_for_news(dir: &Path, seen: &[(PathBuf, SystemTime)], pause: Duration) {
    let start = Instant::now();
    sleep(LEAST_PAUSE.min(pause)).await;
    while start.elapsed() < pause && news(dir) == seen {
        sleep(JOURNAL_PAUSE.min(pause.saturating_sub(start.elapsed()))).await;
    }
}

/// The entries of the journal and when each was written: a run writes at each phase, so also when its sandbox is gone.
fn news(dir: &Path) -> Vec<(PathBuf, SystemTime)> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let entries = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    let mut news: Vec<_> =
        entries.filter_map(|path| Some((path.clone(), path.metadata().ok()?.modified().ok()?))).collect();
    news.sort();
    news
}

/// Runs of this host that are over and whose sandbox stays on purpose.
fn over_here() -> Vec<String> {
    let entries = journal::read_all().map(|contents| contents.entries).unwrap_or_default();
    entries.into_iter().map(|(_, entry)| entry).filter(|e| e.phase == "kept").map(|e| e.run).collect()
}

/// Whether a sandbox is that of a run at work: ours, not ended, not expired.
fn counts(row: &SandboxRow, now: Timestamp) -> bool {
    let is = |key: &str, value: &str| row.labels.get(key).is_some_and(|have| have == value);
    let expired =
        row.labels.get(label::EXPIRES).and_then(|text| parse_stamp(text)).is_some_and(|at| at < now);
    is(label::MANAGED_BY, label::FULLSEND) && !row.phase.is_terminal() && !expired
}

/// How many runs are older than `run`.
fn before(rows: &[SandboxRow], run: &str) -> usize {
    let key = |row: &SandboxRow| {
        (row.created_at.clone().unwrap_or_default(), row.labels.get(label::RUN).cloned().unwrap_or_default())
    };
    let own = rows.iter().map(key).find(|(_, id)| id == run);
    // One that the list does not show is younger than all that it shows.
    rows.iter().map(key).filter(|k| k.1 != run && own.as_ref().is_none_or(|own| k < own)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openshell::Phase;

    fn row(run: &str, created: &str, expires: &str) -> SandboxRow {
        let labels = [(label::MANAGED_BY, label::FULLSEND), (label::RUN, run), (label::EXPIRES, expires)];
        SandboxRow {
            name: format!("fs-x-{run}"),
            phase: Phase::Ready,
            labels: labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            created_at: Some(created.to_owned()),
        }
    }

    #[tokio::test]
    async fn a_run_of_this_host_that_ends_is_seen_before_the_pause_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let entry = dir.path().join("0123456789ab.json");
        fs_err::write(&entry, "{}").unwrap();
        let seen = news(dir.path());
        assert_eq!(seen.len(), 1);
        let gone = async {
            sleep(LEAST_PAUSE).await;
            fs_err::remove_file(&entry).unwrap();
        };
        let hang = Duration::from_mins(5);
        let begun = Instant::now();
        tokio::join!(wait_for_news(dir.path(), &seen, hang), gone);
        assert!(begun.elapsed() < hang / 2, "{:?}", begun.elapsed());
        // Without news it is the pause.
        let begun = Instant::now();
        wait_for_news(dir.path(), &news(dir.path()), LEAST_PAUSE * 2).await;
        assert!(begun.elapsed() >= LEAST_PAUSE * 2);
    }

    const LATER: &str = "20990101T000000Z";

    #[test]
    fn every_host_sees_the_same_order() {
        let rows = [
            row("bb", "2026-11-29 11:09:07", LATER),
            row("aa", "2026-11-29 11:09:07", LATER),
            row("00", "2026-11-29 11:09:08", LATER),
        ];
        let order = ["aa", "bb", "00"].map(|run| before(&rows, run));
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(before(&rows, "unseen"), 3);
    }

    #[test]
    fn what_has_ended_or_expired_does_not_count() {
        let now = Timestamp::now();
        assert!(counts(&row("aa", "", LATER), now));
        assert!(!counts(&row("aa", "", "20200101T000000Z"), now));
        for phase in [Phase::Error, Phase::Completed, Phase::Deleting, Phase::Stopped] {
            assert!(!counts(&SandboxRow { phase, ..row("aa", "", LATER) }, now));
        }
        let mut foreign = row("aa", "", LATER);
        foreign.labels.remove(label::MANAGED_BY);
        assert!(!counts(&foreign, now));
    }
}
