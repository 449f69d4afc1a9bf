//! Watching the agent's stream while it runs: the raw copy, the events, the figures, the display.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use crate::agent::render::Renderer;
use crate::agent::{Decoder, Event, Evidence, Format, Metrics};
use crate::error::{Error, Result};
use crate::report::{Printer, hex};
use crate::secrets::{Redactor, Registry};

/// What `run.json` says of the raw stream.
#[derive(Debug, Clone, Serialize)]
pub(super) struct StreamRecord {
    /// Bytes that the sandbox sent.
    pub bytes: u64,
    /// SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
    /// How often a secret was replaced in the copy.
    pub replacements: u64,
}

/// Takes in the stream of one iteration.
pub(super) struct Watch<'a> {
    file: fs_err::File,
    failed: Option<std::io::Error>,
    hash: Sha256,
    bytes: u64,
    redactor: Redactor,
    decoder: Decoder,
    reader: Reader<'a>,
}

/// What is made of the events.
struct Reader<'a> {
    metrics: Metrics,
    evidence: Evidence,
    renderer: Renderer,
    ui: &'a Printer,
    last_event: Instant,
    concluded: &'a Notify,
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
}

impl<'a> Watch<'a> {
    /// Copies to `path`; `concluded` is told when the agent gave its final result.
    pub(super) fn new(
        path: &Path,
        format: Format,
        secrets: &Registry,
        ui: &'a Printer,
        concluded: &'a Notify,
    ) -> Result<Self> {
        Ok(Self {
            // Not buffered: what was heard of an agent must outlive a run that is killed.
            file: fs_err::File::create(path)?,
            failed: None,
            hash: Sha256::new(),
            bytes: 0,
            redactor: Redactor::new(secrets),
            decoder: Decoder::new(format),
            reader: Reader {
                metrics: Metrics::default(),
                evidence: Evidence::new(),
                renderer: Renderer::new(),
                ui,
                last_event: Instant::now(),
                concluded,
            },
        })
    }

    /// Takes a chunk. Never fails: whoever reads the stream must keep draining, or the agent blocks; a full disk
    /// is reported at the end.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.hash.update(chunk);
        let copy = self.redactor.push(chunk);
        self.write(&copy);
        let reader = &mut self.reader;
        self.decoder.push(chunk, &mut |event| reader.event(&event));
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Since the last event.
    pub(super) fn quiet_for(&self) -> std::time::Duration {
        self.reader.last_event.elapsed()
    }

    /// Ends the copy.
    pub(super) fn finish(mut self) -> Result<Watched> {
        let rest = self.redactor.flush();
        self.write(&rest);
        let mut reader = self.reader;
        self.decoder.finish(&mut |event| reader.event(&event));
        reader.end();
        reader.evidence.stream = self.decoder.stats();
        if let Some(error) = self.failed {
            return Err(Error::io("cannot write the agent's stream", &error));
        }
        Ok(Watched {
            stream: StreamRecord {
                bytes: self.bytes,
                sha256: hex(self.hash.finalize()),
                replacements: self.redactor.replaced(),
            },
            metrics: reader.metrics,
            evidence: reader.evidence,
        })
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }
}

impl Reader<'_> {
    fn event(&mut self, event: &Event) {
        self.last_event = Instant::now();
        self.metrics.observe(event);
        self.evidence.observe(event);
        for line in self.renderer.event(event) {
            self.ui.foreign(&line.text);
        }
        if matches!(event, Event::Result(_)) {
            self.concluded.notify_one();
        }
    }

    /// Shows what is held of an unfinished line.
    fn end(&mut self) {
        for line in self.renderer.finish() {
            self.ui.foreign(&line.text);
        }
    }
}
