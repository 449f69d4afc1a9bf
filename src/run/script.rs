//! Running a script of the harness on the host.
//!
//! These scripts are trusted: they belong to the harness directory, and they hold the tokens that the agent must
//! not have. They see the whole environment except the variables with which a CI job can mint new tokens.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use camino::Utf8Path;

use super::shown::Shown;
use crate::error::{Code, Error, Result};
use crate::harness::DENIED;
use crate::process::{Command, Failure, Output, Stream};
use crate::report::Printer;
use crate::secrets::Secret;

/// A script to run.
#[derive(Debug)]
pub(super) struct Script<'a> {
    /// What it is named in messages, e.g. `pre-script`.
    pub label: &'a str,
    /// The file.
    pub path: &'a Utf8Path,
    /// Its working directory.
    pub cwd: &'a Path,
    /// How long it may take.
    pub deadline: Duration,
    /// What it means when it takes longer.
    pub late: Code,
}

/// What a script sees besides the environment of this process; the later one wins.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptEnv<'a> {
    /// From `--env-file`.
    pub file_env: &'a BTreeMap<String, String>,
    /// From the harness.
    pub runner_env: &'a BTreeMap<String, Secret>,
}

impl Script<'_> {
    /// Runs it to its end and shows what it prints, line by line. An exit status is not judged here.
    pub(super) async fn run(
        &self,
        env: &ScriptEnv<'_>,
        extra: &[(&str, OsString)],
        ui: &Printer,
    ) -> Result<Output> {
        let command = command(self.label, self.path)?.current_dir(self.cwd).deadline(self.deadline);
        show(with_env(command, env, extra), ui).await.map_err(|failure| late(failure, self.late, "script"))
    }
}

/// The command that runs a script of the harness.
pub(super) fn command(label: &str, path: &Utf8Path) -> Result<Command> {
    Ok(match interpreter(path)? {
        None => Command::new(label, path),
        Some((program, arg)) => Command::new(label, program).args(arg).arg(path),
    })
}

/// Runs a line of shell as a script of the harness.
pub(super) async fn shell(
    label: &str,
    text: &str,
    deadline: Duration,
    env: &ScriptEnv<'_>,
    ui: &Printer,
) -> Result<Output> {
    let command = Command::new(label, "sh").arg("-c").arg(text).deadline(deadline);
    show(with_env(command, env, &[]), ui)
        .await
        .map_err(|failure| late(failure, Code::PreScript, "preflight_check"))
}

/// A script that did not end is the script's failure.
fn late(failure: Failure, code: Code, name: &str) -> Error {
    match &failure {
        Failure::Deadline { .. } => Error::new(code, format!("the {failure}"))
            .help(format!("its output stands above; `deadlines.{name}` in the harness gives it more time")),
        _ => failure.into(),
    }
}

/// What `git rev-parse --local-env-vars` names (git 2.47) save the settings: a run that a git hook or alias starts
/// inherits them, and a script's git would then work on that repository instead of the one it is given.
const GIT_PLACES: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// What a script of the harness sees.
pub(super) fn with_env(mut command: Command, env: &ScriptEnv<'_>, extra: &[(&str, OsString)]) -> Command {
    command = GIT_PLACES.iter().fold(command, Command::env_remove);
    for (key, value) in env.file_env {
        command = command.env(key, value);
    }
    for (key, value) in env.runner_env {
        command = command.env(key, value.expose());
    }
    for (key, value) in extra {
        command = command.env(key, value);
    }
    DENIED.iter().fold(command, Command::env_remove)
}

async fn show(command: Command, ui: &Printer) -> Result<Output, Failure> {
    let (mut out, mut err) = (Shown::of_script(ui), Shown::of_script(ui));
    let output = command
        .stream(|stream, chunk| {
            let shown = match stream {
                Stream::Stdout => &mut out,
                Stream::Stderr => &mut err,
            };
            shown.bytes(chunk);
            // Scripts may wait for long after a line; it is to be seen meanwhile.
            if chunk.ends_with(b"\n") {
                shown.settle();
            }
        })
        .await?;
    out.end();
    err.end();
    Ok(output)
}

/// A script that lost its executable bit (archives and some APIs drop it) is run by the interpreter that its first
/// line names; the file itself is not touched.
fn interpreter(path: &Utf8Path) -> Result<Option<(OsString, Vec<OsString>)>> {
    if rustix::fs::access(path.as_std_path(), rustix::fs::Access::EXEC_OK).is_ok() {
        return Ok(None);
    }
    let failed = |what: String| {
        Error::new(Code::FileType, what).help("make it executable (chmod +x), or give it a #! line")
    };
    let file = fs_err::File::open(path).map_err(|e| failed(format!("{path} cannot be run: {e}")))?;
    let mut first = Vec::new();
    let _ = std::io::Read::take(BufReader::new(file), 256).read_until(b'\n', &mut first);
    let first = String::from_utf8_lossy(&first);
    let mut words = first.strip_prefix("#!").unwrap_or("").trim().splitn(2, char::is_whitespace);
    let program = words.next().filter(|w| !w.is_empty());
    let program = program.ok_or_else(|| failed(format!("{path} is not executable and has no #! line")))?;
    let args = words.next().map(str::trim).filter(|a| !a.is_empty()).map(OsString::from);
    Ok(Some((program.into(), args.into_iter().collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_without_the_bit_runs_by_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("s.sh");
        fs_err::write(&path, "#!/usr/bin/env  bash\nexit 0\n").unwrap();
        let found = interpreter(&path).unwrap().unwrap();
        assert_eq!(found, ("/usr/bin/env".into(), vec!["bash".into()]));
        fs_err::write(&path, "echo\n").unwrap();
        assert_eq!(interpreter(&path).unwrap_err().code(), Code::FileType);
    }
}
