//! The timeline: phases as rows with bars, and in each the calls and tool calls that belong to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::escape;
use crate::report::duration;
use crate::report::run_dir::{Record, Span};

/// Rows within one phase; more are counted.
const ROWS: usize = 500;

/// When the run began and how long it took, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// In nanoseconds since 1970.
    pub start: u64,
    /// Never 0.
    pub length: u64,
}

impl Extent {
    /// From the first start to the last end.
    pub(super) fn of(spans: &[Span]) -> Self {
        let start = spans.iter().map(|s| s.start).min().unwrap_or(0);
        let end = spans.iter().map(|s| s.end).max().unwrap_or(0);
        Self { start, length: end.saturating_sub(start).max(1) }
    }

    /// A moment in thousandths of the whole.
    pub(super) fn at(&self, moment: u64) -> f64 {
        float(moment.saturating_sub(self.start)) * 1000.0 / float(self.length)
    }
}

/// A number that is drawn.
#[expect(clippy::cast_precision_loss, reason = "it is drawn")]
pub(super) fn float(n: u64) -> f64 {
    n as f64
}

/// The spans of phases, calls and tools; from `run.json` where there are none.
pub(super) fn spans_of(record: Option<&Record>, spans: Vec<Span>) -> Vec<Span> {
    let phases = record.map(|r| r.phases.as_slice()).unwrap_or_default();
    if !spans.is_empty() || phases.is_empty() {
        return spans;
    }
    let ns = |ms: u64| ms.saturating_mul(1_000_000);
    let root = Span { id: "run".into(), end: ns(record.map_or(0, |r| r.duration_ms)), ..Span::default() };
    let phase = |p: &crate::report::run_dir::Phase| Span {
        id: p.name.clone(),
        parent: "run".into(),
        name: p.name.clone(),
        start: ns(p.start_ms),
        end: ns(p.start_ms.saturating_add(p.duration_ms)),
        failed: p.failed.clone(),
        ..Span::default()
    };
    phases.iter().map(phase).chain([root]).collect()
}

/// The section.
pub(super) fn section(spans: &[Span], out: &mut String) {
    out.push_str("<section id=\"timeline\"><h2>Timeline</h2>");
    // A run that was killed has no span of its own: what belongs to nobody here belongs to it.
    let root = spans.iter().find(|s| s.id == "run" || s.attributes.contains_key("fullsend.verdict"));
    let ids: std::collections::BTreeSet<&str> = spans.iter().map(|s| s.id.as_str()).collect();
    let mut below: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        below.entry(span.parent.as_str()).or_default().push(span);
    }
    let mut top: Vec<&Span> = match root {
        Some(root) => below.get(root.id.as_str()).cloned().unwrap_or_default(),
        None => spans.iter().filter(|s| !ids.contains(s.parent.as_str())).collect(),
    };
    top.retain(|span| !span.name.is_empty());
    if top.is_empty() {
        out.push_str("<p class=\"none\">No phase was recorded.</p></section>");
        return;
    }
    let extent = Extent::of(spans);
    top.sort_by_key(|span| span.start);
    let _ = write!(
        out,
        "<div class=\"scale\" aria-hidden=\"true\"><span></span><span></span><span class=\"axis\"><span>0</span><span>{}</span><span>{}</span></span></div>",
        duration(Duration::from_nanos(extent.length / 2)),
        duration(Duration::from_nanos(extent.length))
    );
    for span in top {
        let mut inner = below.get(span.id.as_str()).cloned().unwrap_or_default();
        inner.sort_by_key(|s| s.start);
        if inner.is_empty() {
            let _ = write!(out, "<div class=\"phase\">{}</div>", row(span, &extent));
            continue;
        }
        // Tool calls are what a reader looks for.
        let tools = inner.iter().filter(|s| is_tool(s)).count();
        let open = if (1..=60).contains(&tools) { " open" } else { "" };
        let _ = write!(out, "<details class=\"phase\"{open}><summary>{}</summary>", row(span, &extent));
        for span in inner.iter().take(ROWS) {
            let _ = write!(out, "<div class=\"inner\">{}</div>", row(span, &extent));
        }
        if inner.len() > ROWS {
            let _ = write!(out, "<p class=\"none\">… and {} more.</p>", inner.len() - ROWS);
        }
        out.push_str("</details>");
    }
    out.push_str("</section>");
}

/// Short times are what most calls take.
fn brief(took: Duration) -> String {
    if took < Duration::from_secs(1) { format!("{} ms", took.as_millis()) } else { duration(took) }
}

fn is_tool(span: &Span) -> bool {
    span.attributes.contains_key("gen_ai.tool.name")
}

fn row(span: &Span, extent: &Extent) -> String {
    let attribute = |name: &str| span.attributes.get(name).map(String::as_str);
    let (class, name) = match attribute("gen_ai.tool.name") {
        Some(tool) => ("tool", tool),
        None if span.call => ("call", span.name.as_str()),
        None => ("part", span.name.as_str()),
    };
    let note = attribute("fullsend.tool.summary").or(attribute("fullsend.note")).unwrap_or_default();
    let note = span.failed.as_deref().filter(|_| !is_tool(span)).unwrap_or(note);
    let class = if span.failed.is_some() { format!("{class} bad") } else { class.to_owned() };
    let mark = if span.failed.is_some() { "<b class=\"mark\" title=\"failed\">✗ </b>" } else { "" };
    let unfinished = if attribute("fullsend.unfinished").is_some() { " <i>(no end)</i>" } else { "" };
    let (from, to) = (extent.at(span.start), extent.at(span.end));
    let took = Duration::from_nanos(span.end.saturating_sub(span.start));
    format!(
        "<span class=\"row {class}\"><span class=\"name\">{mark}{}{unfinished}<span class=\"note\">{}</span></span>\
         <span class=\"took\">{}</span><svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\"><rect x=\"{from:.1}\" width=\"{:.1}\" height=\"10\"/></svg></span>",
        escape::short(name, 200),
        escape::short(note, 400),
        brief(took),
        (to - from).max(2.0).min(1000.0 - from.min(998.0)),
    )
}
