//! After the sandbox is gone: post-script, apply, and the words at the end.

use std::ffi::OsString;
use std::path::PathBuf;

use super::context::Cx;
use super::handover;
use super::keep::Kept;
use super::outcome::Verdict;
use super::prepare::Prepared;
use super::record::{self, ChangeRecord, Facts};
use super::script::Script;
use super::telling;
use crate::error::{Code, Error, Result};
use crate::import::Import;
use crate::plan::repo::names;
use crate::report::duration;

/// What the iterations left for the end.
#[derive(Debug)]
pub(super) struct Ending {
    /// Changes of a read-only repository.
    pub left_alone: usize,
    /// The staged result of the last iteration.
    pub import: Option<Import>,
    /// The number of the iteration whose output validated.
    pub validated: Option<u32>,
    /// What of the staged result is in the run directory already.
    pub kept: Option<Kept>,
}

/// Hands the result to whoever takes it: the post-script, the checkout, or a patch in the run directory.
pub(super) async fn conclude(
    cx: &Cx,
    prepared: &Prepared,
    ending: Option<Ending>,
    facts: &mut Facts,
    failures: &mut Vec<Error>,
) {
    let Some(ending) = ending else { return };
    if let Some(import) = &ending.import {
        facts.changes = import
            .changes()
            .iter()
            .map(|c| ChangeRecord { path: names::shown(&c.path), kind: c.kind })
            .collect();
    }
    let mut kept = ending.kept;
    if let Some(import) = &ending.import {
        match record_changes(cx, prepared, import, &mut kept).await {
            Ok(()) => {}
            // The run's own failure says more than a limit that its unfinished work is past.
            Err(error) if error.code() == Code::ImportBlocked && !failures.is_empty() => {}
            Err(error) => failures.push(error),
        }
    }
    if failures.is_empty() {
        failures.extend(cx.signals.stopped());
    }
    if failures.is_empty() && prepared.plan.post_script {
        cx.ui.section("post-script");
        failures.extend(post_script(cx, prepared, &ending).await.err());
    }
    let good = failures.is_empty() && cx.signals.first().is_none();
    let Some(import) = ending.import else { return };
    if prepared.plan.harness.readonly_repo {
        if ending.left_alone > 0 {
            cx.ui.warn(&format!(
                "the agent changed {} path(s) of a read-only repository; nothing of it was taken over",
                ending.left_alone
            ));
        }
        failures.extend(import.discard().err());
        return;
    }
    let taken = if good && prepared.plan.apply {
        cx.ui.section("apply");
        apply(cx, prepared, &import, facts).await
    } else {
        leave(cx, prepared, &import, kept, facts).await
    };
    match taken {
        Ok(()) => failures.extend(import.discard().err()),
        Err(error) => {
            // The staged tree is what is left of the agent's work, so it stays.
            facts.staged = import.dir().map(PathBuf::from);
            failures.push(error);
            if !facts.patch {
                // A second copy in the form that is easy to take; its own failure is no news.
                let _ = leave(cx, prepared, &import, kept, facts).await;
            }
        }
    }
}

/// Writes the change into the run directory, whoever takes it, then holds it against the harness's limits.
async fn record_changes(
    cx: &Cx,
    prepared: &Prepared,
    import: &Import,
    kept: &mut Option<Kept>,
) -> Result<()> {
    let repo = &prepared.world.repo;
    let patch_bytes = if let Some(kept) = kept {
        kept.patch_bytes
    } else {
        let patch_bytes = import.write_changes(&cx.id.dir, repo).await?;
        *kept = Some(Kept { patch_bytes, bundle: false });
        patch_bytes
    };
    import.check_limits(&prepared.plan.harness.limits, patch_bytes, repo).await
}

async fn post_script(cx: &Cx, prepared: &Prepared, ending: &Ending) -> Result<()> {
    let Some(path) = &prepared.plan.harness.post_script else { return Ok(()) };
    let repo = ending.import.as_ref().and_then(Import::dir);
    let mut extra = vec![("REPO_DIR", repo.map_or_else(OsString::new, |dir| dir.as_os_str().to_owned()))];
    if let Some(n) = ending.validated {
        let dir = cx.id.dir.join(format!("iteration-{n}")).join("output");
        extra.push(("FULLSEND_VALIDATED_ITERATION_DIR", dir.into_os_string()));
    }
    if let Some(schema) = prepared.plan.harness.validation.as_ref().and_then(|v| v.schema.as_ref()) {
        extra.push(("FULLSEND_OUTPUT_SCHEMA", schema.as_str().into()));
    }
    cx.phase("post-script", async {
        let script = Script {
            label: "post-script",
            path,
            cwd: &cx.id.dir,
            deadline: prepared.plan.deadlines.script,
            late: Code::PostScript,
        };
        let output = script.run(&prepared.script_env(), &extra, &cx.ui).await?;
        if output.status.success() {
            return Ok(((), String::new()));
        }
        Err(Error::new(Code::PostScript, format!("the post-script ended with {}", output.status))
            .help("its output stands above; the agent's results are in the run directory"))
    })
    .await
}

async fn apply(cx: &Cx, prepared: &Prepared, import: &Import, facts: &mut Facts) -> Result<()> {
    if import.is_unchanged() {
        cx.ui.info("apply", "the agent left the repository as it was");
        return Ok(());
    }
    // Not ended by a first signal: a checkout that is half changed helps nobody, and this is quick.
    cx.recorded("apply", async {
        let applied = import.apply(&prepared.world.repo).await?;
        Ok(((), format!("{} path(s), {} branch(es) and tag(s)", applied.changes.len(), applied.refs.len())))
    })
    .await?;
    facts.applied = true;
    Ok(())
}

/// Patch and bundle for a result that nobody takes now.
async fn leave(
    cx: &Cx,
    prepared: &Prepared,
    import: &Import,
    kept: Option<Kept>,
    facts: &mut Facts,
) -> Result<()> {
    if import.is_unchanged() {
        return Ok(());
    }
    if kept.is_none() {
        import.write_changes(&cx.id.dir, &prepared.world.repo).await?;
    }
    facts.patch = true;
    if !kept.is_some_and(|k| k.bundle) {
        import.write_bundle(&cx.id.dir, &prepared.world.repo).await?;
    }
    Ok(())
}

/// How a run ended, for whoever tells others.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit status.
    pub exit: u8,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in one line.
    pub reason: String,
    /// Whether the reason is a text of this program, with nothing foreign in it.
    pub own: bool,
}

/// The error, `run.json`, and the last lines.
pub(super) fn report(
    cx: &Cx,
    prepared: &Prepared,
    facts: &Facts,
    error: Option<&Error>,
    verdict: Verdict,
) -> Ended {
    cx.ui.end_section();
    let written = record::write(cx, prepared, facts, error, verdict);
    if let Some(error) = error {
        cx.ui.error(error);
    }
    let exit = error.or(written.as_ref().err()).map_or(0, Error::exit_code);
    telling::conclude(cx, prepared, facts, error, verdict, exit);
    if let Err(error) = &written {
        cx.ui.error(error);
    }
    cx.ui.closing("verdict", &format!("{} (exit {exit}, {})", verdict.as_str(), duration(cx.elapsed())));
    let reason = match (error, &facts.skip_reason) {
        (Some(error), _) => format!("{}: {}", error.code(), error.message()),
        (None, Some(reason)) => format!("the pre-script asked to skip: {reason}"),
        (None, None) => good_reason(facts),
    };
    cx.ui.closing("reason", &reason);
    cx.ui.closing("results", &cx.id.dir.display().to_string());
    let next = next(cx, prepared, facts, error);
    for (key, value) in &next {
        cx.ui.closing(key, value);
    }
    handover::late(
        cx,
        prepared,
        facts,
        &handover::End { error, verdict, exit, reason: reason.clone(), next },
    );
    let own = error.is_none() && facts.skip_reason.is_none();
    Ended { exit, verdict, reason, own }
}

fn good_reason(facts: &Facts) -> String {
    let last = facts.iterations.last();
    let agent = match last.and_then(|i| i.result.as_ref()) {
        Some(_) => "the agent reported success",
        None => "the agent exited with status 0",
    };
    let valid = if facts.validated.is_some() { ", its output is valid" } else { "" };
    let changes = match facts.changes.len() {
        0 => String::new(),
        1 => ", 1 path changed".into(),
        n => format!(", {n} paths changed"),
    };
    format!("{agent}{valid}{changes}")
}

/// What to do now.
fn next(cx: &Cx, prepared: &Prepared, facts: &Facts, error: Option<&Error>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(staged) = &facts.staged {
        lines.push((
            "staged",
            format!("{} holds the agent's work; copy what you need, then delete it", staged.display()),
        ));
    }
    if let Some(until) = facts.kept {
        let openshell = prepared.world.openshell.argv().join(" ");
        let name = &cx.id.sandbox;
        let until = until.strftime("%Y-%m-%d %H:%M UTC");
        lines.push((
            "sandbox",
            format!("{name} is kept until {until}; after that `fullsend reap` deletes it"),
        ));
        lines.push(("enter", format!("{openshell} sandbox exec --name {name} --tty -- /bin/bash -l")));
        lines.push(("delete", format!("fullsend stop {}", cx.id.id)));
    }
    let text = match (error, facts.applied, facts.patch) {
        (Some(error), _, _) => error.help_text(),
        (None, true, _) => "look at the result: git status".into(),
        (None, false, true) => {
            format!("take the changes over: git apply {}/changes.patch", cx.id.dir.display())
        }
        (None, false, false) => match facts.iterations.last() {
            Some(last) => format!("look at the output: {}/{}/output", cx.id.dir.display(), last.dir),
            None => "nothing".into(),
        },
    };
    lines.push(("next", text));
    lines
}
