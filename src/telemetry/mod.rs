//! What a run tells to machines that watch many runs: spans (OTLP) and metrics (Prometheus).
//!
//! ```text
//! phases, children, the agent's events ──► recorder ──► otel.jsonl (always)
//!                                             └───────► export: OTLP/HTTP, when the standard variables ask for it
//! the end of the run ──► metrics ──► a text file, when --metrics-file asks for it
//! ```
//! Nothing here can fail a run or hold it up for longer than its limit. Why no SDK: `docs/design/telemetry.md`.

mod config;
mod export;
mod id;
mod metrics;
mod recorder;
mod span;
mod tools;

use std::time::Duration;

pub(crate) use metrics::{Figures, Phases, add as add_metrics};
pub(crate) use recorder::{FILE, Recorder};
pub(crate) use span::{Attributes, Status};
pub(crate) use tools::{Tools, usage_attributes};

use crate::error::Result;
use crate::report::Printer;
use crate::secrets::Secret;

/// The time for sending after a cancel, where whoever cancelled kills soon.
const AFTER_CANCEL: Duration = Duration::from_secs(1);

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The credentials among the standard variables.
pub(crate) fn secrets() -> Vec<Secret> {
    config::secrets(&variable)
}

/// Begins the trace of a run. What is wrong with the variables is told.
pub(crate) fn start(agent: &str, ui: &Printer) -> Result<(Recorder, Sender)> {
    let config = config::read(&variable);
    for note in &config.notes {
        ui.warn(note);
    }
    let context = match variable("TRACEPARENT").as_deref().and_then(id::Context::parse) {
        Some(context) => context,
        None => id::Context::new()?,
    };
    let recorder = Recorder::start(context, config.resource, format!("run {agent}"))?;
    // Whoever began the trace does not record it, so nobody would look for these.
    let export = config.export.filter(|_| context.sampled);
    Ok((recorder, Sender { export }))
}

/// Sends the spans, when that is asked for.
#[derive(Debug)]
pub(crate) struct Sender {
    export: Option<config::Export>,
}

impl Sender {
    /// Sends everything that was recorded; a failure is told, and that is all. Ends early when `hurry` does.
    pub(crate) async fn send(
        self,
        recorder: &Recorder,
        ui: &Printer,
        cancelled: bool,
        hurry: impl Future<Output = ()>,
    ) {
        let Some(export) = self.export else { return };
        let limit = if cancelled { export.timeout.min(AFTER_CANCEL) } else { export.timeout };
        let trace = recorder.take();
        let secrets = ui.secrets();
        let sending = tokio::task::spawn_blocking(move || export::send(&export, &trace, &secrets, limit));
        // A name that is looked up cannot be given up by the one who asked.
        let outcome = tokio::select! {
            sent = tokio::time::timeout(limit + limit / 10, sending) => match sent {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {}", crate::report::duration(limit))),
            },
            () = hurry => Err("the run was cancelled".to_owned()),
        };
        if let Err(why) = outcome {
            ui.warn(&format!("the spans of this run could not be sent: {why}; they are in {FILE}"));
        }
    }
}
