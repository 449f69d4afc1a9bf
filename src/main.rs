//! Entry point: parse, run, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    fullsend::cli::main()
}
