//! `events.jsonl`: the events of an agent's stream in one vocabulary, whatever its CLI. docs/reference/events.md has
//! the format.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::agent::Event;
use crate::error::Result;
use crate::process::scale;
use crate::secrets::Registry;

/// The version of the format, on every line.
pub(super) const SCHEMA: &str = "fullsend.event/1";

/// The longest text of a line, in bytes; `stream.jsonl` has it whole.
const TEXT: usize = 16 * 1024;

/// A text that comes in pieces is held up to this length. It is more than is written, so that a secret which lies
/// across the end of what is held is not written in part.
const HELD: usize = 4 * TEXT;

/// The most that the file holds; then only the last result follows.
const CAP: u64 = 50_000_000;

/// Writes the events of one iteration. A text that came in pieces is one line.
#[derive(Debug)]
pub(super) struct EventLog<'a> {
    file: fs_err::File,
    secrets: &'a Registry,
    held: Option<Held>,
    number: u64,
    room: Room,
    failed: Option<std::io::Error>,
}

/// What still fits.
#[derive(Debug)]
enum Room {
    /// So many bytes.
    Left(u64),
    /// Nothing but the last result, when there is one.
    Full(Option<Event>),
}

#[derive(Debug)]
struct Held {
    thinking: bool,
    text: String,
}

#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    n: u64,
    #[serde(flatten)]
    event: &'a Value,
}

impl<'a> EventLog<'a> {
    /// Begins the file.
    pub(super) fn create(path: &Path, secrets: &'a Registry) -> Result<Self> {
        let file = fs_err::File::create(path)?;
        Ok(Self::new(file, secrets, scale::size(CAP)))
    }

    fn new(file: fs_err::File, secrets: &'a Registry, cap: u64) -> Self {
        Self { file, secrets, held: None, number: 0, room: Room::Left(cap), failed: None }
    }

    /// Takes an event. Never fails: what could not be written is the answer of [`EventLog::finish`].
    pub(super) fn event(&mut self, event: &Event) {
        if let Room::Full(last) = &mut self.room {
            if matches!(event, Event::Result(_)) {
                *last = Some(event.clone());
            }
            return;
        }
        match event {
            Event::Text { text, end } => self.piece(false, text, *end),
            Event::Thinking { text, end } => self.piece(true, text, *end),
            // They come between the pieces of a text.
            Event::Tokens(_) | Event::Cost { .. } | Event::Turn => self.write(event),
            other => {
                self.release();
                self.write(other);
            }
        }
    }

    /// The stream has ended.
    pub(super) fn finish(mut self) -> Option<std::io::Error> {
        self.release();
        if let Room::Full(Some(last)) = std::mem::replace(&mut self.room, Room::Left(u64::MAX)) {
            self.write(&last);
        }
        self.failed
    }

    fn piece(&mut self, thinking: bool, text: &str, end: bool) {
        if self.held.as_ref().is_some_and(|held| held.thinking != thinking) {
            self.release();
        }
        let held = self.held.get_or_insert_with(|| Held { thinking, text: String::new() });
        let room = HELD.saturating_sub(held.text.len());
        held.text.push_str(&text[..text.floor_char_boundary(room)]);
        if end {
            self.release();
        }
    }

    fn release(&mut self) {
        let Some(Held { thinking, text }) = self.held.take() else { return };
        if text.is_empty() {
            return;
        }
        let end = true;
        self.write(&if thinking { Event::Thinking { text, end } } else { Event::Text { text, end } });
    }

    fn write(&mut self, event: &Event) {
        let Some(line) = self.line(event) else { return };
        match &mut self.room {
            Room::Left(left) if *left >= line.len() as u64 => {
                *left -= line.len() as u64;
                self.put(&line);
            }
            Room::Left(_) => {
                let last = matches!(event, Event::Result(_)).then(|| event.clone());
                self.room = Room::Full(last);
                let message = "this file is full; of what follows only the last result is written".to_owned();
                if let Some(line) = self.line(&Event::Warning { message }) {
                    self.put(&line);
                }
            }
            Room::Full(_) => {}
        }
    }

    fn put(&mut self, line: &[u8]) {
        self.number += 1;
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(line)
        {
            self.failed = Some(error);
        }
    }

    fn line(&self, event: &Event) -> Option<Vec<u8>> {
        let Ok(mut event) = serde_json::to_value(event) else { return None };
        self.tidy(&mut event);
        // Pieces are put together, so that nothing is left to say.
        if let Some(map) = event.as_object_mut() {
            map.shift_remove("end");
        }
        let line = Line { schema: SCHEMA, n: self.number + 1, event: &event };
        let mut line = serde_json::to_vec(&line).ok()?;
        line.push(b'\n');
        Some(line)
    }

    /// Without secrets, and no text longer than its limit.
    fn tidy(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let clean = self.secrets.redact_text(text);
                let cut = clean.len() > TEXT;
                let kept = &clean[..clean.floor_char_boundary(TEXT)];
                *text = if cut { format!("{kept}…") } else { kept.to_owned() };
            }
            Value::Array(values) => values.iter_mut().for_each(|v| self.tidy(v)),
            Value::Object(map) => map.values_mut().for_each(|v| self.tidy(v)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Usage;
    use crate::secrets::Secret;

    fn written(events: &[Event]) -> Vec<Value> {
        written_up_to(CAP, events)
    }

    fn written_up_to(cap: u64, events: &[Event]) -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let registry = Registry::new([&Secret::from("hunter2-hunter2")]);
        let mut log = EventLog::new(fs_err::File::create(&path).unwrap(), &registry, cap);
        for event in events {
            log.event(event);
        }
        assert!(log.finish().is_none());
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.contains("hunter2-"), "{text}");
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    fn text(text: &str, end: bool) -> Event {
        Event::Text { text: text.into(), end }
    }

    #[test]
    fn pieces_are_one_line_without_secrets() {
        let lines = written(&[
            Event::Turn,
            text("say hunter2-", false),
            Event::Tokens(Usage { input: 3, ..Usage::default() }),
            text("hunter2 now", true),
            Event::ToolUse { name: "Bash".into(), summary: "echo hunter2-hunter2".into(), id: "t".into() },
            text("open", false),
        ]);
        let kinds: Vec<_> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["turn", "tokens", "text", "tool_use", "text"]);
        assert_eq!(lines[2]["text"], "say *** now");
        assert_eq!(lines[3]["summary"], "echo ***");
        for (n, line) in lines.iter().enumerate() {
            assert_eq!((&line["schema"], &line["n"]), (&Value::from(SCHEMA), &Value::from(n as u64 + 1)));
        }
    }

    #[test]
    fn a_full_file_says_so_and_ends_with_the_last_result() {
        let result =
            |text: &str| Event::Result(crate::agent::ResultEvent { text: text.into(), ..Default::default() });
        let mut events = vec![Event::Turn; 100];
        events.extend([result("early"), Event::Turn, text("pieces", false), result("last"), Event::Turn]);
        let lines = written_up_to(1000, &events);
        let kinds: Vec<_> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
        let turns = kinds.len() - 2;
        assert!((10..30).contains(&turns) && kinds[..turns].iter().all(|k| *k == "turn"), "{kinds:?}");
        assert_eq!(kinds[turns..], ["warning", "result"]);
        assert_eq!(lines[turns + 1]["text"], "last");
        assert_eq!(lines[turns + 1]["n"], turns + 2);
    }

    #[test]
    fn lines_are_bounded_and_a_secret_at_the_end_of_what_is_held_is_not_shown_in_part() {
        let lines = written(&[text(&"é".repeat(HELD), false), text("hunter2-hunter2", true)]);
        assert!(lines[0]["text"].as_str().unwrap().len() <= TEXT + '…'.len_utf8());
        let near = format!("{}hunter2-hunter2", "x".repeat(HELD - 9));
        assert_eq!(written(&[text(&near, true)]).len(), 1);
    }
}
