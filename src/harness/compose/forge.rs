//! `forge:`: the block of the chosen forge over the harness.

use super::super::keys::nearest;
use super::super::model::Forge;
use super::super::problem::{Problem, Problems};
use super::super::source::Source;
use super::super::yaml::{Key, Node, Value};
use super::merge::{over, take};
use super::remove::Removals;
use crate::error::Code;

/// The blocks of a merged harness.
pub(super) fn blocks(node: &Node) -> Vec<Forge> {
    match node.get("forge").map(|forge| &forge.value) {
        Some(Value::Map(entries)) => {
            entries.iter().filter_map(|(key, _)| Forge::from_name(&key.text)).collect()
        }
        _ => Vec::new(),
    }
}

/// Merges the block of `chosen` and drops the others. `None` when that cannot be done, with an error.
pub(super) fn resolve(
    mut node: Node,
    chosen: Option<Forge>,
    source: &Source,
    removals: &mut Removals,
    problems: &mut Problems,
) -> Option<Node> {
    let key = key_of(&node, "forge");
    let Some(Node { value: Value::Map(mut entries), .. }) = take(&mut node, "forge") else {
        return Some(node);
    };
    let Some(key) = key.filter(|_| !entries.is_empty()) else { return Some(node) };
    let has: Vec<_> = entries.iter().map(|(key, _)| key.text.clone()).collect();
    let has = has.join(", ");
    let Some(forge) = chosen else {
        problems.push(
            Problem::error(
                Code::Required,
                format!("no forge was chosen, and this harness depends on it: {has}"),
            )
            .help(format!("choose one with --forge {}, or set `forge` in config.yaml", entries[0].0.text))
            .at(Some(source.place(key.span))),
        );
        return None;
    };
    let Some(at) = entries.iter().position(|(key, _)| key.text == forge.as_str()) else {
        problems.push(
            Problem::error(
                Code::Value,
                format!("`forge` has no block for {}, only for {has}", forge.as_str()),
            )
            .help(format!("choose another with --forge, or add `{}: {{}}`", forge.as_str()))
            .at(Some(source.place(key.span))),
        );
        return None;
    };
    let (_, block) = entries.swap_remove(at);
    match block.value {
        Value::Map(_) => {
            let span = node.span.clone();
            over(node, block, removals).map(|node| Node { span, ..node })
        }
        // Null is a block without overrides; a wrong type has been reported.
        _ => Some(node),
    }
}

fn key_of(node: &Node, name: &str) -> Option<Key> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.clone())
}

/// What to say about a block that no forge is called.
pub(crate) fn unknown(name: &str) -> String {
    match nearest(name, Forge::ALL.map(Forge::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "the forges are github, gitlab and jira".to_owned(),
    }
}
