//! Typed reading of [`Node`]s; a wrong value is a problem, and reading goes on.
//!
//! Null is absent for every list, mapping and scalar, as in the format's first implementation.

use std::ops::Range;

use super::keys::{Format, Level};
use super::problem::{Problem, Problems};
use super::source::Source;
use super::yaml::{Key, Node, ScalarKind, Value};
use crate::error::Code;

/// A text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// The text.
    pub(crate) text: String,
    /// Its bytes in the source.
    pub(crate) span: Range<usize>,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At<T> {
    /// The value.
    pub(crate) value: T,
    /// Its bytes in the source.
    pub(crate) span: Range<usize>,
}

/// The entries of one mapping that have not been read yet.
#[derive(Debug)]
pub(crate) struct Fields {
    entries: Vec<(Key, Node)>,
    /// What was asked for, so that the table of fields and the readers cannot drift apart.
    asked: Vec<&'static str>,
    /// Where the mapping is: its key, or its first key.
    pub(crate) span: Range<usize>,
}

impl Fields {
    fn new(entries: Vec<(Key, Node)>, span: Range<usize>) -> Self {
        Self { entries, asked: Vec::new(), span }
    }

    /// Takes out the entries whose keys `level` does not have.
    pub(crate) fn without(&mut self, level: Level) -> Fields {
        let (kept, others) =
            std::mem::take(&mut self.entries).into_iter().partition(|(key, _)| level.has(&key.text));
        self.entries = kept;
        Fields::new(others, self.span.clone())
    }

    /// Drops an entry that is no field and has been spoken of; whether there was one.
    pub(crate) fn drop(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(key, _)| key.text != name);
        self.entries.len() < before
    }

    /// Whether there is an entry that is not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, node)| key.text == name && !matches!(node.value, Value::Null))
    }

    /// Takes an entry; null counts as absent.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<(Key, Node)> {
        self.asked.push(name);
        let at = self.entries.iter().position(|(key, _)| key.text == name)?;
        let entry = self.entries.remove(at);
        (!matches!(entry.1.value, Value::Null)).then_some(entry)
    }
}

/// Reads one source and collects its problems.
pub(crate) struct Reader<'s> {
    /// The text that is read.
    pub(crate) source: &'s Source,
    /// What was found so far.
    pub(crate) problems: &'s mut Problems,
}

impl<'s> Reader<'s> {
    /// A reader of `source`.
    pub(crate) fn new(source: &'s Source, problems: &'s mut Problems) -> Self {
        Self { source, problems }
    }

    /// Adds an error at `span`.
    pub(crate) fn error(
        &mut self,
        code: Code,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let place = self.source.place(span.clone());
        self.problems.push(Problem::error(code, message).help(help).at(Some(place)));
    }

    /// Adds a warning at `span`.
    pub(crate) fn warn(
        &mut self,
        code: Code,
        span: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let place = self.source.place(span.clone());
        self.problems.push(Problem::warning(code, message).help(help).at(Some(place)));
    }

    /// The whole document as a mapping.
    pub(crate) fn document(&mut self, node: Node, what: &str) -> Option<Fields> {
        match node.value {
            Value::Map(entries) => Some(Fields::new(entries, node.span)),
            Value::Null => {
                let place = Some(self.source.whole());
                let message = format!("{what} is empty");
                let help = "fill it in, or remove it; `docs/reference/fields.md` has the keys, `harnesses/` examples";
                self.problems.push(Problem::error(Code::Required, message).help(help).at(place));
                None
            }
            _ => {
                let message = format!("{what} is {}, not a mapping", node.kind_name());
                self.error(Code::YamlType, &node.span, message, "write `key: value` lines");
                None
            }
        }
    }

    /// Reports every key that `level` does not know and that was not taken.
    pub(crate) fn finish(&mut self, fields: Fields, level: Level) {
        let asked = &fields.asked;
        debug_assert!(
            asked.iter().all(|name| level.may_ask(name)),
            "a field of {} is read and not in its table: {asked:?}",
            level.name()
        );
        debug_assert!(
            asked.is_empty() || level == Level::Harness || level.fields().all(|f| f.is_read_with(asked)),
            "a field of {} is in its table and never read: {asked:?}",
            level.name()
        );
        for (key, _) in fields.entries {
            self.unknown(&key, level);
        }
    }

    /// Reports a key that `level` does not know.
    pub(crate) fn unknown(&mut self, key: &Key, level: Level) {
        if level.has(&key.text) || key.text.starts_with("x-") {
            return;
        }
        let message = format!("`{}` is not a key of {}", key.text, level.name());
        if let Some(advice) = level.advice(&key.text) {
            return self.error(Code::YamlKey, &key.span, message, advice);
        }
        let keys: Vec<_> = level.keys().collect();
        let effect = match level.format() {
            Format::Policy | Format::Profile => "OpenShell may refuse it",
            _ => "it has no effect",
        };
        let help = format!("{effect}; the keys are {}", keys.join(", "));
        self.warn(Code::YamlKey, &key.span, message, help);
    }

    /// An optional mapping of its own level.
    pub(crate) fn section(&mut self, fields: &mut Fields, name: &'static str) -> Option<Fields> {
        let (key, node) = fields.take(name)?;
        if let Value::Map(entries) = node.value {
            return Some(Fields::new(entries, key.span));
        }
        self.wrong_type(name, "a mapping", &node);
        None
    }

    /// An optional scalar as its literal text.
    pub(crate) fn text(&mut self, fields: &mut Fields, name: &'static str) -> Option<Text> {
        let (_, node) = fields.take(name)?;
        if let Value::Scalar(scalar) = node.value {
            return Some(Text { text: scalar.text, span: node.span });
        }
        self.wrong_type(name, "text", &node);
        None
    }

    /// An optional scalar; an empty one counts as absent.
    pub(crate) fn text_not_empty(&mut self, fields: &mut Fields, name: &'static str) -> Option<Text> {
        self.text(fields, name).filter(|t| !t.text.is_empty())
    }

    /// An optional boolean.
    pub(crate) fn boolean(&mut self, fields: &mut Fields, name: &'static str) -> Option<bool> {
        let (_, node) = fields.take(name)?;
        if let Value::Scalar(scalar) = &node.value
            && let ScalarKind::Bool(value) = scalar.kind
        {
            return Some(value);
        }
        self.wrong_type(name, "`true` or `false` without quotes", &node);
        None
    }

    /// An optional whole number.
    pub(crate) fn integer(&mut self, fields: &mut Fields, name: &'static str) -> Option<At<i64>> {
        let (_, node) = fields.take(name)?;
        if let Value::Scalar(scalar) = &node.value
            && let ScalarKind::Int(value) = scalar.kind
        {
            return Some(At { value, span: node.span });
        }
        self.wrong_type(name, "a whole number without quotes", &node);
        None
    }

    /// An optional list.
    pub(crate) fn list(&mut self, fields: &mut Fields, name: &'static str) -> Vec<Node> {
        let Some((_, node)) = fields.take(name) else { return Vec::new() };
        if let Value::List(items) = node.value {
            return items;
        }
        self.wrong_type(name, "a list", &node);
        Vec::new()
    }

    /// An optional list of texts.
    pub(crate) fn texts(&mut self, fields: &mut Fields, name: &'static str) -> Vec<Text> {
        let items = self.list(fields, name);
        items.into_iter().filter_map(|item| self.item_text(name, item)).collect()
    }

    /// One text of a list.
    pub(crate) fn item_text(&mut self, list: &str, item: Node) -> Option<Text> {
        match item.value {
            Value::Scalar(scalar) if !scalar.text.is_empty() => {
                Some(Text { text: scalar.text, span: item.span })
            }
            Value::Scalar(_) | Value::Null => {
                self.error(
                    Code::Value,
                    &item.span,
                    format!("an entry of `{list}` is empty"),
                    "remove the line",
                );
                None
            }
            _ => {
                let message = format!("an entry of `{list}` is {}, not text", item.kind_name());
                self.error(Code::YamlType, &item.span, message, "write one text per line: `- text`");
                None
            }
        }
    }

    /// One mapping of a list.
    pub(crate) fn item_fields(&mut self, list: &str, item: Node) -> Option<Fields> {
        if let Value::Map(entries) = item.value {
            let span = entries.first().map_or(item.span, |(key, _)| key.span.clone());
            return Some(Fields::new(entries, span));
        }
        let message = format!("an entry of `{list}` is {}, not a mapping", item.kind_name());
        self.error(Code::YamlType, &item.span, message, "write `- key: value`");
        None
    }

    /// An optional mapping of free keys to texts. A value is the literal text of its scalar. A key with nothing
    /// after it is the empty text; a written `~` or `null` is an error, because its text and its meaning differ.
    pub(crate) fn text_map(&mut self, fields: &mut Fields, name: &'static str) -> Vec<(Text, Text)> {
        let Some((_, node)) = fields.take(name) else { return Vec::new() };
        let Value::Map(entries) = node.value else {
            self.wrong_type(name, "a mapping", &node);
            return Vec::new();
        };
        let mut out = Vec::new();
        for (key, node) in entries {
            let span = node.span.clone();
            let text = match node.value {
                Value::Scalar(scalar) => scalar.text,
                Value::Null if self.source.text.get(span.clone()).is_none_or(|t| t.trim().is_empty()) => {
                    String::new()
                }
                Value::Null => {
                    let message = format!("the value of `{}` is null, which is not text", key.text);
                    self.error(
                        Code::YamlType,
                        &span,
                        message,
                        "write \"\" for an empty value, or quote the text",
                    );
                    continue;
                }
                _ => {
                    self.wrong_type(&key.text, "text", &node);
                    continue;
                }
            };
            out.push((Text { text: key.text, span: key.span }, Text { text, span }));
        }
        out
    }

    /// A value of the wrong type.
    pub(crate) fn wrong_type(&mut self, name: &str, wanted: &str, node: &Node) {
        let message =
            format!("`{name}` is {}, not {}", node.kind_name(), wanted.replace(" without quotes", ""));
        self.error(Code::YamlType, &node.span, message, format!("write {wanted}"));
    }

    /// A key that must be there.
    pub(crate) fn required(&mut self, span: &Range<usize>, key: &str, where_: &str) {
        let message = format!("`{key}` is missing in {where_}");
        self.error(Code::Required, span, message, format!("add `{key}:`"));
    }
}
