//! `security`: what is scanned and hooked, and what happens then.

use camino::Utf8PathBuf;
use serde::Serialize;

use super::check::{Files, Kind, Named};
use super::fields::conform;
use super::keys::Level;
use super::problem::Problems;
use super::reader::{Fields, Reader, Text};
use super::source::Source;
use super::yaml::Value;
use crate::error::Code;
use crate::scan::Scanners;
use crate::scan::allow::DEFAULT;
use crate::scan::hook::Hooks;
use crate::scan::ssrf::Allowed;

/// What a critical finding, or a hook that cannot take effect, means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// The run stops.
    #[default]
    Closed,
    /// The run says so and goes on.
    Open,
}

/// The checked form of `security`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Security {
    /// Whether anything of it is done.
    pub enabled: bool,
    /// What a critical finding means.
    pub fail_mode: FailMode,
    /// The scanners of the host.
    pub scanners: Scanners,
    /// The hooks in the sandbox.
    pub hooks: Hooks,
    /// Findings that are known and harmless.
    pub allow_file: Option<Utf8PathBuf>,
    /// Hosts that tools may reach although they are inside.
    pub ssrf_egress_allowlist: Vec<String>,
}

impl Default for Security {
    fn default() -> Self {
        Self {
            enabled: true,
            fail_mode: FailMode::Closed,
            scanners: Scanners::default(),
            hooks: Hooks::default(),
            allow_file: None,
            ssrf_egress_allowlist: Vec::new(),
        }
    }
}

/// As written.
#[derive(Debug, Default)]
pub(crate) struct RawSecurity {
    settings: Security,
    allow_file: Option<Text>,
}

/// Reads the block. What other versions of the format have besides is named in `ignored`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    top: &mut Fields,
    ignored: &mut Vec<Text>,
) -> Option<RawSecurity> {
    let mut fields = reader.section(top, "security")?;
    let mut out = Security::default();
    set(reader, &mut fields, "enabled", &mut out.enabled);
    if let Some(mode) = reader.text_not_empty(&mut fields, "fail_mode") {
        match mode.text.as_str() {
            "closed" => out.fail_mode = FailMode::Closed,
            "open" => out.fail_mode = FailMode::Open,
            other => reader.error(
                Code::Value,
                &mode.span,
                format!("`{other}` is not a fail mode"),
                "write `closed` or `open`",
            ),
        }
    }
    if let Some(mut scanners) = reader.section(&mut fields, "host_scanners") {
        set(reader, &mut scanners, "unicode_normalizer", &mut out.scanners.unicode);
        set(reader, &mut scanners, "context_injection", &mut out.scanners.injection);
        set(reader, &mut scanners, "ssrf_validator", &mut out.scanners.ssrf);
        set(reader, &mut scanners, "secret_redactor", &mut out.scanners.secrets);
        ignore(reader, &mut scanners, Level::HostScanners, "llm_guard", ignored);
        reader.finish(scanners, Level::HostScanners);
    }
    if let Some(mut hooks) = reader.section(&mut fields, "sandbox_hooks") {
        set(reader, &mut hooks, "ssrf_pretool", &mut out.hooks.ssrf);
        set(reader, &mut hooks, "canary_pretool", &mut out.hooks.canary);
        set(reader, &mut hooks, "canary_posttool", &mut out.hooks.canary_results);
        set(reader, &mut hooks, "secret_redact_posttool", &mut out.hooks.secrets);
        set(reader, &mut hooks, "unicode_posttool", &mut out.hooks.unicode);
        set(reader, &mut hooks, "context_suppress_posttool", &mut out.hooks.context);
        if let Some(mut list) = reader.section(&mut hooks, "tool_allowlist_pretool") {
            set(reader, &mut list, "enabled", &mut out.hooks.tool_allowlist);
            reader.finish(list, Level::ToolAllowlist);
        }
        out.ssrf_egress_allowlist = hosts(reader, &mut hooks);
        ignore(reader, &mut hooks, Level::SandboxHooks, "tirith", ignored);
        reader.finish(hooks, Level::SandboxHooks);
    }
    let allow_file = reader.text_not_empty(&mut fields, "allow_file");
    for name in ["escalation", "trace"] {
        ignore(reader, &mut fields, Level::Security, name, ignored);
    }
    reader.finish(fields, Level::Security);
    Some(RawSecurity { settings: out, allow_file })
}

fn set(reader: &mut Reader<'_>, fields: &mut Fields, name: &'static str, into: &mut bool) {
    if let Some(value) = reader.boolean(fields, name) {
        *into = value;
    }
}

/// What the hooks let pass: one text with commas, as the format has it, or a list.
fn hosts(reader: &mut Reader<'_>, fields: &mut Fields) -> Vec<String> {
    let Some((key, node)) = fields.take("ssrf_egress_allowlist") else { return Vec::new() };
    let entries = match node.value {
        Value::List(items) => {
            items.into_iter().filter_map(|item| reader.item_text(&key.text, item)).collect()
        }
        _ => {
            if let Some(text) = node.scalar() {
                vec![Text { text: text.to_owned(), span: node.span.clone() }]
            } else {
                reader.wrong_type(&key.text, "text, or a list of texts", &node);
                Vec::new()
            }
        }
    };
    let mut out = Vec::new();
    for entry in entries {
        for host in entry.text.split(',').map(str::trim).filter(|host| !host.is_empty()) {
            if Allowed::new([host]).is_err() {
                let help = "write a name, `*.SUFFIX`, an address, or an IPv4 network such as 10.1.0.0/16, with or without `:PORT`";
                let message = format!("`{}` is no host", host.escape_debug());
                reader.error(Code::Value, &entry.span, message, help);
            }
            out.push(host.to_owned());
        }
    }
    out
}

fn ignore(
    reader: &mut Reader<'_>,
    fields: &mut Fields,
    level: Level,
    name: &'static str,
    ignored: &mut Vec<Text>,
) {
    if let Some((key, node)) = fields.take(name)
        && !node.is_empty()
    {
        if let Some(field) = level.fields().find(|field| field.name == name) {
            conform(reader, name, &node, &field.ty);
        }
        ignored.push(Text { text: format!("security…{}", key.text), span: key.span });
    }
}

/// Checks the allow-file; without one in the harness, `scan-allow.txt` of the harness directory counts if it is there.
pub(crate) fn resolve(
    raw: Option<&RawSecurity>,
    files: &Files,
    source: &Source,
    problems: &mut Problems,
) -> Security {
    let mut out = raw.map(|raw| raw.settings.clone()).unwrap_or_default();
    out.allow_file = match raw.and_then(|raw| raw.allow_file.as_ref()) {
        Some(text) => {
            let named = Named {
                key: "security.allow_file",
                path: &text.text,
                shown: &text.text,
                span: text.span.clone(),
                free: false,
            };
            files.check(&named, Kind::File, source, problems)
        }
        None => Some(files.dir.join(DEFAULT)).filter(|path| path.is_file()),
    };
    out
}
