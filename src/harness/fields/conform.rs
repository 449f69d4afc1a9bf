//! Whether a value is of the type that its table says; for what is accepted and not carried out.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

use super::{Field, Home, Level, Type};
use crate::error::Code;
use crate::harness::keys::nearest;
use crate::harness::problem::Problems;
use crate::harness::reader::Reader;
use crate::harness::source::Source;
use crate::harness::yaml::{Key, Node, Scalar, ScalarKind, Value};

/// Reports what in `node`, the value under `name`, is not of the type `ty`. Null is absent.
pub(crate) fn conform(reader: &mut Reader<'_>, name: &str, node: &Node, ty: &Type) {
    if matches!(node.value, Value::Null) {
        return;
    }
    if !ty.admits(&node.value) {
        return reader.wrong_type(name, &ty.wanted(), node);
    }
    match (ty, &node.value) {
        (Type::Form(pattern, word), Value::Scalar(scalar))
            if !scalar.text.is_empty() && !is_of_form(pattern, &scalar.text) =>
        {
            let message = format!("`{name}` is not a {word}");
            reader.error(Code::Value, &node.span, message, format!("write a {word}: see the reference"));
        }
        (Type::Words(words), Value::Scalar(scalar)) if !scalar.text.is_empty() => {
            let words = words();
            if !words.contains(&scalar.text.as_str()) {
                let help = match nearest(&scalar.text, words.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write {}", words.join(" or ")),
                };
                let message = format!("`{}` is not a value of `{name}`", scalar.text.escape_debug());
                reader.error(Code::Value, &node.span, message, help);
            }
        }
        (Type::Int(from, to), Value::Scalar(Scalar { kind: ScalarKind::Int(value), .. }))
            if !(from..=to).contains(&value) =>
        {
            out_of_range(reader, name, node, &format!("{from} to {to}"));
        }
        (Type::Number(from, to), Value::Scalar(scalar))
            if !scalar.text.parse::<f64>().is_ok_and(|value| (*from..=*to).contains(&value)) =>
        {
            out_of_range(reader, name, node, &format!("{from} to {to}"));
        }
        (Type::List(item), Value::List(items)) => {
            for node in items {
                conform(reader, &format!("{name}[]"), node, item);
            }
        }
        (Type::Map(value), Value::Map(entries)) => {
            for (key, node) in entries {
                conform(reader, &key.text, node, value);
            }
        }
        (Type::Section(level), Value::Map(entries)) => section(reader, *level, entries, node),
        (Type::Either(types), value) => {
            if let Some(ty) = types.iter().find(|ty| ty.admits(value)) {
                conform(reader, name, node, ty);
            }
        }
        _ => {}
    }
}

/// Reports what in a whole file is not of its level. What is missing at its top is the business of its reader.
pub(crate) fn conform_document(node: &Node, level: Level, source: &Source, problems: &mut Problems) {
    if let Value::Map(entries) = &node.value {
        entries_of(&mut Reader::new(source, problems), level, entries);
    }
}

fn out_of_range(reader: &mut Reader<'_>, name: &str, node: &Node, range: &str) {
    reader.error(Code::Value, &node.span, format!("`{name}` is out of range"), format!("use {range}"));
}

fn entries_of(reader: &mut Reader<'_>, level: Level, entries: &[(Key, Node)]) {
    for (key, node) in entries {
        match level.field(&key.text) {
            Some(field) => conform(reader, field.name, node, &field.ty),
            None if level.is_open() && level.advice(&key.text).is_none() => {}
            None => reader.unknown(key, level),
        }
    }
}

/// The keys of a mapping against those of its level.
fn section(reader: &mut Reader<'_>, level: Level, entries: &[(Key, Node)], node: &Node) {
    entries_of(reader, level, entries);
    let start = entries.first().map_or(node.span.clone(), |(key, _)| key.span.clone());
    for field in level.fields().filter(|field| field.required) {
        if node.get(field.name).is_none_or(Node::is_empty) {
            reader.required(&start, field.name, level.name());
        }
    }
}

/// Whether the whole text matches.
fn is_of_form(pattern: &'static str, text: &str) -> bool {
    static FORMS: LazyLock<Mutex<HashMap<&'static str, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut forms = FORMS.lock().unwrap_or_else(PoisonError::into_inner);
    let form = forms.entry(pattern).or_insert_with(|| Regex::new(&format!("^(?:{pattern})$")).ok());
    form.as_ref().is_none_or(|form| form.is_match(text))
}

impl Type {
    /// Whether a value has the outer shape of the type.
    fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Type::Any, _) => true,
            (Type::Either(types), _) => types.iter().any(|ty| ty.admits(value)),
            (Type::Bool, Value::Scalar(scalar)) => matches!(scalar.kind, ScalarKind::Bool(_)),
            (Type::Int(..), Value::Scalar(scalar)) => matches!(scalar.kind, ScalarKind::Int(_)),
            (Type::Number(..), Value::Scalar(scalar)) => {
                matches!(scalar.kind, ScalarKind::Int(_) | ScalarKind::Number)
            }
            (Type::Bool | Type::Int(..) | Type::Number(..), _) => false,
            (Type::List(_), value) => matches!(value, Value::List(_)),
            (Type::Map(_) | Type::Section(_), value) => matches!(value, Value::Map(_)),
            (_, value) => matches!(value, Value::Scalar(_)),
        }
    }

    /// The outer shape, for messages.
    fn wanted(&self) -> String {
        match self {
            Type::Bool => "`true` or `false` without quotes".to_owned(),
            Type::Int(..) => "a whole number without quotes".to_owned(),
            Type::Number(..) => "a number without quotes".to_owned(),
            Type::List(Type::Text | Type::Form(..) | Type::Path) => "a list of texts".to_owned(),
            Type::List(_) => "a list".to_owned(),
            Type::Map(_) | Type::Section(_) => "a mapping".to_owned(),
            Type::Either(types) => types.iter().map(Type::wanted).collect::<Vec<_>>().join(" or "),
            _ => "text".to_owned(),
        }
    }
}

impl Field {
    /// Whether a reader that asked for `asked` has read the field. Blocks read `when` apart.
    pub(crate) fn is_read_with(&self, asked: &[&'static str]) -> bool {
        self.home == Home::Overlay || asked.contains(&self.name)
    }
}
