//! A span, and its form in OTLP/JSON (opentelemetry-proto 1.x: ids in hexadecimal, 64-bit numbers as strings).

use serde_json::{Value as Json, json};

use super::id::{Context, SpanId};
use crate::report::sanitize;

/// Longer texts are cut, in bytes.
const TEXT: usize = 512;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Text.
    Text(String),
    /// A number.
    Int(u64),
    /// A number with a fraction.
    Float(f64),
    /// Yes or no.
    Bool(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Int(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

/// Named values.
pub(crate) type Attributes = Vec<(&'static str, Value)>;

/// How it turned out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Status {
    /// Nothing to say.
    #[default]
    Unset,
    /// Well.
    Ok,
    /// Not well; the reason.
    Error(String),
}

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of the run.
    Internal = 1,
    /// A call of another program.
    Client = 3,
}

/// Something that happened within a span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    /// When, in nanoseconds since 1970.
    pub at: u64,
    /// What.
    pub name: &'static str,
    /// Its values.
    pub attributes: Attributes,
}

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    /// Its id.
    pub id: SpanId,
    /// The span above.
    pub parent: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// When it began, in nanoseconds since 1970.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Its values.
    pub attributes: Attributes,
    /// What happened within it.
    pub events: Vec<Moment>,
    /// How it turned out.
    pub status: Status,
}

/// Whose spans they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Resource(pub Vec<(String, String)>);

/// One `ExportTraceServiceRequest`, which is also one line of a file of spans. Every text passes `redact`.
pub(crate) fn request(
    resource: &Resource,
    context: &Context,
    spans: &[Span],
    redact: &dyn Fn(&str) -> String,
) -> Json {
    let resource: Vec<_> = resource
        .0
        .iter()
        .map(|(k, v)| json!({ "key": k, "value": { "stringValue": text(v, redact) } }))
        .collect();
    let spans: Vec<_> = spans.iter().map(|span| one(span, context, redact)).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{
            "scope": { "name": "fullsend", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans,
        }],
    }] })
}

fn one(span: &Span, context: &Context, redact: &dyn Fn(&str) -> String) -> Json {
    let mut out = json!({
        "traceId": context.trace.to_string(),
        "spanId": span.id.to_string(),
        "flags": u32::from(context.sampled),
        "name": text(&span.name, redact),
        "kind": span.kind as u8,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes(&span.attributes, redact),
    });
    if let Some(parent) = span.parent {
        out["parentSpanId"] = parent.to_string().into();
    }
    if !span.events.is_empty() {
        let events = span.events.iter().map(|event| {
            json!({
                "timeUnixNano": event.at.to_string(),
                "name": event.name,
                "attributes": attributes(&event.attributes, redact),
            })
        });
        out["events"] = events.collect();
    }
    match &span.status {
        Status::Unset => {}
        Status::Ok => out["status"] = json!({ "code": 1 }),
        Status::Error(why) => out["status"] = json!({ "code": 2, "message": text(why, redact) }),
    }
    out
}

fn attributes(list: &Attributes, redact: &dyn Fn(&str) -> String) -> Vec<Json> {
    let value = |value: &Value| match value {
        Value::Text(value) => json!({ "stringValue": text(value, redact) }),
        Value::Int(number) => json!({ "intValue": number.to_string() }),
        Value::Float(number) => json!({ "doubleValue": number }),
        Value::Bool(value) => json!({ "boolValue": value }),
    };
    list.iter().map(|(key, v)| json!({ "key": key, "value": value(v) })).collect()
}

/// One line, without secrets, of bounded length. Redacted before it is cut, so that no part of a secret is left.
fn text(text: &str, redact: &dyn Fn(&str) -> String) -> String {
    let line = sanitize::line(&redact(text), crate::report::Ci::None);
    sanitize::truncate(&line, TEXT).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_that_of_the_protocol() {
        let context = Context::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        let id = context.parent.unwrap();
        let span = Span {
            id,
            parent: Some(id.derived(1)),
            name: "a\nsecret".into(),
            kind: Kind::Client,
            start: 1_700_000_000_000_000_001,
            end: 1_700_000_000_000_000_002,
            attributes: vec![
                ("t", "x".repeat(9000).into()),
                ("i", 7_u64.into()),
                ("f", 0.5.into()),
                ("b", true.into()),
            ],
            events: vec![Moment { at: 5, name: "e", attributes: vec![("n", 1_u64.into())] }],
            status: Status::Error("the secret".into()),
        };
        let resource = Resource(vec![("service.name".into(), "secret".into())]);
        let redact = |text: &str| text.replace("secret", "***");
        let value = request(&resource, &context, &[span], &redact);
        let resource = &value["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "***");
        let span = &resource["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((&span["spanId"], &span["flags"]), (&json!("00f067aa0ba902b7"), &json!(1)));
        assert_eq!(span["startTimeUnixNano"], "1700000000000000001");
        assert_eq!((&span["name"], &span["kind"]), (&json!("a ***"), &json!(3)));
        assert_eq!(span["attributes"][1]["value"], json!({ "intValue": "7" }));
        assert_eq!(span["attributes"][2]["value"], json!({ "doubleValue": 0.5 }));
        assert_eq!(span["attributes"][3]["value"], json!({ "boolValue": true }));
        assert!(span["attributes"][0]["value"]["stringValue"].as_str().unwrap().len() <= TEXT);
        assert_eq!(span["events"][0]["timeUnixNano"], "5");
        assert_eq!(span["status"], json!({ "code": 2, "message": "the ***" }));
        assert!(!value.to_string().contains("secret"));
    }
}
