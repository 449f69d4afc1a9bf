//! Building the plan.

use camino::Utf8PathBuf;

use super::deadlines::Deadlines;
use super::env::{self, EnvInput, RESERVED};
use super::files::Upload;
use super::layout::{self, Layout, real_destination};
use super::{Apply, Plan};
use crate::agent::runtime::{self, Item, Launch, PROMPT, Runtime, Source as ItemSource};
use crate::error::{Code, Error, Result};
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
}

/// Builds the plan.
///
/// # Errors
/// All problems that only show once harness and environment are seen together.
pub fn build(inputs: Inputs) -> Result<Plan> {
    let harness = inputs.harness;
    check(&harness)?;
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
    let (items, command) = agent(runtime, &harness, &inputs.agent_text, &layout);
    let schema = harness.validation.as_ref().and_then(|v| v.schema.as_ref());
    let lines = env::lines(&EnvInput {
        repo: &layout.repo,
        role: harness.role.as_deref(),
        slug: harness.slug.as_deref(),
        schema: schema.is_some(),
        output_file: harness.runner_env.get("FULLSEND_OUTPUT_FILE").map(Secret::expose),
        sandbox_env: &harness.sandbox_env,
    });

    let mut uploads = vec![
        Upload::text(layout::SUPERVISOR, Secret::new(SUPERVISOR), "fullsend's supervisor"),
        Upload::text(layout::ENV_FILE, env::render(&lines), "the harness's environment"),
    ];
    uploads.extend(schema.map(|path| Upload::file(layout::SCHEMA_FILE, path.clone())));
    // A command of its own per iteration: the supervisor keeps each start's state beside it.
    let iterations = harness.validation.as_ref().map_or(1, |v| v.max_iterations);
    uploads.extend((1..=iterations).map(|n| {
        let dest = format!("{}/command", Layout::iteration(n));
        Upload::content(dest, command.clone().into_bytes(), "the runtime's command line")
    }));
    uploads.extend(items);
    uploads.extend(harness.agent_input.iter().map(|dir| Upload::dir(layout::INPUT_DIR, dir.clone())));
    for file in &harness.host_files {
        let upload = match &file.content {
            Some(text) => Upload::text(file.dest.clone(), text.clone(), file.src.to_string()),
            None => Upload::file(file.dest.clone(), file.src.clone()),
        };
        layout.old_workspace |= real_destination(&file.dest).1;
        // Where programs are delivered they have to be executable, whatever the file's mode on the host is.
        uploads.push(if file.dest.contains("/bin/") { upload.executable() } else { upload });
    }

    let apply = match inputs.apply {
        Apply::Never => false,
        Apply::Always => true,
        Apply::Auto => harness.post_script.is_none(),
    };
    let mut deadlines = Deadlines::new(harness.timeout, harness.sandbox_timeout).with(&harness.deadlines);
    deadlines.idle = harness.idle_timeout;
    Ok(Plan {
        version: 1,
        agent_command: command,
        programs: runtime.programs().iter().map(|p| (*p).to_owned()).collect(),
        iterations,
        deadlines,
        apply: apply && !harness.readonly_repo,
        post_script: harness.post_script.is_some() && !inputs.no_post_script,
        keep_sandbox: inputs.keep_sandbox,
        dialect: inputs.dialect,
        local: inputs.local,
        repo: inputs.repo,
        layout,
        uploads,
        env: lines,
        harness,
    })
}

/// What the runtime puts in, and the text for bash that starts the agent.
fn agent(runtime: &dyn Runtime, harness: &Harness, text: &[u8], layout: &Layout) -> (Vec<Upload>, String) {
    let skills: Vec<_> = harness.skills.iter().map(|s| s.dir.clone()).collect();
    let plugins: Vec<_> = harness.plugins.iter().map(|p| p.dir.clone()).collect();
    let names: Vec<_> = harness.plugins.iter().map(|p| p.name.as_str()).collect();
    let input =
        runtime::Input { agent_path: &harness.agent, agent_text: text, skills: &skills, plugins: &plugins };
    let launch = Launch {
        repo: &layout.repo,
        agent: &runtime.agent_name(&input),
        prompt: PROMPT,
        model: harness.model.as_deref(),
        effort: harness.effort.map(Effort::as_str),
        plugins: &names,
    };
    let uploads = runtime.items(&input).into_iter().map(|item| upload(item, harness)).collect();
    (uploads, runtime::script(runtime, &launch))
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

fn check(harness: &Harness) -> Result<()> {
    let mut problems = Problems::default();
    for name in harness.sandbox_env.keys().filter(|n| RESERVED.contains(&n.as_str())) {
        problems.push(
            Problem::error(Code::Value, format!("env.sandbox may not set {name}"))
                .help("this variable is fullsend's own; choose another name"),
        );
    }
    if problems.has_errors() { Err(Error::problems(problems)) } else { Ok(()) }
}
