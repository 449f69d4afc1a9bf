//! The single place that spawns a child.
//!
//! Every child has: standard input from `/dev/null` unless stated, a process group of its own, bounded
//! capture (the last 64 KiB of each stream), an optional deadline, and a guard that kills the whole group when
//! the future that waits for it is dropped. A grandchild that keeps a pipe open never delays the end
//! (golang/go#13155 describes the kind).

mod capture;
mod child;
mod command;
mod detach;
mod groups;
mod locate;
pub mod mark;
pub mod scale;
pub mod trace;

pub use capture::Ring;
pub use child::Child;
pub use command::{Command, Ending, Failure, Output, Status, Stdin, Stream};
pub use detach::{detach, new_session};
pub use groups::{GroupEvent, observe, signal_group};
pub use locate::{locate, own_executable};
pub use rustix::process::Signal;
