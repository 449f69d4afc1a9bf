//! How much a sandbox may return.

use crate::plan::repo::names;

/// Budgets of one import. Past any of them the import is blocked.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Entries of a listing.
    pub listing_entries: usize,
    /// Bytes of a listing.
    pub listing_bytes: usize,
    /// Files that come back, objects of git included.
    pub files: usize,
    /// Bytes that come back.
    pub bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Refs that come back.
    pub refs: usize,
    /// Bytes of a text that describes refs or the index.
    pub text_bytes: u64,
    /// Depth of a path.
    pub depth: usize,
    /// Entries that the tree of a commit stands for, each as often as a path leads to it.
    pub tree_entries: u64,
}

/// What a run gets unless it is told otherwise: far above any real change, far below what fills a disk.
pub const DEFAULT: Limits = Limits {
    listing_entries: 2_000_000,
    listing_bytes: 1 << 30,
    files: 500_000,
    bytes: 8 << 30,
    file_bytes: 4 << 30,
    refs: 10_000,
    text_bytes: 256 << 20,
    depth: 128,
    tree_entries: 2_000_000,
};

impl Default for Limits {
    fn default() -> Self {
        DEFAULT
    }
}

/// Collects why an import is refused, so that everything is said at once.
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<String>);

impl Refusals {
    pub(super) fn add(&mut self, path: &[u8], why: impl std::fmt::Display) {
        self.0.push(format!("{}: {why}", names::shown(path)));
    }

    pub(super) fn say(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    /// Nothing, or one error with the whole list.
    pub(super) fn finish(self) -> crate::Result<()> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let more = match self.0.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        Err(crate::Error::new(
            crate::Code::ImportBlocked,
            format!("refused what the sandbox returned: {first}{more}"),
        )
        .help("nothing was taken over; the run directory has the log of the agent")
        .detail(self.0.iter().take(100).map(String::as_str).collect::<Vec<_>>().join("\n")))
    }
}
