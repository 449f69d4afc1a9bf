//! Outcome to exit code, console, `run.json`. Everything that is shown passes through here.

mod text;

pub use text::duration;
