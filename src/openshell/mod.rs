//! A typed client of the `openshell` command line: the only place that builds an `openshell` argv.
//!
//! What differs between releases is data in [`dialect`]; the argv builders in [`argv`] are pure, so that a dry
//! run shows the very words that a run would use. Error texts are matched on a normalised form ([`text`]),
//! because the CLI wraps its messages at 80 columns and has only three exit statuses (observed on 0.0.83,
//! 0.0.110 and 0.0.112).

pub mod argv;
mod client;
mod create;
pub mod dialect;
mod gateway;
pub mod names;
mod probe;
mod profile;
mod provider;
mod rows;
mod sandbox;
mod spec;
mod target;
pub mod text;

pub use client::{ChildEnv, Deadlines, Openshell, Where};
pub use create::CreateError;
pub use dialect::Dialect;
pub use profile::Synced;
pub use provider::Created;
pub use rows::{Phase, ProviderRow, SandboxRow, SandboxState};
pub use spec::{CreateSpec, ProviderSpec, credential_key_problem};
pub use target::Target;
