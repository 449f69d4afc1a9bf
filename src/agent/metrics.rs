//! What a run cost, counted while the stream comes in, so that a killed run keeps what it used.

use serde::{Deserialize, Serialize};

use super::event::{Event, ResultEvent, Usage};

/// Counts of one agent run, or of several added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Turns: the agent's own count once it gave one, before that the model's answers.
    pub turns: u64,
    /// Cost in US dollars as the agent reckons it; none before its result.
    pub cost_usd: Option<f64>,
    /// Tokens.
    pub tokens: Usage,
    /// Tool uses.
    pub tool_calls: u64,
    /// Tool uses that failed.
    pub tool_errors: u64,
    /// Tool uses that were refused.
    pub permission_denials: u64,
    /// Requests to the model API that were repeated.
    pub api_retries: u64,
    /// The model.
    pub model: Option<String>,
    /// The version of the agent CLI.
    pub agent_version: Option<String>,
    /// The session of the agent CLI.
    pub session: Option<String>,
}

impl Metrics {
    /// Counts an event.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::Init { model, version, session } => {
                self.model.clone_from(model);
                self.agent_version.clone_from(version);
                self.session.clone_from(session);
            }
            Event::Turn => self.turns += 1,
            Event::Tokens(usage) => self.tokens.add(usage),
            Event::Cost { total_usd } => self.cost_usd = Some(*total_usd),
            Event::ToolUse { .. } => self.tool_calls += 1,
            Event::ToolResult { is_error, .. } => self.tool_errors += u64::from(*is_error),
            Event::PermissionDenied { .. } => self.permission_denials += 1,
            Event::Retry { .. } => self.api_retries += 1,
            Event::Result(result) => self.result(result),
            Event::Text { .. } | Event::Thinking { .. } | Event::Error { .. } | Event::Warning { .. } => {}
        }
    }

    /// The agent's own figures win. A result of nothing but zeros does not erase tokens that were counted:
    /// Claude Code 2.1.332 writes such a one when its cost limit ends the run.
    fn result(&mut self, result: &ResultEvent) {
        if let Some(turns) = result.num_turns {
            self.turns = turns;
        }
        if let Some(usage) = result.usage.filter(|u| !u.is_zero()) {
            self.tokens = usage;
        }
        self.cost_usd = result.total_cost_usd.or(self.cost_usd);
        self.permission_denials = self.permission_denials.max(result.permission_denials);
        if result.session_id.is_some() {
            self.session.clone_from(&result.session_id);
        }
    }

    /// The tokens that a session has used in these starts.
    pub fn tokens_of<'a>(starts: impl IntoIterator<Item = &'a Self>, session: &str) -> Usage {
        let of_session = starts.into_iter().filter(|m| m.session.as_deref() == Some(session));
        of_session.fold(Usage::default(), |mut sum, m| {
            sum.add(&m.tokens);
            sum
        })
    }

    /// Whether a budget could have been measured by it.
    pub fn says_anything(&self) -> bool {
        self.turns > 0 || self.tokens.total() > 0 || self.cost_usd.is_some()
    }

    /// Adds a later iteration: counts are summed, names are those of the later one.
    pub fn add(&mut self, later: &Self) {
        self.turns += later.turns;
        self.cost_usd = match (self.cost_usd, later.cost_usd) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.tokens.add(&later.tokens);
        self.tool_calls += later.tool_calls;
        self.tool_errors += later.tool_errors;
        self.permission_denials += later.permission_denials;
        self.api_retries += later.api_retries;
        for (mine, theirs) in [
            (&mut self.model, &later.model),
            (&mut self.agent_version, &later.agent_version),
            (&mut self.session, &later.session),
        ] {
            if theirs.is_some() {
                mine.clone_from(theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_wins_but_zeros_erase_nothing() {
        let mut m = Metrics::default();
        let counted = Usage { input: 5, output: 1, ..Usage::default() };
        m.observe(&Event::Turn);
        m.observe(&Event::Tokens(counted));
        assert_eq!((m.turns, m.tokens, m.cost_usd), (1, counted, None));
        let zero = ResultEvent { num_turns: Some(3), usage: Some(Usage::default()), ..Default::default() };
        m.observe(&Event::Result(zero));
        assert_eq!((m.turns, m.tokens), (3, counted));
        let usage = Usage { input: 9, output: 9, ..Usage::default() };
        let full = ResultEvent { usage: Some(usage), total_cost_usd: Some(0.5), ..Default::default() };
        m.observe(&Event::Result(full));
        assert_eq!((m.turns, m.tokens, m.cost_usd), (3, usage, Some(0.5)));
    }

    #[test]
    fn iterations_add_up() {
        let one = |cost, model: Option<&str>| Metrics {
            turns: 2,
            cost_usd: cost,
            model: model.map(Into::into),
            tool_calls: 1,
            ..Metrics::default()
        };
        let mut total = one(Some(0.25), Some("a"));
        total.add(&one(None, None));
        total.add(&one(Some(0.5), Some("b")));
        assert_eq!((total.turns, total.tool_calls, total.cost_usd), (6, 3, Some(0.75)));
        assert_eq!(total.model.as_deref(), Some("b"));
    }
}
