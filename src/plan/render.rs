//! How a dry run shows the plan.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json as value};

use super::Plan;
use super::commands::{CommandLine, commands};
use super::env::EnvLine;
use super::files::{Bytes, Source};
use super::hooks::HookPlan;
use super::layout::HOOK_PROGRAM;
use crate::agent::runtime;
use crate::error::Result;
use crate::harness::image_policy::Signature;
use crate::harness::model::{Budgets, Gpu, ProviderUse, Runtime};
use crate::report::bytes;
use crate::secrets::MASK;

/// What is uploaded, measured now. The archive is built after the pre-script, so these are estimates.
#[derive(Debug, Serialize)]
pub struct Estimate {
    /// One entry per delivered file.
    pub files: Vec<FileEstimate>,
    /// Files of the repository.
    pub repo_files: usize,
    /// Bytes of the repository.
    pub repo_bytes: u64,
}

/// One delivered file.
#[derive(Debug, Serialize)]
pub struct FileEstimate {
    /// Where it goes.
    pub dest: String,
    /// Its size in bytes.
    pub size: u64,
    /// Where it comes from.
    pub from: String,
    /// Its permission bits.
    pub mode: String,
}

impl Estimate {
    /// Measures the plan's uploads; the repository's figures come from its manifest.
    pub fn measure(plan: &Plan, repo_files: usize, repo_bytes: u64) -> Result<Self> {
        let mut files = Vec::new();
        for upload in &plan.uploads {
            for file in upload.expand()? {
                let from = match (&file.bytes, &upload.source) {
                    (Bytes::Host(path), _) => path.to_string(),
                    (_, Source::Text { from, .. } | Source::Content { from, .. }) => from.clone(),
                    _ => String::new(),
                };
                files.push(FileEstimate {
                    dest: file.dest,
                    size: file.size,
                    from,
                    mode: format!("{:04o}", file.mode),
                });
            }
        }
        Ok(Self { files, repo_files, repo_bytes })
    }
}

/// The plan for programs.
pub fn json(plan: &Plan, openshell: &[String], estimate: &Estimate, warnings: &[String]) -> Value {
    value!({
        "schema": "fullsend.plan/1",
        "plan_digest": plan.digest(),
        "plan": plan,
        "commands": commands(plan, openshell),
        "estimate": estimate,
        "warnings": warnings,
    })
}

/// The plan for people.
pub fn text(plan: &Plan, openshell: &[String], estimate: &Estimate) -> String {
    let mut out = String::new();
    head(&mut out, plan);
    let _ = writeln!(out, "\nThe agent is started with");
    let hooks = plan.hooks.as_ref().map(|hooks| runtime::quote(&hooks.settings));
    let command = match &hooks {
        Some(settings) => plan.agent_command.replace(&**settings, "<hooks>"),
        None => plan.agent_command.clone(),
    };
    for line in command.lines() {
        let _ = writeln!(out, "  {line}");
    }
    environment(&mut out, plan);
    files(&mut out, plan, estimate);
    let _ =
        writeln!(out, "\nCommands on this machine, with their time limits; the zeros stand for the run's id");
    let mut phase = "";
    for command in commands(plan, openshell) {
        if command.phase != phase {
            phase = command.phase;
            let _ = writeln!(out, "  {phase}");
        }
        command_line(&mut out, &command);
    }
    let _ = writeln!(out, "\nNothing was done. Leave --dry-run out to carry this out.");
    let _ = writeln!(out, "plan_digest {}", plan.digest());
    out
}

fn head(out: &mut String, plan: &Plan) {
    let h = &plan.harness;
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(out, "  {key:<12} {value}");
    };
    let backend = match (plan.local, plan.dialect.assumed) {
        (true, _) => format!("embedded (as OpenShell {})", plan.dialect.version),
        (false, false) => format!("OpenShell {}", plan.dialect.version),
        (false, true) => format!("OpenShell, assumed to be {}", plan.dialect.version),
    };
    line("agent", &h.name);
    if let Some(text) = &h.description {
        line("", text.lines().next().unwrap_or_default());
    }
    line("repository", plan.repo.as_str());
    line("harness", h.file.as_str());
    line("backend", &backend);
    let runtime = match h.runtime {
        Runtime::Claude => format!("Claude Code with {}", inside(plan, h.agent.as_str())),
        Runtime::Codex => format!("Codex with {}", inside(plan, h.agent.as_str())),
        Runtime::Opencode => format!("OpenCode with {}", inside(plan, h.agent.as_str())),
        Runtime::Script => format!("the script {}", inside(plan, h.agent.as_str())),
    };
    line("runs", &runtime);
    match (&plan.model, h.runtime) {
        (Some(model), _) => line("model", model),
        (None, Runtime::Script) => {}
        (None, _) => line("model", "the agent program's default"),
    }
    line("image", h.image.as_deref().unwrap_or("OpenShell's default"));
    match plan.image_policy.signature {
        Signature::None => {}
        Signature::IfAvailable => line("signature", "checked where cosign is installed"),
        Signature::Required => line("signature", "checked with cosign before a sandbox is created"),
    }
    line(
        "policy",
        &h.policy.as_ref().map_or_else(|| "OpenShell's default".to_owned(), |p| inside(plan, p.as_str())),
    );
    for (key, values) in [
        ("skills", h.skills.iter().map(|s| s.name.clone()).collect::<Vec<_>>()),
        ("providers", h.providers.iter().map(provider).collect()),
        ("hooks", plan.hooks.as_ref().map(hooks).unwrap_or_default()),
        ("leaves out", left_out(plan)),
    ] {
        if !values.is_empty() {
            line(key, &values.join(", "));
        }
    }
    if let Some(v) = &h.validation {
        let files = v.schema.iter().chain(v.schemas.values()).chain(&v.script);
        let mut by: Vec<_> = files.map(|p| inside(plan, p.as_str())).collect();
        by.extend(v.escalate.as_ref().map(|agent| format!("the agent {agent}")));
        line("validated by", &by.join(", then "));
    }
    limits(plan, &mut line);
    let result = match (h.readonly_repo, plan.apply, plan.post_script) {
        (true, _, _) => "the repository is read-only: only the output directory comes back",
        (_, true, true) => "applied to the repository when the run succeeds, after the post-script",
        (_, true, false) => "applied to the repository when the run succeeds",
        (_, false, true) => "handed to the post-script; the repository stays as it is",
        (_, false, false) => "left as a patch in the run directory; the repository stays as it is",
    };
    line("result", result);
    if plan.keep_sandbox {
        line("sandbox", "stays when the run has ended");
    }
}

/// What the run may take and use.
fn limits(plan: &Plan, line: &mut impl FnMut(&str, &str)) {
    let h = &plan.harness;
    let agent = limit(plan.deadlines.agent);
    let tries = match plan.iterations {
        1 => String::new(),
        n => format!(", tried at most {n} times"),
    };
    line(
        "time limits",
        &format!("{agent} for the agent{tries}; {} until the sandbox is ready", limit(plan.deadlines.ready)),
    );
    let asked = &h.resources;
    let gpu = asked.gpu.map(|gpu| match gpu {
        Gpu::Any => "any".to_owned(),
        Gpu::Count(n) => n.to_string(),
    });
    let of = [("cpu", &asked.cpu), ("memory", &asked.memory), ("disk", &asked.disk), ("gpu", &gpu)];
    let of = of.iter().filter_map(|(k, v)| Some(format!("{k} {}", v.as_ref()?)));
    let labels: Vec<_> = h.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let servers: Vec<_> =
        h.api_servers.iter().map(|s| format!("{} ({})", s.name, inside(plan, s.script.as_str()))).collect();
    let Budgets { max_turns, max_cost_usd, max_tokens } = h.budgets;
    let budgets = [
        max_turns.map(|n| format!("{n} turns")),
        max_tokens.map(|n| format!("{n} tokens")),
        max_cost_usd.map(|usd| format!("${usd:.2}")),
    ];
    for (key, text) in [
        ("budgets", budgets.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        ("resources", of.collect::<Vec<_>>().join(", ")),
        ("labels", labels.join(", ")),
        ("servers", servers.join(", ")),
        ("ttl", h.ttl.map(limit).unwrap_or_default()),
        (
            "at once",
            h.max_concurrent
                .map(|n| format!("at most {n} runs, waits {}", limit(plan.deadlines.queue)))
                .unwrap_or_default(),
        ),
    ] {
        if !text.is_empty() {
            line(key, &text);
        }
    }
}

/// What of the repository stays behind.
fn left_out(plan: &Plan) -> Vec<String> {
    let upload = &plan.harness.upload;
    let ignored = (!upload.ignored).then(|| "what git ignores".to_owned());
    ignored.into_iter().chain(upload.exclude.iter().cloned()).collect()
}

fn provider(provider: &ProviderUse) -> String {
    match provider {
        ProviderUse::Existing(name) => format!("{name} (of the gateway)"),
        ProviderUse::Defined(def) => {
            let keys: Vec<_> = def.credentials.keys().map(String::as_str).collect();
            format!("{} (type {}, lends {})", def.name, def.kind, keys.join(", "))
        }
    }
}

fn environment(out: &mut String, plan: &Plan) {
    let _ = writeln!(out, "\nEnvironment of the agent: {}", super::layout::ENV_FILE);
    for line in &plan.env {
        let _ = match line {
            EnvLine::Raw { name, text } => writeln!(out, "  {name}={text}"),
            EnvLine::Value { name, .. } => writeln!(out, "  {name}={}", value_of(plan, name)),
            EnvLine::Loader => writeln!(out, "  and what {}/*.env sets", super::layout::ENV_DIR),
        };
    }
}

/// Values that fullsend sets itself are no secrets; all others are masked.
fn value_of<'p>(plan: &'p Plan, name: &str) -> &'p str {
    match name {
        "FULLSEND_TARGET_REPO_DIR" => &plan.layout.repo,
        "FULLSEND_ROLE" => plan.harness.role.as_deref().unwrap_or(MASK),
        "FULLSEND_SLUG" => plan.harness.slug.as_deref().unwrap_or(MASK),
        _ => MASK,
    }
}

fn files(out: &mut String, plan: &Plan, estimate: &Estimate) {
    let files = match estimate.repo_files {
        1 => "1 file".to_owned(),
        n => format!("{n} files"),
    };
    let _ = writeln!(out, "\nFiles for the sandbox, with their sizes now");
    let repo =
        (bytes(estimate.repo_bytes), format!("{}/", plan.layout.repo), format!("{} ({files})", plan.repo));
    let delivered = estimate.files.iter().map(|f| (bytes(f.size), f.dest.clone(), origin(plan, f)));
    let rows: Vec<_> = std::iter::once(repo).chain(delivered).collect();
    // A few long paths must not push the rest off the screen.
    let width = rows.iter().map(|(_, to, _)| to.chars().count()).filter(|n| *n <= 70).max().unwrap_or(0);
    for (size, to, from) in rows {
        let _ = writeln!(out, "  {size:>9}  {to:<width$}  from {from}");
    }
}

/// The checks on tool calls.
fn hooks(hooks: &HookPlan) -> Vec<String> {
    hooks.hooks.names().into_iter().map(str::to_owned).collect()
}

fn origin(plan: &Plan, file: &FileEstimate) -> String {
    if file.dest == HOOK_PROGRAM { "fullsend itself".to_owned() } else { inside(plan, &file.from) }
}

/// A path of the harness directory, relative to it.
fn inside(plan: &Plan, path: &str) -> String {
    let below = camino::Utf8Path::new(path).strip_prefix(&plan.harness.dir);
    below.map_or_else(|_| path.to_owned(), ToString::to_string)
}

fn command_line(out: &mut String, command: &CommandLine) {
    let words: Vec<_> = command.argv.iter().map(|a| word(&a.to_string_lossy())).collect();
    let limit = limit(Duration::from_secs(command.deadline_s));
    let _ = writeln!(out, "    {limit:>6}  {}", words.join(" "));
    if !command.secret_env.is_empty() {
        let names = command.secret_env.join(", ");
        let _ = writeln!(out, "            gets {names} through its environment");
    }
}

/// A word as a shell takes it; `<…>` stands for what only a run knows.
fn word(text: &str) -> String {
    let placeholder = text.starts_with('<') && text.ends_with('>');
    if placeholder { text.to_owned() } else { shell_words::quote(text).into_owned() }
}

/// A limit as people write it: `90s` as `1m 30s`, `300s` as `5m`.
fn limit(d: Duration) -> String {
    let (h, m, s) = (d.as_secs() / 3600, d.as_secs() / 60 % 60, d.as_secs() % 60);
    let parts = [(h, 'h'), (m, 'm'), (s, 's')];
    let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_well() {
        let texts: Vec<_> = [0, 30, 90, 300, 3600, 5460].map(|s| limit(Duration::from_secs(s))).into();
        assert_eq!(texts, ["0s", "30s", "1m 30s", "5m", "1h", "1h 31m"]);
    }
}
