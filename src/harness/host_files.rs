//! `host_files`: files of the host that the agent gets, checked and, where asked, expanded.

use std::collections::BTreeMap;
use std::ops::Range;

use camino::Utf8Path;

use super::check::{self, Files, Kind, Named};
use super::expand::{Reference, expand, expand_shell, is_name, reference};
use super::model::HostFile;
use super::problem::Problems;
use super::raw::RawHostFile;
use super::reader::Reader;
use super::source::{Source, stars};
use super::values::Values;
use crate::error::Code;
use crate::secrets::Secret;

/// Resolves the entries. An optional one whose variable is unset, or whose file is missing, is absent.
pub(crate) fn resolve(
    raw: &[RawHostFile],
    files: &Files,
    values: Values<'_>,
    source: &Source,
    problems: &mut Problems,
) -> Vec<HostFile> {
    let mut out = Vec::new();
    let mut seen = BTreeMap::new();
    for entry in raw {
        let dest = destination(entry, &mut seen, &mut Reader::new(source, problems));
        let Some(src) = origin(entry, files, values, source, problems) else { continue };
        let content = if entry.expand { content(&src, entry, values, problems) } else { None };
        if let Some(dest) = dest
            && (content.is_some() || !entry.expand)
        {
            out.push(HostFile { src, dest, expand: entry.expand, content });
        }
    }
    out
}

fn destination(
    entry: &RawHostFile,
    seen: &mut BTreeMap<String, Range<usize>>,
    reader: &mut Reader<'_>,
) -> Option<String> {
    let span = &entry.dest.span;
    let dest = match check::dest(&entry.dest.text) {
        Ok(dest) => dest,
        Err((message, help)) => {
            reader.error(Code::Value, span, message, help);
            return None;
        }
    };
    let key = check::dest_key(&dest);
    if let Some((same, at)) = taken(&key, seen) {
        let line = reader.source.place(at).line;
        let message = if same {
            format!("the destination `{dest}` is used twice")
        } else {
            format!("the destination `{dest}` needs a directory where another file goes, or the reverse")
        };
        reader.error(
            Code::Value,
            span,
            message,
            format!("the other one is in line {line}; change one of them"),
        );
        return None;
    }
    seen.insert(key, span.clone());
    Some(dest)
}

/// What is in the way of a destination: the same one, or one above or below it.
fn taken(key: &str, seen: &BTreeMap<String, Range<usize>>) -> Option<(bool, Range<usize>)> {
    if let Some(at) = seen.get(key) {
        return Some((true, at.clone()));
    }
    let above = key.match_indices('/').skip(1).find_map(|(at, _)| seen.get(&key[..at]));
    let start = format!("{key}/");
    let below = || seen.range(start.clone()..).next().filter(|(other, _)| other.starts_with(&start));
    above.or_else(|| below().map(|(_, at)| at)).map(|at| (false, at.clone()))
}

fn origin(
    entry: &RawHostFile,
    files: &Files,
    values: Values<'_>,
    source: &Source,
    problems: &mut Problems,
) -> Option<camino::Utf8PathBuf> {
    let text = &entry.src.text;
    let expanded = values.expand(&entry.src, source);
    // For an optional file an unset variable is not worth a word, in either form.
    let unset = expanded.problems.iter().any(|p| p.code == Code::EnvUnset);
    if entry.optional && (unset || (expanded.text.is_empty() && !expanded.has_errors())) {
        return None;
    }
    let path = expanded.accept(problems)?;
    if path.is_empty() {
        let mut reader = Reader::new(source, problems);
        let help = "set the variable to a path, or add `optional: true`";
        reader.error(
            Code::Value,
            &entry.src.span,
            format!("`src` names `{text}`, which expands to nothing"),
            help,
        );
        return None;
    }
    let shown = show(text, &path);
    let named = Named {
        key: "src",
        path: &path,
        shown: &shown,
        span: entry.src.span.clone(),
        free: text.starts_with('$') && !text.starts_with("$$"),
    };
    if entry.optional
        && let Ok(path) = files.resolve(&named)
        && std::fs::metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    {
        return None;
    }
    files.check(&named, Kind::File, source, problems)
}

/// A path for messages: what a variable holds is shown only when it looks like a path, since a variable that was
/// named by mistake may hold a secret.
pub(crate) fn show(text: &str, path: &str) -> String {
    let pathlike = ["/", "./", "../"].iter().any(|start| path.starts_with(start)) && path.len() < 300;
    if text == path || !pathlike { text.to_owned() } else { format!("{text} = {path}") }
}

/// The expanded content. In a file that a shell will source the values are quoted.
fn content(
    src: &Utf8Path,
    entry: &RawHostFile,
    values: Values<'_>,
    problems: &mut Problems,
) -> Option<Secret> {
    let shell = is_env_file(&entry.dest.text) || is_env_file(src.as_str());
    let source = match Source::read(src, Code::FileType) {
        Ok(source) => source.masked(|text| shell.then(|| mask(text))),
        Err(problem) => {
            problems.push(problem.help("only a text file can be expanded; remove `expand: true`"));
            return None;
        }
    };
    let lookup = |name: &str| values.lookup(name);
    let expanded = if shell { expand_shell(&source.text, &lookup) } else { expand(&source.text, &lookup) };
    values.place_in_file(expanded, &source).accept(problems).map(Secret::new)
}

/// Whether a shell will source the file: `*.env`, and `.env` itself.
pub(crate) fn is_env_file(path: &str) -> bool {
    path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).is_some_and(|(_, ext)| ext == "env")
}

/// Masks what follows `=`, but for references to variables: the file may hold literal secrets.
pub(crate) fn mask(text: &str) -> String {
    let mut visible: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let key = line.split('=').next().unwrap_or_default();
        let name = key.trim().trim_start_matches("export ").trim();
        if key.len() < line.len() && is_name(name) {
            visible.push(at..at + key.len() + 1);
        }
        at += line.len();
    }
    for (dollar, _) in text.match_indices('$') {
        let len = match reference(&text[dollar..]) {
            (Reference::Variable { .. }, len) => len,
            (Reference::Syntax(_), _) => 2,
            _ => continue,
        };
        visible.push(dollar..dollar + len);
    }
    stars(text, &visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_hide_what_is_not_a_reference() {
        let text = "export A=${X} B='s3cr3t'\nMII+/=\n# note\n";
        let masked = mask(text);
        assert_eq!(masked, "export A=${X}***********\n******\n******\n");
    }

    #[test]
    fn a_value_that_is_no_path_is_not_shown() {
        assert_eq!(show("${P}", "/a/b"), "${P} = /a/b");
        assert_eq!(show("${P}", "ghp_s3cr3t"), "${P}");
        assert_eq!(show("env/a", "env/a"), "env/a");
    }
}
