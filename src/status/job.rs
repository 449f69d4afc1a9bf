//! The comment of one run: written while the run goes on, edited when it ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::task::JoinHandle;

use super::body::Facts;
use super::marker::{Marker, State, key, place};
use super::record::Record;
use super::settings::{Asked, Settings};
use crate::error::{Error, Result};
use crate::forge::{Client, Comment, Trouble};
use crate::harness::{self, Completion, Environment, Forge};
use crate::openshell::names::RunId;
use crate::process::scale;
use crate::report::Printer;
use crate::run::Verdict;
use crate::secrets::Secret;

/// The time for the comment at the beginning; the run does not wait for it.
const OPENING: Duration = Duration::from_mins(2);
/// The time for the one at the end, which the process waits for.
const CLOSING: Duration = Duration::from_secs(20);
/// The same after a signal: GitHub kills a cancelled job 10 seconds after its INT.
const CLOSING_CANCELLED: Duration = Duration::from_secs(3);

/// What a warning begins with.
const FAILED: &str = "the status comment could not be written";

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, redacted.
    pub reason: String,
    /// Whether the reason is a text of this program, with nothing foreign in it.
    pub own: bool,
    /// Whether a signal asked for the end.
    pub cancelled: bool,
}

/// The comment of one run.
#[derive(Debug)]
pub(crate) struct Job {
    settings: Settings,
    agent: String,
    shared: Option<Arc<Shared>>,
    opening: Option<JoinHandle<Result<(), Trouble>>>,
}

/// What is known once the run has an identity.
#[derive(Debug)]
struct Shared {
    client: Client,
    settings: Settings,
    facts: Facts,
    marker: Marker,
    record: Mutex<Record>,
    begun: Instant,
}

impl Job {
    /// The comment that the options ask for, if they do. Why there can be none is a warning.
    pub(crate) fn plan(
        asked: &Asked,
        agent: &str,
        forge: Option<Forge>,
        dir: Result<camino::Utf8PathBuf>,
        env_files: &[camino::Utf8PathBuf],
        ui: &Printer,
    ) -> Option<Self> {
        // A file that cannot be read is the run's own error.
        let files = harness::read_env_files(env_files).unwrap_or_default();
        let env = Environment::new(std::env::vars_os(), files);
        match Settings::find(asked, forge, dir.ok().as_ref(), &env) {
            Ok(settings) => {
                Some(Self { settings: settings?, agent: agent.to_owned(), shared: None, opening: None })
            }
            Err(why) => {
                ui.warn(&format!("there will be no status comment: {why}"));
                None
            }
        }
    }

    /// The token, which must not be shown.
    pub(crate) fn token(&self) -> Secret {
        self.settings.site.token.clone()
    }

    /// The run begins: the comment is written in the background.
    pub(crate) fn begin(&mut self, run: &RunId, started: Timestamp, until: Timestamp, ui: &Printer) {
        let Some(shared) = self.share(run, started, until, ui) else { return };
        if shared.settings.at_start() {
            self.opening = Some(tokio::task::spawn_blocking(move || shared.open()));
        }
    }

    fn share(
        &mut self,
        run: &RunId,
        started: Timestamp,
        until: Timestamp,
        ui: &Printer,
    ) -> Option<Arc<Shared>> {
        let settings = self.settings.clone();
        let client = match Client::new(settings.site.clone()) {
            Ok(client) => client,
            Err(trouble) => {
                ui.warn(&format!("there will be no status comment: {trouble}; {}", trouble.help()));
                return None;
            }
        };
        let ci_run = settings.ci_run.as_deref().unwrap_or(run.as_str());
        let marker = Marker {
            key: key(settings.site.platform, ci_run, &settings.job, &self.agent),
            run: run.clone(),
            attempt: settings.attempt,
            agent: self.agent.clone(),
            at: settings.run_url.as_deref().map(place),
            until,
            state: State::Running,
        };
        let place = (settings.site.platform, settings.site.api.as_str());
        let record = Record::new(place, &settings.thread, &marker.key, run, &self.agent, until);
        // Without a record only another host can end the comment of a killed run; that is no reason to be silent.
        if let Err(error) = record.save() {
            ui.warn(&format!("a killed run will leave its status comment as it is: {}", error.message()));
        }
        let facts = Facts {
            agent: self.agent.clone(),
            started,
            commit: settings.commit.clone(),
            run_url: settings.run_url.clone(),
        };
        let record = Mutex::new(record);
        let shared = Arc::new(Shared { client, settings, facts, marker, record, begun: Instant::now() });
        self.shared = Some(Arc::clone(&shared));
        Some(shared)
    }

    /// The run has ended. Waits for the comment, for a bounded time; a failure is a warning, and the answer.
    pub(crate) async fn end(mut self, ending: Ending, ui: &Printer) -> Result<()> {
        if self.shared.is_none() {
            // It ended before it had an identity.
            let now = Timestamp::now();
            self.share(&RunId::random()?, now, now, ui);
        }
        let Some(shared) = self.shared.take() else {
            return Err(Error::bug("the comment could not be begun"));
        };
        let limit = if ending.cancelled { CLOSING_CANCELLED } else { scale::limit(CLOSING) };
        let end = Instant::now() + limit;
        let body = shared.ending(&ending);
        shared.change(|record| record.ending = Some(body.clone().unwrap_or_default()));
        let opening = self.opening.take();
        let work = async {
            let opened = match opening {
                Some(opening) => opening.await.map_err(|e| Error::bug(e.to_string()))?,
                None => Ok(()),
            };
            let last = Arc::clone(&shared);
            let written = tokio::task::spawn_blocking(move || last.close(body.as_deref(), end)).await;
            let written = written.map_err(|e| Error::bug(e.to_string()))?;
            // That there was no time left says less than what took it.
            let why = |trouble: Trouble| opened.err().filter(|_| trouble == Trouble::Late).unwrap_or(trouble);
            written.map_err(|trouble| why(trouble).error(FAILED))
        };
        let late = || Trouble::Late.error(FAILED);
        // Some time for what is under way: each request knows the same end.
        let done = tokio::time::timeout_at((end + Duration::from_secs(1)).into(), work).await;
        let done = done.unwrap_or_else(|_| Err(late()));
        if let Err(error) = &done {
            ui.warn(&format!("{}; {}", error.message(), error.help_text()));
        }
        done
    }
}

impl Shared {
    /// The comment at the beginning.
    fn open(&self) -> Result<(), Trouble> {
        let end = self.begun + scale::limit(OPENING);
        let body = format!("{}\n{}", self.marker.line(), self.facts.running());
        self.put(&body, end)
    }

    /// The text at the end; nothing when the comment is to be deleted or never written.
    fn ending(&self, ending: &Ending) -> Option<String> {
        let neutral = matches!(ending.verdict, Verdict::Success | Verdict::Skipped);
        let wanted = match self.settings.when.completion {
            Completion::Enabled => true,
            Completion::OnFailure => !neutral,
            Completion::Disabled => false,
        };
        let marker = Marker { state: State::Ended, ..self.marker.clone() };
        let took = self.begun.elapsed();
        let text = self.facts.ended(ending.verdict, took, &ending.reason, ending.own);
        wanted.then(|| format!("{}\n{text}", marker.line()))
    }

    /// The comment at the end.
    fn close(&self, body: Option<&str>, end: Instant) -> Result<(), Trouble> {
        match body {
            Some(body) => self.put(body, end)?,
            None => {
                if let Some(id) = self.known() {
                    self.client.delete(&self.settings.thread, id, end)?;
                }
            }
        }
        self.record.lock().unwrap_or_else(PoisonError::into_inner).remove();
        Ok(())
    }

    /// Edits the comment that is known, or that an earlier attempt left; writes a new one where there is none.
    fn put(&self, body: &str, end: Instant) -> Result<(), Trouble> {
        let thread = &self.settings.thread;
        let id = match self.known() {
            Some(id) => Some(id),
            None => self.find(end)?,
        };
        if let Some(id) = id {
            match self.client.edit(thread, id, body, end) {
                // Somebody deleted it.
                Err(trouble) if trouble.is_gone() => {}
                other => {
                    self.learn(id);
                    return other;
                }
            }
        }
        let own = |comment: &Comment| Marker::of(&comment.body).is_some_and(|m| m.run == self.marker.run);
        let comment = self.client.create(thread, body, end, &own)?;
        self.learn(comment.id);
        if comment.body.lines().next() == body.lines().next() {
            return Ok(());
        }
        // An attempt that nobody answered had an older text.
        self.client.edit(thread, comment.id, body, end)
    }

    /// The comment of an earlier attempt at the same job, or of this run.
    fn find(&self, end: Instant) -> Result<Option<u64>, Trouble> {
        let ours = |comment: &Comment| {
            Marker::of(&comment.body).is_some_and(|m| self.may_take(&m)) && self.client.is_own(comment, end)
        };
        let found = self.client.comments(&self.settings.thread, end, &ours)?;
        // The search stops at the first that is.
        Ok(found.last().filter(|comment| ours(comment)).map(|comment| comment.id))
    }

    /// A comment of the same job and agent is taken over, unless another run of the same attempt (one of a matrix) is
    /// still at work on it.
    fn may_take(&self, other: &Marker) -> bool {
        let over = other.state == State::Ended
            || other.attempt < self.marker.attempt
            || other.until <= self.facts.started;
        other.key == self.marker.key && (other.run == self.marker.run || over)
    }

    fn known(&self) -> Option<u64> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).comment
    }

    fn learn(&self, id: u64) {
        self.change(|record| record.comment = Some(id));
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut record);
        if let Err(error) = record.save() {
            tracing::warn!(%error, "cannot update the record of the status comment");
        }
    }
}
