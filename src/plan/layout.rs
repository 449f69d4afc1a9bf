//! Where things are inside the sandbox. Agents and skills in the field depend on these paths.

use serde::Serialize;

/// The directory that everything is unpacked below. Nothing opens `/` itself in a sandbox: a policy seldom
/// grants that.
pub const HOME: &str = "/sandbox";
/// The workspace directory.
pub const WORKSPACE: &str = crate::agent::runtime::WORKSPACE;
/// Where the older harness format delivers files; a link to [`WORKSPACE`] when a harness uses it.
pub const OLD_WORKSPACE: &str = "/tmp/workspace";
/// The agent CLI's configuration directory.
pub const CONFIG_DIR: &str = "/sandbox/claude-config";
/// What the runner itself keeps in the sandbox.
pub const RUNNER_DIR: &str = "/sandbox/workspace/.fullsend";
/// Where the agent leaves its results; created before it starts.
pub const OUTPUT_DIR: &str = "/sandbox/workspace/output";
/// The environment that is sourced before the agent.
pub const ENV_FILE: &str = "/sandbox/workspace/.env";
/// Further environment files, sourced in name order.
pub const ENV_DIR: &str = "/sandbox/workspace/.env.d";
/// The JSON Schema of the result, when the harness has one.
pub const SCHEMA_FILE: &str = "/sandbox/workspace/.fullsend/output-schema.json";
/// Further schemas, and which file each is for.
pub const SCHEMAS_DIR: &str = "/sandbox/workspace/.fullsend/schemas";
/// Which output files are checked, for `fullsend check-output`.
pub const CHECKS_FILE: &str = "/sandbox/workspace/.fullsend/output-checks.json";
/// The check of the output, for the agent.
pub const CHECK_PROGRAM: &str = "/sandbox/workspace/bin/fullsend-check-output";
/// The event that started the CI job.
pub const EVENT_FILE: &str = "/sandbox/workspace/.fullsend/event.json";
/// This program, for the hooks on tool calls and for the check of the output.
pub const HOOK_PROGRAM: &str = "/sandbox/workspace/bin/fullsend";
/// What the hooks note.
pub const HOOKS_DIR: &str = "/sandbox/workspace/.fullsend/hooks";
/// The repository as it was uploaded, where a further iteration begins with it.
pub const PRISTINE: &str = "/sandbox/workspace/.fullsend/pristine";
/// The supervisor script.
pub const SUPERVISOR: &str = "/sandbox/workspace/.fullsend/supervise.sh";
/// Where the archive lies for a moment.
pub const ARCHIVE: &str = "/tmp/fullsend-in.tar";
/// The contents of the harness's `agent_input`.
pub const INPUT_DIR: &str = "/sandbox/workspace/agent-input";

/// Names in the workspace that a repository cannot have.
pub const TAKEN: &[&str] = &[".env", ".env.d", ".fullsend", "agent", "agent-input", "bin", "output"];

/// The paths that depend on the run.
#[derive(Debug, Clone, Serialize)]
pub struct Layout {
    /// The repository, `<workspace>/<repo basename>`.
    pub repo: String,
    /// Whether the harness delivers into [`OLD_WORKSPACE`], so that it has to be a link.
    pub old_workspace: bool,
}

impl Layout {
    /// The layout for a repository of that basename.
    pub fn new(repo_name: &str) -> Self {
        Self { repo: format!("{WORKSPACE}/{repo_name}"), old_workspace: false }
    }

    /// The supervisor's state of one iteration.
    pub fn iteration(n: u32) -> String {
        format!("{RUNNER_DIR}/iteration-{n}")
    }
}

/// A path below [`HOME`], relative to it.
pub fn below_home(path: &str) -> Option<&str> {
    path.strip_prefix(HOME)?.strip_prefix('/')
}

/// Rewrites a destination in the old workspace to the real one.
pub fn real_destination(dest: &str) -> (String, bool) {
    match dest.strip_prefix(OLD_WORKSPACE) {
        Some(rest) if rest.starts_with('/') => (format!("{WORKSPACE}{rest}"), true),
        _ => (dest.to_owned(), false),
    }
}
