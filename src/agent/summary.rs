//! The telling part of a tool's input, for one line of display.

use serde_json::Value;

/// What to show of the input of `tool`: the field, and how many characters of it.
fn field(tool: &str) -> Option<(&'static str, usize)> {
    match tool {
        "Bash" | "bash" => Some(("command", 120)),
        "Read" | "Write" | "Edit" | "MultiEdit" => Some(("file_path", 200)),
        "read" | "write" | "edit" => Some(("filePath", 200)),
        "NotebookEdit" => Some(("notebook_path", 200)),
        "Agent" | "Task" | "task" => Some(("prompt", 120)),
        "Grep" | "Glob" | "grep" | "glob" => Some(("pattern", 50)),
        "Skill" => Some(("skill", 50)),
        "skill" => Some(("name", 50)),
        "WebFetch" | "webfetch" => Some(("url", 120)),
        "WebSearch" => Some(("query", 120)),
        _ => None,
    }
}

/// One line, empty for tools that are not known.
pub(super) fn summary(tool: &str, input: &Value) -> String {
    let Some((name, limit)) = field(tool) else { return String::new() };
    let text = input.get(name).and_then(Value::as_str).unwrap_or_default();
    one_line(text, limit)
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
            assert_eq!(summary(tool, &input), expected, "{tool}");
        }
    }
}
