//! The untrusted tree of the sandbox to the host.
//!
//! ```text
//!  listing before ─┐
//!                  ├─ listing::diff → Delta → (rsync fetches it into an empty directory) ─┐
//!  listing after ──┘                                                                     ▼
//!                                   inspect → quarantine (git objects) → stage → apply
//! ```
//! Nothing that the sandbox wrote is ever run, obeyed or followed: names and links are checked before they
//! are used, git objects enter by a checked fetch out of a repository that we initialise, refs and index are
//! rebuilt from text.

pub mod git;
pub mod index;
pub mod inspect;
pub mod limits;
pub mod links;
pub mod listing;

mod apply;
mod change_limits;
mod change_list;
mod copy;
mod delta;
mod dotgit;
mod encodings;
mod filters;
mod index_links;
mod nested;
mod ops;
mod outcome;
mod quarantine;
mod refs;
mod report;
mod search;
mod staged;
mod steer;
mod tree;
mod weight;
mod whole;

#[cfg(test)]
mod tests;

pub use apply::{Applied, apply};
pub use delta::{Delta, GitDelta, GitState, check_arrived, diff};
pub use inspect::check_names;
pub use limits::Limits;
pub use listing::Listing;
pub use nested::Nested;
pub use ops::{Change, ChangeKind};
pub use outcome::Import;
#[cfg(test)]
pub(crate) use quarantine::alternate_line;
pub use refs::{RefChange, RefUpdate};
pub use staged::{StageInput, Staged, StagedTree, place, stage};
