//! The settings that make the agent's CLI call the hooks. They go to it as text on its command line, not as a file,
//! so that there is nothing for the agent to change.

use serde_json::{Value, json};

use super::Hooks;
use crate::agent::runtime::quote;

/// How long one hook may take, in seconds; it takes milliseconds. The CLI lets a call pass when a hook is late.
const LIMIT: u32 = 60;

/// How the hooks are called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wiring<'a> {
    /// This program's path in the sandbox.
    pub(crate) program: &'a str,
    /// Where the hooks note what they did.
    pub(crate) dir: &'a str,
    /// What they do.
    pub(crate) hooks: Hooks,
    /// Hosts that may be reached.
    pub(crate) hosts: &'a [String],
    /// The tools of the agent's definition.
    pub(crate) tools: &'a [String],
    /// The tools that it forbids.
    pub(crate) disallowed: &'a [String],
    /// Whether a hook that fails lets the call pass.
    pub(crate) open: bool,
}

impl Wiring<'_> {
    /// The command of one event, for a shell.
    pub(crate) fn command(&self, event: &str) -> String {
        let mut words = vec![self.program, "hook", event, "--dir", self.dir];
        let checks = self.hooks.names().join(",");
        words.extend(["--checks", &checks]);
        for (flag, list) in [("--host", self.hosts), ("--tool", self.tools), ("--no-tool", self.disallowed)] {
            words.extend(list.iter().flat_map(|value| [flag, value.as_str()]));
        }
        if self.open {
            words.push("--open");
        }
        words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
    }
}

/// The value of `--settings`.
pub(crate) fn settings(wiring: &Wiring<'_>) -> String {
    let stop = r#"{"continue":false,"stopReason":"fullsend could not check a tool's result"}"#;
    let entry = |event: &str| -> Value {
        let command = wiring.command(event);
        // A program that cannot be started must not let a call pass. Status 2 denies, in every release; where a call
        // is done already, only this answer keeps its result from the model.
        let command = match (wiring.open, event) {
            (true, _) => format!("{command} || exit 0"),
            (false, "pre-tool") => format!("{command} || exit 2"),
            (false, _) => format!("{command} || echo {}", quote(stop)),
        };
        let mut hook = json!({"type": "command", "command": command, "timeout": LIMIT});
        if !wiring.open {
            hook["onFailure"] = "block".into();
        }
        json!([{"matcher": "*", "hooks": [hook]}])
    };
    json!({
        // A repository's own settings must not switch these off.
        "disableAllHooks": false,
        "hooks": {
            "PreToolUse": entry("pre-tool"),
            "PostToolUse": entry("post-tool"),
            "PostToolUseFailure": entry("post-tool-failure"),
            "PostToolBatch": entry("post-tool-batch"),
        },
    })
    .to_string()
}
