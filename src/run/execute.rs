//! A run from its options to its exit status.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::after::{self, Ended};
use super::bootstrap::bootstrap;
use super::claim;
use super::cleanup::{Owned, cleanup};
use super::context::Cx;
use super::guard::Guard;
use super::guard::protocol::Message;
use super::identity::Identity;
use super::iterate::{Iterated, iterate};
use super::options::Options;
use super::outcome::{Verdict, weightiest};
use super::prepare::{Prepared, find_openshell, prepare, sketch, upload_options};
use super::provision::provision;
use super::record::{self, Facts};
use super::signals::Signals;
use super::{before, handover, known_secrets, security, servers, telling};
use crate::error::{Code, Error, Result};
use crate::plan::repo::{Manifest, UploadOptions, agent_config, agent_config_notes};
use crate::plan::{self, Estimate};
use crate::report::Printer;
use crate::secrets::Secret;
use crate::status::{Ending, Job};
use crate::telemetry::{self, Recorder, Status};

/// When the guard takes over after the first signal. GitHub kills a cancelled job 10 seconds after its INT.
const GUARD_AFTER_SIGNAL: Duration = Duration::from_secs(6);

/// Runs an agent; everything is told through `ui`. Returns the exit status.
pub async fn run(options: &Options, ui: &Printer) -> u8 {
    let dir = crate::harness::find_dir(options.fullsend_dir.as_deref(), &options.working_dir);
    let mut status = Job::plan(&options.status, &options.agent, options.forge, dir, &options.env_files, ui);
    let (trace, sender) = match telemetry::start(&options.agent, ui) {
        Ok(started) => started,
        Err(error) => {
            ui.error(&error);
            handover::early(options, &error, ui);
            return error.exit_code();
        }
    };
    crate::process::trace::trace(trace.clone());
    let (exit, ending, run_dir) = match start(options, ui, status.as_ref().map(Job::token), &trace).await {
        Ok((cx, prepared, upload)) => {
            if let Some(status) = &mut status {
                status.begin(&cx.id.id, cx.id.started, cx.id.expires, ui);
            }
            let mut facts = Facts::default();
            let ended = execute(&cx, &prepared, &upload, &mut facts).await;
            telling::metrics(options, &cx, &prepared, &facts, ended.verdict);
            telling::send(sender, &cx.trace, ui, Some((&cx.signals, facts.clean))).await;
            let reason = ui.redact(&ended.reason);
            let cancelled = cx.signals.first().is_some();
            let ending = Ending { verdict: ended.verdict, reason, own: ended.own, cancelled };
            (ended.exit, ending, Some(cx.id.dir))
        }
        Err(error) => {
            ui.error(&error);
            handover::early(options, &error, ui);
            telling::not_started(options, &trace, &error, ui);
            telling::send(sender, &trace, ui, None).await;
            // The secrets of the run are not known yet, so that nothing may be quoted.
            let reason = format!("{}: {}", error.code(), error.code().summary());
            let cancelled = error.code() == Code::Cancelled;
            let ending = Ending { verdict: Verdict::of(&error), reason, own: true, cancelled };
            (error.exit_code(), ending, None)
        }
    };
    if let Some(status) = status {
        let told = status.end(ending, ui).await;
        if let Some(Err(error)) = run_dir.map(|dir| record::add_comment(&dir, &told, ui)) {
            ui.warn(&format!("run.json does not say what became of the status comment: {}", error.message()));
        }
    }
    exit
}

/// Shows what a run would do.
pub async fn dry_run(options: &Options, json: bool, ui: &Printer) -> Result<()> {
    let sketch = sketch(options).await?;
    let manifest = Manifest::take(&sketch.repo, &upload_options(&sketch.plan, options, ui.ci())).await?;
    let trusted = sketch.plan.harness.trust_repo_config;
    let config = agent_config_notes(&agent_config(&sketch.repo.top), trusted);
    let estimate = Estimate::measure(&sketch.plan, manifest.entries.len(), manifest.bytes)?;
    if json {
        let warnings: Vec<_> =
            sketch.warnings.iter().chain(&manifest.warnings).chain(&config).cloned().collect();
        let value = plan::json(&sketch.plan, &sketch.openshell, &estimate, &warnings);
        ui.data(&format!("{value:#}\n"));
    } else {
        for warning in sketch.warnings.iter().chain(&manifest.warnings).chain(&config) {
            ui.warn(warning);
        }
        ui.plain(&plan::text(&sketch.plan, &sketch.openshell, &estimate));
    }
    Ok(())
}

/// Everything up to the point where the run has an identity and a guard.
async fn start(
    options: &Options,
    ui: &Printer,
    token: Option<Secret>,
    trace: &Recorder,
) -> Result<(Cx, Prepared, UploadOptions)> {
    trace.phase("prepare");
    if !options.shared_executor {
        ui.ci().refuse_shared(|name| std::env::var(name).ok())?;
    }
    // Signals and the guard come before the first child, so that none can be orphaned.
    let line: Arc<OnceLock<Guard>> = Arc::default();
    let to_arm = Arc::clone(&line);
    let signals = Signals::install(move |_| {
        if let Some(guard) = to_arm.get() {
            guard.arm(GUARD_AFTER_SIGNAL);
        }
    })?;
    let openshell = find_openshell(options);
    if let Ok(openshell) = &openshell {
        let guard = signals.guard(Guard::start(openshell)).await?;
        let _ = line.set(guard);
    }
    let prepared = signals.guard(prepare(options, openshell, ui)).await;
    let (guard, prepared) = match (line.get(), prepared) {
        (Some(guard), Ok(prepared)) => (guard.clone(), prepared),
        (guard, prepared) => {
            if let Some(guard) = guard {
                guard.tell(&Message::Release);
            }
            return Err(prepared.err().unwrap_or_else(|| Error::bug("there is no guard")));
        }
    };
    let secrets =
        known_secrets::registry(&prepared, token).and_then(|secrets| secrets.check().map(|()| secrets));
    match secrets {
        Ok(secrets) => ui.hide(&secrets),
        Err(error) => {
            guard.tell(&Message::Release);
            return Err(error);
        }
    }
    if let Some((limit, what)) = prepared.plan.ends_after() {
        signals.expire_after(limit, what);
    }
    let keep = options.keep_sandbox.unwrap_or_default();
    let id =
        Identity::create(&prepared.plan.harness.name, &options.output_dir(), prepared.plan.lifetime(), keep)?;
    let upload = upload_options(&prepared.plan, options, ui.ci());
    let redact = |text: &str| ui.redact(text);
    trace.open(&id.dir, &redact);
    trace.phase_ended(Status::Ok, "", &redact);
    Ok((Cx::new(ui.clone(), signals, guard, id, trace.clone()), prepared, upload))
}

async fn execute(cx: &Cx, prepared: &Prepared, upload: &UploadOptions, facts: &mut Facts) -> Ended {
    let plan = &prepared.plan;
    cx.ui.title(&format!(
        "fullsend {}: {} on {} ({})",
        env!("CARGO_PKG_VERSION"),
        plan.harness.name,
        plan.repo,
        if plan.local { "embedded backend" } else { "OpenShell" },
    ));
    if plan.local {
        cx.ui.warn(crate::local::NOTE);
    }
    let failed =
        |facts: &Facts, error: &Error| after::report(cx, prepared, facts, Some(error), Verdict::of(error));
    let mut failures = Vec::new();
    // What was fetched lies here until it is applied or left as a patch.
    let tmp = match private_dir(cx) {
        Ok(tmp) => tmp,
        Err(error) => return failed(facts, &error),
    };
    if let Err(error) = claim::open(cx, prepared, tmp.path()) {
        return failed(facts, &error);
    }
    let ending = match sandboxed(cx, prepared, upload, tmp.path(), facts, &mut failures).await {
        Ok(ending) => ending,
        Err(error) => {
            failures.push(error);
            None
        }
    };
    cx.ui.end_section();
    after::conclude(cx, prepared, ending, facts, &mut failures).await;
    match &facts.staged {
        // The staged tree, which stays, could not be beside the checkout.
        Some(staged) if staged.starts_with(tmp.path()) => {
            let _ = tmp.keep();
        }
        _ => drop(tmp),
    }
    if let Some(signal) = cx.signals.first()
        && !failures.iter().any(|e| e.code() == Code::Cancelled)
    {
        // It came when nothing could be cut short any more; whoever sent it has to see that it was heard.
        failures.push(Error::cancelled(signal));
    }
    let error = weightiest(failures);
    let verdict = match (&error, &facts.skip_reason) {
        (Some(error), _) => Verdict::of(error),
        (None, Some(_)) => Verdict::Skipped,
        (None, None) => Verdict::Success,
    };
    let ended = after::report(cx, prepared, facts, error.as_ref(), verdict);
    if facts.clean {
        claim::settle(cx, facts.kept.is_some());
        cx.guard.tell(&Message::Release);
    }
    ended
}

fn private_dir(cx: &Cx) -> Result<tempfile::TempDir> {
    let tmp = tempfile::Builder::new()
        .prefix("fullsend-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(|e| {
            Error::io("cannot make a private temp dir", &e)
                .help("set TMPDIR to a directory that can be written")
        })?;
    cx.guard.tell(&Message::Tmp(tmp.path().to_owned()));
    // From here on every temporary file of this process lies in there, and goes with it should the run be killed.
    let _ = tempfile::env::override_temp_dir(tmp.path());
    Ok(tmp)
}

/// The part of a run that may own a sandbox. Whatever happens in it, the sandbox is deleted before this returns.
async fn sandboxed(
    cx: &Cx,
    prepared: &Prepared,
    upload: &UploadOptions,
    tmp: &Path,
    facts: &mut Facts,
    failures: &mut Vec<Error>,
) -> Result<Option<after::Ending>> {
    facts.clean = true;
    before::preflight_check(cx, prepared).await?;
    let answer = before::pre_script(cx, prepared).await?;
    facts.outputs = answer.outputs;
    if let Some(reason) = answer.skip {
        facts.skip_reason = Some(reason);
        return Ok(None);
    }
    security::scan(cx, prepared).await?;
    let mut owned = Owned::default();
    if let Err(error) = servers::start(cx, prepared).await {
        end_servers(cx).await;
        return Err(error);
    }
    let (session, result) = within(cx, prepared, upload, tmp, &mut owned, facts).await;
    let result = match result {
        Ok(iterated) => {
            failures.extend(iterated.failures);
            Ok(iterated.ending)
        }
        Err(error) => Err(error),
    };
    if prepared.plan.keep_sandbox && owned.ready {
        facts.kept = Some(claim::kept(cx));
    }
    match cleanup(cx, prepared, session, owned).await {
        Ok(clean) => facts.clean = clean,
        Err(error) => {
            // The guard goes on trying once this process has ended.
            facts.clean = false;
            failures.push(error);
        }
    }
    failures.extend(end_servers(cx).await);
    result
}

/// Ends the servers; the error is of one that had ended before, which nobody else has seen.
async fn end_servers(cx: &Cx) -> Option<Error> {
    let servers = cx.servers.get()?;
    let dead = servers.dead();
    servers.stop(cx.signals.first().is_some()).await;
    dead
}

/// Up to the last iteration; the connection comes back whatever happened, for the cleanup.
async fn within(
    cx: &Cx,
    prepared: &Prepared,
    upload: &UploadOptions,
    tmp: &Path,
    owned: &mut Owned,
    facts: &mut Facts,
) -> (Option<crate::remote::Session>, Result<Iterated>) {
    cx.ui.section("sandbox");
    let provisioned = match provision(cx, prepared, upload, tmp, owned).await {
        Ok(provisioned) => provisioned,
        Err(error) => return (None, Err(error)),
    };
    facts.repo_config.clone_from(&provisioned.repo_config);
    match bootstrap(cx, prepared, provisioned).await {
        Ok(mut bootstrapped) => {
            if let Err(error) = servers::reach(cx, prepared, &mut bootstrapped.session).await {
                return (Some(bootstrapped.session), Err(error));
            }
            let result = iterate(cx, prepared, &mut bootstrapped, tmp, facts).await;
            (Some(bootstrapped.session), result)
        }
        // The connection went down with the phase, which ends its processes.
        Err(error) => (None, Err(error)),
    }
}
