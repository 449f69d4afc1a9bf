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
mod fields;
mod host_files;
pub mod image_policy;
mod keys;
mod lint;
mod load;
pub mod model;
mod notifications;
pub mod problem;
mod profile;
mod provider;
mod raw;
mod reader;
pub mod remote;
mod security;
pub(crate) mod services;
mod show;
mod source;
mod syntax;
mod validate;
mod values;
mod yaml;

pub use directory::{AgentSummary, find_dir, list_agents};
pub use env_file::read_env_files;
pub use environment::{DENIED, Environment, FULLSEND_DIR, FULLSEND_SANDBOX_IMAGE};
pub use fields::reference::page as fields_page;
pub use fields::schema::schema;
pub use keys::Format as SchemaFormat;
pub(crate) use keys::nearest;
pub(crate) use load::budgets::{MAX_PROMPT, usd};
pub use load::{DEFAULT_SANDBOX_TIMEOUT, DEFAULT_TIMEOUT, Loaded, Overrides, Request, attempt, load};
pub use model::{
    Base, Budgets, ChangeLimits, Effort, FailMode, FeedbackMode, Forge, Harness, HostFile, OnRetry, Plugin,
    Profile, ProviderDef, ProviderUse, Runtime, Scope, Security, Skill, Upload, Validation,
};
pub use notifications::{Completion, Notifications, notifications};
pub use show::{attempt as attempt_show, show};
pub use validate::{Forges, Report, Scope as ValidateScope, attempt as attempt_validate, validate};
pub(crate) use validate::{Locked, attempt_lock};
