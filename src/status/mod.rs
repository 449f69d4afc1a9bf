//! Status comments: one comment per run and agent on an issue, pull request or merge request, written when the run
//! begins and edited in place when it ends; and the end of those whose run could not write it.
//!
//! `settings` says where and what for, `marker` is how a comment is known again, `body` what it says, `record` what
//! this host remembers of one that has no end yet, `job` writes one, `reconcile` ends the others. A comment that
//! cannot be written is a warning and nothing more.

mod body;
mod job;
mod marker;
mod reconcile;
mod record;
mod settings;

pub(crate) use job::{Ending, Job};
pub(crate) use reconcile::{Reconcile, reconcile};
pub(crate) use settings::{Asked, Number, is_link};
