//! Claude Code (`@anthropic-ai/claude-code`), as of 2.1.332.

use super::{Input, Item, Launch, Runtime, Source, Transcripts, definition, quote};
use crate::agent::stream::Format;

/// Where the CLI keeps its agents, skills and transcripts in the sandbox.
const CONFIG: &str = "/sandbox/claude-config";

/// Settings besides the user's, and the hook that they name.
const SETTINGS: &str = "/sandbox/workspace/.fullsend/claude-settings.json";
const NOTICE_HOOK: &str = "/sandbox/workspace/.fullsend/notice-hook.sh";

/// After a tool has run: shows the notice that the agent's time is nearly over, once. Its words need no quoting.
const NOTICE_HOOK_TEXT: &str = r#"#!/bin/sh
notice=${FULLSEND_NOTICE_FILE:-}
[ -n "$notice" ] && [ -f "$notice" ] && mkdir "$notice.shown" 2>/dev/null && read -r text <"$notice" || exit 0
printf '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"%s"}}\n' "$text"
"#;

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
        items.push(item(SETTINGS.to_owned(), Source::Bytes(settings().into_bytes())));
        items.push(item(NOTICE_HOOK.to_owned(), Source::Bytes(NOTICE_HOOK_TEXT.into())));
        items.push(item(format!("{CONFIG}/plugins"), Source::Dir));
        items.extend(plugins(input));
        items
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("CLAUDE_CONFIG_DIR", CONFIG)]
    }

    fn command(&self, launch: &Launch<'_>) -> String {
        // One `--settings`, as only one counts: the hooks on tool calls tell of the notice as well.
        let settings = launch.settings.unwrap_or(SETTINGS);
        let mut words =
            vec!["claude", "--print", "--verbose", "--output-format", "stream-json", "--settings", settings];
        for (flag, value) in [("--model", launch.model), ("--effort", launch.effort)] {
            words.extend(value.into_iter().flat_map(|value| [flag, value]));
        }
        let dirs: Vec<_> = launch.plugins.iter().map(|name| format!("{CONFIG}/plugins/{name}")).collect();
        words.extend(dirs.iter().flat_map(|dir| ["--plugin-dir", dir]));
        // Not in its help, but there: unknown options are refused.
        let turns = launch.max_turns.map(|n| n.to_string());
        let cost = launch.max_cost_usd.map(|usd| format!("{usd}"));
        let limits = [("--max-turns", turns.as_deref()), ("--max-budget-usd", cost.as_deref())];
        for (flag, value) in limits.into_iter().chain([("--resume", launch.resume)]) {
            words.extend(value.into_iter().flat_map(|value| [flag, value]));
        }
        words.extend(["--agent", launch.agent, "--dangerously-skip-permissions"]);
        words.extend(launch.debug.iter().flat_map(|debug| ["--debug-file", debug.file]));
        let filter = launch.debug.filter(|d| d.filter != "*").map(|d| format!("--debug={}", d.filter));
        words.extend(filter.as_deref());
        words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
    }

    fn logs(&self) -> bool {
        true
    }

    fn hooks(&self) -> bool {
        true
    }

    fn resumable(&self, session: &str) -> Option<String> {
        Some(format!("ls {CONFIG}/projects/*/{session}.jsonl >/dev/null 2>&1"))
    }

    fn guidance(&self) -> Option<String> {
        Some(format!("{CONFIG}/CLAUDE.md"))
    }

    /// It reads `CLAUDE.md` alone. A repository with nothing but `AGENTS.md` gets that as the user's instructions, so
    /// that nothing in the repository changes.
    fn instructions(&self, repo: &str) -> Option<String> {
        Some(format!(
            "if [ -f {repo}/AGENTS.md ] && ! [ -e {repo}/CLAUDE.md ] && ! [ -e {repo}/.claude/CLAUDE.md ] && \
             ! [ -e {CONFIG}/CLAUDE.md ]; then ln -s {repo}/AGENTS.md {CONFIG}/CLAUDE.md; fi"
        ))
    }

    fn transcripts(&self) -> Option<Transcripts> {
        // projects/<working directory with dashes>/<session id>.jsonl
        Some(Transcripts { dir: "/sandbox/claude-config/projects", name: "*.jsonl" })
    }
}

/// The settings of a run, which are added to those of the user and of the project.
fn settings() -> String {
    let hook = serde_json::json!({"type": "command", "command": format!("sh {NOTICE_HOOK}"), "timeout": 10});
    serde_json::json!({"hooks": {"PostToolUse": [{"hooks": [hook]}]}}).to_string()
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
                SETTINGS,
                NOTICE_HOOK,
                "/sandbox/claude-config/plugins",
                "/sandbox/claude-config/plugins/gopls"
            ]
        );
        assert_eq!(Claude.agent_name(&input), "coder");
    }

    #[test]
    fn a_name_that_looks_like_a_flag_stays_one_word() {
        let launch = Launch {
            repo: "/r",
            agent: "-x; rm",
            prompt_file: "/p",
            before: "",
            resume: None,
            max_turns: None,
            max_cost_usd: None,
            model: None,
            effort: None,
            plugins: &[],
            settings: None,
            debug: None,
        };
        let words = shell_words::split(&Claude.command(&launch)).unwrap();
        assert_eq!(
            words[5..],
            ["--settings", SETTINGS, "--agent", "-x; rm", "--dangerously-skip-permissions"]
        );
    }
}
