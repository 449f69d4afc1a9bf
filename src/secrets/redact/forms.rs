//! The forms that a secret value takes on its way: what is searched for.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The shortest value, and the shortest line of a value, that is searched for, in bytes.
pub const MIN_LEN: usize = 8;

/// Adds every form of `value`, and of its secret parts when it has several lines.
pub(super) fn forms(value: &[u8], out: &mut BTreeSet<Vec<u8>>) {
    let value = value.trim_ascii();
    if value.len() < MIN_LEN {
        return;
    }
    encodings(value, out);
    if !value.contains(&b'\n') && !value.starts_with(b"{") {
        return;
    }
    match serde_json::from_slice(value) {
        Ok(json) => leaves("", &json, out),
        Err(_) => lines(value, out),
    }
}

/// The lines of a text. The fences of a PEM block are no secret.
fn lines(value: &[u8], out: &mut BTreeSet<Vec<u8>>) {
    for line in value.split(|b| *b == b'\n').map(<[u8]>::trim_ascii) {
        if line.len() >= MIN_LEN && !line.starts_with(b"-----") {
            encodings(line, out);
        }
    }
}

/// The secret texts of a JSON document, such as a service account file: those whose key says so.
fn leaves(key: &str, json: &serde_json::Value, out: &mut BTreeSet<Vec<u8>>) {
    const TELLING: [&str; 6] = ["key", "secret", "token", "password", "credential", "private"];
    match json {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| leaves(key, value, out)),
        serde_json::Value::Array(list) => list.iter().for_each(|value| leaves(key, value, out)),
        serde_json::Value::String(text) => {
            let key = key.to_ascii_lowercase();
            let telling = TELLING.iter().any(|word| key.contains(word));
            // `token_uri` and its like hold public addresses.
            if telling && !text.starts_with("https://") && !text.starts_with("http://") {
                forms(text.as_bytes(), out);
            }
        }
        _ => {}
    }
}

fn encodings(value: &[u8], out: &mut BTreeSet<Vec<u8>>) {
    out.insert(value.to_vec());
    if let Ok(text) = std::str::from_utf8(value) {
        json(text, out);
    }
    percent(value, out);
    base64(value, out);
    for digits in ["0123456789abcdef", "0123456789ABCDEF"] {
        out.insert(hex(value, digits.as_bytes(), b""));
    }
}

/// Inside a JSON string: as writers differ, and once more escaped (JSON within JSON).
fn json(text: &str, out: &mut BTreeSet<Vec<u8>>) {
    let escape = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let plain = escape(text);
    let slashes = plain.replace('/', r"\/");
    // Go's encoding/json escapes these for HTML.
    let html = plain.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026");
    let ascii = units(&plain, |c| !c.is_ascii());
    let ascii_slashes = ascii.replace('/', r"\/");
    let twice = escape(&plain);
    let twice_ascii = escape(&ascii);
    let every = units(text, |_| true);
    let every_upper = every.to_ascii_uppercase().replace('U', "u");
    for form in [plain, slashes, html, ascii, ascii_slashes, twice, twice_ascii, every, every_upper] {
        out.insert(form.into_bytes());
    }
}

/// Characters that `escaped` picks become `\uXXXX`.
fn units(text: &str, escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Percent-encoded (RFC 3986), as writers differ: which marks stay, the case of the digits, `+` for a space.
fn percent(value: &[u8], out: &mut BTreeSet<Vec<u8>>) {
    for kept in [&b"-._~"[..], b"-_.!~*'()", b"-._~/", b"-_.*"] {
        for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
            for space in [&b"%20"[..], b"+"] {
                let mut form = Vec::with_capacity(value.len());
                for byte in value {
                    match byte {
                        b' ' => form.extend_from_slice(space),
                        b if b.is_ascii_alphanumeric() || kept.contains(b) => form.push(*b),
                        b => form.extend(hex(&[*b], digits, b"%")),
                    }
                }
                out.insert(form);
            }
        }
    }
}

/// The characters that the value alone decides, at each of the three places it can have in a longer text.
fn base64(value: &[u8], out: &mut BTreeSet<Vec<u8>>) {
    for offset in 0..3 {
        let padded = [&[0; 2][..offset], value].concat();
        let (from, to) = ((8 * offset).div_ceil(6), 8 * padded.len() / 6);
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            out.insert(engine.encode(&padded).as_bytes()[from..to].to_vec());
        }
    }
}

fn hex(bytes: &[u8], digits: &[u8], before: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.extend_from_slice(before);
        out.extend([digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
    }
    out
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::super::Registry;
    use crate::secrets::Secret;

    fn registry(value: &str) -> Registry {
        Registry::new([&Secret::from(value)])
    }

    #[test]
    fn each_form_is_found() {
        let value = "p/a s\"s\\<é😀>&+word";
        let registry = registry(value);
        let forms = [
            value,
            r#"p/a s\"s\\<é😀>&+word"#,
            r#"p\/a s\"s\\<é😀>&+word"#,
            r#"p/a s\"s\\<\u00e9\ud83d\ude00>&+word"#,
            r#"p/a s\"s\\\u003cé😀\u003e\u0026+word"#,
            r#"p/a s\\\"s\\\\<é😀>&+word"#,
            "p%2Fa%20s%22s%5C%3C%C3%A9%F0%9F%98%80%3E%26%2Bword",
            "p%2fa%20s%22s%5c%3c%c3%a9%f0%9f%98%80%3e%26%2bword",
            "p%2Fa+s%22s%5C%3C%C3%A9%F0%9F%98%80%3E%26%2Bword",
            "p/a%20s%22s%5C%3C%C3%A9%F0%9F%98%80%3E%26%2Bword",
            "\u{1b}[31mp/a s\"s\\<é😀>&+word\u{1b}[0m",
        ];
        for form in forms {
            assert!(registry.is_in(form.as_bytes()), "{form}");
        }
        let letters: Vec<_> = "password".bytes().map(|b| format!("\\u{b:04X}")).collect();
        assert!(super::super::Registry::new([&Secret::from("password")]).is_in(letters.concat().as_bytes()));
    }

    #[test]
    fn the_lines_of_a_key_are_secret_and_its_fences_are_not() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\nxyz12345\n-----END PRIVATE KEY-----\n";
        let registry = registry(pem);
        for line in ["MIIEvQIBADANBgkqhkiG", "> xyz12345 <"] {
            assert!(registry.is_in(line.as_bytes()), "{line}");
        }
        assert!(!registry.is_in(b"-----BEGIN PRIVATE KEY-----\nanother\n-----END PRIVATE KEY-----"));
    }

    #[test]
    fn of_a_json_file_only_the_secret_texts_count() {
        let file = r#"{
            "type": "service_account", "project_id": "my-project-1234",
            "private_key": "-----BEGIN PRIVATE KEY-----\nAAAABBBBCCCC\n-----END PRIVATE KEY-----\n",
            "token_uri": "https://oauth2.example.com/token"
        }"#;
        let registry = registry(file);
        assert!(registry.is_in(b"AAAABBBBCCCC") && registry.is_in(file.trim().as_bytes()));
        for public in ["my-project-1234", "service_account", "https://oauth2.example.com/token"] {
            assert!(!registry.is_in(public.as_bytes()), "{public}");
        }
    }

    proptest! {
        #[test]
        fn base64_is_found_at_every_offset(
            value in "[!-~]{8,24}",
            before in prop::collection::vec(any::<u8>(), 0..5),
            after in prop::collection::vec(any::<u8>(), 0..5),
        ) {
            use base64::Engine as _;
            let registry = registry(&value);
            let text = [&before, value.as_bytes(), &after].concat();
            prop_assert!(registry.is_in(STANDARD.encode(&text).as_bytes()));
            prop_assert!(registry.is_in(URL_SAFE.encode(&text).as_bytes()));
        }
    }
}
