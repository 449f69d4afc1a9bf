//! A script's output: lines of text, unless its first line shows that it speaks stream-json.

use super::claude_stream::line_type;
use super::event::Event;

/// The longest line that is shown, in bytes; the artefact has it whole.
const SHOWN: usize = 16 * 1024;

/// Whether a line settles the format, and to what: a first JSON object with a `type` means stream-json. An
/// empty line settles nothing.
pub(super) fn speaks_json(line: &[u8]) -> Option<bool> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    match line.first() {
        None => None,
        Some(b'{') => Some(line_type(line).is_some()),
        Some(_) => Some(false),
    }
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
        let cases: [(&[u8], Option<bool>); 8] = [
            (b"", None),
            (b"  \r", None),
            (br#"{"type":"system","subtype":"init"}"#, Some(true)),
            (b"\xef\xbb\xbf {\"a\":[\"\xff\"],\"type\":\"x\"}", Some(true)),
            (br#"{"type":7}"#, Some(false)),
            (br#"{"ok":true}"#, Some(false)),
            (br#"{"type":"system""#, Some(false)),
            (b"hello", Some(false)),
        ];
        for (line, expected) in cases {
            assert_eq!(speaks_json(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn long_lines_are_cut_for_display() {
        let Event::Text { text, .. } = text("é".repeat(SHOWN).as_bytes()) else { panic!() };
        assert!(text.ends_with('…') && text.len() < SHOWN + 10);
    }
}
