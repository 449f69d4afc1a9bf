//! The script: which turn the main conversation gets next, and what else is answered.
//!
//! ```json
//! {
//!   "turns": [
//!     {"content": [{"type": "text", "text": "I look."},
//!                  {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}],
//!      "usage": {"input_tokens": 10, "output_tokens": 5}, "expect": ["text the request must hold"]},
//!     {"error": {"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error"}}}},
//!     {"content": [{"type": "text", "text": "half"}], "cut": true},
//!     {"content": [{"type": "text", "text": "Done."}]}
//!   ],
//!   "repeat_last": false
//! }
//! ```
//! `stop_reason` defaults to `tool_use` when a turn has one, else `end_turn`. `delay_ms` waits before the
//! answer. After the last turn requests are refused (400), unless `repeat_last` is set.

use serde_json::{Value, json};

use crate::http::Request;
use crate::responses;

/// What a request is.
pub(crate) enum Kind {
    /// A turn of the conversation that the script is for.
    Main,
    /// Something the CLI asks on the side.
    Side,
    /// Token counting.
    Count,
    /// Anything else.
    Other,
}

impl Kind {
    pub(crate) fn of(request: &Request) -> Self {
        let path = request.path();
        let method = path.rsplit(':').next().unwrap_or_default();
        let counting = path.ends_with("/count_tokens") || path.contains("/models/count-tokens:");
        let messages = path.ends_with("/v1/messages")
            || path.contains("/publishers/anthropic/models/")
                && matches!(method, "rawPredict" | "streamRawPredict");
        match (request.method.as_str(), counting, messages) {
            ("POST", true, _) => Kind::Count,
            ("POST", ..) if path.ends_with("/responses") => {
                if responses::is_main(&request.body) {
                    Kind::Main
                } else {
                    Kind::Side
                }
            }
            ("POST", false, true) if is_main(&request.body) => Kind::Main,
            ("POST", false, true) => Kind::Side,
            _ => Kind::Other,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::Main => "main",
            Kind::Side => "side",
            Kind::Count => "count",
            Kind::Other => "other",
        }
    }
}

/// The main conversation is the one that may use tools; titles, summaries and quota checks have none.
fn is_main(body: &Value) -> bool {
    let tools = body["tools"].as_array().map_or(0, Vec::len);
    tools > 0 && body["max_tokens"].as_u64().unwrap_or(u64::MAX) > 16
}

/// Whose protocol an answer follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// Messages, of Anthropic.
    Messages,
    /// Responses, of OpenAI.
    Responses,
}

/// What is sent back.
pub(crate) enum Answer {
    /// A JSON body.
    Json { status: u16, body: Value, headers: Vec<(String, String)>, delay_ms: u64 },
    /// A message, streamed or whole.
    Message { message: Value, api: Api, stream: bool, cut: bool, delay_ms: u64 },
}

impl Answer {
    fn json(status: u16, body: Value) -> Self {
        Answer::Json { status, body, headers: Vec::new(), delay_ms: 0 }
    }

    fn refused(message: &str) -> Self {
        let error = json!({"type": "invalid_request_error", "message": message});
        Answer::json(400, json!({"type": "error", "error": error}))
    }
}

/// The script and how far it has come.
pub(crate) struct State {
    turns: Vec<Value>,
    repeat_last: bool,
    next: usize,
    messages: usize,
}

impl State {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let script: Value = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        let turns = script["turns"].as_array().ok_or("`turns` must be a list")?.clone();
        if turns.is_empty() || turns.iter().any(|t| t["content"].is_null() && t["error"].is_null()) {
            return Err("every turn needs `content` or `error`, and one turn at least".into());
        }
        let repeat_last = script["repeat_last"].as_bool().unwrap_or(false);
        Ok(Self { turns, repeat_last, next: 0, messages: 0 })
    }

    /// The answer, and the number of the turn that it used.
    pub(crate) fn answer(&mut self, kind: &Kind, request: &Request) -> (Answer, Option<usize>) {
        match kind {
            Kind::Main => self.turn(request.path(), &request.body),
            Kind::Side => {
                let turn = json!({"content": [{"type": "text", "text": "{\"title\": \"stub\"}"}]});
                (self.message(&turn, request.path(), &request.body), None)
            }
            Kind::Count => (Answer::json(200, json!({"input_tokens": 1000})), None),
            Kind::Other if request.method == "HEAD" || request.path() == "/" => {
                (Answer::json(200, json!({})), None)
            }
            // Codex asks for a WebSocket first, and takes this for an answer.
            Kind::Other if request.method == "GET" && request.path().ends_with("/responses") => {
                (Answer::json(426, json!({})), None)
            }
            Kind::Other => {
                let error = json!({"type": "not_found_error", "message": "the stub does not serve this"});
                (Answer::json(404, json!({"type": "error", "error": error})), None)
            }
        }
    }

    fn turn(&mut self, path: &str, body: &Value) -> (Answer, Option<usize>) {
        let last = self.turns.len() - 1;
        let index = match self.next {
            next if next <= last => next,
            _ if self.repeat_last => last,
            _ => return (Answer::refused("the script has no more turns"), None),
        };
        let turn = self.turns[index].clone();
        let text = body.to_string();
        let missing =
            turn["expect"].as_array().into_iter().flatten().filter_map(Value::as_str).find(|wanted| {
                let quoted = Value::from(*wanted).to_string();
                !text.contains(&quoted[1..quoted.len() - 1])
            });
        if let Some(wanted) = missing {
            return (Answer::refused(&format!("turn {index} expected the request to hold: {wanted}")), None);
        }
        self.next = self.next.max(index + 1);
        let answer = match &turn["error"] {
            Value::Null => self.message(&turn, path, body),
            error => Answer::Json {
                status: error["status"].as_u64().and_then(|s| u16::try_from(s).ok()).unwrap_or(500),
                body: error["body"].clone(),
                headers: error["headers"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_owned()))
                    .collect(),
                delay_ms: turn["delay_ms"].as_u64().unwrap_or(0),
            },
        };
        (answer, Some(index))
    }

    fn message(&mut self, turn: &Value, path: &str, body: &Value) -> Answer {
        self.messages += 1;
        let number = self.messages;
        let mut content = turn["content"].as_array().cloned().unwrap_or_default();
        let mut uses_tool = false;
        for (i, block) in content.iter_mut().enumerate() {
            if block["type"] == "tool_use" {
                uses_tool = true;
                if block["id"].is_null() {
                    block["id"] = json!(format!("toolu_stub_{number:03}_{i:02}"));
                }
            }
        }
        let stop = match (&turn["stop_reason"], uses_tool) {
            (Value::String(reason), _) => reason.as_str(),
            (_, true) => "tool_use",
            (_, false) => "end_turn",
        };
        let mut usage = json!({
            "input_tokens": 10, "output_tokens": 5,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        });
        for (key, value) in turn["usage"].as_object().into_iter().flatten() {
            usage[key] = value.clone();
        }
        // The Vertex form names the model in the path.
        let of_path = path.rsplit('/').next().and_then(|last| last.split(':').next()).unwrap_or_default();
        let model = body["model"].as_str().unwrap_or(of_path);
        let message = json!({
            "id": format!("msg_stub_{number:03}"), "type": "message", "role": "assistant", "model": model,
            "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage,
        });
        Answer::Message {
            message,
            api: if path.ends_with("/responses") { Api::Responses } else { Api::Messages },
            stream: body["stream"].as_bool().unwrap_or(false) || path.ends_with(":streamRawPredict"),
            cut: turn["cut"].as_bool().unwrap_or(false),
            delay_ms: turn["delay_ms"].as_u64().unwrap_or(0),
        }
    }
}
