//! What `list` and `get` print.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::fail::Outcome;
use super::profile::Profile;
use super::provider::Provider;
use super::record::{Condition, Phase, Record};
use super::state::State;

/// A list in the envelope of OpenShell 0.1.x.
pub(super) fn page(key: &str, items: &[Value]) -> Value {
    json!({ key: items, "next_page_token": "" })
}

/// One sandbox, as in `list -o json`.
pub(super) fn sandbox(record: &Record, condition: Condition) -> Value {
    json!({
        "id": record.id,
        "name": record.name,
        "workspace": "default",
        "labels": record.labels,
        "annotations": {},
        "resource_version": 1,
        "created_at": created(record),
        "phase": condition.phase.as_str(),
        "current_policy_version": 1,
        "exit_code": condition.exit_code,
        "conditions": [{
            "type": "Ready",
            "status": if condition.phase == Phase::Ready { "True" } else { "False" },
            "reason": condition.reason,
            "message": condition.message,
            "last_transition_time": created(record),
        }],
        "endpoint_statuses": [],
        "configuration_admission": { "state": "accepted", "error": "", "policy_version": 1 },
        "provisioning": null,
        "created_from_workload_template": null,
    })
}

/// One sandbox, as in `get -o json`.
pub(super) fn sandbox_details(record: &Record, condition: Condition) -> Value {
    let mut value = sandbox(record, condition);
    if let Some(map) = value.as_object_mut() {
        map.insert("restart_policy".to_owned(), json!("never"));
        map.insert("restart_count".to_owned(), json!(0));
        map.insert("policy_source".to_owned(), json!("sandbox"));
        map.insert("revision".to_owned(), json!(1));
        map.insert("policy".to_owned(), record.policy.clone());
    }
    value
}

/// One sandbox, as `get` prints it for people.
pub(super) fn sandbox_text(record: &Record, condition: Condition) -> Outcome<String> {
    let mut text = format!(
        "Sandbox:\n\n  Id: {}\n  Name: {}\n  Phase: {}\n  Resource version: 1\n",
        record.id,
        record.name,
        condition.phase.as_str()
    );
    if !record.labels.is_empty() {
        text.push_str("  Labels:\n");
    }
    for (key, value) in &record.labels {
        let _ = writeln!(text, "    {key}: {value}");
    }
    if condition.phase != Phase::Ready {
        let _ = writeln!(text, "  Conditions: {}: {}", condition.reason, condition.message);
    }
    if let Some(code) = condition.exit_code {
        let _ = writeln!(text, "  Last exit code: {code}");
    }
    text.push_str("  Policy source: sandbox\n  Revision: 1\n\nPolicy:\n\n");
    let policy =
        serde_json::to_string_pretty(&record.policy).map_err(|e| super::fail::Fail::new(e.to_string()))?;
    let _ = writeln!(text, "{policy}");
    Ok(text)
}

/// The table of `list`.
pub(super) fn sandbox_table(rows: &[(Record, Condition)]) -> String {
    if rows.is_empty() {
        return "No sandboxes found.\n".to_owned();
    }
    let mut text = format!("{:<20} {:<20} PHASE\n", "NAME", "CREATED");
    for (record, condition) in rows {
        let _ = writeln!(text, "{:<20} {:<20} {}", record.name, created(record), condition.phase.as_str());
    }
    text
}

/// The sandboxes that carry all labels of `k=v[,k=v]`, with their conditions.
pub(super) fn select(state: &State, selector: Option<&str>) -> Outcome<Vec<(Record, Condition)>> {
    let wanted: Vec<(&str, &str)> =
        selector.into_iter().flat_map(|s| s.split(',')).filter_map(|p| p.split_once('=')).collect();
    let mut rows = Vec::new();
    for record in Record::all(state)? {
        if wanted.iter().all(|(k, v)| record.labels.get(*k).is_some_and(|have| have == v)) {
            super::sandbox::settle(&record);
            let condition = record.condition(state);
            rows.push((record, condition));
        }
    }
    Ok(rows)
}

/// One provider, as in `provider list -o json`; never a value.
pub(super) fn provider(provider: &Provider) -> Value {
    json!({
        "id": provider.id,
        "name": provider.name,
        "type": provider.kind,
        "workspace": "default",
        "resource_version": provider.resource_version,
        "credential_keys": provider.credentials.keys().collect::<Vec<_>>(),
        "config_keys": provider.config.keys().collect::<Vec<_>>(),
        "labels": {},
        "credential_expires_at_ms": provider.expires,
    })
}

/// One provider, as `provider get` prints it.
pub(super) fn provider_text(provider: &Provider) -> String {
    let keys = |map: &std::collections::BTreeMap<String, String>| {
        map.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    format!(
        "Provider:\n\n  Id: {}\n  Name: {}\n  Type: {}\n  Resource version: {}\n  Credential keys: {}\n  \
         Config keys: {}\n",
        provider.id,
        provider.name,
        provider.kind,
        provider.resource_version,
        keys(&provider.credentials),
        keys(&provider.config)
    )
}

/// The table of `provider list`.
pub(super) fn provider_table(providers: &[Provider]) -> String {
    if providers.is_empty() {
        return "No providers found.\n".to_owned();
    }
    let mut text = format!("{:<32} TYPE\n", "NAME");
    for provider in providers {
        let _ = writeln!(text, "{:<32} {}", provider.name, provider.kind);
    }
    text
}

/// One profile, as in `profile list -o json`.
pub(super) fn profile(profile: &Profile) -> Value {
    let text = |key: &str| profile.document.get(key).cloned().unwrap_or(Value::Null);
    json!({
        "id": profile.id,
        "display_name": text("display_name"),
        "category": text("category"),
        "source": "custom",
        "resource_version": profile.resource_version,
    })
}

fn created(record: &Record) -> String {
    jiff::Timestamp::from_second(record.created)
        .map(|t| t.strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_default()
}
