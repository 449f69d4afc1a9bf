//! The copy of a stream, with the pieces of one text seen as one text: an agent that streams its answer cuts a secret
//! over several events, and no single line would hold it.

use serde_json::Value;

use crate::secrets::{Redactor, Registry};

/// A line whose beginning does not say so is no piece of a text, in bytes.
const HEAD: usize = 128;
/// A longer line is not held back, in bytes.
const LINE: usize = 64 * 1024;
/// More is not held back: lines, and bytes.
const MOST: (usize, usize) = (512, 256 * 1024);

/// Passes a stream on. Lines that carry pieces of a text are held back while the text so far ends in what may be the
/// beginning of a secret; when it is one, the first of them gets the text without it and the others an empty text.
#[derive(Debug)]
pub(super) struct Deltas {
    text: Redactor,
    line: Vec<u8>,
    state: State,
    group: Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a line that may carry a piece.
    Head,
    /// In a line that may carry a piece.
    Hold,
    /// In a line that does not.
    Pass,
}

/// Lines that are held back.
#[derive(Debug, Default)]
struct Group {
    key: Option<Key>,
    lines: Vec<Vec<u8>>,
    bytes: usize,
    /// The text of the lines without secrets, as far as it is decided.
    clean: String,
    /// How many secrets had been replaced before it.
    before: u64,
}

/// What belongs together: who speaks, which block, which field of the delta.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(String, u64, &'static str);

impl Deltas {
    /// For one stream.
    pub(super) fn new(registry: &Registry) -> Self {
        Self { text: Redactor::new(registry), line: Vec::new(), state: State::Head, group: Group::default() }
    }

    /// How many secrets were replaced here.
    pub(super) fn replaced(&self) -> u64 {
        self.text.replaced()
    }

    /// Takes the next bytes and gives those that are decided.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let ends = piece.ends_with(b"\n");
            if self.state == State::Pass {
                out.extend_from_slice(piece);
            } else {
                self.line.extend_from_slice(piece);
                self.judge(ends, &mut out);
            }
            if ends {
                self.state = State::Head;
            }
        }
        out
    }

    /// The rest, when the stream has ended.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.close(true, &mut out);
        out.append(&mut self.line);
        out
    }

    /// Bytes are missing before the next ones, which may begin within a line. Gives what is held back.
    pub(super) fn gap(&mut self) -> Vec<u8> {
        let out = self.finish();
        self.state = State::Pass;
        out
    }

    fn judge(&mut self, ends: bool, out: &mut Vec<u8>) {
        if self.state == State::Head && (ends || self.line.len() >= HEAD) {
            let head = &self.line[..self.line.len().min(HEAD)];
            let may = memchr::memmem::find(head, b"\"stream_event\"").is_some();
            self.state = if may { State::Hold } else { State::Pass };
        }
        if self.state == State::Pass || self.state == State::Hold && self.line.len() > LINE {
            self.state = State::Pass;
            self.close(true, out);
            out.append(&mut self.line);
        } else if ends && self.state == State::Hold {
            let line = std::mem::take(&mut self.line);
            if let Some((key, text)) = piece(&line) {
                self.hold(key, line, &text, out);
            } else {
                self.close(true, out);
                out.extend_from_slice(&line);
            }
        }
    }

    fn hold(&mut self, key: Key, line: Vec<u8>, text: &str, out: &mut Vec<u8>) {
        if self.group.key.as_ref().is_some_and(|k| *k != key) {
            self.close(true, out);
        }
        self.group.key = Some(key);
        self.group.bytes += line.len();
        self.group.lines.push(line);
        self.group.clean += &String::from_utf8_lossy(&self.text.push(text.as_bytes()));
        let full = self.group.lines.len() >= MOST.0 || self.group.bytes >= MOST.1;
        if full || self.text.is_settled() {
            self.close(full, out);
        }
    }

    /// Gives what is held back; all of its text when nothing that follows belongs to it.
    fn close(&mut self, all: bool, out: &mut Vec<u8>) {
        if all {
            self.group.clean += &String::from_utf8_lossy(&self.text.flush());
        }
        let group = std::mem::take(&mut self.group);
        self.group.before = self.text.replaced();
        let changed = group.before != self.text.replaced();
        let mut clean = Some(group.clean);
        for line in group.lines {
            if changed && let Some(line) = with_text(&line, clean.take().unwrap_or_default()) {
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            } else {
                out.extend_from_slice(&line);
            }
        }
        if !all {
            self.group.key = group.key;
        }
    }
}

const FIELDS: [&str; 3] = ["text", "thinking", "partial_json"];

/// The piece of a text that a line carries.
fn piece(line: &[u8]) -> Option<(Key, String)> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let event = value.get("event").filter(|e| e["type"] == "content_block_delta")?;
    let (field, text) = FIELDS.iter().find_map(|f| Some((*f, event.get("delta")?.get(f)?.as_str()?)))?;
    let speaker = value.get("parent_tool_use_id").and_then(Value::as_str).unwrap_or_default();
    Some((Key(speaker.to_owned(), event["index"].as_u64().unwrap_or(0), field), text.to_owned()))
}

/// The line with another text in its place.
fn with_text(line: &[u8], text: String) -> Option<String> {
    let mut value: Value = serde_json::from_slice(line).ok()?;
    let delta = value.get_mut("event")?.get_mut("delta")?;
    let field = FIELDS.iter().find(|f| delta[**f].is_string())?;
    delta[*field] = Value::String(text);
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secrets::Secret;

    fn delta(index: u64, text: &str) -> String {
        let text = Value::from(text);
        format!(
            "{{\"type\":\"stream_event\", \"event\":{{\"type\":\"content_block_delta\",\"index\":{index},\
             \"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}}}\n"
        )
    }

    fn run(stream: &str, width: usize) -> String {
        let registry = Registry::new([&Secret::from("hunter2-hunter2")]);
        let mut deltas = Deltas::new(&registry);
        let mut out = Vec::new();
        for chunk in stream.as_bytes().chunks(width) {
            out.extend(deltas.push(chunk));
        }
        out.extend(deltas.finish());
        String::from_utf8(out).unwrap()
    }

    fn texts(stream: &str) -> String {
        stream.lines().filter_map(|line| Some(piece(line.as_bytes())?.1)).collect()
    }

    #[test]
    fn a_secret_in_pieces_is_taken_out_and_the_lines_stay() {
        let token = format!("ghp_{}", "aB3dZ9".repeat(6));
        let other = "{\"type\":\"assistant\",\"message\":{}}\n";
        let stream = [
            "{\"type\":\"system\"}\n".to_owned(),
            delta(0, "say hun"),
            delta(0, "ter2-"),
            delta(0, "hunter2 now"),
            other.to_owned(),
            delta(0, &token[..9]),
            delta(0, &token[9..]),
            delta(0, " done"),
            "not JSON, no end".to_owned(),
        ]
        .concat();
        for width in [1, 7, 100_000] {
            let out = run(&stream, width);
            assert_eq!(texts(&out), "say *** now*** done", "{out}");
            assert_eq!(out.lines().count(), stream.lines().count());
            assert!(out.contains(other) && out.ends_with("not JSON, no end"));
        }
    }

    #[test]
    fn blocks_do_not_mix_and_other_streams_pass_unchanged() {
        let stream = [delta(0, "hunter2-"), delta(1, "hunter2"), delta(0, "x")].concat();
        assert_eq!(run(&stream, 5), stream);
        let long = format!("{{\"type\":\"stream_event\",\"x\":\"{}\"}}\nhunter2\n", "y".repeat(2 * LINE));
        assert_eq!(run(&long, 1000), long);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn only_secrets_are_changed(
            pieces in prop::collection::vec("[hunter2 -]{0,6}|hunter2-|hunter2|\n", 0..12),
            width in 1..200_usize,
        ) {
            let stream: String = pieces.iter().map(|p| delta(0, p)).collect();
            let registry = Registry::new([&Secret::from("hunter2-hunter2")]);
            let out = run(&stream, width);
            let whole = pieces.concat();
            prop_assert_eq!(texts(&out), registry.redact_text(&whole));
            prop_assert_eq!(out.lines().count(), pieces.len());
            if !registry.shows(whole.as_bytes()) {
                prop_assert_eq!(out, stream);
            }
        }
    }
}
