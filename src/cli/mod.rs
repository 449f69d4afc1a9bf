//! One file per subcommand: clap types and a call; no logic.

use std::process::ExitCode;

/// Parses the command line, runs the command, and returns the exit status.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
