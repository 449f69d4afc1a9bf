//! What lists and `get` print, in every shape that releases give it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The phase of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Phase {
    /// It is being set up, or came back there after a gateway restart.
    Provisioning,
    /// It takes connections.
    Ready,
    /// It failed, or its main process did.
    Error,
    /// Its main process ended with status 0 (0.1.x).
    Completed,
    /// It was stopped.
    Stopped,
    /// It is going away.
    Deleting,
    /// It is starting again.
    Starting,
    /// Anything else, as it was printed.
    Other(String),
}

impl Phase {
    /// The phase of a printed word.
    pub fn parse(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().as_str() {
            "provisioning" => Self::Provisioning,
            "ready" => Self::Ready,
            "error" => Self::Error,
            "completed" => Self::Completed,
            "stopped" => Self::Stopped,
            "deleting" => Self::Deleting,
            "starting" => Self::Starting,
            _ => Self::Other(word.trim().chars().take(40).collect()),
        }
    }

    /// Whether a sandbox in this phase will not become Ready by waiting.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Error | Self::Completed | Self::Stopped | Self::Deleting)
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Other(word) => f.write_str(word),
            known => write!(f, "{known:?}"),
        }
    }
}

/// One sandbox of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRow {
    /// Its name.
    pub name: String,
    /// Its phase.
    pub phase: Phase,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When it was created, as the gateway prints it.
    pub created_at: Option<String>,
}

/// What is known about one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxState {
    /// Its phase.
    pub phase: Phase,
    /// Why it is in that phase, where the release says so.
    pub reason: Option<String>,
    /// Whether its configuration was rejected: 0.1.x keeps such a sandbox in Provisioning for 300 s.
    pub rejected: bool,
    /// The image, where the release shows it.
    pub image: Option<String>,
}

/// One provider of a list. Values are never shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRow {
    /// Its name.
    pub name: String,
    /// Its type; the CLI normalises aliases, so that it may differ from what was asked for.
    pub kind: String,
    /// The variables it holds credentials for.
    pub credential_keys: Vec<String>,
}

/// A page of a list: its rows, and the token of the next page.
pub(super) struct Page<T> {
    pub rows: Vec<T>,
    pub next: Option<String>,
}

/// Reads a list: `[…]` up to 0.0.116, `{"<key>": […], "next_page_token": ""}` from 0.1.0.
pub(super) fn page<T>(text: &[u8], key: &str, row: fn(&Value) -> Option<T>) -> Result<Page<T>, String> {
    let value: Value = serde_json::from_slice(text).map_err(|e| format!("not JSON: {e}"))?;
    let (items, next) = match &value {
        Value::Array(items) => (items, None),
        Value::Object(map) => match map.get(key) {
            Some(Value::Array(items)) => (items, string(&value, "next_page_token")),
            _ => return Err(format!("no `{key}` in it")),
        },
        _ => return Err("neither a list nor an object".to_owned()),
    };
    let rows: Option<Vec<T>> = items.iter().map(row).collect();
    Ok(Page { rows: rows.ok_or("a row without a name")?, next: next.filter(|t| !t.is_empty()) })
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

pub(super) fn sandbox_row(value: &Value) -> Option<SandboxRow> {
    Some(SandboxRow {
        name: string(value, "name")?,
        phase: Phase::parse(value.get("phase").and_then(Value::as_str).unwrap_or_default()),
        labels: value.get("labels").and_then(|v| BTreeMap::deserialize(v).ok()).unwrap_or_default(),
        created_at: string(value, "created_at"),
    })
}

pub(super) fn provider_row(value: &Value) -> Option<ProviderRow> {
    Some(ProviderRow {
        name: string(value, "name")?,
        kind: string(value, "type").unwrap_or_default(),
        credential_keys: value
            .get("credential_keys")
            .and_then(|v| Vec::deserialize(v).ok())
            .unwrap_or_default(),
    })
}

/// Reads `sandbox get -o json`.
pub(super) fn state_json(text: &[u8]) -> Result<SandboxState, String> {
    let value: Value = serde_json::from_slice(text).map_err(|e| format!("not JSON: {e}"))?;
    let phase = value.get("phase").and_then(Value::as_str).ok_or("no `phase` in it")?;
    let phase = Phase::parse(phase);
    let admission = value.get("configuration_admission");
    let rejected = admission.and_then(|a| a.get("state")).and_then(Value::as_str) == Some("rejected");
    let refusal = admission.filter(|_| rejected).and_then(|a| string(a, "error"));
    let reason = refusal.filter(|r| !r.is_empty()).or_else(|| condition(&value, &phase));
    Ok(SandboxState { phase, reason, rejected, image: string(&value, "image") })
}

/// The reason of the newest condition that is not fulfilled. While a sandbox is Ready there is none.
fn condition(value: &Value, phase: &Phase) -> Option<String> {
    if *phase == Phase::Ready {
        return None;
    }
    let conditions = value.get("conditions")?.as_array()?;
    let unmet =
        |c: &&Value| !matches!(c.get("status"), Some(Value::String(s)) if s.eq_ignore_ascii_case("true"));
    let last = conditions.iter().rev().find(unmet).or(conditions.last())?;
    let texts = [string(last, "reason"), string(last, "message")];
    let text = texts.into_iter().flatten().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(": ");
    let exit = value.get("exit_code").and_then(Value::as_i64).filter(|_| phase.is_terminal());
    match (text.is_empty(), exit) {
        (true, None) => None,
        (true, Some(code)) => Some(format!("the main process ended with status {code}")),
        (false, Some(code)) => Some(format!("{text} (main process: status {code})")),
        (false, None) => Some(text),
    }
}

/// Reads the `Phase:` field of `sandbox get` without JSON (before 0.0.92).
pub(super) fn state_text(text: &str) -> Result<SandboxState, String> {
    let plain = super::text::strip_escapes(text);
    let phase = plain.lines().find_map(|line| line.trim_start().strip_prefix("Phase:"));
    let phase = Phase::parse(phase.ok_or("no `Phase:` in it")?);
    Ok(SandboxState { phase, reason: None, rejected: false, image: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROW_83: &str = r#"{"created_at":"2026-11-29 11:09:07","current_policy_version":1,"id":"u","labels":{"a":"b"},"name":"x1","phase":"Ready","resource_version":5}"#;

    #[test]
    fn lists_of_both_shapes_are_the_same() {
        let array = format!("[{ROW_83}]");
        let object = format!(r#"{{"sandboxes":[{ROW_83}],"next_page_token":""}}"#);
        let old = page(array.as_bytes(), "sandboxes", sandbox_row).unwrap();
        let new = page(object.as_bytes(), "sandboxes", sandbox_row).unwrap();
        assert_eq!(old.rows, new.rows);
        assert_eq!(old.rows[0].phase, Phase::Ready);
        assert_eq!(old.rows[0].labels["a"], "b");
        assert_eq!((old.next, new.next), (None, None));
        let more =
            br#"{"providers":[{"name":"p","type":"github","credential_keys":["T"]}],"next_page_token":"n2"}"#;
        let more = page(more, "providers", provider_row).unwrap();
        assert_eq!(more.next.as_deref(), Some("n2"));
        assert_eq!(more.rows[0].credential_keys, ["T"]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "null", "{}", r#"{"sandboxes":1}"#, "No sandboxes found.", r#"[{"phase":"Ready"}]"#]
        {
            assert!(page(text.as_bytes(), "sandboxes", sandbox_row).is_err(), "{text}");
        }
    }

    #[test]
    fn the_reason_comes_from_the_unmet_condition() {
        let text = br#"{"phase":"Error","exit_code":5,"conditions":[
            {"type":"Ready","status":"False","reason":"MainProcessFailed","message":"exit 5"},
            {"type":"Accepted","status":"True","reason":"Ok","message":""}]}"#;
        let state = state_json(text).unwrap();
        assert_eq!(state.reason.as_deref(), Some("MainProcessFailed: exit 5 (main process: status 5)"));
        assert!(!state.rejected && state.phase.is_terminal());
    }

    #[test]
    fn a_rejected_configuration_is_seen_in_provisioning() {
        let text = br#"{"phase":"Provisioning","configuration_admission":{"state":"rejected","error":"bad path /"}}"#;
        let state = state_json(text).unwrap();
        assert!(state.rejected);
        assert_eq!(state.reason.as_deref(), Some("bad path /"));
        let fine = br#"{"phase":"Provisioning","configuration_admission":null,"conditions":null}"#;
        assert!(!state_json(fine).unwrap().rejected);
    }

    #[test]
    fn the_text_form_has_one_field() {
        let text =
            "\u{1b}[1mSandbox:\u{1b}[0m\n\n  \u{1b}[2mId:\u{1b}[0m u\n  \u{1b}[2mPhase:\u{1b}[0m Ready\n";
        assert_eq!(state_text(text).unwrap().phase, Phase::Ready);
        assert!(state_text("nothing").is_err());
        assert_eq!(Phase::parse("Hibernating"), Phase::Other("Hibernating".into()));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in any::<Vec<u8>>()) {
            let _ = page(&text, "sandboxes", sandbox_row);
            let _ = state_json(&text);
            let _ = state_text(&String::from_utf8_lossy(&text));
        }
    }
}
