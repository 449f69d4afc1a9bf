//! Problems of input files as text: code, message, `file:line:col`, an excerpt with a label, and what to do.

use std::fmt;
use std::sync::Arc;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity as Level,
    SourceCode, ThemeCharacters, ThemeStyles,
};

use crate::harness::problem::{Place, Problem, Problems, Severity};

/// The longest line that is shown in an excerpt, in bytes; a longer one would flood the terminal.
const MAX_LINE: usize = 400;

/// Renders problems one below the other, errors before warnings, each with a line feed at its end.
///
/// `color` and `unicode` belong off when the output is no terminal; `width` is in columns.
pub fn render(problems: &Problems, color: bool, unicode: bool, width: usize) -> String {
    let handler = handler(color, unicode, width);
    let mut out = String::new();
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.0.iter().partition(|p| p.severity == Severity::Error);
    for problem in errors.into_iter().chain(warnings) {
        let report = Report::new(problem);
        let mut text = String::new();
        if handler.render_report(&mut text, &report).is_err() {
            text = format!("{}: {report}", problem.code);
        }
        // The renderer leaves blanks at line ends and a varying number of empty lines around a report.
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        out.push_str(lines.join("\n").trim_matches('\n'));
        out.push_str("\n\n");
    }
    out.truncate(out.trim_end_matches('\n').len());
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn handler(color: bool, unicode: bool, width: usize) -> GraphicalReportHandler {
    let theme = GraphicalTheme {
        characters: if unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() },
        styles: if color { ThemeStyles::ansi() } else { ThemeStyles::none() },
    };
    GraphicalReportHandler::new_themed(theme)
        .with_width(width.max(40))
        .with_links(false)
        .with_urls(false)
        .with_context_lines(1)
        .without_syntax_highlighting()
}

/// The message of a problem, with its place when no excerpt and no word of the message names that.
pub(super) fn message(problem: &Problem) -> String {
    match &problem.place {
        Some(place) if excerpt(place).is_none() && !problem.message.contains(place.file.as_str()) => {
            format!("{place}: {}", problem.message)
        }
        _ => problem.message.clone(),
    }
}

/// The excerpt of a problem alone: empty without a place that can be shown.
pub(super) fn excerpt_text(problem: &Problem, color: bool, unicode: bool) -> String {
    let Some(excerpt) = problem.place.as_deref().and_then(excerpt) else { return String::new() };
    // The renderer puts the message above the frame; its line is dropped here.
    let bare = Report {
        code: None,
        level: Level::Error,
        message: String::new(),
        help: None,
        excerpt: Some(excerpt),
    };
    let mut text = String::new();
    if handler(color, unicode, 110).render_report(&mut text, &bare).is_err() {
        return problem.place.as_ref().map_or_else(String::new, |place| format!("  at {place}\n"));
    }
    let corner = if unicode { "╭" } else { ",-" };
    let lines: Vec<_> = text.lines().map(str::trim_end).skip_while(|l| !l.contains(corner)).collect();
    format!("{}\n", lines.join("\n").trim_end_matches('\n'))
}

/// One problem as the renderer wants it.
#[derive(Debug)]
struct Report {
    code: Option<&'static str>,
    level: Level,
    message: String,
    help: Option<String>,
    excerpt: Option<(NamedSource<Arc<str>>, LabeledSpan)>,
}

impl Report {
    fn new(problem: &Problem) -> Self {
        let excerpt = problem.place.as_deref().and_then(excerpt);
        let message = message(problem);
        Self {
            code: Some(problem.code.as_str()),
            level: match problem.severity {
                Severity::Error => Level::Error,
                Severity::Warning => Level::Warning,
            },
            message: plain(&message),
            help: problem.help.as_deref().map(plain),
            excerpt,
        }
    }
}

fn excerpt(place: &Place) -> Option<(NamedSource<Arc<str>>, LabeledSpan)> {
    let text = place.text.as_ref().filter(|_| place.line > 0)?;
    // One line is enough: a label over many lines hides the text that it is about.
    let start = place.span.start.min(text.len());
    let before = text.get(..start)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    if shown_lines(text, line_start, line_end).iter().any(|line| line.len() > MAX_LINE) {
        return None;
    }
    let end = place.span.end.clamp(start, line_end);
    let label = LabeledSpan::new(Some("here".to_owned()), start, end - start);
    let source: Arc<str> = plain_same_length(text).into();
    Some((NamedSource::new(place.file.as_str(), source), label))
}

/// The line of the label and its neighbours.
fn shown_lines(text: &str, start: usize, end: usize) -> [&str; 3] {
    let before = text[..start].lines().next_back().unwrap_or_default();
    let after = text[end..].lines().nth(1).unwrap_or_default();
    [before, &text[start..end], after]
}

/// Whether a character could steer a terminal or hide text: controls and bidirectional overrides.
fn steers(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '?' } else { c }).collect()
}

/// As [`plain`], but of the same length in bytes, since labels are byte ranges.
fn plain_same_length(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // A carriage return at a line end is no news.
            '\r' => out.push(' '),
            c if steers(c) => out.extend(std::iter::repeat_n('?', c.len_utf8())),
            c => out.push(c),
        }
    }
    out
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code?))
    }

    fn severity(&self) -> Option<Level> {
        Some(self.level)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, label) = self.excerpt.as_ref()?;
        Some(Box::new(std::iter::once(label.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn place(text: &str, needle: &str) -> Place {
        let start = text.find(needle).unwrap();
        let line = text[..start].matches('\n').count() + 1;
        let column = text[..start].chars().rev().take_while(|c| *c != '\n').count() + 1;
        Place {
            file: "harness/a.yaml".into(),
            line,
            column,
            span: start..start + needle.len(),
            text: Some(text.into()),
        }
    }

    fn problem(text: &str, needle: &str) -> Problem {
        Problem::error(Code::YamlKey, "`timout_minutes` is not a key of the top level")
            .help("did you mean `timeout_minutes`?")
            .at(Some(place(text, needle)))
    }

    const DOC: &str = "agent: agents/é.md\nmodel: sonnet\ntimout_minutes: 30\npolicy: p.yaml\nx: 1\n";

    #[test]
    fn a_problem_shows_code_place_excerpt_and_help() {
        let text = render(&Problems(vec![problem(DOC, "timout_minutes")]), false, false, 80);
        insta::assert_snapshot!(text);
        assert!(text.is_ascii());
    }

    #[test]
    fn several_problems_errors_first() {
        let whole = Place { file: "policies/p.yaml".into(), line: 0, column: 0, span: 0..0, text: None };
        let problems = Problems(vec![
            Problem::warning(Code::Value, "a warning").at(Some(place(DOC, "x: 1"))),
            Problem::error(Code::FileMissing, "`policy` is missing").at(Some(whole)),
            Problem::error(Code::Value, "no place at all"),
        ]);
        insta::assert_snapshot!(render(&problems, false, true, 80));
    }

    #[test]
    fn colour_only_on_demand() {
        let problems = Problems(vec![problem(DOC, "timout_minutes")]);
        assert!(render(&problems, true, true, 80).contains('\u{1b}'));
        assert!(!render(&problems, false, true, 80).contains('\u{1b}'));
        assert_eq!(render(&Problems::default(), true, true, 80), "");
    }

    #[test]
    fn terminal_control_is_neutralised() {
        let doc = "a: \u{1b}[31mred\u{202e}\r\nb: 1\n";
        let mut p = problem(doc, "red");
        p.message = "bad \u{1b}]0;x\u{7} text".into();
        let text = render(&Problems(vec![p]), false, false, 80);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{text:?}");
        assert!(text.contains("?[31mred"));
    }

    #[test]
    fn a_very_long_line_is_not_shown() {
        let doc = format!("a: {}\n", "x".repeat(5000));
        let text = render(&Problems(vec![problem(&doc, "a:")]), false, false, 80);
        assert!(text.len() < 400 && text.contains("harness/a.yaml:1:1: "), "{text}");
    }

    #[test]
    fn a_label_over_lines_stays_on_its_first() {
        let doc = "a: |\n  one\n  two\n  three\n  four\nb: 1\n";
        let text = render(&Problems(vec![problem(doc, "|\n  one\n  two\n  three\n")]), false, false, 80);
        assert!(text.contains("a: |") && !text.contains("three"), "{text}");
    }

    #[test]
    fn every_span_can_be_rendered() {
        let doc = "é: ü\n\n\t日本\r\nend";
        for start in 0..=doc.len() + 2 {
            for end in start..=doc.len() + 2 {
                let mut p = problem(doc, "end");
                p.place.as_mut().unwrap().span = start..end;
                assert!(render(&Problems(vec![p]), false, false, 60).contains("FS-YAML-KEY"));
            }
        }
    }
}
