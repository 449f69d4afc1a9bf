//! What a run tells to machines at its end: the span of the whole, the spans over HTTP, the metrics file.

use super::context::Cx;
use super::journal;
use super::options::Options;
use super::outcome::Verdict;
use super::prepare::Prepared;
use super::record::Facts;
use super::signals::Signals;
use crate::error::Error;
use crate::report::Printer;
use crate::telemetry::{self, Attributes, Figures, Phases, Recorder, Sender, Status};

/// Ends the trace.
pub(super) fn conclude(
    cx: &Cx,
    prepared: &Prepared,
    facts: &Facts,
    error: Option<&Error>,
    verdict: Verdict,
    exit: u8,
) {
    let plan = &prepared.plan;
    let totals = facts.totals();
    let mut about: Attributes = vec![
        ("fullsend.run", cx.id.id.to_string().into()),
        ("gen_ai.agent.name", plan.harness.name.as_str().into()),
        ("fullsend.sandbox", cx.id.sandbox.as_str().into()),
        ("fullsend.harness.digest", plan.harness.digest.as_str().into()),
        ("fullsend.openshell", plan.dialect.version.as_str().into()),
        ("fullsend.local", plan.local.into()),
        ("fullsend.verdict", verdict.as_str().into()),
        ("fullsend.exit_code", u64::from(exit).into()),
        ("fullsend.iterations", count(facts.iterations.len()).into()),
        ("fullsend.changed_paths", count(facts.changes.len()).into()),
    ];
    if totals.tokens.total() > 0 {
        about.extend(telemetry::usage_attributes(&totals.tokens));
    }
    about.extend(totals.cost_usd.map(|cost| ("fullsend.cost_usd", cost.into())));
    ended(&cx.trace, about, error, &cx.ui);
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn ended(trace: &Recorder, mut about: Attributes, error: Option<&Error>, ui: &Printer) {
    let status = match error {
        Some(error) => {
            about.push(("error.type", error.code().as_str().into()));
            Status::Error(error.message().to_owned())
        }
        None => Status::Ok,
    };
    trace.conclude(status, about, &|text| ui.redact(text));
}

/// A run that ended before it had a directory is told of all the same.
pub(super) fn not_started(options: &Options, trace: &Recorder, error: &Error, ui: &Printer) {
    let verdict = Verdict::of(error);
    let about: Attributes = vec![
        ("gen_ai.agent.name", options.agent.as_str().into()),
        ("fullsend.verdict", verdict.as_str().into()),
        ("fullsend.exit_code", u64::from(error.exit_code()).into()),
    ];
    ended(trace, about, Some(error), ui);
    let figures = Figures { agent: options.agent.clone(), verdict: verdict.as_str(), ..Figures::default() };
    write(options, figures, ui);
}

/// Adds the run to the metrics file, once its sandbox is gone.
pub(super) fn metrics(options: &Options, cx: &Cx, prepared: &Prepared, facts: &Facts, verdict: Verdict) {
    if options.metrics_file.is_none() {
        return;
    }
    let mut phases = Phases::new();
    for phase in cx.phases() {
        *phases.entry(phase.name).or_default() +=
            std::time::Duration::from_millis(phase.duration_ms).as_secs_f64();
    }
    let blocked = u64::from(verdict == Verdict::Blocked);
    let figures = Figures {
        agent: prepared.plan.harness.name.clone(),
        verdict: verdict.as_str(),
        good: matches!(verdict, Verdict::Success | Verdict::Skipped),
        duration: cx.elapsed(),
        phases,
        totals: facts.totals(),
        findings: cx.findings.borrow().counts().clone(),
        blocked: blocked + facts.hooks.map_or(0, |hooks| hooks.denied),
        ..Figures::default()
    };
    write(options, figures, &cx.ui);
}

/// A file that cannot be written is told, and that is all.
fn write(options: &Options, mut figures: Figures, ui: &Printer) {
    let Some(path) = &options.metrics_file else { return };
    figures.active = journal::read_all().map_or(0, |found| count(found.entries.len()));
    let now = jiff::Timestamp::now();
    figures.ended = std::time::Duration::try_from(now.duration_since(jiff::Timestamp::UNIX_EPOCH))
        .unwrap_or_default()
        .as_secs_f64();
    if let Err(why) = telemetry::add_metrics(path, &figures) {
        ui.warn(&format!("the metrics file {} was not written: {why}", path.display()));
    }
}

/// Sends the spans. Nobody waits long who has cancelled, or while something is still to be cleaned up.
pub(super) async fn send(sender: Sender, trace: &Recorder, ui: &Printer, signals: Option<(&Signals, bool)>) {
    let cancelled = signals.is_some_and(|(signals, clean)| signals.first().is_some() || !clean);
    let hurry = async {
        match signals {
            Some((signals, _)) => drop(signals.wait(if signals.first().is_some() { 2 } else { 1 }).await),
            None => std::future::pending().await,
        }
    };
    sender.send(trace, ui, cancelled, hurry).await;
}
