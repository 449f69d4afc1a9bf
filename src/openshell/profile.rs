//! Provider profiles: kept on the gateway in step with the harness directory.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::sleep;

use super::argv;
use super::client::{Answer, Openshell, not_run};
use super::dialect::Dialect;
use super::text::{Trouble, has_any, trouble};
use crate::error::{Code, Error, Result};

/// Rounds of look, then change; other runs may change the same profile in between.
const ROUNDS: u32 = 5;
/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(100);
/// The field with which the gateway detects a concurrent change.
const VERSION: &str = "resource_version";

/// What became of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synced {
    /// The gateway had the same content.
    Same,
    /// It was imported.
    Imported,
    /// It replaced another content.
    Updated,
}

impl Openshell {
    /// Makes the gateway's profile `id` have the content of `file` (YAML or JSON). Compared by content, so that
    /// nothing is written when nothing changed; several runs may do this at once.
    ///
    /// # Errors
    /// [`Code::ProviderRefused`] when the file is not acceptable or another run keeps a different content.
    pub async fn sync_profile(&self, d: &Dialect, id: &str, file: &Path) -> Result<Synced> {
        let wanted = read_profile(file)?;
        let mut last = None;
        for _ in 0..ROUNDS {
            let answer = match self.exported(d, id).await? {
                None => {
                    let args = argv::profile_import(d, file);
                    let answer = self.change_profile(&label(d, "import"), args).await?;
                    if answer.success() {
                        return Ok(Synced::Imported);
                    }
                    answer
                }
                Some(found) if same(&wanted, &found) => return Ok(Synced::Same),
                Some(found) => {
                    let update = with_version(&wanted, &found)?;
                    let args = argv::profile_update(d, id, update.path());
                    let answer = self.change_profile(&label(d, "update"), args).await?;
                    if answer.success() {
                        return Ok(Synced::Updated);
                    }
                    answer
                }
            };
            let text = answer.text.to_ascii_lowercase();
            // Another run was faster: look again.
            let raced = matches!(
                trouble(&text),
                Some(Trouble::AlreadyExists | Trouble::Conflict | Trouble::NotFound | Trouble::Unreachable)
            ) || has_any(&text, &["expected_resource_version", "precondition"]);
            let error = answer.error(Code::ProviderRefused);
            if !raced {
                return Err(error.help(format!("check {} with `openshell profile lint`", file.display())));
            }
            last = Some(error);
            sleep(PAUSE).await;
        }
        let error = last.unwrap_or_else(|| Error::bug("no round of a profile sync ran"));
        Err(error
            .help(format!("another run keeps changing profile `{id}`, or it is built in and cannot change")))
    }

    /// Makes profiles take effect, on releases where that is a setting of the gateway.
    pub async fn enable_providers_v2(&self, d: &Dialect) -> Result<()> {
        if !d.facts.providers_v2_setting {
            return Ok(());
        }
        let label = "openshell settings set";
        let answer =
            self.run(label, argv::enable_providers_v2(), self.deadlines.change).await.map_err(not_run)?;
        // Later releases removed the key together with the old behaviour.
        if answer.success() || answer.text.to_ascii_lowercase().contains("unknown setting key") {
            return Ok(());
        }
        Err(answer.error(Code::OpenshellCall))
    }

    async fn exported(&self, d: &Dialect, id: &str) -> Result<Option<Value>> {
        let label = label(d, "export");
        let args = argv::profile_export(d, id);
        let answer = self.run(&label, args, self.deadlines.read).await.map_err(not_run)?;
        if !answer.success() {
            return match trouble(&answer.text) {
                Some(Trouble::NotFound) => Ok(None),
                _ => Err(answer.error(Code::ProviderRefused)),
            };
        }
        serde_json::from_slice(&answer.output.stdout).map(Some).map_err(|e| {
            Error::new(Code::OpenshellCall, format!("`{label} {id} -o json` printed something else: {e}"))
        })
    }

    /// Whether the gateway has a profile of that id.
    ///
    /// # Errors
    /// [`Code::ProviderRefused`] when the gateway does not say.
    pub async fn has_profile(&self, d: &Dialect, id: &str) -> Result<bool> {
        Ok(self.exported(d, id).await?.is_some())
    }

    async fn change_profile(&self, label: &str, args: Vec<std::ffi::OsString>) -> Result<Answer> {
        self.run(label, args, self.deadlines.change).await.map_err(not_run)
    }
}

/// The call as this openshell spells it.
fn label(d: &Dialect, verb: &str) -> String {
    format!("openshell {} {verb}", d.facts.profile_words.join(" "))
}

fn read_profile(file: &Path) -> Result<Map<String, Value>> {
    let text = fs_err::read_to_string(file)
        .map_err(|e| Error::new(Code::FileMissing, format!("a provider profile cannot be read: {e}")))?;
    match serde_saphyr::from_str(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Error::new(Code::YamlType, format!("{}: a profile is a mapping", file.display()))),
        Err(e) => Err(Error::new(Code::YamlSyntax, format!("{}: {e}", file.display()))),
    }
}

/// What an export adds that no file has: seen on 0.0.83 (the first) and 0.0.112.
const ADDED: &[&str] = &[VERSION, "source", "scope"];

/// Whether two profiles say the same. Defaults may be spelled out on one side, so empty values count as absent.
fn same(wanted: &Map<String, Value>, found: &Value) -> bool {
    let mut wanted = Value::Object(wanted.clone());
    let mut found = found.clone();
    for side in [&mut wanted, &mut found] {
        if let Value::Object(map) = side {
            map.retain(|key, _| !ADDED.contains(&key.as_str()));
        }
        prune(side);
    }
    wanted == found
}

/// Removes empty values from mappings.
fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            map.retain(|_, v| !is_empty(v));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) => false,
    }
}

/// The wanted profile with the version of the one it replaces, in a file that the CLI takes.
fn with_version(wanted: &Map<String, Value>, found: &Value) -> Result<tempfile::NamedTempFile> {
    let mut map = wanted.clone();
    map.insert(VERSION.to_owned(), found.get(VERSION).cloned().unwrap_or(Value::from(0)));
    let write = || -> std::io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix("fullsend-profile-").suffix(".json").tempfile()?;
        serde_json::to_writer(&mut file, &map)?;
        file.flush()?;
        Ok(file)
    };
    write().map_err(|e| Error::io("cannot write a provider profile", &e))
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;

    const YAML: &str = "id: tool\ndisplay_name: Tool\ncredentials:\n  - name: key\n    env_vars: [TOOL_KEY]\n    required: true\nendpoints: []\n";
    const EXPORT: &str = r#"{"id":"tool","display_name":"Tool","description":"","resource_version":7,"source":"user","scope":"workspace","inference_capable":false,"credentials":[{"required":true,"name":"key","env_vars":["TOOL_KEY"],"header_name":""}]}"#;

    fn wanted() -> Map<String, Value> {
        let Value::Object(map) = serde_saphyr::from_str(YAML).unwrap() else { panic!() };
        map
    }

    #[test]
    fn defaults_spelled_out_and_the_version_do_not_count() {
        let found: Value = serde_json::from_str(EXPORT).unwrap();
        assert!(same(&wanted(), &found));
        let other: Value = serde_json::from_str(&EXPORT.replace("TOOL_KEY", "OTHER")).unwrap();
        assert!(!same(&wanted(), &other));
        let more: Value =
            serde_json::from_str(&EXPORT.replace("\"id\":", "\"category\":\"x\",\"id\":")).unwrap();
        assert!(!same(&wanted(), &more));
    }

    /// An `openshell` that keeps the exported text in a file of `dir` and records its calls.
    fn gateway(dir: &Path, import: &str) -> Openshell {
        let body = format!(
            "cd '{}' || exit 9; echo \"$*\" >>calls\ncase $2 in\nexport) [ -e stored ] && cat stored || {{ echo \"Error:   × \
             provider profile 'tool' not found\" >&2; exit 1; }};;\nimport) {import};;\nupdate) cp \"$5\" stored;;\nesac",
            dir.display()
        );
        scripted(dir, &body)
    }

    async fn sync(openshell: &Openshell, dir: &Path) -> Result<Synced> {
        fs_err::write(dir.join("tool.yaml"), YAML).unwrap();
        openshell.sync_profile(&Dialect::newest(), "tool", &dir.join("tool.yaml")).await
    }

    #[tokio::test]
    async fn a_profile_is_imported_once_and_updated_when_it_changed() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = gateway(dir.path(), &format!("echo '{EXPORT}' >stored"));
        assert_eq!(sync(&openshell, dir.path()).await.unwrap(), Synced::Imported);
        assert_eq!(sync(&openshell, dir.path()).await.unwrap(), Synced::Same);
        fs_err::write(dir.path().join("stored"), EXPORT.replace("Tool", "Old")).unwrap();
        assert_eq!(sync(&openshell, dir.path()).await.unwrap(), Synced::Updated);
        let stored = fs_err::read_to_string(dir.path().join("stored")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&stored).unwrap()[VERSION], 7);
    }

    #[tokio::test]
    async fn a_lost_race_is_the_same_when_the_content_is() {
        let dir = tempfile::tempdir().unwrap();
        let lost = format!(
            "echo '{EXPORT}' >stored; printf \"Provider profile diagnostics:\\nerror profile=tool field=id custom provider \
             profile 'tool' already exists\\nError:   × provider profile import failed\\n\" >&2; exit 1"
        );
        let openshell = gateway(dir.path(), &lost);
        assert_eq!(sync(&openshell, dir.path()).await.unwrap(), Synced::Same);
    }

    #[tokio::test]
    async fn a_bad_profile_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let bad = "echo 'field=file failed to parse provider profile YAML: missing field `x`' >&2; exit 1";
        let error = sync(&gateway(dir.path(), bad), dir.path()).await.unwrap_err();
        assert_eq!(error.code(), Code::ProviderRefused);
        let calls = fs_err::read_to_string(dir.path().join("calls")).unwrap();
        assert_eq!(calls.lines().count(), 2, "{calls}");
    }

    #[tokio::test]
    async fn the_setting_is_left_alone_where_it_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let unknown = scripted(dir.path(), "echo \"unknown setting key 'providers_v2_enabled'\" >&2; exit 1");
        let old = Dialect::of_version("openshell 0.0.110").unwrap();
        unknown.enable_providers_v2(&old).await.unwrap();
        let broken = scripted(dir.path(), "echo 'disk full' >&2; exit 1");
        assert!(broken.enable_providers_v2(&old).await.is_err());
        broken.enable_providers_v2(&Dialect::newest()).await.unwrap();
    }
}
