//! The streaming redactor.

use std::sync::Arc;

use super::{Inner, MASK, Registry};

/// Replaces secret values in a stream by `***`. A piece that may be the beginning of a value is held back
/// until it is decided, so the output is the same however the input was cut.
#[derive(Debug)]
pub struct Redactor {
    registry: Registry,
    held: Vec<u8>,
    replaced: u64,
    /// An odd number of backslashes stands before the next byte.
    escaped: bool,
}

impl Redactor {
    /// A redactor of one stream.
    pub fn new(registry: &Registry) -> Self {
        Self { registry: registry.clone(), held: Vec::new(), replaced: 0, escaped: false }
    }

    /// Takes the next bytes and gives those that are decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(inner) = self.registry.inner.clone() else { return bytes.to_vec() };
        if self.held.is_empty() {
            let mut out = Vec::with_capacity(bytes.len());
            let decided = self.decide(&inner, bytes, false, &mut out);
            self.held = bytes[decided..].to_vec();
            return out;
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(held.len());
        let decided = self.decide(&inner, &held, false, &mut out);
        held.drain(..decided);
        self.held = held;
        out
    }

    /// The rest, when the stream has ended.
    pub fn flush(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let Some(inner) = self.registry.inner.clone() else { return held };
        let mut out = Vec::with_capacity(held.len());
        self.decide(&inner, &held, true, &mut out);
        out
    }

    /// How many values were replaced.
    pub fn replaced(&self) -> u64 {
        self.replaced
    }

    /// Writes what is decided of `bytes` and gives its length.
    fn decide(&mut self, inner: &Arc<Inner>, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let undecided = |from| if end { bytes.len() } else { inner.undecided(bytes, from) };
        let mut at = 0;
        let mut limit = undecided(0);
        while let Some(found) = inner.search.find(&bytes[at..]) {
            let (start, stop) = (at + found.start(), at + found.end());
            // At `limit` a longer value may begin, and before a later match an earlier one.
            if start >= limit {
                break;
            }
            self.plain(&bytes[at..start], out);
            self.mask(out);
            at = stop;
            if at > limit {
                limit = undecided(at);
            }
        }
        self.plain(&bytes[at..limit], out);
        limit
    }

    fn plain(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(bytes);
        let slashes = bytes.iter().rev().take_while(|b| **b == b'\\').count();
        self.escaped = (slashes % 2 == 1) != (slashes == bytes.len() && self.escaped);
    }

    /// A value that begins in the middle of an escape (`\n` + `ame…`) leaves a backslash behind; a second one
    /// keeps JSON valid.
    fn mask(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.escaped) {
            out.push(b'\\');
        }
        out.extend_from_slice(MASK.as_bytes());
        self.replaced += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::forms::MIN_LEN;
    use super::*;
    use crate::secrets::Secret;

    fn run(registry: &Registry, chunks: &[&[u8]]) -> (String, u64) {
        let mut redactor = Redactor::new(registry);
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend(redactor.push(chunk));
        }
        out.extend(redactor.flush());
        (String::from_utf8_lossy(&out).into_owned(), redactor.replaced())
    }

    fn registry(values: &[&str]) -> Registry {
        Registry::new(&values.iter().map(|v| Secret::from(*v)).collect::<Vec<_>>())
    }

    #[test]
    fn only_what_may_be_a_value_is_held_back() {
        let mut redactor = Redactor::new(&registry(&["hunter2hunter2"]));
        assert_eq!(redactor.push(b"nothing here\n"), b"nothing here\n");
        assert_eq!(redactor.push(b"now hunter"), b"now ");
        assert_eq!(redactor.push(b"s"), b"hunters");
        assert_eq!(redactor.push(b" hunter2hunter2!"), b" ***!");
        assert_eq!((redactor.flush(), redactor.replaced()), (vec![], 1));
    }

    #[test]
    fn the_longest_value_wins_across_chunks() {
        let registry = registry(&["password", "password-longer"]);
        for chunks in [&[&b"xpassword-longery"[..]][..], &[b"xpass", b"word", b"-long", b"ery"]] {
            assert_eq!(run(&registry, chunks), ("x***y".into(), 1));
        }
        assert_eq!(run(&registry, &[b"password", b"-lo"]), ("***-lo".into(), 1));
    }

    #[test]
    fn json_stays_json() {
        let registry = registry(&["name-of-the-secret", r"\slash-first", "quoted\"value\\"]);
        for text in
            ["\nname-of-the-secret", r"a\slash-first b", "x quoted\"value\\ y", r"\\name-of-the-secret"]
        {
            let json = serde_json::to_string(&[text]).unwrap();
            let (out, count) = run(&registry, &[json.as_bytes()]);
            assert_eq!(count, 1, "{json}");
            let back: Vec<String> = serde_json::from_str(&out).expect(&out);
            assert!(back[0].contains("***"), "{out}");
        }
    }

    #[test]
    fn nothing_to_hide_costs_nothing() {
        let registry = registry(&["", "short"]);
        assert!(registry.is_empty());
        assert_eq!(run(&registry, &[b"short ", b"\xff"]), ("short \u{fffd}".into(), 0));
        assert!(matches!(registry.redact(b"short"), (std::borrow::Cow::Borrowed(_), 0)));
    }

    /// Few letters, so that values overlap and repeat within themselves.
    fn word(len: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&['a', 'b', '\\', '"'][..]), len)
            .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter_and_no_value_survives(
            values in prop::collection::vec(word(MIN_LEN..14), 1..4),
            parts in prop::collection::vec((word(0..10), 0usize..8), 0..8),
            cuts in prop::collection::vec(0usize..200, 0..12),
        ) {
            let mut text = String::new();
            for (noise, pick) in &parts {
                text.push_str(noise);
                if let Some(value) = values.get(*pick) {
                    text.push_str(value);
                }
            }
            let registry = registry(&values.iter().map(String::as_str).collect::<Vec<_>>());
            let bytes = text.as_bytes();
            let whole = run(&registry, &[bytes]);

            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(&run(&registry, &chunks), &whole);
            for value in &values {
                prop_assert!(!whole.0.contains(value.as_str()), "{} in {}", value, whole.0);
            }
        }

        #[test]
        fn a_json_document_stays_one(
            value in "[ -~é\n]{8,20}",
            before in "[ -~\n\t\\\\]{0,8}",
            after in "[ -~\n\t\\\\]{0,8}",
        ) {
            let registry = registry(&[&value]);
            let json = serde_json::to_string(&serde_json::json!({"k": format!("{before}{value}{after}")})).unwrap();
            // Spaces around a value are not part of it, and may leave too little.
            prop_assume!(value.trim().len() >= MIN_LEN && !registry.is_in(b"{\"k\":\""));
            let (out, _) = run(&registry, &[json.as_bytes()]);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{} -> {}", json, out);
            prop_assert!(!out.contains(value.trim()));
        }
    }
}
