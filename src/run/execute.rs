//! A run from its options to its exit status.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::after::{self, Ending};
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
use super::record::Facts;
use super::signals::Signals;
use super::{artefacts, before};
use crate::error::{Code, Error, Result};
use crate::plan::repo::{Manifest, UploadOptions};
use crate::plan::{self, Estimate};
use crate::report::Printer;

/// When the guard takes over after the first signal. GitHub kills a cancelled job 10 seconds after its INT.
const GUARD_AFTER_SIGNAL: Duration = Duration::from_secs(6);

/// Runs an agent; everything is told through `ui`. Returns the exit status.
pub async fn run(options: &Options, ui: &Printer) -> u8 {
    match start(options, ui).await {
        Ok((cx, prepared, upload)) => execute(&cx, &prepared, &upload).await,
        Err(error) => {
            ui.error(&error);
            error.exit_code()
        }
    }
}

/// Shows what a run would do.
pub async fn dry_run(options: &Options, json: bool, ui: &Printer) -> Result<()> {
    let sketch = sketch(options).await?;
    let manifest = Manifest::take(&sketch.repo, &upload_options(&sketch.plan, options)).await?;
    let estimate = Estimate::measure(&sketch.plan, manifest.entries.len(), manifest.bytes)?;
    if json {
        let warnings: Vec<_> = sketch.warnings.iter().chain(&manifest.warnings).cloned().collect();
        let value = plan::json(&sketch.plan, &sketch.openshell, &estimate, &warnings);
        ui.data(&format!("{value:#}\n"));
    } else {
        for warning in sketch.warnings.iter().chain(&manifest.warnings) {
            ui.warn(warning);
        }
        ui.plain(&plan::text(&sketch.plan, &sketch.openshell, &estimate));
    }
    Ok(())
}

/// Everything up to the point where the run has an identity and a guard.
async fn start(options: &Options, ui: &Printer) -> Result<(Cx, Prepared, UploadOptions)> {
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
    ui.hide(&artefacts::secrets(&prepared));
    if let Some(limit) = prepared.plan.deadlines.run {
        signals.expire_after(limit);
    }
    let keep = options.keep_sandbox.unwrap_or_default();
    let id =
        Identity::create(&prepared.plan.harness.name, &options.output_dir(), prepared.plan.lifetime(), keep)?;
    let upload = upload_options(&prepared.plan, options);
    Ok((Cx::new(ui.clone(), signals, guard, id), prepared, upload))
}

async fn execute(cx: &Cx, prepared: &Prepared, upload: &UploadOptions) -> u8 {
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
    let mut facts = Facts::default();
    let mut failures = Vec::new();
    // What was fetched lies here until it is applied or left as a patch.
    let tmp = match private_dir(cx) {
        Ok(tmp) => tmp,
        Err(error) => return after::report(cx, prepared, &facts, Some(&error), Verdict::of(&error)),
    };
    if let Err(error) = claim::open(cx, prepared, tmp.path()) {
        return after::report(cx, prepared, &facts, Some(&error), Verdict::of(&error));
    }
    let ending = match sandboxed(cx, prepared, upload, tmp.path(), &mut facts, &mut failures).await {
        Ok(ending) => ending,
        Err(error) => {
            failures.push(error);
            None
        }
    };
    cx.ui.end_section();
    after::conclude(cx, prepared, ending, &mut facts, &mut failures).await;
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
    let exit = after::report(cx, prepared, &facts, error.as_ref(), verdict);
    if facts.clean {
        claim::settle(cx, facts.kept.is_some());
        cx.guard.tell(&Message::Release);
    }
    exit
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
) -> Result<Option<Ending>> {
    facts.clean = true;
    before::preflight_check(cx, prepared).await?;
    let answer = before::pre_script(cx, prepared).await?;
    if let Some(reason) = answer.skip {
        facts.skip_reason = Some(reason);
        return Ok(None);
    }
    let mut owned = Owned::default();
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
    result
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
    match bootstrap(cx, prepared, provisioned).await {
        Ok(mut bootstrapped) => {
            let result = iterate(cx, prepared, &mut bootstrapped, tmp, facts).await;
            (Some(bootstrapped.session), result)
        }
        // The connection went down with the phase, which ends its processes.
        Err(error) => (None, Err(error)),
    }
}
