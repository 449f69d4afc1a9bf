//! The stream-json format of Claude Code (`--output-format stream-json`), as versions up to 2.1.332 write it.
//!
//! Whole messages come as `assistant` lines, one per content block, all with the id of their message and the
//! usage that the message began with. With `--include-partial-messages` raw `stream_event` lines come as well,
//! and the whole message follows them. So everything is keyed by message and tool id: nothing counts twice.

use std::collections::BTreeMap;

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::blocks::{
    ApiEvent, Block, Blocks, Input, List, MessageLine, Object, RawUsage, Scalar, StreamLine,
};
use super::event::{Event, ResultEvent, Usage};
use super::recent::Recent;
use super::repair::repair;
use super::summary::summary;

/// The model name of messages that the CLI wrote itself.
const SYNTHETIC: &str = "<synthetic>";

/// The longest tool input that is put together from pieces, in bytes.
const INPUT_LIMIT: usize = 256 * 1024;

/// A line that is not JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The type of a line, wherever it stands in the object (the result line has it in the middle).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Scalar<'a>,
}

/// A line of type `system`: the fields of those that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SystemLine<'a> {
    #[serde(borrow)]
    subtype: Scalar<'a>,
    #[serde(borrow)]
    model: Scalar<'a>,
    #[serde(borrow)]
    claude_code_version: Scalar<'a>,
    #[serde(borrow)]
    session_id: Scalar<'a>,
    #[serde(borrow)]
    error_status: Scalar<'a>,
    #[serde(borrow)]
    error: Scalar<'a>,
    #[serde(borrow)]
    attempt: Scalar<'a>,
    #[serde(borrow)]
    max_retries: Scalar<'a>,
    #[serde(borrow)]
    retry_delay_ms: Scalar<'a>,
    #[serde(borrow)]
    tool_use_id: Scalar<'a>,
    #[serde(borrow)]
    tool_name: Scalar<'a>,
}

/// A line of type `result`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResultLine<'a> {
    #[serde(borrow)]
    subtype: Scalar<'a>,
    #[serde(borrow)]
    is_error: Scalar<'a>,
    #[serde(borrow)]
    num_turns: Scalar<'a>,
    #[serde(borrow)]
    total_cost_usd: Scalar<'a>,
    #[serde(borrow)]
    usage: Object<RawUsage<'a>>,
    #[serde(borrow)]
    result: Scalar<'a>,
    #[serde(borrow)]
    errors: List<Scalar<'a>>,
    #[serde(borrow)]
    terminal_reason: Scalar<'a>,
    #[serde(borrow)]
    permission_denials: List<Object<Denial<'a>>>,
    #[serde(borrow)]
    session_id: Scalar<'a>,
    #[serde(borrow)]
    model_usage_since_last_result: Object<BTreeMap<String, Object<ModelUsage<'a>>>>,
}

/// What was used of one model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ModelUsage<'a> {
    #[serde(borrow, rename = "costUSD")]
    cost_usd: Scalar<'a>,
}

/// A tool use that was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Denial<'a> {
    #[serde(borrow)]
    tool_use_id: Scalar<'a>,
    #[serde(borrow)]
    tool_name: Scalar<'a>,
}

/// The type of a line, when it is a JSON object that has one.
pub(super) fn line_type(line: &[u8]) -> Option<String> {
    let mut fixed = None;
    let Object(head) = parse::<Object<Head<'_>>>(line, &mut fixed).ok()?;
    head?.kind.into_text()
}

/// A content block that is being streamed.
#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    name: String,
    input: String,
}

/// What a content block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Tool,
    Other,
}

/// The decoder of one stream.
#[derive(Debug)]
pub(super) struct ClaudeStream {
    init: bool,
    /// Usage by message, as far as it was reported.
    usage: Recent<Usage>,
    /// Messages whose text came in pieces.
    streamed: Recent<()>,
    tools: Recent<()>,
    denied: Recent<()>,
    /// The message that is being streamed.
    current: Option<String>,
    open: Option<Open>,
    /// Whether texts, summaries and ids are wanted.
    texts: bool,
    /// What the session had cost when this stream began; known with the first result.
    carried: Option<f64>,
}

type Sink<'a> = &'a mut dyn FnMut(Event);

impl ClaudeStream {
    pub(super) fn new(texts: bool) -> Self {
        Self {
            init: false,
            usage: Recent::new(),
            streamed: Recent::new(),
            tools: Recent::new(),
            denied: Recent::new(),
            current: None,
            open: None,
            texts,
            carried: None,
        }
    }

    /// Decodes one line.
    pub(super) fn line(&mut self, line: &[u8], sink: Sink<'_>) -> Result<(), Malformed> {
        // Nearly always the type stands first, which saves a pass.
        if let Some(kind) = first_type(line) {
            return self.typed(kind, line, sink);
        }
        let mut fixed = None;
        let head = parse::<Object<Head<'_>>>(line, &mut fixed)?;
        let kind = head.0.map(|h| h.kind).unwrap_or_default();
        self.typed(kind.text().unwrap_or_default(), line, sink)
    }

    fn typed(&mut self, kind: &str, line: &[u8], sink: Sink<'_>) -> Result<(), Malformed> {
        let fixed = &mut None;
        match kind {
            // The output of tools is the bulk of a stream; only lines with a tool's answer are read.
            "user" if memmem::find(line, b"tool_result").is_none() => {}
            "user" => self.tool_results(parse(line, fixed)?, sink),
            "assistant" => self.assistant(parse(line, fixed)?, sink),
            "stream_event" => self.stream_event(parse(line, fixed)?, sink),
            "system" => self.system(parse(line, fixed)?, sink),
            "result" => self.result(parse(line, fixed)?, sink),
            _ => drop(parse::<IgnoredAny>(line, fixed)?),
        }
        Ok(())
    }

    /// A text for those who want it.
    fn said(&self, text: Scalar<'_>) -> String {
        if self.texts { text.into_text().unwrap_or_default() } else { String::new() }
    }

    fn init(
        &mut self,
        model: Option<String>,
        version: Option<String>,
        session: Option<String>,
        sink: Sink<'_>,
    ) {
        if !std::mem::replace(&mut self.init, true) {
            sink(Event::Init { model, version, session });
        }
    }

    fn assistant(&mut self, line: MessageLine<'_>, sink: Sink<'_>) {
        let message = line.message.0.unwrap_or_default();
        let blocks = if message.content.0.is_empty() { line.content } else { message.content };
        if line.is_api_error_message.is_true() {
            let kind = line.error.into_text().unwrap_or_else(|| "api_error".into());
            sink(Event::Error { kind, message: joined_text(&blocks) });
            return;
        }
        let main = line.parent_tool_use_id.text().is_none();
        let usage = message.usage.0.map(Usage::from).unwrap_or_default();
        self.message(message.id.text(), &message.model, usage, main, sink);
        let streamed = message.id.text().is_some_and(|id| self.streamed.contains(id));
        for block in blocks.0 {
            match block.kind.text() {
                Some("text") if !streamed => {
                    sink(Event::Text { text: self.said(block.text), end: true });
                }
                Some("thinking") if !streamed => {
                    sink(Event::Thinking { text: self.said(block.thinking), end: true });
                }
                _ if block.is_tool_use() => {
                    let (name, id) = (block.name.text(), block.id.text());
                    self.tool_use(name.unwrap_or_default(), id.unwrap_or_default(), &block.input, sink);
                }
                _ => {}
            }
        }
    }

    /// Counts a message: a turn when it is new, tokens as far as they are new.
    fn message(&mut self, id: Option<&str>, model: &Scalar<'_>, usage: Usage, main: bool, sink: Sink<'_>) {
        if !self.init
            && let Some(model) = model.text().filter(|m| *m != SYNTHETIC)
        {
            self.init(Some(model.to_owned()), None, None, sink);
        }
        let (new, more) = match id {
            Some(id) => {
                let (known, new) = self.usage.entry(id);
                let more = usage.since(known);
                *known = known.max(&usage);
                (new, more)
            }
            None => (true, usage),
        };
        if new && main {
            sink(Event::Turn);
        }
        if !more.is_zero() {
            sink(Event::Tokens(more));
        }
    }

    fn tool_use(&mut self, name: &str, id: &str, input: &Object<Input<'_>>, sink: Sink<'_>) {
        if !id.is_empty() && !self.tools.is_new(id) {
            return;
        }
        sink(if self.texts {
            Event::ToolUse { summary: summary(name, input), name: name.into(), id: id.into() }
        } else {
            Event::ToolUse { summary: String::new(), name: String::new(), id: String::new() }
        });
    }

    fn stream_event(&mut self, line: StreamLine<'_>, sink: Sink<'_>) {
        // Sub-agents run side by side, so that their pieces mix; their whole messages say the same.
        if line.parent_tool_use_id.text().is_some() {
            return;
        }
        let Some(event) = line.event.0 else { return };
        match event.kind.text() {
            Some("message_start") => {
                let message = event.message.0.unwrap_or_default();
                let usage = message.usage.0.map(Usage::from).unwrap_or_default();
                self.message(message.id.text(), &message.model, usage, true, sink);
                self.open = None;
                self.current = message.id.into_text();
                if let Some(id) = &self.current {
                    self.streamed.entry(id);
                }
            }
            Some("message_delta") => {
                if let (Some(id), Some(usage)) = (self.current.take(), event.usage.0) {
                    self.message(Some(&id), &Scalar::None, usage.into(), true, sink);
                    self.current = Some(id);
                }
            }
            Some("content_block_start") => self.open = event.content_block.0.map(open),
            Some("content_block_delta") => self.delta(event, sink),
            Some("content_block_stop") => self.block_stop(sink),
            Some("error") => {
                let error = event.error.0.unwrap_or_default();
                sink(Event::Error {
                    kind: error.kind.into_text().unwrap_or_else(|| "api_error".into()),
                    message: error.message.into_text().unwrap_or_default(),
                });
            }
            _ => {}
        }
    }

    fn delta(&mut self, event: ApiEvent<'_>, sink: Sink<'_>) {
        let delta = event.delta.0.unwrap_or_default();
        if matches!(delta.text, Scalar::Text(_)) {
            sink(Event::Text { text: self.said(delta.text), end: false });
        } else if matches!(delta.thinking, Scalar::Text(_)) {
            sink(Event::Thinking { text: self.said(delta.thinking), end: false });
        } else if let (Some(piece), Some(open), true) =
            (delta.partial_json.text(), &mut self.open, self.texts)
            && open.input.len() + piece.len() <= INPUT_LIMIT
        {
            open.input.push_str(piece);
        }
    }

    fn block_stop(&mut self, sink: Sink<'_>) {
        let Some(open) = self.open.take() else { return };
        match open.kind {
            Kind::Text => sink(Event::Text { text: String::new(), end: true }),
            Kind::Thinking => sink(Event::Thinking { text: String::new(), end: true }),
            Kind::Tool => {
                let input = serde_json::from_str(&open.input).unwrap_or_default();
                self.tool_use(&open.name, &open.id, &input, sink);
            }
            Kind::Other => {}
        }
    }

    fn system(&mut self, line: SystemLine<'_>, sink: Sink<'_>) {
        match line.subtype.text() {
            Some("init") if !self.init => {
                let version = line.claude_code_version.into_text();
                self.init(line.model.into_text(), version, line.session_id.into_text(), sink);
            }
            Some("api_retry") => {
                let error = line.error.into_text().unwrap_or_else(|| "unknown".into());
                sink(Event::Retry {
                    attempt: line.attempt.whole(),
                    max: line.max_retries.whole(),
                    delay_ms: number(&line.retry_delay_ms),
                    error: match line.error_status.count() {
                        Some(status) => format!("{error} (HTTP {status})"),
                        None => error,
                    },
                });
            }
            Some("permission_denied") => {
                self.denial(&Denial { tool_use_id: line.tool_use_id, tool_name: line.tool_name }, sink);
            }
            _ => {}
        }
    }

    fn denial(&mut self, denial: &Denial<'_>, sink: Sink<'_>) {
        let id = denial.tool_use_id.text().unwrap_or_default();
        if id.is_empty() || self.denied.is_new(id) {
            let tool = denial.tool_name.text().unwrap_or_default();
            sink(Event::PermissionDenied { tool: tool.into(), id: id.into() });
        }
    }

    fn result(&mut self, line: ResultLine<'_>, sink: Sink<'_>) {
        let cost = self.cost(&line);
        let denials = line.permission_denials.0;
        for denial in &denials {
            self.denial(denial.0.as_ref().unwrap_or(&Denial::default()), sink);
        }
        sink(Event::Result(ResultEvent {
            subtype: line.subtype.into_text().unwrap_or_default(),
            is_error: line.is_error.is_true(),
            num_turns: line.num_turns.count(),
            total_cost_usd: cost,
            usage: line.usage.0.map(Usage::from),
            text: line.result.into_text().unwrap_or_default(),
            errors: line.errors.0.into_iter().filter_map(Scalar::into_text).collect(),
            terminal_reason: line.terminal_reason.into_text(),
            permission_denials: denials.len() as u64,
            session_id: line.session_id.into_text(),
        }));
    }

    /// What this start cost. 2.1.332 adds what the session cost before to the total, but not to what it says of the
    /// time since its last result; 2.1.50 says nothing of that time, and adds nothing (both tried).
    fn cost(&mut self, line: &ResultLine<'_>) -> Option<f64> {
        let total = line.total_cost_usd.float()?;
        let carried = *self.carried.get_or_insert_with(|| {
            let since = line.model_usage_since_last_result.0.as_ref();
            let costs = |models: &BTreeMap<String, Object<ModelUsage<'_>>>| {
                models.values().filter_map(|of| of.0.as_ref()?.cost_usd.float()).sum::<f64>()
            };
            // Sums of fractions differ in their last digits.
            since.map(|models| total - costs(models)).filter(|carried| *carried > 1e-9).unwrap_or(0.0)
        });
        Some(total - carried)
    }

    fn tool_results(&self, line: MessageLine<'_>, sink: Sink<'_>) {
        let message = line.message.0.unwrap_or_default();
        for block in message.content.0.into_iter().chain(line.content.0) {
            if block.kind.text() == Some("tool_result") {
                let is_error = block.is_error.is_true();
                sink(Event::ToolResult { id: self.said(block.tool_use_id), is_error });
            }
        }
    }
}

/// The type of a line that begins with it and needs no decoding.
fn first_type(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let kind = &rest[..memchr::memchr(b'"', rest)?];
    std::str::from_utf8(kind).ok().filter(|kind| !kind.contains('\\'))
}

fn open(block: Block<'_>) -> Open {
    let kind = match block.kind.text() {
        Some("text") => Kind::Text,
        Some("thinking") => Kind::Thinking,
        _ if block.is_tool_use() => Kind::Tool,
        _ => Kind::Other,
    };
    let text = |s: Scalar<'_>| s.into_text().unwrap_or_default();
    Open { kind, id: text(block.id), name: text(block.name), input: String::new() }
}

fn joined_text(blocks: &Blocks<'_>) -> String {
    blocks.0.iter().filter_map(|b| b.text.text()).collect::<Vec<_>>().join("\n")
}

/// A count that some versions write with a fraction.
fn number(value: &Scalar<'_>) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
    value.count().or_else(|| value.float().map(|f| f.round() as u64)).unwrap_or(0)
}

/// Parses a line; one with broken text encoding is repaired first, to `fixed`.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    line: &'a [u8],
    fixed: &'a mut Option<String>,
) -> Result<T, Malformed> {
    if let Ok(value) = serde_json::from_slice(line) {
        return Ok(value);
    }
    *fixed = repair(line);
    fixed.as_deref().and_then(|text| serde_json::from_str(text).ok()).ok_or(Malformed)
}
