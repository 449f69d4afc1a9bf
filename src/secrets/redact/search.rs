//! Searching a stream without changing it.

use super::{Registry, known};

/// Looks for secret values in a stream, also where line breaks cut them: `base64` wraps its output at 76
/// columns (RFC 2045); in a JSON string the breaks are escaped. Bytes are seen in any pieces.
#[derive(Debug)]
pub struct Searcher {
    registry: Registry,
    tail: Vec<u8>,
    joined: Vec<u8>,
    slashes: usize,
    found: bool,
}

impl Searcher {
    /// A searcher of one stream.
    pub fn new(registry: &Registry) -> Self {
        Self { registry: registry.clone(), tail: Vec::new(), joined: Vec::new(), slashes: 0, found: false }
    }

    /// Takes the next bytes. Whether a value has been seen so far.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let keep = self.registry.longest().saturating_sub(1);
        if self.found || self.registry.is_empty() {
            return self.found;
        }
        self.tail.extend_from_slice(bytes);
        self.slashes = known::fold_onto(self.slashes, bytes, &mut self.joined);
        self.found = self.registry.is_in(&self.tail) || self.registry.is_in(&self.joined);
        for held in [&mut self.tail, &mut self.joined] {
            let decided = held.len().saturating_sub(keep);
            held.drain(..decided);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::*;

    use super::*;
    use crate::secrets::Secret;

    proptest! {
        #[test]
        fn a_value_is_found_however_it_is_wrapped_and_cut(
            value in "[!-~]{8,60}", before in "[ -~\n]{0,90}", width in 4..80_usize, cut in 1..40_usize,
        ) {
            let registry = Registry::new([&Secret::from(value.as_str())]);
            let text = base64::engine::general_purpose::STANDARD.encode(format!("{before}{value}{before}"));
            let wrapped: Vec<_> = text.as_bytes().chunks(width).flat_map(|l| [l, b"\n"].concat()).collect();
            for text in [wrapped, [before.as_bytes(), value.as_bytes()].concat()] {
                let mut searcher = Searcher::new(&registry);
                for piece in text.chunks(cut) {
                    searcher.push(piece);
                }
                prop_assert!(searcher.push(b""));
            }
        }
    }

    #[test]
    fn other_text_is_not_found() {
        let registry = Registry::new([&Secret::from("hunter2-hunter2")]);
        assert!(!Searcher::new(&registry).push(b"hunter2-hunter3 hunter2\n"));
        assert!(!Searcher::new(&Registry::default()).push(b"anything"));
    }
}
