//! The page `docs/reference/fields.md`.

use std::fmt::Write as _;

use super::{Effect, Field, Home, Level, Merge, Type};
use crate::harness::keys::Format;

const HEAD: &str = "# Fields

Every field of the files of a harness directory. What the parts of a harness mean together is on
[the page about harnesses](harness.md). `null` and `~` mean absent. The same as JSON Schema for editors:
[harness](schema/harness.json), [config.yaml](schema/config.json), [provider](schema/provider.json),
[profile](schema/profile.json), [policy](schema/policy.json).
";

const MERGE: &str = "
How a field combines with the same field of a base, and that of a forge's block or an overlay with that of the
harness:

| merge | |
|---|---|
| own | the child's value as a whole, unless it is null; `false` and `[]` are values |
| filled | the child's value, unless it is null, empty or 0 |
| add | base, then child; equal entries once |
| skills | base, then child; a skill of the child takes the place of the one with the same directory name, and the replaced files of both apply, the child's first |
| files | base, then child; an entry of the child takes the place of the one with the same `dest` |
| keys | key by key; the child's value wins |
| fields | field by field, by the rules of its own table |
| blocks | block by block, by these rules; a null block of the child removes the base's |
| first | the child's entries, then the base's |
| – | a part of the composition itself |

\u{201c}Blocks\u{201d} says whether a block of `forge` and an overlay may have the field too.
";

/// The page without its first line.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    for (title, format) in [
        ("Harness", Format::Harness),
        ("config.yaml", Format::Config),
        ("Provider", Format::Provider),
        ("Profile", Format::Profile),
        ("Policy", Format::Policy),
    ] {
        let _ = writeln!(out, "\n## {title}");
        if format == Format::Harness {
            out.push_str(MERGE);
        }
        for level in Level::ALL.into_iter().filter(|level| level.format() == format) {
            section(&mut out, level);
        }
    }
    out
}

fn section(out: &mut String, level: Level) {
    let name = level.name();
    let capital: String =
        name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
    let _ = writeln!(out, "\n### {capital}\n");
    match level {
        Level::Forge => {
            out.push_str("The fields of the top level that have \u{201c}yes\u{201d} under blocks.\n");
            return;
        }
        Level::Overlay => out.push_str("The fields of a block of `forge`, and besides:\n\n"),
        Level::Profile => out.push_str(
            "OpenShell owns the format; only `id` is read by a run. `validate` warns of what OpenShell 0.1.10 does \
             not document.\n\n",
        ),
        Level::Policy => out.push_str(
            "OpenShell owns the format; a run passes it on. `validate` warns of what OpenShell 0.1.10 does not \
             document.\n\n",
        ),
        _ => {}
    }
    let merges = level.format() == Format::Harness && !matches!(level, Level::Overlay);
    let blocks = level == Level::Harness;
    let mut head = "| field | type | default |".to_owned();
    let mut rule = "|---|---|---|".to_owned();
    if merges {
        head.push_str(" merge |");
        rule.push_str("---|");
    }
    if blocks {
        head.push_str(" blocks |");
        rule.push_str("---|");
    }
    let _ = writeln!(out, "{head} meaning |\n{rule}---|");
    for field in level.fields().filter(|f| level != Level::Overlay || f.home == Home::Overlay) {
        let mut row = format!("| `{}` | {} | {} |", field.name, type_name(&field.ty), default(field));
        if merges {
            let _ = write!(row, " {} |", merge(field.merge));
        }
        if blocks {
            row.push_str(if field.home == Home::Block { " yes |" } else { " no |" });
        }
        let _ = writeln!(out, "{row} {} |", meaning(field).replace('|', "\\|"));
    }
}

fn default(field: &Field) -> String {
    match (field.required, field.default) {
        (true, _) => "required".to_owned(),
        (false, "") => "–".to_owned(),
        (false, text) => text.to_owned(),
    }
}

fn meaning(field: &Field) -> String {
    let mut text = field.doc.to_owned();
    match field.effect {
        Effect::Applied | Effect::Elsewhere => {}
        Effect::NotApplied => text.push_str(" Checked, and not applied by this version: a warning says so."),
    }
    if !field.example.is_empty() {
        let _ = write!(text, " Example: `{}: {}`", field.name, field.example);
    }
    text
}

const fn merge(rule: Merge) -> &'static str {
    match rule {
        Merge::Present => "own",
        Merge::Filled => "filled",
        Merge::Append => "add",
        Merge::Skills => "skills",
        Merge::HostFiles => "files",
        Merge::Map => "keys",
        Merge::Section => "fields",
        Merge::Forge => "blocks",
        Merge::Overlays => "first",
        Merge::Steers => "–",
    }
}

fn type_name(ty: &Type) -> String {
    match ty {
        Type::Text => "text".to_owned(),
        Type::Form(_, word) => (*word).to_owned(),
        Type::Words(words) => words().iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Type::Path => "path".to_owned(),
        Type::Dir => "directory".to_owned(),
        Type::Duration => "duration".to_owned(),
        Type::Int(i64::MIN, to) => format!("whole number up to {to}"),
        Type::Int(from, to) => format!("{from}–{to}"),
        Type::Number(from, to) => format!("number from {from} to {to}"),
        Type::Bool => "yes or no".to_owned(),
        Type::List(item) => format!("list of {}", plural(item)),
        Type::Map(value) => format!("mapping of {}", plural(value)),
        Type::Section(_) => "mapping".to_owned(),
        Type::Either(types) => types.iter().map(type_name).collect::<Vec<_>>().join(" or "),
        Type::Any => "anything".to_owned(),
    }
}

fn plural(ty: &Type) -> String {
    match ty {
        Type::Text => "texts".to_owned(),
        Type::Dir => "directories".to_owned(),
        Type::Path => "paths".to_owned(),
        Type::Form(_, word) => format!("{word}s"),
        Type::Section(_) => "mappings".to_owned(),
        Type::Any => "anything".to_owned(),
        Type::Either(types) => types.iter().map(plural).collect::<Vec<_>>().join(" or "),
        other => type_name(other),
    }
}
