//! Splits a byte stream into lines in bounded memory.

use memchr::memchr;

/// A line that came in whole, or one that was too long to keep.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A line without its newline.
    Line(&'a [u8]),
    /// A line of this many bytes, longer than the cap; its bytes were not kept.
    Oversized(u64),
}

/// The splitter. A line up to `cap` bytes is given whole; a longer one is counted and passed over, and the
/// lines after it are not affected.
#[derive(Debug)]
pub struct Lines {
    held: Vec<u8>,
    /// Bytes of the present line that were passed over; 0 while it is kept.
    skipped: u64,
    /// The beginning of the present line is missing, so that it is no line.
    cut: bool,
    cap: usize,
}

impl Lines {
    /// A splitter for lines up to `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self { held: Vec::new(), skipped: 0, cut: false, cap }
    }

    /// Takes the next bytes and gives every line that ends in them.
    pub fn push(&mut self, mut chunk: &[u8], sink: &mut dyn FnMut(Piece<'_>)) {
        if self.cut {
            let Some(end) = memchr(b'\n', chunk) else { return };
            self.cut = false;
            chunk = &chunk[end + 1..];
        }
        while let Some(end) = memchr(b'\n', chunk) {
            let (head, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            if self.held.is_empty() && self.skipped == 0 && head.len() <= self.cap {
                sink(Piece::Line(head));
                continue;
            }
            self.hold(head);
            match std::mem::take(&mut self.skipped) {
                0 => sink(Piece::Line(&self.held)),
                skipped => sink(Piece::Oversized(skipped)),
            }
            self.reset();
        }
        self.hold(chunk);
    }

    /// Bytes are missing before the next ones. True when that cuts a line off.
    pub fn gap(&mut self) -> bool {
        let cut_off = self.rest().is_some();
        self.held = Vec::new();
        self.skipped = 0;
        self.cut = true;
        cut_off
    }

    /// The unfinished last line, when there is one.
    pub fn rest(&self) -> Option<Piece<'_>> {
        match (self.skipped, self.held.is_empty()) {
            (0, true) => None,
            (0, false) => Some(Piece::Line(&self.held)),
            (skipped, _) => Some(Piece::Oversized(skipped)),
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.skipped > 0 {
            self.skipped += bytes.len() as u64;
        } else if self.held.len() + bytes.len() > self.cap {
            self.skipped = (self.held.len() + bytes.len()) as u64;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Forgets the line; a large buffer is given back, so that one long line does not cost memory for good.
    fn reset(&mut self) {
        self.held.clear();
        if self.held.capacity() > 1024 * 1024 {
            self.held = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line, or the length of one that was too long.
    type Owned = Result<Vec<u8>, u64>;

    fn split(chunks: &[&[u8]], cap: usize) -> (Vec<Owned>, Option<Owned>) {
        let owned = |piece: Piece<'_>| match piece {
            Piece::Line(line) => Ok(line.to_vec()),
            Piece::Oversized(n) => Err(n),
        };
        let mut lines = Lines::new(cap);
        let mut out = Vec::new();
        for chunk in chunks {
            lines.push(chunk, &mut |piece| out.push(owned(piece)));
        }
        (out, lines.rest().map(owned))
    }

    #[test]
    fn the_count_starts_anew_with_every_line() {
        let (lines, rest) = split(&[b"aaaa\nbbbb\nccccc\ndddd\n\nee"], 4);
        let ok = |t: &str| Ok(t.as_bytes().to_vec());
        assert_eq!(lines, [ok("aaaa"), ok("bbbb"), Err(5), ok("dddd"), ok("")]);
        assert_eq!(rest, Some(ok("ee")));
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(
            text in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>(), Just(b'x')], 0..200),
            cuts in prop::collection::vec(0usize..200, 0..8),
            cap in 1usize..20,
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                chunks.push(&text[from..cut]);
                from = cut;
            }
            let model: Vec<_> = text
                .split(|b| *b == b'\n')
                .map(|line| if line.len() > cap { Err(line.len() as u64) } else { Ok(line.to_vec()) })
                .collect();
            let (lines, rest) = split(&chunks, cap);
            prop_assert_eq!(&lines[..], &model[..model.len() - 1]);
            prop_assert_eq!(rest.unwrap_or(Ok(Vec::new())), model[model.len() - 1].clone());
        }
    }
}
