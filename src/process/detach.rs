//! Starting a process that outlives this one.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use super::command::Failure;

/// Starts a program that nobody waits for: it inherits standard input, its output goes nowhere, and it stays when
/// this process ends. Used for the second half of a double fork; the program itself calls [`new_session`].
pub fn detach(program: &Path, args: &[impl AsRef<OsStr>]) -> Result<(), Failure> {
    std::process::Command::new(program)
        .args(args)
        .stdin(Stdio::inherit())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(|error| Failure::NotRun { program: program.display().to_string(), error })
}

/// Makes this process the leader of a session of its own, so that no terminal and no process group of its
/// starter can signal it.
pub fn new_session() -> std::io::Result<()> {
    rustix::process::setsid().map(drop).map_err(Into::into)
}
