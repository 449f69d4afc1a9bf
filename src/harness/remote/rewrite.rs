//! A harness that came from a URL: its relative paths are where it lives.

use super::super::provider::is_path;
use super::super::yaml::{Key, Node, Scalar, Value};
use super::url::{Url, is_url};

/// Keys whose value is one path.
const PATHS: [&str; 5] = ["agent", "policy", "pre_script", "post_script", "agent_input"];

/// Makes URLs of all relative paths in the harness `node` from `home`; `made` is told each. A path that leaves the
/// host stays, and is refused like one that leaves the harness directory.
pub(crate) fn absolute(node: &mut Node, home: &Url, made: &mut impl FnMut(String)) {
    let mut change = |text: &mut String| {
        if is_url(text) || text.is_empty() || text.contains('$') || text.starts_with('/') {
            return;
        }
        if let Some(url) = home.below_root(text) {
            made(url.clone());
            *text = url;
        }
    };
    block(node, &mut change);
    for node in entry(node, "forge").into_iter().flat_map(values) {
        block(node, &mut change);
    }
    for node in entry(node, "overlays").into_iter().flat_map(items) {
        block(node, &mut change);
    }
}

fn block(node: &mut Node, change: &mut impl FnMut(&mut String)) {
    for key in PATHS {
        if let Some(path) = entry(node, key) {
            scalar(path, change);
        }
    }
    if let Some(validation) = entry(node, "validation_loop") {
        for key in ["script", "schema"] {
            if let Some(path) = entry(validation, key) {
                scalar(path, change);
            }
        }
        for schema in entry(validation, "schemas").into_iter().flat_map(values) {
            scalar(schema, change);
        }
    }
    for item in entry(node, "skills").into_iter().flat_map(items) {
        match &mut item.value {
            Value::Map(entries) => {
                for (key, overrides) in entries {
                    change(&mut key.text);
                    for file in values(overrides) {
                        scalar(file, change);
                    }
                }
            }
            _ => scalar(item, change),
        }
    }
    for item in entry(node, "plugins").into_iter().flat_map(items) {
        match entry(item, "path") {
            Some(path) => scalar(path, change),
            None => scalar(item, change),
        }
    }
    for item in entry(node, "providers").into_iter().flat_map(items) {
        if item.scalar().is_some_and(is_path) {
            scalar(item, change);
        }
    }
    for item in entry(node, "host_files").into_iter().flat_map(items) {
        if let Some(path) = entry(item, "src") {
            scalar(path, change);
        }
    }
    let profiles = entry(node, "openshell").and_then(|openshell| entry(openshell, "profiles"));
    profiles.into_iter().flat_map(items).for_each(|node| scalar(node, change));
}

fn scalar(node: &mut Node, change: &mut impl FnMut(&mut String)) {
    if let Value::Scalar(Scalar { text, .. }) = &mut node.value {
        change(text);
    }
}

fn entry<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    let Value::Map(entries) = &mut node.value else { return None };
    entries.iter_mut().find(|(key, _)| key.text == name).map(|(_, node)| node)
}

fn items(node: &mut Node) -> &mut [Node] {
    match &mut node.value {
        Value::List(items) => items,
        _ => &mut [],
    }
}

fn values(node: &mut Node) -> Vec<&mut Node> {
    match &mut node.value {
        Value::Map(entries) => entries.iter_mut().map(|(_, node): &mut (Key, Node)| node).collect(),
        _ => Vec::new(),
    }
}
