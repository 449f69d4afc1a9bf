//! Calling the embedded backend.

use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Writes to standard output; a reader that is gone is no error.
pub(crate) fn say_out(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes to standard error.
pub(crate) fn say_err(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn command<S: AsRef<str>>(args: &[S]) -> std::io::Result<Command> {
    let target = std::env::var_os("FULLSEND_WRAP_TARGET").ok_or_else(|| {
        std::io::Error::new(std::io::ErrorKind::NotFound, "FULLSEND_WRAP_TARGET is not set")
    })?;
    let mut command = Command::new(target);
    command.arg("openshell").args(args.iter().map(AsRef::as_ref));
    Ok(command)
}

/// Becomes the backend.
pub(crate) fn become_it<S: AsRef<str>>(args: &[S]) -> std::io::Result<i32> {
    Err(command(args)?.exec())
}

/// Runs the backend with the caller's streams.
pub(crate) fn pass<S: AsRef<str>>(args: &[S]) -> std::io::Result<i32> {
    let status = command(args)?.status()?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// Runs the backend and takes what it prints.
pub(crate) fn take<S: AsRef<str>>(args: &[S]) -> std::io::Result<Output> {
    command(args)?.stdin(Stdio::null()).output()
}

/// The JSON that a call prints; `Null` when it fails.
pub(crate) fn json<S: AsRef<str>>(args: &[S]) -> std::io::Result<Value> {
    Ok(serde_json::from_slice(&take(args)?.stdout).unwrap_or(Value::Null))
}

/// Repeats what a call printed.
pub(crate) fn repeat(output: &Output) -> i32 {
    let _ = std::io::stdout().write_all(&output.stdout);
    let _ = std::io::stderr().write_all(&output.stderr);
    output.status.code().unwrap_or(1)
}
