//! One start of the agent: its prompt, its feedback, its command.

use super::Plan;
use super::layout::Layout;
use crate::agent::runtime::{self, Launch, quote};
use crate::harness::model::{Budgets, Effort, Harness, OnRetry};

/// What differs from start to start.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// 1 for the first.
    pub number: u32,
    /// Whether there is feedback on the last one.
    pub feedback: bool,
    /// The session to take up again.
    pub resume: Option<&'a str>,
    /// What is left to be used up.
    pub left: Budgets,
}

impl Start<'_> {
    /// The first start.
    pub fn first(harness: &Harness) -> Self {
        Self { number: 1, feedback: false, resume: None, left: harness.budgets }
    }

    /// The file in the sandbox with the prompt.
    pub fn prompt_file(number: u32) -> String {
        format!("{}/prompt", Layout::iteration(number))
    }

    /// The file in the sandbox with the log of the agent program about itself.
    pub fn debug_log(number: u32) -> String {
        format!("{}/agent-debug.log", Layout::iteration(number))
    }

    /// The file in the sandbox with what was wrong with the last output.
    pub fn feedback_file(number: u32) -> String {
        format!("{}/feedback", Layout::iteration(number))
    }
}

/// The text for bash that starts the agent.
pub(super) fn command(
    harness: &Harness,
    repo: &str,
    agent: &str,
    model: Option<&str>,
    settings: Option<&str>,
    start: &Start<'_>,
) -> String {
    let plugins: Vec<_> = harness.plugins.iter().map(|p| p.name.as_str()).collect();
    let prompt_file = Start::prompt_file(start.number);
    let mut before =
        format!("export FULLSEND_ITERATION={} FULLSEND_PROMPT_FILE={}", start.number, quote(&prompt_file));
    if start.feedback {
        before.push_str(" FULLSEND_FEEDBACK_FILE=");
        before.push_str(&quote(&Start::feedback_file(start.number)));
    }
    before.push('\n');
    let log = Start::debug_log(start.number);
    let debug = harness.debug.as_deref().map(|filter| runtime::Debug { filter, file: &log });
    let launch = Launch {
        repo,
        agent,
        prompt_file: &prompt_file,
        before: &before,
        resume: start.resume,
        max_turns: start.left.max_turns,
        max_cost_usd: start.left.max_cost_usd,
        model,
        effort: harness.effort.map(Effort::as_str),
        plugins: &plugins,
        settings,
        debug,
    };
    runtime::script(harness.runtime.runtime(), &launch)
}

impl Plan {
    /// The text for bash of a further start.
    pub fn command(&self, start: &Start<'_>) -> String {
        let settings = self.hooks.as_ref().map(|hooks| hooks.settings.as_str());
        command(&self.harness, &self.layout.repo, &self.agent_name, self.model.as_deref(), settings, start)
    }

    /// Whether a further start gets the repository as it was uploaded.
    pub fn resets(&self) -> bool {
        self.harness.validation.as_ref().is_some_and(|v| v.on_retry == OnRetry::Reset)
    }

    /// What the agent is asked.
    pub fn prompt(&self) -> &str {
        self.harness.prompt.as_deref().unwrap_or(runtime::PROMPT)
    }
}
