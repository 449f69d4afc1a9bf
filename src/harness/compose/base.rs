//! `base:`: the chain of files that a harness builds on.

use camino::{Utf8Path, Utf8PathBuf};

use super::super::check::{Files, Kind, Named, normal};
use super::super::problem::{Problem, Problems};
use super::super::remote::{Authority, Url, absolute, is_url, without_fragment};
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
    /// Where it was fetched from.
    origin: Option<Url>,
}

/// The file and its bases, the nearest first, and whether the chain is whole.
pub(super) fn chain(file: &Utf8Path, files: &Files, problems: &mut Problems) -> (Vec<Layer>, bool) {
    let mut layers: Vec<Layer> = Vec::new();
    let mut seen: Vec<(Utf8PathBuf, Utf8PathBuf)> = Vec::new();
    let mut next = file.to_owned();
    loop {
        let Some(layer) = read(&next, files, problems) else { return (layers, false) };
        seen.push(match &layer.origin {
            Some(url) => (url.as_str().into(), url.as_str().into()),
            None => (next.canonicalize_utf8().unwrap_or_else(|_| next.clone()), shown(&next)),
        });
        let found = base_of(&layer, files, &seen, layers.len(), problems);
        layers.push(layer);
        match found {
            Ok(Some(file)) => next = file,
            Ok(None) => return (layers, true),
            Err(()) => return (layers, false),
        }
    }
}

fn read(file: &Utf8Path, files: &Files, problems: &mut Problems) -> Option<Layer> {
    let origin = files.remote.origin(file);
    let mut layers = files.read.layers.borrow_mut();
    let (read, found) = layers.entry(file.to_owned()).or_insert_with(|| {
        let mut found = Problems::default();
        let read = Source::read(file, Code::FileMissing).and_then(|mut source| {
            if let Some(url) = &origin {
                source.shown = url.as_str().into();
            }
            Ok((yaml::parse(&source, &mut found)?, source))
        });
        (read, found)
    });
    problems.0.extend(found.0.iter().cloned());
    match read {
        Ok((node, source)) => {
            let mut node = node.clone();
            // For each agent anew: what it inherits from elsewhere is noted for its lock.
            if let Some(home) = &origin {
                absolute(&mut node, home, &mut |url| files.remote.inherit(url));
            }
            Some(Layer { file: file.to_owned(), node, source: source.clone(), origin })
        }
        Err(problem) => {
            problems.push(problem.clone());
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
    let found = match &layer.origin {
        Some(home) if !is_url(text) => home.beside(text).inspect(|url| files.remote.inherit(url.clone())),
        _ => inside(text, &layer.file, files),
    };
    let Some(path) = found else {
        let message = format!("`base` names `{text}`, which leads outside the harness directory");
        let help = format!(
            "a base is looked for from {}, the directory of the file that names it, and stays inside {}",
            shown(layer.file.parent().unwrap_or(&files.dir)),
            shown(&files.dir)
        );
        return fail(Problem::error(Code::PathEscape, message).help(help));
    };
    let named = Named { key: "base", path: &path, shown: text, span: node.span.clone(), free: false };
    let remote = is_url(&path);
    // Before a URL is fetched: a circle of URLs must not be walked for ever.
    let key = Utf8PathBuf::from(without_fragment(&path));
    let file = if remote && seen.iter().any(|(other, _)| *other == key) {
        Some(key.clone())
    } else if remote {
        files.remote.check(&named, Kind::File, Authority::Config, &layer.source, problems)
    } else {
        files.check(&named, Kind::File, &layer.source, problems)
    };
    let Some(file) = file else { return Err(()) };
    let real = if remote { key } else { file.canonicalize_utf8().unwrap_or_else(|_| file.clone()) };
    if let Some(first) = seen.iter().position(|(other, _)| *other == real) {
        let round: Vec<_> = seen[first..].iter().chain([&seen[first]]).map(|(_, s)| s.as_str()).collect();
        let message = format!("`base` goes round in a circle: {}", round.join(" → "));
        problems.push(Problem::error(Code::Value, message).help("remove one of the `base` keys").at(place()));
        return Err(());
    }
    Ok(Some(file))
}

/// The path from the harness directory; a URL stays.
fn inside(text: &str, from: &Utf8Path, files: &Files) -> Option<String> {
    if is_url(text) {
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
