//! Text to [`Harness`]: reading, checking and expanding a harness directory. Pure but for reading files; every
//! problem is reported at once, with its file, line and column.
//!
//! The steps: [`find_dir`] → `Source` (a text that knows its places) → `yaml` (a tree with spans) → `raw` (typed
//! keys) → [`load()`] (paths resolved and checked, variables expanded) → [`Harness`].

mod check;
mod compose;
mod config;
mod directory;
mod env_file;
mod environment;
mod expand;
mod host_files;
mod keys;
mod load;
pub mod model;
pub mod problem;
mod profile;
mod provider;
mod raw;
mod reader;
mod show;
mod source;
mod validate;
mod values;
mod yaml;

pub use directory::{AgentSummary, find_dir, list_agents};
pub use env_file::read_env_files;
pub use environment::{DENIED, Environment, FULLSEND_DIR, FULLSEND_SANDBOX_IMAGE};
pub use load::{DEFAULT_SANDBOX_TIMEOUT, DEFAULT_TIMEOUT, Loaded, Overrides, Request, load};
pub use model::{
    Base, Effort, Forge, Harness, HostFile, Plugin, Profile, ProviderDef, ProviderUse, Runtime, Scope, Skill,
    Upload, Validation,
};
pub use show::show;
pub use validate::{Forges, Report, Scope as ValidateScope, validate};
