//! The Responses API of OpenAI, as far as an agent CLI needs it: a scripted message as items and events.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::reply;

/// Whether a request to `/v1/responses` is a turn of the conversation: those that may use tools.
pub(crate) fn is_main(body: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// Sends the message as events; a cut one ends within its first item.
pub(crate) fn stream<W: Write>(out: &mut W, message: &Value, cut: bool) -> io::Result<()> {
    let id = message["id"].as_str().unwrap_or_default();
    let base = json!({"id": id, "object": "response", "model": message["model"]});
    let with = |status: &str| {
        let mut response = base.clone();
        response["status"] = json!(status);
        response
    };
    reply::event(out, &json!({"type": "response.created", "response": with("in_progress")}))?;
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let item = item(id, index, block);
        let added =
            json!({"type": "response.output_item.added", "output_index": index, "item": started(&item)});
        reply::event(out, &added)?;
        if let Some(text) = block["text"].as_str() {
            for piece in reply::halves(text) {
                let delta = json!({"type": "response.output_text.delta", "item_id": item["id"],
                    "output_index": index, "content_index": 0, "delta": piece});
                reply::event(out, &delta)?;
                if cut {
                    return Ok(());
                }
            }
        }
        if cut {
            return Ok(());
        }
        let done = json!({"type": "response.output_item.done", "output_index": index, "item": item});
        reply::event(out, &done)?;
    }
    let mut end = with("completed");
    end["usage"] = usage(&message["usage"]);
    reply::event(out, &json!({"type": "response.completed", "response": end}))?;
    out.write_all(b"0\r\n\r\n")
}

/// A content block of the script as an item.
fn item(message: &str, index: usize, block: &Value) -> Value {
    let id = format!("item_{message}_{index}");
    match block["type"].as_str() {
        Some("tool_use") if block["input"].is_string() => json!({
            "type": "custom_tool_call", "id": id, "call_id": block["id"], "name": block["name"],
            "input": block["input"], "status": "completed",
        }),
        Some("tool_use") => json!({
            "type": "function_call", "id": id, "call_id": block["id"], "name": block["name"],
            "arguments": block["input"].to_string(), "status": "completed",
        }),
        Some("thinking") => json!({
            "type": "reasoning", "id": id,
            "summary": [{"type": "summary_text", "text": block["thinking"]}],
        }),
        _ => json!({
            "type": "message", "id": id, "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": block["text"], "annotations": []}],
        }),
    }
}

/// The item as it is announced.
fn started(item: &Value) -> Value {
    let mut item = item.clone();
    item["status"] = json!("in_progress");
    if item["content"].is_array() {
        item["content"] = json!([]);
    }
    item
}

/// Here cached tokens are a part of the input tokens.
fn usage(usage: &Value) -> Value {
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    let cached = number("cache_read_input_tokens");
    let (input, output) = (number("input_tokens") + cached, number("output_tokens"));
    json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    })
}
