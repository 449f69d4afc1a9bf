//! The validation loop's judgement of one iteration: the schemas, then the harness's script, then the reviewer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::context::{Cx, Note};
use super::feedback::Refusal;
use super::meter::Meter;
use super::prepare::Prepared;
use super::review::{ReviewRecord, Word};
use super::reviewer;
use super::script::Script;
use crate::error::{Code, Error, Result};
use crate::harness::model::Validation;
use crate::import::Import;
use crate::output_check::check_all;

/// What one iteration left on the host.
#[derive(Debug)]
pub(super) struct Iteration<'a> {
    /// Its number.
    pub number: u32,
    /// `iteration-N` in the run directory.
    pub dir: &'a Path,
    /// The staged repository, when there is one.
    pub repo: Option<&'a Path>,
    /// The same with what is known of it.
    pub import: Option<&'a Import>,
    /// The private temp dir of the run.
    pub tmp: &'a Path,
}

/// What the checks said.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Why the output is not valid.
    pub refusal: Option<Refusal>,
    /// What the reviewer said, where it was asked.
    pub review: Option<ReviewRecord>,
    /// Why the reviewer came to no verdict.
    pub failure: Option<Error>,
}

/// Whether the iteration's output is valid. A check is only asked where those before it accepted.
pub(super) async fn validate(
    cx: &Cx,
    prepared: &Prepared,
    validation: &Validation,
    iteration: &Iteration<'_>,
    meter: &Meter,
) -> Result<Judged> {
    let mut refusal = None;
    let checks = prepared.plan.harness.output_checks();
    if !checks.is_empty() || validation.script.is_some() {
        cx.phase("validate", async {
            let faults = check_all(&checks, &iteration.dir.join("output"))?;
            refusal = if faults.is_empty() {
                script(cx, prepared, validation, iteration).await?
            } else {
                Some(Refusal::Files(faults))
            };
            let error = refusal.as_ref().map(Refusal::error);
            let note = error.as_ref().map_or("valid", Error::message);
            Ok(((), Note::judged(note, error.as_ref().map(Error::code))))
        })
        .await?;
    }
    let Some(agent) = validation.escalate.as_ref().filter(|_| refusal.is_none()) else {
        return Ok(Judged { refusal, ..Judged::default() });
    };
    let reviewed = reviewer::review(cx, prepared, agent, iteration, meter).await;
    let verdict = reviewed.record.verdict.clone().filter(|verdict| verdict.verdict == Word::Reject);
    let number = iteration.number;
    let rejected = verdict.map(|verdict| Refusal::Review { by: agent.clone(), verdict, number });
    Ok(Judged { refusal: rejected, review: Some(reviewed.record), failure: reviewed.failure })
}

async fn script(
    cx: &Cx,
    prepared: &Prepared,
    validation: &Validation,
    iteration: &Iteration<'_>,
) -> Result<Option<Refusal>> {
    let Some(path) = &validation.script else { return Ok(None) };
    let mut extra = vec![
        ("TARGET_REPO_DIR", iteration.repo.map(PathBuf::from).unwrap_or_default().into_os_string()),
        ("FULLSEND_RUN_DIR", OsString::from(&cx.id.dir)),
    ];
    extra.extend(validation.schema.iter().map(|s| ("FULLSEND_OUTPUT_SCHEMA", OsString::from(s.as_str()))));
    let script = Script {
        label: "validation script",
        path,
        cwd: iteration.dir,
        deadline: prepared.plan.deadlines.script,
        late: Code::ValidationFailed,
    };
    let output = script.run(&prepared.script_env(), &extra, &cx.ui).await?;
    if output.status.success() {
        return Ok(None);
    }
    // A script sees secrets, and what it says goes back into the sandbox.
    Ok(Some(Refusal::Script {
        number: iteration.number,
        status: output.status,
        stdout: cx.ui.redact(&output.stdout_text()),
        stderr: cx.ui.redact(&output.stderr_text()),
    }))
}
