//! Keeps this run's secret values out of everything that is shown or stored.
//!
//! The [`Registry`] knows the values in the forms that they take on the way (JSON-escaped, URL-encoded, base64
//! …); the [`Redactor`] replaces them in a stream. What comes out does not depend on how the stream was cut.

mod forms;
mod search;
mod stream;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::secret::{MASK, Secret};

pub use forms::MIN_LEN;
pub use search::Searcher;
pub use stream::Redactor;

/// The secret values of a run, ready to be searched for. Cheap to clone.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Option<Arc<Inner>>,
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
        let mut needles = BTreeSet::new();
        for value in values {
            forms::forms(value.expose().as_bytes(), &mut needles);
        }
        let needles: Vec<_> = needles.into_iter().collect();
        if needles.is_empty() {
            return Self::default();
        }
        // Building fails only beyond 2^31 states, that is gigabytes of secrets.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&needles)
            .expect("the secrets of a run fit into an automaton");
        let mut first = [false; 256];
        for needle in &needles {
            first[usize::from(needle[0])] = true;
        }
        let longest = needles.iter().map(Vec::len).max().unwrap_or(0);
        Self { inner: Some(Arc::new(Inner { search, needles, first, longest })) }
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

    /// `bytes` without the values, and how many were replaced.
    pub fn redact<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, u64) {
        if !self.is_in(bytes) {
            return (Cow::Borrowed(bytes), 0);
        }
        let mut redactor = Redactor::new(self);
        let mut out = redactor.push(bytes);
        out.extend(redactor.flush());
        (Cow::Owned(out), redactor.replaced())
    }

    /// `text` without the values.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()).0 {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = self.inner.as_ref().map_or(0, |inner| inner.needles.len());
        write!(f, "Registry({forms} forms)")
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
