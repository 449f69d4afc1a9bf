//! The normalised event: what any agent CLI says, in one vocabulary.

use serde::{Deserialize, Serialize};

/// Tokens, as a model API counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that were neither written to nor read from a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens written to the prompt cache.
    pub cache_creation: u64,
    /// Input tokens read from the prompt cache.
    pub cache_read: u64,
}

impl Usage {
    /// All tokens.
    pub fn total(&self) -> u64 {
        [self.output, self.cache_creation, self.cache_read]
            .iter()
            .fold(self.input, |a, b| a.saturating_add(*b))
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds `other`, field by field.
    pub fn add(&mut self, other: &Self) {
        *self = self.zip(other, u64::saturating_add);
    }

    /// The larger of both, field by field.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.zip(other, u64::max)
    }

    /// What `self` has more than `earlier`, field by field.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }

    fn zip(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: f(self.input, other.input),
            output: f(self.output, other.output),
            cache_creation: f(self.cache_creation, other.cache_creation),
            cache_read: f(self.cache_read, other.cache_read),
        }
    }
}

/// One thing that an agent said or did. Texts are as the agent gave them: data, not yet fit for a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The session began. Given once.
    Init {
        /// The model, when it is known.
        model: Option<String>,
        /// The version of the agent CLI.
        version: Option<String>,
        /// The session, for resuming it.
        session: Option<String>,
    },
    /// The model began another answer in the main conversation (not in a sub-agent's).
    Turn,
    /// Text of the agent.
    Text {
        /// The text, or the next piece of it.
        text: String,
        /// Whether the text is complete with this piece.
        end: bool,
    },
    /// Reasoning that the model shows.
    Thinking {
        /// The text, or the next piece of it.
        text: String,
        /// Whether the text is complete with this piece.
        end: bool,
    },
    /// The agent uses a tool.
    ToolUse {
        /// The tool, e.g. `Bash`.
        name: String,
        /// The telling part of its input: a command, a path; may be empty.
        summary: String,
        /// Pairs the use with its result.
        id: String,
    },
    /// A tool answered.
    ToolResult {
        /// The id of the use.
        id: String,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// Tokens used since the last such event; adding all of them gives the total.
    Tokens(Usage),
    /// What the session cost so far, where the CLI tells it before its result.
    Cost {
        /// In US dollars, as the CLI reckons it.
        total_usd: f64,
    },
    /// A tool use was refused.
    PermissionDenied {
        /// The tool.
        tool: String,
        /// The id of the use.
        id: String,
    },
    /// The CLI repeats a request to the model API.
    Retry {
        /// Which attempt follows, from 1.
        attempt: u64,
        /// Attempts in all.
        max: u64,
        /// The wait before it, in milliseconds.
        delay_ms: u64,
        /// Why, in the CLI's words.
        error: String,
    },
    /// An error that the agent or the model API reported.
    Error {
        /// A short class, e.g. `authentication_failed`.
        kind: String,
        /// What happened.
        message: String,
    },
    /// Something about the stream itself that a person should know. Each kind is given once.
    Warning {
        /// What happened.
        message: String,
    },
    /// The agent's own final word.
    Result(ResultEvent),
}

/// The final event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultEvent {
    /// `success`, `error_max_turns`, `error_max_budget_usd`, `error_during_execution`, …
    pub subtype: String,
    /// Whether the run failed; may be set together with the subtype `success`.
    pub is_error: bool,
    /// Turns, as the CLI counts them.
    pub num_turns: Option<u64>,
    /// Cost of the session in US dollars, as the CLI reckons it.
    pub total_cost_usd: Option<f64>,
    /// Tokens of the session.
    pub usage: Option<Usage>,
    /// The closing text.
    pub text: String,
    /// Further error texts.
    pub errors: Vec<String>,
    /// Why the run ended, e.g. `completed`, `max_turns`, `api_error`.
    pub terminal_reason: Option<String>,
    /// How many tool uses were refused.
    pub permission_denials: u64,
    /// The session, for resuming it.
    pub session_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_json() {
        let events = [
            Event::Turn,
            Event::Tokens(Usage { input: 1, output: 2, cache_creation: 3, cache_read: 4 }),
            Event::Text { text: "é".into(), end: true },
            Event::Result(ResultEvent {
                subtype: "success".into(),
                num_turns: Some(2),
                ..Default::default()
            }),
        ];
        for event in events {
            let text = serde_json::to_string(&event).unwrap();
            assert!(text.starts_with(r#"{"event":""#), "{text}");
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        }
    }

    #[test]
    fn usage_never_wraps() {
        let mut usage = Usage { input: u64::MAX, ..Usage::default() };
        usage.add(&Usage { input: 1, output: 1, ..Usage::default() });
        assert_eq!(usage.total(), u64::MAX);
        assert!(Usage::default().since(&usage).is_zero());
    }
}
