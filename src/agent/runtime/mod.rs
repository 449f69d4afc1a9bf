//! Runtimes: the agent programs that a harness can use, behind one small trait.

mod claude;
mod definition;
mod script;

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::stream::Format;

pub use claude::Claude;
pub use definition::{Definition, definition};
pub use script::Script;

/// The workspace in the sandbox. Agents and skills in the field depend on these places.
pub const WORKSPACE: &str = "/sandbox/workspace";

/// The prompt, unless the harness has another; the task itself is in the agent's definition.
pub const PROMPT: &str = "Run the agent task";

/// Which runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Claude Code.
    Claude,
    /// The agent file is a program.
    Script,
}

impl Kind {
    /// Every runtime.
    pub const ALL: [Kind; 2] = [Kind::Claude, Kind::Script];

    /// The name in a harness.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Claude => "claude",
            Kind::Script => "script",
        }
    }

    /// The runtime of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }

    /// The runtime that an agent file is for, by its name and its first bytes: a program starts with `#!` or
    /// an ELF header, or has the ending of a script language; everything else is a definition for claude.
    pub fn of_agent_file(path: &Utf8Path, head: &[u8]) -> Self {
        let by_name = matches!(path.extension(), Some("sh" | "bash" | "py" | "pl" | "rb" | "js" | "mjs"));
        let is_program = head.starts_with(b"#!") || head.starts_with(b"\x7fELF");
        if path.extension() != Some("md") && (by_name || is_program) { Kind::Script } else { Kind::Claude }
    }

    /// The runtime itself.
    pub fn runtime(self) -> &'static dyn Runtime {
        match self {
            Kind::Claude => &Claude,
            Kind::Script => &Script,
        }
    }
}

/// What a runtime needs to know of a harness.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The agent file on the host.
    pub agent_path: &'a Utf8Path,
    /// Its bytes.
    pub agent_text: &'a [u8],
    /// Skill directories on the host; their names are unique.
    pub skills: &'a [Utf8PathBuf],
    /// Plugin directories on the host; their names are unique.
    pub plugins: &'a [Utf8PathBuf],
}

/// What is put at one place of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A host directory with everything in it.
    Tree(Utf8PathBuf),
    /// An empty directory.
    Dir,
}

/// One thing that is put into the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its absolute path in the sandbox.
    pub dest: String,
    /// What it is.
    pub source: Source,
    /// Whether it is made executable.
    pub executable: bool,
}

/// One start of the agent.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The repository in the sandbox, absolute.
    pub repo: &'a str,
    /// The name of the agent: [`Runtime::agent_name`].
    pub agent: &'a str,
    /// The prompt; see [`PROMPT`].
    pub prompt: &'a str,
    /// The model, when the harness or the user chose one.
    pub model: Option<&'a str>,
    /// The effort, when the harness chose one.
    pub effort: Option<&'a str>,
    /// The names of the plugins.
    pub plugins: &'a [&'a str],
}

/// Where a runtime leaves its transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transcripts {
    /// A directory in the sandbox, absolute.
    pub dir: &'static str,
    /// The files under it, at any depth, by this file name pattern.
    pub name: &'static str,
}

/// An agent program. Implementations hold no state and do nothing but describe.
pub trait Runtime: std::fmt::Debug + Sync {
    /// The name in a harness.
    fn name(&self) -> &'static str;

    /// Programs of which the sandbox must have the first that is found. Empty: nothing beyond what is put in.
    fn programs(&self) -> &'static [&'static str];

    /// What it writes to standard output.
    fn format(&self) -> Format;

    /// The name by which the agent is started.
    fn agent_name(&self, input: &Input<'_>) -> String;

    /// What is put into the sandbox.
    fn items(&self, input: &Input<'_>) -> Vec<Item>;

    /// Variables for `.env`: names and values.
    fn env(&self) -> &'static [(&'static str, &'static str)];

    /// The command, as shell words ready for a shell.
    fn command(&self, launch: &Launch<'_>) -> String;

    /// Where its transcripts are.
    fn transcripts(&self) -> Option<Transcripts>;
}

/// The text for bash that runs the agent in the repository with the environment of `.env`. The shell becomes
/// the agent, so that a signal for the one reaches the other.
pub fn script(runtime: &dyn Runtime, launch: &Launch<'_>) -> String {
    format!(
        "cd {repo} || exit 126\n. {env}\nexec {command}\n",
        repo = quote(launch.repo),
        env = quote(&format!("{WORKSPACE}/.env")),
        command = runtime.command(launch),
    )
}

/// A text as one shell word, for any POSIX shell.
pub fn quote(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_agent_file_names_its_runtime() {
        let cases = [
            ("a/code.md", &b"---\nname: code\n"[..], Kind::Claude),
            ("a/code.md", b"#!/bin/sh\n", Kind::Claude),
            ("a/code", b"#!/bin/sh\n", Kind::Script),
            ("a/code.sh", b"echo hi\n", Kind::Script),
            ("a/code", b"\x7fELF\x02", Kind::Script),
            ("a/code", b"You are an agent.\n", Kind::Claude),
        ];
        for (path, head, expected) in cases {
            assert_eq!(Kind::of_agent_file(Utf8Path::new(path), head), expected, "{path}");
        }
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert_eq!(kind.runtime().name(), kind.name());
        }
    }

    #[test]
    fn the_command_line_of_each_runtime() {
        let launch = Launch {
            repo: "/sandbox/workspace/it's a $(repo)",
            agent: "greeter",
            prompt: PROMPT,
            model: Some("opus"),
            effort: Some("high"),
            plugins: &["gopls", "other"],
        };
        assert_eq!(
            script(&Claude, &launch),
            "cd '/sandbox/workspace/it'\\''s a $(repo)' || exit 126\n\
             . /sandbox/workspace/.env\n\
             exec claude --print --verbose --output-format stream-json --model opus --effort high \
             --plugin-dir /sandbox/claude-config/plugins/gopls --plugin-dir /sandbox/claude-config/plugins/other \
             --agent greeter --dangerously-skip-permissions 'Run the agent task'\n"
        );
        let launch = Launch { agent: "my agent.sh", model: None, effort: None, ..launch };
        assert_eq!(Script.command(&launch), "'/sandbox/workspace/agent/my agent.sh'");
    }

    proptest! {
        #[test]
        fn quoting_gives_the_word_back(text in "(?s)[^\u{0}]{0,40}") {
            let words = shell_words::split(&format!("x {}", quote(&text))).unwrap();
            prop_assert_eq!(words, ["x".to_owned(), text]);
        }
    }
}
