//! `security` of a harness.

use super::{Effect, Field, Level, Type, field};

const fn switch(name: &'static str, doc: &'static str) -> Field {
    field(name, Type::Bool, doc).default("yes").example("true")
}

const fn section(name: &'static str, level: Level, doc: &'static str) -> Field {
    field(name, Type::Section(level), doc).example("{}")
}

const fn elsewhere(name: &'static str, level: Level, doc: &'static str) -> Field {
    section(name, level, doc).effect(Effect::NotApplied)
}

const fn unused(name: &'static str, doc: &'static str) -> Field {
    switch(name, doc).effect(Effect::NotApplied)
}

fn fail_modes() -> Vec<&'static str> {
    vec!["closed", "open"]
}

fn match_types() -> Vec<&'static str> {
    vec!["sentence", "full"]
}

fn severities() -> Vec<&'static str> {
    vec!["critical", "high", "medium"]
}

fn reactions() -> Vec<&'static str> {
    vec!["halt", "review"]
}

pub(super) const SECURITY: &[Field] = &[
    switch("enabled", "Whether there are any checks."),
    field("fail_mode", Type::Words(fail_modes), "What a check that cannot be made means.")
        .default("`closed`")
        .example("closed"),
    field("allow_file", Type::Path, "Findings that are known and harmless.")
        .default("`scan-allow.txt` of the harness directory, if it is there")
        .example("scan-allow.txt"),
    section("host_scanners", Level::HostScanners, "Checks of what goes in, on the host."),
    section("sandbox_hooks", Level::SandboxHooks, "Checks of what the agent does, in the sandbox."),
    elsewhere("escalation", Level::Escalation, "What a finding leads to."),
    elsewhere("trace", Level::Trace, "Tracing of checks."),
];

pub(super) const HOST_SCANNERS: &[Field] = &[
    switch("unicode_normalizer", "Invisible and misleading characters."),
    switch("context_injection", "Instructions in files that agents read."),
    switch("ssrf_validator", "URLs of private addresses."),
    switch("secret_redactor", "Secrets in what comes back."),
    elsewhere("llm_guard", Level::LlmGuard, "A classifier of texts."),
];

pub(super) const LLM_GUARD: &[Field] = &[
    unused("enabled", "Whether it is asked.").default("no"),
    field("threshold", Type::Number(0.0, 1.0), "From which score on a text counts as an attack.")
        .default("0.92")
        .effect(Effect::NotApplied)
        .example("0.9"),
    field("match_type", Type::Words(match_types), "What is scored.")
        .effect(Effect::NotApplied)
        .example("sentence"),
];

pub(super) const SANDBOX_HOOKS: &[Field] = &[
    elsewhere("tirith", Level::Tirith, "Commands, before they are run."),
    switch("ssrf_pretool", "URLs of private addresses, before a tool uses them."),
    field(
        "ssrf_egress_allowlist",
        Type::Either(&[Type::Text, Type::List(&Type::Text)]),
        "What `ssrf_pretool` lets pass, separated by commas or as a list: a name, `*.SUFFIX`, an address or an IPv4 \
         network such as `10.1.0.0/16`, each with `:PORT` or for all ports.",
    )
    .example("internal.example.com:443"),
    switch("secret_redact_posttool", "Secrets in what a tool returns."),
    switch("unicode_posttool", "Invisible characters in what a tool returns."),
    switch("context_suppress_posttool", "Instructions in what a tool returns."),
    switch("canary_pretool", "A planted word on its way out."),
    switch("canary_posttool", "A planted word in what a tool returns."),
    section("tool_allowlist_pretool", Level::ToolAllowlist, "Tools that the definition does not name."),
];

pub(super) const TIRITH: &[Field] = &[
    unused("enabled", "Whether it is asked."),
    field("fail_on", Type::Words(severities), "From which severity on a command is refused.")
        .effect(Effect::NotApplied)
        .example("high"),
];

pub(super) const TOOL_ALLOWLIST: &[Field] = &[switch("enabled", "Whether it is asked.").default("no")];

pub(super) const ESCALATION: &[Field] = &[
    field("on_critical", Type::Words(reactions), "Whether a critical finding ends the run.")
        .effect(Effect::NotApplied)
        .example("halt"),
    field("review_label", Type::Text, "The label that asks people to look.")
        .effect(Effect::NotApplied)
        .example("needs-review"),
];

pub(super) const TRACE: &[Field] = &[unused("enabled", "Whether checks are traced.")];
