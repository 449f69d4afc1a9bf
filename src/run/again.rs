//! A further start of the agent in the same sandbox: why, with what, and from where.

use std::time::Duration;

use serde::Serialize;

use super::prepare::Prepared;
use crate::error::{Code, Error, Result};
use crate::harness::model::Budgets;
use crate::plan::env::quote;
use crate::plan::layout::{HOOKS_DIR, Layout, OUTPUT_DIR, PRISTINE, SUPERVISOR};
use crate::plan::{Plan, Start};
use crate::process::Stdin;
use crate::remote::Session;

/// The pause before the first new start after a failure of the model API; each further one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(3);
/// What an agent is told that goes on after such a failure.
const GO_ON: &str =
    "The connection to the model API was lost for a while. Go on with the task where you left off.";

/// Why the agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    /// It is the first time.
    First,
    /// The last output was not valid.
    Invalid,
    /// The model API failed.
    ApiError,
}

/// One start of the agent.
#[derive(Debug)]
pub(super) struct Next {
    /// 1 for the first.
    pub number: u32,
    /// Why.
    pub why: Why,
    /// The session that goes on.
    pub resume: Option<String>,
    /// What was wrong with the last output that was checked.
    pub feedback: Option<String>,
}

impl Next {
    /// The first start.
    pub(super) fn first() -> Self {
        Self { number: 1, why: Why::First, resume: None, feedback: None }
    }

    /// What the agent is asked.
    fn prompt(&self, plan: &Plan) -> String {
        match (&self.resume, &self.feedback) {
            // It was told already.
            (Some(_), _) if self.why == Why::ApiError => GO_ON.to_owned(),
            (Some(_), Some(feedback)) => feedback.clone(),
            (Some(_), None) => GO_ON.to_owned(),
            (None, Some(feedback)) => format!("{}\n\n{feedback}", plan.prompt()),
            (None, None) => plan.prompt().to_owned(),
        }
    }

    /// The same without the session. None where that could do harm: nobody knows how far an agent came that was cut
    /// off while it changed the repository.
    pub(super) fn anew(self, plan: &Plan, changed: bool) -> Option<Self> {
        let harmless = self.why != Why::ApiError || !changed || plan.resets();
        harmless.then_some(Self { resume: None, ..self })
    }
}

/// How long to wait before the model API is asked again, after `failures` failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    let factor = 4_u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}

/// The status of the preparation where the session that should go on is not in the sandbox.
const GONE: i32 = 73;

/// Prepares the sandbox for a further start; `false` when the session that should go on is not there any more, and
/// nothing was done. Nothing of the last one may be left that could be taken for its result:
/// no process that still writes, no output, and, where the session does not go on, no transcript.
pub(super) async fn prepare(
    prepared: &Prepared,
    session: &Session,
    marker: &str,
    next: &Next,
    left: Budgets,
) -> Result<bool> {
    let plan = &prepared.plan;
    let start = Start {
        number: next.number,
        feedback: next.feedback.is_some(),
        resume: next.resume.as_deref(),
        left,
    };
    let mut files = vec![("prompt", next.prompt(plan)), ("command", plan.command(&start))];
    files.extend(next.feedback.clone().map(|text| ("feedback", text)));
    let archive = archive(&files).map_err(|e| Error::io("cannot make an archive", &e))?;
    let script = script(plan, marker, next);
    let label = "start over";
    let command = session.command(label, &script).stdin(Stdin::Bytes(archive));
    let output = command.deadline(plan.deadlines.bootstrap).output().await;
    let output = session.finished(label, output)?;
    match output.status.code() {
        Some(0) => return Ok(true),
        Some(GONE) => return Ok(false),
        _ => {}
    }
    Err(Error::new(Code::BootstrapFailed, "the sandbox could not be prepared for a further iteration")
        .detail(output.stderr_text())
        .help("the agent took away the right to delete or write below /sandbox/workspace, or the disk is full; look at what it did in its stream"))
}

fn script(plan: &Plan, marker: &str, next: &Next) -> String {
    let transcripts = plan.harness.runtime.runtime().transcripts().map_or("", |t| t.dir);
    let dir = Layout::iteration(next.number);
    let repo = quote(&plan.layout.repo);
    let mut gone = vec![format!("{HOOKS_DIR}/*"), dir.clone()];
    // An agent that goes on where it was cut off has not been judged yet: its output is half of the next one.
    if next.why != Why::ApiError || next.resume.is_none() {
        gone.push(OUTPUT_DIR.to_owned());
    }
    if next.resume.is_none() {
        gone.push(transcripts.to_owned());
    }
    let runtime = plan.harness.runtime.runtime();
    let there = next.resume.as_deref().and_then(|session| runtime.resumable(session));
    let mut lines: Vec<_> =
        there.map(|there| format!("{{ {there}; }} </dev/null || exit {GONE}")).into_iter().collect();
    lines.extend([
        format!("sh {SUPERVISOR} sweep {marker} </dev/null"),
        format!("rm -rf {} && mkdir -p {OUTPUT_DIR} {transcripts} {dir} || exit 70", gone.join(" ")),
    ]);
    if plan.resets() && next.may_reset() {
        if plan.harness.readonly_repo {
            lines.push(format!("chmod -R u+w {repo} </dev/null"));
        }
        lines.push(format!("rsync -a --delete --checksum {PRISTINE}/ {repo}/ </dev/null || exit 71"));
    }
    lines.push(format!("tar -xf - -C {dir} || exit 72"));
    lines.join("\n")
}

impl Next {
    /// Whether the repository may be set back: not under an agent that goes on where it was cut off.
    fn may_reset(&self) -> bool {
        self.why == Why::Invalid || self.resume.is_none()
    }
}

fn archive(files: &[(&str, String)]) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, name, text.as_bytes())?;
    }
    tar.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let seconds: Vec<_> = (1..=5).map(|n| pause(n).as_secs()).collect();
        assert_eq!(seconds, [10, 40, 160, 180, 180]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
