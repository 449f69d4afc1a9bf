//! The agent file is a program.

use super::{Input, Item, Launch, Runtime, Source, Transcripts, WORKSPACE, quote};
use crate::agent::stream::Format;

/// The runtime `script`.
#[derive(Debug, Clone, Copy)]
pub struct Script;

impl Runtime for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    fn format(&self) -> Format {
        Format::Auto
    }

    fn agent_name(&self, input: &Input<'_>) -> String {
        input.agent_path.file_name().unwrap_or("agent").to_owned()
    }

    /// Skills are put where a script can read them.
    fn items(&self, input: &Input<'_>) -> Vec<Item> {
        let agent = Item {
            dest: format!("{WORKSPACE}/agent/{}", self.agent_name(input)),
            source: Source::Bytes(input.agent_text.to_vec()),
            executable: true,
        };
        let skills = input.skills.iter().map(|skill| Item {
            dest: format!("{WORKSPACE}/skills/{}", skill.file_name().unwrap_or("skill")),
            source: Source::Tree(skill.clone()),
            executable: false,
        });
        std::iter::once(agent).chain(skills).chain(super::claude::plugins(input)).collect()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn command(&self, launch: &Launch<'_>) -> String {
        quote(&format!("{WORKSPACE}/agent/{}", launch.agent)).into_owned()
    }

    /// It finds the prompt by `FULLSEND_PROMPT_FILE`.
    fn reads_prompt(&self) -> bool {
        false
    }

    fn transcripts(&self) -> Option<Transcripts> {
        None
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn the_program_is_put_in_executable_and_byte_for_byte() {
        let text = b"#!/bin/sh\necho \xff\n";
        let input = Input {
            agent_path: Utf8Path::new("/h/agents/hi there.sh"),
            agent_text: text,
            skills: &[],
            plugins: &[],
        };
        let items = Script.items(&input);
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].dest, "/sandbox/workspace/agent/hi there.sh");
        assert_eq!((&items[0].source, items[0].executable), (&Source::Bytes(text.to_vec()), true));
    }
}
