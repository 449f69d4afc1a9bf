//! The summary of a run in GitHub's Markdown. What comes from outside is data: it cannot begin a heading, a table, a
//! link, an image, a mention or HTML.

use std::fmt::Write as _;

use super::closing::{Bar, Closing};
use super::inline;
use super::printer::Printer;
use super::text::duration;

/// How many rows of a table are shown.
const ROWS: usize = 100;
/// The width of the time line, in characters.
const WIDTH: u64 = 40;

/// The page of the CI system that has what was uploaded.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// The address of the run's page, which lists the artefacts.
    pub run: Option<String>,
}

impl Links {
    /// From the variables that GitHub sets.
    pub fn github(env: impl Fn(&str) -> Option<String>) -> Self {
        let plain = |name: &str| {
            let ok = |c: char| c.is_ascii_alphanumeric() || "-._~/:".contains(c);
            env(name).filter(|v| !v.is_empty() && v.chars().all(ok))
        };
        let run = || {
            let (server, repo) = (plain("GITHUB_SERVER_URL")?, plain("GITHUB_REPOSITORY")?);
            let id = plain("GITHUB_RUN_ID")?;
            server.starts_with("https://").then(|| format!("{server}/{repo}/actions/runs/{id}"))
        };
        Self { run: run() }
    }
}

/// The summary, at most `limit` bytes.
pub fn summary(closing: &Closing<'_>, links: &Links, ui: &Printer, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit: limit.saturating_sub(SHORTENED.len()), full: false };
    head(&mut page, closing, links, ui);
    changes(&mut page, closing, ui);
    findings(&mut page, closing, ui);
    waterfall(&mut page, closing, ui);
    page.end(limit)
}

const SHORTENED: &str = "\n\nThe rest is left out: the summary of a step has a limit.\n";

/// Text that grows by whole blocks up to a limit.
struct Page {
    text: String,
    limit: usize,
    full: bool,
}

impl Page {
    fn push(&mut self, block: &str) {
        if !self.full && self.text.len() + block.len() <= self.limit {
            self.text.push_str(block);
        } else {
            self.full = true;
        }
    }

    fn end(mut self, limit: usize) -> String {
        if self.full && self.text.len() + SHORTENED.len() <= limit {
            self.text.push_str(SHORTENED);
        }
        self.text
    }
}

/// Foreign text in a cell.
fn cell(text: &str, ui: &Printer) -> String {
    inline::cell(&ui.inert(text))
}

/// A foreign name of a file in a cell.
fn name(text: &str, ui: &Printer) -> String {
    inline::name(&ui.inert(text))
}

fn head(page: &mut Page, c: &Closing<'_>, links: &Links, ui: &Printer) {
    let sign = match c.verdict {
        "success" => "✅",
        "skipped" => "⏭️",
        "cancelled" => "🚫",
        "timeout" => "⏱️",
        "blocked" => "🛡️",
        _ => "❌",
    };
    page.push(&format!(
        "## {sign} {}: {} (exit {})\n\n",
        inline::line(&ui.inert(c.agent)),
        inline::line(c.verdict),
        c.exit_code
    ));
    let mut rows = vec![("Reason", cell(&c.reason, ui))];
    if let Some(next) = &c.next {
        rows.push(("Next", cell(next, ui)));
    }
    rows.push(("Took", duration(std::time::Duration::from_millis(c.duration_ms))));
    if let Some(m) = &c.totals {
        let cost = m.cost_usd.map_or_else(|| "not told".to_owned(), |usd| format!("${usd:.4}"));
        let t = &m.tokens;
        rows.push(("Cost", format!("{cost}, {} turns, {} tool calls", m.turns, m.tool_calls)));
        if let Some(r) = &c.reviews {
            let cost = r.cost_usd.map_or_else(|| "cost not told".to_owned(), |usd| format!("${usd:.4}"));
            rows.push(("Of it reviews", format!("{cost}, {} tokens", r.tokens.total())));
        }
        rows.push((
            "Tokens",
            format!(
                "{} in, {} out, {} written to the cache, {} read from it",
                t.input, t.output, t.cache_creation, t.cache_read
            ),
        ));
        if let Some(model) = &m.model {
            rows.push(("Model", cell(model, ui)));
        }
    }
    if let Some(dir) = c.dir {
        rows.push(("Results", name(&dir.display().to_string(), ui)));
    }
    if let Some(url) = &links.run {
        rows.push(("Artefacts", format!("[of this workflow run]({url}#artifacts)")));
    }
    let mut table = String::from("| | |\n|---|---|\n");
    for (key, value) in rows {
        let _ = writeln!(table, "| {key} | {value} |");
    }
    page.push(&table);
}

fn changes(page: &mut Page, c: &Closing<'_>, ui: &Printer) {
    if c.changed == 0 {
        return;
    }
    let taken = if c.applied { "applied to the checkout" } else { "not applied to the checkout" };
    let (added, removed) = c.stat.iter().fold((0, 0), |(a, r), f| (a + f.added, r + f.removed));
    let lines = if c.stat.is_empty() { String::new() } else { format!(", +{added} −{removed} lines") };
    page.push(&format!("\n### Changes: {} path(s){lines}, {taken}\n\n", c.changed));
    if c.stat.is_empty() {
        page.push("| path | |\n|---|---|\n");
        for (path, kind) in c.changes.iter().take(ROWS) {
            page.push(&format!("| {} | {kind} |\n", name(path, ui)));
        }
    } else {
        page.push("| path | + | − |\n|---|--:|--:|\n");
        for f in c.stat.iter().take(ROWS) {
            let (added, removed) = if f.binary {
                ("binary".to_owned(), String::new())
            } else {
                (f.added.to_string(), f.removed.to_string())
            };
            page.push(&format!("| {} | {added} | {removed} |\n", name(&f.path, ui)));
        }
    }
    if c.changed > ROWS {
        page.push("\nOnly the first are shown; changes.json in the run directory has all.\n");
    }
}

fn findings(page: &mut Page, c: &Closing<'_>, ui: &Printer) {
    if c.findings.is_empty() {
        return;
    }
    page.push("\n### Findings\n\n| severity | place | rule | |\n|---|---|---|---|\n");
    for f in c.findings.iter().take(ROWS) {
        let place = if f.line == 0 { f.file.clone() } else { format!("{}:{}", f.file, f.line) };
        page.push(&format!(
            "| {} | {} | {} | {} |\n",
            cell(&f.severity, ui),
            name(&place, ui),
            cell(&f.check(), ui),
            cell(&f.message, ui)
        ));
    }
    if c.findings.len() > ROWS {
        page.push("\nOnly the worst are shown; security/findings.jsonl in the run directory has all.\n");
    }
}

fn waterfall(page: &mut Page, c: &Closing<'_>, ui: &Printer) {
    if c.phases.is_empty() {
        return;
    }
    let whole = c.phases.iter().map(|p| p.start_ms.saturating_add(p.duration_ms)).max().unwrap_or(0);
    let whole = whole.max(c.duration_ms).max(1);
    page.push("\n### Phases\n\n| phase | took | |\n|---|--:|---|\n");
    for phase in c.phases.iter().take(ROWS) {
        let mark = if phase.failed { " ❌" } else { "" };
        let took = duration(std::time::Duration::from_millis(phase.duration_ms));
        page.push(&format!("| {}{mark} | {took} | `{}` |\n", cell(&phase.name, ui), bar(phase, whole)));
    }
}

/// Where a phase lies within the run: always at least one mark, never past the end.
fn bar(phase: &Bar, whole: u64) -> String {
    let at = |ms: u64| ms.min(whole).saturating_mul(WIDTH) / whole;
    let start = at(phase.start_ms).min(WIDTH - 1);
    let end = at(phase.start_ms.saturating_add(phase.duration_ms)).max(start + 1);
    let part = |sign: &str, n: u64| sign.repeat(usize::try_from(n).unwrap_or(0));
    format!("{}{}{}", part("·", start), part("█", end - start), part("·", WIDTH - end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Metrics;
    use crate::report::closing::Found;
    use crate::report::{ColorChoice, Verbosity};

    fn ui() -> Printer {
        Printer::new(ColorChoice::Never, Verbosity::Quiet)
    }

    fn closing() -> Closing<'static> {
        Closing {
            agent: "triage",
            verdict: "failed",
            exit_code: 1,
            reason: "it | broke".into(),
            duration_ms: 4000,
            phases: vec![
                Bar { name: "create".into(), start_ms: 0, duration_ms: 1000, failed: false },
                Bar { name: "agent".into(), start_ms: 1000, duration_ms: 3000, failed: true },
            ],
            totals: Some(Metrics { cost_usd: Some(0.25), ..Metrics::default() }),
            changed: 1,
            changes: vec![("a|b".into(), "modified")],
            findings: vec![Found { severity: "high".into(), file: "x".into(), line: 2, ..Found::default() }],
            ..Closing::default()
        }
    }

    #[test]
    fn a_summary_has_verdict_changes_findings_and_phases() {
        let links = Links::github(|name| {
            Some(
                match name {
                    "GITHUB_SERVER_URL" => "https://github.example",
                    "GITHUB_REPOSITORY" => "o/r",
                    _ => "7",
                }
                .into(),
            )
        });
        let text = summary(&closing(), &links, &ui(), 100_000);
        for part in [
            "## ❌ triage: failed (exit 1)\n",
            "| Reason | it `\\|` broke |\n",
            "| Cost | $0.2500, 0 turns, 0 tool calls |\n",
            "(https://github.example/o/r/actions/runs/7#artifacts)",
            "### Changes: 1 path(s), not applied to the checkout\n",
            "| `a\\|b` | modified |\n",
            "| high | x:2 | / |  |\n",
            "| create | 1.0s | `██████████······························` |\n",
            "| agent ❌ | 3.0s | `··········██████████████████████████████` |\n",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn a_link_needs_an_address_that_is_one() {
        let links = Links::github(|name| {
            Some(if name == "GITHUB_REPOSITORY" { "o/r) [x](http://evil" } else { "https://x" }.into())
        });
        assert!(links.run.is_none());
    }

    #[test]
    fn the_limit_holds_and_is_told() {
        let mut c = closing();
        c.changed = 5000;
        c.changes = (0..5000).map(|n| (format!("{n}{}", "|".repeat(290)), "added")).collect();
        let text = summary(&c, &Links::default(), &ui(), 20_000);
        assert!(text.len() <= 20_000 && text.ends_with("has a limit.\n"), "{}", text.len());
        assert_eq!(summary(&c, &Links::default(), &ui(), 10), "");
    }

    #[test]
    fn every_bar_is_seen_and_fits() {
        for (start_ms, duration_ms) in [(0, 0), (9_999, 1), (10_000, 0), (0, 10_000), (20_000, u64::MAX)] {
            let bar = bar(&Bar { name: String::new(), start_ms, duration_ms, failed: false }, 10_000);
            assert!(bar.contains('█') && bar.chars().count() == 40, "{bar}");
        }
    }
}
