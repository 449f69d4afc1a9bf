//! How an error looks: code, what happened, detail, what to do.

use std::fmt::Write as _;

use owo_colors::Style;

use super::ci::Ci;
use super::github;
use super::printer::Printer;
use crate::harness::problem::Problems;

/// Whether a detail is one line that the message has already.
fn is_said(message: &str, detail: &str) -> bool {
    let mut lines = detail.lines().map(str::trim).filter(|line| !line.is_empty());
    matches!((lines.next(), lines.next()), (Some(only), None) if message.contains(only))
}

/// The report of one error, ready to be written.
pub(super) fn render(error: &crate::Error, printer: &Printer) -> String {
    let mut out = String::new();
    let head = printer.paint(&format!("error[{}]", error.code()), Style::new().red().bold());
    match error.problem_list() {
        // Message and help of the only problem are those of the report.
        Some(Problems(list)) if let [only] = list.as_slice() => {
            let _ = writeln!(out, "{head}: {}", printer.clean(&super::problem::message(only)));
            out.push_str(&printer.frame(&super::problem::excerpt_text(
                only,
                printer.color(),
                printer.unicode(),
            )));
        }
        Some(problems) => {
            let _ = writeln!(out, "{head}: {}\n", printer.clean(error.message()));
            out.push_str(&printer.frame(&super::problem::render(
                problems,
                printer.color(),
                printer.unicode(),
                110,
            )));
            out.push('\n');
        }
        None => {
            let _ = writeln!(out, "{head}: {}", printer.clean(error.message()));
        }
    }
    if let Some(detail) = error.detail_text().filter(|detail| !is_said(error.message(), detail)) {
        for line in detail.lines() {
            let _ = writeln!(out, "  | {}", printer.clean(line));
        }
    }
    let help = printer.paint("help", Style::new().cyan().bold());
    let _ = writeln!(out, "{help}: {}", printer.clean(&error.help_text()));
    if printer.ci() == Ci::GitHub {
        out.push_str(&github::of_error(error, printer));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::is_said;

    #[test]
    fn a_detail_that_says_nothing_new_is_known() {
        assert!(is_said("openshell said: no such thing", "no such thing\n"));
        assert!(!is_said("no such thing", "no such thing\nbut another"));
        assert!(!is_said("it failed", "no such thing"));
    }
}
