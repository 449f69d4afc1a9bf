//! Tokens and cost: the curve over the time of the run, and a table of the iterations.

use std::fmt::Write as _;
use std::time::Duration;

use super::escape;
use super::timeline::{Extent, float};
use crate::report::duration;
use crate::report::run_dir::{Record, Span};

/// A point of the curve: when, and tokens of each kind so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    at: u64,
    output: u64,
    fresh: u64,
    cached: u64,
}

/// The upper edge of a layer of the chart.
type Layer = fn(&Point) -> u64;

impl Point {
    fn total(&self) -> u64 {
        self.output.saturating_add(self.fresh).saturating_add(self.cached)
    }
}

/// The section; nothing when no token was counted and nothing cost anything.
pub(super) fn section(record: Option<&Record>, spans: &[Span], out: &mut String) {
    let empty = Record::default();
    let record = record.unwrap_or(&empty);
    let iterations: Vec<&Span> = agents(spans);
    let points = points(&iterations);
    if points.is_empty() && record.totals.tokens.total() == 0 && record.totals.cost_usd.is_none() {
        return;
    }
    out.push_str("<section id=\"usage\"><h2>Tokens and cost</h2>");
    if points.len() > 1 {
        chart(&points, &costs(&iterations), out);
    }
    table(record, out);
    out.push_str("</section>");
}

fn agents(spans: &[Span]) -> Vec<&Span> {
    let mut found: Vec<_> =
        spans.iter().filter(|s| s.attributes.contains_key("fullsend.iteration")).collect();
    found.sort_by_key(|s| s.start);
    found
}

fn number(attributes: &std::collections::BTreeMap<String, String>, key: &str) -> u64 {
    attributes.get(key).and_then(|v| v.parse().ok()).unwrap_or(0)
}

/// Each iteration counts from 0; the curve goes on.
fn points(iterations: &[&Span]) -> Vec<Point> {
    let mut points = Vec::new();
    let mut base = Point::default();
    for span in iterations {
        points.push(Point { at: span.start, ..base });
        let mut last = base;
        for (at, attributes) in &span.events {
            let get = |key: &str| number(attributes, key);
            let cached = get("gen_ai.usage.cache_read.input_tokens");
            last = Point {
                at: *at,
                output: base.output.saturating_add(get("gen_ai.usage.output_tokens")),
                fresh: base.fresh.saturating_add(get("gen_ai.usage.input_tokens").saturating_sub(cached)),
                cached: base.cached.saturating_add(cached),
            };
            points.push(last);
        }
        points.push(Point { at: span.end, ..last });
        base = last;
    }
    if base.total() == 0 { Vec::new() } else { points }
}

/// What everything had cost at the end of each iteration.
fn costs(iterations: &[&Span]) -> Vec<(u64, f64)> {
    let mut sum = 0.0;
    let cost =
        |s: &Span| s.attributes.get("fullsend.cost_usd")?.parse::<f64>().ok().filter(|c| c.is_finite());
    iterations
        .iter()
        .filter_map(|s| {
            sum += cost(s)?;
            Some((s.end, sum))
        })
        .collect()
}

fn chart(points: &[Point], costs: &[(u64, f64)], out: &mut String) {
    let start = points.first().map_or(0, |p| p.at);
    let length = points.last().map_or(1, |p| p.at).saturating_sub(start).max(1);
    let extent = Extent { start, length };
    let top = points.iter().map(Point::total).max().unwrap_or(1).max(1);
    let y = |tokens: u64| 300.0 - float(tokens) * 290.0 / float(top);
    // A layer lies on those below it; each is a staircase, since tokens arrive with an answer.
    let layers: [(&str, Layer); 3] =
        [("cached", Point::total), ("fresh", |p| p.output.saturating_add(p.fresh)), ("output", |p| p.output)];
    let dearest = costs.iter().map(|c| c.1).fold(0.0, f64::max);
    let right = if dearest > 0.0 { format!("${dearest:.4}") } else { String::new() };
    let _ = write!(
        out,
        "<figure><div class=\"ends\"><span>{} tokens</span><span class=\"cost\">{right}</span></div>\
         <svg class=\"chart\" viewBox=\"0 0 1000 300\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"Tokens and cost over time\">",
        grouped(top)
    );
    for (class, value) in layers {
        let mut path = String::from("M0 300");
        let mut last = 300.0;
        for point in points {
            let (x, now) = (extent.at(point.at), y(value(point)));
            let _ = write!(path, "L{x:.1} {last:.1}L{x:.1} {now:.1}");
            last = now;
        }
        let _ = write!(out, "<path class=\"{class}\" d=\"{path}L1000 {last:.1}L1000 300Z\"/>");
    }
    if dearest > 0.0 {
        let mut path = String::from("M0 299");
        let mut last = 299.0;
        for (at, cost) in costs {
            let (x, now) = (extent.at(*at).min(999.0), 299.0 - cost * 289.0 / dearest);
            let _ = write!(path, "L{x:.1} {last:.1}L{x:.1} {now:.1}");
            last = now;
        }
        let _ = write!(out, "<path class=\"cost\" vector-effect=\"non-scaling-stroke\" d=\"{path}\"/>");
    }
    let _ = write!(
        out,
        "</svg><div class=\"ends\"><span>0</span><span>{}</span></div><figcaption>\
         <span class=\"key output\">output</span><span class=\"key fresh\">input, new</span>\
         <span class=\"key cached\">input, from the cache</span>{}</figcaption></figure>",
        duration(Duration::from_nanos(length)),
        if dearest > 0.0 {
            "<span class=\"key cost\">cost, known at the end of each iteration</span>"
        } else {
            ""
        },
    );
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
    fn iterations_go_on_from_each_other() {
        let event = |at: u64, input: u64, cached: u64, output: u64| {
            let list = [
                ("gen_ai.usage.input_tokens", input),
                ("gen_ai.usage.cache_read.input_tokens", cached),
                ("gen_ai.usage.output_tokens", output),
            ];
            (at, list.into_iter().map(|(k, v)| (k.to_owned(), v.to_string())).collect())
        };
        let one = Span { start: 0, end: 10, events: vec![event(5, 30, 20, 1)], ..Span::default() };
        let two = Span { start: 20, end: 30, events: vec![event(25, 3, 0, 2)], ..Span::default() };
        let all = points(&[&one, &two]);
        assert_eq!(all.iter().map(|p| p.at).collect::<Vec<_>>(), [0, 5, 10, 20, 25, 30]);
        assert_eq!(all[5], Point { at: 30, output: 3, fresh: 13, cached: 20 });
        assert_eq!(points(&[&Span::default()]), []);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1\u{2009}000", "1\u{2009}234\u{2009}567"]
        );
    }
}
