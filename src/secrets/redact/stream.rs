//! The streaming redactor: known values as they are, known values that line breaks cut, tokens by their shape.

use super::Registry;
use super::known::Known;
use super::shapes::Shapes;

/// Replaces secrets in a stream by `***`. A piece that may be the beginning of one is held back until it is decided,
/// so the output is the same however the input was cut.
#[derive(Debug)]
pub struct Redactor {
    plain: Known,
    folding: Known,
    shapes: Shapes,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Redactor {
    /// A redactor of one stream.
    pub fn new(registry: &Registry) -> Self {
        Self {
            plain: Known::plain(registry.inner.clone()),
            folding: Known::folding(registry.inner.clone()),
            shapes: Shapes::default(),
            first: Vec::new(),
            second: Vec::new(),
        }
    }

    /// Takes the next bytes and gives those that are decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pass(bytes, false)
    }

    /// The rest, when the stream (or a part of it that nothing goes across) has ended.
    pub fn flush(&mut self) -> Vec<u8> {
        self.pass(b"", true)
    }

    /// How many secrets were replaced.
    pub fn replaced(&self) -> u64 {
        self.plain.replaced + self.folding.replaced + self.shapes.replaced
    }

    /// Whether nothing is held back, and no token goes on.
    pub fn is_settled(&self) -> bool {
        self.plain.is_settled() && self.folding.is_settled() && self.shapes.is_settled()
    }

    fn pass(&mut self, bytes: &[u8], end: bool) -> Vec<u8> {
        self.first.clear();
        self.second.clear();
        self.plain.push(bytes, end, &mut self.first);
        self.folding.push(&self.first, end, &mut self.second);
        let mut out = Vec::with_capacity(self.second.len());
        self.shapes.push(&self.second, end, &mut out);
        out
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
        assert_eq!(redactor.push(b"nothing here!\n"), b"nothing here!\n");
        assert_eq!(redactor.push(b"now hunter"), b"now ");
        assert_eq!(redactor.push(b"!"), b"hunter!");
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

    #[test]
    fn line_breaks_do_not_hide_a_value() {
        let registry = registry(&["hunter2-hunter2", r"C:\name\new-secret", "abc1234\ndef5678"]);
        for (text, expected) in [
            ("one hun\nter2-hun\r\nter2 two\n", "one ***\n\r\n two\n"),
            (r#"{"a":"x\nhunter2-\nhunter2\n"}"#, r#"{"a":"x\n***\n\n"}"#),
            (r#"{"a":"{\"b\":\"hunter\\n2-hunter2\"}"}"#, r#"{"a":"{\"b\":\"***\\n\"}"}"#),
            (r"at C:\name\new-secret.", "at ***."),
            (r"at C:\hunter2-hunter2", r"at C:\\***"),
            ("abc1234\ndef5678", "***"),
            ("abc1234def5678 abc1234\\ndef5678", "*** ***"),
            ("hunter2\n\nand hunter2-\n", "hunter2\n\nand hunter2-\n"),
        ] {
            for width in [1, 2, 5, 100] {
                let chunks: Vec<_> = text.as_bytes().chunks(width).collect();
                assert_eq!(run(&registry, &chunks).0, expected, "{text}");
            }
        }
    }

    #[test]
    fn the_beginning_of_a_secret_before_a_cut_is_hidden() {
        let registry = registry(&["hunter2-hunter2"]);
        for (text, expected) in [
            ("curl -u x:hunter2-hu…", "curl -u x:***…"),
            ("curl hunter2-hunter2 hun…", "curl *** hun…"),
            ("a: hunter2…, b: other…", "a: ***…, b: other…"),
            ("gh auth ghp_aB3dZ9aB3dZ9…", "gh auth ***…"),
            ("nothing…", "nothing…"),
        ] {
            assert_eq!(registry.redact_text(text), expected);
        }
    }

    #[test]
    fn tokens_are_hidden_where_nothing_is_known() {
        let token = format!("ghp_{}", "aB3dZ9".repeat(6));
        let text = format!("https://x:{token}@host");
        assert_eq!(run(&Registry::default(), &[text.as_bytes()]), ("https://x:***@host".into(), 1));
        assert_eq!(Registry::default().redact_text(&text), "https://x:***@host");
    }

    /// Prints how fast a stream is redacted: `cargo test --release --lib throughput -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    fn throughput() {
        use std::io::Write as _;
        let pem = (0..25)
            .map(|n| format!("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8c{n:02}"))
            .collect::<Vec<_>>()
            .join("\n");
        let mut values: Vec<String> = (0..10).map(|n| format!("tok-{n}-aB3dZ9aB3dZ9aB3dZ9/+{n}")).collect();
        let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I read src/main.rs.\\nfn main() {\\n    println!(\\"hello\\");\\n}\\n It has 12 lines and a \\"quoted\\" word."}]}}"#;
        let text = format!("{line}\n").repeat(64 * 1024 * 1024 / line.len());
        for with_key in [false, true] {
            if with_key {
                values.push(format!("-----BEGIN PRIVATE KEY-----\n{pem}-----END PRIVATE KEY-----\n"));
            }
            let registry = registry(&values.iter().map(String::as_str).collect::<Vec<_>>());
            let mut redactor = Redactor::new(&registry);
            let start = std::time::Instant::now();
            let mut bytes = 0;
            for chunk in text.as_bytes().chunks(64 * 1024) {
                bytes += redactor.push(chunk).len();
            }
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            let rate = bytes as f64 / 1e6 / start.elapsed().as_secs_f64();
            let _ = writeln!(std::io::stderr(), "{rate:.0} MB/s with {registry:?}");
        }
    }

    /// Few letters, so that values overlap and repeat within themselves.
    fn word(len: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&['a', 'b', '\\', '"'][..]), len)
            .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// A value in any encoding, cut by line breaks anywhere, in any pieces.
        #[test]
        fn no_value_survives_in_any_encoding(
            value in "[!-~é]{9,30}",
            before in "[ a-z\n]{0,12}",
            breaks in prop::collection::vec(1usize..40, 0..3),
            cut in 1usize..20,
            pick in 0usize..9,
        ) {
            use base64::Engine as _;
            use base64::engine::general_purpose::{STANDARD, URL_SAFE};
            let value = value.trim_matches(|c| c == 'n' || c == 'r').to_owned();
            prop_assume!(value.len() >= MIN_LEN);
            let json = serde_json::to_string(&value).unwrap();
            let json = &json[1..json.len() - 1];
            let twice = serde_json::to_string(json).unwrap();
            let form = match pick {
                1 => json.to_owned(),
                2 => json.replace('/', "\\/"),
                3 => twice[1..twice.len() - 1].to_owned(),
                4 => STANDARD.encode(&value),
                5 => URL_SAFE.encode(format!("{before}{value}")),
                6 => crate::report::hex(&value),
                7 => value.encode_utf16().map(|u| format!("\\u{u:04x}")).collect::<Vec<_>>().concat(),
                _ => value.clone(),
            };
            let mut broken = form.clone();
            // Where a break tears an escape apart, it is none any more.
            if pick != 1 && pick != 2 && pick != 3 && pick != 7 && value.is_ascii() && !value.contains('\\') {
                for at in breaks.iter().filter(|at| **at < form.len()) {
                    broken.insert(*at, '\n');
                }
            }
            let text = format!("{before}{broken} end");
            let registry = registry(&[&value]);
            let chunks: Vec<_> = text.as_bytes().chunks(cut).collect();
            let (out, count) = run(&registry, &chunks);
            prop_assert!(count >= 1, "{} -> {}", text, out);
            prop_assert!(!registry.is_in(out.as_bytes()), "{} -> {}", text, out);
            prop_assert_eq!(run(&registry, &[text.as_bytes()]).0, out);
        }

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
