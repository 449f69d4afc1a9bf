//! Tokens and cost over the run: a chart, and the same in figures for those who do not see it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use serde_json::Value;

use super::timeline::{Extent, float};
use super::usage::grouped;
use crate::report::duration;
use crate::report::run_dir::{self, RunDir, Span};

/// So much of an iteration's events is read, in bytes.
const READ: u64 = 256 * 1024 * 1024;
/// So many rows the figures have.
const ROWS: usize = 24;
/// Height of the drawing; it is 1000 wide.
const HEIGHT: f64 = 300.0;

/// When, and what had been used by then.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Point {
    at: u64,
    output: u64,
    fresh: u64,
    cached: u64,
}

/// The upper edge of a layer of the drawing.
type Layer = fn(&Point) -> u64;

impl Point {
    fn total(&self) -> u64 {
        self.output.saturating_add(self.fresh).saturating_add(self.cached)
    }
}

/// What the agent used, as it was told.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Curve {
    points: Vec<Point>,
    /// What everything had cost by then; an agent tells it now and then, some only at the end of an iteration.
    costs: Vec<(u64, f64)>,
    /// Whether `at` is a time in nanoseconds since 1970, not the number of an answer.
    timed: bool,
}

impl Curve {
    /// From the spans. Those of a run that was killed are missing: then from the events, which have no times.
    pub(super) fn of(run: &RunDir, spans: &[Span]) -> Self {
        let timed = Self::of_spans(spans);
        if timed.is_empty() { Self::of_events(run) } else { timed }
    }

    /// Whether nothing was told.
    pub(super) fn is_empty(&self) -> bool {
        self.total() == 0 && self.cost().is_none()
    }

    fn total(&self) -> u64 {
        self.points.last().map_or(0, Point::total)
    }

    fn cost(&self) -> Option<f64> {
        self.costs.last().map(|c| c.1)
    }

    /// Each iteration counts from 0; the curve goes on.
    fn of_spans(spans: &[Span]) -> Self {
        let mut curve = Self { timed: true, ..Self::default() };
        let mut iterations: Vec<_> =
            spans.iter().filter(|s| s.attributes.contains_key("fullsend.iteration")).collect();
        iterations.sort_by_key(|s| s.start);
        let (mut base, mut spent) = (Point::default(), 0.0);
        for span in iterations {
            curve.points.push(Point { at: span.start, ..base });
            let mut last = base;
            for (at, attributes) in &span.events {
                if let Some(cost) = cost(attributes) {
                    curve.spend(*at, spent + cost);
                }
                if !attributes.contains_key("gen_ai.usage.input_tokens") {
                    continue;
                }
                let get = |key: &str| attributes.get(key).and_then(|v| v.parse().ok()).unwrap_or(0_u64);
                let cached = get("gen_ai.usage.cache_read.input_tokens");
                last = Point {
                    at: *at,
                    output: base.output.saturating_add(get("gen_ai.usage.output_tokens")),
                    fresh: base.fresh.saturating_add(get("gen_ai.usage.input_tokens").saturating_sub(cached)),
                    cached: base.cached.saturating_add(cached),
                };
                curve.points.push(last);
            }
            curve.points.push(Point { at: span.end, ..last });
            if let Some(cost) = cost(&span.attributes) {
                spent += cost;
                curve.spend(span.end, spent);
            }
            base = last;
        }
        curve
    }

    /// By answer instead of by time.
    fn of_events(run: &RunDir) -> Self {
        let mut curve = Self { points: vec![Point::default()], ..Self::default() };
        let (mut now, mut spent) = (Point::default(), 0.0);
        for n in run.iterations() {
            let path = run.path.join(format!("iteration-{n}/events.jsonl"));
            let Ok(file) = run_dir::open(&path) else { continue };
            let mut session = 0.0;
            for line in BufReader::new(file.take(READ)).lines().map_while(Result::ok) {
                // The last line of a run that was killed may be cut off.
                let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
                let get = |key: &str| event[key].as_u64().unwrap_or(0);
                let cost = match event["event"].as_str() {
                    Some("tokens") => {
                        now.at += 1;
                        now.output = now.output.saturating_add(get("output"));
                        now.fresh =
                            now.fresh.saturating_add(get("input")).saturating_add(get("cache_creation"));
                        now.cached = now.cached.saturating_add(get("cache_read"));
                        curve.points.push(now);
                        None
                    }
                    Some("cost") => event["total_usd"].as_f64(),
                    Some("result") => event["total_cost_usd"].as_f64(),
                    _ => None,
                };
                if let Some(cost) = cost.filter(|c| c.is_finite() && *c >= 0.0) {
                    session = cost;
                    curve.spend(now.at, spent + session);
                }
            }
            spent += session;
        }
        curve
    }

    fn spend(&mut self, at: u64, sum: f64) {
        if self.costs.last().is_none_or(|last| last.1.to_bits() != sum.to_bits()) {
            self.costs.push((at, sum));
        }
    }

    /// Draws it.
    pub(super) fn write(&self, out: &mut String) {
        let Some((first, last)) = self.points.first().zip(self.points.last()) else { return };
        let extent = Extent { start: first.at, length: last.at.saturating_sub(first.at).max(1) };
        let dearest = self.costs.iter().map(|c| c.1).fold(0.0, f64::max);
        let right = if dearest > 0.0 { dollars(dearest) } else { String::new() };
        let _ = write!(
            out,
            "<figure><div class=\"ends\" aria-hidden=\"true\"><span>{} tokens</span><span class=\"cost\">{right}</span></div>\
             <svg class=\"chart\" viewBox=\"0 0 1000 {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-labelledby=\"curve-title curve-desc\"><title id=\"curve-title\">Tokens and cost {}</title>\
             <desc id=\"curve-desc\">{}</desc>",
            grouped(self.total()),
            if self.timed { "over time" } else { "by answer" },
            self.sentence(&extent),
        );
        self.layers(&extent, out);
        self.line(&extent, dearest, out);
        let _ = write!(
            out,
            "</svg><div class=\"ends\" aria-hidden=\"true\"><span>0</span><span>{}</span></div><figcaption>\
             <span class=\"key output\">output</span><span class=\"key fresh\">input, new</span>\
             <span class=\"key cached\">input, from the cache</span>{}{}</figcaption></figure>",
            self.moment(last.at, &extent),
            if dearest > 0.0 { "<span class=\"key cost\">cost, known at the dots</span>" } else { "" },
            if self.timed {
                ""
            } else {
                "<span>The run has no record of times: this is in the order of the answers.</span>"
            },
        );
        self.figures(&extent, out);
    }

    fn sentence(&self, extent: &Extent) -> String {
        let last = self.points.last().copied().unwrap_or_default();
        let cost =
            self.cost().map_or_else(|| "no cost was told".to_owned(), |c| format!("cost {}", dollars(c)));
        format!(
            "After {}: {} tokens ({} output, {} new input, {} input from the cache), {cost}.",
            self.moment(last.at, extent),
            last.total(),
            last.output,
            last.fresh,
            last.cached
        )
    }

    /// A layer lies on those below it; each is a staircase, since tokens arrive with an answer.
    fn layers(&self, extent: &Extent, out: &mut String) {
        let layers: [(&str, Layer); 3] = [
            ("cached", Point::total),
            ("fresh", |p| p.output.saturating_add(p.fresh)),
            ("output", |p| p.output),
        ];
        let top = float(self.total().max(1));
        let points = thin(&self.points, extent);
        for (class, value) in layers {
            let mut path = format!("M0 {HEIGHT}");
            let mut last = HEIGHT;
            for point in &points {
                let (x, y) = (extent.at(point.at), HEIGHT - float(value(point)) * (HEIGHT - 10.0) / top);
                let _ = write!(path, "L{x:.1} {last:.1}L{x:.1} {y:.1}");
                last = y;
            }
            let _ = write!(out, "<path class=\"{class}\" d=\"{path}L1000 {last:.1}L1000 {HEIGHT}Z\"/>");
        }
    }

    /// The cost: a line between what is known, with a dot where it is. A dot is a stroke of no length with round ends,
    /// which stays round although the drawing is stretched.
    fn line(&self, extent: &Extent, dearest: f64, out: &mut String) {
        if dearest <= 0.0 {
            return;
        }
        let (mut path, mut dots) = (format!("M2 {:.1}", HEIGHT - 3.0), String::new());
        let mut column = -1.0;
        for (index, (at, cost)) in self.costs.iter().enumerate() {
            let (x, y) = (extent.at(*at).clamp(6.0, 994.0), HEIGHT - 3.0 - cost * (HEIGHT - 13.0) / dearest);
            if x - column < 1.0 && index + 1 < self.costs.len() {
                continue;
            }
            column = x;
            let _ = write!(path, "L{x:.1} {y:.1}");
            let _ = write!(dots, "M{x:.1} {y:.1}h0");
        }
        let _ = write!(
            out,
            "<path class=\"cost\" vector-effect=\"non-scaling-stroke\" d=\"{path}\"/>\
             <path class=\"cost dot\" vector-effect=\"non-scaling-stroke\" d=\"{dots}\"/>"
        );
    }

    /// The same as a table.
    fn figures(&self, extent: &Extent, out: &mut String) {
        let _ = write!(
            out,
            "<details class=\"figures-of\"><summary>The curve in figures</summary><div class=\"wide\"><table><thead><tr>\
             <th scope=\"col\">{}<th scope=\"col\">output<th scope=\"col\">input, new<th scope=\"col\">input, cached\
             <th scope=\"col\">cost</tr></thead><tbody>",
            if self.timed { "time" } else { "answer" }
        );
        let last = self.points.len().saturating_sub(1);
        let rows = self.points.len().min(ROWS);
        for row in 0..rows {
            let point = &self.points[if rows < 2 { last } else { row * last / (rows - 1) }];
            let known = self.costs.iter().take_while(|c| c.0 <= point.at).last();
            let _ = write!(
                out,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
                if self.timed { self.moment(point.at, extent) } else { point.at.to_string() },
                grouped(point.output),
                grouped(point.fresh),
                grouped(point.cached),
                known.map_or_else(|| "–".to_owned(), |c| dollars(c.1))
            );
        }
        out.push_str("</tbody></table></div></details>");
    }

    fn moment(&self, at: u64, extent: &Extent) -> String {
        let since = at.saturating_sub(extent.start);
        match (self.timed, since) {
            (true, _) => duration(Duration::from_nanos(since)),
            (false, 1) => "1 answer".to_owned(),
            (false, n) => format!("{n} answers"),
        }
    }
}

fn cost(attributes: &BTreeMap<String, String>) -> Option<f64> {
    let cost = attributes.get("fullsend.cost_usd")?.parse::<f64>().ok()?;
    (cost.is_finite() && cost >= 0.0).then_some(cost)
}

fn dollars(usd: f64) -> String {
    format!("${usd:.4}")
}

/// The last point of each thousandth of the width.
fn thin(points: &[Point], extent: &Extent) -> Vec<Point> {
    let column =
        |point: &Point| u128::from(point.at.saturating_sub(extent.start)) * 1000 / u128::from(extent.length);
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        match kept.last_mut() {
            Some(last) if column(last) == column(point) => *last = *point,
            _ => kept.push(*point),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, list: &[(&str, &str)]) -> (u64, BTreeMap<String, String>) {
        (at, list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    fn used(at: u64, input: &str, cached: &str, output: &str) -> (u64, BTreeMap<String, String>) {
        event(
            at,
            &[
                ("gen_ai.usage.input_tokens", input),
                ("gen_ai.usage.cache_read.input_tokens", cached),
                ("gen_ai.usage.output_tokens", output),
            ],
        )
    }

    fn agent(start: u64, end: u64, cost: &str, events: Vec<(u64, BTreeMap<String, String>)>) -> Span {
        let attributes = event(0, &[("fullsend.iteration", "1"), ("fullsend.cost_usd", cost)]).1;
        Span { start, end, attributes, events, ..Span::default() }
    }

    #[test]
    fn iterations_go_on_from_each_other() {
        let told = event(7, &[("fullsend.cost_usd", "0.1")]);
        let one = agent(0, 10, "0.25", vec![used(5, "30", "20", "1"), told]);
        let two = agent(20, 30, "0.5", vec![used(25, "3", "0", "2")]);
        let curve = Curve::of_spans(&[two, one]);
        assert_eq!(curve.points.iter().map(|p| p.at).collect::<Vec<_>>(), [0, 5, 10, 20, 25, 30]);
        assert_eq!(curve.points[5], Point { at: 30, output: 3, fresh: 13, cached: 20 });
        assert_eq!(curve.costs, [(7, 0.1), (10, 0.25), (30, 0.75)]);
        assert!(Curve::of_spans(&[Span::default()]).is_empty());
    }

    #[test]
    fn without_times_it_is_by_answer() {
        let dir = tempfile::tempdir().unwrap();
        let line = |text: &str| format!("{{\"schema\":\"fullsend.event/1\",\"event\":{text}}}\n");
        let tokens = line(r#""tokens","input":10,"output":2,"cache_creation":1,"cache_read":5"#);
        for (n, more) in
            [(1, line(r#""cost","total_usd":0.5"#)), (2, line(r#""result","total_cost_usd":0.25"#))]
        {
            std::fs::create_dir(dir.path().join(format!("iteration-{n}"))).unwrap();
            let text = format!("{tokens}{}{more}{{\"event\":\"tok", line(r#""turn""#));
            std::fs::write(dir.path().join(format!("iteration-{n}/events.jsonl")), text).unwrap();
        }
        let curve = Curve::of(&RunDir::read(dir.path()), &[]);
        assert_eq!(curve.points[2], Point { at: 2, output: 4, fresh: 22, cached: 10 });
        assert_eq!((curve.points.len(), curve.costs), (3, vec![(1, 0.5), (2, 0.75)]));
        let curve = Curve::of(&RunDir::read(dir.path()), &[]);
        let mut out = String::new();
        curve.write(&mut out);
        for part in [
            "After 2 answers: 36 tokens (4 output, 22 new input, 10 input",
            "cost $0.7500.",
            "order of the answers",
        ] {
            assert!(out.contains(part), "{part} is missing: {out}");
        }
    }

    #[test]
    fn a_drawing_has_its_words_and_stays_small() {
        let events = (1..20_000).map(|n| used(n, &n.to_string(), "0", "7")).collect();
        let curve = Curve::of_spans(&[agent(0, 20_000, "1.5", events)]);
        let mut out = String::new();
        curve.write(&mut out);
        assert!(out.len() < 100_000, "{} bytes", out.len());
        assert_eq!(out.matches("<tr><td>").count(), ROWS);
        assert!(
            out.contains("<desc id=\"curve-desc\">After ")
                && out.contains("20006 tokens (7 output, 19999 new input")
        );
        assert!(out.contains("class=\"cost dot\"") && !out.contains("NaN") && !out.contains("inf"));
    }

    #[test]
    fn a_cost_without_tokens_is_drawn() {
        let mut out = String::new();
        let curve = Curve::of_spans(&[agent(5, 5, "0.5", Vec::new())]);
        assert!(!curve.is_empty());
        curve.write(&mut out);
        assert!(
            out.contains("After 0.0s: 0 tokens") && out.contains("$0.5000") && !out.contains("NaN"),
            "{out}"
        );
    }
}
