//! Codex (`@openai/codex`), as of 0.171.0.

use super::{Input, Item, Launch, Runtime, Source, Transcripts, body, list, quote, scalar};
use crate::agent::event::Usage;
use crate::agent::stream::Format;
use crate::agent::{codex_stream, runtime::Debug};

/// Where the CLI keeps its configuration, skills and sessions in the sandbox.
const CONFIG: &str = "/sandbox/codex-config";

/// The profile that lies over the user's `config.toml`.
const PROFILE: &str = "fullsend";

/// Models that only claude knows by these names; a definition that is written for it may name one.
const OF_CLAUDE: [&str; 4] = ["inherit", "sonnet", "opus", "haiku"];

/// The runtime `codex`.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Runtime for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["codex"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("codex --version")
    }

    fn format(&self) -> Format {
        Format::Codex
    }

    fn agent_name(&self, input: &Input<'_>) -> String {
        input.agent_path.file_stem().unwrap_or("agent").to_owned()
    }

    fn items(&self, input: &Input<'_>) -> Vec<Item> {
        let profile = Item {
            dest: format!("{CONFIG}/{PROFILE}.config.toml"),
            source: Source::Bytes(profile(input.agent_text).into_bytes()),
            executable: false,
        };
        let skills = input.skills.iter().map(|skill| Item {
            dest: format!("{CONFIG}/skills/{}", skill.file_name().unwrap_or("skill")),
            source: Source::Tree(skill.clone()),
            executable: false,
        });
        std::iter::once(profile).chain(skills).collect()
    }

    fn guidance(&self) -> Option<String> {
        Some(format!("{CONFIG}/AGENTS.md"))
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("CODEX_HOME", CONFIG)]
    }

    /// `codex exec` takes a key from its own variable only.
    fn setup(&self) -> &'static str {
        "[ -n \"${CODEX_API_KEY:-}\" ] || [ -z \"${OPENAI_API_KEY:-}\" ] || export CODEX_API_KEY=\"$OPENAI_API_KEY\"\n"
    }

    fn logs(&self) -> bool {
        true
    }

    fn command(&self, launch: &Launch<'_>) -> String {
        // The sandbox is OpenShell's. The CLI's own one needs namespaces or Landlock, which a sandbox seldom grants,
        // and would keep the agent from the output directory.
        let mut words = vec![
            "codex".into(),
            "exec".into(),
            "--json".into(),
            "--skip-git-repo-check".into(),
            "--dangerously-bypass-approvals-and-sandbox".into(),
            "--profile".into(),
            PROFILE.into(),
        ];
        if let Some(model) = launch.model {
            words.extend(["--model".into(), quote(model)]);
        }
        let effort = launch.effort.map(|effort| format!("model_reasoning_effort=\"{}\"", level(effort)));
        if let Some(effort) = &effort {
            words.extend(["--config".into(), quote(effort)]);
        }
        // The shell knows the variable, not the plan.
        words.push("${OPENAI_BASE_URL:+--config \"openai_base_url=\\\"$OPENAI_BASE_URL\\\"\"}".into());
        if let Some(session) = launch.resume {
            words.extend(["resume".into(), quote(session)]);
        }
        // The prompt is its standard input.
        words.push("-".into());
        let command = words.join(" ");
        let Some(Debug { filter, file }) = launch.debug else { return command };
        // It logs to its standard error alone.
        let filter = if filter == "*" { "debug" } else { filter };
        format!("env RUST_LOG={} {command} 2>>{}", quote(filter), quote(file))
    }

    fn resumable(&self, session: &str) -> Option<String> {
        Some(format!("find {CONFIG}/sessions -type f -name '*-{session}.jsonl' 2>/dev/null | grep -q ."))
    }

    fn transcripts(&self) -> Option<Transcripts> {
        // sessions/<year>/<month>/<day>/rollout-<time>-<thread id>.jsonl
        Some(Transcripts { dir: "/sandbox/codex-config/sessions", name: "*.jsonl" })
    }

    fn tokens(&self, transcript: &[u8]) -> Option<Usage> {
        codex_stream::tokens(transcript)
    }

    fn model(&self, input: &Input<'_>) -> Option<String> {
        scalar(input.agent_text, "model").filter(|model| !OF_CLAUDE.contains(&model.as_str()))
    }

    fn cannot(&self, input: &Input<'_>, effort: Option<&str>) -> Vec<String> {
        let mut out = Vec::new();
        if !list(input.agent_text, "tools").is_empty()
            || !list(input.agent_text, "disallowedTools").is_empty()
        {
            out.push(
                "`tools` and `disallowedTools` of the agent: codex offers every tool of its own".to_owned(),
            );
        }
        if !input.plugins.is_empty() {
            out.push("`plugins`: they are claude's, and are not put in".to_owned());
        }
        if effort == Some("max") {
            out.push("`effort: max`: codex knows `xhigh` as its highest".to_owned());
        }
        out
    }
}

/// The highest effort of the CLI is `xhigh`.
fn level(effort: &str) -> &str {
    if effort == "max" { "xhigh" } else { effort }
}

/// The configuration of a run. The definition's text becomes instructions of the developer, beside those of Codex.
fn profile(agent: &[u8]) -> String {
    let text = String::from_utf8_lossy(body(agent));
    // Without the feature a CLI that cannot reach the API gives up, instead of waiting for the network until it is ended.
    format!(
        "check_for_update_on_startup = false\n\
         features.unbounded_connection_retries = false\n\
         project_doc_fallback_filenames = [\"CLAUDE.md\"]\n\
         developer_instructions = {}\n",
        toml(text.trim())
    )
}

/// A text as a basic string of TOML: JSON's form, with DEL escaped as well (TOML 1.0, "String").
fn toml(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use camino::{Utf8Path, Utf8PathBuf};

    use super::*;

    #[test]
    fn the_definition_becomes_a_profile_and_skills_go_beside_it() {
        let skills = [Utf8PathBuf::from("/h/skills/greet")];
        let input = Input {
            agent_path: Utf8Path::new("/h/agents/code.md"),
            agent_text: b"---\nname: coder\nmodel: gpt-5\ntools: Bash\n---\nSay \"hi\"\\.\n\x7f",
            skills: &skills,
            plugins: &[],
        };
        let items = Codex.items(&input);
        let dests: Vec<_> = items.iter().map(|i| i.dest.as_str()).collect();
        assert_eq!(
            dests,
            ["/sandbox/codex-config/fullsend.config.toml", "/sandbox/codex-config/skills/greet"]
        );
        let Source::Bytes(text) = &items[0].source else { panic!() };
        let text = String::from_utf8(text.clone()).unwrap();
        assert!(text.ends_with("developer_instructions = \"Say \\\"hi\\\"\\\\.\\n\\u007f\"\n"), "{text}");
        assert_eq!(Codex.model(&input).as_deref(), Some("gpt-5"));
        assert_eq!(Codex.cannot(&input, Some("max")).len(), 2);
        let of_claude = Input { agent_text: b"---\nmodel: sonnet\n---\n", ..input };
        assert_eq!(Codex.model(&of_claude), None);
        assert!(Codex.cannot(&of_claude, Some("high")).is_empty());
    }
}
