//! The iterations: agent, collect, validate, until the output is valid or the tries are used up.

use std::path::Path;
use std::time::Instant;

use super::after::Ending;
use super::again::{self, Next, Why};
use super::agent_phase::{Ran, over_budget, run_agent};
use super::bootstrap::Bootstrapped;
use super::collect::{Collected, collect};
use super::context::{Cx, millis};
use super::feedback::Refusal;
use super::keep::{self, Kept};
use super::meter::Meter;
use super::prepare::Prepared;
use super::record::{Facts, IterationRecord};
use super::security;
use super::tokens;
use super::validate::{Iteration, Judged, validate};
use crate::agent::{self, Evidence, Metrics, judge};
use crate::error::{Code, Error, Result};
use crate::import::Import;
use crate::plan::Plan;
use crate::process::scale;
use crate::report::{duration, last_lines};

/// How much of the agent's standard error an error report shows.
const STDERR_LINES: usize = 8;
const STDERR_BYTES: usize = 8 * 1024;

/// How the iterations ended.
#[derive(Debug)]
pub(super) struct Iterated {
    /// What counts against success.
    pub failures: Vec<Error>,
    /// What there is to be taken over.
    pub ending: Option<Ending>,
}

/// How one start of the agent went.
#[derive(Debug, Default)]
struct Tried {
    failures: Vec<Error>,
    ending: Option<Ending>,
    /// Why its output is not valid.
    refusal: Option<Refusal>,
    /// What the model API said, where the start died of that alone.
    transient: Option<String>,
    /// Its session.
    session: Option<String>,
    /// Whether it changed the repository.
    changed: bool,
}

/// How far the run has come.
#[derive(Debug)]
struct Course {
    /// Which iteration of the validation loop this is.
    round: u32,
    /// How often the model API failed in this run.
    failures: u32,
}

/// Runs the iterations.
pub(super) async fn iterate(
    cx: &Cx,
    prepared: &Prepared,
    sandbox: &mut Bootstrapped,
    tmp: &Path,
    facts: &mut Facts,
) -> Result<Iterated> {
    let plan = &prepared.plan;
    let mut course = Course { round: 1, failures: 0 };
    let mut next = Next::first();
    loop {
        cx.ui.section(&title(plan, &course, &next));
        let meter = Meter { session: facts.of_session(next.resume.as_deref()), ..meter(plan, facts) };
        let mut tried = once(cx, prepared, sandbox, tmp, facts, &next, meter).await?;
        match again(cx, prepared, facts, &mut course, &next, &mut tried) {
            None => {
                after_all(plan, &mut tried, course.round);
                return Ok(Iterated { failures: tried.failures, ending: tried.ending });
            }
            Some(further) => next = further,
        }
        if next.why == Why::ApiError {
            let pause = again::pause(course.failures);
            cx.ui.info("agent", &format!("starting again in {}", duration(pause)));
            let waited = async {
                tokio::time::sleep(scale::pause(pause)).await;
                Ok(())
            };
            if let Err(error) = cx.signals.guard(waited).await {
                tried.failures.push(error);
                return Ok(Iterated { failures: tried.failures, ending: tried.ending });
            }
        }
        let (left, marker) = (self::meter(plan, facts).left(), cx.id.id.as_str());
        if !again::prepare(prepared, &sandbox.session, marker, &next, left).await? {
            let Some(anew) = next.anew(plan, tried.changed) else {
                cx.ui.warn(
                    "the agent's session is not in the sandbox any more, and it changed the repository",
                );
                return Ok(Iterated { failures: tried.failures, ending: tried.ending });
            };
            cx.ui.warn("the agent's session is not in the sandbox any more; it begins anew");
            next = anew;
            again::prepare(prepared, &sandbox.session, marker, &next, left).await?;
        }
        // What the next one stages takes its place.
        if let Some(Err(error)) = tried.ending.and_then(|ending| ending.import).map(Import::discard) {
            cx.ui.warn(error.message());
        }
    }
}

fn title(plan: &Plan, course: &Course, next: &Next) -> String {
    let how = match (next.why, &next.resume) {
        (Why::ApiError, Some(_)) => ", going on after a failure of the model API",
        (Why::ApiError, None) => ", again after a failure of the model API",
        (Why::Invalid, Some(_)) => ", going on with what was wrong",
        (Why::First, _) | (Why::Invalid, None) => "",
    };
    format!("agent, iteration {} of {}{how}", course.round, plan.iterations)
}

fn meter(plan: &Plan, facts: &Facts) -> Meter {
    Meter { budgets: plan.harness.budgets, before: facts.totals(), ..Meter::default() }
}

/// One start: agent, collect, validate.
async fn once(
    cx: &Cx,
    prepared: &Prepared,
    sandbox: &mut Bootstrapped,
    tmp: &Path,
    facts: &mut Facts,
    next: &Next,
    meter: Meter,
) -> Result<Tried> {
    let plan = &prepared.plan;
    let secrets = cx.ui.secrets();
    let n = next.number;
    let begun = Instant::now();
    let dir = cx.id.dir.join(format!("iteration-{n}"));
    fs_err::create_dir(&dir)?;
    if let Some(feedback) = &next.feedback {
        fs_err::write(dir.join("feedback.txt"), feedback)?;
    }
    let before = meter.session;
    let mut ran = run_agent(cx, prepared, sandbox, n, &dir, meter.clone(), &secrets).await?;
    let mut failures = ran.failures(cx, plan.deadlines.agent, plan.deadlines.idle);
    let collected = collect(cx, prepared, sandbox, n, &dir, tmp, &ran, &secrets).await;
    tokens::complete(plan.harness.runtime.runtime(), &dir, &mut ran.watched.metrics, before);
    let (collected, blocked) = match collected {
        Ok(collected) => (Some(collected), None),
        Err(error) => (None, Some(error)),
    };
    if let (Some(blocked), false) = (&blocked, failures.is_empty()) {
        // The error of the run will be another one.
        cx.ui.warn(&format!(
            "not everything of iteration {n} could be fetched: {}; what arrived is in {}",
            blocked.message(),
            dir.display()
        ));
    }
    failures.extend(blocked);
    let kept = keep_change(cx, prepared, collected.as_ref(), n, facts).await;
    if let Some(report) = collected.as_ref().and_then(|c| c.hooks.as_ref()) {
        let metrics = &ran.watched.metrics;
        // A start that ended early may have asked for a tool that nobody carried out.
        let calls = if judge(&ran.watched.evidence).is_success() {
            metrics.tool_calls.saturating_sub(metrics.tool_errors)
        } else {
            ran.watched.answered
        };
        let counts = facts.hooks.get_or_insert_default();
        failures.extend(security::take_report(cx, plan, report, calls, counts)?);
    }
    let mut transient = None;
    // What the agent said about itself counts only where nothing outside it went wrong.
    if failures.is_empty()
        && let Some(error) = against(&ran, n, &dir)
    {
        transient = agent::transient(&ran.watched.evidence).filter(|_| error.code() != Code::AgentBudget);
        failures.push(error);
    }
    let mut judged = Judged::default();
    let mut valid = None;
    if let (Some(validation), Some(collected), true) =
        (&plan.harness.validation, &collected, failures.is_empty())
    {
        let import = collected.import.as_ref();
        let iteration = Iteration { number: n, dir: &dir, repo: collected.staged_dir(), import, tmp };
        match validate(cx, prepared, validation, &iteration, &meter.after(&ran.watched.metrics)).await {
            Ok(said) => {
                judged = said;
                valid = judged.failure.is_none().then_some(judged.refusal.is_none());
                failures.extend(judged.refusal.as_ref().map(Refusal::error));
                failures.extend(judged.failure.take());
            }
            // Nobody judged the work, which is kept like that of any other failure.
            Err(error) => failures.push(error),
        }
    }
    let left_out = collected.as_ref().map(|c| c.left_out.clone()).unwrap_or_default();
    let session = ran.watched.metrics.session.clone();
    let changed = collected.as_ref().and_then(|c| c.import.as_ref()).is_some_and(|i| !i.is_unchanged());
    let (was_reviewed, reviewed) = (judged.review.is_some(), judged.review);
    facts.iterations.push(IterationRecord {
        left_out,
        review: reviewed,
        duration_ms: millis(begun.elapsed()),
        ..record(next, ran, valid)
    });
    // Of an agent that was over a budget its own failure tells; here it is the reviewer who was.
    let over = self::meter(plan, facts).over(&Metrics::default()).filter(|_| was_reviewed);
    failures.extend(over.as_ref().map(over_budget));
    if over.is_some() {
        valid = None;
    }
    if valid == Some(true) {
        facts.validated = Some(n);
    }
    let ending = collected.map(|c| ending(c, n, valid, kept));
    Ok(Tried { failures, ending, refusal: judged.refusal, transient, session, changed })
}

/// What the iteration brought goes into the run directory; where it brought nothing, the change of an earlier one stays
/// there.
async fn keep_change(
    cx: &Cx,
    prepared: &Prepared,
    collected: Option<&Collected>,
    n: u32,
    facts: &mut Facts,
) -> Option<Kept> {
    match (collected.and_then(|c| c.import.as_ref()), facts.change_of) {
        (Some(import), _) => {
            let kept = keep::early(cx, prepared, import).await?;
            facts.change_of = Some(n);
            Some(kept)
        }
        (None, Some(earlier)) => {
            cx.ui.warn(&format!("changes.patch has the change of iteration {earlier}, not of iteration {n}"));
            None
        }
        (None, None) => None,
    }
}

/// Whether there is a further start, and with what. Says so.
fn again(
    cx: &Cx,
    prepared: &Prepared,
    facts: &Facts,
    course: &mut Course,
    last: &Next,
    tried: &mut Tried,
) -> Option<Next> {
    let plan = &prepared.plan;
    if cx.signals.stopped().is_some() || cx.signals.first().is_some() {
        return None;
    }
    let runtime = plan.harness.runtime.runtime();
    let session = tried.session.clone().filter(|s| is_session(s) && runtime.resumable(s).is_some());
    let further = if let Some(refusal) = &tried.refusal {
        if course.round >= plan.iterations {
            return None;
        }
        let mode = plan.harness.validation.as_ref().map(|v| v.feedback_mode).unwrap_or_default();
        let feedback = refusal.feedback(mode);
        let resume = session.filter(|_| feedback.is_some());
        Next { number: last.number + 1, why: Why::Invalid, resume, feedback }
    } else {
        let said = tried.transient.as_ref()?;
        if course.failures >= plan.harness.api_retries {
            return None;
        }
        if session.is_none() && tried.changed && !plan.resets() {
            cx.ui.warn(&format!(
                "the model API failed ({said}); the agent is not started again: it changed the repository, and its \
                 program cannot go on with a session"
            ));
            return None;
        }
        // What was wrong with an earlier output still is.
        let feedback = last.feedback.clone();
        Next { number: last.number + 1, why: Why::ApiError, resume: session, feedback }
    };
    if let Some(over) = meter(plan, facts).exhausted() {
        tried.failures.insert(0, over_budget(&over));
        return None;
    }
    if further.why == Why::ApiError {
        course.failures += 1;
        let said = tried.transient.as_deref().unwrap_or_default();
        let times = format!("{} of {}", course.failures, plan.harness.api_retries);
        cx.ui.warn(&format!("the model API failed: {said}; trying again ({times})"));
    } else {
        course.round += 1;
        cx.ui.warn(&format!(
            "the output of iteration {} is not valid; starting iteration {}",
            course.round - 1,
            course.round
        ));
    }
    Some(further)
}

/// Sessions are named by the agent's stream, and end in a command line.
pub(super) fn is_session(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && !text.starts_with('-')
}

/// The failure of a loop that found nothing valid says how often it tried.
fn after_all(plan: &Plan, tried: &mut Tried, rounds: u32) {
    let Some(error) = tried.failures.iter_mut().find(|e| e.code() == Code::ValidationFailed) else { return };
    if plan.iterations > 1 {
        *error = Error::new(
            Code::ValidationFailed,
            format!("no valid output after {rounds} iterations; last: {}", error.message()),
        )
        .detail(error.detail_text().unwrap_or_default())
        .help(error.help_text());
    }
}

fn ending(collected: Collected, n: u32, valid: Option<bool>, kept: Option<Kept>) -> Ending {
    Ending {
        kept,
        left_alone: collected.left_alone,
        import: collected.import,
        validated: (valid == Some(true)).then_some(n),
    }
}

/// What the agent's own end says against success.
fn against(ran: &Ran, n: u32, dir: &Path) -> Option<Error> {
    let judgement = judge(&ran.watched.evidence);
    let code = judgement.code()?;
    let help = match code {
        Code::AgentBudget => "raise the budget in the harness, or give the agent less to do; what it had done is in the run directory".to_owned(),
        _ => failed_help(&ran.watched.evidence, n),
    };
    let said = fs_err::read(dir.join("stderr.log")).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[said.len().saturating_sub(STDERR_BYTES)..]).into_owned();
    Some(
        Error::new(code, judgement.reason().unwrap_or("the agent failed"))
            .detail(last_lines(&said, STDERR_LINES))
            .help(help),
    )
}

/// What to do about a failure that the agent reports. OpenShell's proxy answers with this word (0.0.83 to 0.0.112).
fn failed_help(evidence: &Evidence, n: u32) -> String {
    let said = evidence.result.as_ref().map(|r| r.text.as_str()).unwrap_or_default();
    if said.contains("\"policy_denied\"") {
        return "the sandbox's proxy refused a request: check the endpoints and binaries of the profile or policy (a \
                binary is compared after links are followed); with --keep-sandbox, `openshell logs` has the reason"
            .to_owned();
    }
    format!("iteration-{n}/stream.jsonl and stderr.log in the run directory have the whole story")
}

fn record(next: &Next, ran: Ran, valid: Option<bool>) -> IterationRecord {
    let number = next.number;
    IterationRecord {
        number,
        dir: format!("iteration-{number}"),
        why: next.why,
        resumed: next.resume.clone(),
        review: None,
        duration_ms: 0,
        exit: ran.watched.evidence.exit,
        ended_by: ran.ended_by,
        partial: ran.ended_by.is_early(),
        result: ran.watched.evidence.result,
        metrics: ran.watched.metrics,
        stream: ran.watched.stream,
        reattached: ran.reattached,
        valid,
        left_out: Vec::new(),
    }
}
