//! Events as lines for people. The texts still hold whatever the agent wrote: the caller redacts and
//! sanitises every line before it is shown.

use serde::{Deserialize, Serialize};

use super::event::{Event, ResultEvent, Usage};

/// A line of text is given at this length even if it has not ended, in bytes.
const LONG: usize = 4096;

/// What a line is, for colour and indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Who is at work, or how it ended.
    Header,
    /// Text of the agent.
    Text,
    /// Reasoning.
    Thinking,
    /// A tool use.
    Tool,
    /// A fact beside the work: a retry.
    Note,
    /// Something a person should know.
    Warning,
    /// An error.
    Error,
}

/// How much of what an agent says and does is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ShowAgent {
    /// Nothing.
    None,
    /// What it does, not what it says: for logs that others read.
    Tools,
    /// Everything.
    Full,
}

impl ShowAgent {
    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            ShowAgent::None => "none",
            ShowAgent::Tools => "tools",
            ShowAgent::Full => "full",
        }
    }

    /// Whether a line is shown. The text of a program that speaks no agent's format is its log.
    pub fn shows(self, kind: Kind, plain: bool) -> bool {
        match self {
            ShowAgent::None => false,
            ShowAgent::Tools => plain || !matches!(kind, Kind::Text | Kind::Thinking),
            ShowAgent::Full => true,
        }
    }
}

/// One line of display, without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: String,
}

/// Turns events into whole lines; text that comes in pieces is held until its line ends.
#[derive(Debug, Default)]
pub struct Renderer {
    held: String,
    thinking: bool,
}

impl Renderer {
    /// A renderer of one stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lines of an event.
    pub fn event(&mut self, event: &Event) -> Vec<Line> {
        let mut out = Vec::new();
        match event {
            Event::Text { text, end } => self.text(text, *end, false, &mut out),
            Event::Thinking { text, end } => self.text(text, *end, true, &mut out),
            // These come in the middle of a text and would cut its line.
            Event::Tokens(_) | Event::Cost { .. } | Event::Turn | Event::ToolResult { .. } => {}
            other => {
                self.flush(&mut out);
                whole(other, &mut out);
            }
        }
        out
    }

    /// The rest, when the stream has ended.
    pub fn finish(&mut self) -> Vec<Line> {
        let mut out = Vec::new();
        self.flush(&mut out);
        out
    }

    fn text(&mut self, text: &str, end: bool, thinking: bool, out: &mut Vec<Line>) {
        if thinking != self.thinking {
            self.flush(out);
            self.thinking = thinking;
        }
        for piece in text.split_inclusive('\n') {
            self.held.push_str(piece);
            if piece.ends_with('\n') {
                self.held.pop();
                self.take(out);
            } else if self.held.len() >= LONG {
                self.take(out);
            }
        }
        // A text that ends with a newline has no further line; an empty whole text is an empty line.
        if end && !(self.held.is_empty() && (text.ends_with('\n') || text.is_empty() && thinking)) {
            self.take(out);
        }
    }

    fn take(&mut self, out: &mut Vec<Line>) {
        let kind = if self.thinking { Kind::Thinking } else { Kind::Text };
        out.push(Line { kind, text: std::mem::take(&mut self.held) });
    }

    fn flush(&mut self, out: &mut Vec<Line>) {
        if !self.held.is_empty() {
            self.take(out);
        }
    }
}

fn whole(event: &Event, out: &mut Vec<Line>) {
    let mut line = |kind, text: String| out.push(Line { kind, text });
    match event {
        Event::Init { model, version, session } => {
            let version = version.as_ref().map(|v| format!(" (v{v})")).unwrap_or_default();
            let session = session.as_ref().map(|s| format!("session {s}"));
            let who = model.clone().or(session).unwrap_or_else(|| "model unknown".to_owned());
            line(Kind::Header, format!("Agent: {who}{version}"));
        }
        Event::ToolUse { name, summary, .. } if summary.is_empty() => line(Kind::Tool, name.clone()),
        Event::ToolUse { name, summary, .. } => line(Kind::Tool, format!("{name}: {summary}")),
        Event::PermissionDenied { tool, .. } => line(Kind::Warning, format!("Permission denied: {tool}")),
        Event::Retry { attempt, max, delay_ms, error } => {
            let count = if *max > 0 { format!(" {attempt}/{max}") } else { String::new() };
            let delay = if *delay_ms > 0 { format!(" (delay {delay_ms}ms)") } else { String::new() };
            line(Kind::Note, format!("Retry{count}: {error}{delay}"));
        }
        Event::Error { kind, message } if message.is_empty() => line(Kind::Error, kind.clone()),
        Event::Error { kind, message } => line(Kind::Error, format!("{kind}: {message}")),
        Event::Warning { message } => line(Kind::Warning, message.clone()),
        Event::Result(result) => result_lines(result, &mut line),
        Event::Turn
        | Event::Text { .. }
        | Event::Thinking { .. }
        | Event::ToolResult { .. }
        | Event::Cost { .. }
        | Event::Tokens(_) => {}
    }
}

fn result_lines(result: &ResultEvent, line: &mut dyn FnMut(Kind, String)) {
    let failed = result.is_error || result.subtype.starts_with("error");
    let mark = if failed { ": ERROR" } else { "" };
    let subtype = match result.subtype.as_str() {
        "" | "success" => String::new(),
        other => format!(" ({other})"),
    };
    let mut facts = Vec::new();
    facts.extend(result.num_turns.map(|n| format!("turns {n}")));
    facts.extend(result.total_cost_usd.map(|c| format!("cost ${c:.4}")));
    facts.extend(result.usage.map(tokens));
    let facts = if facts.is_empty() { String::new() } else { format!(" — {}", facts.join(", ")) };
    line(if failed { Kind::Error } else { Kind::Header }, format!("Result{mark}{subtype}{facts}"));
    if failed {
        for text in std::iter::once(&result.text).chain(&result.errors).filter(|t| !t.is_empty()) {
            line(Kind::Error, super::summary::one_line(text, 1000));
        }
    }
}

/// Tokens in one phrase.
pub fn tokens(usage: Usage) -> String {
    format!(
        "tokens in {} out {} cache-read {} cache-write {}",
        usage.input, usage.output, usage.cache_read, usage.cache_creation
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(events: &[Event]) -> Vec<(Kind, String)> {
        let mut renderer = Renderer::new();
        let mut out: Vec<Line> = events.iter().flat_map(|e| renderer.event(e)).collect();
        out.extend(renderer.finish());
        out.into_iter().map(|l| (l.kind, l.text)).collect()
    }

    fn text(text: &str, end: bool) -> Event {
        Event::Text { text: text.into(), end }
    }

    #[test]
    fn pieces_become_whole_lines() {
        let tool = Event::ToolUse { name: "Bash".into(), summary: "ls".into(), id: String::new() };
        let thinking = Event::Thinking { text: "hm".into(), end: false };
        let got = lines(&[
            thinking,
            text("one\ntw", false),
            Event::Tokens(Usage::default()),
            text("o\n", false),
            text("three", false),
            tool,
            text("", true),
            text("whole\n\nlast\n", true),
            text("open", false),
        ]);
        let expected = [
            (Kind::Thinking, "hm"),
            (Kind::Text, "one"),
            (Kind::Text, "two"),
            (Kind::Text, "three"),
            (Kind::Tool, "Bash: ls"),
            (Kind::Text, ""),
            (Kind::Text, "whole"),
            (Kind::Text, ""),
            (Kind::Text, "last"),
            (Kind::Text, "open"),
        ];
        assert_eq!(got, expected.map(|(k, t)| (k, t.to_owned())));
    }

    #[test]
    fn endless_lines_are_given_in_parts() {
        let got = lines(&[text(&"x".repeat(LONG), false), text("y", true)]);
        assert_eq!(got.len(), 2);
        assert_eq!(got[1].1, "y");
    }

    #[test]
    fn a_failed_result_shows_the_api_words() {
        let result = ResultEvent {
            subtype: "success".into(),
            is_error: true,
            num_turns: Some(1),
            total_cost_usd: Some(0.5),
            text: "Invalid API key".into(),
            ..Default::default()
        };
        let got = lines(&[Event::Result(result)]);
        let expected = [
            (Kind::Error, "Result: ERROR — turns 1, cost $0.5000".to_owned()),
            (Kind::Error, "Invalid API key".to_owned()),
        ];
        assert_eq!(got, expected);
    }
}
