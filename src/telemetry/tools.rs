//! The agent's tool calls and its use of tokens, from the events of its stream.

use std::collections::BTreeMap;

use super::recorder::Recorder;
use super::span::{Attributes, Kind, Status};
use crate::agent::{Event, Usage};

/// More calls than this are not open at once; the oldest is forgotten, and ends with the run.
const OPEN: usize = 512;

/// Follows one stream.
#[derive(Debug)]
pub(crate) struct Tools {
    recorder: Recorder,
    open: BTreeMap<String, u64>,
    usage: Usage,
}

impl Tools {
    /// Follows a stream for `recorder`.
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, open: BTreeMap::new(), usage: Usage::default() }
    }

    /// Takes an event.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::ToolUse { name, summary, id } => {
                let mut about: Attributes = vec![
                    ("gen_ai.operation.name", "execute_tool".into()),
                    ("gen_ai.tool.name", name.as_str().into()),
                    ("gen_ai.tool.call.id", id.as_str().into()),
                ];
                if !summary.is_empty() {
                    about.push(("fullsend.tool.summary", summary.as_str().into()));
                }
                let number = self.recorder.begin(format!("execute_tool {name}"), Kind::Internal, about);
                while self.open.len() >= OPEN {
                    self.open.pop_first();
                }
                self.open.insert(id.clone(), number);
            }
            Event::ToolResult { id, is_error } => {
                if let Some(number) = self.open.remove(id) {
                    let (status, more): (_, Attributes) = if *is_error {
                        (Status::Error("the tool failed".into()), vec![("error.type", "tool_error".into())])
                    } else {
                        (Status::Unset, Vec::new())
                    };
                    self.recorder.end(number, status, more);
                }
            }
            Event::Tokens(usage) => {
                self.usage.add(usage);
                self.recorder.moment("gen_ai.usage", usage_attributes(&self.usage));
            }
            Event::Cost { total_usd } => self.cost(*total_usd),
            Event::Result(result) => result.total_cost_usd.into_iter().for_each(|usd| self.cost(usd)),
            _ => {}
        }
    }

    fn cost(&self, so_far: f64) {
        self.recorder.moment("fullsend.cost", vec![("fullsend.cost_usd", so_far.into())]);
    }

    /// The stream has ended: calls without an answer end here.
    pub(crate) fn finish(self) {
        for number in self.open.into_values() {
            self.recorder.end(number, Status::Unset, vec![("fullsend.unfinished", true.into())]);
        }
    }
}

/// Tokens as the semantic conventions for generative AI count them: input includes what was cached.
pub(crate) fn usage_attributes(usage: &Usage) -> Attributes {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_creation);
    vec![
        ("gen_ai.usage.input_tokens", input.into()),
        ("gen_ai.usage.output_tokens", usage.output.into()),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read.into()),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_creation.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::id::Context;
    use crate::telemetry::span::Resource;

    #[test]
    fn tool_calls_become_spans_and_tokens_add_up() {
        let recorder = Recorder::start(Context::new().unwrap(), Resource::default(), "run".into()).unwrap();
        let mut tools = Tools::new(recorder.clone());
        let call = |id: &str| Event::ToolUse { name: "Bash".into(), summary: "ls".into(), id: id.into() };
        recorder.phase("agent");
        for event in [
            call("a"),
            call("b"),
            Event::Tokens(Usage { input: 1, output: 2, cache_read: 3, cache_creation: 4 }),
            Event::Tokens(Usage { input: 1, output: 2, cache_read: 3, cache_creation: 4 }),
            Event::ToolResult { id: "a".into(), is_error: true },
            Event::ToolResult { id: "unknown".into(), is_error: false },
        ] {
            tools.event(&event);
        }
        tools.finish();
        recorder.conclude(Status::Ok, Vec::new(), &str::to_owned);
        let spans = recorder.take().spans;
        let phase = spans.iter().find(|s| s.name == "agent").unwrap();
        let calls: Vec<_> = spans.iter().filter(|s| s.name == "execute_tool Bash").collect();
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|c| c.parent == Some(phase.id)));
        assert!(matches!(calls[0].status, Status::Error(_)));
        assert!(calls[1].attributes.contains(&("fullsend.unfinished", true.into())));
        let last = &phase.events.last().unwrap().attributes;
        assert_eq!(last[0], ("gen_ai.usage.input_tokens", 16_u64.into()));
        assert_eq!(last[1], ("gen_ai.usage.output_tokens", 4_u64.into()));
    }
}
