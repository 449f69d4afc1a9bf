//! The events of OpenCode (`opencode run --format json`), as 1.18.33 writes them.
//!
//! Every line has a type and a part of a message. A step is one answer of the model; a tool comes once, when it
//! has ended. The stream has no final word of its own: the last step of a run ends for another reason than tool
//! calls, and an error ends it too.

use serde::Deserialize;

use super::blocks::{Input, Object, Scalar};
use super::claude_stream::{Malformed, parse};
use super::event::{Event, ResultEvent, Usage};
use super::recent::Recent;
use super::summary::summary;

/// How often in a row a conversation may be too long. OpenCode shortens it and tries again, for ever where that does
/// not help (1.18.33).
const OVERFLOWS: u32 = 3;

/// How OpenCode answers a tool that its configuration denies, and one that it cannot ask for.
const DENIED: [&str; 2] =
    ["The user has specified a rule which prevents you", "The user rejected permission"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Scalar<'a>,
    #[serde(borrow, rename = "sessionID")]
    session: Scalar<'a>,
    #[serde(borrow)]
    part: Object<Part<'a>>,
    #[serde(borrow)]
    error: Object<Failure<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    id: Scalar<'a>,
    #[serde(borrow)]
    text: Scalar<'a>,
    /// Whether the text is OpenCode's own, as it has for a conversation that it shortened.
    #[serde(borrow)]
    synthetic: Scalar<'a>,
    #[serde(borrow)]
    tool: Scalar<'a>,
    #[serde(borrow, rename = "callID")]
    call: Scalar<'a>,
    #[serde(borrow)]
    state: Object<State<'a>>,
    #[serde(borrow)]
    reason: Scalar<'a>,
    #[serde(borrow)]
    tokens: Object<Tokens<'a>>,
    #[serde(borrow)]
    cost: Scalar<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State<'a> {
    #[serde(borrow)]
    status: Scalar<'a>,
    #[serde(borrow)]
    input: Object<Input<'a>>,
    #[serde(borrow)]
    error: Scalar<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens<'a> {
    #[serde(borrow)]
    input: Scalar<'a>,
    #[serde(borrow)]
    output: Scalar<'a>,
    #[serde(borrow)]
    reasoning: Scalar<'a>,
    #[serde(borrow)]
    cache: Object<Cache<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache<'a> {
    #[serde(borrow)]
    read: Scalar<'a>,
    #[serde(borrow)]
    write: Scalar<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure<'a> {
    #[serde(borrow)]
    name: Scalar<'a>,
    #[serde(borrow)]
    data: Object<Words<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words<'a> {
    #[serde(borrow)]
    message: Scalar<'a>,
    #[serde(borrow, rename = "statusCode")]
    status: Scalar<'a>,
}

impl From<Tokens<'_>> for Usage {
    fn from(tokens: Tokens<'_>) -> Self {
        let cache = tokens.cache.0.unwrap_or_default();
        Usage {
            input: tokens.input.whole(),
            output: tokens.output.whole().saturating_add(tokens.reasoning.whole()),
            cache_creation: cache.write.whole(),
            cache_read: cache.read.whole(),
        }
    }
}

type Sink<'a> = &'a mut dyn FnMut(Event);

/// The decoder of one stream.
#[derive(Debug)]
pub(super) struct OpencodeStream {
    session: Option<String>,
    /// Steps and tools, by their ids.
    seen: Recent<()>,
    turns: u64,
    denials: u64,
    usage: Usage,
    cost: f64,
    text: String,
    /// Whether texts, summaries and ids are wanted.
    texts: bool,
    /// How often the conversation was too long since the last tool.
    overflows: u32,
}

impl OpencodeStream {
    pub(super) fn new(texts: bool) -> Self {
        Self {
            session: None,
            seen: Recent::new(),
            turns: 0,
            denials: 0,
            usage: Usage::default(),
            cost: 0.0,
            text: String::new(),
            texts,
            overflows: 0,
        }
    }

    /// Decodes one line.
    pub(super) fn line(&mut self, line: &[u8], sink: Sink<'_>) -> Result<(), Malformed> {
        let mut fixed = None;
        let Object(Some(line)) = parse::<Object<Line<'_>>>(line, &mut fixed)? else { return Ok(()) };
        if self.session.is_none()
            && let Some(session) = line.session.into_text()
        {
            self.session = Some(session.clone());
            sink(Event::Init { model: None, version: None, session: Some(session) });
        }
        let part = line.part.0.unwrap_or_default();
        let fresh = part.id.text().is_none_or(|id| self.seen.is_new(id));
        if self.overflows >= OVERFLOWS {
            // It was given up, whatever follows; what that uses still counts.
            if line.kind.text() == Some("step_finish") && fresh {
                self.count(part, sink);
            }
            return Ok(());
        }
        match line.kind.text().unwrap_or_default() {
            "error" => self.error(line.error.0.unwrap_or_default(), sink),
            _ if !fresh => {}
            "step_start" => {
                self.turns += 1;
                sink(Event::Turn);
            }
            "text" if !part.synthetic.is_true() => {
                self.text.clear();
                self.text.push_str(part.text.text().unwrap_or_default());
                sink(Event::Text { text: self.said(part.text), end: true });
            }
            "reasoning" => {
                sink(Event::Thinking { text: self.said(part.text), end: true });
            }
            "tool_use" => self.tool(part, sink),
            "step_finish" => self.step(part, sink),
            _ => {}
        }
        Ok(())
    }

    /// A text for those who want it.
    fn said(&self, text: Scalar<'_>) -> String {
        if self.texts { text.into_text().unwrap_or_default() } else { String::new() }
    }

    fn tool(&mut self, part: Part<'_>, sink: Sink<'_>) {
        self.overflows = 0;
        let (name, id) = (self.said(part.tool), self.said(part.call));
        let state = part.state.0.unwrap_or_default();
        let summary = if self.texts { summary(&name, &state.input) } else { String::new() };
        sink(Event::ToolUse { summary, name: name.clone(), id: id.clone() });
        let failed = state.status.text() == Some("error");
        if failed && state.error.text().is_some_and(|e| DENIED.iter().any(|d| e.starts_with(d))) {
            self.denials += 1;
            sink(Event::PermissionDenied { tool: name, id });
        } else {
            sink(Event::ToolResult { id, is_error: failed });
        }
    }

    /// What a step used. Gives the reason of its end.
    fn count<'a>(&mut self, part: Part<'a>, sink: Sink<'_>) -> Scalar<'a> {
        let usage = part.tokens.0.map(Usage::from).unwrap_or_default();
        self.usage.add(&usage);
        self.cost += part.cost.float().unwrap_or(0.0);
        if !usage.is_zero() {
            sink(Event::Tokens(usage));
        }
        sink(Event::Cost { total_usd: self.cost });
        part.reason
    }

    fn step(&mut self, part: Part<'_>, sink: Sink<'_>) {
        match self.count(part, sink).text() {
            Some("tool-calls") => {}
            Some("stop") => sink(Event::Result(ResultEvent { subtype: "success".into(), ..self.result() })),
            reason => {
                let reason = reason.unwrap_or("unknown");
                // Instead of the agent's last words, which say nothing of it.
                let text = format!("the last answer of the model ended early: {reason}");
                let result = ResultEvent { is_error: true, text, ..self.result() };
                sink(Event::Result(ResultEvent { subtype: "error_during_execution".into(), ..result }));
            }
        }
    }

    fn error(&mut self, failure: Failure<'_>, sink: Sink<'_>) {
        let words = failure.data.0.unwrap_or_default();
        let kind = failure.name.into_text().unwrap_or_else(|| "error".into());
        let message = words.message.into_text().unwrap_or_else(|| kind.clone());
        let message = match words.status {
            Scalar::Whole(status) => format!("{message} (HTTP {status})"),
            _ => message,
        };
        let by_api = (kind == "APIError").then(|| "api_error".to_owned());
        self.overflows += u32::from(kind == "ContextOverflowError");
        sink(Event::Error { kind, message: message.clone() });
        let result = ResultEvent { is_error: true, text: message, terminal_reason: by_api, ..self.result() };
        sink(Event::Result(ResultEvent { subtype: "error_during_execution".into(), ..result }));
    }

    fn result(&self) -> ResultEvent {
        ResultEvent {
            num_turns: Some(self.turns),
            total_cost_usd: Some(self.cost),
            usage: Some(self.usage),
            text: self.text.clone(),
            permission_denials: self.denials,
            session_id: self.session.clone(),
            ..ResultEvent::default()
        }
    }
}
