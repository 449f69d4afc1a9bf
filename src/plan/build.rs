//! Building the plan.

use camino::Utf8PathBuf;

use super::check_program;
use super::deadlines::Deadlines;
use super::env::{self, EnvInput, RESERVED};
use super::files::Upload;
use super::hooks::HookPlan;
use super::layout::{self, Layout, real_destination};
use super::start::{self, Start};
use super::{Apply, Plan};
use crate::agent::runtime::{self, Item, Source as ItemSource};
use crate::error::{Code, Error, Result};
use crate::harness::image_policy::ImagePolicy;
use crate::harness::model::{Effort, Harness};
use crate::harness::problem::{Problem, Problems};
use crate::openshell::Dialect;
use crate::remote::SUPERVISOR;
use crate::secrets::Secret;

/// What a plan is built from.
#[derive(Debug)]
pub struct Inputs {
    /// The resolved harness.
    pub harness: Harness,
    /// What the image has to show.
    pub image_policy: ImagePolicy,
    /// The bytes of the agent file.
    pub agent_text: Vec<u8>,
    /// What the openshell at hand can do.
    pub dialect: Dialect,
    /// Whether the embedded backend is used.
    pub local: bool,
    /// The top level of the target repository.
    pub repo: Utf8PathBuf,
    /// Whether the result is applied.
    pub apply: Apply,
    /// Whether the post-script is switched off.
    pub no_post_script: bool,
    /// Whether the sandbox stays.
    pub keep_sandbox: bool,
    /// The executable of the hooks.
    pub hook_binary: Option<Utf8PathBuf>,
    /// The `AGENTS.md` of the harness directory, where the repository has none.
    pub guidance: Option<Utf8PathBuf>,
    /// The event that started the CI job.
    pub event: Option<EventFile>,
    /// A directory of the command line that the agent gets as input, besides that of the harness.
    pub input_dir: Option<Utf8PathBuf>,
}

/// The event that started a CI job, as it goes into the sandbox.
#[derive(Debug, Clone)]
pub struct EventFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The variable that named it.
    pub from: &'static str,
}

/// Builds the plan.
///
/// # Errors
/// All problems that only show once harness and environment are seen together.
pub fn build(inputs: Inputs) -> Result<Plan> {
    let harness = inputs.harness;
    let mut problems = check(&harness);
    let mut notes = resources(&harness, &inputs.dialect, inputs.local, &mut problems);
    if problems.has_errors() {
        return Err(Error::problems(problems));
    }
    let name = inputs.repo.file_name().ok_or_else(|| {
        Error::new(Code::RepoInvalid, format!("{} has no name of its own", inputs.repo))
            .help("put the repository in a directory")
    })?;
    if layout::TAKEN.contains(&name) {
        return Err(Error::new(
            Code::RepoInvalid,
            format!("a repository named {name} would lie where fullsend keeps its own files in the sandbox"),
        )
        .help("rename the directory of the checkout"));
    }
    let mut layout = Layout::new(name);
    let runtime = harness.runtime.runtime();
    let hooks = HookPlan::new(&harness, &inputs.agent_text, inputs.hook_binary.clone(), inputs.local);
    let Started { items, agent_name, cannot, model } = agent(runtime, &harness, &inputs.agent_text);
    notes.extend(cannot);
    let settings = hooks.as_ref().map(|hooks| hooks.settings.as_str());
    let first = Start::first(&harness);
    let command = start::command(&harness, &layout.repo, &agent_name, model.as_deref(), settings, &first);
    let schema = harness.validation.as_ref().and_then(|v| v.schema.as_ref());
    let checks = checks(&harness);
    let lines = env::lines(&EnvInput {
        repo: &layout.repo,
        role: harness.role.as_deref(),
        slug: harness.slug.as_deref(),
        schema: schema.is_some(),
        checks: !checks.is_empty(),
        event: inputs.event.is_some(),
        output_file: harness.runner_env.get("FULLSEND_OUTPUT_FILE").map(Secret::expose),
        sandbox_env: &harness.sandbox_env,
        runtime: runtime.env(),
    });

    let mut uploads = vec![
        Upload::text(layout::SUPERVISOR, Secret::new(SUPERVISOR), "fullsend's supervisor"),
        Upload::text(layout::ENV_FILE, env::render(&lines), "the harness's environment"),
    ];
    uploads.extend(schema.map(|path| Upload::file(layout::SCHEMA_FILE, path.clone())));
    uploads.extend(checks);
    // What a further start needs is brought then: it depends on what the last one did.
    let iterations = harness.validation.as_ref().map_or(1, |v| v.max_iterations);
    let dest = format!("{}/command", Layout::iteration(1));
    uploads.push(Upload::content(dest, command.clone().into_bytes(), "the runtime's command line"));
    let prompt = harness.prompt.as_deref().unwrap_or(runtime::PROMPT);
    uploads.push(Upload::content(Start::prompt_file(1), prompt.into(), "the prompt"));
    uploads.extend(inputs.event.map(|e| Upload::content(layout::EVENT_FILE, e.bytes, e.from)));
    uploads.extend(items);
    if let (Some(file), Some(dest)) = (inputs.guidance, runtime.guidance()) {
        uploads.push(Upload::file(dest, file));
    }
    uploads.extend(hooks.as_ref().and_then(HookPlan::upload));
    uploads.extend(harness.agent_input.iter().map(|dir| Upload::dir(layout::INPUT_DIR, dir.clone())));
    uploads.extend(inputs.input_dir.map(|dir| Upload::dir(layout::INPUT_DIR, dir)));
    for file in &harness.host_files {
        let upload = match &file.content {
            Some(text) => Upload::text(file.dest.clone(), text.clone(), file.src.to_string()),
            None => Upload::file(file.dest.clone(), file.src.clone()),
        };
        layout.old_workspace |= real_destination(&file.dest).1;
        // Where programs are delivered they have to be executable, whatever the file's mode on the host is.
        uploads.push(if file.dest.contains("/bin/") { upload.executable() } else { upload });
    }

    let check =
        check_program::uploads(&harness, hooks.as_ref(), inputs.hook_binary.as_ref(), inputs.local, &uploads);
    uploads.extend(check);

    let apply = match inputs.apply {
        Apply::Never => false,
        Apply::Always => true,
        Apply::Auto => harness.post_script.is_none(),
    };
    let mut deadlines = Deadlines::new(harness.timeout, harness.sandbox_timeout).with(&harness.deadlines);
    deadlines.idle = harness.idle_timeout;
    Ok(Plan {
        version: 1,
        hooks,
        image_policy: inputs.image_policy,
        agent_name,
        agent_command: command,
        model,
        programs: runtime.programs().iter().map(|p| (*p).to_owned()).collect(),
        iterations,
        deadlines,
        apply: apply && !harness.readonly_repo,
        post_script: harness.post_script.is_some() && !inputs.no_post_script,
        keep_sandbox: inputs.keep_sandbox,
        notes,
        dialect: inputs.dialect,
        local: inputs.local,
        repo: inputs.repo,
        layout,
        uploads,
        env: lines,
        harness,
    })
}

/// What the runtime makes of the harness.
struct Started {
    /// What it puts in.
    items: Vec<Upload>,
    /// The name by which it starts the agent.
    agent_name: String,
    /// What it cannot honour, in one line.
    cannot: Option<String>,
    /// The model.
    model: Option<String>,
}

/// What the runtime makes of the harness.
fn agent(runtime: &dyn runtime::Runtime, harness: &Harness, text: &[u8]) -> Started {
    let skills: Vec<_> = harness.skills.iter().map(|s| s.dir.clone()).collect();
    let plugins: Vec<_> = harness.plugins.iter().map(|p| p.dir.clone()).collect();
    let input =
        runtime::Input { agent_path: &harness.agent, agent_text: text, skills: &skills, plugins: &plugins };
    let model = harness.model.clone().or_else(|| runtime.model(&input));
    let effort = harness.effort.map(Effort::as_str);
    let uploads = runtime.items(&input).into_iter().map(|item| upload(item, harness)).collect();
    let mut cannot = runtime.cannot(&input, effort);
    let security = &harness.security;
    if security.enabled && security.hooks.any() && !runtime.hooks() && !runtime.programs().is_empty() {
        cannot.push("`security.hooks`: its tool calls are not checked in the sandbox".to_owned());
    }
    if harness.debug.is_some() && !runtime.logs() {
        cannot.push("`debug`: there is no log of its own".to_owned());
    }
    let cannot = (!cannot.is_empty())
        .then(|| format!("not honoured by the runtime {}: {}", runtime.name(), cannot.join("; ")));
    Started { items: uploads, agent_name: runtime.agent_name(&input), cannot, model }
}

/// What `fullsend check-output` needs in the sandbox: further schemas, and the list of all.
fn checks(harness: &Harness) -> Vec<Upload> {
    let Some(validation) = &harness.validation else { return Vec::new() };
    let mut list = Vec::new();
    if validation.schema.is_some() {
        list.push(serde_json::json!({"file": harness.output_file(), "schema": layout::SCHEMA_FILE}));
    }
    let mut uploads = Vec::new();
    for (number, (file, schema)) in validation.schemas.iter().enumerate() {
        let dest = format!("{}/{}.json", layout::SCHEMAS_DIR, number + 1);
        list.push(serde_json::json!({"file": file, "schema": dest}));
        uploads.push(Upload::file(dest, schema.clone()));
    }
    if !list.is_empty() {
        let text = serde_json::Value::from(list).to_string();
        uploads.push(Upload::content(layout::CHECKS_FILE, text.into_bytes(), "the harness's schemas"));
    }
    uploads
}

fn upload(item: Item, harness: &Harness) -> Upload {
    let upload = match item.source {
        ItemSource::Bytes(bytes) => Upload::content(item.dest, bytes, harness.agent.as_str()),
        ItemSource::Tree(dir) => {
            let skill = harness.skills.iter().find(|skill| skill.dir == dir);
            let changed = skill.map(|skill| skill.overrides.clone()).unwrap_or_default();
            Upload::dir(item.dest, dir).changed(changed)
        }
        ItemSource::Dir => Upload::empty(item.dest),
    };
    if item.executable { upload.executable() } else { upload }
}

/// What of the resources OpenShell cannot give is an error, what the embedded backend does not hold to a note.
fn resources(harness: &Harness, d: &Dialect, local: bool, problems: &mut Problems) -> Vec<String> {
    let (asked, facts) = (&harness.resources, &d.facts);
    let gpu = asked.gpu.map(|_| "");
    let list = [
        ("cpu", asked.cpu.as_deref(), facts.cpu),
        ("memory", asked.memory.as_deref(), facts.memory),
        ("disk", asked.disk.as_deref(), facts.disk),
        ("gpu", gpu, facts.gpu),
    ];
    let wanted: Vec<_> = list.into_iter().filter(|(_, value, _)| value.is_some()).collect();
    if local && !wanted.is_empty() {
        let names: Vec<_> = wanted.iter().map(|(name, ..)| format!("resources.{name}")).collect();
        return vec![format!("not enforced by the embedded backend: {}", names.join(", "))];
    }
    for (name, _, able) in wanted {
        if !able {
            let message =
                format!("the harness asks for resources.{name}, and OpenShell {} cannot limit it", d.version);
            problems.push(Problem::error(Code::OpenshellUnsupported, message).help(format!(
                "remove resources.{name}, or use an openshell whose `sandbox create --help` has --{name}"
            )));
        }
    }
    Vec::new()
}

fn check(harness: &Harness) -> Problems {
    let mut problems = Problems::default();
    for name in harness.sandbox_env.keys().filter(|n| RESERVED.contains(&n.as_str())) {
        problems.push(
            Problem::error(Code::Value, format!("env.sandbox may not set {name}"))
                .help("this variable is fullsend's own; choose another name"),
        );
    }
    let taken =
        |n: &&String| !harness.api_servers.is_empty() && n.starts_with(crate::harness::services::VARIABLES);
    for name in harness.sandbox_env.keys().filter(taken) {
        problems.push(
            Problem::error(Code::Value, format!("env.sandbox may not set {name}"))
                .help("names that start with FULLSEND_API_ say where the servers are; choose another name"),
        );
    }
    problems
}
