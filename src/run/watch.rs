//! Watching the agent's stream while it runs: the raw copy, the events, the figures, the display.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use super::context::Cx;
use super::deltas::Deltas;
use super::events::EventLog;
use super::meter::{Kind, Meter, Over};
use super::shown::Shown;
use super::stream_copy::StreamCopy;
use crate::agent::render::{Line, Renderer, ShowAgent};
use crate::agent::{Decoder, Event, Evidence, Format, Metrics};
use crate::error::{Error, Result};
use crate::process::scale;
use crate::remote::{Heard, MOST};
use crate::report::{Printer, hex};
use crate::secrets::{Redactor, Registry};
use crate::telemetry::Tools;

/// What `run.json` says of the raw stream.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StreamRecord {
    /// Bytes that the sandbox sent.
    pub bytes: u64,
    /// Bytes of the stream that are not in the copy: it was full, or they were left in the sandbox.
    pub left_out: u64,
    /// SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
    /// How often a secret was replaced in the copy.
    pub replacements: u64,
}

/// Takes in the stream of one iteration.
pub(super) struct Watch<'a> {
    ui: &'a Printer,
    copy: StreamCopy,
    hash: Sha256,
    bytes: u64,
    /// Bytes that were left in the sandbox.
    missing: u64,
    /// Whether the copy is what is decoded. Each line of a text is an event, and a secret that was broken over two of
    /// them is known as one only where the stream is seen as a whole.
    of_copy: bool,
    deltas: Deltas,
    redactor: Redactor,
    decoder: Decoder,
    reader: Reader<'a>,
}

/// What is made of the events.
struct Reader<'a> {
    metrics: Metrics,
    evidence: Evidence,
    tools: Tools,
    renderer: Renderer,
    shown: Shown<'a>,
    show: ShowAgent,
    log: EventLog<'a>,
    last_event: Instant,
    /// The final result was given, and nothing since then shows that the work goes on.
    done: bool,
    bells: &'a Bells,
    meter: Meter,
    over: Option<Over>,
    near: Option<Kind>,
    answered: u64,
    /// The budgets that nothing in the stream can tell of, until that was said.
    untold: Option<String>,
    cx: &'a Cx,
}

/// What the stream tells those who wait beside it.
#[derive(Debug, Default)]
pub(super) struct Bells {
    /// The agent gave its final result.
    pub concluded: Notify,
    /// A budget is used up.
    pub over: Notify,
    /// A budget is nearly used up.
    pub near: Notify,
}

/// What is known when the stream has ended.
#[derive(Debug)]
pub(super) struct Watched {
    /// The raw stream.
    pub stream: StreamRecord,
    /// The figures.
    pub metrics: Metrics,
    /// What the stream says about how the agent ended.
    pub evidence: Evidence,
    /// The budget that was used up while it ran.
    pub over: Option<Over>,
    /// How many tools were carried out and answered.
    pub answered: u64,
}

impl<'a> Watch<'a> {
    /// Copies to `stream.jsonl` in `dir`, with the events beside it.
    pub(super) fn new(
        dir: &Path,
        format: Format,
        show: ShowAgent,
        secrets: &'a Registry,
        cx: &'a Cx,
        bells: &'a Bells,
        meter: Meter,
    ) -> Result<Self> {
        let names = Some(meter.named_budgets()).filter(|names| !names.is_empty());
        // Agent programs that were named speak their format, or fail.
        let untold = names.filter(|_| format == Format::Auto && !cx.budgets_told.get());
        Ok(Self {
            ui: &cx.ui,
            copy: StreamCopy::create(&dir.join("stream.jsonl"))?,
            hash: Sha256::new(),
            bytes: 0,
            missing: 0,
            of_copy: format == Format::Auto,
            deltas: Deltas::new(secrets),
            redactor: Redactor::new(secrets),
            decoder: Decoder::resuming(format, meter.session),
            reader: Reader {
                metrics: Metrics::default(),
                evidence: Evidence::new(),
                tools: Tools::new(cx.trace.clone()),
                renderer: Renderer::new(),
                shown: Shown::of_agent(&cx.ui),
                show,
                log: EventLog::create(&dir.join("events.jsonl"), secrets)?,
                done: false,
                last_event: Instant::now(),
                bells,
                meter,
                over: None,
                near: None,
                answered: 0,
                untold,
                cx,
            },
        })
    }

    /// Takes what was heard. Never fails: whoever reads the stream must keep draining; a full disk is reported at the
    /// end.
    pub(super) fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Bytes(chunk) => self.push(chunk),
            Heard::Gap(missing) => self.gap(missing),
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.hash.update(chunk);
        let copy = self.deltas.push(chunk);
        let copy = self.redactor.push(&copy);
        self.write(&copy);
        if !self.of_copy {
            self.decode(chunk);
        }
    }

    fn decode(&mut self, bytes: &[u8]) {
        let reader = &mut self.reader;
        let plain = self.decoder.is_text();
        self.decoder.push(bytes, &mut |event| reader.event(&event, plain));
        if self.decoder.is_text() {
            reader.says_nothing_of_budgets();
        }
    }

    fn gap(&mut self, missing: u64) {
        let rest = self.deltas.gap();
        let mut rest = self.redactor.push(&rest);
        rest.extend(self.redactor.flush());
        self.write(&rest);
        self.copy.gap(missing);
        self.missing += missing;
        self.decoder.gap();
        self.ui.warn(&format!(
            "when the agent was ended, much of its output was not read yet: {} of it are left out, its end is not",
            crate::report::bytes(missing)
        ));
    }

    /// Where the next byte stands in the stream.
    pub(super) fn offset(&self) -> u64 {
        self.bytes + self.missing
    }

    /// Since the last event.
    pub(super) fn quiet_for(&self) -> std::time::Duration {
        self.reader.last_event.elapsed()
    }

    /// The budget that is nearly used up.
    pub(super) fn near(&self) -> Option<Kind> {
        self.reader.near
    }

    /// Whether the final result was given and the work does not go on.
    pub(super) fn is_done(&self) -> bool {
        self.reader.done
    }

    /// The figures so far.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.reader.metrics
    }

    /// Shows what is held back: the agent has paused.
    pub(super) fn settle(&mut self) {
        self.reader.shown.settle();
    }

    /// Ends the copy.
    pub(super) fn finish(mut self) -> Result<Watched> {
        let rest = self.deltas.finish();
        let mut rest = self.redactor.push(&rest);
        rest.extend(self.redactor.flush());
        self.write(&rest);
        let mut reader = self.reader;
        let plain = self.decoder.is_text();
        self.decoder.finish(&mut |event| reader.event(&event, plain));
        if !reader.metrics.says_anything() {
            reader.says_nothing_of_budgets();
        }
        reader.end(plain);
        reader.tools.finish();
        reader.evidence.stream = self.decoder.stats();
        let failed = |error| Error::io("cannot write the agent's stream", &error);
        let left_out = self.copy.finish().map_err(failed)?;
        if let Some(error) = reader.log.finish() {
            return Err(failed(error));
        }
        Ok(Watched {
            stream: StreamRecord {
                bytes: self.bytes,
                left_out,
                sha256: hex(self.hash.finalize()),
                replacements: self.deltas.replaced() + self.redactor.replaced(),
            },
            metrics: reader.metrics,
            evidence: reader.evidence,
            over: reader.over,
            answered: reader.answered,
        })
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.of_copy {
            self.decode(bytes);
        }
        if self.copy.push(bytes) {
            self.ui.warn(&format!(
                "the agent has written {}: stream.jsonl is full, and of the rest only the end is kept; at {} the agent \
                 is ended",
                crate::report::bytes(self.offset()),
                crate::report::bytes(scale::size(MOST)),
            ));
        }
    }
}

impl Reader<'_> {
    fn event(&mut self, event: &Event, plain: bool) {
        self.last_event = Instant::now();
        self.log.event(event);
        self.metrics.observe(event);
        self.evidence.observe(event);
        self.tools.event(event);
        for line in self.renderer.event(event) {
            self.line(&line, plain);
        }
        match event {
            Event::Result(_) => {
                self.done = true;
                self.shown.settle();
                self.bells.concluded.notify_one();
            }
            Event::ToolResult { is_error: false, .. } => self.answered += 1,
            // A result may be followed by more work: what was left in the background has ended, a context was
            // shortened.
            Event::Turn => self.done = false,
            _ => {}
        }
        if matches!(event, Event::Turn | Event::Tokens(_) | Event::Cost { .. })
            && self.evidence.result.is_none()
        {
            self.measure();
        }
    }

    /// Says once that budgets mean nothing to an agent whose output is text.
    fn says_nothing_of_budgets(&mut self) {
        if let Some(names) = self.untold.take() {
            self.cx.budgets_told.set(true);
            self.cx.ui.warn(&format!(
                "{names} have no effect: the agent is a script whose output is text and tells neither turns, tokens nor cost; \
                 only `timeout_minutes` and `idle_timeout` end it"
            ));
        }
    }

    /// A result is not measured: what it counts is done already.
    fn measure(&mut self) {
        if self.over.is_none() {
            self.over = self.meter.over(&self.metrics);
            if self.over.is_some() {
                self.bells.over.notify_one();
            }
        }
        if self.near.is_none() {
            self.near = self.meter.nearly(&self.metrics);
            if self.near.is_some() {
                self.bells.near.notify_one();
            }
        }
    }

    /// Shows what is held of an unfinished line.
    fn end(&mut self, plain: bool) {
        for line in self.renderer.finish() {
            self.line(&line, plain);
        }
        self.shown.end();
    }

    fn line(&mut self, line: &Line, plain: bool) {
        if self.show.shows(line.kind, plain) && !self.shown.is_full() {
            self.shown.line(&line.text);
        }
    }
}
