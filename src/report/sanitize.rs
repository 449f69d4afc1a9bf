//! Makes text from the sandbox fit for a terminal and a CI log. Agent text is data: it must not move the
//! cursor, hide itself, reorder the line, or be read as a command by the CI that shows it.

use super::ci::Ci;
use std::borrow::Cow;

/// One line, safe to show. Line breaks inside become spaces: give whole lines, one at a time.
pub fn line(text: &str, ci: Ci) -> String {
    disarm(&clean(text), ci)
}

/// One line that is clean already, or that we have coloured, without commands for the CI that shows it.
pub fn disarm(text: &str, ci: Ci) -> String {
    match ci {
        Ci::None => text.to_owned(),
        Ci::GitHub => github(text),
        Ci::GitLab => {
            text.replace("section_start:", "section_start :").replace("section_end:", "section_end :")
        }
    }
}

/// At most `limit` bytes of a text, cut between characters, with an ellipsis where something is missing.
pub fn truncate(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(limit.saturating_sub('…'.len_utf8()));
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Without escape sequences, control characters and characters that do not show.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\u{1b}' => after_escape(after),
            '\u{9b}' => after_csi(after),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => after_string(after),
            _ => {
                match fate(c) {
                    Fate::Keep => out.push(c),
                    Fate::Space => out.push(' '),
                    Fate::Drop => {}
                }
                after
            }
        };
    }
    out
}

/// What follows an escape sequence (ECMA-48) whose ESC is already taken.
fn after_escape(text: &str) -> &str {
    let Some(c) = text.chars().next() else { return text };
    let after = &text[c.len_utf8()..];
    match c {
        '[' => after_csi(after),
        ']' | 'P' | 'X' | '^' | '_' => after_string(after),
        // Intermediate bytes, then one final byte: character sets and the like.
        ' '..='/' => {
            let after = text.trim_start_matches(|c| matches!(c, ' '..='/'));
            after.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(after)
        }
        '0'..='~' => after,
        // No sequence: only the ESC goes.
        _ => text,
    }
}

/// Parameters, intermediates, a final byte. What does not fit ends the sequence and is kept.
fn after_csi(text: &str) -> &str {
    let after = text.trim_start_matches(|c| matches!(c, '0'..='?'));
    let after = after.trim_start_matches(|c| matches!(c, ' '..='/'));
    after.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(after)
}

/// A string up to BEL or ST. One that does not end on this line is shown: nothing may hide the rest of a line.
fn after_string(text: &str) -> &str {
    for (at, c) in text.char_indices() {
        match c {
            '\u{7}' | '\u{9c}' => return &text[at + c.len_utf8()..],
            '\u{1b}' => return text[at + 1..].strip_prefix('\\').unwrap_or(&text[at..]),
            _ => {}
        }
    }
    text
}

/// What becomes of a character.
enum Fate {
    Keep,
    Space,
    Drop,
}

fn fate(c: char) -> Fate {
    match c {
        '\t' => Fate::Keep,
        // Anything that some reader takes for the end of a line.
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
            Fate::Space
        }
        c if c.is_control() || is_hidden(c) => Fate::Drop,
        _ => Fate::Keep,
    }
}

/// Whether a character is a control or does not show.
pub(super) fn is_unseen(c: char) -> bool {
    c.is_control() || is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters that reorder text or do not show: bidi controls (CVE-2021-42574), zero width, tags.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Neither `::` nor `##[` nor an encoded line break is left, and no `::` can arise where the text is put behind
/// something that ends in a colon.
fn github(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let mut chars = text.chars().peekable();
    // As if a colon stood before the text.
    let mut last = ':';
    while let Some(c) = chars.next() {
        match c {
            ':' if last == ':' => out.push(' '),
            '[' if out.ends_with("##") => out.push(' '),
            _ => {}
        }
        out.push(c);
        last = c;
        if c == '%' && chars.peek() == Some(&'0') {
            let after = chars.clone().nth(1);
            if matches!(after, Some('A' | 'a' | 'D' | 'd')) {
                out.push(' ');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminal_sequences_go_and_their_text_stays() {
        let cases = [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[38;2;1;2;3mrgb\u{9b}0m!", "rgb!"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0;2\u{1b}\\sixel", "sixel"),
            ("\u{1b}(Bcharset \u{1b}#8x\u{1b}7y\u{1b}cz", "charset xyz"),
            ("\u{1b}]0;never ended ::error::", "0;never ended ::error::"),
            ("\u{1b}[31", ""),
            ("\u{1b}[31é", "é"),
            ("\u{1b}", ""),
            ("over\rwrite\u{8}\u{7f}", "over write"),
            ("a\u{0}b\u{202e}c\u{200b}d\u{e0041}e\u{2028}f\u{feff}", "abcde f"),
            ("tab\tkept, é漢😀 kept", "tab\tkept, é漢😀 kept"),
        ];
        for (input, expected) in cases {
            assert_eq!(line(input, Ci::None), expected, "{input:?}");
        }
    }

    #[test]
    fn workflow_commands_cannot_be_formed() {
        let cases = [
            ("::error::x", " : :error: :x"),
            (":\u{1b}[0m:add-mask::a", " : :add-mask: :a"),
            (":\u{200b}:stop-commands::x", " : :stop-commands: :x"),
            ("x\r::error::y", "x : :error: :y"),
            ("##[group]x", "## [group]x"),
            ("a ##\u{200d}[error]", "a ## [error]"),
            ("#\u{1b}[1m#[x]", "## [x]"),
            (":::::", " : : : : :"),
            ("%0A::set-output name=x::y %0d %0B", "% 0A: :set-output name=x: :y % 0d %0B"),
            ("a:b https://x [1]", "a:b https://x [1]"),
        ];
        for (input, expected) in cases {
            assert_eq!(line(input, Ci::GitHub), expected, "{input:?}");
        }
        for (input, expected) in [
            ("section_start:1:x\r\u{1b}[0K", "section_start :1:x "),
            ("\u{1b}[0Ksection_end:1:x\r\u{1b}[0K", "section_end :1:x "),
            ("section_sta\u{200b}rt:1:x[collapsed=true]", "section_start :1:x[collapsed=true]"),
            ("::error:: is nothing there", "::error:: is nothing there"),
        ] {
            assert_eq!(line(input, Ci::GitLab), expected, "{input:?}");
        }
    }

    #[test]
    fn truncation_respects_characters() {
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("héééé", 7), "hé…");
        assert_eq!(truncate("😀😀", 5), "…");
        assert_eq!(truncate("😀", 0), "…");
    }

    /// Text made of what commands and sequences are made of.
    fn nasty() -> impl Strategy<Value = String> {
        const PARTS: &[&str] = &[
            ":",
            "::",
            "#",
            "[",
            "##[",
            "%",
            "0",
            "A",
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}]",
            "\u{9b}",
            "\u{7}",
            "\\",
            "m",
            "\r",
            "\n",
            "\u{200b}",
            "\u{202e}",
            "\u{e0041}",
            "x",
            " ",
            "é",
            "\u{85}",
            "section_start:",
        ];
        let part = prop_oneof![
            4 => prop::sample::select(PARTS).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn nothing_that_acts_is_left(text in nasty()) {
            for ci in [Ci::None, Ci::GitHub, Ci::GitLab] {
                let out = line(&text, ci);
                prop_assert!(!out.chars().any(|c| c.is_control() && c != '\t' || is_hidden(c)), "{:?}", out);
                let breaks = ['\u{2028}', '\u{2029}'];
                prop_assert!(!out.contains(breaks));
                prop_assert_eq!(line(&out, Ci::None), out.clone());
                prop_assert_eq!(line(&out, ci), out.clone(), "sanitising again changes nothing");
                prop_assert!(ci != Ci::GitLab || !out.contains("section_start:") && !out.contains("section_end:"));
                if ci == Ci::GitHub {
                    let shown = format!("Bash:{out}");
                    prop_assert!(!shown.contains("::") && !shown.contains("##["), "{:?}", out);
                    prop_assert!(!out.to_lowercase().contains("%0a") && !out.to_lowercase().contains("%0d"));
                }
            }
        }

        #[test]
        fn ordinary_text_is_not_touched(text in "[a-zA-Z0-9 .,é漢😀/=-]{0,40}") {
            for ci in [Ci::None, Ci::GitHub, Ci::GitLab] {
                prop_assert_eq!(line(&text, ci), text.clone());
            }
        }
    }
}
