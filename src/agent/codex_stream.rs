//! The events of Codex (`codex exec --json`), as 0.171.0 writes them.
//!
//! Items come as `item.started`, `item.updated` and `item.completed` with one id; everything is counted by it.
//! The stream names neither the model nor the single answers of it: a new answer shows in the first item that
//! follows the end of a tool's. Tokens come once, with the end of the turn, and cost never. Those of a session that goes
//! on include what it used before (tried).

use serde::Deserialize;
use serde_json::Value;

use super::blocks::{Object, Scalar};
use super::claude_stream::{Malformed, parse};
use super::event::{Event, ResultEvent, Usage};
use super::recent::Recent;
use super::summary::one_line;

/// How the CLI begins the message of a request that it repeats.
const AGAIN: &str = "Reconnecting... ";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    #[serde(rename = "type")]
    kind: Scalar,
    thread_id: Scalar,
    message: Scalar,
    item: Object<Item>,
    usage: Object<Tokens>,
    error: Object<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    id: Scalar,
    #[serde(rename = "type")]
    kind: Scalar,
    text: Scalar,
    message: Scalar,
    command: Scalar,
    exit_code: Scalar,
    status: Scalar,
    server: Scalar,
    tool: Scalar,
    query: Scalar,
    prompt: Scalar,
    changes: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: Scalar,
}

/// Cached tokens are a part of the input tokens here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    #[serde(rename = "input_tokens")]
    input: Scalar,
    #[serde(rename = "cached_input_tokens")]
    read: Scalar,
    #[serde(rename = "cache_write_input_tokens")]
    written: Scalar,
    #[serde(rename = "output_tokens")]
    output: Scalar,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        let (read, write) = (tokens.read.whole(), tokens.written.whole());
        Usage {
            input: tokens.input.whole().saturating_sub(read).saturating_sub(write),
            output: tokens.output.whole(),
            cache_creation: write,
            cache_read: read,
        }
    }
}

/// One line of a session's transcript, as far as it tells of tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Recorded {
    payload: Object<Payload>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Payload {
    info: Object<Info>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    total_token_usage: Object<Tokens>,
}

/// What a session used, by the last count in its transcript. The stream tells it only at the end of a turn that went
/// well. A count of nothing stands where the context was full.
pub(super) fn tokens(transcript: &[u8]) -> Option<Usage> {
    let told = |line: &[u8]| {
        memchr::memmem::find(line, b"total_token_usage")?;
        let line = parse::<Object<Recorded>>(line).ok()?.0?;
        line.payload.0?.info.0?.total_token_usage.0.map(Usage::from).filter(|usage| !usage.is_zero())
    };
    transcript.rsplit(|b| *b == b'\n').find_map(told)
}

type Sink<'a> = &'a mut dyn FnMut(Event);

/// The decoder of one stream.
#[derive(Debug)]
pub(super) struct CodexStream {
    session: Option<String>,
    tools: Recent<()>,
    /// The next item begins another answer of the model.
    turn: bool,
    turns: u64,
    text: String,
    /// What the session had used when this stream began.
    before: Usage,
    usage: Usage,
}

impl CodexStream {
    pub(super) fn new(before: Usage) -> Self {
        Self {
            session: None,
            tools: Recent::new(),
            turn: false,
            turns: 0,
            text: String::new(),
            before,
            usage: Usage::default(),
        }
    }

    /// Decodes one line.
    pub(super) fn line(&mut self, line: &[u8], sink: Sink<'_>) -> Result<(), Malformed> {
        let Object(Some(line)) = parse::<Object<Line>>(line)? else { return Ok(()) };
        match line.kind.text().unwrap_or_default() {
            "thread.started" => {
                self.session = line.thread_id.into_text();
                sink(Event::Init { model: None, version: None, session: self.session.clone() });
            }
            "turn.started" => self.turn = true,
            kind @ ("item.started" | "item.updated" | "item.completed") => {
                let item = line.item.0.unwrap_or_default();
                self.item(item, kind == "item.completed", sink);
            }
            "turn.completed" => self.completed(line.usage.0.map(Usage::from), sink),
            "turn.failed" => {
                let message = line.error.0.unwrap_or_default().message.into_text().unwrap_or_default();
                let result = ResultEvent { is_error: true, text: message, ..self.result() };
                sink(Event::Result(ResultEvent { subtype: "error_during_execution".into(), ..result }));
            }
            "error" => sink(error(line.message.into_text().unwrap_or_default())),
            _ => {}
        }
        Ok(())
    }

    fn item(&mut self, item: Item, done: bool, sink: Sink<'_>) {
        let kind = item.kind.text().unwrap_or_default();
        match kind {
            "agent_message" | "reasoning" if !done => {}
            "agent_message" => {
                self.answer(sink);
                let text = item.text.into_text().unwrap_or_default();
                self.text.clone_from(&text);
                sink(Event::Text { text, end: true });
            }
            "reasoning" => {
                self.answer(sink);
                sink(Event::Thinking { text: item.text.into_text().unwrap_or_default(), end: true });
            }
            "error" if done => {
                sink(Event::Warning { message: item.message.into_text().unwrap_or_default() });
            }
            "command_execution" | "file_change" | "mcp_tool_call" | "web_search" | "collab_tool_call" => {
                self.tool(&item, done, sink);
            }
            _ => {}
        }
    }

    fn tool(&mut self, item: &Item, done: bool, sink: Sink<'_>) {
        let id = item.id.text().unwrap_or_default().to_owned();
        let (name, summary) = describe(item);
        if self.tools.is_new(&id) {
            self.answer(sink);
            sink(Event::ToolUse { name: name.clone(), summary, id: id.clone() });
        }
        if !done {
            return;
        }
        self.turn = true;
        match item.status.text() {
            Some("declined") => sink(Event::PermissionDenied { tool: name, id }),
            status => {
                let failed = status == Some("failed") || item.exit_code.whole() != 0;
                sink(Event::ToolResult { id, is_error: failed });
            }
        }
    }

    /// Something of the model was seen.
    fn answer(&mut self, sink: Sink<'_>) {
        if std::mem::take(&mut self.turn) {
            self.turns += 1;
            sink(Event::Turn);
        }
    }

    fn completed(&mut self, usage: Option<Usage>, sink: Sink<'_>) {
        // An answer without any content.
        if self.turns == 0 {
            self.answer(sink);
        }
        self.turn = false;
        let usage = self.own(usage.unwrap_or_default());
        let more = usage.since(&self.usage);
        self.usage = usage;
        if !more.is_zero() {
            sink(Event::Tokens(more));
        }
        sink(Event::Result(ResultEvent { subtype: "success".into(), usage: Some(usage), ..self.result() }));
    }

    /// The part of this stream; all of it where what was used before cannot be in it.
    fn own(&self, usage: Usage) -> Usage {
        if usage.max(&self.before) == usage { usage.since(&self.before) } else { usage }
    }

    fn result(&mut self) -> ResultEvent {
        ResultEvent {
            text: std::mem::take(&mut self.text),
            session_id: self.session.clone(),
            ..ResultEvent::default()
        }
    }
}

/// The tool, and the telling part of its input.
fn describe(item: &Item) -> (String, String) {
    let text = |s: &Scalar| s.text().unwrap_or_default().to_owned();
    match item.kind.text().unwrap_or_default() {
        "command_execution" => {
            let command = text(&item.command);
            // `/bin/bash -lc 'the command'`.
            let bare = match shell_words::split(&command).unwrap_or_default().as_slice() {
                [_, flag, bare] if flag == "-lc" => bare.clone(),
                _ => command,
            };
            ("shell".into(), one_line(&bare, 120))
        }
        "file_change" => {
            let changes = item.changes.as_array().into_iter().flatten();
            let paths: Vec<_> = changes.filter_map(|c| c["path"].as_str()).collect();
            ("apply_patch".into(), one_line(&paths.join(" "), 200))
        }
        "mcp_tool_call" => (format!("{}.{}", text(&item.server), text(&item.tool)), String::new()),
        "web_search" => ("web_search".into(), one_line(&text(&item.query), 120)),
        _ => (text(&item.tool), one_line(&text(&item.prompt), 120)),
    }
}

/// `Reconnecting... 1/5 (…)` tells of a request that is repeated; everything else is an error.
fn error(message: String) -> Event {
    let Some(rest) = message.strip_prefix(AGAIN) else {
        return Event::Error { kind: "error".into(), message };
    };
    let (count, why) = rest.split_once(" (").unwrap_or((rest, ""));
    let (attempt, max) = count.split_once('/').unwrap_or_default();
    let why = why.strip_suffix(')').unwrap_or(why);
    let error = if why.is_empty() { rest } else { why };
    Event::Retry {
        attempt: attempt.parse().unwrap_or(0),
        max: max.parse().unwrap_or(0),
        delay_ms: 0,
        error: error.to_owned(),
    }
}
