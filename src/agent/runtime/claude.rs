//! Claude Code (`@anthropic-ai/claude-code`), as of 2.1.332.

use super::{Input, Item, Launch, Runtime, Source, Transcripts, definition, quote};
use crate::agent::stream::Format;

/// Where the CLI keeps its agents, skills and transcripts in the sandbox.
const CONFIG: &str = "/sandbox/claude-config";

/// The runtime `claude`.
#[derive(Debug, Clone, Copy)]
pub struct Claude;

impl Runtime for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["claude"]
    }

    fn format(&self) -> Format {
        Format::StreamJson
    }

    fn agent_name(&self, input: &Input<'_>) -> String {
        definition(input.agent_text, input.agent_path.file_stem().unwrap_or("agent")).name
    }

    fn items(&self, input: &Input<'_>) -> Vec<Item> {
        let stem = input.agent_path.file_stem().unwrap_or("agent");
        let item = |dest: String, source| Item { dest, source, executable: false };
        let text = definition(input.agent_text, stem).text;
        let mut items = vec![item(format!("{CONFIG}/agents/{stem}.md"), Source::Bytes(text))];
        for skill in input.skills {
            let name = skill.file_name().unwrap_or("skill");
            items.push(item(format!("{CONFIG}/skills/{name}"), Source::Tree(skill.clone())));
        }
        items.push(item(format!("{CONFIG}/plugins"), Source::Dir));
        items.extend(plugins(input));
        items
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("CLAUDE_CONFIG_DIR", CONFIG)]
    }

    fn command(&self, launch: &Launch<'_>) -> String {
        let mut words = vec!["claude", "--print", "--verbose", "--output-format", "stream-json"];
        for (flag, value) in [("--model", launch.model), ("--effort", launch.effort)] {
            words.extend(value.into_iter().flat_map(|value| [flag, value]));
        }
        let dirs: Vec<_> = launch.plugins.iter().map(|name| format!("{CONFIG}/plugins/{name}")).collect();
        words.extend(dirs.iter().flat_map(|dir| ["--plugin-dir", dir]));
        words.extend(["--agent", launch.agent, "--dangerously-skip-permissions", launch.prompt]);
        words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
    }

    fn transcripts(&self) -> Option<Transcripts> {
        // projects/<working directory with dashes>/<session id>.jsonl
        Some(Transcripts { dir: "/sandbox/claude-config/projects", name: "*.jsonl" })
    }
}

/// Plugins lie where claude looks for them, also when a script starts it.
pub(super) fn plugins(input: &Input<'_>) -> Vec<Item> {
    let item = |dir: &camino::Utf8PathBuf| Item {
        dest: format!("{CONFIG}/plugins/{}", dir.file_name().unwrap_or("plugin")),
        source: Source::Tree(dir.clone()),
        executable: false,
    };
    input.plugins.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;

    #[test]
    fn definition_and_skills_go_to_the_config_dir() {
        let input = Input {
            agent_path: Utf8Path::new("/h/agents/code.md"),
            agent_text: b"---\nname: coder\ndescription: d\n---\nx",
            skills: &[Utf8PathBuf::from("/h/skills/greet")],
            plugins: &[Utf8PathBuf::from("/h/plugins/gopls")],
        };
        let items = Claude.items(&input);
        let dests: Vec<_> = items.iter().map(|i| i.dest.as_str()).collect();
        assert_eq!(
            dests,
            [
                "/sandbox/claude-config/agents/code.md",
                "/sandbox/claude-config/skills/greet",
                "/sandbox/claude-config/plugins",
                "/sandbox/claude-config/plugins/gopls"
            ]
        );
        assert_eq!(Claude.agent_name(&input), "coder");
    }

    #[test]
    fn a_prompt_or_name_that_looks_like_a_flag_stays_one_word() {
        let launch = Launch {
            repo: "/r",
            agent: "-x; rm",
            prompt: "it's\n`me`",
            model: None,
            effort: None,
            plugins: &[],
        };
        let words = shell_words::split(&Claude.command(&launch)).unwrap();
        assert_eq!(words[5..], ["--agent", "-x; rm", "--dangerously-skip-permissions", "it's\n`me`"]);
    }
}
