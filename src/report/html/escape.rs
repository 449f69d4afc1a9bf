//! Text from outside as HTML: nothing of it can become markup, and nothing of it can hide.

use std::fmt::Write as _;

use crate::report::sanitize;

/// Text for an element or a quoted attribute. What would not show, or would reorder the line (CVE-2021-42574), is
/// shown as its code point.
pub(super) fn text(from: &str) -> String {
    let mut out = String::with_capacity(from.len() + 16);
    for c in from.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            '\t' | '\n' => out.push(c),
            c if sanitize::is_unseen(c) => _ = write!(out, "\u{27e8}U+{:04X}\u{27e9}", u32::from(c)),
            c => out.push(c),
        }
    }
    out
}

/// At most so many bytes of it, before it is escaped.
pub(super) fn short(from: &str, limit: usize) -> String {
    text(&sanitize::truncate(from, limit))
}

/// One line of a log, as a terminal would show it: without escape sequences.
pub(super) fn line(from: &str, limit: usize) -> String {
    short(&sanitize::line(from, crate::report::Ci::None), limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_and_hidden_characters_are_shown() {
        assert_eq!(text("<a b='c'>&\"`"), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;&#96;");
        assert_eq!(text("a\u{202e}b\u{0}\u{1b}[1m\u{85}"), "a⟨U+202E⟩b⟨U+0000⟩⟨U+001B⟩[1m⟨U+0085⟩");
        assert_eq!(text("a\tb\nc"), "a\tb\nc");
        assert_eq!(line("\u{1b}[31mred\u{1b}[0m <b>", 100), "red &lt;b&gt;");
    }

    proptest! {
        #[test]
        fn nothing_becomes_markup(any in ".{0,200}") {
            let out = text(&any);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
            prop_assert!(!out.chars().any(|c| c.is_control() && c != '\t' && c != '\n'));
        }
    }
}
