//! What only `validate` looks at: files that OpenShell or the agent program reads, and that a run passes on as they
//! are. All of it is a warning: those programs have the last word.

use camino::Utf8Path;

use super::expand::{Issue, expand_shell};
use super::fields::conform_document;
use super::host_files::{is_env_file, mask};
use super::keys::Level;
use super::problem::{Place, Problem, Problems, Severity};
use super::source::Source;
use super::yaml::{self, Node, Value};
use crate::error::Code;

/// A policy against what OpenShell documents.
pub(crate) fn policy(path: &Utf8Path, problems: &mut Problems) {
    openshell(path, Level::Policy, problems);
}

/// A profile against what OpenShell documents.
pub(crate) fn profile(path: &Utf8Path, problems: &mut Problems) {
    openshell(path, Level::Profile, problems);
}

/// What is no such file at all is told elsewhere.
fn openshell(path: &Utf8Path, level: Level, problems: &mut Problems) {
    let Ok(source) = Source::read(path, Code::FileMissing) else { return };
    let mut found = Problems::default();
    let Ok(node) = yaml::parse(&source, &mut found) else { return };
    found.0.clear();
    if matches!(node.value, Value::Map(_)) {
        conform_document(&node, level, &source, &mut found);
        if level == Level::Policy {
            whole_root(&node, &source, &mut found);
        }
    }
    for problem in &mut found.0 {
        let help = problem.help.take().unwrap_or_default();
        problem.help = Some(format!("{help} (as OpenShell 0.1.10 documents it)"));
    }
    warn(found, problems);
}

/// A policy that lets everything be written is none; gateways refuse it.
fn whole_root(node: &Node, source: &Source, found: &mut Problems) {
    let Some(Value::List(paths)) =
        node.get("filesystem_policy").and_then(|node| node.get("read_write")).map(|node| &node.value)
    else {
        return;
    };
    for path in paths.iter().filter(|path| path.scalar() == Some("/")) {
        let help = "name the directories that the agent needs";
        let problem = Problem::warning(Code::Value, "`/` in `read_write` is refused by gateways").help(help);
        found.push(problem.at(Some(source.place(path.span.clone()))));
    }
}

/// A Markdown file for the agent program: its front matter is YAML and says `name` and `description`.
pub(crate) fn front_matter(path: &Utf8Path, problems: &mut Problems) {
    let source = match Source::read(path, Code::FileMissing) {
        Ok(source) => source,
        Err(problem) => return problems.push(problem),
    };
    let text = source.text.replace("\r\n", "\n");
    let Some(rest) = text.strip_prefix("---\n") else { return };
    let end = if rest.starts_with("---") { Some(0) } else { rest.find("\n---") };
    let Some(end) = end else {
        problems.push(
            Problem::warning(Code::YamlSyntax, "the front matter has no end")
                .help("close it with a line `---`")
                .at(Some(source.place(0..3))),
        );
        return;
    };
    // The line before makes up for the opening `---`, so that the lines are those of the file.
    let front = Source::new(source.shown.clone(), format!("\n{}\n", &rest[..end]));
    let mut found = Problems::default();
    match yaml::parse(&front, &mut found) {
        Err(problem) => found.push(problem),
        Ok(node) if matches!(node.value, Value::Map(_) | Value::Null) => {
            for key in ["name", "description"] {
                if node.get(key).and_then(Node::scalar).is_none() {
                    let place = Place { line: 1, column: 1, ..front.place(0..0) };
                    let message = format!("the front matter has no `{key}`");
                    let help = format!("add a line `{key}: …`; agent programs go by it");
                    found.push(Problem::warning(Code::Required, message).help(help).at(Some(place)));
                }
            }
        }
        Ok(node) => found.push(
            Problem::error(Code::YamlType, "the front matter is not a mapping")
                .help("write `key: value` lines")
                .at(Some(front.place(node.span))),
        ),
    }
    // Agent programs read front matter more loosely than this.
    warn(found, problems);
}

/// An env file that no harness need name: what could not be expanded in it whatever the values are.
pub(crate) fn env_file(path: &Utf8Path, problems: &mut Problems) {
    if !is_env_file(path.as_str()) {
        return;
    }
    let source = match Source::read(path, Code::FileType) {
        Ok(source) => source.masked(|text| Some(mask(text))),
        Err(problem) => return problems.push(Problem { severity: Severity::Warning, ..problem }),
    };
    for (range, issue) in expand_shell(&source.text, &|_| Some(String::new())).issues {
        let (message, help) = match issue {
            Issue::Syntax(text) => (
                format!("`{text}` is not a plain `${{NAME}}`"),
                "with `expand: true` the file would be refused; write `$$` for a literal dollar",
            ),
            Issue::Unquotable(place) => (
                format!("no quoting is safe for a value in {place}"),
                "with `expand: true` the file would be refused; assign the value on a line of its own before",
            ),
            Issue::Unset(_) | Issue::Nothing(_) => continue,
        };
        problems.push(Problem::warning(Code::Value, message).help(help).at(Some(source.place(range))));
    }
}

/// Whether something says what runs a script.
pub(crate) fn shebang(script: &Utf8Path, problems: &mut Problems) {
    use std::io::Read as _;
    let mut start = [0_u8; 4];
    let read = std::fs::File::open(script).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    if !start[..read].starts_with(b"#!") && !start.starts_with(b"\x7fELF") {
        let shown = super::source::shown(script);
        problems.push(
            Problem::warning(Code::FileType, format!("{shown} does not say what runs it"))
                .help("begin it with a line such as `#!/bin/sh`")
                .at(Some(super::source::whole_file(&shown))),
        );
    }
}

fn warn(found: Problems, problems: &mut Problems) {
    problems.0.extend(found.0.into_iter().map(|p| Problem { severity: Severity::Warning, ..p }));
}
