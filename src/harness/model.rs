//! A harness with every name resolved, every value expanded and every file checked.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde::{Serialize, Serializer};

pub use super::security::{FailMode, Security};
pub use crate::agent::runtime::Kind as Runtime;
use crate::secrets::Secret;

/// One agent, ready to be planned. Paths are absolute unless stated.
#[derive(Debug, Clone, Serialize)]
pub struct Harness {
    /// The name that `fullsend run` was given: the file name of the harness without its extension.
    pub name: String,
    /// The harness directory.
    pub dir: Utf8PathBuf,
    /// The harness file.
    pub file: Utf8PathBuf,
    /// The SHA-256 of the bytes of the harness file, in hexadecimal.
    pub digest: String,
    /// The files that the harness builds on, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<Base>,
    /// The forge whose part of the harness applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forge: Option<Forge>,
    /// What the agent is for, as the author says it.
    pub description: Option<String>,
    /// `FULLSEND_ROLE` in the sandbox.
    pub role: Option<String>,
    /// `FULLSEND_SLUG` in the sandbox.
    pub slug: Option<String>,
    /// The agent's definition or script.
    pub agent: Utf8PathBuf,
    /// The agent's file name without extension.
    pub agent_name: String,
    /// What runs the agent.
    pub runtime: Runtime,
    /// The model, if the harness or the command line names one.
    pub model: Option<String>,
    /// The effort level for the agent's command line.
    pub effort: Option<Effort>,
    /// The sandbox image, passed on verbatim.
    pub image: Option<String>,
    /// The sandbox policy file.
    pub policy: Option<Utf8PathBuf>,
    /// The skills to upload.
    pub skills: Vec<Skill>,
    /// The plugins of the agent program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Plugin>,
    /// The files to upload from the host.
    pub host_files: Vec<HostFile>,
    /// The providers to attach.
    pub providers: Vec<ProviderUse>,
    /// The provider profiles to import.
    pub profiles: Vec<Profile>,
    /// A directory whose contents the agent gets as input.
    pub agent_input: Option<Utf8PathBuf>,
    /// The script before the sandbox is created.
    pub pre_script: Option<Utf8PathBuf>,
    /// The script on the result.
    pub post_script: Option<Utf8PathBuf>,
    /// How the result is validated.
    pub validation: Option<Validation>,
    /// The environment of scripts on the host: `runner_env` with `env.runner` over it.
    pub runner_env: BTreeMap<String, Secret>,
    /// The environment of the agent.
    pub sandbox_env: BTreeMap<String, Secret>,
    /// The time limit of one iteration of the agent; 30 minutes unless stated.
    #[serde(rename = "timeout_seconds", serialize_with = "seconds")]
    pub timeout: Duration,
    /// How long the sandbox may take to become ready; 300 seconds unless stated.
    #[serde(rename = "sandbox_timeout_seconds", serialize_with = "seconds")]
    pub sandbox_timeout: Duration,
    /// Other deadlines by name (see [`crate::plan::deadlines::NAMES`]).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deadlines: BTreeMap<String, Duration>,
    /// How long the agent may be silent before it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// The prompt, when the harness or the command line has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What the agent program logs of itself, when that is asked for; `*` is everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug: Option<String>,
    /// What the agent may use up in the whole run.
    #[serde(skip_serializing_if = "Budgets::is_empty")]
    pub budgets: Budgets,
    /// How often the agent is started again after the model API let it down.
    pub api_retries: u32,
    /// The servers on the host that the agent may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_servers: Vec<ApiServer>,
    /// What the sandbox gets of the machine.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Labels of the sandbox besides those of the run. They show in argv and on the gateway.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// After how long the run is ended, from its start.
    #[serde(
        rename = "ttl_seconds",
        serialize_with = "maybe_seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl: Option<Duration>,
    /// How many runs of this agent there may be at once on a gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
    /// Whether the agent may only read the repository.
    pub readonly_repo: bool,
    /// Whether configuration of agent programs that the repository brings along goes into the sandbox.
    pub trust_repo_config: bool,
    /// What of the repository is uploaded.
    pub upload: Upload,
    /// What is scanned and hooked.
    pub security: Security,
    /// What the agent's change of the repository may be.
    #[serde(skip_serializing_if = "ChangeLimits::is_default")]
    pub limits: ChangeLimits,
}

impl Harness {
    /// The output file that `validation_loop.schema` is for, by its path in the output directory.
    pub fn output_file(&self) -> &str {
        let name = self.runner_env.get("FULLSEND_OUTPUT_FILE").map(Secret::expose);
        name.filter(|name| !name.is_empty()).unwrap_or(crate::output_check::DEFAULT_OUTPUT)
    }

    /// The output files that are checked, with their schemas.
    pub fn output_checks(&self) -> Vec<crate::output_check::Check> {
        let Some(validation) = &self.validation else { return Vec::new() };
        let first = validation.schema.iter().map(|schema| (self.output_file(), schema));
        let more = validation.schemas.iter().map(|(file, schema)| (file.as_str(), schema));
        let all = first.chain(more);
        all.map(|(file, schema)| crate::output_check::Check { file: file.to_owned(), schema: schema.into() })
            .collect()
    }

    /// Whether any output file is checked with a schema.
    pub fn has_schemas(&self) -> bool {
        self.validation.as_ref().is_some_and(|v| v.schema.is_some() || !v.schemas.is_empty())
    }
}

/// A file that a harness builds on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Base {
    /// The file.
    pub file: Utf8PathBuf,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub digest: String,
}

/// Where the code and its issues live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Forge {
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Jira.
    Jira,
}

impl Forge {
    /// Every forge.
    pub const ALL: [Forge; 3] = [Forge::Github, Forge::Gitlab, Forge::Jira];

    /// The name in a harness.
    pub const fn as_str(self) -> &'static str {
        match self {
            Forge::Github => "github",
            Forge::Gitlab => "gitlab",
            Forge::Jira => "jira",
        }
    }

    /// The forge of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|forge| forge.as_str() == name)
    }
}

/// The effort levels of the `claude` command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// All levels with their names.
    pub const NAMES: [(&'static str, Effort); 5] = [
        ("low", Effort::Low),
        ("medium", Effort::Medium),
        ("high", Effort::High),
        ("xhigh", Effort::Xhigh),
        ("max", Effort::Max),
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

/// One skill: a directory with a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skill {
    /// The name of the directory.
    pub name: String,
    /// The directory.
    pub dir: Utf8PathBuf,
    /// Files of the skill, by their path in it, that other files take the place of; `None` leaves one out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, Option<Utf8PathBuf>>,
}

/// One plugin: a directory that the agent program loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plugin {
    /// The name of the directory.
    pub name: String,
    /// The directory.
    pub dir: Utf8PathBuf,
}

/// One file for the sandbox. An optional file that is not there is left out of [`Harness::host_files`].
#[derive(Debug, Clone, Serialize)]
pub struct HostFile {
    /// The file on the host.
    pub src: Utf8PathBuf,
    /// The absolute path in the sandbox.
    pub dest: String,
    /// Whether variables in the file are expanded.
    pub expand: bool,
    /// The expanded content, when `expand` is set.
    pub content: Option<Secret>,
}

/// A provider that the harness asks for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderUse {
    /// Defined by the harness directory.
    Defined(ProviderDef),
    /// Defined nowhere here: it must exist on the gateway.
    Existing(String),
}

impl ProviderUse {
    /// The name that the harness uses.
    pub fn name(&self) -> &str {
        match self {
            ProviderUse::Defined(def) => &def.name,
            ProviderUse::Existing(name) => name,
        }
    }
}

/// A provider of the harness directory, its values expanded.
#[derive(Debug, Clone, Serialize)]
pub struct ProviderDef {
    /// Its name.
    pub name: String,
    /// Its type: the id of a profile.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who shares it.
    pub scope: Scope,
    /// Credentials by key. An empty one is literally empty in the file; one that expands to empty is an error.
    pub credentials: BTreeMap<String, Secret>,
    /// Settings that are not secret.
    pub config: BTreeMap<String, String>,
    /// The file that defines it.
    pub file: Utf8PathBuf,
}

/// Who shares a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One instance per run, deleted after it.
    Run,
    /// One instance on the gateway, by its own name.
    Gateway,
}

/// A provider profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Its id: the `type` of providers.
    pub id: String,
    /// The file.
    pub file: Utf8PathBuf,
}

/// What an agent may use up, over all its iterations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Budgets {
    /// Answers of the model in the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// US dollars, as the agent program reckons them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Tokens of every kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl Budgets {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What an agent is told of why its output was refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackMode {
    /// Everything that the checks said.
    #[default]
    Append,
    /// Of the script only what it wrote to standard output.
    Stdout,
    /// Of the script only what it wrote to standard error.
    Stderr,
    /// Of the script only its exit status.
    ExitCode,
    /// Nothing: the next iteration begins anew.
    None,
}

impl FeedbackMode {
    /// Every mode with its name in a harness.
    pub const NAMES: [(&'static str, FeedbackMode); 5] = [
        ("append", FeedbackMode::Append),
        ("stdout", FeedbackMode::Stdout),
        ("stderr", FeedbackMode::Stderr),
        ("exit_code", FeedbackMode::ExitCode),
        ("none", FeedbackMode::None),
    ];
}

/// What the repository is for a further iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRetry {
    /// As the last iteration left it.
    #[default]
    Keep,
    /// As it was uploaded.
    Reset,
}

/// How the result is validated: by schemas for the output, by a script, by an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Validation {
    /// The script; exit 0 passes.
    pub script: Option<Utf8PathBuf>,
    /// A JSON schema for the agent's result.
    pub schema: Option<Utf8PathBuf>,
    /// JSON schemas for further output files, by their path in the output directory.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub schemas: BTreeMap<String, Utf8PathBuf>,
    /// How often the agent may try; at least 1.
    pub max_iterations: u32,
    /// What the agent is told after a refusal.
    pub feedback_mode: FeedbackMode,
    /// What becomes of the repository after a refusal.
    pub on_retry: OnRetry,
    /// The agent that reviews what the other checks accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate: Option<String>,
    /// A shell command that must succeed before anything starts, expanded: its text may hold secrets.
    pub preflight_check: Option<Secret>,
}

/// What of the repository is uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Upload {
    /// Whether git-ignored files go along.
    pub ignored: bool,
    /// Patterns of paths that stay behind.
    pub exclude: Vec<String>,
}

/// What the agent's change of the repository may be; past any of them nothing is taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChangeLimits {
    /// How many files may be added, changed or deleted.
    pub max_changed_files: Option<u64>,
    /// How large `changes.patch` may be, in bytes.
    pub max_patch_bytes: Option<u64>,
    /// How large a new or changed file may be, in bytes.
    pub max_file_bytes: Option<u64>,
    /// Patterns of gitignore(5), relative to the top of the repository, of what must not change.
    pub protected_paths: Vec<String>,
}

impl ChangeLimits {
    /// Whether nothing is limited.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A server on the host that the agent may call.
#[derive(Debug, Clone, Serialize)]
pub struct ApiServer {
    /// Its name.
    pub name: String,
    /// What is started.
    pub script: Utf8PathBuf,
    /// Where it listens; a free port when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address it listens on, where the harness says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<std::net::IpAddr>,
    /// Its own environment, over that of scripts.
    pub env: BTreeMap<String, Secret>,
}

/// What a sandbox gets of the machine; quantities as Kubernetes writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// Processors, e.g. `2` or `500m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory, e.g. `4Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Disk space, e.g. `20Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Graphics processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

/// Graphics processors of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gpu {
    /// As many as the driver gives.
    Any,
    /// So many.
    Count(u32),
}

impl Resources {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn maybe_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|d| d.as_secs()).serialize(serializer)
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    match duration.subsec_nanos() {
        0 => serializer.serialize_u64(duration.as_secs()),
        _ => serializer.serialize_f64(duration.as_secs_f64()),
    }
}
