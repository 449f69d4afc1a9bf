//! Finding programs.

use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};

/// The absolute path of a program: a name is looked up on PATH, anything with a `/` is taken as it stands.
///
/// # Errors
/// [`Code::ToolMissing`] with `fix` as the thing to do.
pub fn locate(program: impl AsRef<Path>, fix: &str) -> Result<PathBuf> {
    let program = program.as_ref();
    which::which(program)
        .map_err(|_| Error::new(Code::ToolMissing, format!("{} was not found", program.display())).help(fix))
}

/// The absolute path of this executable.
pub fn own_executable() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| Error::io("cannot find the path of this program", &e))
}
