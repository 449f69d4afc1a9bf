//! Everything that happens over ssh: one multiplexed connection to one sandbox, and what travels on it.
//!
//! No other module builds an `ssh`, `scp` or `rsync` argv. The ssh configuration that OpenShell prints is text
//! from outside: it is parsed by an allow-list and written anew ([`ssh_config`]). The master connection is a
//! supervised foreground child ([`Session`]), and clients cannot connect on their own: without the master they
//! fail at once.

mod account;
pub mod argv;
mod copy;
mod fetch;
mod rsync;
mod session;
pub mod ssh_config;
mod supervise;
#[cfg(test)]
mod supervisor_tests;
mod watch;

pub use account::check_account;
pub use copy::{Pushed, Way};
pub use fetch::{Budget, FetchSpec, Fetched};
pub use rsync::Rsync;
pub use session::{OpenSpec, Session};
pub use supervise::{
    Ended, Exit, Heard, Hurry, Launch, MOST, SUPERVISOR, follow_rest, run_agent, stop, sweep,
};
