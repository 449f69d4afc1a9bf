//! `remove:`: what a child or a forge's block takes away from what it builds on.
//!
//! A mapping from a key, dotted for a key of a section, to a list of names, or to `true` for the whole key:
//! `env.sandbox: [DEBUG]`, `skills: [docs-review]`, `post_script: true`. A key of its own, so that null keeps
//! the meaning it has everywhere else in the format.

use std::collections::HashSet;
use std::ops::Range;

use super::super::check::dest_key;
use super::super::problem::{Problem, Problems};
use super::super::remote::without_fragment;
use super::super::source::Source;
use super::super::yaml::{Node, Scalar, ScalarKind, Value};
use crate::error::Code;

/// What was to be removed and what was.
#[derive(Debug, Default)]
pub(super) struct Removals {
    asked: Vec<(Range<usize>, String)>,
    done: HashSet<usize>,
    /// Entries that gave way to a later one of the same list.
    replaced: Vec<(Range<usize>, String)>,
}

/// The names of one entry of `remove`: `None` is the whole key.
fn names(node: &Node) -> Vec<Option<(&str, Range<usize>)>> {
    match &node.value {
        Value::Scalar(Scalar { kind: ScalarKind::Bool(true), .. }) => vec![None],
        Value::List(items) => {
            items.iter().filter_map(|item| Some(Some((item.scalar()?, item.span.clone())))).collect()
        }
        _ => Vec::new(),
    }
}

impl Removals {
    /// Notes what is asked for, so that what removes nothing can be told.
    pub(super) fn ask(&mut self, removal: &Node) {
        let Value::Map(entries) = &removal.value else { return };
        for (key, node) in entries {
            for name in names(node) {
                self.asked.push(match name {
                    Some((name, span)) => (span, format!("`{name}` of `{}`", key.text)),
                    None => (key.span.clone(), format!("`{}`", key.text)),
                });
            }
        }
    }

    /// Carries a removal out on `base`.
    pub(super) fn apply(&mut self, base: &mut Node, removal: &Node) {
        let Value::Map(entries) = &removal.value else { return };
        for (key, node) in entries {
            for name in names(node) {
                let (removed, at) = match &name {
                    Some((name, span)) => {
                        (descend(base, &key.text).is_some_and(|home| drop_entry(home, name)), span.start)
                    }
                    None => (drop_key(base, &key.text), key.span.start),
                };
                if removed {
                    self.done.insert(at);
                }
            }
        }
    }

    /// Notes that the skill at `span` gave way to a namesake further down in its own list.
    pub(super) fn replaced(&mut self, span: Range<usize>, name: String) {
        self.replaced.push((span, name));
    }

    /// Warns of what was not there.
    pub(super) fn report(&self, source: &Source, problems: &mut Problems) {
        for (span, name) in &self.replaced {
            problems.push(
                Problem::warning(
                    Code::Value,
                    format!("another skill of this list is called `{name}` too; the later one is used"),
                )
                .help("skills go by the name of their directory; rename or remove one")
                .at(Some(source.place(span.clone()))),
            );
        }
        for (span, what) in self.asked.iter().filter(|(span, _)| !self.done.contains(&span.start)) {
            problems.push(
                Problem::warning(
                    Code::Value,
                    format!("`remove` names {what}, but nothing of it is inherited"),
                )
                .help("correct the name, or remove the entry")
                .at(Some(source.place(span.clone()))),
            );
        }
    }
}

/// The node at a dotted path; the part after `skills.` is the name of a skill.
fn descend<'n>(node: &'n mut Node, path: &str) -> Option<&'n mut Node> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Value::Map(entries) = &mut node.value else { return None };
    let child = entries.iter_mut().find(|(key, _)| key.text == first).map(|(_, node)| node)?;
    let Some(rest) = rest else { return Some(child) };
    if matches!(child.value, Value::Map(_)) {
        return descend(child, rest);
    }
    let Value::List(items) = &mut child.value else { return None };
    let item = items.iter_mut().find(|item| is_called(item, rest))?;
    let Value::Map(entries) = &mut item.value else { return None };
    entries.first_mut().map(|(_, node)| node)
}

fn drop_key(node: &mut Node, path: &str) -> bool {
    let (home, name) = match path.rsplit_once('.') {
        Some((home, name)) => (descend(node, home), name),
        None => (Some(node), path),
    };
    home.is_some_and(|home| drop_entry(home, name))
}

fn drop_entry(home: &mut Node, name: &str) -> bool {
    match &mut home.value {
        Value::Map(entries) => {
            let before = entries.len();
            entries.retain(|(key, _)| key.text != name);
            entries.len() < before
        }
        Value::List(items) => {
            let before = items.len();
            items.retain(|item| !is_called(item, name));
            items.len() < before
        }
        Value::Null | Value::Scalar(_) => false,
    }
}

/// Whether an entry of a list goes by `name`: its text, its file name with or without extension, the destination
/// of a host file, the name of a server.
fn is_called(item: &Node, name: &str) -> bool {
    let text = match &item.value {
        Value::Map(entries) => {
            let named = ["dest", "path", "name"].iter().find_map(|key| item.get(key)?.scalar());
            match (named, entries.as_slice()) {
                (Some(text), _) => text,
                (None, [(key, _)]) => key.text.as_str(),
                _ => return false,
            }
        }
        _ => match item.scalar() {
            Some(text) => text,
            None => return false,
        },
    };
    let text = without_fragment(text);
    let last = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
    let stem = last.strip_suffix(".yaml").or_else(|| last.strip_suffix(".yml")).unwrap_or(last);
    // A destination is a place, not a name: only the whole path will do.
    if item.get("dest").is_some() {
        return dest_key(text) == dest_key(name);
    }
    text == name || last == name || stem == name
}
