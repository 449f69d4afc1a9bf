//! OpenCode (`opencode-ai`), as of 1.18.33.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Debug, Input, Item, Launch, Runtime, Source, Transcripts, WORKSPACE, body, list, quote, scalar};
use crate::agent::stream::Format;

/// Where the CLI finds its configuration, agents and skills in the sandbox.
const CONFIG: &str = "/sandbox/opencode-config";

/// Where it keeps its sessions, all in one file.
const DATABASE: &str = "/sandbox/.local/share/opencode/opencode.db";

/// Where its log is, and where sessions are exported to.
const LOG: &str = "/sandbox/.local/share/opencode/log";

/// How long an export may take, in seconds, and how long it may be, in bytes.
const EXPORT_SECONDS: u32 = 60;
const EXPORT_BYTES: u32 = 64 * 1024 * 1024;

/// Tools of claude, and what permission of OpenCode stands for each.
const TOOLS: [(&str, &str); 13] = [
    ("Bash", "bash"),
    ("Read", "read"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("Write", "edit"),
    ("Glob", "glob"),
    ("Grep", "grep"),
    ("Skill", "skill"),
    ("Agent", "task"),
    ("Task", "task"),
    ("TodoWrite", "todowrite"),
    ("WebFetch", "webfetch"),
    ("WebSearch", "websearch"),
];

/// The runtime `opencode`.
#[derive(Debug, Clone, Copy)]
pub struct Opencode;

impl Runtime for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["opencode"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("opencode --version")
    }

    fn format(&self) -> Format {
        Format::Opencode
    }

    fn agent_name(&self, input: &Input<'_>) -> String {
        input.agent_path.file_stem().unwrap_or("agent").to_owned()
    }

    fn items(&self, input: &Input<'_>) -> Vec<Item> {
        let agent = Item {
            dest: format!("{CONFIG}/agents/{}.md", self.agent_name(input)),
            source: Source::Bytes(definition(input.agent_text, &self.agent_name(input))),
            executable: false,
        };
        let skills = input.skills.iter().map(|skill| Item {
            dest: format!("{CONFIG}/skills/{}", skill.file_name().unwrap_or("skill")),
            source: Source::Tree(skill.clone()),
            executable: false,
        });
        std::iter::once(agent).chain(skills).collect()
    }

    /// What it would otherwise fetch, update or share by itself is switched off.
    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("OPENCODE_CONFIG_DIR", CONFIG),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_SHARE", "1"),
            ("OPENCODE_PURE", "1"),
        ]
    }

    /// It installs packages into each of its configuration directories that it may write.
    fn setup(&self) -> &'static str {
        "chmod a-w /sandbox/opencode-config\n"
    }

    fn command(&self, launch: &Launch<'_>) -> String {
        let mut words =
            vec!["opencode", "run", "--format", "json", "--thinking", "--auto", "--agent", launch.agent];
        for (flag, value) in
            [("--model", launch.model), ("--variant", launch.effort), ("--session", launch.resume)]
        {
            words.extend(value.into_iter().flat_map(|value| [flag, value]));
        }
        let command = words.into_iter().map(quote).collect::<Vec<_>>().join(" ");
        let Some(Debug { filter, file }) = launch.debug else { return command };
        // Levels are all that it can be asked for.
        let level = if filter == "*" { "DEBUG".to_owned() } else { filter.to_uppercase() };
        format!("{command} --print-logs --log-level {} 2>>{}", quote(&level), quote(file))
    }

    fn logs(&self) -> bool {
        true
    }

    /// Whether the database knows it takes a start of the CLI, which the export was just now.
    fn resumable(&self, session: &str) -> Option<String> {
        Some(format!(
            "[ -s {DATABASE} ] && {{ [ -s {LOG}/{session}.json ] || [ -s {LOG}/{session}.partial.json ]; }}"
        ))
    }

    /// Its configuration directory has instructions of its own.
    fn guidance(&self) -> Option<String> {
        Some(format!("{CONFIG}/AGENTS.md"))
    }

    fn transcripts(&self) -> Option<Transcripts> {
        Some(Transcripts { dir: LOG, name: "*" })
    }

    /// `<session>.json`; `<session>.partial.json` what there is of one that did not come to its end.
    fn export(&self, session: &str) -> Option<String> {
        // Not into a pipe, of which a program may leave its last part unwritten.
        Some(format!(
            "( set +eu; . {WORKSPACE}/.env; f={LOG}/{session}; timeout -k 5 {EXPORT_SECONDS} opencode export {session} >\"$f.new\"; x=$?; \
             [ -s \"$f.new\" ] || {{ rm -f \"$f.new\"; exit 0; }}; \
             if [ $x -ne 0 ] || [ \"$(wc -c <\"$f.new\")\" -gt {EXPORT_BYTES} ]; then \
             head -c {EXPORT_BYTES} \"$f.new\" >\"$f.partial.json\"; rm -f \"$f.new\"; else \
             mv -f \"$f.new\" \"$f.json\" && rm -f \"$f.partial.json\"; fi ) </dev/null >/dev/null 2>&1"
        ))
    }

    fn model(&self, input: &Input<'_>) -> Option<String> {
        scalar(input.agent_text, "model").filter(|model| model.contains('/'))
    }

    fn cannot(&self, input: &Input<'_>, _effort: Option<&str>) -> Vec<String> {
        let mut out = Vec::new();
        let (_, unknown) = permission(input.agent_text);
        if !unknown.is_empty() {
            out.push(format!(
                "these of `tools` and `disallowedTools` of the agent, which opencode does not have: {}",
                unknown.join(", ")
            ));
        }
        if !input.plugins.is_empty() {
            out.push("`plugins`: they are claude's, and are not put in".to_owned());
        }
        out
    }
}

/// The definition in OpenCode's own form. Front matter is YAML, of which JSON is a part (YAML 1.2, section 1.3).
fn definition(text: &[u8], name: &str) -> Vec<u8> {
    let description = scalar(text, "description").unwrap_or_else(|| format!("The agent {name}"));
    let mut front = format!("---\ndescription: {}\nmode: primary\n", Value::from(description));
    let (permission, _) = permission(text);
    if !permission.is_empty() {
        let _ = writeln!(front, "permission: {}", Value::from(permission));
    }
    front.push_str("---\n");
    [front.as_bytes(), body(text)].concat()
}

/// The permissions that `tools` and `disallowedTools` of a definition stand for, and the entries that stand for none.
/// The last rule that fits counts.
fn permission(text: &[u8]) -> (Map<String, Value>, Vec<String>) {
    let (tools, disallowed) = (list(text, "tools"), list(text, "disallowedTools"));
    let mut rules: Map<String, Value> = Map::new();
    let mut unknown = Vec::new();
    if !tools.is_empty() && !tools.iter().any(|t| t == "*") {
        for (_, permission) in TOOLS {
            rules.insert(permission.into(), json!({"*": "deny"}));
        }
    }
    let listed = tools.iter().map(|t| (t, "allow")).chain(disallowed.iter().map(|t| (t, "deny")));
    for (entry, action) in listed.filter(|(t, _)| *t != "*") {
        let (name, pattern) = match entry.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').unwrap_or(rest)),
            None => (entry.as_str(), "*"),
        };
        let Some((_, permission)) = TOOLS.iter().find(|(tool, _)| *tool == name) else {
            unknown.push(entry.clone());
            continue;
        };
        let rule = rules.entry(*permission).or_insert_with(|| json!({}));
        // `git:*` is claude's for `git` and everything that begins with it.
        match pattern.strip_suffix(":*") {
            Some(start) => {
                rule[start] = action.into();
                rule[format!("{start} *")] = action.into();
            }
            None => rule[pattern] = action.into(),
        }
    }
    // Some permissions know no patterns, and all know the short form.
    for rule in rules.values_mut() {
        if let Some(only) = rule.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("*")) {
            *rule = only.clone();
        }
    }
    (rules, unknown)
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn tools_become_permissions() {
        let text =
            b"---\nname: n\ntools: Read, Bash(git:*), mcp__x\ndisallowedTools: Bash(git push:*)\n---\nBody\n";
        let (rules, unknown) = permission(text);
        assert_eq!(rules["read"], "allow");
        assert_eq!(rules["edit"], "deny");
        let bash =
            json!({"*": "deny", "git": "allow", "git *": "allow", "git push": "deny", "git push *": "deny"});
        assert_eq!(rules["bash"], bash);
        assert_eq!(unknown, ["mcp__x"]);
        assert!(permission(b"---\nname: n\n---\n").0.is_empty());
    }

    #[test]
    fn the_definition_is_a_primary_agent_under_the_name_of_its_file() {
        let input = Input {
            agent_path: Utf8Path::new("/h/agents/code.md"),
            agent_text: b"---\nname: coder\ndescription: a: b\nmodel: anthropic/x\ndisallowedTools: Bash\n---\nDo it.\n",
            skills: &[],
            plugins: &[],
        };
        let items = Opencode.items(&input);
        assert_eq!(items[0].dest, "/sandbox/opencode-config/agents/code.md");
        let Source::Bytes(text) = &items[0].source else { panic!() };
        assert_eq!(
            String::from_utf8_lossy(text),
            "---\ndescription: \"a: b\"\nmode: primary\npermission: {\"bash\":\"deny\"}\n---\nDo it.\n"
        );
        assert_eq!(
            (Opencode.agent_name(&input).as_str(), Opencode.model(&input).as_deref()),
            ("code", Some("anthropic/x"))
        );
    }
}
