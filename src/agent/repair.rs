//! Makes a line that is JSON but for its text encoding readable: bytes that are not UTF-8, and escapes of lone
//! surrogates, which some runtimes write when they cut a text in the middle of a pair (RFC 8259, section 8.2).

/// A readable copy; `None` when there was nothing to repair.
pub(super) fn repair(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let fixed = lone_surrogates(&text);
    match (&text, fixed) {
        (_, Some(fixed)) => Some(fixed),
        (std::borrow::Cow::Owned(text), None) => Some(text.clone()),
        (std::borrow::Cow::Borrowed(_), None) => None,
    }
}

/// Replaces `\uD800`…`\uDFFF` escapes that are no pair.
fn lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(slash) = memchr::memchr(b'\\', &bytes[at..]).map(|i| at + i) {
        match (unit(bytes, slash), unit(bytes, slash + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at = slash + 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str(&text[copied..slash]);
                out.push_str("\\ufffd");
                at = slash + 6;
                copied = at;
            }
            // Past the backslash and what it escapes, so that `\\u` is not read as an escape.
            _ => at = (slash + 2).min(bytes.len()),
        }
    }
    (copied > 0).then(|| {
        out.push_str(&text[copied..]);
        out
    })
}

/// The code unit of a `\uXXXX` escape at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let cases = [
            (r#""a\ud800""#, Some(r#""a\ufffd""#)),
            (r#""\udc00\ud83d\ude00\ud83d""#, Some(r#""\ufffd\ud83d\ude00\ufffd""#)),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud800""#, None),
            (r#""\"#, None),
        ];
        for (input, expected) in cases {
            assert_eq!(repair(input.as_bytes()).as_deref(), expected, "{input}");
        }
        assert_eq!(repair(b"\"\xff\"").as_deref(), Some("\"\u{fffd}\""));
    }

    proptest! {
        #[test]
        fn a_repaired_string_parses(units in prop::collection::vec(any::<u16>(), 0..20)) {
            let escapes: Vec<_> = units.iter().map(|u| format!("\\u{u:04x}")).collect();
            let text = format!("\"{}\"", escapes.concat());
            let fixed = repair(text.as_bytes()).unwrap_or(text);
            let parsed: String = serde_json::from_str(&fixed).unwrap();
            prop_assert_eq!(parsed, String::from_utf16_lossy(&units));
        }
    }
}
