//! What the CI system is told when a run ends: GitHub's step summary and outputs, GitLab's reports.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::context::{Cx, millis};
use super::options::Options;
use super::outcome::Verdict;
use super::prepare::Prepared;
use super::record::Facts;
use crate::error::{Error, Result};
use crate::import::ChangeKind;
use crate::openshell::names::RunId;
use crate::report::closing::{self, Attempt, Bar, Closing};
use crate::report::{Ci, Printer, diffstat, github, gitlab, markdown};
use crate::scan::chain;

/// How many changed paths and findings are looked at.
const LISTED: usize = 500;
/// The largest patch whose lines are counted, in bytes.
const PATCH: u64 = 16 * 1024 * 1024;
/// The largest result file that becomes an output of the step, in bytes.
const RESULT: u64 = 32 * 1024;
/// The longest summary that is written, in bytes; other commands of the step may want to add to it.
const SUMMARY: u64 = 256 * 1024;

/// How a run ended, beside what its phases left.
pub(super) struct End<'a> {
    /// What went wrong.
    pub error: Option<&'a Error>,
    /// The verdict.
    pub verdict: Verdict,
    /// The exit status.
    pub exit: u8,
    /// One sentence on how it ended.
    pub reason: String,
    /// What to do now, by topic.
    pub next: Vec<(&'static str, String)>,
}

/// Tells of a run that ended before it began.
pub(super) fn early(options: &Options, error: &Error, ui: &Printer) {
    let closing = Closing {
        agent: &options.agent,
        verdict: Verdict::of(error).as_str(),
        exit_code: error.exit_code(),
        error: Some(error),
        reason: format!("{}: {}", error.code(), error.message()),
        next: Some(error.help_text()),
        ..Closing::default()
    };
    tell(&closing, options.report_dir.as_deref(), ui);
}

/// Tells of the end of a run.
pub(super) fn late(cx: &Cx, prepared: &Prepared, facts: &Facts, end: &End<'_>) {
    if cx.ui.ci() == Ci::None && prepared.world.report_dir.is_none() {
        return;
    }
    let changes = facts.changes.iter().take(LISTED).map(|c| (c.path.clone(), word(c.kind))).collect();
    let attempt = |i: &super::record::IterationRecord| Attempt {
        number: i.number,
        valid: i.valid,
        duration_ms: Some(i.duration_ms),
    };
    let phases = cx.phases().into_iter().map(|p| Bar {
        name: p.name,
        start_ms: p.start_ms,
        duration_ms: p.duration_ms,
        failed: p.failed.is_some(),
    });
    let findings = fs_err::read_to_string(cx.id.dir.join(chain::FILE)).unwrap_or_default();
    let closing = Closing {
        agent: &prepared.plan.harness.name,
        run: Some(cx.id.id.to_string()),
        verdict: end.verdict.as_str(),
        exit_code: end.exit,
        error: end.error,
        skip_reason: facts.skip_reason.as_deref(),
        outputs: Some(&facts.outputs),
        reason: end.reason.clone(),
        next: end.next.iter().find(|(key, _)| *key == "next").map(|(_, value)| value.clone()),
        dir: Some(&cx.id.dir),
        duration_ms: millis(cx.elapsed()),
        phases: phases.collect(),
        totals: (!facts.iterations.is_empty()).then(|| facts.totals()),
        reviews: facts.reviews(),
        changed: facts.changes.len(),
        changes,
        stat: stat(&cx.id.dir),
        applied: facts.applied,
        findings: closing::findings(&findings, LISTED),
        attempts: facts.iterations.iter().map(attempt).collect(),
        result: result(cx, prepared, facts),
    };
    tell(&closing, prepared.world.report_dir.as_deref(), &cx.ui);
}

/// Where the reports for GitLab go, if they are written: what was asked for, else the project's directory in a job.
fn report_dir(asked: Option<&Path>, ci: Ci) -> Option<PathBuf> {
    asked.map(PathBuf::from).or_else(|| variable("CI_PROJECT_DIR").filter(|_| ci == Ci::GitLab))
}

/// The reports that a run writes. An earlier run may have left them in the checkout.
pub(super) fn report_files(asked: Option<&Path>, ci: Ci) -> Vec<PathBuf> {
    let dir = report_dir(asked, ci).and_then(|dir| std::path::absolute(dir).ok());
    dir.map(|dir| gitlab::FILES.map(|name| dir.join(name)).into()).unwrap_or_default()
}

/// A report that cannot be written changes nothing about the run.
fn tell(closing: &Closing<'_>, asked: Option<&Path>, ui: &Printer) {
    let told = match ui.ci() {
        Ci::GitHub => summarise(closing, ui).and_then(|()| output(closing, ui)),
        _ => Ok(()),
    };
    let project = variable("CI_PROJECT_DIR").filter(|_| ui.ci() == Ci::GitLab);
    let reported = match report_dir(asked, ui.ci()) {
        Some(dir) => reports(closing, &dir, project.as_deref(), ui),
        None => Ok(()),
    };
    for error in [told.err(), reported.err()].into_iter().flatten() {
        ui.warn(&format!("the CI system was not told everything: {}", error.message()));
    }
}

fn summarise(closing: &Closing<'_>, ui: &Printer) -> Result<()> {
    let Some(path) = variable("GITHUB_STEP_SUMMARY") else { return Ok(()) };
    let there = path.metadata().map_or(0, |m| m.len());
    let room = github::SUMMARY_LIMIT.saturating_sub(there).min(SUMMARY);
    let links = markdown::Links::github(|name| std::env::var(name).ok());
    let text = markdown::summary(closing, &links, ui, usize::try_from(room).unwrap_or(0));
    append(&path, &text)
}

fn output(closing: &Closing<'_>, ui: &Printer) -> Result<()> {
    let Some(path) = variable("GITHUB_OUTPUT") else { return Ok(()) };
    let delimiter = format!("fullsend_{}", RunId::random()?);
    append(&path, &github::output_file(&github::outputs(closing, ui), &delimiter))
}

fn reports(closing: &Closing<'_>, dir: &Path, project: Option<&Path>, ui: &Printer) -> Result<()> {
    fs_err::create_dir_all(dir)?;
    let (dotenv, left_out) = gitlab::dotenv(closing, ui);
    for why in left_out {
        ui.warn(&format!("{}: {why}", gitlab::DOTENV));
    }
    for (name, text) in [
        (gitlab::DOTENV, dotenv),
        (gitlab::CODE_QUALITY, gitlab::code_quality(closing, project, ui)),
        (gitlab::JUNIT, gitlab::junit(closing, ui)),
    ] {
        // A rename replaces a link that somebody put there instead of following it.
        let half = dir.join(format!(".{name}.{}", RunId::random()?));
        fs_err::write(&half, text)?;
        fs_err::rename(&half, dir.join(name))?;
    }
    Ok(())
}

/// The path in a variable.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

fn append(path: &Path, text: &str) -> Result<()> {
    let mut file = fs_err::OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

fn word(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Mode => "mode",
        ChangeKind::Link => "link",
    }
}

fn stat(dir: &Path) -> Vec<diffstat::FileStat> {
    let Some(patch) = small(&dir.join("changes.patch"), PATCH) else { return Vec::new() };
    let mut stat = diffstat::of(&patch);
    stat.truncate(LISTED);
    stat
}

/// The agent's result in one line, of the iteration that counts.
fn result(cx: &Cx, prepared: &Prepared, facts: &Facts) -> Option<String> {
    let number = facts.validated.or_else(|| facts.iterations.last().map(|i| i.number))?;
    let name = prepared.plan.harness.output_file();
    let path = cx.id.dir.join(format!("iteration-{number}/output")).join(name);
    let value: serde_json::Value = serde_json::from_slice(&small(&path, RESULT)?).ok()?;
    serde_json::to_string(&value).ok()
}

/// A file that is no longer than `limit` bytes.
fn small(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let file = fs_err::File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}
