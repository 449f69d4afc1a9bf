//! Whether a run is over. Pure.

use jiff::Timestamp;
use serde::Serialize;

use crate::openshell::SandboxRow;
use crate::openshell::names::{RunId, belongs_to, label, parse_stamp};
use crate::run::journal::Entry;
use crate::run::owner::Liveness;

/// How things are with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// Its process lives, here.
    Running,
    /// It ended, and its sandbox stays on purpose.
    Kept,
    /// It belongs to another host, and its time is not over.
    Elsewhere,
    /// There is nothing that would say.
    Unknown,
    /// It belongs to another host, and its time is over.
    Expired,
    /// Its process has ended and left something.
    Orphaned,
    /// Its sandbox was kept, and that time is over.
    KeptOver,
}

impl Standing {
    /// Of a run in the journal. A process that lives is never overruled by a clock: a machine may have slept.
    pub(super) fn of_entry(entry: &Entry, liveness: Liveness, now: Timestamp) -> Self {
        match (liveness, entry.keep_until) {
            (Liveness::Alive, _) => Self::Running,
            (_, Some(until)) if until <= now => Self::KeptOver,
            (_, Some(_)) => Self::Kept,
            (Liveness::Dead, None) => Self::Orphaned,
            (Liveness::Elsewhere, None) if entry.expires <= now => Self::Expired,
            (Liveness::Elsewhere, None) => Self::Elsewhere,
        }
    }

    /// Of a sandbox that no journal here knows: by its labels alone.
    pub(super) fn of_row(row: &SandboxRow, now: Timestamp) -> Self {
        if own_run(row).is_none() {
            return Self::Unknown;
        }
        let moment = |key| row.labels.get(key).map(|text| parse_stamp(text));
        match (moment(label::KEEP), moment(label::EXPIRES)) {
            (Some(Some(until)), _) if until <= now => Self::KeptOver,
            (Some(Some(_)), _) => Self::Kept,
            (None, Some(Some(expires))) if expires <= now => Self::Expired,
            (None, Some(Some(_))) => Self::Elsewhere,
            _ => Self::Unknown,
        }
    }

    /// Whether what it left may be deleted.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Expired | Self::Orphaned | Self::KeptOver)
    }

    /// One word for a table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Kept => "kept",
            Self::Elsewhere => "elsewhere",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
            Self::Orphaned => "orphaned",
            Self::KeptOver => "kept-over",
        }
    }

    /// Why it may be deleted, or how it is.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Running => "its process runs",
            Self::Kept => "it is kept on purpose",
            Self::Elsewhere => "it belongs to another host and its time is not over",
            Self::Unknown => "its labels do not say whose it is or when it ends",
            Self::Expired => "its time is over",
            Self::Orphaned => "its process has ended",
            Self::KeptOver => "the time for which it was kept is over",
        }
    }
}

/// The run that a sandbox of ours belongs to; nothing for one whose name and labels do not say the same.
pub(super) fn own_run(row: &SandboxRow) -> Option<RunId> {
    let ours = row.labels.get(label::MANAGED_BY).is_some_and(|v| v == label::FULLSEND);
    let run = row.labels.get(label::RUN).and_then(|text| RunId::parse(text))?;
    (ours && belongs_to(&row.name, &run)).then_some(run)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::openshell::Phase;
    use crate::run::journal::tests::entry;

    const RUN: &str = "0123456789ab";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn row(name: &str, labels: &[(&str, &str)]) -> SandboxRow {
        let mut all = BTreeMap::from([
            (label::MANAGED_BY.to_owned(), label::FULLSEND.to_owned()),
            (label::RUN.to_owned(), RUN.to_owned()),
        ]);
        all.extend(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        SandboxRow { name: name.into(), phase: Phase::Ready, labels: all, created_at: None }
    }

    #[test]
    fn a_journal_entry_is_judged_by_its_owner_first() {
        use Liveness::{Alive, Dead, Elsewhere};
        let (before, after) = (at("2026-03-01T13:59:59Z"), at("2026-03-01T14:00:00Z"));
        let plain = entry(RUN);
        let mut kept = entry(RUN);
        kept.keep_until = Some(after);
        for (entry, liveness, now, expected) in [
            (&plain, Alive, before, Standing::Running),
            (&plain, Alive, after, Standing::Running),
            (&plain, Dead, before, Standing::Orphaned),
            (&plain, Elsewhere, before, Standing::Elsewhere),
            (&plain, Elsewhere, after, Standing::Expired),
            (&kept, Alive, after, Standing::Running),
            (&kept, Dead, before, Standing::Kept),
            (&kept, Dead, after, Standing::KeptOver),
            (&kept, Elsewhere, before, Standing::Kept),
            (&kept, Elsewhere, after, Standing::KeptOver),
        ] {
            assert_eq!(Standing::of_entry(entry, liveness, now), expected, "{liveness:?} {now}");
        }
    }

    #[test]
    fn labels_alone_say_when_it_is_over() {
        let name = "fs-wor-0123456789ab";
        let now = at("2026-03-01T14:00:00Z");
        let (past, future) = ("20260301T140000Z", "20260301T140001Z");
        let seconds = now.as_second().to_string();
        for (labels, expected) in [
            (&[(label::EXPIRES, past)][..], Standing::Expired),
            (&[(label::EXPIRES, seconds.as_str())], Standing::Expired),
            (&[(label::EXPIRES, future)], Standing::Elsewhere),
            (&[(label::EXPIRES, past), (label::KEEP, future)], Standing::Kept),
            (&[(label::EXPIRES, past), (label::KEEP, past)], Standing::KeptOver),
            (&[(label::EXPIRES, past), (label::KEEP, "for-ever")], Standing::Unknown),
            (&[(label::EXPIRES, "soon")], Standing::Unknown),
            (&[], Standing::Unknown),
        ] {
            assert_eq!(Standing::of_row(&row(name, labels), now), expected, "{labels:?}");
        }
    }

    #[test]
    fn a_name_that_is_not_of_its_run_is_never_over() {
        let now = at("2036-03-01T14:00:00Z");
        let expired = [(label::EXPIRES, "20260301T140000Z")];
        for name in ["production", "fs-wor-0123456789abc", "fs-wor-0123456789a", "0123456789ab", "fs-wor"] {
            assert_eq!(Standing::of_row(&row(name, &expired), now), Standing::Unknown, "{name}");
        }
        let mut foreign = row("fs-wor-0123456789ab", &expired);
        foreign.labels.insert(label::MANAGED_BY.into(), "somebody".into());
        assert_eq!(Standing::of_row(&foreign, now), Standing::Unknown);
    }
}
