//! What GitHub Actions is told: annotations, and the outputs of a step (`GITHUB_OUTPUT`).

use std::fmt::Write as _;
use std::path::Path;

use super::closing::Closing;
use super::printer::Printer;
use crate::error::Error;
use crate::harness::problem::{Place, Severity};

/// The largest summary of one step; with more GitHub drops all of it (docs.github.com, workflow commands).
pub const SUMMARY_LIMIT: u64 = 1024 * 1024;

/// Escapes the data part of a workflow command.
pub(super) fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a workflow command.
pub(super) fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A command that annotates: `level` is `error`, `warning` or `notice`; `line` and `column` count from 1, 0 is none.
pub(super) fn annotate(level: &str, at: Option<(&str, usize, usize)>, title: &str, message: &str) -> String {
    let mut out = format!("::{level} ");
    if let Some((file, line, column)) = at {
        let _ = write!(out, "file={},line={},", escape_property(file), line.max(1));
        if column > 0 {
            let _ = write!(out, "col={column},");
        }
    }
    let _ = writeln!(out, "title={}::{}", escape_property(title), escape_data(message));
    out
}

/// One annotation per problem of an input, else one for the error.
pub(super) fn of_error(error: &Error, printer: &Printer) -> String {
    let Some(problems) = error.problem_list() else {
        let message = format!("{} ({})", printer.clean(error.message()), printer.clean(&error.help_text()));
        return annotate("error", None, error.code().as_str(), &message);
    };
    problems
        .0
        .iter()
        .map(|problem| {
            let level = match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let mut message = printer.clean(&problem.message);
            if let Some(help) = &problem.help {
                let _ = write!(message, " ({})", printer.clean(help));
            }
            let place = problem.place.as_ref().map(|p| shown_place(p, printer));
            let at = place.as_ref().map(|(file, line, column)| (file.as_str(), *line, *column));
            annotate(level, at, problem.code.as_str(), &message)
        })
        .collect()
}

fn shown_place(place: &Place, printer: &Printer) -> (String, usize, usize) {
    let workspace = std::env::var_os("GITHUB_WORKSPACE").filter(|w| !w.is_empty());
    let file = within(workspace.as_deref().map(Path::new), place.file.as_str());
    (printer.clean(file), place.line, place.column)
}

/// A path relative to `top` when it lies in there: annotations and reports name files of the repository.
pub(super) fn within<'a>(top: Option<&Path>, path: &'a str) -> &'a str {
    top.and_then(|top| Path::new(path).strip_prefix(top).ok()?.to_str()).unwrap_or(path)
}

/// The outputs of the step, in the order in which they are written. A later value of a name replaces an earlier one.
pub fn outputs(closing: &Closing<'_>, ui: &Printer) -> Vec<(&'static str, String)> {
    let cost = closing.totals.as_ref().and_then(|m| m.cost_usd);
    let code = closing.error.map(|e| e.code().as_str());
    vec![
        ("verdict", closing.verdict.to_owned()),
        ("exit-code", closing.exit_code.to_string()),
        ("error-code", code.unwrap_or_default().to_owned()),
        ("skipped", (closing.verdict == "skipped").to_string()),
        ("skip-reason", ui.inert(closing.skip_reason.unwrap_or_default())),
        ("run", closing.run.clone().unwrap_or_default()),
        ("run-dir", closing.dir.map_or_else(String::new, |dir| dir.display().to_string())),
        ("changed", (closing.changed > 0).to_string()),
        ("changed-paths", closing.changed.to_string()),
        ("cost", cost.map_or_else(String::new, |usd| format!("{usd:.6}"))),
        ("result", closing.result.clone().unwrap_or_default()),
    ]
}

/// The text to append to `GITHUB_OUTPUT`. The delimiter has to be one that no value could know.
pub fn output_file(outputs: &[(&str, String)], delimiter: &str) -> String {
    let mut text = String::new();
    for (name, value) in outputs {
        let _ = writeln!(text, "{name}<<{delimiter}\n{value}\n{delimiter}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_escaped_and_one_line() {
        assert_eq!(
            annotate("error", Some(("a,b:c%\n", 0, 7)), "T:1", "x\r\ny%"),
            "::error file=a%2Cb%3Ac%25%0A,line=1,col=7,title=T%3A1::x%0D%0Ay%25\n"
        );
        assert_eq!(annotate("warning", None, "T", "x"), "::warning title=T::x\n");
    }

    #[test]
    fn paths_are_those_of_the_repository() {
        let top = Some(Path::new("/w/r"));
        assert_eq!(within(top, "/w/r/.fullsend/harness/a.yaml"), ".fullsend/harness/a.yaml");
        assert_eq!(within(top, "/w/rest/a"), "/w/rest/a");
        assert_eq!(within(None, "a"), "a");
    }

    #[test]
    fn outputs_stand_behind_the_delimiter() {
        assert_eq!(
            output_file(&[("a", "x\ny=z".into()), ("b", String::new())], "D"),
            "a<<D\nx\ny=z\nD\nb<<D\n\nD\n"
        );
    }
}
