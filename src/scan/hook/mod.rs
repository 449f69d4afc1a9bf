//! Hooks on an agent's tool calls: this program, placed in the sandbox and called by the agent's CLI before and after
//! each call.
//!
//! The protocol is Claude Code's (2.1.332, tried with the real program): a JSON value on standard input, one on
//! standard output, exit status 0. A replaced result must have the shape of the tool's own, else it is passed over
//! in silence; so only the texts inside are changed. All hooks of an event run at once on the original, so one
//! process does everything. What a hook says may be forged by the agent, which has the same user: the sandbox's
//! policy is the boundary, and the host marks what comes from here.

mod note;
mod post;
mod pre;
pub(crate) mod report;
mod settings;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::ssrf::Allowed;
use crate::error::{Code, Error, Result};
use crate::openshell::dialect::PLACEHOLDER_PREFIX;
use crate::secrets::{Registry, Secret};

pub(crate) use settings::{Wiring, settings};

/// Which hooks are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "one switch per hook, as the harness has them")]
pub struct Hooks {
    /// `ssrf_pretool`
    pub ssrf: bool,
    /// `canary_pretool`
    pub canary: bool,
    /// `tool_allowlist_pretool`
    pub tool_allowlist: bool,
    /// `canary_posttool`
    pub canary_results: bool,
    /// `secret_redact_posttool`
    pub secrets: bool,
    /// `unicode_posttool`
    pub unicode: bool,
    /// `context_suppress_posttool`
    pub context: bool,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            ssrf: true,
            canary: true,
            tool_allowlist: false,
            canary_results: true,
            secrets: true,
            unicode: true,
            context: true,
        }
    }
}

/// The switches by the names that a hook's command line has.
const CHECKS: [&str; 7] = ["ssrf", "canary", "tools", "canary-results", "secrets", "unicode", "context"];

impl Hooks {
    const NONE: Hooks = Hooks {
        ssrf: false,
        canary: false,
        tool_allowlist: false,
        canary_results: false,
        secrets: false,
        unicode: false,
        context: false,
    };

    /// Whether any is on.
    pub fn any(self) -> bool {
        self != Self::NONE
    }

    fn values(self) -> [bool; 7] {
        [
            self.ssrf,
            self.canary,
            self.tool_allowlist,
            self.canary_results,
            self.secrets,
            self.unicode,
            self.context,
        ]
    }

    /// The names of those that are on.
    pub(crate) fn names(self) -> Vec<&'static str> {
        CHECKS.into_iter().zip(self.values()).filter(|(_, on)| *on).map(|(name, _)| name).collect()
    }

    fn from_names(names: &[String]) -> Self {
        let on = |name: &str| names.iter().any(|n| n == name);
        Self {
            ssrf: on("ssrf"),
            canary: on("canary"),
            tool_allowlist: on("tools"),
            canary_results: on("canary-results"),
            secrets: on("secrets"),
            unicode: on("unicode"),
            context: on("context"),
        }
    }
}

/// The variable that holds the planted token.
pub(crate) const CANARY_ENV: &str = "FULLSEND_CANARY_TOKEN";
/// The variable that names a file whose text the agent is told once.
pub(crate) const NOTICE_ENV: &str = "FULLSEND_NOTICE_FILE";

/// The largest call that is looked at, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The moment of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Event {
    /// Before a tool is used.
    PreTool,
    /// After a tool was used.
    PostTool,
    /// After the use of a tool failed.
    PostToolFailure,
    /// After all calls of one turn, before the model is asked again.
    PostToolBatch,
    /// Try the checks on made-up calls.
    SelfTest,
}

/// What a hook is told on its command line; the environment belongs to the agent.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// What it does.
    pub(crate) hooks: Hooks,
    /// Hosts that may be reached.
    pub(crate) allowed: Allowed,
    /// The tools of the agent's definition; empty when it names none.
    pub(crate) tools: Vec<String>,
    /// The tools that it forbids.
    pub(crate) disallowed: Vec<String>,
    /// Whether a failure lets the call pass.
    pub(crate) open: bool,
    /// Where it notes what it did.
    pub(crate) dir: Option<PathBuf>,
}

/// Values that the model should not see: those of variables that are named like a secret, and the planted token.
struct Known {
    secrets: Registry,
    canary: Registry,
}

impl Known {
    fn new(env: impl Iterator<Item = (String, String)>) -> Self {
        let (mut secrets, mut canary) = (Vec::new(), Vec::new());
        for (name, value) in env {
            if name == CANARY_ENV {
                canary.push(Secret::new(value));
            } else if crate::secrets::is_secret_name(&name) && !value.starts_with(PLACEHOLDER_PREFIX) {
                secrets.push(Secret::new(value));
            }
        }
        Self { secrets: Registry::new(&secrets), canary: Registry::new(&canary) }
    }
}

impl Config {
    /// From a command line.
    ///
    /// # Errors
    /// [`Code::Usage`] for a host that is none.
    pub(crate) fn new(checks: &[String], hosts: &[String], open: bool, dir: Option<PathBuf>) -> Result<Self> {
        let allowed = Allowed::new(hosts.iter().map(String::as_str))
            .map_err(|host| Error::new(Code::Usage, format!("`{host}` is no host")))?;
        Ok(Self { hooks: Hooks::from_names(checks), allowed, open, dir, ..Self::default() })
    }
}

/// Answers one call. The text is what is printed; nothing is an answer as well.
pub(crate) fn answer(event: Event, config: &Config, input: impl std::io::Read) -> Result<String> {
    if event == Event::SelfTest {
        return self_test(config).map(|()| "hooks work\n".to_owned());
    }
    let known = Known::new(std::env::vars());
    let answer = match read(input) {
        Ok(call) if event == Event::PostToolBatch || call["tool_name"].is_string() => {
            reply(event, config, &known, &call)
        }
        unreadable => {
            let why = unreadable.err().unwrap_or_else(|| "the call names no tool".to_owned());
            note::failed(config, event, &why);
            (!config.open).then(|| stopped(event, &why))
        }
    };
    Ok(answer.map_or_else(String::new, |value| format!("{value}\n")))
}

fn reply(event: Event, config: &Config, known: &Known, call: &Value) -> Option<Value> {
    match event {
        Event::PreTool => pre::answer(config, known, call),
        Event::PostTool => post::answer(config, known, call),
        Event::PostToolFailure => post::failure(config, known, call),
        Event::PostToolBatch => post::batch(config, call),
        Event::SelfTest => None,
    }
}

fn read(input: impl std::io::Read) -> std::result::Result<Value, String> {
    let mut text = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut text).map_err(|e| format!("the call could not be read: {e}"))?;
    if text.len() as u64 > LARGEST {
        return Err("the call is larger than what is looked at".to_owned());
    }
    serde_json::from_slice(&text).map_err(|e| format!("the call is not JSON: {e}"))
}

/// What is answered when a call cannot be judged: it is denied, or, when it is done already, the agent stops before
/// the model sees the result.
fn stopped(event: Event, why: &str) -> Value {
    match event {
        Event::PreTool => deny(&format!("fullsend could not check this call: {why}")),
        _ => {
            json!({"continue": false, "stopReason": format!("fullsend could not check a tool's result: {why}")})
        }
    }
}

fn deny(reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
    }})
}

/// Tries the checks on calls that they have to catch.
fn self_test(config: &Config) -> Result<()> {
    let token = "self-test-canary-8f3a51";
    let known = Known::new(
        [(CANARY_ENV, token), ("SELF_TEST_SECRET", "a-value-of-the-self-test")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into_iter(),
    );
    let quiet = Config {
        hooks: config.hooks,
        allowed: Allowed::default(),
        tools: Vec::new(),
        disallowed: Vec::new(),
        open: config.open,
        dir: None,
    };
    let denied = |input: Value| {
        let answer = pre::answer(&quiet, &known, &json!({"tool_name": "Bash", "tool_input": input}));
        answer.is_some_and(|a| a["hookSpecificOutput"]["permissionDecision"] == "deny")
    };
    let failed = |what: &str| Err(Error::new(Code::HooksFailed, format!("the self-test of {what} failed")));
    if config.hooks.canary && !denied(json!({"command": format!("echo {token}")})) {
        return failed("the canary");
    }
    if config.hooks.ssrf && !denied(json!({"command": "curl http://169.254.169.254/"})) {
        return failed("the address check");
    }
    if config.hooks.secrets {
        let call = json!({"tool_name": "Bash", "tool_response": {"stdout": "a-value-of-the-self-test"}});
        let answer = post::answer(&quiet, &known, &call).unwrap_or_default();
        if answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"] == Value::Null {
            return failed("the masking of results");
        }
    }
    // Where it cannot write, it leaves no evidence.
    if let Some(dir) = &config.dir {
        note::check(dir).map_err(|e| Error::io("hooks cannot note what they do", &e))?;
    }
    Ok(())
}

/// The file in which hooks note what they did.
pub(crate) fn notes_file(dir: &Path) -> PathBuf {
    dir.join("hooks.jsonl")
}

#[cfg(test)]
mod tests;
