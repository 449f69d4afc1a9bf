//! What is wrong with a text that is no YAML: the messages of the library in our terms, with what to do.

use std::ops::Range;

use serde_saphyr::Location;

use super::problem::Problem;
use super::source::Source;
use super::yaml::span_of;
use crate::error::Code;

/// The problem of a text that is no YAML.
pub(super) fn problem(source: &Source, error: &serde_saphyr::Error) -> Problem {
    let error = error.without_snippet();
    let at = error.location().map_or(0..0, |l| span_of(&l).unwrap_or_else(|| at_line(source, &l)));
    let place = source.place(at);
    let line = source.text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let indent = &line[..line.len() - line.trim_start().len()];
    let raw = error.render();
    let (message, help) = if matches!(error, serde_saphyr::Error::MultipleDocuments { .. }) {
        ("the file holds more than one YAML document", "remove everything from the second `---` on")
    } else if indent.contains('\t') {
        ("a tab is used for indentation, which YAML forbids", "indent with spaces")
    } else if source.text.get(place.span.start..).is_some_and(|t| t.starts_with('\u{feff}')) {
        ("a byte order mark stands inside the text", "remove it; only the first character may be one")
    } else if raw.contains("expected string scalar") {
        ("a key must be text, not a list or mapping", "quote values that begin with `{`, `[` or `?`")
    } else if raw.contains("recursive references") {
        ("an alias refers to itself", "write the value out")
    } else if raw.contains("illegal placement of ':'") {
        (
            "a `:` stands where none can be",
            "an earlier `[`, `{` or quote may not be closed; text with `: ` needs quotes",
        )
    } else if line.contains("${") && raw.contains("flow") {
        (clean(&raw), "inside `{…}` and `[…]` a value with `${…}` needs quotes")
    } else if let Some(known) = advice(&raw) {
        known
    } else {
        (clean(&raw), "see the excerpt; text with `: `, ` #`, or a leading special character needs quotes")
    };
    Problem::error(Code::YamlSyntax, message.to_owned()).help(help).at(Some(place))
}

/// Messages and advice for what the library says in its own terms.
fn advice(raw: &str) -> Option<(&'static str, &'static str)> {
    let known = [
        (
            "alias replay limit",
            "the aliases (`*name`) grow to far more text than a configuration file has",
            "write the values out, or let fewer aliases contain other aliases",
        ),
        (
            "alias",
            "an alias (`*name`) stands for an anchor that is not there",
            "define it before with `&name`; a text that begins with `*` needs quotes",
        ),
        (
            "recursion limit",
            "the values are nested deeper than 40 levels",
            "no file of a harness needs that; is a bracket not closed, or the wrong file here?",
        ),
        (
            "budget",
            "the file is larger or more deeply nested than a configuration file may be",
            "at most 40 levels and 20000 values; is this the right file?",
        ),
        (
            "found a tab",
            "a tab stands where YAML allows only blanks",
            "use blanks, also before the next line",
        ),
        ("unclosed quote", "a quote is not closed", "close it, or remove it at the beginning"),
        ("unclosed bracket", "a `[` or `{` is not closed", "close it, or put the text in quotes"),
    ];
    known.into_iter().find(|(words, ..)| raw.contains(words)).map(|(_, message, help)| (message, help))
}

/// The first line of a library message, without the position that we show ourselves.
fn clean(raw: &str) -> &str {
    let line = raw.lines().next().unwrap_or("the text is not YAML");
    let line = line.split(" at line ").next().unwrap_or(line);
    line.strip_prefix("error: ").unwrap_or(line)
}

/// A position by line and column, for errors that have no byte offset.
fn at_line(source: &Source, location: &Location) -> Range<usize> {
    let line = usize::try_from(location.line()).unwrap_or(0).saturating_sub(1);
    let column = usize::try_from(location.column()).unwrap_or(0).saturating_sub(1);
    let start: usize = source.text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = &source.text[start..];
    let at = start + rest.char_indices().nth(column).map_or(rest.trim_end().len(), |(at, _)| at);
    at..at
}
