//! Harness and facts to [`Plan`]: every decision of a run, made before its first side effect. Pure.

mod build;
mod commands;
pub mod deadlines;
pub mod env;
pub mod files;
pub mod layout;
mod render;
pub mod repo;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use build::{Inputs, build};
pub use commands::{CommandLine, commands};
pub use render::{Estimate, json, text};

use crate::harness::model::{Harness, ProviderDef, ProviderUse, Scope};
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

/// What a run will do. The same value is rendered by a dry run and executed by a run.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent decisions, each with a name")]
pub struct Plan {
    /// The version of this format.
    pub version: u32,
    /// The resolved harness.
    pub harness: Harness,
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
    /// The command that starts the agent, as a line for bash.
    pub agent_command: String,
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
        self.deadlines.sum(self.iterations, scripts, checks, u32::try_from(providers).unwrap_or(u32::MAX))
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
        CreateSpec {
            name: id.sandbox.clone(),
            image: self.harness.image.clone(),
            policy: self.harness.policy.clone().map(Into::into),
            providers: self.harness.providers.iter().map(|p| instance_name(p, id)).collect(),
            labels: labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect::<BTreeMap<_, _>>(),
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
        expires: None,
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
