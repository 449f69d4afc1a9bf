//! Responses: JSON, and the server-sent events of the Messages API.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::http;
use crate::responses;
use crate::script::{Answer, Api};

/// Writes an answer. `false` when the connection is to be closed (a scripted cut).
pub(crate) fn write<W: Write>(out: &mut W, answer: &Answer) -> io::Result<bool> {
    let (Answer::Json { delay_ms, .. } | Answer::Message { delay_ms, .. }) = answer;
    if *delay_ms > 0 {
        std::thread::sleep(Duration::from_millis(*delay_ms));
    }
    match answer {
        Answer::Json { status, body, headers, .. } => {
            whole(out, *status, body, headers)?;
            Ok(true)
        }
        Answer::Message { message, stream: false, cut, .. } => {
            if !cut {
                whole(out, 200, message, &[])?;
            }
            Ok(!cut)
        }
        Answer::Message { message, api, stream: true, cut, .. } => {
            events(out, message, *api, *cut)?;
            Ok(!cut)
        }
    }
}

fn whole<W: Write>(out: &mut W, status: u16, body: &Value, headers: &[(String, String)]) -> io::Result<()> {
    let body = body.to_string();
    let mut bytes = Vec::new();
    http::head(&mut bytes, status, "application/json", Some(body.len()), headers);
    bytes.extend_from_slice(body.as_bytes());
    out.write_all(&bytes)
}

fn events<W: Write>(out: &mut W, message: &Value, api: Api, cut: bool) -> io::Result<()> {
    let mut head = Vec::new();
    http::head(&mut head, 200, "text/event-stream", None, &[]);
    out.write_all(&head)?;
    match api {
        Api::Messages => stream(out, message, cut),
        Api::Responses => responses::stream(out, message, cut),
    }
}

/// Sends the message as events; a cut one ends within its first content block.
fn stream<W: Write>(out: &mut W, message: &Value, cut: bool) -> io::Result<()> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    event(out, &json!({"type": "message_start", "message": start}))?;
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (empty, deltas) = deltas(block);
        event(out, &json!({"type": "content_block_start", "index": index, "content_block": empty}))?;
        for (n, delta) in deltas.iter().enumerate() {
            if cut && n > 0 {
                return Ok(());
            }
            event(out, &json!({"type": "content_block_delta", "index": index, "delta": delta}))?;
        }
        if cut {
            return Ok(());
        }
        event(out, &json!({"type": "content_block_stop", "index": index}))?;
    }
    let end = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    event(out, &json!({"type": "message_delta", "delta": end, "usage": message["usage"]}))?;
    event(out, &json!({"type": "message_stop"}))?;
    out.write_all(b"0\r\n\r\n")
}

/// The block as it starts, and the pieces that fill it (two where the text allows it).
fn deltas(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    match block["type"].as_str() {
        Some("text") => {
            empty["text"] = json!("");
            let text = block["text"].as_str().unwrap_or_default();
            (empty, halves(text).map(|t| json!({"type": "text_delta", "text": t})).collect())
        }
        Some("thinking") => {
            empty["thinking"] = json!("");
            empty["signature"] = json!("");
            let text = block["thinking"].as_str().unwrap_or_default();
            let mut deltas: Vec<_> =
                halves(text).map(|t| json!({"type": "thinking_delta", "thinking": t})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": "c3R1Yg=="}));
            (empty, deltas)
        }
        Some("tool_use") => {
            empty["input"] = json!({});
            let input = block["input"].to_string();
            (empty, halves(&input).map(|t| json!({"type": "input_json_delta", "partial_json": t})).collect())
        }
        _ => (empty, Vec::new()),
    }
}

/// A text in two pieces, where it has two characters.
pub(crate) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(i, _)| i);
    let (a, b) = text.split_at(middle);
    [a, b].into_iter().filter(|t| !t.is_empty())
}

/// Sends one event as a chunk.
pub(crate) fn event<W: Write>(out: &mut W, data: &Value) -> io::Result<()> {
    let text = format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    out.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
    out.flush()
}
