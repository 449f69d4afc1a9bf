//! Ending one run from outside.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::reap::{self, Doomed, Gone};
use super::standing::own_run;
use super::survey::{AtHand, Known, Survey};
use crate::error::{Code, Error, Result};
use crate::process::Signal;
use crate::run::owner::{Liveness, Owner};

/// How long a run may take to end after TERM, before it is asked again. A cancelled run promises seven seconds.
const FIRST: Duration = Duration::from_secs(10);
/// How long after the second one, which makes it delete its sandbox at once.
const SECOND: Duration = Duration::from_secs(5);
/// How long the guard of a run that has died may take for its part.
const GUARD: Duration = Duration::from_secs(3);

/// What was done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The run's id.
    pub run: String,
    /// How.
    pub how: How,
}

/// How a run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Its process ended it when it was asked to.
    Itself,
    /// What it had left was deleted.
    Deleted,
    /// What it had left was deleted, but its process does not end.
    ProcessStays(u32),
}

impl Stopped {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let run = &self.run;
        match self.how {
            How::Itself => format!("run {run} has ended"),
            How::Deleted => format!("run {run}: what it had left was deleted"),
            How::ProcessStays(pid) => {
                format!("run {run}: what it had left was deleted, but its process {pid} does not end")
            }
        }
    }
}

/// What a word can mean.
enum Match<'a> {
    Known(&'a Known),
    /// Place and row of a sandbox that the journal does not know.
    Sandbox(Doomed<'a>),
}

/// Stops the run with that id, that unique start of an id, or that sandbox.
pub(crate) async fn stop(at_hand: &AtHand, word: &str) -> Result<Stopped> {
    let survey = Survey::take(at_hand).await?;
    match find(&survey, word)? {
        Match::Known(known) => stop_known(&survey, known).await,
        Match::Sandbox(doomed) => {
            delete(&survey, &doomed).await?;
            Ok(Stopped { run: doomed.run.to_string(), how: How::Deleted })
        }
    }
}

async fn stop_known(survey: &Survey, known: &Known) -> Result<Stopped> {
    let owner = &known.entry.owner;
    let done = |how| Ok(Stopped { run: known.entry.run.clone(), how });
    if known.liveness == Liveness::Alive {
        owner.signal(&survey.here, Signal::TERM);
        if !ended(owner, &survey.here, FIRST).await {
            owner.signal(&survey.here, Signal::TERM);
            ended(owner, &survey.here, SECOND).await;
        }
        // The run closes its entry as its last act; after a death its guard does.
        if owner.liveness(&survey.here) == Liveness::Dead && closed(&known.path, GUARD).await {
            return done(How::Itself);
        }
    }
    let doomed = reap::of_entry(survey, known).ok_or_else(|| Error::bug("a run without an id"))?;
    delete(survey, &doomed).await?;
    match owner.liveness(&survey.here) {
        Liveness::Alive => done(How::ProcessStays(owner.pid)),
        _ => done(How::Deleted),
    }
}

async fn delete(survey: &Survey, doomed: &Doomed<'_>) -> Result<()> {
    let lost = || Error::bug("a run without a gateway");
    let place = doomed.place.map(|at| &survey.places[at]).ok_or_else(lost)?;
    let view = place.view.as_ref().map_err(|error| {
        Error::new(error.code(), format!("{}: {}", place.target.name(), error.message()))
            .help(error.help_text())
    })?;
    reap::end(&place.openshell, view, doomed, false, &mut Gone::default()).await
}

async fn ended(owner: &Owner, here: &Owner, limit: Duration) -> bool {
    until(limit, || owner.liveness(here) != Liveness::Alive).await
}

async fn closed(path: &Path, limit: Duration) -> bool {
    until(limit, || !path.exists()).await
}

async fn until(limit: Duration, fulfilled: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !fulfilled() {
        if Instant::now() >= end {
            return false;
        }
        sleep(Duration::from_millis(50)).await;
    }
    true
}

/// What is meant: an exact id or sandbox name, else the only run whose id starts like that.
fn find<'a>(survey: &'a Survey, word: &str) -> Result<Match<'a>> {
    let mut candidates: Vec<(String, String, Match<'a>)> = Vec::new();
    for known in &survey.known {
        candidates.push((known.entry.run.clone(), known.entry.sandbox.clone(), Match::Known(known)));
    }
    for (at, place) in survey.places.iter().enumerate() {
        for row in place.view.iter().flat_map(|view| &view.sandboxes) {
            let Some(run) = own_run(row) else { continue };
            if candidates.iter().any(|(id, ..)| id == run.as_str()) {
                continue;
            }
            let doomed = Doomed {
                run: run.clone(),
                standing: super::standing::Standing::of_row(row, survey.now),
                place: Some(at),
                sandbox: row.name.clone(),
                listed: true,
                providers: Vec::new(),
                since: None,
                entry: None,
            };
            candidates.push((run.to_string(), row.name.clone(), Match::Sandbox(doomed)));
        }
    }
    let names: Vec<_> = candidates.iter().map(|(id, sandbox, _)| (id.as_str(), sandbox.as_str())).collect();
    let at = choose(&names, word)?;
    Ok(candidates.swap_remove(at).2)
}

/// Which of the runs, given by id and sandbox, a word means. Pure.
fn choose(runs: &[(&str, &str)], word: &str) -> Result<usize> {
    if let Some(at) = runs.iter().position(|(id, sandbox)| *id == word || *sandbox == word) {
        return Ok(at);
    }
    let starts = |(_, (id, _)): &(usize, &(&str, &str))| !word.is_empty() && id.starts_with(word);
    let hits: Vec<_> = runs.iter().enumerate().filter(starts).map(|(at, (id, _))| (at, *id)).collect();
    match &hits[..] {
        [(at, _)] => Ok(*at),
        [] => Err(Error::new(Code::RunUnknown, format!("there is no run {word:?}")).help(
            "give its id, a unique start of its id, or its sandbox; `fullsend ps --all` shows what runs",
        )),
        several => {
            let ids: Vec<_> = several.iter().map(|(_, id)| *id).collect();
            Err(Error::new(
                Code::RunUnknown,
                format!("{word:?} is the start of {} runs: {}", ids.len(), ids.join(", ")),
            )
            .help("give more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_means_one_run_or_none() {
        let runs = [
            ("aa0000000000", "fs-wor-aa0000000000"),
            ("aab000000000", "fs-wor-aab000000000"),
            ("bb0000000000", "fs-bb0000000000"),
        ];
        let choose = |word| choose(&runs, word);
        assert_eq!(choose("bb0000000000").unwrap(), 2);
        assert_eq!(choose("fs-wor-aab000000000").unwrap(), 1);
        assert_eq!(choose("aa0").unwrap(), 0);
        for word in ["", "aa", "c", "fs-wor", "fs-wor-aa", "a0000000000", "0"] {
            assert_eq!(choose(word).unwrap_err().code(), Code::RunUnknown, "{word}");
        }
        assert!(choose("aa").unwrap_err().message().contains("2 runs"));
    }
}
