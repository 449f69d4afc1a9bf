//! The mappings of a harness file that have keys of their own.

use crate::harness::model::FeedbackMode;

use super::{Effect, Field, Level, Merge, Type, field};

/// Variables and their values.
pub(super) const ENV_MAP: Type = Type::Map(&Type::Text);
/// Beginnings of URLs.
pub(super) const RESOURCES: Type = Type::List(&Type::Form("https://[^\\s]+/", "URL"));

pub(super) const FORGES: &[Field] = &[
    field("github", Type::Section(Level::Forge), "GitHub.")
        .merge(Merge::Forge)
        .example("{skills: [skills/github]}"),
    field("gitlab", Type::Section(Level::Forge), "GitLab.")
        .merge(Merge::Forge)
        .example("{skills: [skills/gitlab]}"),
    field("jira", Type::Section(Level::Forge), "Jira.")
        .merge(Merge::Forge)
        .example("{skills: [skills/jira]}"),
];

pub(super) const ENV: &[Field] = &[
    field("runner", ENV_MAP, "Environment of the scripts on the host.")
        .default("`{}`")
        .merge(Merge::Map)
        .example("{TASK: '${TASK}'}"),
    field("sandbox", ENV_MAP, "Environment of the agent. The agent can read it: no secrets.")
        .default("`{}`")
        .merge(Merge::Map)
        .example("{LANG: C.UTF-8}"),
];

pub(super) const OPENSHELL: &[Field] = &[field(
    "profiles",
    Type::List(&Type::Path),
    "Provider profiles that are imported, and updated when the gateway's copy differs.",
)
.default("those in `profiles/` whose `id` is the type of a provider in use")
.merge(Merge::Append)
.example("[profiles/github.yaml]")];

fn feedback_modes() -> Vec<&'static str> {
    FeedbackMode::NAMES.map(|(name, _)| name).to_vec()
}

fn after_failure() -> Vec<&'static str> {
    vec!["keep", "reset"]
}

pub(super) const VALIDATION: &[Field] = &[
    field(
        "script",
        Type::Path,
        "Runs on the host after each iteration. Exit 0 accepts; what it prints is the reason for a refusal.",
    )
    .merge(Merge::Filled)
    .example("scripts/validate.sh"),
    field(
        "schema",
        Type::Path,
        "JSON schema; the runner itself checks `output/agent-result.json` with it. The agent finds it at \
         `$FULLSEND_OUTPUT_SCHEMA`. Remote `$ref` are refused. One of `script`, `schema`, `schemas` and `escalate` is required.",
    )
    .merge(Merge::Filled)
    .example("schemas/result.json"),
    field("max_iterations", Type::Int(i64::MIN, 100), "How often the agent is started at most.")
        .default("1")
        .example("3"),
    field(
        "preflight_check",
        Type::Text,
        "A shell command (`sh -c`) that runs on the host before anything starts; it must exit with 0.",
    )
    .merge(Merge::Filled)
    .example("command -v jq"),
    field(
        "schemas",
        Type::Map(&Type::Path),
        "Schemas for further files, by their path in the output directory.",
    )
    .default("`{}`")
    .merge(Merge::Map)
    .example("{report.json: schemas/report.json}"),
    field(
        "escalate",
        Type::Text,
        "Another agent of the harness directory that reviews what the other checks accepted: see \
         [the guide](../guide/validation-loop.md#a-reviewer).",
    )
    .merge(Merge::Filled)
    .example("review"),
    field(
        "feedback_mode",
        Type::Words(feedback_modes),
        "What the next iteration is told: see [the guide](../guide/validation-loop.md#what-the-next-iteration-is-told).",
    )
    .default("`append`")
    .merge(Merge::Filled)
    .example("append"),
    field(
        "on_retry",
        Type::Words(after_failure),
        "Whether the next iteration gets the repository as the last one left it, or as it was uploaded.",
    )
    .default("`keep`")
    .merge(Merge::Filled)
    .example("reset"),
];

pub(super) const HOST_FILE: &[Field] = &[
    field(
        "src",
        Type::Path,
        "A file of the harness directory; when it starts with a variable, any file: \
         `${GOOGLE_APPLICATION_CREDENTIALS}`.",
    )
    .required()
    .example("env/extra.env"),
    field(
        "dest",
        Type::Form("/.*", "absolute path"),
        "Where it goes in the sandbox, with its file name. Not a place that the runner writes itself, such as \
         `/sandbox/workspace/.env`.",
    )
    .required()
    .example("/sandbox/workspace/.env.d/extra.env"),
    field(
        "expand",
        Type::Bool,
        "Replace variables in its text. In an `.env` file the values are quoted so that reading it cannot run them.",
    )
    .default("no")
    .example("true"),
    field("optional", Type::Bool, "Absent when the file or the variable in `src` is.").default("no").example("true"),
];

pub(super) const UPLOAD: &[Field] = &[
    field(
        "ignored",
        Type::Bool,
        "Whether files that git ignores are uploaded. Above 500 MB a warning names the largest ignored directory.",
    )
    .default("yes")
    .example("false"),
    field("exclude", Type::List(&Type::Text), "Patterns of what is left out of the upload besides.")
        .default("`[]`")
        .merge(Merge::Append)
        .example("['*.log', build/]"),
];

/// One field per name of [`crate::plan::deadlines::NAMES`]; a test compares them.
pub(super) const DEADLINES: &[Field] = &[
    deadline("api_server", "A server on the host becoming healthy."),
    deadline("bootstrap", "Moving the files into the sandbox."),
    deadline("collect", "Fetching the results, per iteration."),
    deadline("connect", "Opening the connection to the sandbox."),
    deadline("delete", "Deleting the sandbox and confirming that it is gone."),
    deadline("openshell", "One short call of `openshell`."),
    deadline("preflight_check", "The preflight check."),
    deadline("queue", "Waiting for a place under `max_concurrent`."),
    deadline("review", "The run of a reviewing agent."),
    deadline("run", "The whole run up to the end of its last agent."),
    deadline("script", "A pre-, post- or validation script."),
];

const fn deadline(name: &'static str, doc: &'static str) -> Field {
    field(name, Type::Duration, doc)
        .default("see [deadlines](deadlines.md)")
        .merge(Merge::Filled)
        .example("10m")
}

pub(super) const PLUGIN: &[Field] = &[
    field("path", Type::Dir, "The directory.").required().example("plugins/gopls-lsp"),
    field("env", ENV_MAP, "Variables for the agent, in capitals; `env.sandbox` wins.")
        .default("`{}`")
        .example("{GOFLAGS: -mod=mod}"),
    field("pi", Type::Section(Level::PluginPi), "For another agent program.")
        .effect(Effect::NotApplied)
        .example("{args: [--fast]}"),
];

pub(super) const PLUGIN_PI: &[Field] =
    &[field("args", Type::List(&Type::Text), "Arguments of its extension.")
        .effect(Effect::NotApplied)
        .example("[--fast]")];

pub(super) const API_SERVER: &[Field] = &[
    field("name", Type::Form("[A-Za-z][A-Za-z0-9_-]*", "name"), "Letters, digits, `-`, `_`; a letter first.")
        .required()
        .example("issues"),
    field("script", Type::Path, "What is started. It is trusted like the other scripts of the host.")
        .required()
        .example("scripts/serve.sh"),
    field(
        "port",
        Type::Int(1024, 65535),
        "Where it listens. With a fixed one two runs on one host cannot be at once.",
    )
    .default("a free one")
    .example("8700"),
    field("bind_address", Type::Text, "The IP address it listens on.")
        .default("`0.0.0.0`, with `--local` `127.0.0.1`")
        .example("172.17.0.1"),
    field(
        "env",
        ENV_MAP,
        "Its environment, over that of the scripts (`env.runner`). Variables are replaced; secrets belong here.",
    )
    .default("`{}`")
    .example("{TOKEN: '${TOKEN}'}"),
];

pub(super) const WORKFLOW: &[Field] = &[
    field("source", Type::Text, "A directory, or a URL of a tree with its `#sha256=`.")
        .required()
        .example("workflows/review"),
    field("name", Type::Text, "Its name.").example("review"),
    field("args", Type::Form("[^\\n\\r]*", "text of one line"), "Its arguments; they need a `name`.")
        .example("--strict"),
];
