//! JSON documents: only the texts in them, and the names of their members, are changed.

use serde_json::Value;

use super::{MASK, Registry};

impl Registry {
    /// `text` without the secrets, and how many were replaced. A JSON document (or a line of JSON per line) is one
    /// afterwards as well: where a number or the like holds a value, the document is written anew.
    pub fn redact_document(&self, text: &str) -> (String, u64) {
        let (clean, count) = self.redact(text.as_bytes());
        let clean = String::from_utf8_lossy(&clean).into_owned();
        if count == 0 || is_json(&clean) || !is_json(text) {
            return (clean, count);
        }
        let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut out = String::new();
        let mut count = 0;
        for mut document in documents.flatten() {
            self.leaves(&mut document, &mut count);
            out.push_str(&document.to_string());
            out.push('\n');
        }
        (out, count)
    }

    fn leaves(&self, value: &mut Value, count: &mut u64) {
        match value {
            Value::String(text) => {
                let (clean, n) = self.redact(text.as_bytes());
                if n > 0 {
                    *count += n;
                    *text = String::from_utf8_lossy(&clean).into_owned();
                }
            }
            Value::Number(number) if self.is_in(number.to_string().as_bytes()) => {
                *count += 1;
                *value = Value::String(MASK.to_owned());
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.leaves(value, count)),
            Value::Object(map) => {
                for (key, mut value) in std::mem::take(map) {
                    self.leaves(&mut value, count);
                    let (clean, n) = self.redact(key.as_bytes());
                    *count += n;
                    map.insert(String::from_utf8_lossy(&clean).into_owned(), value);
                }
            }
            _ => {}
        }
    }
}

/// Whether a text is nothing but JSON documents, at least one.
fn is_json(text: &str) -> bool {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let mut any = false;
    documents.all(|d| {
        any = true;
        d.is_ok()
    }) && any
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::secrets::Secret;

    #[test]
    fn documents_stay_documents() {
        let registry = Registry::new([&Secret::new("1234567890"), &Secret::new("hunter2-hunter2")]);
        let cases = [
            (json!({"n": 1_234_567_890_u64, "s": "x hunter2-hunter2"}), json!({"n": "***", "s": "x ***"})),
            (json!({"hunter2-hunter2": [{"a": null}]}), json!({"***": [{"a": null}]})),
            (json!([1.5, true, "1234567890"]), json!([1.5, true, "***"])),
        ];
        for (before, after) in cases {
            let (out, count) = registry.redact_document(&before.to_string());
            assert!(count > 0);
            assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), after);
        }
        let (out, _) = registry.redact_document("{\"a\":1234567890}\n{\"b\":2}\n");
        assert_eq!(out, "{\"a\":\"***\"}\n{\"b\":2}\n");
        assert_eq!(registry.redact_document("a: 1234567890").0, "a: ***");
        assert_eq!(registry.redact_document("{\"a\": 1}"), ("{\"a\": 1}".to_owned(), 0));
    }
}
