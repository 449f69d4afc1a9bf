//! The harness file itself; what is at home in a [`Block`](Home::Block) is also for forges and overlays.

use super::limits::LABELS;
use super::sections::{ENV_MAP, RESOURCES};
use super::{Effect, Field, Home, Level, Merge, Type, field};
use crate::agent::runtime::Kind;
use crate::harness::model::Effort;

/// `[a-z][a-z0-9_-]*` without `--`.
const ROLE: Type = Type::Form("[a-z](?:-?[a-z0-9_])*-?", "name");
/// Slugs, names and types of providers, ids of profiles.
pub(super) const ID: Type = Type::Form("[A-Za-z0-9][A-Za-z0-9_-]*", "name");
/// A variable.
pub(super) const VARIABLE: Type = Type::Form("[A-Za-z_][A-Za-z0-9_]*", "variable name");

fn runtimes() -> Vec<&'static str> {
    Kind::ALL.map(Kind::name).to_vec()
}

fn efforts() -> Vec<&'static str> {
    Effort::NAMES.map(|(name, _)| name).to_vec()
}

/// What `runtime` may be.
pub(super) const RUNTIME: Type = Type::Words(runtimes);

/// The top level.
pub(super) const TOP: &[Field] = &[
    field("agent", Type::Path, "The agent definition: a Markdown file for `claude`, an executable for `script`.")
        .required()
        .merge(Merge::Filled)
        .example("agents/review.md"),
    field("base", Type::Path, "A harness file that this one builds on: see [composition](harness.md#composition).")
        .merge(Merge::Steers)
        .example("../shared/base.yaml"),
    field("forge", Type::Section(Level::Forges), "What differs per forge: see [composition](harness.md#composition).")
        .merge(Merge::Forge)
        .example("{github: {policy: policies/github.yaml}}"),
    field(
        "overlays",
        Type::List(&Type::Section(Level::Overlay)),
        "What differs by a condition: see [composition](harness.md#composition). Not together with `forge`.",
    )
    .merge(Merge::Overlays)
    .example("[{when: 'runtime.forge == \"github\"', policy: policies/github.yaml}]"),
    field(
        "when",
        Type::Text,
        "The condition, in the Common Expression Language over `event`, `runtime.forge` and `config`.",
    )
    .required()
    .home(Home::Overlay)
    .merge(Merge::Steers)
    .example("has(event.issue)"),
    field(
        "remove",
        Type::Map(&Type::Either(&[Type::Bool, Type::List(&Type::Text)])),
        "What is not inherited: names by key, or `true` for the whole key. See \
         [composition](harness.md#composition).",
    )
    .home(Home::Block)
    .merge(Merge::Steers)
    .example("{skills: [docs-review], post_script: true}"),
    field("description", Type::Text, "One line; shown by `fullsend list`.")
        .merge(Merge::Filled)
        .example("Reviews a pull request"),
    field("doc", Type::Text, "Where people read more. Nothing else is done with it.")
        .merge(Merge::Filled)
        .example("docs/review.md"),
    field(
        "runtime",
        RUNTIME,
        "The program that runs the agent; [runtimes](runtimes.md) has what each honours. `script`: the agent file itself is executed, in the repository, inside \
         the sandbox.",
    )
    .default("`script` for an agent file that is executable or begins with `#!` and is no `.md` file, else that of \
              `config.yaml`, else `claude`")
    .merge(Merge::Filled)
    .example("claude"),
    field(
        "model",
        Type::Form("[A-Za-z0-9_.@-]+", "name"),
        "Passed to the agent program. `--model` overrides it. Letters, digits, `_`, `.`, `@`, `-`.",
    )
    .default("the agent program's own")
    .merge(Merge::Filled)
    .example("sonnet"),
    field("effort", Type::Words(efforts), "Passed to `claude --effort`.").merge(Merge::Filled).example("high"),
    field(
        "role",
        ROLE,
        "`FULLSEND_ROLE` in the sandbox. Lower-case letters, digits, `_`, single `-`; starts with a letter.",
    )
    .merge(Merge::Filled)
    .example("coder"),
    field("slug", ID, "`FULLSEND_SLUG` in the sandbox.").merge(Merge::Filled).example("team-coder"),
    field(
        "image",
        Type::Form("[^\\s$`\"'-][^\\s$`\"']*", "image reference"),
        "The container image of the sandbox. What has a `/` or a `:` is used as it stands; any other name is \
         looked up in `images` of `config.yaml`. `--image` overrides it, then `FULLSEND_SANDBOX_IMAGE`. Not used \
         by `--local`.",
    )
    .default("OpenShell's default image")
    .merge(Merge::Filled)
    .example("registry.example.com/team/agent:1"),
    field("policy", Type::Path, "The sandbox policy, passed to OpenShell as it is.")
        .default("OpenShell's default policy")
        .home(Home::Block)
        .merge(Merge::Filled)
        .example("policies/base.yaml"),
    field(
        "skills",
        Type::List(&Type::Either(&[
            Type::Dir,
            Type::Map(&Type::Map(&Type::Path)),
        ])),
        "Directories with a `SKILL.md` (else a warning); the names of the directories must differ. An entry \
         `PATH: {FILE: OTHER}` replaces files of the skill, by their path in it, with files of the harness \
         directory; null leaves a file out.",
    )
    .default("`[]`")
    .home(Home::Block)
    .merge(Merge::Skills)
    .example("[skills/review, {skills/style: {rules.md: notes/rules.md, old.md: null}}]"),
    field(
        "plugins",
        Type::List(&Type::Either(&[Type::Dir, Type::Section(Level::Plugin)])),
        "Directories with a `plugin.json` or `.claude-plugin/plugin.json` (else a warning), or `{path, env}`. They \
         arrive in `$CLAUDE_CONFIG_DIR/plugins/` and are loaded with `--plugin-dir`.",
    )
    .default("`[]`")
    .merge(Merge::Append)
    .example("[plugins/gopls-lsp]"),
    field(
        "host_files",
        Type::List(&Type::Section(Level::HostFile)),
        "Files delivered into the sandbox: see [below](#an-entry-of-host_files).",
    )
    .default("`[]`")
    .home(Home::Block)
    .merge(Merge::HostFiles)
    .example("[{src: env/extra.env, dest: /sandbox/workspace/.env.d/extra.env, expand: true}]"),
    field("providers", Type::List(&Type::Text), "Names or files of providers: see [below](#a-provider-file).")
        .default("`[]`")
        .home(Home::Block)
        .merge(Merge::Append)
        .example("[anthropic, providers/github.yaml]"),
    field("openshell", Type::Section(Level::Openshell), "See [below](#openshell).")
        .home(Home::Block)
        .merge(Merge::Section)
        .example("{profiles: [profiles/github.yaml]}"),
    field("agent_input", Type::Dir, "Its content arrives in `agent-input/` of the workspace.")
        .merge(Merge::Filled)
        .example("input"),
    field(
        "pre_script",
        Type::Path,
        "Runs on the host before a sandbox exists: see [scripts](harness.md#scripts-on-the-host).",
    )
    .home(Home::Block)
    .merge(Merge::Filled)
    .example("scripts/pre.sh"),
    field(
        "post_script",
        Type::Path,
        "Runs on the host after a validated result: see [scripts](harness.md#scripts-on-the-host).",
    )
    .home(Home::Block)
    .merge(Merge::Filled)
    .example("scripts/post.sh"),
    field(
        "validation_loop",
        Type::Section(Level::Validation),
        "Checks the output and repeats the agent: see [below](#validation_loop).",
    )
    .home(Home::Block)
    .merge(Merge::Section)
    .example("{schema: schemas/result.json, max_iterations: 2}"),
    field("env", Type::Section(Level::Env), "See [below](#env).")
        .home(Home::Block)
        .merge(Merge::Section)
        .example("{runner: {TASK: '${TASK}'}, sandbox: {LANG: C.UTF-8}}"),
    field("runner_env", ENV_MAP, "Older name of `env.runner`, which wins where both have a name.")
        .default("`{}`")
        .home(Home::Block)
        .merge(Merge::Map)
        .example("{TASK: '${TASK}'}"),
    field(
        "required_env",
        Type::List(&VARIABLE),
        "Variables that must be set and not empty. All that are missing are reported at once, before anything \
         starts.",
    )
    .default("`[]`")
    .home(Home::Block)
    .merge(Merge::Append)
    .example("[GH_TOKEN]"),
    field("timeout_minutes", Type::Int(0, 7 * 24 * 60), "How long one iteration of the agent may take. `--timeout` overrides it.")
        .default("30")
        .merge(Merge::Filled)
        .example("20"),
    field(
        "sandbox_timeout_seconds",
        Type::Int(0, 3600),
        "How long the sandbox may take to become ready. `--ready-timeout` overrides it.",
    )
    .default("300")
    .merge(Merge::Filled)
    .example("120"),
    field(
        "deadlines",
        Type::Section(Level::Deadlines),
        "Limits of other parts of the run; see [deadlines](deadlines.md). `--deadline` overrides them.",
    )
    .default("`{}`")
    .merge(Merge::Map)
    .example("{script: 10m}"),
    field("idle_timeout", Type::Duration, "After how long a silence the agent is ended. `--idle-timeout` overrides it.")
        .default("never")
        .merge(Merge::Filled)
        .example("15m"),
    field(
        "prompt",
        Type::Text,
        "What the agent is asked; at most 4 MiB, variables are not replaced. `--prompt` and `--prompt-file` override it.",
    )
    .default("`Run the agent task`")
    .merge(Merge::Filled)
    .example("Look at the failing test"),
    field(
        "debug",
        Type::Text,
        "What the agent program is to log of itself, in its own words; `*` is everything: see \
         [runtimes](runtimes.md#the-log-of-the-agent-program). `--debug` overrides it.",
    )
    .default("nothing")
    .merge(Merge::Filled)
    .example("api"),
    field(
        "max_turns",
        Type::Int(0, i64::MAX),
        "Turns of the whole run: see [budgets](harness.md#budgets). `--max-turns` overrides it.",
    )
    .default("0, no limit")
    .merge(Merge::Filled)
    .example("40"),
    field(
        "max_cost_usd",
        Type::Form("[0-9]*(\\.[0-9]+)?", "amount"),
        "US dollars of the whole run, as the agent program reckons them. `--max-cost-usd` overrides it.",
    )
    .default("0, no limit")
    .merge(Merge::Filled)
    .example("2.5"),
    field("max_tokens", Type::Int(0, i64::MAX), "Tokens of the whole run. `--max-tokens` overrides it.")
        .default("0, no limit")
        .merge(Merge::Filled)
        .example("2000000"),
    field(
        "api_retries",
        Type::Int(0, 10),
        "How often the agent is started again after the model API failed: see [retries](retries.md). `--api-retries` \
         overrides it.",
    )
    .default("2")
    .example("0"),
    field("readonly_repo", Type::Bool, "The agent may only read the repository. Nothing is taken over; a change is reported.")
        .default("no")
        .example("true"),
    field("upload", Type::Section(Level::Upload), "What of the repository is uploaded: see [below](#upload).")
        .merge(Merge::Section)
        .example("{ignored: false}"),
    field(
        "trust_repo_config",
        Type::Bool,
        "Whether configuration of agent programs that the repository brings along (`.claude/settings.json`, \
         `.mcp.json`, `.codex/`, …) goes into the sandbox: see \
         [secrets](secrets.md#configuration-of-agent-programs).",
    )
    .default("no")
    .example("true"),
    field(
        "limits",
        Type::Section(Level::Limits),
        "What the agent's change of the repository may be: see [below](#limits). Past a limit nothing is taken over \
         and the post-script does not run; the run ends with 4, and the error has the list.",
    )
    .merge(Merge::Section)
    .example("{max_changed_files: 50, protected_paths: [.github/workflows/]}"),
    field(
        "resources",
        Type::Section(Level::Resources),
        "What the sandbox gets of the machine: see [limits](harness.md#limits).",
    )
    .merge(Merge::Map)
    .example("{cpu: 2, memory: 4Gi}"),
    field(
        "ttl",
        Type::Duration,
        "After how long the run is ended, from its start, waiting included: see [limits](harness.md#limits). `--ttl` \
         overrides it.",
    )
    .default("never")
    .merge(Merge::Filled)
    .example("2h"),
    field(
        "max_concurrent",
        Type::Int(0, 1000),
        "How many runs of this agent there may be at once on a gateway: see [limits](harness.md#limits).",
    )
    .default("0, no limit")
    .example("1"),
    field(
        "labels",
        LABELS,
        "Labels of the sandbox on the gateway. They show in process lists and to everybody on the gateway: no \
         secrets, and variables are not replaced. A value that is no legal label is shortened and made unique by a \
         digest. `managed-by`, `keep` and what starts with `fullsend` are taken.",
    )
    .default("`{}`")
    .merge(Merge::Map)
    .example("{team: core}"),
    field(
        "api_servers",
        Type::List(&Type::Section(Level::ApiServer)),
        "Servers on the host that the agent may call: see [api_servers](harness.md#api_servers).",
    )
    .default("`[]`")
    .merge(Merge::Append)
    .example("[{name: issues, script: scripts/serve.sh}]"),
    field("security", Type::Section(Level::Security), "What is scanned and hooked: see [security checks](security.md).")
        .default("all checks on, `fail_mode: closed`")
        .example("{enabled: true, fail_mode: closed}"),
    field("trigger", Type::Text, "When a dispatcher starts the agent: a CEL expression over `event`.")
        .merge(Merge::Filled)
        .effect(Effect::NotApplied)
        .example("event.action == \"opened\""),
    field(
        "allowed_remote_resources",
        RESOURCES,
        "Which URLs the harness may name, by their beginning: see [URLs](harness.md#urls).",
    )
        .example("[https://example.com/team/]"),
    field("allow_runtime_fetch", Type::Bool, "Whether the agent may have resources fetched while it runs.")
        .default("no")
        .effect(Effect::NotApplied)
        .example("false"),
    field("max_runtime_fetches", Type::Int(1, 1000), "How many of them at most.")
        .default("10")
        .effect(Effect::NotApplied)
        .example("10"),
    field(
        "privilege_levels",
        Type::Map(&Type::Text),
        "The privilege of the tokens that are minted per stage of a run.",
    )
    .effect(Effect::NotApplied)
    .example("{post: write}"),
    field("workflow", Type::Section(Level::Workflow), "The definition of a workflow: see [below](#workflow).")
        .effect(Effect::NotApplied)
        .example("{source: workflows/review}"),
];
