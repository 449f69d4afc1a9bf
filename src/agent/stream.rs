//! The decoder of an agent's output: bytes in, events out, in bounded memory and without ever giving up.

use serde::{Deserialize, Serialize};

use super::claude_stream::{ClaudeStream, Malformed};
use super::codex_stream::CodexStream;
use super::event::{Event, Usage};
use super::lines::{Lines, Piece};
use super::opencode_stream::OpencodeStream;
use super::plain::{self, First};

/// The longest line that is parsed, in bytes. A longer one is counted and passed over; the artefact has it.
pub const LINE_CAP: usize = 8 * 1024 * 1024;

/// What the runtime writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Claude Code's stream-json.
    StreamJson,
    /// The events of `codex exec --json`.
    Codex,
    /// The events of `opencode run --format json`.
    Opencode,
    /// Lines of text, or one of the others when the first line that is not empty is such an object.
    Auto,
}

/// What was seen of a stream, beside its events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Bytes in all.
    pub bytes: u64,
    /// Whole lines, empty ones not counted.
    pub lines: u64,
    /// Lines of a JSON stream that are not JSON.
    pub malformed: u64,
    /// Lines that were too long to be parsed.
    pub oversized: u64,
    /// The stream ends in the middle of a line; that line was not parsed.
    pub partial_tail: bool,
    /// Whether the stream is JSON; `None` while that is not known.
    pub stream_json: Option<bool>,
}

/// The decoder of one stream.
#[derive(Debug)]
pub struct Decoder {
    lines: Lines,
    inner: Inner,
}

/// The part that sees whole lines.
#[derive(Debug)]
struct Inner {
    speaker: Speaker,
    before: Usage,
    stats: Stats,
}

/// Who speaks, with what is remembered of it.
#[derive(Debug)]
enum Speaker {
    Claude(Box<ClaudeStream>),
    Codex(Box<CodexStream>),
    Opencode(Box<OpencodeStream>),
}

impl Speaker {
    fn new(format: Format, before: Usage) -> Self {
        match format {
            Format::Codex => Speaker::Codex(Box::new(CodexStream::new(before))),
            Format::Opencode => Speaker::Opencode(Box::new(OpencodeStream::new())),
            Format::StreamJson | Format::Auto => Speaker::Claude(Box::new(ClaudeStream::new())),
        }
    }

    fn line(&mut self, line: &[u8], sink: &mut dyn FnMut(Event)) -> Result<(), Malformed> {
        match self {
            Speaker::Claude(claude) => claude.line(line, sink),
            Speaker::Codex(codex) => codex.line(line, sink),
            Speaker::Opencode(opencode) => opencode.line(line, sink),
        }
    }
}

impl Decoder {
    /// A decoder for a runtime that writes `format`.
    pub fn new(format: Format) -> Self {
        Self::resuming(format, Usage::default())
    }

    /// A decoder for a session that goes on, in which `before` was used by then: some runtimes count that again.
    pub fn resuming(format: Format, before: Usage) -> Self {
        let stream_json = (format != Format::Auto).then_some(true);
        let stats = Stats { stream_json, ..Stats::default() };
        Self {
            lines: Lines::new(LINE_CAP),
            inner: Inner { speaker: Speaker::new(format, before), before, stats },
        }
    }

    /// Takes the next bytes, wherever they were cut. Nothing makes it stop: what cannot be read is counted.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        let Self { lines, inner } = self;
        inner.stats.bytes += bytes.len() as u64;
        lines.push(bytes, &mut |piece| inner.piece(&piece, sink));
    }

    /// The stream has ended. An unfinished last line is text when the stream is text, else only noted.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        let Self { lines, inner } = self;
        match lines.rest() {
            None => {}
            Some(Piece::Line(rest)) if rest.trim_ascii().is_empty() => {}
            Some(Piece::Line(rest)) if inner.is_text(rest) => sink(plain::text(rest)),
            Some(Piece::Oversized(_)) if inner.stats.stream_json == Some(false) => inner.oversized(sink),
            Some(_) => inner.stats.partial_tail = true,
        }
    }

    /// Whether the stream is known to be text.
    pub fn is_text(&self) -> bool {
        self.inner.stats.stream_json == Some(false)
    }

    /// What was seen so far.
    pub fn stats(&self) -> Stats {
        self.inner.stats
    }
}

impl Inner {
    fn piece(&mut self, piece: &Piece<'_>, sink: &mut dyn FnMut(Event)) {
        let line = match piece {
            Piece::Line(line) => *line,
            Piece::Oversized(_) => {
                self.stats.lines += 1;
                return self.oversized(sink);
            }
        };
        if line.trim_ascii().is_empty() {
            if self.stats.stream_json == Some(false) {
                sink(plain::text(b""));
            }
            return;
        }
        self.stats.lines += 1;
        if self.stats.stream_json.is_none() {
            self.stats.stream_json = plain::first(line).map(|first| match first {
                First::Text => false,
                First::Json(format) => {
                    self.speaker = Speaker::new(format, self.before);
                    true
                }
            });
        }
        if self.stats.stream_json == Some(false) {
            sink(plain::text(line));
        } else if self.speaker.line(line, sink).is_err() {
            self.stats.malformed += 1;
            if self.stats.malformed == 1 {
                sink(Event::Warning { message: "the agent's stream has lines that are not JSON".into() });
            }
        }
    }

    /// Whether an unfinished line is text. A first line that looks like the start of an object is not.
    fn is_text(&self, rest: &[u8]) -> bool {
        match self.stats.stream_json {
            Some(json) => !json,
            None => !rest.trim_ascii_start().starts_with(b"{"),
        }
    }

    fn oversized(&mut self, sink: &mut dyn FnMut(Event)) {
        self.stats.oversized += 1;
        if self.stats.oversized == 1 {
            let cap = LINE_CAP / (1024 * 1024);
            let message = format!("the agent's stream has lines over {cap} MiB; they are kept, but not read");
            sink(Event::Warning { message });
        }
    }
}

#[cfg(test)]
mod tests;
