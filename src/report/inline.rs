//! Foreign text in Markdown: it is shown and does nothing, and stays readable.
//!
//! Escaping sign by sign is not enough. GitHub looks for mentions, issues, commits and addresses in the finished page,
//! where a character reference is the character again. It leaves code alone, so a word with anything that Markdown, HTML
//! or the forge could read becomes a code span; all other words stay as they are.

use super::sanitize::truncate;

/// The longest text in one place, in bytes.
const LONGEST: usize = 300;

/// One line of clean text (without control characters) within a cell of a table.
pub(super) fn cell(text: &str) -> String {
    // A bar ends a cell even in code; this is the one sign that a backslash hides there.
    line(text).replace('|', "\\|")
}

/// A name of a file within a cell: it is shown whole, also with backticks and blanks in it.
pub(super) fn name(text: &str) -> String {
    let text = truncate(text, LONGEST);
    if text.split(' ').all(is_inert) {
        return text.into_owned();
    }
    let mut out = String::new();
    flush(&mut text.into_owned(), &mut out);
    out.replace('|', "\\|")
}

/// The same within a line of its own, such as a heading.
pub(super) fn line(text: &str) -> String {
    let mut out = String::new();
    let mut code = String::new();
    for piece in pieces(&truncate(text, LONGEST)) {
        match piece {
            // Two code spans that touch would be read as one with other marks.
            Piece::Code(text) => code.push_str(text),
            Piece::Plain(text) => {
                flush(&mut code, &mut out);
                out.push_str(text);
            }
            Piece::Gap => {
                flush(&mut code, &mut out);
                out.push(' ');
            }
        }
    }
    flush(&mut code, &mut out);
    out
}

enum Piece<'a> {
    Plain(&'a str),
    Code(&'a str),
    Gap,
}

/// Words, and what stands between a pair of backticks: that was written as code.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        match after.split_once('`').filter(|(inner, _)| !inner.trim().is_empty()) {
            Some((inner, behind)) => {
                words(before, &mut out);
                out.push(Piece::Code(inner.trim()));
                rest = behind;
            }
            None => break,
        }
    }
    words(rest, &mut out);
    out
}

fn words<'a>(text: &'a str, out: &mut Vec<Piece<'a>>) {
    for (at, word) in text.split(char::is_whitespace).enumerate() {
        if at > 0 && !matches!(out.last(), Some(Piece::Gap)) {
            out.push(Piece::Gap);
        }
        if word.is_empty() {
            continue;
        }
        if is_inert(word) {
            out.push(Piece::Plain(word));
            continue;
        }
        // Marks of a sentence around the word are not part of it.
        let start = word.len() - word.trim_start_matches(['(', '"']).len();
        let closes = !word[start..].contains('(');
        let mark = |c: char| ",;.:\"".contains(c) || (c == ')' && closes);
        let inner = word[start..].trim_end_matches(mark);
        let end = start + inner.len();
        for piece in
            [Piece::Plain(&word[..start]), Piece::Code(&word[start..end]), Piece::Plain(&word[end..])]
        {
            if !matches!(piece, Piece::Plain("") | Piece::Code("")) {
                out.push(piece);
            }
        }
    }
}

/// Whether no rule of Markdown, of HTML, or of a forge reads anything in a word.
fn is_inert(word: &str) -> bool {
    let plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-.,;:!?'\"()/%+=".contains(c);
    let lower = word.to_ascii_lowercase();
    word.chars().all(plain)
        && !lower.contains("://")
        && !lower.contains("www.")
        // `:name:` is a picture.
        && word.matches(':').count() < 2
        // Commits and issues become links.
        && !lower.contains("gh-")
        && !has_digest(&lower)
}

/// Whether there are seven hexadecimal digits with a figure among them: what a forge may take for a commit.
fn has_digest(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        part.len() >= 7
            && part.bytes().all(|b| b.is_ascii_hexdigit())
            && part.bytes().any(|b| b.is_ascii_digit())
            && part.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

/// Writes what was collected as a code span with marks that do not occur in it.
fn flush(code: &mut String, out: &mut String) {
    if code.is_empty() {
        return;
    }
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest + 1);
    let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    for part in [&marks, pad, code, pad, &marks] {
        out.push_str(part);
    }
    code.clear();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "FS-VALIDATION: no valid output after 2 iterations; last: the script ended with exit status 1",
            "its output says what is wrong; the agent's output is in iteration-N/output",
            "(100 % of it, as they say), isn't it? yes!",
            "déjà vu 日本",
            "",
        ] {
            assert_eq!(cell(text), text);
        }
    }

    #[test]
    fn what_could_be_read_is_code() {
        for (text, shown) in [
            ("raise `timeout_minutes` or --timeout", "raise `timeout_minutes` or --timeout"),
            ("see https://x.example/a?b=c.", "see `https://x.example/a?b=c`."),
            ("by @octocat (#12)", "by `@octocat` (`#12`)"),
            ("<b>bold</b> & more", "`<b>bold</b>` `&` more"),
            ("a|b", "`a\\|b`"),
            ("[x](y) ![z]", "`[x](y)` `![z]`"),
            ("*a* _b_ ~c~ $d$", "`*a*` `_b_` `~c~` `$d$`"),
            ("file:3:4 :tada:", "`file:3:4` `:tada`:"),
            ("WWW.example GH-12 1a2b3c4", "`WWW.example` `GH-12` `1a2b3c4`"),
            ("back\\slash end\\", "`back\\slash` `end\\`"),
            ("one ` tick", "one `` ` `` tick"),
            ("``a", "``` ``a ```"),
            ("`a``b`", "`ab`"),
            ("`a`@b", "`a@b`"),
        ] {
            assert_eq!(cell(text), shown, "{text}");
        }
        assert_eq!(line("a|b"), "`a|b`");
        for (text, shown) in
            [("a b.txt", "a b.txt"), ("`a` |", "`` `a` \\| ``"), ("<a> b", "`<a> b`"), ("a``", "``` a`` ```")]
        {
            assert_eq!(name(text), shown, "{text}");
        }
    }

    /// The code spans of a line as `CommonMark` finds them (section 6.1), and the text around them.
    fn parse(text: &str) -> (String, Vec<String>) {
        let (mut plain, mut spans, mut rest) = (String::new(), Vec::new(), text);
        while let Some(at) = rest.find('`') {
            plain.push_str(&rest[..at]);
            let run = rest[at..].len() - rest[at..].trim_start_matches('`').len();
            let body = &rest[at + run..];
            let mut from = 0;
            let end = loop {
                let Some(next) = body[from..].find('`').map(|n| from + n) else { break None };
                let len = body[next..].len() - body[next..].trim_start_matches('`').len();
                if len == run {
                    break Some(next);
                }
                from = next + len;
            };
            let Some(end) = end else { panic!("an open code span in {text:?}") };
            spans.push(body[..end].to_owned());
            rest = &body[end + run..];
        }
        plain.push_str(rest);
        (plain, spans)
    }

    proptest! {
        #[test]
        fn no_text_does_anything(text in "([a-z`@#<>&|*_\\[\\]()!:/.$~\\\\ ]|[^\\x00-\\x1f]){0,60}") {
            let out = cell(&text);
            let (plain, spans) = parse(&out);
            prop_assert!(
                plain.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric() || " -.,;:!?'\"()/%+=".contains(c)),
                "{:?}", out
            );
            prop_assert!(!plain.contains("://") && !plain.to_lowercase().contains("www."), "{:?}", out);
            // A bar that nothing hides would end the cell.
            prop_assert!(!out.replace("\\|", "").contains('|'), "{:?}", out);
            // Nothing is lost but blanks and the backticks of code.
            let letters = |t: &str| t.chars().filter(|c| !c.is_whitespace() && *c != '`').collect::<String>();
            prop_assert_eq!(letters(&out.replace("\\|", "|")), letters(&truncate(&text, LONGEST)));
            prop_assert!(spans.iter().all(|span| !span.is_empty()), "{:?}", out);
            let whole = name(&text);
            let (plain, spans) = parse(&whole);
            prop_assert!(plain.is_empty() || spans.is_empty(), "{:?}", whole);
            prop_assert!(!whole.replace("\\|", "").contains('|') && plain.split(' ').all(is_inert), "{:?}", whole);
        }
    }
}
