//! The one integration target: a module per feature, each through the real binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![allow(clippy::print_stderr, reason = "a test that skips something says so")]
#![allow(unreachable_pub, reason = "helpers are shared between the modules of one binary")]

#[path = "../contract/mod.rs"]
mod contract;

mod claude;
mod cli;
mod compose;
mod contract_runs;
mod corpus;
mod dry_run;
mod economy;
mod fake;
mod faults;
mod fleet;
mod harnesses;
mod inputs;
mod lifecycle;
mod local;
mod model_stub;
mod plan_digest;
mod roundtrip;
mod run_basic;
mod secrets;
mod stub;
mod support;
mod validate;
mod wrapper;
