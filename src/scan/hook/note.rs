//! What hooks note of themselves, for the host: that they ran, and what they found. One line, one write.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::super::chain::Action;
use super::super::{Finding, Hit, Scanner, Severity};
use super::{Config, Event, notes_file};

/// Whether the place can be written.
pub(super) fn check(dir: &Path) -> std::io::Result<()> {
    open(dir).map(drop)
}

fn open(dir: &Path) -> std::io::Result<std::fs::File> {
    std::fs::create_dir_all(dir)?;
    std::fs::OpenOptions::new().create(true).append(true).open(notes_file(dir))
}

/// That a hook ran. What cannot be noted is no reason to stop a call; the host misses the line.
pub(super) fn ran(config: &Config, event: &str, tool: &str) {
    write(config, &json!({"ran": event, "tool": tool}));
}

/// What a hook found in a call.
pub(super) fn found(config: &Config, event: &str, tool: &str, hits: &[(Hit, Action)]) {
    for (hit, action) in hits {
        let finding = Finding { file: format!("tool:{tool}"), hit: hit.clone() };
        write(
            config,
            &json!({
                "found": event, "tool": tool, "scanner": hit.scanner, "rule": hit.rule, "severity": hit.severity,
                "message": hit.message, "excerpt": finding.hit.excerpt, "action": action,
            }),
        );
    }
}

/// Marks a call after which the model is not to be asked again.
pub(super) fn mark(config: &Config, call: &Value) -> bool {
    let Some(path) = mark_of(config, call) else { return false };
    path.parent().is_some_and(|dir| std::fs::create_dir_all(dir).is_ok()) && std::fs::write(path, "").is_ok()
}

/// Whether a call was marked.
pub(super) fn is_marked(config: &Config, call: &Value) -> bool {
    mark_of(config, call).is_some_and(|path| path.exists())
}

fn mark_of(config: &Config, call: &Value) -> Option<std::path::PathBuf> {
    let id = call["tool_use_id"].as_str()?;
    let name: String =
        id.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(100).collect();
    Some(config.dir.as_ref()?.join(format!("stop-{name}")))
}

/// That a call could not be judged.
pub(super) fn failed(config: &Config, event: Event, why: &str) {
    let hit = Hit {
        scanner: Scanner::Scan,
        rule: "unreadable-call",
        severity: Severity::High,
        line: 0,
        message: why.to_owned(),
        excerpt: String::new(),
    };
    let action = if config.open { Action::Warned } else { Action::Denied };
    found(config, &format!("{event:?}"), "?", &[(hit, action)]);
}

fn write(config: &Config, line: &Value) {
    let Some(dir) = &config.dir else { return };
    if let Ok(mut file) = open(dir) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
