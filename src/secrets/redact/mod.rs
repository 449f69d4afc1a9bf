//! Keeps this run's secret values out of everything that is shown or stored.
//!
//! The [`Registry`] knows the values in the forms that they take on the way (JSON-escaped, URL-encoded, base64
//! …); the [`Redactor`] replaces them in a stream. What comes out does not depend on how the stream was cut.

mod forms;
mod json;
mod known;
mod prefixes;
mod search;
mod shapes;
mod stream;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::secret::{MASK, Secret};

pub use forms::MIN_LEN;
pub use search::Searcher;
pub(crate) use shapes::find as find_tokens;
pub use stream::Redactor;

/// Up to so many bytes of needles the automaton is the fast, large one.
const DENSE: usize = 32 * 1024;

/// The secret values of a run, ready to be searched for. Cheap to clone.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Option<Arc<Inner>>,
    /// The values of the run.
    values: Arc<Vec<Secret>>,
    /// A value that is only there to see that the search works.
    canary: Option<Arc<Secret>>,
}

struct Inner {
    search: AhoCorasick,
    /// Sorted, each once.
    needles: Vec<Vec<u8>>,
    /// Whether some needle begins with this byte.
    first: [bool; 256],
    longest: usize,
}

impl Registry {
    /// Registers values. One of less than [`MIN_LEN`] bytes would match by chance and is left out, as an empty
    /// one is.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a Secret>) -> Self {
        Self::with_canary(values.into_iter().cloned().collect(), None)
    }

    pub(super) fn with_canary(mut values: Vec<Secret>, canary: Option<Secret>) -> Self {
        let mut seen = BTreeSet::new();
        values.retain(|v| v.expose().trim().len() >= MIN_LEN && seen.insert(v.expose().to_owned()));
        let inner = Self::compile(values.iter().chain(&canary));
        Self { inner, values: Arc::new(values), canary: canary.map(Arc::new) }
    }

    fn compile<'a>(values: impl Iterator<Item = &'a Secret>) -> Option<Arc<Inner>> {
        let mut needles = BTreeSet::new();
        for value in values {
            forms::forms(value.expose().as_bytes(), &mut needles);
        }
        // What line breaks are taken out of is searched for these.
        let folded: Vec<_> = needles.iter().map(|n| known::fold(n)).filter(|n| n.len() >= MIN_LEN).collect();
        needles.extend(folded);
        let needles: Vec<_> = needles.into_iter().collect();
        if needles.is_empty() {
            return None;
        }
        let bytes: usize = needles.iter().map(Vec::len).sum();
        // Building fails only beyond 2^31 states, that is gigabytes of secrets.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // Twice as fast, and as large as a few megabytes for so many bytes.
            .kind((bytes <= DENSE).then_some(AhoCorasickKind::DFA))
            .build(&needles)
            .expect("the secrets of a run fit into an automaton");
        let mut first = [false; 256];
        for needle in &needles {
            first[usize::from(needle[0])] = true;
        }
        let longest = needles.iter().map(Vec::len).max().unwrap_or(0);
        Some(Arc::new(Inner { search, needles, first, longest }))
    }

    /// The values that count, each once.
    pub fn values(&self) -> &[Secret] {
        &self.values
    }

    pub(super) fn canary(&self) -> Option<&Secret> {
        self.canary.as_deref()
    }

    /// Breaks the registry, to see that it notices.
    #[cfg(test)]
    pub(super) fn forget_what_is_searched(&mut self) {
        self.inner = None;
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.inner.is_none()
    }

    /// The length of the longest form, in bytes.
    fn longest(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.longest)
    }

    /// Whether a value is in `bytes`, in any form.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.search.is_match(bytes))
    }

    /// Whether there is anything to replace in `bytes`: a value, also one that line breaks cut, or a token that its
    /// shape tells.
    pub fn shows(&self, bytes: &[u8]) -> bool {
        let known = |bytes: &[u8]| self.is_in(bytes);
        known(bytes) || !self.is_empty() && known(&known::fold(bytes)) || shapes::is_in(bytes)
    }

    /// `bytes` without the values, and how many were replaced.
    pub fn redact<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u64) {
        if !self.shows(bytes) {
            return (Cow::Borrowed(bytes), 0);
        }
        let mut redactor = Redactor::new(self);
        let mut out = redactor.push(bytes);
        out.extend(redactor.flush());
        (Cow::Owned(out), redactor.replaced())
    }

    /// `text` without the secrets, and without their beginnings where it was cut (see [`Registry::hide_cuts`]).
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()).0 {
            Cow::Borrowed(_) => self.hide_cuts(text),
            Cow::Owned(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                Cow::Owned(self.hide_cuts(&text).into_owned())
            }
        }
    }

    /// `text`, with the beginnings of secrets replaced that stand before an ellipsis: there something was cut off
    /// for display. Of a secret at most three characters are left.
    pub fn hide_cuts<'a>(&self, text: &'a str) -> Cow<'a, str> {
        const FEW: usize = 4;
        const CUT: char = '…';
        if !text.contains(CUT) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        for part in text.split_inclusive(CUT) {
            let Some(before) = part.strip_suffix(CUT) else {
                out.push_str(part);
                continue;
            };
            let bytes = before.as_bytes();
            let known = self.inner.as_ref().map_or(bytes.len(), |inner| inner.undecided(bytes, 0));
            let from = known.min(shapes::undecided(bytes));
            if bytes.len() - from >= FEW && before.is_char_boundary(from) {
                out.push_str(&before[..from]);
                out.push_str(MASK);
            } else {
                out.push_str(before);
            }
            out.push(CUT);
        }
        Cow::Owned(out)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.inner.as_ref().map_or(0, |inner| inner.needles.len());
        write!(f, "Registry({forms} forms)")
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inner({} forms)", self.needles.len())
    }
}

impl Inner {
    /// The first place from `from` where a value may begin that is not yet whole: the bytes from there to the
    /// end are the beginning of a needle, and more of it may follow.
    fn undecided(&self, bytes: &[u8], from: usize) -> usize {
        let start = from.max(bytes.len().saturating_sub(self.longest.saturating_sub(1)));
        (start..bytes.len())
            .find(|at| self.first[usize::from(bytes[*at])] && self.is_prefix(&bytes[*at..]))
            .unwrap_or(bytes.len())
    }

    /// Whether `part` is the beginning of a needle, and shorter than it.
    fn is_prefix(&self, part: &[u8]) -> bool {
        // All needles that begin with `part` follow each other, the needle `part` itself first of all.
        let at = self.needles.partition_point(|needle| needle.as_slice() <= part);
        self.needles.get(at).is_some_and(|needle| needle.starts_with(part))
    }
}
