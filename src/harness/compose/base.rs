//! `base:`: the chain of files that a harness builds on.

use camino::{Utf8Path, Utf8PathBuf};

use super::super::check::{Files, Kind, Named, normal};
use super::super::problem::{Problem, Problems};
use super::super::source::{Source, shown};
use super::super::yaml::{self, Node};
use crate::error::Code;

/// The longest chain of bases.
const MAX_DEPTH: usize = 5;

/// One file of the chain.
#[derive(Debug)]
pub(super) struct Layer {
    /// The file.
    pub(super) file: Utf8PathBuf,
    /// Its tree, with the places of its own text.
    pub(super) node: Node,
    /// Its text.
    pub(super) source: Source,
}

/// The file and its bases, the nearest first, and whether the chain is whole.
pub(super) fn chain(file: &Utf8Path, files: &Files, problems: &mut Problems) -> (Vec<Layer>, bool) {
    let mut layers: Vec<Layer> = Vec::new();
    let mut seen: Vec<(Utf8PathBuf, Utf8PathBuf)> = Vec::new();
    let mut next = file.to_owned();
    loop {
        let Some(layer) = read(&next, problems) else { return (layers, false) };
        seen.push((next.canonicalize_utf8().unwrap_or_else(|_| next.clone()), shown(&next)));
        let found = base_of(&layer, files, &seen, layers.len(), problems);
        layers.push(layer);
        match found {
            Ok(Some(file)) => next = file,
            Ok(None) => return (layers, true),
            Err(()) => return (layers, false),
        }
    }
}

fn read(file: &Utf8Path, problems: &mut Problems) -> Option<Layer> {
    let read = Source::read(file, Code::FileMissing)
        .and_then(|source| Ok((yaml::parse(&source, problems)?, source)));
    match read {
        Ok((node, source)) => Some(Layer { file: file.to_owned(), node, source }),
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

/// The file that `base` names.
fn base_of(
    layer: &Layer,
    files: &Files,
    seen: &[(Utf8PathBuf, Utf8PathBuf)],
    depth: usize,
    problems: &mut Problems,
) -> Result<Option<Utf8PathBuf>, ()> {
    let Some((text, node)) = layer.node.get("base").and_then(|node| Some((node.scalar()?, node))) else {
        return Ok(None);
    };
    let place = || Some(layer.source.place(node.span.clone()));
    let mut fail = |problem: Problem| {
        problems.push(problem.at(place()));
        Err(())
    };
    if depth >= MAX_DEPTH {
        let message = format!("the chain of bases is longer than {MAX_DEPTH}");
        return fail(Problem::error(Code::Value, message).help("merge some of the files into one"));
    }
    let Some(path) = inside(text, &layer.file, files) else {
        let message = format!("`base` names `{text}`, which leads outside the harness directory");
        let help = format!(
            "a base is looked for from {}, the directory of the file that names it, and stays inside {}",
            shown(layer.file.parent().unwrap_or(&files.dir)),
            shown(&files.dir)
        );
        return fail(Problem::error(Code::PathEscape, message).help(help));
    };
    let named = Named { key: "base", path: &path, shown: text, span: node.span.clone(), free: false };
    let Some(file) = files.check(&named, Kind::File, &layer.source, problems) else { return Err(()) };
    let real = file.canonicalize_utf8().unwrap_or_else(|_| file.clone());
    if let Some(first) = seen.iter().position(|(other, _)| *other == real) {
        let round: Vec<_> = seen[first..].iter().chain([&seen[first]]).map(|(_, s)| s.as_str()).collect();
        let message = format!("`base` goes round in a circle: {}", round.join(" → "));
        problems.push(Problem::error(Code::Value, message).help("remove one of the `base` keys").at(place()));
        return Err(());
    }
    Ok(Some(file))
}

/// The path from the harness directory; a URL stays, for the one message about URLs.
fn inside(text: &str, from: &Utf8Path, files: &Files) -> Option<String> {
    if text.contains("://") {
        return Some(text.to_owned());
    }
    let home = from.parent().and_then(|dir| dir.strip_prefix(&files.dir).ok()).unwrap_or(Utf8Path::new(""));
    let joined = match Utf8Path::new(text).strip_prefix(&files.dir) {
        Ok(below) => below.to_owned(),
        Err(_) if Utf8Path::new(text).is_absolute() => return None,
        Err(_) => home.join(text),
    };
    normal(joined.as_str()).map(Utf8PathBuf::into_string)
}
