//! `fullsend run <agent>`: one harness, one agent, one OpenShell sandbox, and the results back on the
//! host without trusting the sandbox.
//!
//! Data flows one way:
//!
//! ```text
//!  harness dir + flags + env
//!         │  harness::load          text → Harness            (pure; every problem reported at once)
//!         ▼
//!      Harness
//!         │  plan::build            Harness + Dialect → Plan  (pure; every decision before the first side effect)
//!         ▼
//!       Plan ──────────────► `--dry-run` renders this value; `run` executes this same value
//!         │  run::execute           Plan → Outcome            (the only part that touches the world)
//!         ▼
//!      Outcome
//!         │  report::*              Outcome → exit code, run.json, console
//! ```
//!
//! Four doors lead to the world, and nothing else opens one: [`process`] spawns children, [`openshell`]
//! speaks to the `openshell` CLI, [`remote`] speaks ssh, scp and rsync to one sandbox, [`http`] opens HTTP
//! connections; [`forge`] speaks the APIs of GitHub and GitLab through it. [`fetch`] brings what a harness takes from URLs, before it is loaded.

pub mod agent;
pub mod cli;
pub mod error;
pub mod fetch;
mod fleet;
pub mod forge;
pub mod harness;
pub mod http;
pub mod import;
pub mod local;
pub mod openshell;
pub mod output_check;
pub mod plan;
pub mod process;
pub mod remote;
pub mod report;
pub mod run;
pub mod scan;
pub mod secrets;
mod status;
mod telemetry;

pub use error::{Code, Error, Result};
