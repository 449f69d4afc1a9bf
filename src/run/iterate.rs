//! The iterations: agent, collect, validate, until the output is valid or the tries are used up.

use std::path::Path;

use super::after::Ending;
use super::agent_phase::{Ran, run_agent};
use super::artefacts;
use super::bootstrap::Bootstrapped;
use super::collect::{Collected, collect};
use super::context::Cx;
use super::prepare::Prepared;
use super::record::{Facts, IterationRecord};
use super::validate::{Iteration, validate};
use crate::agent::{Evidence, judge};
use crate::error::{Code, Error, Result};
use crate::plan::layout::{OUTPUT_DIR, SUPERVISOR};
use crate::remote::Session;
use crate::report::last_lines;
use crate::secrets::Registry;

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

/// Runs the iterations.
pub(super) async fn iterate(
    cx: &Cx,
    prepared: &Prepared,
    sandbox: &mut Bootstrapped,
    tmp: &Path,
    facts: &mut Facts,
) -> Result<Iterated> {
    let plan = &prepared.plan;
    let secrets = Registry::new(&artefacts::secrets(prepared));
    let mut last = Iterated { failures: Vec::new(), ending: None };
    for n in 1..=plan.iterations {
        let dir = cx.id.dir.join(format!("iteration-{n}"));
        fs_err::create_dir(&dir)?;
        if n > 1 {
            start_over(prepared, &sandbox.session, cx.id.id.as_str()).await?;
        }
        let mut ran = run_agent(cx, prepared, &mut sandbox.session, n, &dir, &secrets).await?;
        let mut failures = ran.failures(cx, plan.deadlines.agent, plan.deadlines.idle);
        let collected = collect(cx, prepared, sandbox, n, &dir, tmp, &ran, &secrets).await;
        let (collected, blocked) = match collected {
            Ok(collected) => (Some(collected), None),
            Err(error) => (None, Some(error)),
        };
        failures.extend(blocked);
        // What the agent said about itself counts only where nothing outside it went wrong.
        if failures.is_empty() {
            failures.extend(against(&ran, n, &dir));
        }
        let agent_ended_well = failures.is_empty();
        let mut valid = None;
        if let (Some(validation), Some(collected), true) =
            (&plan.harness.validation, &collected, agent_ended_well)
        {
            let iteration = Iteration { dir: &dir, repo: collected.staged_dir() };
            match validate(cx, prepared, validation, &iteration).await {
                Ok(verdict) => {
                    valid = Some(verdict.is_ok());
                    failures.extend(verdict.err());
                }
                // Nobody judged the work, which is kept like that of any other failure.
                Err(error) => failures.push(error),
            }
        }
        facts.iterations.push(record(n, ran, valid));
        if valid == Some(true) {
            facts.validated = Some(n);
        }
        let retry = valid == Some(false) && n < plan.iterations && cx.signals.stopped().is_none();
        last = Iterated { failures, ending: collected.map(|c| ending(c, n, valid)) };
        if !retry {
            break;
        }
        cx.ui.warn(&format!("the output of iteration {n} is not valid; starting iteration {}", n + 1));
    }
    if let (Some(error), true) = (last.failures.first(), plan.iterations > 1)
        && error.code() == Code::ValidationFailed
    {
        let said = error.message().to_owned();
        let detail = error.detail_text().unwrap_or_default().to_owned();
        last.failures[0] = Error::new(
            Code::ValidationFailed,
            format!("no valid output after {} iterations; last: {said}", plan.iterations),
        )
        .detail(detail)
        .help(error.help_text());
    }
    Ok(last)
}

/// Before a further iteration nothing of the last one may be left that could be taken for its result: no process
/// that still writes, no output, no transcript.
async fn start_over(prepared: &Prepared, session: &Session, marker: &str) -> Result<()> {
    let transcripts = prepared.plan.harness.runtime.runtime().transcripts().map_or("", |t| t.dir);
    let script = format!(
        "sh {SUPERVISOR} sweep {marker}; rm -rf {OUTPUT_DIR} {transcripts} && mkdir -p {OUTPUT_DIR} {transcripts}"
    );
    let output = session.exec("start over", &script, prepared.plan.deadlines.connect).await?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::new(Code::BootstrapFailed, "the output of the last iteration could not be cleared")
        .detail(output.stderr_text())
        .help("the agent took away the right to delete below /sandbox/workspace; look at what it did in its stream"))
}

fn ending(collected: Collected, n: u32, valid: Option<bool>) -> Ending {
    Ending {
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
        Code::AgentBudget => "raise the budget in the harness, or give the agent less to do".to_owned(),
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

fn record(number: u32, ran: Ran, valid: Option<bool>) -> IterationRecord {
    IterationRecord {
        number,
        dir: format!("iteration-{number}"),
        exit: ran.watched.evidence.exit,
        ended_by: ran.ended_by,
        partial: ran.ended_by.is_early(),
        result: ran.watched.evidence.result,
        metrics: ran.watched.metrics,
        stream: ran.watched.stream,
        reattached: ran.reattached,
        valid,
    }
}
