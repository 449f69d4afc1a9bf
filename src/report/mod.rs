//! Outcome to exit code, console, `run.json`. Everything that is shown passes through here.

mod ci;
mod error_report;
pub mod explain;
pub mod findings;
mod printer;
pub mod problem;
pub mod sanitize;
mod text;

pub use ci::Ci;
pub use printer::{ColorChoice, Mark, Printer, Verbosity};
pub use text::{bytes, duration, hex, last_lines};
