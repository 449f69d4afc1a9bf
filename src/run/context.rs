//! What every phase of a run shares.

use std::cell::{Cell, OnceCell, RefCell};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::guard::Guard;
use super::identity::Identity;
use super::journal::Journal;
use super::servers::Servers;
use super::signals::Signals;
use crate::error::{Code, Result};
use crate::report::Printer;
use crate::scan::chain::Chain;
use crate::telemetry::{Recorder, Status};

/// The shared context of a run.
#[derive(Debug)]
pub(super) struct Cx {
    /// Where the run is told.
    pub ui: Printer,
    /// The signals of this process.
    pub signals: Signals,
    /// What cleans up when this process cannot.
    pub guard: Guard,
    /// Which run this is.
    pub id: Identity,
    /// What tells others of this run, once there is something to tell.
    pub journal: OnceCell<Journal>,
    /// The servers on this host, once they are started.
    pub servers: OnceCell<Servers>,
    /// The record of findings.
    pub findings: RefCell<Chain>,
    /// The spans of the run.
    pub trace: Recorder,
    /// Whether it was said that budgets mean nothing to this agent.
    pub budgets_told: Cell<bool>,
    started: Instant,
    phases: RefCell<Vec<Phase>>,
}

/// One phase as `run.json` records it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Phase {
    /// Its name.
    pub name: String,
    /// Milliseconds from the start of the run.
    pub start_ms: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The code it failed with, or what it did.
    pub failed: Option<Code>,
}

/// What is said of a phase that was carried out. That what it looked at failed (the agent, a validation) is shown
/// beside it, and is no error of the phase.
#[derive(Debug)]
pub(super) struct Note {
    text: String,
    failed: Option<Code>,
}

impl Note {
    /// What came out, and the code that stands for it when it is a failure.
    pub(super) fn judged(text: impl Into<String>, failed: Option<Code>) -> Self {
        Self { text: text.into(), failed }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self { text, failed: None }
    }
}

impl Cx {
    /// A context for a run that starts now.
    pub(super) fn new(ui: Printer, signals: Signals, guard: Guard, id: Identity, trace: Recorder) -> Self {
        let findings = RefCell::new(super::security::chain(&id.dir));
        Self {
            ui,
            signals,
            guard,
            id,
            journal: OnceCell::new(),
            servers: OnceCell::new(),
            findings,
            trace,
            budgets_told: Cell::default(),
            started: Instant::now(),
            phases: RefCell::default(),
        }
    }

    /// Runs a phase: recorded, shown, and ended by the first signal. The text is the phase's note.
    pub(super) async fn phase<T, N: Into<Note>>(
        &self,
        name: &str,
        work: impl Future<Output = Result<(T, N)>>,
    ) -> Result<T> {
        self.recorded(name, self.signals.guard(work)).await
    }

    /// Runs a phase that the first signal does not end.
    pub(super) async fn recorded<T, N: Into<Note>>(
        &self,
        name: &str,
        work: impl Future<Output = Result<(T, N)>>,
    ) -> Result<T> {
        if let Some(journal) = self.journal.get() {
            journal.phase(name);
        }
        self.trace.phase(name);
        let start = Instant::now();
        let done = work.await.map(|(value, note)| (value, note.into()));
        let took = start.elapsed();
        let (failed, status, note) = match &done {
            Ok((_, Note { text, failed: None })) => (None, Status::Ok, text.as_str()),
            Ok((_, Note { text, failed })) => (*failed, Status::Error(text.clone()), text.as_str()),
            Err(error) => (Some(error.code()), Status::Error(error.message().to_owned()), ""),
        };
        if let Some(code) = failed {
            self.trace.note("error.type", code.as_str());
        }
        self.trace.phase_ended(status, note, &|text| self.ui.redact(text));
        self.phases.borrow_mut().push(Phase {
            name: name.to_owned(),
            start_ms: millis(start.duration_since(self.started)),
            duration_ms: millis(took),
            failed,
        });
        match done {
            Ok((value, note)) => {
                let show = if failed.is_some() { Printer::failed } else { Printer::done };
                show(&self.ui, name, took, &note.text);
                Ok(value)
            }
            Err(error) => {
                self.ui.failed(name, took, error.message());
                Err(error)
            }
        }
    }

    /// The phases so far.
    pub(super) fn phases(&self) -> Vec<Phase> {
        self.phases.borrow().clone()
    }

    /// Since the run began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Whole milliseconds.
pub(super) fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}
