//! What is checked of a sandbox policy, in the reference's words.

use std::path::Path;

use serde_json::{Map, Value};

use super::fail::{Fail, Outcome, Rpc};

/// The keys of a policy document (OpenShell 0.1.x).
const KEYS: [&str; 6] =
    ["version", "filesystem_policy", "landlock", "process", "network_policies", "network_middlewares"];

/// A policy that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Policy {
    document: Value,
}

impl Policy {
    /// Reads and checks the file.
    pub(super) fn load(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Fail::new(format!("failed to read sandbox policy from {}", path.display())).cause(e)
        })?;
        Self::parse(&text)
    }

    /// What a sandbox without a policy file has: no network.
    pub(super) fn built_in() -> Self {
        Self { document: serde_json::json!({"version": 1}) }
    }

    fn parse(text: &str) -> Outcome<Self> {
        let broken = |cause: String| Fail::new("failed to parse sandbox policy YAML").cause(cause);
        let document: Value = serde_saphyr::from_str(text).map_err(|e| broken(e.to_string()))?;
        let Some(map) = document.as_object() else {
            return Err(broken("invalid type: expected a mapping".to_owned()));
        };
        if let Some(key) = map.keys().find(|k| !KEYS.contains(&k.as_str())) {
            let known = KEYS.map(|k| format!("`{k}`")).join(", ");
            return Err(broken(format!("unknown field `{key}`, expected one of {known}")));
        }
        match map.get("version") {
            Some(Value::Number(n)) if n.as_u64() == Some(1) => {}
            None => return Err(broken("missing field `version`".to_owned())),
            Some(other) => return Err(broken(format!("unsupported policy version {other}, expected 1"))),
        }
        refuse_unsafe(map)?;
        Ok(Self { document })
    }

    /// Whether there is any network rule.
    pub(super) fn wants_network(&self) -> bool {
        not_empty(self.document.get("network_policies"))
    }

    /// The document, as `get -o json` shows it.
    pub(super) fn document(&self) -> &Value {
        &self.document
    }
}

/// Whether a list or a mapping has an entry.
pub(super) fn not_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        _ => false,
    }
}

/// What the gateway refuses (`read_write: [/]`, a root user).
fn refuse_unsafe(map: &Map<String, Value>) -> Outcome {
    let at = |a: &str, b: &str| map.get(a).and_then(|v| v.get(b));
    let unsafe_content = |what: String| {
        Err(Fail::rpc(Rpc::InvalidArgument, format!("policy contains unsafe content: {what}")))
    };
    for (kind, label) in [("read_write", "read-write"), ("read_only", "read-only")] {
        let paths = at("filesystem_policy", kind).and_then(Value::as_array);
        for path in paths.into_iter().flatten().filter_map(Value::as_str) {
            if !path.starts_with('/') {
                return unsafe_content(format!("path must be absolute: {path}"));
            }
            if path.split('/').any(|part| part == "..") {
                return unsafe_content(format!("path contains '..': {path}"));
            }
            if kind == "read_write" && path.chars().all(|c| c == '/' || c == '.') {
                return unsafe_content(format!("{label} path is overly broad: {path}"));
            }
        }
    }
    for key in ["run_as_user", "run_as_group"] {
        let allowed = match at("process", key) {
            None | Some(Value::Null) => true,
            Some(Value::String(s)) => {
                s == "sandbox" || s.is_empty() || s.parse::<u32>().is_ok_and(|id| (1..u32::MAX).contains(&id))
            }
            Some(Value::Number(n)) => n.as_u64().is_some_and(|id| (1..u64::from(u32::MAX)).contains(&id)),
            Some(_) => false,
        };
        if !allowed {
            let got = at("process", key).map(|v| v.to_string().replace('"', "")).unwrap_or_default();
            return unsafe_content(format!(
                "{key} must be 'sandbox' or a numeric UID/GID in range [1, 4294967294], got '{got}'"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Policy::parse(text).unwrap_err().render().replace("\n  │ ", " ")
    }

    #[test]
    fn an_ordinary_policy_is_accepted() {
        let policy = Policy::parse(
            "version: 1\nfilesystem_policy:\n  read_only: [/usr]\n  read_write: [/sandbox, /tmp]\n\
             process: {run_as_user: sandbox, run_as_group: '1000'}\nnetwork_policies: {}\n",
        )
        .unwrap();
        assert!(!policy.wants_network());
        assert!(Policy::parse("version: 1\nnetwork_policies: {a: {endpoints: []}}").unwrap().wants_network());
        assert!(!Policy::built_in().wants_network());
    }

    #[test]
    fn each_fault_is_named() {
        for (text, want) in [
            ("version: 1\nbogus_field: 1\n", "unknown field `bogus_field`, expected one of `version`"),
            ("filesystem_policy: {}\n", "missing field `version`"),
            ("version: 2\n", "unsupported policy version 2"),
            ("- a\n", "expected a mapping"),
            ("version: [1\n", "failed to parse sandbox policy YAML"),
            ("version: 1\nversion: 1\n", "failed to parse sandbox policy YAML"),
            ("version: 1\nfilesystem_policy: {read_write: [/]}\n", "read-write path is overly broad: /"),
            ("version: 1\nfilesystem_policy: {read_only: [usr]}\n", "path must be absolute: usr"),
            ("version: 1\nfilesystem_policy: {read_write: [/a/../b]}\n", "path contains '..'"),
            ("version: 1\nprocess: {run_as_user: root}\n", "got 'root'"),
            ("version: 1\nprocess: {run_as_user: 0}\n", "got '0'"),
            ("version: 1\nprocess: {run_as_group: '0'}\n", "run_as_group must be"),
        ] {
            let message = refused(text);
            assert!(message.contains(want), "{text:?}: {message}");
        }
    }
}
