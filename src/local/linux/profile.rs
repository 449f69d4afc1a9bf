//! Provider profiles: `profile list|export|import|update|delete`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fail::{Fail, Outcome, Rpc};
use super::policy::not_empty;
use super::provider::Provider;
use super::state::{self, State};

/// The kind of entry in the state directory.
const KIND: &str = "profiles";

/// A stored profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Profile {
    pub(super) id: String,
    pub(super) resource_version: u64,
    /// The document as imported, without `resource_version`.
    pub(super) document: Value,
}

impl Profile {
    /// The profile of that id.
    pub(super) fn find(state: &State, id: &str) -> Outcome<Option<Self>> {
        state::read(&state.entry(KIND, id))
    }

    /// All profiles, by id.
    pub(super) fn all(state: &State) -> Outcome<Vec<Self>> {
        state.all(KIND)
    }

    /// Whether it opens any endpoint.
    pub(super) fn has_endpoints(&self) -> bool {
        not_empty(self.document.get("endpoints"))
    }

    /// The document with its version, as `export` prints it. JSON is YAML too.
    pub(super) fn export(&self) -> Value {
        let mut document = self.document.clone();
        if let Some(map) = document.as_object_mut() {
            map.insert("resource_version".to_owned(), self.resource_version.into());
        }
        document
    }
}

/// A diagnostic of `import`, printed before the failure.
fn diagnostic(path: &Path, id: &str, field: &str, text: &str) -> String {
    format!("Provider profile diagnostics:\n  error {} profile={id} field={field} {text}\n", path.display())
}

/// A profile document of a file, with its id and the version it names.
fn load(path: &Path) -> Result<(String, Option<u64>, Value), String> {
    let refuse = |id: &str, field: &str, text: &str| diagnostic(path, id, field, text);
    let bad_file =
        |text: String| refuse("-", "file", &format!("failed to parse provider profile YAML: {text}"));
    let text = std::fs::read_to_string(path).map_err(|e| refuse("-", "file", &e.to_string()))?;
    let mut document: Value = serde_saphyr::from_str(&text).map_err(|e| bad_file(e.to_string()))?;
    let Some(map) = document.as_object_mut() else {
        return Err(bad_file("expected a mapping".to_owned()));
    };
    let version = map.remove("resource_version").and_then(|v| v.as_u64());
    for field in ["id", "display_name"] {
        match map.get(field) {
            Some(Value::String(s)) if !s.is_empty() => {}
            Some(_) => return Err(bad_file(format!("invalid value for field `{field}`"))),
            None => return Err(bad_file(format!("missing field `{field}`"))),
        }
    }
    let id = map.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
    if id.len() > 64 || !id.bytes().all(plain) {
        return Err(refuse(&id, "id", "id must be a lowercase slug of at most 64 characters"));
    }
    Ok((id, version, document))
}

/// The files of `--file F` or `--from DIR`.
pub(super) fn sources(file: Option<PathBuf>, dir: Option<PathBuf>) -> Outcome<Vec<PathBuf>> {
    let Some(dir) = dir else { return Ok(file.into_iter().collect()) };
    let mut found = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|x| e == *x)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Imports all of the files or none. An id that exists is an error. Returns how many; the text of an error has
/// the diagnostics first.
pub(super) fn import(state: &State, paths: &[PathBuf]) -> Result<usize, (String, Fail)> {
    let wrap = |fail: Fail| (String::new(), fail);
    let _lock = state.lock().map_err(wrap)?;
    let mut diagnostics = String::new();
    let mut fresh = Vec::new();
    for path in paths {
        match load(path) {
            Err(text) => diagnostics.push_str(&text),
            Ok((id, _, document)) => {
                if Profile::find(state, &id).map_err(wrap)?.is_some() {
                    let text = format!("custom provider profile '{id}' already exists");
                    diagnostics.push_str(&diagnostic(path, &id, "id", &text));
                }
                fresh.push(Profile { id, resource_version: 1, document });
            }
        }
    }
    if !diagnostics.is_empty() {
        return Err((diagnostics, Fail::new("provider profile import failed")));
    }
    for profile in &fresh {
        state::write(&state.entry(KIND, &profile.id), profile).map_err(wrap)?;
    }
    Ok(fresh.len())
}

/// Replaces a profile; the file must name the version that it replaces.
pub(super) fn update(state: &State, id: &str, path: &Path) -> Result<(), (String, Fail)> {
    let failed = || Fail::new("provider profile update failed");
    let (found, version, document) = load(path).map_err(|text| (text, failed()))?;
    if found != id {
        let text = diagnostic(path, &found, "id", &format!("id does not match '{id}'"));
        return Err((text, failed()));
    }
    let wrap = |fail: Fail| (String::new(), fail);
    let _lock = state.lock().map_err(wrap)?;
    let mut profile = get(state, id).map_err(wrap)?;
    if version.is_none_or(|v| v == 0) {
        let text = "custom provider profile update requires a non-zero resource_version; export the current \
                    profile before editing it";
        return Err((diagnostic(path, id, "resource_version", text), failed()));
    }
    if version != Some(profile.resource_version) {
        let text = format!(
            "provider profile was modified concurrently (current resource_version: {})",
            profile.resource_version
        );
        return Err(wrap(Fail::rpc(Rpc::Aborted, text)));
    }
    profile.resource_version += 1;
    profile.document = document;
    state::write(&state.entry(KIND, id), &profile).map_err(wrap)
}

/// The profile, or the reference's words for its absence.
pub(super) fn get(state: &State, id: &str) -> Outcome<Profile> {
    Profile::find(state, id)?.ok_or_else(|| Fail::rpc(Rpc::NotFound, "provider profile not found"))
}

/// Deletes a profile, unless a provider refers to it (OpenShell 0.1.x).
pub(super) fn delete(state: &State, id: &str) -> Outcome {
    let _lock = state.lock()?;
    get(state, id)?;
    let users: Vec<String> =
        Provider::all(state)?.into_iter().filter(|p| p.kind == id).map(|p| p.name).collect();
    if !users.is_empty() {
        let text = format!("provider profile '{id}' is used by provider(s): {}", users.join(", "));
        return Err(Fail::rpc(Rpc::FailedPrecondition, text));
    }
    fs_err::remove_file(state.entry(KIND, id))?;
    Ok(())
}
