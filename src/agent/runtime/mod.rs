//! Runtimes: the agent programs that a harness can use, behind one small trait.

mod claude;
mod codex;
mod definition;
mod opencode;
mod script;

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::event::Usage;
use super::stream::Format;

pub use claude::Claude;
pub use codex::Codex;
pub use definition::{Definition, body, definition, entries, list, scalar};
pub use opencode::Opencode;
pub use script::Script;

/// The workspace in the sandbox. Agents and skills in the field depend on these places.
pub const WORKSPACE: &str = "/sandbox/workspace";

/// The prompt, unless the harness has another; the task itself is in the agent's definition.
pub const PROMPT: &str = "Run the agent task";

/// Which runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    Opencode,
    /// The agent file is a program.
    Script,
}

impl Kind {
    /// Every runtime.
    pub const ALL: [Kind; 4] = [Kind::Claude, Kind::Codex, Kind::Opencode, Kind::Script];

    /// The name in a harness.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Claude => "claude",
            Kind::Codex => "codex",
            Kind::Opencode => "opencode",
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
            Kind::Codex => &Codex,
            Kind::Opencode => &Opencode,
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
    /// The file in the sandbox that holds the prompt; see [`PROMPT`]. It is the program's standard input where
    /// [`Runtime::reads_prompt`] says so: a prompt may be too long for a command line.
    pub prompt_file: &'a str,
    /// Shell text that is run before the program; see [`script`].
    pub before: &'a str,
    /// The session to take up again; for a runtime that says when it is [`Runtime::resumable`].
    pub resume: Option<&'a str>,
    /// How many turns are left, for a runtime that has a limit of its own.
    pub max_turns: Option<u64>,
    /// How many US dollars are left, likewise.
    pub max_cost_usd: Option<f64>,
    /// The model, when the harness or the user chose one.
    pub model: Option<&'a str>,
    /// The effort, when the harness chose one.
    pub effort: Option<&'a str>,
    /// The names of the plugins.
    pub plugins: &'a [&'a str],
    /// Settings that call the hooks; for a runtime that has [`Runtime::hooks`].
    pub settings: Option<&'a str>,
    /// What the program logs of itself, when that was asked for; for a runtime that [`Runtime::logs`].
    pub debug: Option<Debug<'a>>,
}

/// The log of an agent program about itself.
#[derive(Debug, Clone, Copy)]
pub struct Debug<'a> {
    /// What of it, in the words of the program; `*` is everything.
    pub filter: &'a str,
    /// The file in the sandbox that it is written to.
    pub file: &'a str,
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

    /// The command that tells its version; none where its stream does.
    fn version(&self) -> Option<&'static str> {
        None
    }

    /// What it writes to standard output.
    fn format(&self) -> Format;

    /// The name by which the agent is started.
    fn agent_name(&self, input: &Input<'_>) -> String;

    /// What is put into the sandbox.
    fn items(&self, input: &Input<'_>) -> Vec<Item>;

    /// Variables for `.env`: names and values.
    fn env(&self) -> &'static [(&'static str, &'static str)];

    /// Lines for the shell before the command.
    fn setup(&self) -> &'static str {
        ""
    }

    /// The command, as shell words ready for a shell.
    fn command(&self, launch: &Launch<'_>) -> String;

    /// Whether it reads the prompt from its standard input.
    fn reads_prompt(&self) -> bool {
        true
    }

    /// The shell command that succeeds while a session of an earlier start can be taken up again by
    /// [`Launch::resume`]: then the agent knows what it did, and why. None where its program cannot. The name of the
    /// session is the one that its stream gave; it is a single word of letters, digits, `-` and `_`.
    fn resumable(&self, _session: &str) -> Option<String> {
        None
    }

    /// Whether its program can write a log of itself: see [`Launch::debug`].
    fn logs(&self) -> bool {
        false
    }

    /// What a session has used in all, by its transcript; for a runtime whose stream does not tell it of a start that
    /// fails.
    fn tokens(&self, _transcript: &[u8]) -> Option<Usage> {
        None
    }

    /// Whether it calls hooks on its tool calls, in the protocol of Claude Code.
    fn hooks(&self) -> bool {
        false
    }

    /// Where its transcripts are.
    fn transcripts(&self) -> Option<Transcripts>;

    /// The model that the definition names, where the command line has to say it.
    fn model(&self, _input: &Input<'_>) -> Option<String> {
        None
    }

    /// What of the harness it cannot honour, each in a few words for the user.
    fn cannot(&self, _input: &Input<'_>, _effort: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    /// Where its CLI looks for instructions that hold for every project, in the sandbox.
    fn guidance(&self) -> Option<String> {
        None
    }

    /// A command for the shell that leaves the session with the transcripts, for a CLI that keeps it elsewhere. It runs
    /// after the agent has ended, in bounded time; where it fails the rest is collected all the same. For the name of
    /// the session see [`Runtime::resumable`].
    fn export(&self, _session: &str) -> Option<String> {
        None
    }

    /// Lines for the shell that make the project's instructions in `repo` (a quoted path) known where the CLI does
    /// not find them by itself. They run once, before the agent.
    fn instructions(&self, _repo: &str) -> Option<String> {
        None
    }
}

/// The text for bash that runs the agent in the repository with the environment of `.env`. The shell becomes
/// the agent, so that a signal for the one reaches the other.
pub fn script(runtime: &dyn Runtime, launch: &Launch<'_>) -> String {
    let input =
        if runtime.reads_prompt() { format!(" <{}", quote(launch.prompt_file)) } else { String::new() };
    format!(
        "cd {repo} || exit 126\n. {env}\n{before}{setup}exec {command}{input}\n",
        repo = quote(launch.repo),
        before = launch.before,
        env = quote(&format!("{WORKSPACE}/.env")),
        setup = runtime.setup(),
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
            prompt_file: "/sandbox/p",
            before: "",
            resume: Some("5e55"),
            max_turns: Some(7),
            max_cost_usd: Some(1.25),
            model: Some("opus"),
            effort: Some("high"),
            plugins: &["gopls", "other"],
            settings: None,
            debug: None,
        };
        assert_eq!(
            script(&Claude, &launch),
            "cd '/sandbox/workspace/it'\\''s a $(repo)' || exit 126\n\
             . /sandbox/workspace/.env\n\
             exec claude --print --verbose --output-format stream-json --settings \
             /sandbox/workspace/.fullsend/claude-settings.json --model opus --effort high \
             --plugin-dir /sandbox/claude-config/plugins/gopls --plugin-dir /sandbox/claude-config/plugins/other \
             --max-turns 7 --max-budget-usd 1.25 --resume 5e55 --agent greeter --dangerously-skip-permissions </sandbox/p\n"
        );
        let launch = Launch { resume: Some("s-1"), ..launch };
        let base_url = "${OPENAI_BASE_URL:+--config \"openai_base_url=\\\"$OPENAI_BASE_URL\\\"\"}";
        assert_eq!(
            Codex.command(&launch),
            format!(
                "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --profile fullsend \
                 --model opus --config 'model_reasoning_effort=\"high\"' {base_url} resume s-1 -"
            )
        );
        let debug = Some(Debug { filter: "*", file: "/sandbox/d log" });
        let logged = Codex.command(&Launch { debug, ..launch });
        assert!(logged.starts_with("env RUST_LOG=debug codex exec --json "), "{logged}");
        assert!(logged.ends_with(" resume s-1 - 2>>'/sandbox/d log'"), "{logged}");
        let debug = Some(Debug { filter: "info", file: "/sandbox/d log" });
        let logged = Opencode.command(&Launch { debug, ..launch });
        assert!(
            logged.ends_with(" --session s-1 --print-logs --log-level INFO 2>>'/sandbox/d log'"),
            "{logged}"
        );
        let claude = |filter| {
            let debug = Some(Debug { filter, file: "/sandbox/d" });
            shell_words::split(&Claude.command(&Launch { debug, ..launch })).unwrap()
        };
        assert!(claude("*").ends_with(&["--debug-file".into(), "/sandbox/d".into()]));
        assert_eq!(claude("api,!mcp").last().unwrap(), "--debug=api,!mcp");
        assert_eq!(
            Opencode.command(&launch),
            "opencode run --format json --thinking --auto --agent greeter --model opus --variant high --session s-1"
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
