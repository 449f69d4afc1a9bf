//! How an error looks: code, what happened, detail, what to do.

use std::fmt::Write as _;

use owo_colors::Style;

use super::ci::Ci;
use super::github;
use super::printer::{Printer, UNBROKEN};
use super::text::wrap;
use crate::harness::problem::Problems;

/// Whether a detail is one line that the message has already.
fn is_said(message: &str, detail: &str) -> bool {
    let mut lines = detail.lines().map(str::trim).filter(|line| !line.is_empty());
    matches!((lines.next(), lines.next()), (Some(only), None) if message.contains(only))
}

/// The report of one error, ready to be written.
pub(super) fn render(error: &crate::Error, printer: &Printer) -> String {
    let mut out = String::new();
    let width = printer.error_width();
    let fit = |text: &str, first: usize| match width {
        Some(width) => wrap(&printer.clean(text), first, 2, width),
        None => printer.clean(text),
    };
    let label = format!("error[{}]", error.code());
    let taken = label.len() + 2;
    let head = printer.paint(&label, Style::new().red().bold());
    match error.problem_list() {
        // Message and help of the only problem are those of the report.
        Some(Problems(list)) if let [only] = list.as_slice() => {
            let _ = writeln!(out, "{head}: {}", fit(&super::problem::message(only), taken));
            out.push_str(&printer.frame(&super::problem::excerpt_text(
                only,
                printer.color(),
                printer.unicode(),
            )));
        }
        Some(problems) => {
            let _ = writeln!(out, "{head}: {}\n", fit(error.message(), taken));
            out.push_str(&printer.frame(&super::problem::render(
                problems,
                printer.color(),
                printer.unicode(),
                width.unwrap_or(UNBROKEN),
            )));
            out.push('\n');
        }
        None => {
            let _ = writeln!(out, "{head}: {}", fit(error.message(), taken));
        }
    }
    if let Some(detail) = error.detail_text().filter(|detail| !is_said(error.message(), detail)) {
        for line in detail.lines() {
            let _ = writeln!(out, "  | {}", printer.clean(line));
        }
    }
    let help = printer.paint("help", Style::new().cyan().bold());
    let _ = writeln!(out, "{help}: {}", fit(&error.help_text(), "help: ".len()));
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
