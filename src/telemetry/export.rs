//! Sending the spans of a run: OTLP/HTTP with JSON, once, at its end.

use std::time::{Duration, Instant};

use super::config::Export;
use super::recorder::Trace;
use super::span::request;
use crate::http::{Client, Policy, Request};
use crate::secrets::{Registry, Secret};

/// Spans in one request.
const BATCH: usize = 500;
/// How often a request is tried; a receiver knows a span that comes twice by its id.
const ATTEMPTS: u32 = 3;

/// Sends everything within `limit`; the text says what went wrong. Blocks.
pub(super) fn send(
    export: &Export,
    trace: &Trace,
    secrets: &Registry,
    limit: Duration,
) -> Result<(), String> {
    let end = Instant::now() + limit;
    let redact = |text: &str| secrets.redact_text(text).into_owned();
    let mut headers = export.headers.clone();
    headers.push(("content-type".to_owned(), Secret::new("application/json")));
    for spans in trace.spans.chunks(BATCH) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("no answer within {}", crate::report::duration(limit)));
        }
        let policy = Policy {
            // Whoever sets the variables says where, and a collector is mostly on the same machine.
            private_hosts: crate::http::host(&export.url).into_iter().collect(),
            plain_http: true,
            max_bytes: 64 * 1024,
            timeout: left,
            attempts: ATTEMPTS,
            ..Policy::default()
        };
        let client = Client::new(policy).map_err(|failure| failure.to_string())?;
        let body = request(&trace.resource, &trace.context, spans, &redact).to_string().into_bytes();
        let request =
            Request { method: "POST".into(), url: export.url.clone(), headers: headers.clone(), body };
        let answer = client.send(&request).map_err(|failure| failure.to_string())?;
        if let Some(rejected) = rejected(&answer.body) {
            return Err(rejected);
        }
    }
    Ok(())
}

/// What a receiver that took only a part says.
fn rejected(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let partial = value.get("partialSuccess")?;
    let count = match partial.get("rejectedSpans")? {
        serde_json::Value::String(text) => text.parse().ok()?,
        number => number.as_u64()?,
    };
    let why = partial.get("errorMessage").and_then(|m| m.as_str()).unwrap_or("no reason given");
    (count > 0).then(|| format!("the receiver refused {count} span(s): {why}"))
}

#[cfg(test)]
mod tests {
    use super::rejected;

    #[test]
    fn a_part_that_was_refused_is_told() {
        assert_eq!(rejected(b"{}"), None);
        assert_eq!(rejected(b"not json"), None);
        assert_eq!(rejected(br#"{"partialSuccess":{}}"#), None);
        assert_eq!(rejected(br#"{"partialSuccess":{"rejectedSpans":"0"}}"#), None);
        let text = rejected(br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"full"}}"#).unwrap();
        assert_eq!(text, "the receiver refused 3 span(s): full");
        assert!(rejected(br#"{"partialSuccess":{"rejectedSpans":1}}"#).is_some());
    }
}
