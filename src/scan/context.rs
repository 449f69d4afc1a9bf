//! Files of a repository that an agent reads by itself, as instructions or as configuration.

use camino::Utf8Path;

/// Names, in lower case, wherever they are.
const NAMES: &[&str] = &[
    ".aider.conf.yml",
    ".claude.md",
    ".clinerules",
    ".cursorignore",
    ".cursorrules",
    ".gemini.md",
    ".hermes.md",
    ".lsp.json",
    ".mcp.json",
    ".windsurfrules",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "copilot-instructions.md",
    "gemini.md",
    "hermes.md",
    "opencode.json",
    "opencode.jsonc",
    "plugin.json",
    "skill.md",
    "soul.md",
];

/// Directories whose files all count, wherever they are.
const DIRS: &[&str] = &[
    ".claude",
    ".claude-plugin",
    ".codex",
    ".cursor/rules",
    ".gemini",
    ".github/instructions",
    ".github/prompts",
    ".opencode",
    ".windsurf/rules",
    ".agents",
];

/// Directories that are not looked into: no agent reads instructions there by itself, and they are large.
pub(crate) const SKIPPED: &[&str] = &[".git", "node_modules", "__pycache__", ".venv", "target"];

/// How deep a repository is looked into, in directories.
pub(crate) const DEPTH: usize = 12;

/// The largest file that is read, in bytes.
pub(crate) const LARGEST: u64 = 1024 * 1024;

/// Whether a path, relative to the repository, is such a file.
pub(crate) fn is_context(path: &Utf8Path) -> bool {
    let lower = path.as_str().to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let slashed = format!("/{lower}");
    NAMES.contains(&name) || DIRS.iter().any(|dir| slashed.contains(&format!("/{dir}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_files_are_known_by_name_and_by_place() {
        for (path, is) in [
            ("CLAUDE.md", true),
            ("docs/Agents.MD", true),
            (".claude/settings.local.json", true),
            ("pkg/.claude/commands/x.md", true),
            (".mcp.json", true),
            (".cursor/rules/a.mdc", true),
            (".github/copilot-instructions.md", true),
            ("README.md", false),
            ("src/claude.rs", false),
            (".cursor/state.json", false),
            ("claude/x.md", false),
        ] {
            assert_eq!(is_context(Utf8Path::new(path)), is, "{path}");
        }
    }
}
