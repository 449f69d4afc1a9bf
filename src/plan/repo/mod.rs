//! The repository on the host: what it is, and what of it goes into the sandbox.
//!
//! Everything inside a repository is bytes. Only ordinary repositories are taken for now: one `.git`
//! directory, loose and packed refs, its own objects; shallow clones and SHA-256 are fine. Linked worktrees,
//! submodule checkouts, partial and sparse clones, alternates and reftable are refused before anything is
//! created, with the command that makes them ordinary.

pub mod names;

mod config;
mod discover;
mod gitdir;
mod manifest;
mod refs;
mod walk;

pub(crate) use config::quoted;
pub use config::{Config, reduced};
pub use discover::{Head, HostRepo};
pub(crate) use gitdir::is_loose_object;
pub use gitdir::{GitFile, GitSource};
pub use manifest::{Entry, Kind, LeftOut, Manifest, UploadOptions, Why};
pub(crate) use refs::{Loose, packed_text, parse_loose, parse_packed};
pub use refs::{ObjectFormat, Oid, RefStore, valid_ref_name};

#[cfg(test)]
mod tests;
