//! Harness and facts to [`Plan`]: every decision of a run, made before its first side effect. Pure.

mod build;
mod check_program;
mod commands;
pub mod deadlines;
pub mod env;
pub mod files;
mod hooks;
pub mod layout;
mod render;
pub mod repo;
mod start;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use build::{EventFile, Inputs, build};
pub use commands::{CommandLine, commands};
pub use hooks::HookPlan;
pub use render::{Estimate, json, text};
pub use start::Start;

use crate::harness::image_policy::ImagePolicy;
use crate::harness::model::{Gpu, Harness, ProviderDef, ProviderUse, Resources, Scope};
use crate::openshell::names::{label, label_value, provider_instance};
use crate::openshell::{CreateSpec, Dialect, ProviderSpec};
use crate::run::Identity;
use deadlines::Deadlines;
use env::EnvLine;
use files::Upload;
use layout::Layout;

/// Whether the result is applied to the checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Apply {
    /// When the run succeeded and the harness has no post-script to take the result.
    #[default]
    Auto,
    /// Never; patch and bundle are left in the run directory.
    Never,
    /// When the run succeeded, also beside a post-script.
    Always,
}

/// What ends a run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `deadlines.run`.
    Run,
    /// `ttl`.
    Ttl,
}

/// What a run will do. The same value is rendered by a dry run and executed by a run.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent decisions, each with a name")]
pub struct Plan {
    /// The version of this format.
    pub version: u32,
    /// The resolved harness.
    pub harness: Harness,
    /// What the image has to show before a sandbox is made of it.
    #[serde(skip_serializing_if = "ImagePolicy::is_none")]
    pub image_policy: ImagePolicy,
    /// What the openshell at hand can do.
    pub dialect: Dialect,
    /// Whether the embedded backend is used.
    pub local: bool,
    /// The target repository.
    pub repo: Utf8PathBuf,
    /// Where things are in the sandbox.
    pub layout: Layout,
    /// What is delivered besides the repository.
    pub uploads: Vec<Upload>,
    /// The environment of the agent.
    pub env: Vec<EnvLine>,
    /// The hooks on its tool calls.
    pub hooks: Option<HookPlan>,
    /// The name by which the runtime starts the agent.
    pub agent_name: String,
    /// The command that starts the agent first, as a line for bash.
    pub agent_command: String,
    /// The model that the agent is started with, when one was chosen.
    pub model: Option<String>,
    /// The programs that must be found in the sandbox before the agent starts.
    pub programs: Vec<String>,
    /// The most iterations.
    pub iterations: u32,
    /// How long each part may take.
    pub deadlines: Deadlines,
    /// Whether the checkout receives the result of a successful run.
    pub apply: bool,
    /// Whether the post-script runs.
    pub post_script: bool,
    /// Whether the sandbox stays at the end.
    pub keep_sandbox: bool,
    /// What of the harness is not carried out here, for the user to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Plan {
    /// SHA-256 over the plan's serialised form, in hexadecimal. Secrets are masked in it.
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).unwrap_or_default();
        crate::report::hex(Sha256::digest(text))
    }

    /// After how long a run of this plan has ended, whatever happens: the sum of its deadlines and some slack.
    pub fn lifetime(&self) -> Duration {
        let scripts = u32::from(self.harness.pre_script.is_some()) + u32::from(self.post_script);
        let checks = u32::from(self.harness.validation.as_ref().is_some_and(|v| v.script.is_some()));
        let providers = self.harness.providers.len() + self.harness.profiles.len();
        let providers = u32::try_from(providers).unwrap_or(u32::MAX);
        let starts = self.iterations.saturating_add(self.harness.api_retries);
        let mut sum = self.deadlines.sum(starts, scripts, checks, providers);
        if self.harness.validation.as_ref().is_some_and(|v| v.escalate.is_some()) {
            // A review is a run of its own, which says itself when it is over.
            sum = sum.saturating_add(self.deadlines.review.saturating_mul(self.iterations));
        }
        if self.harness.max_concurrent.is_some() {
            sum = sum.saturating_add(self.deadlines.queue);
        }
        match self.ends_after() {
            Some((limit, _)) => sum.min(limit.saturating_add(self.deadlines.teardown())),
            None => sum,
        }
    }

    /// When the work of a run is ended from its start, and what sets that.
    pub fn ends_after(&self) -> Option<(Duration, Limit)> {
        let run = self.deadlines.run.map(|limit| (limit, Limit::Run));
        let ttl = self.harness.ttl.map(|limit| (limit, Limit::Ttl));
        run.into_iter().chain(ttl).min_by_key(|(limit, _)| *limit)
    }

    /// The sandbox to create for a run.
    pub fn create_spec(&self, id: &Identity) -> CreateSpec {
        let agent = label_value(&self.harness.name);
        let mut labels = vec![
            (label::MANAGED_BY, label::FULLSEND),
            (label::RUN, id.id.as_str()),
            (label::AGENT, &agent),
            (label::OWNER, &id.marks.owner),
            (label::EXPIRES, &id.marks.expires),
        ];
        if self.keep_sandbox {
            labels.push((label::KEEP, &id.marks.keep));
        }
        let own = labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned()));
        // The embedded backend has no way to hold to them, which a note of the plan says.
        let asked = if self.local { Resources::default() } else { self.harness.resources.clone() };
        CreateSpec {
            name: id.sandbox.clone(),
            image: self.harness.image.clone(),
            policy: self.harness.policy.clone().map(Into::into),
            providers: self.harness.providers.iter().map(|p| instance_name(p, id)).collect(),
            labels: own.chain(self.harness.labels.clone()).collect::<BTreeMap<_, _>>(),
            cpu: asked.cpu.clone(),
            memory: asked.memory.clone(),
            disk: asked.disk.clone(),
            gpu: asked.gpu.map(|gpu| match gpu {
                Gpu::Any => String::new(),
                Gpu::Count(n) => n.to_string(),
            }),
            ..CreateSpec::default()
        }
    }

    /// The providers that this run creates or updates, with whether each is its own.
    pub fn provider_specs(&self, id: &Identity) -> Vec<(ProviderSpec, Scope)> {
        let defined = self.harness.providers.iter().filter_map(|p| match p {
            ProviderUse::Defined(def) => Some(def),
            ProviderUse::Existing(_) => None,
        });
        defined.map(|def| (provider_spec(def, id), def.scope)).collect()
    }
}

fn provider_spec(def: &ProviderDef, id: &Identity) -> ProviderSpec {
    ProviderSpec {
        name: def_instance(def, id),
        kind: def.kind.clone(),
        credentials: def.credentials.clone(),
        config: def.config.clone(),
        // A shared one is not the run's to end.
        expires: (def.scope == Scope::Run).then(|| id.credentials_expire()),
    }
}

fn instance_name(provider: &ProviderUse, id: &Identity) -> String {
    match provider {
        ProviderUse::Defined(def) => def_instance(def, id),
        ProviderUse::Existing(name) => name.clone(),
    }
}

/// A provider of the run's own never meets another run's credentials of the same name.
fn def_instance(def: &ProviderDef, id: &Identity) -> String {
    match def.scope {
        Scope::Run => provider_instance(&def.name, &id.id),
        Scope::Gateway => def.name.clone(),
    }
}
