//! Deleting what runs have left that are over. Exact names only, and everything may already be gone: another reap,
//! the guard or the run itself may be at it in the same moment.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use tokio::time::sleep;

use super::ps::{Alone, between, created};
use super::standing::{Standing, own_run};
use super::survey::{AtHand, Problem, Survey, View};
use crate::error::{Error, Result};
use crate::openshell::Openshell;
use crate::openshell::names::{RunId, belongs_to};
use crate::run::journal::{self, Entry};
use crate::run::leftovers::{self, Fate};

/// How long deleting one sandbox or provider may take.
const DELETE: Duration = Duration::from_mins(1);
/// For how long a sandbox has to stay absent whose run ended in the middle of a create: such a create can finish
/// after the first delete (seen on OpenShell 0.0.112-dev).
const ABSENT_FOR: Duration = Duration::from_secs(5);
/// The phase in which the sandbox is created.
const CREATING: &str = "sandbox";

/// What is to be reaped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reap {
    /// Only what began at least this long ago.
    pub older_than: Option<Duration>,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What a pass did.
#[derive(Debug, Serialize)]
pub(crate) struct Reaped {
    schema: &'static str,
    dry_run: bool,
    /// The runs that were over.
    pub runs: Vec<Gone>,
    /// Files of the journal that were not understood.
    pub left_alone: Vec<Alone>,
    /// What could not be asked or done.
    pub problems: Vec<Problem>,
}

/// A run that was over, and what went with it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Gone {
    /// The run's id.
    pub run: String,
    /// Why.
    pub why: &'static str,
    /// The gateway.
    pub gateway: String,
    /// The sandbox, where there was one.
    pub sandbox: Option<String>,
    /// The providers.
    pub providers: Vec<String>,
    /// Directories on this host.
    pub dirs: Vec<PathBuf>,
    /// Directories that stay, and why.
    pub kept_dirs: Vec<Alone>,
    /// The run directory, where it is on this host: what had come of the agent's work by then.
    pub run_dir: Option<PathBuf>,
    /// Whether all of it is gone.
    pub done: bool,
}

/// A run that is over.
#[derive(Debug)]
pub(super) struct Doomed<'a> {
    pub run: RunId,
    pub standing: Standing,
    /// The gateway, an index of the survey's places.
    pub place: Option<usize>,
    /// The sandbox, exactly.
    pub sandbox: String,
    /// Whether the gateway lists it.
    pub listed: bool,
    /// The run's providers, where the journal has them.
    pub providers: Vec<String>,
    /// When it began.
    pub since: Option<Timestamp>,
    /// The entry to close.
    pub entry: Option<(&'a PathBuf, &'a Entry)>,
}

/// Looks at everything and deletes what is over.
pub(crate) async fn reap(at_hand: &AtHand, options: Reap) -> Result<Reaped> {
    let survey = Survey::take(at_hand).await?;
    let mut problems = survey.problems();
    let mut runs = Vec::new();
    for doomed in doomed(&survey, options.older_than) {
        let Some(place) = doomed.place.map(|at| &survey.places[at]) else { continue };
        // One problem per gateway, not one per run.
        let Ok(view) = &place.view else { continue };
        let mut gone = Gone { gateway: place.target.name(), ..Gone::default() };
        let result = end(&place.openshell, view, &doomed, options.dry_run, &mut gone).await;
        gone.done = result.is_ok() && !options.dry_run;
        if let Err(error) = result {
            problems.push(Problem::new(&format!("run {}", doomed.run), &error));
        }
        runs.push(gone);
    }
    let left_alone = Alone::all(&survey);
    Ok(Reaped { schema: "fullsend.reap/1", dry_run: options.dry_run, runs, left_alone, problems })
}

/// Who is over. Pure.
fn doomed(survey: &Survey, older_than: Option<Duration>) -> Vec<Doomed<'_>> {
    let mut all = Vec::new();
    for known in survey.known.iter().filter(|k| k.standing.is_over()) {
        all.extend(of_entry(survey, known));
    }
    for (at, place) in survey.places.iter().enumerate() {
        for row in place.view.iter().flat_map(|view| &view.sandboxes) {
            let Some(run) = own_run(row) else { continue };
            let standing = match survey.entry_of(run.as_str()) {
                // The journal knows more than the labels; its own gateway was dealt with above.
                Some(known) if known.place == Some(at) => continue,
                Some(known) => known.standing,
                None => Standing::of_row(row, survey.now),
            };
            if standing.is_over() {
                all.push(Doomed {
                    run,
                    standing,
                    place: Some(at),
                    sandbox: row.name.clone(),
                    listed: true,
                    providers: Vec::new(),
                    since: row.created_at.as_deref().and_then(created),
                    entry: None,
                });
            }
        }
    }
    if let Some(limit) = older_than {
        all.retain(|d| d.since.is_some_and(|t| between(t, survey.now) >= limit));
    }
    all
}

/// A run of the journal as one that is over.
pub(super) fn of_entry<'a>(survey: &Survey, known: &'a super::survey::Known) -> Option<Doomed<'a>> {
    let entry = &known.entry;
    let view = known.place.and_then(|at| survey.places[at].view.as_ref().ok());
    Some(Doomed {
        run: RunId::parse(&entry.run)?,
        standing: known.standing,
        place: known.place,
        sandbox: entry.sandbox.clone(),
        listed: view.is_some_and(|v| v.sandboxes.iter().any(|s| s.name == entry.sandbox)),
        providers: entry.providers.clone(),
        since: Some(entry.started),
        entry: Some((&known.path, entry)),
    })
}

/// Deletes what is left of a run that is over, and closes its entry when all of it is gone.
pub(super) async fn end(
    openshell: &Openshell,
    view: &View,
    doomed: &Doomed<'_>,
    dry_run: bool,
    gone: &mut Gone,
) -> Result<()> {
    doomed.run.as_str().clone_into(&mut gone.run);
    gone.why = doomed.standing.reason();
    gone.run_dir = doomed.entry.map(|(_, entry)| entry.run_dir.clone()).filter(|dir| dir.is_dir());
    gone.sandbox = doomed.listed.then(|| doomed.sandbox.clone());
    gone.providers = providers(openshell, view, doomed).await?;
    if dry_run {
        for (dir, objection) in doomed.entry.iter().flat_map(|(_, entry)| leftovers::look(entry)) {
            match objection {
                None => gone.dirs.push(dir),
                Some(why) => gone.kept_dirs.push(Alone { path: dir, why }),
            }
        }
        return Ok(());
    }
    delete(openshell, view, doomed).await?;
    for name in &gone.providers {
        openshell.delete_provider(name, DELETE).await?;
    }
    let Some((path, entry)) = doomed.entry else { return Ok(()) };
    let mut failed = None;
    for fate in leftovers::remove(entry) {
        match fate {
            Fate::Removed(dir) => gone.dirs.push(dir),
            Fate::Left(dir, why) => gone.kept_dirs.push(Alone { path: dir, why }),
            Fate::Failed(dir, why) => failed = Some(format!("cannot remove {}: {why}", dir.display())),
        }
    }
    if let Some(message) = failed {
        return Err(Error::new(crate::error::Code::Io, message).help("remove it by hand, then reap again"));
    }
    journal::close(path);
    Ok(())
}

/// The run's providers that the gateway has. They have no labels, so they are known by the journal, or by the whole
/// identity of a run that is known to be over.
async fn providers(openshell: &Openshell, view: &View, doomed: &Doomed<'_>) -> Result<Vec<String>> {
    if doomed.entry.is_some() && doomed.providers.is_empty() {
        return Ok(Vec::new());
    }
    let rows = openshell.providers(&view.dialect).await?;
    let names = rows.into_iter().map(|row| row.name);
    Ok(names.filter(|n| doomed.providers.contains(n) || belongs_to(n, &doomed.run)).collect())
}

async fn delete(openshell: &Openshell, view: &View, doomed: &Doomed<'_>) -> Result<()> {
    openshell.delete(&view.dialect, &doomed.sandbox, DELETE).await?;
    let in_flight = doomed.entry.is_some_and(|(_, entry)| entry.phase == CREATING);
    let end = Instant::now() + ABSENT_FOR;
    while in_flight && Instant::now() < end {
        sleep(Duration::from_millis(400)).await;
        openshell.delete(&view.dialect, &doomed.sandbox, DELETE).await?;
    }
    Ok(())
}

impl Reaped {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if self.runs.is_empty() {
            out.push_str("nothing to reap\n");
        }
        for run in &self.runs {
            let verb = match (self.dry_run, run.done) {
                (true, _) => "would delete",
                (_, true) => "deleted",
                (_, false) => "not deleted",
            };
            let _ = writeln!(out, "{verb} run {} on {}: {}", run.run, run.gateway, run.why);
            if let Some(sandbox) = &run.sandbox {
                let _ = writeln!(out, "  sandbox   {sandbox}");
            }
            for provider in &run.providers {
                let _ = writeln!(out, "  provider  {provider}");
            }
            for dir in &run.dirs {
                let _ = writeln!(out, "  directory {}", dir.display());
            }
            if let Some(dir) = &run.run_dir {
                let _ = writeln!(out, "  results   {}", dir.display());
            }
            for Alone { path, why } in &run.kept_dirs {
                let _ = writeln!(out, "  left      {}: {why}", path.display());
            }
        }
        for Alone { path, why } in &self.left_alone {
            let _ = writeln!(out, "left alone: {}: {why}", path.display());
        }
        out
    }
}
