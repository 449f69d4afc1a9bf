//! The formats as JSON Schema (2020-12), for editors. It is the strict form: a key that is only a warning to
//! `validate` is a mistake here.

use serde_json::{Map, Value, json};

use super::{Effect, Field, Level, Type};
use crate::harness::keys::Format;

impl Format {
    const fn level(self) -> Level {
        match self {
            Format::Harness => Level::Harness,
            Format::Config => Level::Config,
            Format::Provider => Level::Provider,
            Format::Profile => Level::Profile,
            Format::Policy => Level::Policy,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Format::Harness => "A harness of fullsend",
            Format::Config => "config.yaml of a harness directory of fullsend",
            Format::Provider => "A provider of a harness directory of fullsend",
            Format::Profile => "A provider profile of OpenShell",
            Format::Policy => "A sandbox policy of OpenShell",
        }
    }
}

/// The schema of a format.
pub fn schema(format: Format) -> Value {
    let mut defs = Map::new();
    let Value::Object(top) = section(format.level(), &mut defs) else { return Value::Null };
    let mut out = Map::new();
    out.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    out.insert("title".to_owned(), json!(format.title()));
    out.extend(top);
    out.insert("type".to_owned(), json!("object"));
    if format == Format::Harness {
        // A harness without an agent of its own has it from its base.
        out.remove("required");
        out.insert("anyOf".to_owned(), json!([{ "required": ["agent"] }, { "required": ["base"] }]));
    }
    defs.sort_keys();
    if !defs.is_empty() {
        out.insert("$defs".to_owned(), Value::Object(defs));
    }
    Value::Object(out)
}

/// A mapping with the keys of a level.
fn section(level: Level, defs: &mut Map<String, Value>) -> Value {
    let properties: Map<String, Value> =
        level.fields().map(|field| (field.name.to_owned(), property(field, defs))).collect();
    let required: Vec<_> = level.fields().filter(|f| f.required).map(|f| f.name).collect();
    let mut out = json!({ "type": ["object", "null"], "properties": properties });
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    if level.is_open() {
        return out;
    }
    if matches!(level, Level::Harness | Level::Forge | Level::Overlay | Level::Config | Level::Provider) {
        out["patternProperties"] = json!({ "^x-": true });
    }
    out["additionalProperties"] = json!(false);
    out
}

fn property(field: &Field, defs: &mut Map<String, Value>) -> Value {
    let mut out = of(&field.ty, defs);
    let mut text = plain(field.doc);
    match field.effect {
        Effect::NotApplied => text.push_str(" Accepted; not applied by this version."),
        Effect::Applied | Effect::Elsewhere => {}
    }
    if !field.default.is_empty() {
        text = format!("{text} Default: {}.", plain(field.default));
    }
    out["description"] = text.into();
    out
}

/// Markdown links read badly in an editor's tooltip.
fn plain(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        let (text, open) = before.rsplit_once('[').map_or((before, ""), |(head, label)| (head, label));
        out.push_str(text);
        out.push_str(open);
        rest = after.split_once(')').map_or("", |(_, tail)| tail);
    }
    out + rest
}

/// The definition of a level, by reference.
fn reference(level: Level, defs: &mut Map<String, Value>) -> Value {
    let name = format!("{level:?}");
    if !defs.contains_key(&name) {
        // A placeholder first: a level may hold itself.
        defs.insert(name.clone(), Value::Null);
        let section = section(level, defs);
        defs.insert(name.clone(), section);
    }
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Null is absent, whatever the type. A text is the literal text of any scalar.
fn of(ty: &Type, defs: &mut Map<String, Value>) -> Value {
    match ty {
        Type::Any => json!({}),
        Type::Text | Type::Path | Type::Dir => json!({ "type": ["string", "number", "boolean", "null"] }),
        Type::Form(pattern, _) => {
            json!({ "type": ["string", "number", "boolean", "null"], "pattern": format!("^(?:{pattern})?$") })
        }
        Type::Words(words) => {
            let words: Vec<_> =
                words().into_iter().map(Value::from).chain([Value::from(""), Value::Null]).collect();
            json!({ "enum": words })
        }
        Type::Duration => {
            let pattern = "^(?:[0-9]+|(?:[0-9]+[a-z]+)+)?$";
            json!({ "type": ["string", "integer", "null"], "pattern": pattern, "minimum": 1 })
        }
        Type::Int(from, to) => {
            let mut out = json!({ "type": ["integer", "null"], "maximum": to });
            if *from > i64::MIN {
                out["minimum"] = json!(from);
            }
            out
        }
        Type::Number(from, to) => json!({ "type": ["number", "null"], "minimum": from, "maximum": to }),
        Type::Bool => json!({ "type": ["boolean", "null"] }),
        Type::List(item) => json!({ "type": ["array", "null"], "items": of(item, defs) }),
        Type::Map(value) => json!({ "type": ["object", "null"], "additionalProperties": of(value, defs) }),
        Type::Section(level) => reference(*level, defs),
        Type::Either(types) => {
            let types: Vec<_> = types.iter().map(|ty| of(ty, defs)).collect();
            json!({ "anyOf": types })
        }
    }
}
