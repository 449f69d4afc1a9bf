//! The hooks of a plan: which program they are in the sandbox, and how the agent's CLI is told.

use camino::Utf8PathBuf;
use serde::Serialize;

use super::files::Upload;
use super::layout::{HOOK_PROGRAM, HOOKS_DIR};
use crate::agent::runtime::list;
use crate::harness::model::{FailMode, Harness};
use crate::scan::hook::{Hooks, Wiring, settings};

/// Hooks on the agent's tool calls.
#[derive(Debug, Clone, Serialize)]
pub struct HookPlan {
    /// The program in the sandbox.
    pub program: String,
    /// The executable on the host; nothing when there is none that could run in a sandbox.
    pub binary: Option<Utf8PathBuf>,
    /// What they do.
    pub hooks: Hooks,
    /// What the agent's CLI is given as its settings.
    pub settings: String,
    /// The command that tries them.
    pub self_test: String,
}

impl HookPlan {
    /// The hooks that a harness asks for. The embedded backend shows the executable itself, which the agent cannot
    /// write; elsewhere it is uploaded.
    pub(super) fn new(
        harness: &Harness,
        agent_text: &[u8],
        binary: Option<Utf8PathBuf>,
        local: bool,
    ) -> Option<Self> {
        let security = &harness.security;
        if !security.enabled || !security.hooks.any() || !harness.runtime.runtime().hooks() {
            return None;
        }
        let program = match &binary {
            Some(path) if local => path.to_string(),
            _ => HOOK_PROGRAM.to_owned(),
        };
        let named = |key| if security.hooks.tool_allowlist { list(agent_text, key) } else { Vec::new() };
        let (tools, disallowed) = (named("tools"), named("disallowedTools"));
        let wiring = Wiring {
            program: &program,
            dir: HOOKS_DIR,
            hooks: security.hooks,
            hosts: &security.ssrf_egress_allowlist,
            tools: &tools,
            disallowed: &disallowed,
            open: security.fail_mode == FailMode::Open,
        };
        let (settings, self_test) = (settings(&wiring), wiring.command("self-test"));
        Some(Self { program, binary, hooks: security.hooks, settings, self_test })
    }

    /// The upload of the program, where it is uploaded.
    pub(super) fn upload(&self) -> Option<Upload> {
        let binary = self.binary.as_ref().filter(|_| self.program == HOOK_PROGRAM)?;
        Some(Upload::file(HOOK_PROGRAM, binary.clone()).executable())
    }
}
