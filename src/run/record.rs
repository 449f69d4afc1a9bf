//! `run.json`: what a run was and how it ended, for programs. Version 1.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::again::Why;
use super::context::{Cx, Phase, millis};
use super::outcome::{EndedBy, Verdict};
use super::prepare::Prepared;
use super::review::ReviewRecord;
use super::security::{HookCounts, SecurityRecord};
use super::watch::StreamRecord;
use crate::agent::{Exit, Metrics, ResultEvent, Usage};
use crate::error::{Error, Result};
use crate::import::ChangeKind;
use crate::plan::repo::{AgentConfig, names};
use crate::report::Printer;

/// The name of the schema of `run.json`.
const SCHEMA: &str = "fullsend.run/1";

/// One iteration of the agent.
#[derive(Debug, Serialize)]
pub(super) struct IterationRecord {
    /// 1 for the first.
    pub number: u32,
    /// Its directory, relative to the run directory.
    pub dir: String,
    /// Why the agent was started.
    pub why: Why,
    /// The session that went on.
    pub resumed: Option<String>,
    /// How long it took, from the start of the agent to the end of the checks.
    pub duration_ms: u64,
    /// The agent's exit status.
    pub exit: Exit,
    /// Who ended the agent.
    pub ended_by: EndedBy,
    /// Whether the agent was ended before it was done, so that its results may be incomplete.
    pub partial: bool,
    /// The agent's final result.
    pub result: Option<ResultEvent>,
    /// The agent's figures.
    pub metrics: Metrics,
    /// The raw stream.
    pub stream: StreamRecord,
    /// How often the connection was lost and taken up again.
    pub reattached: u32,
    /// Whether its output validated; nothing when it was not asked.
    pub valid: Option<bool>,
    /// What the reviewer said.
    pub review: Option<ReviewRecord>,
    /// Links and special files of output and transcripts, which are not handed over.
    pub left_out: Vec<String>,
}

/// What an error says, for programs.
#[derive(Debug, Serialize)]
struct ErrorRecord<'a> {
    code: &'static str,
    message: &'a str,
    detail: Option<&'a str>,
    help: String,
}

/// Everything that `run.json` says.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The iterations.
    pub iterations: Vec<IterationRecord>,
    /// The number of the iteration whose output validated.
    pub validated: Option<u32>,
    /// The pre-script's reason to skip.
    pub skip_reason: Option<String>,
    /// The pre-script's other outputs.
    pub outputs: BTreeMap<String, String>,
    /// What happened to the repository: counts by kind.
    pub changes: Vec<ChangeRecord>,
    /// Whether the checkout received the result.
    pub applied: bool,
    /// Whether a patch was left.
    pub patch: bool,
    /// The iteration whose change was written into the run directory last.
    pub change_of: Option<u32>,
    /// What the hooks did.
    pub hooks: Option<HookCounts>,
    /// Whether nothing of the run is left on the gateway.
    pub clean: bool,
    /// Until when the sandbox stays on purpose.
    pub kept: Option<Timestamp>,
    /// The staged tree, when it stays.
    pub staged: Option<std::path::PathBuf>,
    /// Configuration of agent programs in the repository.
    pub repo_config: Vec<RepoConfigRecord>,
}

/// What the repository brings along to configure agent programs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RepoConfigRecord {
    /// Where, and what.
    #[serde(flatten)]
    pub config: AgentConfig,
    /// Whether it went into the sandbox.
    pub uploaded: bool,
}

impl Facts {
    /// The tokens that a session has used so far.
    pub(super) fn of_session(&self, session: Option<&str>) -> Usage {
        let starts = self.iterations.iter().map(|i| &i.metrics);
        session.map(|session| Metrics::tokens_of(starts, session)).unwrap_or_default()
    }

    /// The agent's figures of all iterations, with the tokens and the cost of its reviewers.
    pub(super) fn totals(&self) -> Metrics {
        let mut totals = self.iterations.iter().fold(Metrics::default(), |mut sum, i| {
            sum.add(&i.metrics);
            sum
        });
        if let Some(reviews) = self.reviews() {
            totals.add(&Metrics { tokens: reviews.tokens, cost_usd: reviews.cost_usd, ..Metrics::default() });
        }
        totals
    }

    /// The figures of all reviews; none where there was none.
    pub(super) fn reviews(&self) -> Option<Metrics> {
        self.iterations.iter().filter_map(|i| i.review.as_ref()).map(|review| review.metrics.clone()).reduce(
            |mut sum, one| {
                sum.add(&one);
                sum
            },
        )
    }
}

/// One change of the repository.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ChangeRecord {
    /// The path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

#[derive(Serialize)]
struct Record<'a> {
    schema: &'static str,
    verdict: Verdict,
    exit_code: u8,
    error: Option<ErrorRecord<'a>>,
    skip_reason: Option<&'a str>,
    /// What the pre-script handed to the CI system.
    outputs: &'a BTreeMap<String, String>,
    run: &'a str,
    agent: &'a str,
    fullsend: &'static str,
    openshell: &'a str,
    local: bool,
    plan_digest: String,
    harness: &'a str,
    harness_digest: &'a str,
    image: Option<&'a str>,
    /// The digest that is known: that of the reference. No release of OpenShell tells what a tag resolved to.
    image_digest: Option<&'a str>,
    /// Who signed it, where that was checked.
    image_signer: Option<&'a str>,
    sandbox: &'a str,
    repo: &'a str,
    started: Timestamp,
    duration_ms: u64,
    phases: Vec<Phase>,
    totals: Metrics,
    /// The part of it that is of reviewers, with their turns and tool uses, which are not in the totals.
    reviews: Option<Metrics>,
    iterations: &'a [IterationRecord],
    validated_iteration: Option<u32>,
    changes: &'a [ChangeRecord],
    repo_config: &'a [RepoConfigRecord],
    security: SecurityRecord,
    applied: bool,
    kept_until: Option<Timestamp>,
    staged: Option<&'a Path>,
    artefacts: Vec<String>,
    /// What became of the status comment; nothing where none was asked for, or as long as it is not known.
    status_comment: Option<StatusComment>,
}

/// What became of the status comment.
#[derive(Debug, Serialize)]
struct StatusComment {
    written: bool,
    /// Why not.
    error: Option<String>,
}

/// The most artefacts that are listed; an agent may write any number of files.
const LISTED: usize = 10_000;

/// Every file of the run directory, relative to it, in name order.
fn files_below(dir: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter().flatten();
    let files = entries.filter(|e| e.file_type().is_file());
    files
        .filter_map(|e| Some(names::shown(names::as_bytes(e.path().strip_prefix(dir).ok()?))))
        .filter(|name| !name.starts_with("run.json"))
        .take(LISTED)
        .collect()
}

/// Writes `run.json`, whole or not at all.
pub(super) fn write(
    cx: &Cx,
    prepared: &Prepared,
    facts: &Facts,
    error: Option<&Error>,
    verdict: Verdict,
) -> Result<()> {
    let plan = &prepared.plan;
    let record = Record {
        schema: SCHEMA,
        verdict,
        exit_code: error.map_or(0, Error::exit_code),
        error: error.map(|e| ErrorRecord {
            code: e.code().as_str(),
            message: e.message(),
            detail: e.detail_text(),
            help: e.help_text(),
        }),
        skip_reason: facts.skip_reason.as_deref(),
        outputs: &facts.outputs,
        run: cx.id.id.as_str(),
        agent: &plan.harness.name,
        fullsend: env!("CARGO_PKG_VERSION"),
        openshell: &plan.dialect.version,
        local: plan.local,
        plan_digest: plan.digest(),
        harness: plan.harness.file.as_str(),
        harness_digest: &plan.harness.digest,
        image: plan.harness.image.as_deref(),
        image_digest: plan.harness.image.as_deref().and_then(|i| i.split_once('@')).map(|(_, digest)| digest),
        image_signer: prepared.world.image_signer.as_deref(),
        sandbox: &cx.id.sandbox,
        repo: plan.repo.as_str(),
        started: cx.id.started,
        duration_ms: millis(cx.elapsed()),
        phases: cx.phases(),
        totals: facts.totals(),
        reviews: facts.reviews(),
        iterations: &facts.iterations,
        validated_iteration: facts.validated,
        changes: &facts.changes,
        repo_config: &facts.repo_config,
        security: SecurityRecord::new(cx, &plan.harness, facts.hooks),
        applied: facts.applied,
        kept_until: facts.kept,
        staged: facts.staged.as_deref(),
        artefacts: files_below(&cx.id.dir),
        status_comment: None,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|e| Error::bug(e.to_string()))?;
    // A message may quote what a program said, and that may quote a secret.
    put(&cx.id.dir, &cx.ui.redact(&text))
}

/// Adds what became of the status comment, which is written when everything else has ended.
pub(super) fn add_comment(dir: &Path, told: &Result<()>, ui: &Printer) -> Result<()> {
    let mut record: Value = serde_json::from_slice(&fs_err::read(dir.join("run.json"))?)
        .map_err(|e| Error::bug(format!("run.json cannot be read back: {e}")))?;
    let comment =
        StatusComment { written: told.is_ok(), error: told.as_ref().err().map(|e| e.message().to_owned()) };
    record["status_comment"] = serde_json::to_value(comment).map_err(|e| Error::bug(e.to_string()))?;
    put(dir, &ui.redact(&format!("{record:#}")))
}

/// Replaces the file as a whole.
fn put(dir: &Path, text: &str) -> Result<()> {
    let half = dir.join("run.json.new");
    fs_err::write(&half, format!("{text}\n"))?;
    fs_err::rename(half, dir.join("run.json"))?;
    Ok(())
}
