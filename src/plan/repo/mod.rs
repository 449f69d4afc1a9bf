//! The repository on the host: what it is, and what of it goes into the sandbox.
//!
//! Everything inside a repository is bytes. Linked worktrees, submodule checkouts, shallow, sparse and partial
//! clones, alternates, SHA-256 and reftable are taken; in the sandbox each is one ordinary repository with one
//! `.git` directory. What cannot be is refused before anything is created, with what to do.

pub mod names;

mod agent_config;
mod config;
mod discover;
mod gitdir;
mod manifest;
mod pack;
mod refs;
mod topology;
mod walk;

pub use agent_config::{AgentConfig, agent_config, agent_config_notes};
pub(crate) use config::quoted;
pub use config::{Config, reduced};
pub use discover::{Head, HostRepo, RefBackend};
pub(crate) use gitdir::is_loose_object;
pub use gitdir::{GitFile, GitSource};
pub use manifest::{Entry, Kind, LeftOut, Manifest, UploadOptions, Why};
pub(crate) use pack::filtered;
pub(crate) use refs::{Loose, packed_text, parse_loose, parse_packed};
pub use refs::{ObjectFormat, Oid, RefStore, valid_ref_name};
pub use topology::Kind as RepoKind;

/// A file of the repository that cannot be read, although it is there.
fn unreadable(error: &std::io::Error) -> crate::Error {
    crate::Error::new(crate::Code::RepoInvalid, format!("the repository cannot be read: {error}"))
        .help("make all of it readable for this user (`chown -R`, `chmod -R u+rX`), or name another with --target-repo")
}

#[cfg(test)]
mod tests;
