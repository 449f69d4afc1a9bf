//! Tokens and cost: the curve, and a table of the iterations.

use std::fmt::Write as _;

use super::curve::Curve;
use super::escape;
use crate::report::run_dir::{Record, RunDir, Span};

/// The section; says so when the agent told neither tokens nor cost.
pub(super) fn section(run: &RunDir, spans: &[Span], out: &mut String) {
    let empty = Record::default();
    let record = run.record.as_ref().unwrap_or(&empty);
    let curve = Curve::of(run, spans);
    out.push_str("<section id=\"usage\"><h2>Tokens and cost</h2>");
    if curve.is_empty() {
        let told = record.totals.tokens.total() > 0 || record.totals.cost_usd.is_some();
        out.push_str(match (told, run.iterations().is_empty()) {
            (true, _) => "<p class=\"none\">Only the sums were told: there is no curve.</p>",
            (false, true) => "<p class=\"none\">The agent was not started.</p>",
            (false, false) => "<p class=\"none\">The agent's program told neither tokens nor cost.</p>",
        });
    } else {
        curve.write(out);
    }
    table(record, out);
    out.push_str("</section>");
}

fn table(record: &Record, out: &mut String) {
    if record.iterations.is_empty() {
        return;
    }
    out.push_str(
        "<div class=\"wide\"><table><thead><tr><th>iteration<th>ended by<th>valid<th>turns<th>tools<th>failed<th>output\
         <th>input<th>cache read<th>cache write<th>cost</tr></thead><tbody>",
    );
    for i in &record.iterations {
        let m = &i.metrics;
        let valid = match i.valid {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{valid}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            i.number,
            escape::short(&i.ended_by.replace('_', " "), 40),
            m.turns,
            m.tool_calls,
            m.tool_errors,
            grouped(m.tokens.output),
            grouped(m.tokens.input),
            grouped(m.tokens.cache_read),
            grouped(m.tokens.cache_creation),
            m.cost_usd.map_or_else(|| "–".to_owned(), |c| format!("${c:.4}")),
        );
    }
    out.push_str("</tbody></table></div>");
}

/// `1 234 567`, with thin spaces.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]
        );
    }
}
