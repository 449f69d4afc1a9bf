//! Known values in a stream: found as they are, or across line breaks.

use std::sync::Arc;

use super::{Inner, MASK};

/// Replaces known values in a stream. A piece that may be the beginning of a value is held back until it is
/// decided, so the output is the same however the input was cut.
#[derive(Debug, Default)]
pub(super) struct Known {
    inner: Option<Arc<Inner>>,
    held: Vec<u8>,
    /// Line breaks that were taken out of what is held.
    breaks: Vec<Break>,
    /// Whether line breaks are passed over.
    folds: bool,
    /// Backslashes at the end of what was pushed, which may begin an escaped line break.
    slashes: usize,
    /// An odd number of backslashes stands before the next byte.
    escaped: bool,
    pub(super) replaced: u64,
}

/// A line break that was taken out.
#[derive(Debug, Clone, Copy)]
struct Break {
    /// Before this byte.
    at: usize,
    /// So many backslashes before its letter; none for a real one.
    slashes: usize,
    letter: u8,
}

impl Known {
    /// Finds values as they are.
    pub(super) fn plain(inner: Option<Arc<Inner>>) -> Self {
        Self { inner, ..Self::default() }
    }

    /// Finds values that line breaks cut, real ones or escaped ones (`\n`, `\r`, with any number of backslashes: JSON
    /// within JSON). The breaks stay in the output. `inner` must hold needles that went through [`fold`].
    pub(super) fn folding(inner: Option<Arc<Inner>>) -> Self {
        Self { inner, folds: true, ..Self::default() }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.held.is_empty() && self.breaks.is_empty() && self.slashes == 0
    }

    /// Takes the next bytes and writes what is decided; everything at the end of the stream.
    pub(super) fn push(&mut self, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        let Some(inner) = self.inner.clone() else {
            out.extend_from_slice(bytes);
            return;
        };
        if !self.folds && self.held.is_empty() {
            let decided = self.decide(&inner, bytes, end, out);
            self.held.extend_from_slice(&bytes[decided..]);
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        if self.folds {
            self.fold_into(bytes, end, &mut held);
        } else {
            held.extend_from_slice(bytes);
        }
        let decided = if self.folds && self.breaks.is_empty() {
            // What is whole without a break was found before.
            let decided = if end { held.len() } else { inner.undecided(&held, 0) };
            self.plain_bytes(&held[..decided], out);
            decided
        } else {
            self.decide(&inner, &held, end, out)
        };
        held.drain(..decided);
        for held_break in &mut self.breaks {
            held_break.at -= decided;
        }
        self.held = held;
    }

    /// Appends `bytes` without their line breaks.
    fn fold_into(&mut self, bytes: &[u8], end: bool, held: &mut Vec<u8>) {
        let breaks = &mut self.breaks;
        self.slashes = split(self.slashes, bytes, end, &mut |part| match part {
            Part::Text(text) => held.extend_from_slice(text),
            Part::Slashes(n) => held.resize(held.len() + n, b'\\'),
            Part::Break(slashes, letter) => breaks.push(Break { at: held.len(), slashes, letter }),
        });
    }

    /// Writes what is decided of `bytes` and gives its length.
    fn decide(&mut self, inner: &Arc<Inner>, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let undecided = |from| if end { bytes.len() } else { inner.undecided(bytes, from) };
        let all = std::mem::take(&mut self.breaks);
        let mut breaks = all.as_slice();
        let mut at = 0;
        let mut limit = undecided(0);
        while let Some(found) = inner.search.find(&bytes[at..]) {
            let (start, stop) = (at + found.start(), at + found.end());
            // At `limit` a longer value may begin, and before a later match an earlier one.
            if start >= limit {
                break;
            }
            at = self.show(bytes, at, start, &mut breaks, out);
            // A break at the start of a value stands before it.
            self.show_breaks(&mut breaks, at, out);
            self.mask(out);
            self.show_breaks(&mut breaks, stop - 1, out);
            at = stop;
            if at > limit {
                limit = undecided(at);
            }
        }
        self.show(bytes, at, limit, &mut breaks, out);
        // What stands before the first byte that is held back is not held back itself.
        self.show_breaks(&mut breaks, limit, out);
        self.breaks = breaks.to_vec();
        limit
    }

    /// Writes `bytes[from..to]` with the breaks within. Gives `to`.
    fn show(
        &mut self,
        bytes: &[u8],
        mut from: usize,
        to: usize,
        breaks: &mut &[Break],
        out: &mut Vec<u8>,
    ) -> usize {
        while let Some(next) = breaks.first().filter(|b| b.at < to) {
            let at = next.at.max(from);
            self.plain_bytes(&bytes[from..at], out);
            self.show_breaks(breaks, at, out);
            from = at;
        }
        self.plain_bytes(&bytes[from..to], out);
        to
    }

    /// Writes the breaks up to a place.
    fn show_breaks(&mut self, breaks: &mut &[Break], to: usize, out: &mut Vec<u8>) {
        while let Some((next, rest)) = breaks.split_first().filter(|(b, _)| b.at <= to) {
            out.resize(out.len() + next.slashes, b'\\');
            out.push(next.letter);
            self.escaped = false;
            *breaks = rest;
        }
    }

    fn plain_bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
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

/// What a text is made of where line breaks are looked for.
enum Part<'a> {
    /// Neither a backslash nor a line break.
    Text(&'a [u8]),
    /// Backslashes that begin no line break.
    Slashes(usize),
    /// So many backslashes and `n` or `r`, or none and a real break.
    Break(usize, u8),
}

/// Splits `bytes`, which `before` backslashes precede, and gives the number of those at the end that are not yet
/// decided.
fn split(before: usize, bytes: &[u8], end: bool, give: &mut dyn FnMut(Part<'_>)) -> usize {
    let (mut slashes, mut at) = (before, 0);
    loop {
        let run = bytes[at..].iter().take_while(|b| **b == b'\\').count();
        slashes += run;
        at += run;
        match bytes.get(at) {
            None if !end => return slashes,
            None => {
                if slashes > 0 {
                    give(Part::Slashes(slashes));
                }
                return 0;
            }
            Some(letter @ (b'n' | b'r')) if slashes > 0 => {
                give(Part::Break(slashes, *letter));
                at += 1;
            }
            Some(_) if slashes > 0 => give(Part::Slashes(slashes)),
            Some(letter @ (b'\n' | b'\r')) => {
                give(Part::Break(0, *letter));
                at += 1;
            }
            Some(_) => {}
        }
        slashes = 0;
        let text = memchr::memchr3(b'\\', b'\n', b'\r', &bytes[at..]).unwrap_or(bytes.len() - at);
        if text > 0 {
            give(Part::Text(&bytes[at..at + text]));
            at += text;
        }
    }
}

/// Appends `bytes`, which `slashes` undecided backslashes precede, without line breaks. Gives the number of those that are
/// undecided now.
pub(super) fn fold_onto(slashes: usize, bytes: &[u8], out: &mut Vec<u8>) -> usize {
    split(slashes, bytes, false, &mut |part| match part {
        Part::Text(text) => out.extend_from_slice(text),
        Part::Slashes(n) => out.resize(out.len() + n, b'\\'),
        Part::Break(..) => {}
    })
}

/// `bytes` without line breaks, real or escaped.
pub(super) fn fold(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let slashes = fold_onto(0, bytes, &mut out);
    out.resize(out.len() + slashes, b'\\');
    out
}
