//! The one integration target: a module per feature, each through the real binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![allow(clippy::print_stderr, reason = "a test that skips something says so")]
#![allow(unreachable_pub, reason = "helpers are shared between the modules of one binary")]

#[path = "../contract/mod.rs"]
mod contract;

mod agent_skills;
mod api_errors;
mod budgets;
mod ci;
mod claude;
mod cli;
mod codex;
mod compose;
mod contract_runs;
mod corpus;
mod debug_log;
mod docs;
mod dry_run;
mod economy;
mod endings;
mod environment;
mod fake;
mod faults;
mod feedback;
mod fleet;
mod harnesses;
mod hostile;
mod image_policy;
mod inputs;
mod install;
mod lifecycle;
mod limits;
mod live;
mod local;
mod model_stub;
mod opencode;
mod opencode_endings;
mod plan_digest;
mod prompts;
mod remote;
mod replay;
mod report;
mod reviewer;
mod roundtrip;
mod run_basic;
mod runner_entrypoint;
mod scan;
mod secrets;
mod servers;
mod status;
mod stub;
mod suite;
mod support;
mod telemetry;
mod terminal;
mod topology;
mod transfer;
mod validate;
mod wrapper;
