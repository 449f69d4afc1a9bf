//! How the keys of a child combine with those of its base, and those of a forge's block with the harness.

use std::collections::{HashMap, HashSet};

use super::super::check::dest_key;
use super::super::fields::{Merge, Type};
use super::super::keys::Level;
use super::super::remote::without_fragment;
use super::super::yaml::{Key, Node, ScalarKind, Value};
use super::guard::json_of;
use super::remove::Removals;

/// Merges a chain of files, the child first. `None` when one of them is no mapping.
pub(super) fn layers(mut nodes: Vec<Node>, removals: &mut Removals) -> Option<Node> {
    let mut merged = nodes.pop()?;
    if let Some(removal) = take(&mut merged, "remove") {
        removals.ask(&removal);
    }
    while let Some(child) = nodes.pop() {
        merged = over(merged, child, removals)?;
    }
    take(&mut merged, "base");
    matches!(merged.value, Value::Map(_)).then_some(merged)
}

/// `child` over `base`. The child's `remove` is carried out on the base first.
pub(super) fn over(mut base: Node, mut child: Node, removals: &mut Removals) -> Option<Node> {
    if let Some(removal) = take(&mut child, "remove") {
        removals.ask(&removal);
        removals.apply(&mut base, &removal);
    }
    let (Value::Map(base), Value::Map(entries)) = (base.value, child.value) else { return None };
    let merged = maps(base, entries, Some(Level::Harness), removals);
    Some(Node { value: Value::Map(merged), span: child.span })
}

/// Takes an entry out of a mapping.
pub(super) fn take(node: &mut Node, name: &str) -> Option<Node> {
    let Value::Map(entries) = &mut node.value else { return None };
    let at = entries.iter().position(|(key, _)| key.text == name)?;
    Some(entries.remove(at).1)
}

fn maps(
    mut base: Vec<(Key, Node)>,
    child: Vec<(Key, Node)>,
    level: Option<Level>,
    removals: &mut Removals,
) -> Vec<(Key, Node)> {
    let at: HashMap<String, usize> =
        base.iter().enumerate().map(|(at, (key, _))| (key.text.clone(), at)).collect();
    for (key, node) in child {
        let field = level.and_then(|level| level.field(&key.text));
        let (rule, ty) = field.map_or((Merge::Present, Type::Any), |field| (field.merge, field.ty));
        match at.get(&key.text) {
            // Keys of the child are not repeated: the parser keeps the first of them.
            None => base.push((key, node)),
            Some(at) => {
                let nothing = Node { value: Value::Null, span: 0..0 };
                let empty = (Key { text: String::new(), span: 0..0 }, nothing);
                let old = std::mem::replace(&mut base[*at], empty);
                base[*at] = combine(rule, ty, old, (key, node), removals);
            }
        }
    }
    base
}

fn combine(
    rule: Merge,
    ty: Type,
    base: (Key, Node),
    child: (Key, Node),
    removals: &mut Removals,
) -> (Key, Node) {
    let says_nothing = match &child.1.value {
        Value::Null => true,
        Value::Scalar(scalar) if rule == Merge::Filled => {
            scalar.text.is_empty() || scalar.kind == ScalarKind::Int(0)
        }
        _ => false,
    };
    if says_nothing {
        return base;
    }
    let (key, Node { value: new, span }) = child;
    let old = base.1.value;
    let value = match (rule, old, new) {
        (Merge::Append, Value::List(old), Value::List(new)) => Value::List(append(old, new)),
        (Merge::Skills, Value::List(old), Value::List(new)) => Value::List(skills(old, new, removals)),
        (Merge::HostFiles, Value::List(old), Value::List(new)) => Value::List(host_files(old, new)),
        (Merge::Overlays, Value::List(old), Value::List(new)) => {
            Value::List(new.into_iter().chain(old).collect())
        }
        (Merge::Map, Value::Map(old), Value::Map(new)) => Value::Map(maps(old, new, None, removals)),
        (Merge::Section, Value::Map(old), Value::Map(new)) => {
            let level = if let Type::Section(level) = ty { Some(level) } else { None };
            Value::Map(maps(old, new, level, removals))
        }
        (Merge::Steers, Value::Map(old), Value::Map(new)) => Value::Map(removed(old, new)),
        (Merge::Forge, Value::Map(old), Value::Map(new)) => Value::Map(forges(old, new, removals)),
        // A wrong type is reported where it stands.
        (_, _, new) => new,
    };
    (key, Node { value, span })
}

/// Blocks of forges: a null block removes, others merge like harnesses. What a block removes may also be at the
/// top level, so its `remove` stays with it.
fn forges(mut base: Vec<(Key, Node)>, child: Vec<(Key, Node)>, removals: &mut Removals) -> Vec<(Key, Node)> {
    for (key, node) in child {
        let Some(at) = base.iter().position(|(other, _)| other.text == key.text) else {
            base.push((key, node));
            continue;
        };
        let (_, mut old) = base.remove(at);
        if matches!(node.value, Value::Null) {
            continue;
        }
        if let Some(removal) = node.get("remove") {
            removals.apply(&mut old, removal);
        }
        let merged = match (old.value, node.value) {
            (Value::Map(old), Value::Map(new)) => Value::Map(maps(old, new, Some(Level::Forge), removals)),
            (_, new) => new,
        };
        base.insert(at, (key, Node { value: merged, span: node.span }));
    }
    base
}

fn removed(mut base: Vec<(Key, Node)>, child: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
    for (key, mut node) in child {
        if let Some(at) = base.iter().position(|(other, _)| other.text == key.text) {
            let (_, old) = base.remove(at);
            if let (Value::List(old), Value::List(new)) = (old.value, &mut node.value) {
                new.extend(old);
            }
        }
        base.push((key, node));
    }
    base
}

fn append(mut base: Vec<Node>, child: Vec<Node>) -> Vec<Node> {
    let mut known: HashSet<(bool, String)> = base.iter().map(identity).collect();
    base.extend(child.into_iter().filter(|node| known.insert(identity(node))));
    base
}

/// What makes two entries equal: the text of a scalar, the whole of anything else.
fn identity(node: &Node) -> (bool, String) {
    match node.scalar() {
        Some(text) => (true, text.to_owned()),
        None => (false, json_of(node).to_string()),
    }
}

/// The name and the overrides of an entry of `skills`.
fn skill(node: &Node) -> Option<(String, Option<&Node>)> {
    let (path, overrides) = match &node.value {
        Value::Map(entries) => match entries.as_slice() {
            [(key, overrides)] => (key.text.as_str(), Some(overrides)),
            _ => return None,
        },
        _ => (node.scalar()?, None),
    };
    let path = without_fragment(path);
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    Some((name.to_owned(), overrides))
}

/// A skill of the child takes the place of the one with the same name; the overrides of both apply.
fn skills(mut base: Vec<Node>, child: Vec<Node>, removals: &mut Removals) -> Vec<Node> {
    let mut own: HashSet<String> = HashSet::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, node) in base.iter().enumerate() {
        if let Some((name, _)) = skill(node) {
            places.entry(name).or_insert(at);
        }
    }
    for mut node in child {
        let Some((name, _)) = skill(&node) else {
            base.push(node);
            continue;
        };
        let repeated = !own.insert(name.clone());
        let Some(at) = places.get(&name).copied() else {
            places.insert(name, base.len());
            base.push(node);
            continue;
        };
        if repeated {
            removals.replaced(base[at].span.clone(), name.clone());
        }
        if let Some((_, Some(Node { value: Value::Map(old), .. }))) = skill(&base[at]) {
            let old = old.clone();
            let text = node.scalar().map(str::to_owned);
            node.value = match (text, node.value) {
                (Some(text), _) => {
                    let key = Key { text, span: node.span.clone() };
                    Value::Map(vec![(key, Node { value: Value::Map(old), span: node.span.clone() })])
                }
                (None, Value::Map(mut entries)) => {
                    if let Some((_, overrides)) = entries.first_mut() {
                        let new = match std::mem::replace(&mut overrides.value, Value::Null) {
                            Value::Map(new) => new,
                            Value::Null => Vec::new(),
                            // A wrong type is reported where it stands.
                            other => {
                                overrides.value = other;
                                base[at] = Node { value: Value::Map(entries), span: node.span };
                                continue;
                            }
                        };
                        let mut all = old;
                        for (key, node) in new {
                            all.retain(|(other, _)| other.text != key.text);
                            all.push((key, node));
                        }
                        overrides.value = Value::Map(all);
                    }
                    Value::Map(entries)
                }
                (None, value) => value,
            };
        }
        base[at] = node;
    }
    base
}

fn host_files(mut base: Vec<Node>, child: Vec<Node>) -> Vec<Node> {
    let dest = |node: &Node| node.get("dest").and_then(Node::scalar).map(dest_key);
    let mut places: HashMap<String, usize> = HashMap::new();
    for (at, node) in base.iter().enumerate() {
        if let Some(dest) = dest(node) {
            places.entry(dest).or_insert(at);
        }
    }
    for node in child {
        let key = dest(&node);
        if let Some(at) = key.as_ref().and_then(|key| places.get(key).copied()) {
            base[at] = node;
        } else {
            places.extend(key.map(|key| (key, base.len())));
            base.push(node);
        }
    }
    base
}
