//! A file of the suite: its head, and what it does.

use std::path::{Path, PathBuf};

/// The directories of the suite.
pub(super) const CLASSES: [&str; 12] = [
    "link",
    "path",
    "git",
    "name",
    "size",
    "type",
    "stream",
    "log",
    "redaction",
    "upload",
    "gateway",
    "sender",
];

/// What a vector's run must come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// The run succeeds: what is hostile is left behind, the rest arrives and can be used.
    Safe,
    /// The import is refused by a security check and the host is as it was.
    Refused,
    /// As refused, because a secret was found.
    Secret,
    /// The agent counts as failed.
    Failed,
    /// The run ends before the agent starts.
    Rejected,
}

/// Where the body acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// A script that is the agent.
    Agent(String),
    /// Bytes that the agent prints.
    Printed(Vec<u8>),
    /// A script that makes the checkout hostile before the run.
    Checkout(String),
    /// The text that the gateway gives as ssh configuration.
    SshConfig(Vec<u8>),
}

/// One vector.
#[derive(Debug, Clone)]
pub(super) struct Vector {
    /// `class/file`.
    pub name: String,
    pub class: String,
    pub title: String,
    pub expected: Expected,
    pub body: Body,
    /// Paths that the run must not bring to the checkout.
    pub gone: Vec<String>,
    /// Paths that it must bring.
    pub kept: Vec<String>,
    /// Text that must stand in the log.
    pub says: Vec<String>,
    /// Text that no file of the repository in the sandbox may hold.
    pub absent: Vec<String>,
    /// Paths of the repository that must not exist in the sandbox.
    pub missing: Vec<String>,
    /// Why it runs only when `FULLSEND_TEST_SLOW` is set.
    pub slow: Option<String>,
    /// `NAME=DURATION` for `--deadline`.
    pub deadlines: Vec<String>,
}

/// `tests/hostile`.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

/// The vectors of a class, sorted by name.
pub(super) fn class(class: &str) -> Vec<Vector> {
    let mut files: Vec<_> =
        std::fs::read_dir(root().join(class)).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| read(class, file)).collect()
}

fn read(class: &str, file: &Path) -> Vector {
    let name = format!("{class}/{}", file.file_name().unwrap().to_str().unwrap());
    let bytes = std::fs::read(file).unwrap();
    let mut vector = Vector {
        name: name.clone(),
        class: String::new(),
        title: String::new(),
        expected: Expected::Safe,
        body: Body::Agent(String::new()),
        gone: vec![],
        kept: vec![],
        says: vec![],
        absent: vec![],
        missing: vec![],
        slow: None,
        deadlines: vec![],
    };
    let (mut runs, mut expects) = ("sandbox".to_owned(), None);
    let mut at = 0;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let Some(text) = std::str::from_utf8(line).ok().and_then(|l| l.strip_prefix('#')) else { break };
        at += line.len();
        let Some((key, value)) = text.strip_prefix(' ').and_then(|t| t.trim_end().split_once(": ")) else {
            assert!(text.starts_with('!') || text.trim().is_empty(), "{name}: what is `{text}`?");
            continue;
        };
        let value = value.to_owned();
        match key {
            "class" => vector.class = value,
            "title" => vector.title = value,
            "expects" => expects = Some(expected(&name, &value)),
            "runs" => runs = value,
            "gone" => vector.gone.push(value),
            "kept" => vector.kept.push(value),
            "says" => vector.says.push(value),
            "absent" => vector.absent.push(value),
            "missing" => vector.missing.push(value),
            "slow" => vector.slow = Some(value),
            "deadline" => vector.deadlines.push(value),
            _ => panic!("{name}: what is `{key}`?"),
        }
    }
    let after = &bytes[at..];
    let rest = after.strip_prefix(b"---\n").unwrap_or(after);
    let text = || String::from_utf8(rest.to_vec()).unwrap();
    vector.body = match runs.as_str() {
        "sandbox" => Body::Agent(text()),
        "printed" => Body::Printed(rest.to_vec()),
        "checkout" => Body::Checkout(text()),
        "ssh-config" => Body::SshConfig(rest.to_vec()),
        _ => panic!("{name}: runs where?"),
    };
    vector.expected = expects.unwrap_or_else(|| panic!("{name}: expects what?"));
    assert_eq!(vector.class, class, "{name}: its class is that of its directory");
    assert!(!vector.title.is_empty() && !rest.is_empty(), "{name}: has no title or does nothing");
    vector
}

fn expected(name: &str, word: &str) -> Expected {
    match word {
        "safe" => Expected::Safe,
        "refused" => Expected::Refused,
        "secret" => Expected::Secret,
        "failed" => Expected::Failed,
        "rejected" => Expected::Rejected,
        _ => panic!("{name}: expects `{word}`?"),
    }
}
