//! The embedded backend itself; one file per idea.

use super::{BINDS_ENV, PROGRAMS_ENV, STATE_ENV, VERSION};

mod args;
mod bridge;
mod bubble;
mod calls;
mod etc;
mod fail;
mod forward;
mod identity;
mod join;
mod launch;
mod policy;
mod preflight;
mod procs;
mod profile;
mod provider;
mod record;
mod remove;
mod sandbox;
mod show;
mod spool;
mod ssh;
mod state;

pub(super) use calls::main;
pub(super) use preflight::preflight;
pub(super) use sandbox::binds;
