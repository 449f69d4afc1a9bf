//! A harness as it resolves, with where each value comes from.
//!
//! Nothing is expanded, so no value of a variable is shown; a text that is written out under a name that speaks of a
//! secret is masked.

use std::fmt::Write as _;

use super::check::Files;
use super::compose::guard::Facts;
use super::compose::overlay::Pick;
use super::compose::{Choice, Composed, compose};
use super::config::Config;
use super::directory::harness_file;
use super::load::{Request, chosen_forge, event_file, files};
use super::problem::Problems;
use super::remote::Attempt;
use super::source::Source;
use super::yaml::{Node, Scalar, ScalarKind, Value};
use crate::error::{Error, Result};
use crate::secrets::MASK;

/// The widest value column, in characters.
const WIDTH: usize = 70;

/// The harness as YAML, each line with its `file:line` in a comment. The error holds the problems of the text; that
/// a file or a variable is missing is not looked at.
pub fn show(request: &Request) -> Result<String> {
    attempt(request).offline()
}

/// The same, or what has to be fetched first.
pub fn attempt(request: &Request) -> Attempt<String> {
    let mut problems = Problems::default();
    let config = Config::read(&request.dir, &mut problems);
    let files = files(&request.dir, &config, &request.fetched, &mut problems).for_agent(&request.agent);
    let result = text(request, &config, &files, problems).transpose();
    Attempt { result, needs: files.remote.needs(), private_hosts: config.private_hosts }
}

fn text(request: &Request, config: &Config, files: &Files, mut problems: Problems) -> Result<Option<String>> {
    let file = harness_file(files, &request.agent, config, &mut problems)?;
    let forge = chosen_forge(request, config);
    let facts = Facts { event: event_file(&request.env), forge, config: config.json() };
    let choice = Choice { forge, overlay: Pick::Guarded(facts) };
    let composed = file.and_then(|file| compose(&file, files, &choice, &mut problems).0);
    if problems.has_errors() {
        return Err(Error::problems(problems));
    }
    let Some(Composed { node, source, .. }) = composed else { return Ok(None) };
    let mut lines = Vec::new();
    if let Value::Map(entries) = &node.value {
        for (key, node) in entries {
            entry(&mut lines, &source, 0, &key.text, node);
        }
    }
    let said = |name: &str| node.get(name).is_some_and(|node| !node.is_empty());
    for (name, value) in
        [("timeout_minutes", "30"), ("sandbox_timeout_seconds", "300"), ("readonly_repo", "false")]
    {
        if !said(name) {
            lines.push((format!("{name}: {value}"), "default".to_owned()));
        }
    }
    let width = lines.iter().map(|(text, _)| text.chars().count()).filter(|n| *n <= WIDTH).max().unwrap_or(0);
    let mut out = String::new();
    let forge = forge.map_or("no forge", super::model::Forge::as_str);
    let _ = writeln!(out, "# {} for {forge}", request.agent);
    for (text, from) in lines {
        let line = if from.is_empty() { text } else { format!("{text:<width$}  # {from}") };
        let _ = writeln!(out, "{line}");
    }
    Ok(Some(out))
}

type Lines = Vec<(String, String)>;

fn entry(lines: &mut Lines, source: &Source, depth: usize, key: &str, node: &Node) {
    let indent = "  ".repeat(depth);
    let key_text = plain(key);
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            lines.push((format!("{indent}{key_text}:"), String::new()));
            for (key, node) in entries {
                entry(lines, source, depth + 1, &key.text, node);
            }
        }
        Value::List(items) if !items.is_empty() => {
            lines.push((format!("{indent}{key_text}:"), String::new()));
            for item in items {
                list_item(lines, source, depth + 1, item);
            }
        }
        _ => lines.push((format!("{indent}{key_text}: {}", value(key, node)), place(source, node))),
    }
}

fn list_item(lines: &mut Lines, source: &Source, depth: usize, item: &Node) {
    let indent = "  ".repeat(depth);
    match &item.value {
        Value::Map(entries) if !entries.is_empty() => {
            let start = lines.len();
            for (key, node) in entries {
                entry(lines, source, depth + 1, &key.text, node);
            }
            // The first key of a mapping stands on the line of the dash.
            if let Some((text, _)) = lines.get_mut(start) {
                text.replace_range(indent.len()..=indent.len(), "-");
            }
        }
        Value::List(items) if !items.is_empty() => {
            lines.push((format!("{indent}-"), String::new()));
            for item in items {
                list_item(lines, source, depth + 1, item);
            }
        }
        _ => lines.push((format!("{indent}- {}", value("", item)), place(source, item))),
    }
}

fn place(source: &Source, node: &Node) -> String {
    let place = source.place(node.span.clone());
    format!("{}:{}", place.file, place.line)
}

fn value(key: &str, node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::List(_) => "[]".to_owned(),
        Value::Map(_) => "{}".to_owned(),
        Value::Scalar(Scalar { text, kind: ScalarKind::Text }) => {
            if speaks_of_a_secret(key) && !text.contains('$') && !text.is_empty() {
                plain(MASK)
            } else {
                plain(text)
            }
        }
        Value::Scalar(scalar) => scalar.text.clone(),
    }
}

fn speaks_of_a_secret(key: &str) -> bool {
    let key = key.to_ascii_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "API_KEY", "APIKEY"]
        .iter()
        .any(|word| key.contains(word))
}

/// A text as YAML that means it.
fn plain(text: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || "_./-+@:,(){}$= ".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || "./_$".contains(c));
    let other = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let safe = starts
        && text.chars().all(word)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !other.contains(&text.to_ascii_lowercase().as_str());
    if safe { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_texts() {
        for (text, want) in [
            ("agents/a.md", "agents/a.md"),
            ("${TOKEN}", "${TOKEN}"),
            ("no", "\"no\""),
            ("1.10", "\"1.10\""),
            ("", "\"\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("two\nlines", "\"two\\nlines\""),
        ] {
            assert_eq!(plain(text), want);
        }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        assert!(speaks_of_a_secret("gh_token") && speaks_of_a_secret("MY_API_KEY"));
        assert!(!speaks_of_a_secret("MODEL") && !speaks_of_a_secret("ISSUE_KEY"));
    }
}
