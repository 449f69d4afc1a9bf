//! Small texts that several reports share.

use std::time::Duration;

/// A duration as people write it: `0.4s`, `12s`, `3m 05s`, `1h 02m`.
pub fn duration(d: Duration) -> String {
    let secs = d.as_secs();
    match secs {
        0..10 => format!("{:.1}s", d.as_secs_f64()),
        10..60 => format!("{secs}s"),
        60..3600 => format!("{}m {:02}s", secs / 60, secs % 60),
        _ => format!("{}h {:02}m", secs / 3600, secs % 3600 / 60),
    }
}

/// Bytes in hexadecimal, e.g. a digest.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    use std::fmt::Write as _;
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// The last `n` lines of a text.
pub fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

/// A size as people write it: `812 B`, `4.0 KB`, `82.1 MB` (powers of 1000).
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// The least room for text beside an indentation; with less the indentation shrinks.
const ROOM: usize = 30;

/// Breaks one line at blanks so that it fits `width` columns: `first` are taken already, further lines are indented.
/// A longer word (a path, an address) stays whole, so that it can be copied.
pub(super) fn wrap(text: &str, first: usize, indent: usize, width: usize) -> String {
    let indent = if width < indent + ROOM { indent.min(4) } else { indent };
    let mut out = String::with_capacity(text.len() + indent);
    let mut column = first;
    // Nothing stands in this line yet.
    let mut fresh = true;
    let mut blanks = 0;
    for (at, word) in text.split(' ').enumerate() {
        blanks += usize::from(at > 0);
        if word.is_empty() {
            continue;
        }
        let len = word.chars().count();
        if !fresh && column + blanks + len > width {
            out.push('\n');
            blanks = indent;
            column = 0;
        }
        out.extend(std::iter::repeat_n(' ', blanks));
        out.push_str(word);
        column += blanks + len;
        blanks = 0;
        fresh = false;
    }
    out
}

/// Paragraphs of Markdown whose lines were broken for a page, broken for `width` columns instead. What is laid out
/// (tables, code) is left alone.
pub(super) fn reflow(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut paragraph = String::new();
    let mut code = false;
    let flush = |paragraph: &mut String, out: &mut String| {
        if !paragraph.is_empty() {
            let item = paragraph.starts_with("- ");
            out.push_str(&wrap(paragraph, 0, if item { 2 } else { 0 }, width));
            out.push('\n');
            paragraph.clear();
        }
    };
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        let own =
            code || fence || line.is_empty() || line.starts_with(['|', '#']) || line.starts_with("    ");
        if own || line.starts_with("- ") {
            flush(&mut paragraph, &mut out);
        }
        if own {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(if paragraph.is_empty() { line } else { line.trim_start() });
    }
    flush(&mut paragraph, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_blanks_and_are_indented() {
        assert_eq!(wrap("one two three", 0, 2, 40), "one two three");
        let text = "a warning that does not fit into a line of forty columns at all";
        assert_eq!(
            wrap(text, 4, 4, 40),
            "a warning that does not fit into a\n    line of forty columns at all"
        );
        // What is longer than a line is not broken, and no line is left empty for it.
        let path = "/a/very/long/path/that/cannot/be/broken/anywhere";
        assert_eq!(wrap(path, 4, 4, 20), path);
        assert_eq!(wrap(&format!("see {path} now"), 4, 4, 20), format!("see\n    {path}\n    now"));
        // Little room is not spent on the indentation.
        assert_eq!(wrap("some words here", 25, 25, 40), "some words here");
        assert_eq!(wrap("some words here and there", 25, 25, 40), "some words here\n    and there");
    }

    #[test]
    fn paragraphs_are_filled_anew_and_tables_are_not() {
        let text = "One paragraph\nof two lines.\n\n- an item\n  of two\n- another\n\n| a |\n|---|\n";
        assert_eq!(
            reflow(text, 80),
            "One paragraph of two lines.\n\n- an item of two\n- another\n\n| a |\n|---|\n"
        );
        assert_eq!(reflow("aaaa bbbb\ncccc\n", 9), "aaaa bbbb\ncccc\n");
        assert_eq!(reflow("```\na\nb\n```\n", 80), "```\na\nb\n```\n");
    }

    proptest! {
        #[test]
        fn nothing_but_blanks_changes(text in "[a-z]{0,12}( {1,3}[a-zé/]{1,30}){0,12}", first in 0..30_usize, indent in 0..30_usize, width in 1..120_usize) {
            let words = |t: &str| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let out = wrap(&text, first, indent, width);
            prop_assert_eq!(words(&out), words(&text));
            for line in out.lines().skip(1) {
                let fits = line.chars().count() <= width;
                prop_assert!(fits || words(line).len() == 1, "{:?}", out);
            }
        }
    }

    #[test]
    fn durations_read_well() {
        let texts: Vec<_> =
            [0.04, 9.94, 12.9, 65.0, 3600.0].map(|s| duration(Duration::from_secs_f64(s))).into();
        assert_eq!(texts, ["0.0s", "9.9s", "12s", "1m 05s", "1h 00m"]);
    }

    #[test]
    fn sizes_read_well() {
        let texts: Vec<_> = [0, 999, 1000, 999_949, 999_950, 82_100_000].map(bytes).into();
        assert_eq!(texts, ["0 B", "999 B", "1.0 KB", "999.9 KB", "1.0 MB", "82.1 MB"]);
    }
}
