//! Texts of an event that strangers can write.

use std::fmt::Write as _;

use serde_json::Value;

/// Keys whose texts come from whoever opened the issue, wrote the comment, or named the branch.
const UNTRUSTED: &[&str] =
    &["body", "description", "label", "message", "name", "note", "ref", "text", "title"];

/// The largest number of texts that are looked at.
const MOST: usize = 2000;

/// The untrusted texts of an event with their places, such as `issue.body`. What is no JSON is one text.
pub(crate) fn texts(payload: &str) -> Vec<(String, String)> {
    let Ok(value) = serde_json::from_str::<Value>(payload) else {
        return vec![("raw_payload".to_owned(), payload.to_owned())];
    };
    let mut out = Vec::new();
    collect(&value, &mut String::new(), &mut out);
    out
}

fn collect(value: &Value, path: &mut String, out: &mut Vec<(String, String)>) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                match value {
                    Value::String(text) if UNTRUSTED.contains(&key.as_str()) && out.len() < MOST => {
                        out.push((path.clone(), text.clone()));
                    }
                    value => collect(value, path, out),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let _ = write!(path, "[{at}]");
                collect(item, path, out);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_strangers_are_taken() {
        let payload = r#"{"issue":{"title":"T","body":"B","id":1,"html_url":"u","labels":[{"name":"bug"}]},
            "comment":{"body":"C"},"repository":{"full_name":"a/b"}}"#;
        let got = texts(payload);
        let got: Vec<_> = got.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        assert_eq!(
            got,
            [
                ("issue.title", "T"),
                ("issue.body", "B"),
                ("issue.labels[0].name", "bug"),
                ("comment.body", "C")
            ]
        );
        assert_eq!(texts("plain"), [("raw_payload".to_owned(), "plain".to_owned())]);
    }
}
