//! A script's output: lines of text, unless its first line shows that it speaks as one of the agent CLIs does.

use super::claude_stream::line_type;
use super::event::Event;
use super::stream::Format;

/// The longest line that is shown, in bytes; the artefact has it whole.
const SHOWN: usize = 16 * 1024;

/// What a first line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// Text.
    Text,
    /// JSON lines of this format: the line is an object with a `type`.
    Json(Format),
}

/// What a line shows of the format. An empty line shows nothing.
pub(super) fn first(line: &[u8]) -> Option<First> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.first()? != &b'{' {
        return Some(First::Text);
    }
    Some(match line_type(line).as_deref() {
        None => First::Text,
        Some("thread.started" | "turn.started") => First::Json(Format::Codex),
        Some("step_start" | "step_finish" | "tool_use" | "text" | "reasoning" | "error") => {
            First::Json(Format::Opencode)
        }
        Some(_) => First::Json(Format::StreamJson),
    })
}

/// The event of a line of text.
pub(super) fn text(line: &[u8]) -> Event {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    let more = if line.len() > SHOWN { "…" } else { "" };
    Event::Text { text: format!("{text}{more}"), end: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_decides() {
        let json = |format| Some(First::Json(format));
        let cases: [(&[u8], Option<First>); 10] = [
            (b"", None),
            (b"  \r", None),
            (br#"{"type":"system","subtype":"init"}"#, json(Format::StreamJson)),
            (b"\xef\xbb\xbf {\"a\":[\"\xff\"],\"type\":\"x\"}", json(Format::StreamJson)),
            (br#"{"type":"thread.started","thread_id":"t"}"#, json(Format::Codex)),
            (br#"{"type":"step_start","sessionID":"s"}"#, json(Format::Opencode)),
            (br#"{"type":7}"#, Some(First::Text)),
            (br#"{"ok":true}"#, Some(First::Text)),
            (br#"{"type":"system""#, Some(First::Text)),
            (b"hello", Some(First::Text)),
        ];
        for (line, expected) in cases {
            assert_eq!(first(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn long_lines_are_cut_for_display() {
        let Event::Text { text, .. } = text("é".repeat(SHOWN).as_bytes()) else { panic!() };
        assert!(text.ends_with('…') && text.len() < SHOWN + 10);
    }
}
