//! `lock.yaml`: what is behind each URL of each agent. The format is that of the first implementation, version 1.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::Utf8Path;

use super::super::problem::{Problem, Problems};
use super::super::source::Source;
use super::super::yaml::{self, Node, Value};
use super::url::is_sha256;
use super::{Form, Used};
use crate::error::Code;

/// The name of the file in a harness directory.
pub(crate) const FILE: &str = "lock.yaml";

/// The file, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lock {
    /// The entries by agent.
    pub(crate) agents: BTreeMap<String, Entry>,
}

/// What is locked for one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where its harness is: a path below the directory, or a URL.
    pub(crate) source: String,
    /// The SHA-256 of the harness file.
    pub(crate) sha256: String,
    /// The URLs.
    pub(crate) dependencies: Vec<Used>,
}

impl Lock {
    /// Reads the lock of a directory; a directory without one has an empty one.
    pub(crate) fn read(dir: &Utf8Path, problems: &mut Problems) -> Self {
        let path = dir.join(FILE);
        if std::fs::symlink_metadata(&path).is_err() {
            return Self::default();
        }
        let source = match Source::read(&path, Code::Lock) {
            Ok(source) => source,
            Err(problem) => {
                problems.push(problem);
                return Self::default();
            }
        };
        match yaml::parse(&source, problems) {
            Ok(node) => Self::from_node(&node, &source, problems),
            Err(problem) => {
                problems.push(Problem { code: Code::Lock, ..problem });
                Self::default()
            }
        }
    }

    fn from_node(node: &Node, source: &Source, problems: &mut Problems) -> Self {
        let mut lock = Self::default();
        let mut bad = |span: &std::ops::Range<usize>, what: &str| {
            problems.push(
                Problem::error(Code::Lock, format!("lock.yaml {what}"))
                    .help("write it anew with `fullsend lock --all --update`")
                    .at(Some(source.place(span.clone()))),
            );
        };
        if matches!(node.value, Value::Null) {
            return lock;
        }
        if node.get("version").and_then(Node::scalar) != Some("1") {
            bad(&node.span, "is not of version 1, the only one that is known");
            return lock;
        }
        let Some(Value::Map(agents)) = node.get("harnesses").map(|agents| &agents.value) else { return lock };
        for (name, agent) in agents {
            let text = |key| agent.get(key).and_then(Node::scalar).unwrap_or_default().to_owned();
            let mut entry =
                Entry { source: text("source"), sha256: text("sha256"), dependencies: Vec::new() };
            if let Some(Value::List(items)) = agent.get("dependencies").map(|list| &list.value) {
                for item in items {
                    match dependency(item) {
                        Some(used) => entry.dependencies.push(used),
                        None => bad(&item.span, "has an entry without a usable `url` and `sha256`"),
                    }
                }
            }
            lock.agents.insert(name.text.clone(), entry);
        }
        lock
    }

    /// What must be behind a URL.
    pub(crate) fn pin(&self, agent: &str, url: &str) -> Option<&str> {
        let entry = self.agents.get(agent)?;
        entry.dependencies.iter().find(|used| used.url == url).map(|used| used.sha256.as_str())
    }

    /// The text of the file: the same for the same content.
    pub(crate) fn render(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut out =
            "# Written by `fullsend lock`: what must be behind each URL. Commit it; do not edit it.\n"
                .to_owned();
        out.push_str("version: 1\nharnesses:");
        if self.agents.is_empty() {
            out.push_str(" {}");
        }
        out.push('\n');
        for (name, entry) in &self.agents {
            let _ = writeln!(out, "  {}:", quoted(name));
            let _ =
                writeln!(out, "    source: {}\n    sha256: {}", quoted(&entry.source), quoted(&entry.sha256));
            out.push_str("    dependencies:\n");
            for used in &entry.dependencies {
                let form = match used.form {
                    Form::File => "file",
                    Form::Tree => "directory",
                };
                let _ = writeln!(
                    out,
                    "      - field: {}\n        url: {}",
                    quoted(&used.field),
                    quoted(&used.url)
                );
                let _ = writeln!(out, "        sha256: {}\n        type: {form}", quoted(&used.sha256));
                if !used.files.is_empty() {
                    out.push_str("        files:\n");
                }
                for (path, sha256) in &used.files {
                    let _ = writeln!(
                        out,
                        "          - path: {}\n            sha256: {}",
                        quoted(path),
                        quoted(sha256)
                    );
                }
            }
        }
        out
    }
}

fn dependency(node: &Node) -> Option<Used> {
    let text = |key| node.get(key).and_then(Node::scalar);
    let sha256 = text("sha256")?.to_ascii_lowercase();
    if !is_sha256(&sha256) {
        return None;
    }
    let files = match node.get("files").map(|files| &files.value) {
        Some(Value::List(items)) => items
            .iter()
            .filter_map(|item| {
                Some((item.get("path")?.scalar()?.to_owned(), item.get("sha256")?.scalar()?.to_owned()))
            })
            .collect(),
        _ => Vec::new(),
    };
    Some(Used {
        url: super::without_fragment(text("url")?).to_owned(),
        form: if text("type") == Some("directory") { Form::Tree } else { Form::File },
        field: text("field").unwrap_or_default().to_owned(),
        sha256,
        files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn read(text: &str) -> (Lock, Problems) {
        let mut problems = Problems::default();
        let source = Source::new(FILE, text);
        let node = yaml::parse(&source, &mut problems).unwrap();
        (Lock::from_node(&node, &source, &mut problems), problems)
    }

    #[test]
    fn what_is_written_is_read() {
        let used = |url: &str, form, files| Used {
            url: url.into(),
            form,
            field: "base \"x\"".into(),
            sha256: SHA.into(),
            files,
        };
        let entry = Entry {
            source: "harness/a.yaml".into(),
            sha256: SHA.into(),
            dependencies: vec![
                used("https://h/x", Form::File, Vec::new()),
                used("https://h/o/r/tree/c/x", Form::Tree, vec![("SKILL.md".into(), SHA.into())]),
            ],
        };
        let lock = Lock { agents: BTreeMap::from([("a".to_owned(), entry)]) };
        let (back, problems) = read(&lock.render());
        assert!(problems.0.is_empty(), "{problems:?}");
        assert_eq!(back, lock);
        assert_eq!(back.pin("a", "https://h/x"), Some(SHA));
        assert_eq!((back.pin("b", "https://h/x"), back.pin("a", "https://h/y")), (None, None));
        assert!(read(&Lock::default().render()).1.0.is_empty());
    }

    #[test]
    fn a_lock_of_the_first_implementation_is_read() {
        let text = format!(
            "version: 1\ngenerated_at: 2025-01-01T00:00:00Z\nharnesses:\n  code:\n    source: harness/code.yaml\n    \
             sha256: {SHA}\n    resolved_at: 2025-01-01T00:00:00Z\n    dependencies:\n      - field: base\n        url: \
             https://h/b.yaml\n        sha256: {SHA}\n        type: file\n        fetched_at: 2025-01-01T00:00:00Z\n"
        );
        let (lock, problems) = read(&text);
        assert!(problems.0.is_empty(), "{problems:?}");
        assert_eq!(lock.pin("code", "https://h/b.yaml"), Some(SHA));
    }

    #[test]
    fn a_lock_that_cannot_be_relied_on_is_an_error() {
        for text in [
            "version: 2\nharnesses: {}\n",
            "harnesses: {}\n",
            "version: 1\nharnesses:\n  a:\n    dependencies:\n      - {url: 'https://h/x', sha256: 12}\n",
        ] {
            let (_, problems) = read(text);
            assert_eq!(problems.first_code(), Code::Lock, "{text}");
        }
    }
}
