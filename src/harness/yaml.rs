//! With `syntax` the only place that knows the YAML library: text to a tree of [`Node`]s with spans.
//!
//! A tree instead of typed decoding, so that every problem of a file is found in one pass, and so that a
//! scalar keeps its literal text (`no`, `1.10`, `0123`, `12:30:45` never change).
//!
//! Meaning of what YAML leaves open: a repeated key is an error; anchors, aliases and merge keys (`<<`) work;
//! `yes`/`no`/`on`/`off` are booleans only where a boolean is expected; a second document is an error; a
//! leading UTF-8 byte order mark is skipped.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use super::problem::{Problem, Problems};
use super::source::Source;
use super::syntax;
use crate::error::Code;

/// One value of a document.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) value: Value,
    /// Where it stands, in bytes.
    pub(crate) span: Range<usize>,
}

/// The kinds of values.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// A scalar with its literal text.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the text.
    Map(Vec<(Key, Node)>),
}

/// A scalar: its text and what an unquoted one would mean to YAML.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scalar {
    /// The literal text.
    pub(crate) text: String,
    /// The type that YAML gives it.
    pub(crate) kind: ScalarKind,
}

/// What YAML takes a scalar for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ScalarKind {
    /// Quoted, or not one of the others.
    Text,
    /// `true`, `no`, `on` …
    Bool(bool),
    /// A whole number that fits.
    Int(i64),
    /// Any other number.
    Number,
}

/// A key of a mapping.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The text of the key.
    pub(crate) text: String,
    /// Where it stands, in bytes.
    pub(crate) span: Range<usize>,
}

impl Node {
    /// What the node is, for messages.
    pub(crate) fn kind_name(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Scalar(scalar) => match scalar.kind {
                ScalarKind::Text => "text",
                ScalarKind::Bool(_) => "a boolean",
                ScalarKind::Int(_) | ScalarKind::Number => "a number",
            },
        }
    }

    /// Moves every span by `by` bytes: the text became a part of a longer one.
    pub(crate) fn shift(&mut self, by: usize) {
        let moved = |span: &Range<usize>| span.start + by..span.end + by;
        self.span = moved(&self.span);
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            Value::Map(entries) => {
                for (key, node) in entries {
                    key.span = moved(&key.span);
                    node.shift(by);
                }
            }
            Value::Null | Value::Scalar(_) => {}
        }
    }

    /// The node under a key of a mapping.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node)
    }

    /// The text of a scalar that is not empty.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) if !scalar.text.is_empty() => Some(&scalar.text),
            _ => None,
        }
    }

    /// Whether the value says nothing: null, an empty text, list or mapping.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Scalar(scalar) => scalar.text.is_empty(),
            Value::List(items) => items.is_empty(),
            Value::Map(entries) => entries.is_empty(),
        }
    }
}

/// The one set of parser options. Budgets are far below the library's: a harness is a page of text.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: 20_000,
            max_events: 60_000,
            max_depth: 40,
            max_aliases: 500,
            max_anchors: 200,
            max_total_scalar_bytes: 4 * 1024 * 1024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 16,
        },
        // Repeated keys reach our visitor, which reports each of them.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        null_as_string: true,
        ignore_binary_tag_for_string: true,
        with_snippet: false,
    }
}

/// Parses one document. Repeated keys are reported to `problems`; text that is no YAML is the error.
pub(crate) fn parse(source: &Source, problems: &mut Problems) -> Result<Node, Problem> {
    let parsed: Spanned<RawValue> = serde_saphyr::from_str_with_options(&source.text, options())
        .map_err(|e| syntax::problem(source, &e))?;
    let mut node = parsed.into_node(source);
    drop_repeated(&mut node, source, problems);
    Ok(node)
}

/// Keeps the first of repeated keys and reports the others.
fn drop_repeated(node: &mut Node, source: &Source, problems: &mut Problems) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|n| drop_repeated(n, source, problems)),
        Value::Map(entries) => {
            let mut seen: HashMap<String, Range<usize>> = HashMap::new();
            entries.retain(|(key, _)| {
                if let Some(first) = seen.get(&key.text) {
                    let line = source.place(first.clone()).line;
                    problems.push(
                        Problem::error(Code::YamlKey, format!("the key `{}` is repeated", key.text))
                            .help(format!("it already stands in line {line}; keep one of them"))
                            .at(Some(source.place(key.span.clone()))),
                    );
                    return false;
                }
                seen.insert(key.text.clone(), key.span.clone());
                true
            });
            for (_, node) in entries {
                drop_repeated(node, source, problems);
            }
        }
        Value::Null | Value::Scalar(_) => {}
    }
}

pub(super) fn span_of(location: &Location) -> Option<Range<usize>> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let len = usize::try_from(location.span().byte_len()?).ok()?;
    Some(start..start + len)
}

/// What the library hands over, before literal texts are cut from the source.
enum RawValue {
    Null,
    Bool(bool),
    Int(i64),
    Number,
    Text(String),
    List(Vec<Spanned<RawValue>>),
    Map(Vec<(Spanned<String>, Spanned<RawValue>)>),
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<RawValue, E> {
        Ok(RawValue::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<RawValue, E> {
        Ok(RawValue::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<RawValue, E> {
        Ok(i64::try_from(v).map_or(RawValue::Number, RawValue::Int))
    }

    fn visit_i128<E>(self, _: i128) -> Result<RawValue, E> {
        Ok(RawValue::Number)
    }

    fn visit_u128<E>(self, _: u128) -> Result<RawValue, E> {
        Ok(RawValue::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<RawValue, E> {
        Ok(RawValue::Number)
    }

    fn visit_str<E>(self, v: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(RawValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(RawValue::Map(entries))
    }
}

trait IntoNode {
    fn into_node(self, source: &Source) -> Node;
}

impl IntoNode for Spanned<RawValue> {
    fn into_node(self, source: &Source) -> Node {
        let span = span_of(&self.referenced).unwrap_or(0..0);
        let literal = || {
            let defined = span_of(&self.defined).unwrap_or(0..0);
            source.text.get(defined).unwrap_or_default().trim().to_owned()
        };
        let scalar = |text, kind| Value::Scalar(Scalar { text, kind });
        let value = match self.value {
            RawValue::Null => Value::Null,
            RawValue::Bool(v) => scalar(literal(), ScalarKind::Bool(v)),
            RawValue::Int(v) => scalar(literal(), ScalarKind::Int(v)),
            RawValue::Number => scalar(literal(), ScalarKind::Number),
            RawValue::Text(text) => scalar(text, ScalarKind::Text),
            RawValue::List(items) => Value::List(items.into_iter().map(|n| n.into_node(source)).collect()),
            RawValue::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, node)| {
                        let span = span_of(&key.referenced).unwrap_or(0..0);
                        (Key { text: key.value, span }, node.into_node(source))
                    })
                    .collect(),
            ),
        };
        Node { value, span }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn ok(text: &str) -> Node {
        let mut problems = Problems::default();
        let node = parse(&Source::new("t.yaml", text), &mut problems).unwrap();
        assert!(problems.0.is_empty(), "{problems:?}");
        node
    }

    fn get<'n>(node: &'n Node, key: &str) -> &'n Node {
        let Value::Map(entries) = &node.value else { panic!("no map: {node:?}") };
        &entries.iter().find(|(k, _)| k.text == key).unwrap().1
    }

    fn text(node: &Node) -> &str {
        match &node.value {
            Value::Scalar(s) => &s.text,
            other => panic!("no scalar: {other:?}"),
        }
    }

    #[test]
    fn scalars_keep_their_literal_text() {
        let doc = "C: no\nV: 1.10\nO: 0123\nT: 12:30:45\nX: 1e3\nD: 2024-01-01\nB: 12345678901234567890\n\
                   H: 0x1F\nQ: \"no\"\nU: 1_000\nI: .inf\nP: +5\nL: 1e999\nZ: 123456789012345678901234567890\n\
                   F: 'a''b'\nS: !!str 007\nN: &a 010\nR: *a\nK: |\n  two\n  lines\n";
        let node = ok(doc);
        for (key, want) in [
            ("C", "no"),
            ("V", "1.10"),
            ("O", "0123"),
            ("T", "12:30:45"),
            ("X", "1e3"),
            ("D", "2024-01-01"),
            ("B", "12345678901234567890"),
            ("H", "0x1F"),
            ("Q", "no"),
            ("U", "1_000"),
            ("I", ".inf"),
            ("P", "+5"),
            ("L", "1e999"),
            ("Z", "123456789012345678901234567890"),
            ("F", "a'b"),
            ("S", "007"),
            ("N", "010"),
            ("R", "010"),
            ("K", "two\nlines\n"),
        ] {
            assert_eq!(text(get(&node, key)), want, "{key}");
        }
    }

    #[test]
    fn nothing_is_null() {
        let node = ok("a:\nb: ~\nc: null\nd: ''\n");
        for key in ["a", "b", "c"] {
            assert!(matches!(get(&node, key).value, Value::Null), "{key}");
        }
        assert_eq!(text(get(&node, "d")), "");
    }

    #[test]
    fn spans_cover_scalars_and_keys() {
        let doc = "é: x\nlist:\n  - \"quoted\"\n  - pla in\n";
        let node = ok(doc);
        let Value::List(items) = &get(&node, "list").value else { panic!() };
        assert_eq!(&doc[items[0].span.clone()], "\"quoted\"");
        assert_eq!(&doc[items[1].span.clone()], "pla in");
        let Value::Map(entries) = &node.value else { panic!() };
        assert_eq!(&doc[entries[1].0.span.clone()], "list");
    }

    #[test]
    fn every_repeated_key_is_reported() {
        let mut problems = Problems::default();
        let doc = "a: 1\nb: {x: 1, x: 2}\na: 3\na: 4\n";
        let node = parse(&Source::new("t.yaml", doc), &mut problems).unwrap();
        assert_eq!(text(get(&node, "a")), "1");
        let mut places: Vec<_> = problems.0.iter().map(|p| p.place.as_ref().unwrap().to_string()).collect();
        places.sort();
        assert_eq!(places, ["t.yaml:2:11", "t.yaml:3:1", "t.yaml:4:1"]);
    }

    #[test]
    fn merge_keys_work() {
        let node = ok("x-base: &b {p: 1, q: 2}\nm:\n  <<: *b\n  q: 3\n");
        let m = get(&node, "m");
        assert_eq!((text(get(m, "p")), text(get(m, "q"))), ("1", "3"));
    }

    #[test]
    fn bad_text_gives_one_clear_problem() {
        for (doc, line, part) in [
            ("a: 1\n---\nb: 2\n", 0, "more than one YAML document"),
            ("a: b\n\tc: d\n", 0, "tab"),
            ("a:\n\tb: 1\n", 2, "tab"),
            ("a: [1, 2\nb: 3\n", 0, ""),
            ("a: [1, 2\n", 0, "not closed"),
            ("a: b: c\n", 1, ""),
            ("a: \"open\n", 0, "a quote is not closed"),
            ("a: *nowhere\n", 1, "an anchor that is not there"),
            ("? [1]\n: 2\n", 1, ""),
            ("a: &a [*a]\n", 1, ""),
        ] {
            let error = parse(&Source::new("t.yaml", doc), &mut Problems::default()).unwrap_err();
            assert_eq!(error.code, Code::YamlSyntax, "{doc:?}");
            let place = error.place.unwrap();
            assert!(line == 0 || place.line == line, "{doc:?}: {place}");
            assert!(error.message.contains(part), "{doc:?}: {}", error.message);
            assert!(!error.message.contains("line "), "{doc:?}: {}", error.message);
        }
    }

    #[test]
    fn bombs_are_stopped() {
        let mut doc = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for i in 1..12 {
            let prev = format!("*a{}", i - 1);
            writeln!(doc, "a{i}: &a{i} [{}]", vec![prev; 10].join(",")).unwrap();
        }
        let said = |doc: String| {
            let problem = parse(&Source::new("t", doc), &mut Problems::default()).unwrap_err();
            (problem.message, problem.help.unwrap_or_default())
        };
        let (message, help) = said(doc);
        assert!(message.contains("aliases") && help.contains("write the values out"), "{message}: {help}");
        for deep in [
            format!("{}{}", "[".repeat(5000), "]".repeat(5000)),
            format!("a: {}1{}", "[".repeat(41), "]".repeat(41)),
        ] {
            let (message, help) = said(deep);
            assert!(message.contains("nested"), "{message}: {help}");
            assert!(format!("{message}: {help}").contains("40 levels"), "{message}: {help}");
        }
    }
}
