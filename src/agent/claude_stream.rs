//! The stream-json format of Claude Code (`--output-format stream-json`), as versions up to 2.1.332 write it.
//!
//! Whole messages come as `assistant` lines, one per content block, all with the id of their message and the
//! usage that the message began with. With `--include-partial-messages` raw `stream_event` lines come as well,
//! and the whole message follows them. So everything is keyed by message and tool id: nothing counts twice.

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use super::blocks::{ApiEvent, Block, Blocks, MessageLine, Object, Scalar, StreamLine};
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
struct Head {
    #[serde(rename = "type")]
    kind: Scalar,
}

/// The type of a line, when it is a JSON object that has one.
pub(super) fn line_type(line: &[u8]) -> Option<String> {
    let Object(head) = parse::<Object<Head>>(line).ok()?;
    head?.kind.into_text()
}

/// A content block that is being streamed.
#[derive(Debug)]
struct Open {
    kind: Scalar,
    id: String,
    name: String,
    input: String,
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
    /// What the session had cost when this stream began; known with the first result.
    carried: Option<f64>,
}

type Sink<'a> = &'a mut dyn FnMut(Event);

impl ClaudeStream {
    pub(super) fn new() -> Self {
        Self {
            init: false,
            usage: Recent::new(),
            streamed: Recent::new(),
            tools: Recent::new(),
            denied: Recent::new(),
            current: None,
            open: None,
            carried: None,
        }
    }

    /// Decodes one line.
    pub(super) fn line(&mut self, line: &[u8], sink: Sink<'_>) -> Result<(), Malformed> {
        // Most bytes of a stream are in these; their type stands first and saves a pass.
        for (prefix, kind) in [
            (&br#"{"type":"user""#[..], "user"),
            (br#"{"type":"assistant""#, "assistant"),
            (br#"{"type":"stream_event""#, "stream_event"),
        ] {
            if line.starts_with(prefix) {
                return self.typed(kind, line, sink);
            }
        }
        let head = parse::<Object<Head>>(line)?;
        let kind = head.0.map(|h| h.kind).unwrap_or_default();
        self.typed(kind.text().unwrap_or_default(), line, sink)
    }

    fn typed(&mut self, kind: &str, line: &[u8], sink: Sink<'_>) -> Result<(), Malformed> {
        match kind {
            // The output of tools is the bulk of a stream; only lines with a tool's answer are read.
            "user" if memmem::find(line, b"tool_result").is_some() => tool_results(parse(line)?, sink),
            "assistant" => self.assistant(parse(line)?, sink),
            "stream_event" => self.stream_event(parse(line)?, sink),
            "system" => self.system(&parse(line)?, sink),
            "result" => self.result(&parse(line)?, sink),
            _ => {}
        }
        Ok(())
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

    fn assistant(&mut self, line: MessageLine, sink: Sink<'_>) {
        let message = line.message.0.unwrap_or_default();
        let blocks = if message.content.0.is_empty() { line.content } else { message.content };
        if line.is_api_error_message.is_true() {
            let kind = line.error.into_text().unwrap_or_else(|| "api_error".into());
            sink(Event::Error { kind, message: joined_text(&blocks) });
            return;
        }
        let main = line.parent_tool_use_id.text().is_none();
        let usage = message.usage.0.map(Usage::from).unwrap_or_default();
        self.message(message.id.text(), message.model, usage, main, sink);
        let streamed = message.id.text().is_some_and(|id| self.streamed.contains(id));
        for block in blocks.0 {
            match block.kind.text() {
                Some("text") if !streamed => {
                    let text = block.text.into_text().unwrap_or_default();
                    sink(Event::Text { text, end: true });
                }
                Some("thinking") if !streamed => {
                    let text = block.thinking.into_text().unwrap_or_default();
                    sink(Event::Thinking { text, end: true });
                }
                _ if block.is_tool_use() => {
                    let text = |s: &Scalar| s.text().unwrap_or_default().to_owned();
                    self.tool_use(text(&block.name), text(&block.id), &block.input, sink);
                }
                _ => {}
            }
        }
    }

    /// Counts a message: a turn when it is new, tokens as far as they are new.
    fn message(&mut self, id: Option<&str>, model: Scalar, usage: Usage, main: bool, sink: Sink<'_>) {
        if let Some(model) = model.into_text().filter(|m| m != SYNTHETIC) {
            self.init(Some(model), None, None, sink);
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

    fn tool_use(&mut self, name: String, id: String, input: &Value, sink: Sink<'_>) {
        if id.is_empty() || self.tools.is_new(&id) {
            sink(Event::ToolUse { summary: summary(&name, input), name, id });
        }
    }

    fn stream_event(&mut self, line: StreamLine, sink: Sink<'_>) {
        // Sub-agents run side by side, so that their pieces mix; their whole messages say the same.
        if line.parent_tool_use_id.text().is_some() {
            return;
        }
        let Some(event) = line.event.0 else { return };
        match event.kind.text() {
            Some("message_start") => {
                let message = event.message.0.unwrap_or_default();
                let usage = message.usage.0.map(Usage::from).unwrap_or_default();
                self.message(message.id.text(), message.model, usage, true, sink);
                self.open = None;
                self.current = message.id.into_text();
                if let Some(id) = &self.current {
                    self.streamed.entry(id);
                }
            }
            Some("message_delta") => {
                if let (Some(id), Some(usage)) = (self.current.take(), event.usage.0) {
                    self.message(Some(&id), Scalar::None, usage.into(), true, sink);
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

    fn delta(&mut self, event: ApiEvent, sink: Sink<'_>) {
        let delta = event.delta.0.unwrap_or_default();
        if let Scalar::Text(text) = delta.text {
            sink(Event::Text { text, end: false });
        } else if let Scalar::Text(text) = delta.thinking {
            sink(Event::Thinking { text, end: false });
        } else if let (Scalar::Text(piece), Some(open)) = (delta.partial_json, &mut self.open)
            && open.input.len() + piece.len() <= INPUT_LIMIT
        {
            open.input.push_str(&piece);
        }
    }

    fn block_stop(&mut self, sink: Sink<'_>) {
        let Some(open) = self.open.take() else { return };
        match open.kind.text() {
            Some("text") => sink(Event::Text { text: String::new(), end: true }),
            Some("thinking") => sink(Event::Thinking { text: String::new(), end: true }),
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                let input = serde_json::from_str(&open.input).unwrap_or_default();
                self.tool_use(open.name, open.id, &input, sink);
            }
            _ => {}
        }
    }

    fn system(&mut self, line: &Value, sink: Sink<'_>) {
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        match line["subtype"].as_str() {
            Some("init") => self.init(text("model"), text("claude_code_version"), text("session_id"), sink),
            Some("api_retry") => {
                let status = line["error_status"].as_u64();
                let error = text("error").unwrap_or_else(|| "unknown".into());
                sink(Event::Retry {
                    attempt: line["attempt"].as_u64().unwrap_or(0),
                    max: line["max_retries"].as_u64().unwrap_or(0),
                    delay_ms: number(&line["retry_delay_ms"]),
                    error: status.map_or(error.clone(), |status| format!("{error} (HTTP {status})")),
                });
            }
            Some("permission_denied") => self.denial(line, sink),
            _ => {}
        }
    }

    fn denial(&mut self, denial: &Value, sink: Sink<'_>) {
        let id = denial["tool_use_id"].as_str().unwrap_or_default();
        if id.is_empty() || self.denied.is_new(id) {
            let tool = denial["tool_name"].as_str().unwrap_or_default();
            sink(Event::PermissionDenied { tool: tool.into(), id: id.into() });
        }
    }

    fn result(&mut self, line: &Value, sink: Sink<'_>) {
        let denials = line["permission_denials"].as_array().map_or(&[][..], Vec::as_slice);
        for denial in denials {
            self.denial(denial, sink);
        }
        let texts = |v: &Value| {
            v.as_array().into_iter().flatten().filter_map(|e| e.as_str()).map(str::to_owned).collect()
        };
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        let usage: Option<Object<super::blocks::RawUsage>> = Deserialize::deserialize(&line["usage"]).ok();
        sink(Event::Result(ResultEvent {
            subtype: text("subtype").unwrap_or_default(),
            is_error: line["is_error"].as_bool().unwrap_or(false),
            num_turns: line["num_turns"].as_u64(),
            total_cost_usd: self.cost(line),
            usage: usage.and_then(|u| u.0).map(Usage::from),
            text: text("result").unwrap_or_default(),
            errors: texts(&line["errors"]),
            terminal_reason: text("terminal_reason"),
            permission_denials: denials.len() as u64,
            session_id: text("session_id"),
        }));
    }
}

impl ClaudeStream {
    /// What this start cost. 2.1.332 adds what the session cost before to the total, but not to what it says of the
    /// time since its last result; 2.1.50 says nothing of that time, and adds nothing (both tried).
    fn cost(&mut self, line: &Value) -> Option<f64> {
        let total = line["total_cost_usd"].as_f64()?;
        let carried = *self.carried.get_or_insert_with(|| {
            let since = line["model_usage_since_last_result"].as_object();
            let own = since.map(|m| m.values().filter_map(|of| of["costUSD"].as_f64()).sum::<f64>());
            // Sums of fractions differ in their last digits.
            own.map(|own| total - own).filter(|carried| *carried > 1e-9).unwrap_or(0.0)
        });
        Some(total - carried)
    }
}

fn tool_results(line: MessageLine, sink: Sink<'_>) {
    let message = line.message.0.unwrap_or_default();
    for block in message.content.0.into_iter().chain(line.content.0) {
        if block.kind.text() == Some("tool_result") {
            let is_error = block.is_error.is_true();
            sink(Event::ToolResult { id: block.tool_use_id.into_text().unwrap_or_default(), is_error });
        }
    }
}

fn open(block: Block) -> Open {
    let text = |s: Scalar| s.into_text().unwrap_or_default();
    Open { kind: block.kind, id: text(block.id), name: text(block.name), input: String::new() }
}

fn joined_text(blocks: &Blocks) -> String {
    blocks.0.iter().filter_map(|b| b.text.text()).collect::<Vec<_>>().join("\n")
}

/// A count that some versions write with a fraction.
fn number(value: &Value) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to integer saturates")]
    value.as_u64().or_else(|| value.as_f64().map(|f| f.round() as u64)).unwrap_or(0)
}

/// Parses a line; one with broken text encoding is repaired first.
pub(super) fn parse<T: serde::de::DeserializeOwned>(line: &[u8]) -> Result<T, Malformed> {
    match serde_json::from_slice(line) {
        Ok(value) => Ok(value),
        Err(_) => repair(line).and_then(|text| serde_json::from_str(&text).ok()).ok_or(Malformed),
    }
}
