//! How the keys of a child combine with those of its base, and those of a forge's block with the harness.

use super::super::check::dest_key;
use super::super::yaml::{Key, Node, ScalarKind, Value};
use super::remove::Removals;

/// How one key combines.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The child's value, unless it is null, empty or 0.
    Filled,
    /// The child's value, unless it is null.
    Present,
    /// The base's entries, then the child's that are not among them.
    Append,
    /// As `Append`, but an entry of the child takes the place of the one with the same name.
    Skills,
    /// As `Append`, but an entry of the child takes the place of the one with the same destination.
    HostFiles,
    /// Both mappings; the child's value wins.
    Map,
    /// Key by key.
    Section(&'static [(&'static str, Rule)]),
    /// Block by block, each like a harness; a null block of the child removes the base's.
    Forge,
    /// The child's entries, then the base's: the child is asked first.
    Overlays,
    /// Both mappings; lists under the same key add up.
    Removals,
}

/// Every key that does not follow [`Rule::Present`].
const RULES: &[(&str, Rule)] = &[
    ("agent", Rule::Filled),
    ("doc", Rule::Filled),
    ("description", Rule::Filled),
    ("role", Rule::Filled),
    ("slug", Rule::Filled),
    ("runtime", Rule::Filled),
    ("image", Rule::Filled),
    ("policy", Rule::Filled),
    ("model", Rule::Filled),
    ("effort", Rule::Filled),
    ("pre_script", Rule::Filled),
    ("post_script", Rule::Filled),
    ("agent_input", Rule::Filled),
    ("trigger", Rule::Filled),
    ("timeout_minutes", Rule::Filled),
    ("idle_timeout", Rule::Filled),
    ("deadlines", Rule::Map),
    ("sandbox_timeout_seconds", Rule::Filled),
    ("skills", Rule::Skills),
    ("plugins", Rule::Append),
    ("providers", Rule::Append),
    ("required_env", Rule::Append),
    ("api_servers", Rule::Append),
    ("host_files", Rule::HostFiles),
    ("runner_env", Rule::Map),
    ("env", Rule::Section(&[("runner", Rule::Map), ("sandbox", Rule::Map)])),
    ("openshell", Rule::Section(&[("profiles", Rule::Append)])),
    ("upload", Rule::Section(&[("exclude", Rule::Append)])),
    (
        "validation_loop",
        Rule::Section(&[
            ("script", Rule::Filled),
            ("schema", Rule::Filled),
            ("preflight_check", Rule::Filled),
        ]),
    ),
    ("forge", Rule::Forge),
    ("overlays", Rule::Overlays),
];

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
    let merged = maps(base, entries, RULES, removals);
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
    rules: &[(&str, Rule)],
    removals: &mut Removals,
) -> Vec<(Key, Node)> {
    for (key, node) in child {
        let rule = rules.iter().find(|(name, _)| *name == key.text).map_or(Rule::Present, |(_, rule)| *rule);
        match base.iter().position(|(other, _)| other.text == key.text) {
            None => base.push((key, node)),
            Some(at) => {
                let (old_key, old) = base.remove(at);
                base.insert(at, combine(rule, (old_key, old), (key, node), removals));
            }
        }
    }
    base
}

fn combine(rule: Rule, base: (Key, Node), child: (Key, Node), removals: &mut Removals) -> (Key, Node) {
    let says_nothing = match &child.1.value {
        Value::Null => true,
        Value::Scalar(scalar) if matches!(rule, Rule::Filled) => {
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
        (Rule::Append, Value::List(old), Value::List(new)) => Value::List(append(old, new)),
        (Rule::Skills, Value::List(old), Value::List(new)) => Value::List(skills(old, new, removals)),
        (Rule::HostFiles, Value::List(old), Value::List(new)) => Value::List(host_files(old, new)),
        (Rule::Overlays, Value::List(old), Value::List(new)) => {
            Value::List(new.into_iter().chain(old).collect())
        }
        (Rule::Map, Value::Map(old), Value::Map(new)) => Value::Map(maps(old, new, &[], removals)),
        (Rule::Section(rules), Value::Map(old), Value::Map(new)) => {
            Value::Map(maps(old, new, rules, removals))
        }
        (Rule::Removals, Value::Map(old), Value::Map(new)) => Value::Map(removed(old, new)),
        (Rule::Forge, Value::Map(old), Value::Map(new)) => Value::Map(forges(old, new, removals)),
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
            (Value::Map(old), Value::Map(new)) => Value::Map(maps(old, new, BLOCK, removals)),
            (_, new) => new,
        };
        base.insert(at, (key, Node { value: merged, span: node.span }));
    }
    base
}

/// The rules for a block: those of a harness, and what it removes adds up.
const BLOCK: &[(&str, Rule)] = &{
    let mut rules = [("remove", Rule::Removals); RULES.len() + 1];
    let mut at = 0;
    while at < RULES.len() {
        rules[at] = RULES[at];
        at += 1;
    }
    rules
};

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
    for node in child {
        let known = |other: &Node| node.scalar().is_some() && other.scalar() == node.scalar();
        if !base.iter().any(known) {
            base.push(node);
        }
    }
    base
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
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    Some((name.to_owned(), overrides))
}

/// A skill of the child takes the place of the one with the same name; the overrides of both apply.
fn skills(mut base: Vec<Node>, child: Vec<Node>, removals: &mut Removals) -> Vec<Node> {
    let mut own: Vec<String> = Vec::new();
    for mut node in child {
        let Some((name, _)) = skill(&node) else {
            base.push(node);
            continue;
        };
        let repeated = own.contains(&name);
        own.push(name.clone());
        let same = |other: &Node| skill(other).is_some_and(|(other, _)| other == name);
        let Some(at) = base.iter().position(same) else {
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
    for node in child {
        let key = dest(&node);
        match base.iter().position(|other| key.is_some() && dest(other) == key) {
            Some(at) => base[at] = node,
            None => base.push(node),
        }
    }
    base
}
