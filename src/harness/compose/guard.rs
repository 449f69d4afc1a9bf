//! Guards of overlays: expressions of the Common Expression Language over `event`, `runtime` and `config`.
//!
//! The hand-written parser of the library is used, since it bounds its recursion; what a guard can cost is bounded
//! by the length of its text.

use std::io::Read as _;

use camino::Utf8PathBuf;
use cel::parser::PrattParser;
use cel::{Context, IdedExpr, Value};
use serde_json::{Value as Json, json};

use super::super::model::Forge;
use super::super::source::io_text;
use super::super::yaml::{Node, ScalarKind, Value as Tree};

/// The longest guard, in bytes.
const MAX_LEN: usize = 4096;
/// The largest event, in bytes; GitHub sends at most 25 MB.
const MAX_EVENT: u64 = 32 * 1024 * 1024;
/// What a guard can ask about.
const NAMES: [&str; 3] = ["event", "runtime", "config"];
/// Names of types, which a guard may compare with.
const TYPES: [&str; 10] =
    ["int", "uint", "double", "string", "bool", "bytes", "list", "map", "null_type", "type"];

/// What guards look at.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The file with the event that started the CI job and the variable that names it, read when a guard asks; none
    /// outside of one.
    pub(crate) event: Option<(&'static str, Utf8PathBuf)>,
    /// The chosen forge.
    pub(crate) forge: Option<Forge>,
    /// `config.yaml`.
    pub(crate) config: Json,
}

/// Parses a guard; the error says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<IdedExpr, String> {
    if text.len() > MAX_LEN {
        return Err(format!("it is longer than {MAX_LEN} bytes"));
    }
    let expr = PrattParser::new().max_expression_node_count(1000).parse(text).map_err(|errors| {
        let first = errors.errors.first().map(|error| error.msg.clone());
        first.unwrap_or_else(|| "it is not an expression".to_owned())
    })?;
    // Macros such as `exists` bring names of their own.
    let brings_names = ["all(", "exists(", "exists_one(", "map(", "filter("].iter().any(|m| text.contains(m));
    let mut unknown: Vec<_> = expr.references().variables().into_iter().map(str::to_owned).collect();
    unknown.retain(|name| !NAMES.contains(&name.as_str()) && !TYPES.contains(&name.as_str()));
    unknown.sort();
    match unknown.first() {
        Some(name) if !brings_names => {
            Err(format!("there is no `{name}`, only event, runtime.forge and config"))
        }
        _ => Ok(expr),
    }
}

/// Reads the event; without one it is empty. The error goes on after "the event …".
pub(crate) fn event(facts: &Facts) -> Result<Json, String> {
    let Some((_, path)) = &facts.event else { return Ok(json!({})) };
    let cannot = |error: std::io::Error| format!("cannot be read: {}", io_text(&error));
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err("cannot be read: it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(cannot)?.take(MAX_EVENT).read_to_end(&mut bytes).map_err(cannot)?;
    // Only the place: the words of the library may quote the event.
    serde_json::from_slice(&bytes).map_err(|error| {
        format!("is not JSON: the mistake is in line {}, column {}", error.line(), error.column())
    })
}

/// Whether a guard holds.
pub(crate) fn holds(text: &str, event: &Json, facts: &Facts) -> Result<bool, String> {
    let expr = parse(text)?;
    let mut context = Context::default();
    let runtime = json!({ "forge": facts.forge.map_or("", Forge::as_str) });
    for (name, value) in [("event", event), ("runtime", &runtime), ("config", &facts.config)] {
        let value = cel::to_value(value).map_err(|error| error.to_string())?;
        context.add_variable_from_value(name, value);
    }
    match Value::resolve(&expr, &context) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(_) => Err("it is neither true nor false".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A YAML tree as guards see it.
pub(crate) fn json_of(node: &Node) -> Json {
    match &node.value {
        Tree::Null => Json::Null,
        Tree::List(items) => items.iter().map(json_of).collect(),
        Tree::Map(entries) => {
            Json::Object(entries.iter().map(|(key, node)| (key.text.clone(), json_of(node))).collect())
        }
        Tree::Scalar(scalar) => match scalar.kind {
            ScalarKind::Bool(value) => value.into(),
            ScalarKind::Int(value) => value.into(),
            ScalarKind::Number => {
                scalar.text.parse::<f64>().map_or_else(|_| scalar.text.clone().into(), Json::from)
            }
            ScalarKind::Text => scalar.text.clone().into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds(text: &str, facts: &Facts) -> Result<bool, String> {
        super::holds(text, &happened(), facts)
    }

    fn happened() -> Json {
        json!({"action": "opened", "issue": {"number": 7, "labels": [{"name": "bug"}, {"name": "ui"}]}})
    }

    fn facts() -> Facts {
        Facts {
            event: None,
            forge: Some(Forge::Github),
            config: json!({"version": "1", "defaults": {"runtime": "claude"}}),
        }
    }

    #[test]
    fn guards_see_event_forge_and_configuration() {
        for (text, want) in [
            ("true", true),
            ("runtime.forge == 'github'", true),
            ("runtime.forge in ['gitlab', 'jira']", false),
            ("event.action == \"opened\" && event.issue.number > 5", true),
            ("event.issue.labels.exists(l, l.name == 'bug')", true),
            ("event.issue.labels.all(l, l.name == 'bug')", false),
            ("has(event.pull_request)", false),
            ("has(event.pull_request) && event.pull_request.draft", false),
            ("!has(event.pull_request) || event.pull_request.draft", true),
            ("config.defaults.runtime.startsWith('cl')", true),
            ("size(event.issue.labels) == 2", true),
            ("event.issue.number == 7 ? true : false", true),
            ("type(event.action) == string", true),
        ] {
            assert_eq!(holds(text, &facts()), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_guard_says_why() {
        for (text, part) in [
            ("", ""),
            ("event.", ""),
            ("event ==", ""),
            ("a && b", "no `a`"),
            ("event.nothing.at.all == 1", "No such key"),
            ("event.action", "neither true nor false"),
            ("event.action + 1 == 2", ""),
            ("nofunction(event)", ""),
        ] {
            let error = holds(text, &facts()).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse(&"!".repeat(5000)).unwrap_err().contains("4096"));
        assert!(parse(&"(".repeat(4000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_an_answer_or_an_error(text in "\\PC{0,60}") {
            let _ = holds(&text, &facts());
        }

        #[test]
        fn so_is_anything_that_looks_like_a_guard(text in "[a-c.()\\[\\]{}'\"!&|=<>+*/%?:, 0-9\\\\xurb-]{0,60}") {
            let _ = holds(&text, &facts());
        }
    }
}
