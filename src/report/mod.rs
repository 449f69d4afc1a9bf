//! Outcome to exit code, console, `run.json`. Everything that is shown passes through here.

mod ci;
pub mod closing;
pub mod diff_runs;
pub mod diffstat;
mod error_report;
pub mod explain;
pub mod findings;
pub mod github;
pub mod gitlab;
pub mod html;
mod inline;
mod live;
pub mod markdown;
mod printer;
pub mod problem;
pub mod run_dir;
pub mod sanitize;
mod text;

pub use ci::Ci;
pub use live::Live;
pub use printer::{ColorChoice, Mark, Printer, Verbosity, note, written};
pub use sanitize::truncate;
pub use text::{bytes, duration, hex, last_lines};
