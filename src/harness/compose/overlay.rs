//! `overlays:`: a list of guarded blocks, of which the first whose guard holds goes over the harness.

use super::super::problem::{Problem, Problems};
use super::super::source::Source;
use super::super::yaml::{Node, Value};
use super::guard::{self, Facts};
use super::merge::{over, take};
use super::remove::Removals;
use crate::error::Code;

/// Which overlay applies.
#[derive(Debug, Clone)]
pub(crate) enum Pick {
    /// The first whose guard holds.
    Guarded(Facts),
    /// This one, or none: for checking each of them.
    Fixed(Option<usize>),
}

/// How many overlays a merged harness has.
pub(super) fn count(node: &Node) -> usize {
    match node.get("overlays").map(|overlays| &overlays.value) {
        Some(Value::List(items)) => items.len(),
        _ => 0,
    }
}

/// Merges the overlay that applies. `None` when that cannot be told, with an error.
pub(super) fn resolve(
    mut node: Node,
    pick: &Pick,
    source: &Source,
    removals: &mut Removals,
    problems: &mut Problems,
) -> Option<Node> {
    let Some(Node { value: Value::List(mut items), .. }) = take(&mut node, "overlays") else {
        return Some(node);
    };
    if items.is_empty() {
        return Some(node);
    }
    if node.get("forge").is_some_and(|forge| !forge.is_empty()) {
        problems.push(
            Problem::error(Code::Value, "a harness has either `forge` or `overlays`, not both")
                .help("write a block of `forge` as an overlay: `when: runtime.forge == \"github\"`")
                .at(Some(source.place(items[0].span.clone()))),
        );
        return None;
    }
    let at = match pick {
        Pick::Fixed(at) => *at,
        Pick::Guarded(facts) => first(&items, facts, source, problems).ok()?,
    };
    let Some(at) = at.filter(|at| *at < items.len()) else { return Some(node) };
    let mut block = items.swap_remove(at);
    take(&mut block, "when");
    let span = node.span.clone();
    over(node, block, removals).map(|node| Node { span, ..node })
}

/// The first whose guard holds. A guard that cannot be answered is an error: what comes after it is not known to
/// be what is wanted.
fn first(
    items: &[Node],
    facts: &Facts,
    source: &Source,
    problems: &mut Problems,
) -> Result<Option<usize>, ()> {
    let event = match guard::event(facts) {
        Ok(event) => event,
        Err(why) => {
            let (from, path) =
                facts.event.as_ref().map_or(("GITHUB_EVENT_PATH", ""), |(n, p)| (*n, p.as_str()));
            // A value that is no absolute path is not shown: it may be the event itself, put where its file's path
            // belongs.
            let what = if path.starts_with('/') {
                format!("the event {path} ({from})")
            } else {
                format!("the event in the file that {from} names")
            };
            problems.push(Problem::error(Code::FileMissing, format!("{what} {why}")).help(format!(
                "overlays are chosen by it: {from} has the path of a file in JSON, not the event itself"
            )));
            return Err(());
        }
    };
    for (at, item) in items.iter().enumerate() {
        let Some((text, when)) = item.get("when").and_then(|when| Some((when.scalar()?, when))) else {
            // It has been reported.
            return Err(());
        };
        match guard::holds(text, &event, facts) {
            Ok(true) => return Ok(Some(at)),
            Ok(false) => {}
            Err(why) => {
                problems.push(
                    Problem::error(Code::Value, format!("`when` has no answer: {why}"))
                        .help("ask first for what may be missing: `has(event.x) && event.x == …`")
                        .at(Some(source.place(when.span.clone()))),
                );
                return Err(());
            }
        }
    }
    Ok(None)
}
