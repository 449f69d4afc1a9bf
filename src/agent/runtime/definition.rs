//! The agent definition of claude: a Markdown file with front matter.
//!
//! Claude Code 2.1.332 knows an agent by the `name` of its front matter, whatever the file is called, and
//! passes over a file without `name` or `description` in silence (tried). So both are completed.

use std::ops::Range;

/// A definition that claude accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What `--agent` needs.
    pub name: String,
    /// The file to put in; the given bytes when nothing was missing.
    pub text: Vec<u8>,
    /// The keys that were added.
    pub added: Vec<&'static str>,
}

/// Completes a definition; `stem` is the file's name without its ending.
pub fn definition(text: &[u8], stem: &str) -> Definition {
    let (front, body) = split(text).unwrap_or((&[], text));
    let name = value(front, "name");
    let mut added = Vec::new();
    let mut head = Vec::new();
    if name.is_none() {
        added.push("name");
        head.extend_from_slice(format!("name: {}\n", yaml(stem)).as_bytes());
    }
    if value(front, "description").is_none() {
        added.push("description");
        head.extend_from_slice(format!("description: {}\n", yaml(&format!("The agent {stem}"))).as_bytes());
    }
    let text = if added.is_empty() {
        text.to_vec()
    } else {
        let kept = front.split_inclusive(|b| *b == b'\n').filter(|line| {
            // An empty key would stand there twice.
            !added.iter().any(|key| key_of(line) == Some(key.as_bytes()))
        });
        [b"---\n", &head[..], &kept.collect::<Vec<_>>().concat(), b"---\n", body].concat()
    };
    Definition { name: name.unwrap_or_else(|| stem.to_owned()), text, added }
}

/// The entries of a list in the front matter, such as `tools`: on the key's line, in brackets or not, or one per
/// line below it. A comma within parentheses separates nothing.
pub fn list(text: &[u8], key: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    entries(&text, key).into_iter().map(|at| text[at].to_owned()).collect()
}

/// Where the entries of a list are, as [`list`] reads it.
pub fn entries(text: &str, key: &str) -> Vec<Range<usize>> {
    let Some((front, _)) = split(text.as_bytes()) else { return Vec::new() };
    // Both are parts of the text.
    let offset = |part: &[u8]| part.as_ptr().addr() - text.as_ptr().addr();
    let lines = front.split(|b| *b == b'\n').map(|line| &text[offset(line)..][..line.len()]);
    let mut lines = lines.skip_while(|line| key_of(line.as_bytes()) != Some(key.as_bytes()));
    let Some(line) = lines.next() else { return Vec::new() };
    let below = lines.take_while(|l| l.starts_with(|c: char| c.is_ascii_whitespace() || c == '-'));
    let below = below.map(|l| l.trim().trim_start_matches('-'));
    let mut out = Vec::new();
    for line in std::iter::once(line[key.len()..].trim_start_matches([' ', '\t', ':'])).chain(below) {
        let mut depth = 0_i32;
        let parts = line.trim().trim_start_matches('[').trim_end_matches(']').split(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        });
        let entries = parts.map(|part| part.trim().trim_matches(['"', '\'']));
        let entries = entries.filter(|entry| !entry.is_empty() && !entry.starts_with('#'));
        out.extend(entries.map(|entry| offset(entry.as_bytes())..offset(entry.as_bytes()) + entry.len()));
    }
    out
}

/// What follows the front matter; the whole where there is none.
pub fn body(text: &[u8]) -> &[u8] {
    split(text).map_or(text, |(_, body)| body)
}

/// The value of a key of the front matter, when it is one word or one line.
pub fn scalar(text: &[u8], key: &str) -> Option<String> {
    value(split(text)?.0, key)
}

/// The lines between the two `---` lines, and what follows them.
fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = text.strip_prefix(b"---\n").or_else(|| text.strip_prefix(b"---\r\n"))?;
    let mut at = 0;
    for line in start.split_inclusive(|b| *b == b'\n') {
        if line.trim_ascii_end() == b"---" {
            return Some((&start[..at], &start[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The top-level key of a line.
fn key_of(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|b| *b == b':')?;
    let key = &line[..end];
    (!key.is_empty() && !key[0].is_ascii_whitespace() && key[0] != b'#').then(|| key.trim_ascii_end())
}

/// The value of a top-level key: what stands on its line, or that there is more on the lines below.
fn value(front: &[u8], key: &str) -> Option<String> {
    let mut lines = front.split(|b| *b == b'\n').skip_while(|line| key_of(line) != Some(key.as_bytes()));
    let line = lines.next()?;
    let text = String::from_utf8_lossy(&line[key.len()..]);
    let text = text.trim_start_matches([' ', '\t', ':']).trim();
    let bare = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split(quote).next().unwrap_or_default(),
        _ => text.split(" #").next().unwrap_or_default().trim_end(),
    };
    let block = matches!(bare.chars().next(), Some('|' | '>'));
    if bare.is_empty() || block {
        let more = lines.next().filter(|l| l.first().is_some_and(u8::is_ascii_whitespace))?;
        let more = String::from_utf8_lossy(more);
        let more = more.trim();
        return (!more.is_empty()).then(|| more.to_owned());
    }
    Some(bare.to_owned())
}

/// A text as a YAML scalar. JSON's double-quoted form is one (YAML 1.2, section 7.3.1).
fn yaml(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        && text.starts_with(|c: char| c.is_ascii_alphabetic());
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complete_definition_is_not_touched() {
        let text = b"---\r\nname: \"coder\"  # who\r\ndescription: >\r\n  writes code\r\n---\r\nBody \xff";
        let got = definition(text, "code");
        assert_eq!(got, Definition { name: "coder".into(), text: text.to_vec(), added: vec![] });
    }

    #[test]
    fn lists_have_three_forms() {
        for form in [
            "tools: Bash(git add:*, x), Read",
            "tools: [\"Bash(git add:*, x)\", Read]",
            "tools:\n  - Bash(git add:*, x)\n  - Read",
        ] {
            let text = format!("---\nname: n\n{form}\nmodel: m\n---\ntools: Other\n");
            assert_eq!(list(text.as_bytes(), "tools"), ["Bash(git add:*, x)", "Read"], "{form}");
        }
        assert!(list(b"---\nname: n\n---\n", "tools").is_empty());
    }

    #[test]
    fn entries_are_where_they_stand() {
        let text = "---\nname: n\nskills: [\"one\", zwei-ä]\nmore:\n  - drei\n---\n";
        let texts = |key| entries(text, key).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
        assert_eq!((texts("skills"), texts("more")), (vec!["one", "zwei-ä"], vec!["drei"]));
        assert_eq!(entries(text, "skills")[0].start, text.find("one").unwrap());
    }

    #[test]
    fn missing_keys_are_added() {
        let cases: [(&[u8], &str, &str); 5] = [
            (b"You are.\n", "x", "---\nname: x\ndescription: \"The agent x\"\n---\nYou are.\n"),
            (
                b"---\nname:\ntools: Bash\n---\nB",
                "a b",
                "---\nname: \"a b\"\ndescription: \"The agent a b\"\ntools: Bash\n---\nB",
            ),
            (b"---\nname: n\n---\n", "x", "---\ndescription: \"The agent x\"\nname: n\n---\n"),
            (
                b"---\ndescription: d\nmeta:\n  name: inner\n---\n",
                "x",
                "---\nname: x\ndescription: d\nmeta:\n  name: inner\n---\n",
            ),
            // No second fence: the whole is the body.
            (b"---\nname: n\n", "x", "---\nname: x\ndescription: \"The agent x\"\n---\n---\nname: n\n"),
        ];
        for (text, stem, expected) in cases {
            let got = definition(text, stem);
            assert_eq!(String::from_utf8(got.text).unwrap(), expected);
        }
        assert_eq!(definition(b"---\nname: 'it''s'\n---\n", "x").added, ["description"]);
    }
}
