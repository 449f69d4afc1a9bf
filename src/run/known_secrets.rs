//! The secrets of this run: what its providers carry, and what its environments and files show to be one.

use std::collections::BTreeSet;
use std::path::Path;

use super::prepare::Prepared;
use crate::error::Result;
use crate::harness::model::{Harness, ProviderUse};
use crate::secrets::{self, Registry, Secret};

/// Larger files are not looked through, in bytes; keys and accounts are small.
const READ: u64 = 256 * 1024;

/// All of them, ready to be searched for.
pub(super) fn registry(prepared: &Prepared, more: Option<Secret>) -> Result<Registry> {
    let harness = &prepared.plan.harness;
    let written = Written::read(harness);
    let mut found: Vec<Secret> = more.into_iter().collect();
    for provider in &harness.providers {
        let ProviderUse::Defined(def) = provider else { continue };
        let values = def.credentials.values().filter(|v| secrets::is_credential(v.expose()));
        found.extend(values.filter(|v| !written.holds(v)).cloned());
    }
    for (name, value) in harness.runner_env.iter().chain(&harness.sandbox_env) {
        found.extend(secrets::of_variable(name, value.expose()).into_iter().filter(|v| !written.holds(v)));
    }
    for (name, value) in harness.api_servers.iter().flat_map(|server| &server.env) {
        found.extend(secrets::of_variable(name, value.expose()).into_iter().filter(|v| !written.holds(v)));
    }
    found.extend(prepared.world.token.clone());
    found.extend(crate::telemetry::secrets());
    for (name, value) in &prepared.world.file_env {
        found.extend(secrets::of_variable(name, value));
    }
    for file in &harness.host_files {
        if let Some(text) = &file.content {
            found.extend(secrets::of_file(text.expose()).into_iter().filter(|v| !written.holds(v)));
        } else {
            found.extend(small_text(file.src.as_std_path()).iter().flat_map(|text| secrets::of_file(text)));
        }
    }
    // What the sandbox never gets can still be printed by a script on the host, or by a program that it starts.
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            found.extend(secrets::of_variable(name, value));
        }
    }
    Registry::guarded(found)
}

/// Text that stands in the harness itself. Who wrote a value there did not take it for a secret, unless it looks like
/// one.
struct Written(BTreeSet<String>);

impl Written {
    fn read(harness: &Harness) -> Self {
        let providers = harness.providers.iter().filter_map(|p| match p {
            ProviderUse::Defined(def) => {
                Some(harness.dir.join("providers").join(format!("{}.yaml", def.name)))
            }
            ProviderUse::Existing(_) => None,
        });
        let files = providers.chain([harness.file.clone()]);
        Self(files.filter_map(|file| small_text(file.as_std_path())).collect())
    }

    fn holds(&self, value: &Secret) -> bool {
        let value = value.expose();
        !secrets::looks_made(value) && self.0.iter().any(|text| text.contains(value))
    }
}

fn small_text(path: &Path) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    (meta.is_file() && meta.len() <= READ).then(|| std::fs::read_to_string(path).ok())?
}
