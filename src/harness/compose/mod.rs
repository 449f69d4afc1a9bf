//! One harness from several parts: the file, its chain of bases, the block of a forge.
//!
//! Files are merged as trees before anything is read, so that one table ([`merge`]) says how each key combines.
//! The texts are joined to one, so that every value keeps the place where it really stands.

mod base;
pub(crate) mod forge;
pub(crate) mod guard;
mod merge;
pub(crate) mod overlay;
mod remove;

use camino::{Utf8Path, Utf8PathBuf};

use super::check::Files;
use super::model::{Base, Forge};
use super::problem::Problems;
use super::raw;
use super::source::Source;
use super::yaml::Node;
use overlay::Pick;

/// A harness as one tree.
#[derive(Debug)]
pub(crate) struct Composed {
    /// The merged tree, without the keys that only steer the merge.
    pub(crate) node: Node,
    /// The text of all files.
    pub(crate) source: Source,
    /// The bases, the nearest first.
    pub(crate) bases: Vec<Base>,
}

/// What the parts are chosen by.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// The forge, if one was chosen.
    pub(crate) forge: Option<Forge>,
    /// The overlay.
    pub(crate) overlay: Pick,
}

/// The parts that a harness offers a choice of.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// The forges that it has blocks for.
    pub(crate) forges: Vec<Forge>,
    /// How many overlays it has.
    pub(crate) overlays: usize,
}

/// Reads the harness `file` and everything that it builds on. Without a result there is an error in `problems`;
/// the text that could be read is returned all the same.
pub(crate) fn compose(
    file: &Utf8Path,
    files: &Files,
    choice: &Choice,
    problems: &mut Problems,
) -> (Option<Composed>, Option<Source>) {
    let (layers, whole) = base::chain(file, files, problems);
    let (sources, mut rest): (Vec<_>, Vec<_>) =
        layers.into_iter().map(|layer| (layer.source, (layer.node, layer.file))).unzip();
    if sources.is_empty() {
        return (None, None);
    }
    let bases: Vec<_> = rest[1..]
        .iter()
        .zip(&sources[1..])
        .map(|((_, file), source)| Base { file: file.clone(), digest: source.digest.clone() })
        .collect();
    let (source, starts) = Source::join(sources);
    for ((node, _), start) in rest.iter_mut().zip(starts) {
        node.shift(start);
        raw::check_layer(node, &source, problems);
    }
    if !whole {
        return (None, Some(source));
    }
    let mut removals = remove::Removals::default();
    let nodes: Vec<Node> = rest.into_iter().map(|(node, _): (Node, Utf8PathBuf)| node).collect();
    let Some(merged) = merge::layers(nodes, &mut removals) else { return (None, Some(source)) };
    let merged = overlay::resolve(merged, &choice.overlay, &source, &mut removals, problems)
        .and_then(|node| forge::resolve(node, choice.forge, &source, &mut removals, problems));
    if !problems.has_errors() {
        removals.report(&source, problems);
    }
    let composed = merged.map(|node| Composed { node, source: source.clone(), bases });
    (composed, Some(source))
}

/// Merges trees, the child first, as files of one chain are merged.
#[cfg(test)]
pub(crate) fn merge_for_tests(nodes: Vec<Node>) -> Option<Node> {
    merge::layers(nodes, &mut remove::Removals::default())
}

/// What a harness offers, without reading more than the trees.
pub(crate) fn offer(file: &Utf8Path, files: &Files) -> Offer {
    let mut ignored = Problems::default();
    let (layers, _) = base::chain(file, files, &mut ignored);
    let nodes = layers.into_iter().map(|layer| layer.node).collect();
    let Some(merged) = merge::layers(nodes, &mut remove::Removals::default()) else {
        return Offer::default();
    };
    Offer { forges: forge::blocks(&merged), overlays: overlay::count(&merged) }
}
