//! One self-contained page about a run.
//!
//! Everything on it may come from a sandbox. It is escaped once, where it is written (`escape`); the page's policy
//! allows one style and one script, both named by their digest, and no request of any kind; the script reads the page
//! and hides lines, nothing else. Without it the page loses the search.

mod curve;
mod diff;
mod escape;
mod log;
mod timeline;
mod usage;

use std::fmt::Write as _;
use std::io::BufRead as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::run_dir::{self, Record, RunDir};
use crate::report::{bytes, duration};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const NAV: &str = "<nav><a href=\"#timeline\">Timeline</a> <a href=\"#usage\">Tokens and cost</a> \
                   <a href=\"#changes\">Changes</a> <a href=\"#findings\">Findings</a> <a href=\"#log\">Log</a> \
                   <a href=\"#files\">Files</a></nav>";
/// So many findings are shown.
const FINDINGS: usize = 500;
/// So many files are listed.
const FILES: usize = 1000;

/// The page of the run in a directory.
pub fn page(dir: &Path) -> String {
    let run = RunDir::read(dir);
    let record = run.record.as_ref();
    let spans = timeline::spans_of(record, run.spans());
    let mut out = String::with_capacity(256 * 1024);
    head(&run, &mut out);
    summary(&run, &mut out);
    out.push_str(NAV);
    timeline::section(&spans, &mut out);
    usage::section(&run, &spans, &mut out);
    diff::section(&run, &mut out);
    findings(&run, &mut out);
    log::section(&run, &mut out);
    files(&run, &mut out);
    let _ = writeln!(
        out,
        "</main><footer>Made by fullsend {} from <code>{}</code>.</footer><script>{SCRIPT}</script></body></html>",
        env!("CARGO_PKG_VERSION"),
        escape::text(&name(&run))
    );
    out
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

fn head(run: &RunDir, out: &mut String) {
    let title = match &run.record {
        Some(record) => format!("{}: {}", record.agent, record.verdict),
        None => name(run),
    };
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         script-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\
         <meta name=\"referrer\" content=\"no-referrer\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title><style>{STYLE}</style></head><body><main>",
        digest(STYLE),
        digest(SCRIPT),
        escape::short(&title, 200)
    );
}

/// The name of the directory; where it lies is nobody's business who gets the page.
fn name(run: &RunDir) -> String {
    let whole = run.path.canonicalize().unwrap_or_else(|_| run.path.clone());
    whole.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

fn summary(run: &RunDir, out: &mut String) {
    let Some(record) = &run.record else {
        let _ = write!(
            out,
            "<header class=\"none\"><p class=\"badge\">no verdict</p><h1>{}</h1><p class=\"why\">There is no run.json: the run \
             still goes on, or it was killed. This is what it left.</p></header>",
            escape::short(&name(run), 200)
        );
        return;
    };
    let class = match record.verdict.as_str() {
        "success" => "good",
        "skipped" => "none",
        _ => "failed",
    };
    let _ = write!(
        out,
        "<header class=\"{class}\"><p class=\"badge\">{}</p><h1>{}</h1>",
        escape::short(&record.verdict.replace('_', " "), 40),
        escape::short(&record.agent, 200)
    );
    reason(record, out);
    out.push_str("</header>");
    facts(record, out);
}

fn reason(record: &Record, out: &mut String) {
    match (&record.error, &record.skip_reason) {
        (Some(error), _) => {
            let _ = write!(
                out,
                "<p class=\"why\"><code>{}</code> {}</p><p class=\"help\"><b>What to do:</b> {}</p>",
                escape::short(&error.code, 40),
                escape::short(&error.message, 2000),
                escape::short(&error.help, 2000)
            );
            if let Some(detail) = error.detail.as_deref().filter(|d| !d.trim().is_empty()) {
                out.push_str("<details><summary>More about it</summary><pre>");
                for line in detail.lines().take(200) {
                    let _ = writeln!(out, "{}", escape::line(line, 2000));
                }
                out.push_str("</pre></details>");
            }
        }
        (None, Some(reason)) => {
            let _ = write!(
                out,
                "<p class=\"why\">The pre-script asked to skip: {}</p>",
                escape::short(reason, 2000)
            );
        }
        (None, None) => {
            let valid = record.iterations.iter().any(|i| i.valid == Some(true));
            let _ = write!(
                out,
                "<p class=\"why\">The agent did its work{}.</p>",
                if valid { ", and its output is valid" } else { "" }
            );
        }
    }
}

fn facts(record: &Record, out: &mut String) {
    let totals = &record.totals;
    let plain = |n: u64| if n == 0 { "–".to_owned() } else { usage::grouped(n) };
    let mut rows = vec![
        ("duration", duration(Duration::from_millis(record.duration_ms))),
        ("cost", totals.cost_usd.map_or_else(|| "–".into(), |c| format!("${c:.4}"))),
        ("tokens", plain(totals.tokens.total())),
        ("turns", plain(totals.turns)),
        ("tool calls", plain(totals.tool_calls)),
        ("paths changed", plain(u64::try_from(record.changes.len()).unwrap_or(u64::MAX))),
    ];
    rows.retain(|(_, value)| !value.is_empty());
    out.push_str("<dl class=\"figures\">");
    for (key, value) in rows {
        let _ = write!(out, "<div><dt>{key}</dt><dd>{value}</dd></div>");
    }
    out.push_str("</dl><details class=\"facts\"><summary>Details</summary><dl>");
    let started = record.started.map(|t| t.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let backend = if record.local { " (embedded backend)" } else { "" };
    let rows = [
        ("run", record.run.clone()),
        ("started", started.unwrap_or_default()),
        ("exit status", record.exit_code.to_string()),
        ("model", totals.model.clone().unwrap_or_default()),
        ("agent CLI", totals.agent_version.clone().unwrap_or_default()),
        ("repository", record.repo.clone()),
        ("harness", record.harness.clone()),
        ("harness digest", record.harness_digest.clone()),
        ("plan digest", record.plan_digest.clone()),
        ("image", record.image.clone().unwrap_or_default()),
        ("sandbox", record.sandbox.clone()),
        ("OpenShell", format!("{}{backend}", record.openshell)),
        ("fullsend", record.fullsend.clone()),
    ];
    for (key, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(out, "<div><dt>{key}</dt><dd><code>{}</code></dd></div>", escape::short(value, 500));
    }
    out.push_str("</dl></details>");
}

fn findings(run: &RunDir, out: &mut String) {
    out.push_str("<section id=\"findings\"><h2>Findings</h2>");
    let file = run_dir::open(&run.path.join(crate::scan::chain::FILE));
    let mut shown = 0;
    let mut more = 0;
    if let Ok(file) = file {
        for line in std::io::BufReader::new(file).lines().map_while(Result::ok) {
            let Ok(finding) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
            if shown == FINDINGS {
                more += 1;
                continue;
            }
            if shown == 0 {
                out.push_str(
                    "<div class=\"wide\"><table class=\"findings\"><thead><tr><th>severity<th>rule<th>where<th>what<th>done<th>seen by</tr></thead><tbody>",
                );
            }
            shown += 1;
            let field = |key: &str| escape::short(finding[key].as_str().unwrap_or_default(), 500);
            let at =
                finding["line"].as_u64().filter(|n| *n > 0).map_or_else(String::new, |n| format!(":{n}"));
            let _ = write!(
                out,
                "<tr><td class=\"sev {0}\">{0}<td><code>{1}</code><td><code>{2}{at}</code><td>{3}<br><code>{4}</code><td>{5}<td>{6}</tr>",
                severity(&finding),
                field("rule"),
                field("file"),
                field("message"),
                field("excerpt"),
                field("action"),
                field("origin")
            );
        }
    }
    match (shown, &run.record) {
        (0, Some(record)) if !record.security.enabled => {
            out.push_str("<p class=\"none\">The security checks were switched off.</p>");
        }
        (0, _) => out.push_str("<p class=\"none\">Nothing was found.</p>"),
        _ => out.push_str("</tbody></table></div>"),
    }
    if more > 0 {
        let _ = write!(out, "<p class=\"none\">… and {more} more in security/findings.jsonl.</p>");
    }
    out.push_str("</section>");
}

/// Also the name of a class.
fn severity(finding: &serde_json::Value) -> &'static str {
    match finding["severity"].as_str() {
        Some("critical") => "critical",
        Some("high") => "high",
        Some("medium") => "medium",
        Some("low") => "low",
        _ => "other",
    }
}

fn files(run: &RunDir, out: &mut String) {
    let Some(record) = &run.record else {
        let none = "<section id=\"files\"><h2>Files</h2><p class=\"none\">They are listed when a run ends.</p></section>";
        out.push_str(none);
        return;
    };
    let _ = write!(
        out,
        "<section id=\"files\"><h2>Files</h2><details class=\"file\"><summary>{} files in the run directory</summary><ul class=\"plain\">",
        record.artefacts.len()
    );
    for name in record.artefacts.iter().take(FILES) {
        let size = std::fs::symlink_metadata(run.path.join(name)).map(|m| bytes(m.len())).unwrap_or_default();
        let _ = write!(
            out,
            "<li><code>{}</code> <span class=\"kind\">{size}</span></li>",
            escape::short(name, 400)
        );
    }
    out.push_str("</ul>");
    if record.artefacts.len() > FILES {
        let _ = write!(out, "<p class=\"none\">… and {} more.</p>", record.artefacts.len() - FILES);
    }
    out.push_str("</details></section>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let page = page(dir.path());
        assert!(page.contains(&format!("style-src 'sha256-{}'", digest(STYLE))));
        assert!(page.contains("no verdict"));
        // An inline style or handler would not work under the policy.
        assert!(!page.contains(" style=") && !page.contains(" onclick="));
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
