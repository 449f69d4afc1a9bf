//! Providers and the sandbox. The archive is built while the sandbox is being created.

use std::path::Path;
use std::time::Duration;

use super::claim;
use super::cleanup::Owned;
use super::context::Cx;
use super::guard::protocol::Message;
use super::inputs;
use super::pack::{Packed, pack};
use super::prepare::Prepared;
use super::queue::Queue;
use super::record::RepoConfigRecord;
use super::squeeze;
use crate::error::{Code, Error, Result};
use crate::harness::model::{ProviderUse, Scope};
use crate::openshell::CreateError;
use crate::plan::repo::{Manifest, UploadOptions, agent_config, agent_config_notes};
use crate::process::scale;
use crate::remote::{OpenSpec, Session};
use crate::report::bytes;

/// A sandbox that is ready and connected, and the archive for it.
#[derive(Debug)]
pub(super) struct Provisioned {
    /// The connection.
    pub session: Session,
    /// What was packed.
    pub packed: Packed,
    /// The repository as it was packed.
    pub manifest: Manifest,
    /// Configuration of agent programs in the repository.
    pub repo_config: Vec<RepoConfigRecord>,
}

/// How often a create is tried, and the pauses between.
const CREATE_PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];

/// Brings providers and sandbox up.
pub(super) async fn provision(
    cx: &Cx,
    prepared: &Prepared,
    upload: &UploadOptions,
    tmp: &Path,
    owned: &mut Owned,
) -> Result<Provisioned> {
    let queue = Queue::of(cx, prepared);
    if let Some(queue) = &queue {
        cx.phase("queue", queue.wait()).await?;
    }
    if !prepared.plan.harness.providers.is_empty() {
        cx.phase("providers", providers(prepared, cx, owned)).await?;
    }
    let packing = cx.signals.guard(packing(cx, prepared, upload, tmp));
    let creating = async {
        let config = cx.phase("sandbox", create(cx, prepared, owned, queue.as_ref())).await?;
        cx.phase("connect", connect(cx, prepared, config, tmp)).await
    };
    let ((manifest, packed), session) = tokio::try_join!(packing, creating)?;
    let config = agent_config(&prepared.world.repo.top);
    for warning in &manifest.warnings {
        cx.ui.warn(warning);
    }
    for note in agent_config_notes(&config, upload.trust_repo_config) {
        cx.ui.warn(&note);
    }
    let repo_config = config
        .into_iter()
        .map(|config| RepoConfigRecord { uploaded: !manifest.is_left_out(config.path.as_bytes()), config })
        .collect();
    Ok(Provisioned { session, packed, manifest, repo_config })
}

/// Profiles before providers, and every name checked before anything is created.
async fn providers(prepared: &Prepared, cx: &Cx, owned: &mut Owned) -> Result<((), String)> {
    let (plan, openshell) = (&prepared.plan, &prepared.world.openshell);
    let d = &plan.dialect;
    let specs = plan.provider_specs(&cx.id);
    known(prepared).await?;
    if d.facts.providers_v2_setting && !plan.harness.profiles.is_empty() {
        openshell.enable_providers_v2(d).await?;
    }
    for profile in &plan.harness.profiles {
        openshell.sync_profile(d, &profile.id, profile.file.as_std_path()).await?;
    }
    for (spec, scope) in &specs {
        if *scope == Scope::Run {
            cx.guard.tell(&Message::Provider(spec.name.clone()));
            owned.providers.push(spec.name.clone());
        }
    }
    let making = specs.iter().map(|(spec, _)| async { openshell.ensure_provider(d, spec).await.map(drop) });
    owned.in_flight = true;
    let made = crate::run::join_all(making).await;
    owned.in_flight = false;
    made?;
    let names: Vec<_> = plan.harness.providers.iter().map(ProviderUse::name).collect();
    Ok(((), names.join(", ")))
}

/// Names that the harness does not define must be on the gateway, and every type needs its profile where OpenShell
/// would otherwise drop all static credentials of the sandbox without a word (0.0.103 and later).
async fn known(prepared: &Prepared) -> Result<()> {
    let (plan, openshell) = (&prepared.plan, &prepared.world.openshell);
    let used = &plan.harness.providers;
    let existing: Vec<_> = used
        .iter()
        .filter_map(|p| match p {
            ProviderUse::Existing(name) => Some(name),
            ProviderUse::Defined(_) => None,
        })
        .collect();
    if !existing.is_empty() {
        let rows = openshell.providers(&plan.dialect).await?;
        for name in existing {
            if !rows.iter().any(|row| row.name == *name) {
                return Err(Error::new(
                    Code::ProviderUnknown,
                    format!("provider {name} is defined neither in providers/ nor on the gateway"),
                )
                .help(format!(
                    "add providers/{name}.yaml, or create it: openshell provider create --name {name} …"
                )));
            }
        }
    }
    if plan.dialect.facts.provider_needs_profile {
        for provider in used {
            let ProviderUse::Defined(def) = provider else { continue };
            let id = plan.dialect.profile_of(&def.kind);
            if plan.harness.profiles.iter().any(|p| p.id == id) {
                continue;
            }
            if !openshell.has_profile(&plan.dialect, id).await? {
                return Err(Error::new(
                    Code::ProfileMissing,
                    format!("provider {} has type {}, which has no profile", def.name, def.kind),
                )
                .help(format!("add profiles/{id}.yaml, or import the profile on the gateway")));
            }
        }
    }
    Ok(())
}

async fn packing(
    cx: &Cx,
    prepared: &Prepared,
    upload: &UploadOptions,
    tmp: &Path,
) -> Result<(Manifest, Packed)> {
    let (plan, repo, dir) = (prepared.plan.clone(), prepared.world.repo.clone(), tmp.to_owned());
    let uploads = inputs::uploads(&plan, &cx.id.dir)?;
    let (manifest, squeezed) = tokio::join!(Manifest::take(&repo, upload), squeeze::program(&uploads));
    let manifest = manifest?;
    tokio::task::spawn_blocking(move || {
        let packed = pack(&plan, &uploads, &repo, &manifest, squeezed, &dir)?;
        Ok((manifest, packed))
    })
    .await
    .map_err(|e| Error::bug(format!("building the archive: {e}")))?
}

/// Creates the sandbox. One of a queue stays only when it is among the oldest. What comes back is the ssh configuration,
/// which says nothing that depends on the phase: it is asked for while the sandbox becomes ready.
async fn create(
    cx: &Cx,
    prepared: &Prepared,
    owned: &mut Owned,
    queue: Option<&Queue<'_>>,
) -> Result<(Result<Vec<u8>>, String)> {
    let (openshell, plan) = (&prepared.world.openshell, &prepared.plan);
    loop {
        let name = create_once(cx, prepared, owned).await?;
        let created = tokio::time::Instant::now();
        let ready = openshell.wait_ready(&plan.dialect, &name, plan.deadlines.ready);
        let (ready, config) = tokio::join!(ready, openshell.ssh_config(&name));
        ready?;
        match queue {
            Some(queue) if !queue.admitted(created).await? => {
                cx.ui.info("queue", "another run was first; its sandbox stays, this one is deleted");
                openshell.delete(&plan.dialect, &name, plan.deadlines.delete).await?;
                queue.wait().await?;
            }
            _ => {
                owned.ready = true;
                if plan.keep_sandbox {
                    claim::keep(cx);
                }
                return Ok((config, name));
            }
        }
    }
}

async fn create_once(cx: &Cx, prepared: &Prepared, owned: &mut Owned) -> Result<String> {
    let (plan, openshell) = (&prepared.plan, &prepared.world.openshell);
    let spec = plan.create_spec(&cx.id);
    cx.guard.tell(&Message::Sandbox(spec.name.clone()));
    owned.sandbox = Some(spec.name.clone());
    let mut pauses = CREATE_PAUSES.iter();
    loop {
        // A cancel leaves this function here, and the mark stays.
        owned.in_flight = true;
        let created = openshell.create(&plan.dialect, &spec).await;
        owned.in_flight = false;
        match created {
            Ok(()) => return Ok(spec.name),
            Err(CreateError::Permanent(error)) => return Err(error),
            Err(CreateError::Retry(error)) => {
                // The record of a failed create keeps its name taken.
                openshell.delete(&plan.dialect, &spec.name, plan.deadlines.delete).await?;
                let Some(pause) = pauses.next() else { return Err(error) };
                cx.ui.warn(&format!("{}; trying again", error.message()));
                tokio::time::sleep(scale::pause(*pause)).await;
            }
        }
    }
}

async fn connect(
    cx: &Cx,
    prepared: &Prepared,
    config: Result<Vec<u8>>,
    tmp: &Path,
) -> Result<(Session, String)> {
    let openshell = &prepared.world.openshell;
    let program = openshell.program();
    let session = Session::open(OpenSpec {
        ssh_config: &config?,
        program: &program,
        env: openshell.child_env(),
        dir: tmp,
        limit: prepared.plan.deadlines.connect,
        made: &|dir| claim::dir(cx, dir),
    })
    .await?;
    Ok((session, String::new()))
}

impl Provisioned {
    /// A note on what goes in.
    pub(super) fn note(&self) -> String {
        format!(
            "{} files, {}",
            self.manifest.entries.len() + self.packed.files.len(),
            bytes(self.packed.size)
        )
    }
}
