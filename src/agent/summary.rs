//! The telling part of a tool's input, for one line of display.

use super::blocks::{Input, Object, Scalar};

/// What to show of the input of `tool`, and how many characters of it.
fn field<'a>(tool: &str, input: &'a Input<'_>) -> Option<(&'a Scalar<'a>, usize)> {
    match tool {
        "Bash" | "bash" => Some((&input.command, 120)),
        "Read" | "Write" | "Edit" | "MultiEdit" => Some((&input.file_path, 200)),
        "read" | "write" | "edit" => Some((&input.opencode_path, 200)),
        "NotebookEdit" => Some((&input.notebook_path, 200)),
        "Agent" | "Task" | "task" => Some((&input.prompt, 120)),
        "Grep" | "Glob" | "grep" | "glob" => Some((&input.pattern, 50)),
        "Skill" => Some((&input.skill, 50)),
        "skill" => Some((&input.name, 50)),
        "WebFetch" | "webfetch" => Some((&input.url, 120)),
        "WebSearch" => Some((&input.query, 120)),
        _ => None,
    }
}

/// One line, empty for tools that are not known.
pub(super) fn summary(tool: &str, input: &Object<Input<'_>>) -> String {
    let field = input.0.as_ref().and_then(|input| field(tool, input));
    let shown = field.and_then(|(value, limit)| Some(one_line(value.text()?, limit)));
    shown.unwrap_or_default()
}

/// Whitespace runs become one space; at most `limit` characters, the last an ellipsis when text is missing.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let space = usize::from(count > 0);
        for c in std::iter::repeat_n(' ', space).chain(word.chars()) {
            if count == limit {
                out.pop();
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_summarised_by_their_telling_field() {
        let cases = [
            ("Bash", json!({"command": "ls  -l\n\tfoo"}), "ls -l foo"),
            ("Edit", json!({"file_path": "/a b/c.txt", "old_string": "x"}), "/a b/c.txt"),
            ("Grep", json!({"pattern": "é".repeat(60)}), &format!("{}…", "é".repeat(49))),
            ("Bash", json!({"command": ["not", "text"]}), ""),
            ("mcp__x__y", json!({"command": "secret"}), ""),
        ];
        for (tool, input, expected) in cases {
            assert_eq!(summary(tool, &Object::deserialize(&input).unwrap()), expected, "{tool}");
        }
    }
}
