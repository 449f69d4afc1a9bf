//! The one way to run git on the host.
//!
//! Git reads its configuration, hooks and environment as orders. Here it gets none from the user's, the
//! system's or a caller's environment, and what a repository's own configuration could make it execute is
//! switched off on the command line, where it beats every file.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::error::{Code, Error, Result};
use crate::process::{Command, Output, locate};

/// For calls that read or write a few files.
pub const QUICK: Duration = Duration::from_mins(2);
/// For calls that move objects.
pub const LONG: Duration = Duration::from_mins(15);
/// The most output that is taken from a listing, in bytes.
const MOST_OUTPUT: usize = 512 << 20;

/// Settings that make git run nothing but itself. `safe.directory` counts only where the user cannot be
/// tricked into it, which includes the command line; the checkout of a CI job often has another owner.
const NEUTRAL: &[&str] = &[
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "sequence.editor=false",
    "log.showSignature=false",
    "push.gpgSign=false",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=none",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=",
    "core.quotePath=true",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gpg.program=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "fetch.prune=false",
    "fetch.pruneTags=false",
    "remote.pushDefault=",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.graftFileDeprecated=false",
];

/// Settings whose value is a command, as git 2.47 documents them (git-config(1)); `*` stands for a name. Those that
/// [`NEUTRAL`] does not set belong to commands, or to options of commands, that this program never uses on a
/// repository with files: nothing here checks out, adds content, merges, or shows a difference of files.
pub(super) const COMMANDS: &[&str] = &[
    "alias.*",
    "browser.*.cmd",
    "core.alternaterefscommand",
    "core.askpass",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "credential.*.helper",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "difftool.*.cmd",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gc.recentobjectshook",
    "gpg.program",
    "gpg.*.program",
    "gpg.ssh.defaultkeycommand",
    "hook.*.command",
    "imap.tunnel",
    "interactive.difffilter",
    "man.*.cmd",
    "merge.*.driver",
    "mergetool.*.cmd",
    "pager.*",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "sendemail.cccmd",
    "sendemail.sendmailcmd",
    "sendemail.tocmd",
    "sequence.editor",
    "submodule.*.update",
    "tar.*.command",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
];

/// Whether the value of a setting is a command. Section and variable in `key` are lower case, as git prints them.
pub(super) fn is_command(key: &[u8]) -> bool {
    let Ok(key) = std::str::from_utf8(key) else { return false };
    COMMANDS.iter().any(|known| match known.split_once('*') {
        Some((head, tail)) => {
            key.len() > head.len() + tail.len() && key.starts_with(head) && key.ends_with(tail)
        }
        None => *known == key,
    })
}

/// A git that obeys nobody: `git_dir` is stated, so that nothing is discovered; `cwd` is its directory.
pub fn neutral(label: &str, git_dir: &Path, cwd: &Path) -> Command {
    let mut command = bare(label, cwd);
    for setting in NEUTRAL {
        command = command.arg("-c").arg(setting);
    }
    let mut option = std::ffi::OsString::from("--git-dir=");
    option.push(git_dir);
    command.arg(option)
}

/// The git of this machine, looked up once; where there is none, the name, so that the error names it.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| locate("git", "").unwrap_or_else(|_| "git".into()))
}

/// The same environment without a repository, for `git config --file` and the like.
pub fn bare(label: &str, cwd: &Path) -> Command {
    let mut command = Command::new(label, program()).env_clear();
    for key in ["PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME"] {
        if let Some(value) = std::env::var_os(key) {
            command = command.env(key, value);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PROTOCOL_FROM_USER", "0")
        .env("GIT_COMMITTER_NAME", "fullsend")
        .env("GIT_COMMITTER_EMAIL", "fullsend@localhost")
        .env("GIT_AUTHOR_NAME", "fullsend")
        .env("GIT_AUTHOR_EMAIL", "fullsend@localhost")
        .current_dir(cwd)
        .deadline(QUICK)
        .keep_stdout(MOST_OUTPUT)
}

/// Runs to the end and returns standard output.
///
/// # Errors
/// [`Code::GitFailed`] with git's own words when the status is not 0.
pub async fn run(command: Command) -> Result<Vec<u8>> {
    let label = command.label().to_owned();
    let output = command.output().await?;
    if !output.status.success() {
        return Err(failed(&label, &output));
    }
    if output.stdout_truncated {
        return Err(Error::new(Code::GitFailed, format!("{label} printed more than {MOST_OUTPUT} bytes")));
    }
    Ok(output.stdout)
}

/// The error for a call that ended badly.
pub fn failed(label: &str, output: &Output) -> Error {
    Error::new(Code::GitFailed, format!("{label} ended with {}", output.status)).detail(output.stderr_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_environment_steers_git() {
        let command = neutral("git status", Path::new("/r/.git"), Path::new("/r"));
        let argv: Vec<_> = command.argv().into_iter().map(|a| a.into_string().unwrap()).collect();
        assert!(Path::new(&argv[0]).ends_with("git"));
        assert!(argv.contains(&"core.hooksPath=/dev/null".to_owned()));
        assert_eq!(argv.last().unwrap(), "--git-dir=/r/.git");
    }

    #[test]
    fn settings_that_run_programs_are_known() {
        for yes in [
            "filter.lfs.clean",
            "diff.a.b.textconv",
            "alias.st",
            "core.sshcommand",
            "credential.https://h/.helper",
        ] {
            assert!(is_command(yes.as_bytes()), "{yes}");
        }
        for no in ["filter.lfs.required", "core.filemode", "alias.", "diff.renames"] {
            assert!(!is_command(no.as_bytes()), "{no}");
        }
        // Every one of a fixed name is one that git knows; a typing error would switch a check off.
        let known = std::process::Command::new("git").args(["help", "--config"]).output().unwrap();
        let known = String::from_utf8(known.stdout).unwrap().to_lowercase();
        // Of later releases than the oldest that is in use, and of the mail commands that may not be installed.
        let later = ["gc.recentobjectshook", "sendemail.sendmailcmd"];
        for name in COMMANDS.iter().filter(|n| !n.contains('*') && !later.contains(n)) {
            assert!(known.lines().any(|line| line == *name), "{name}");
        }
    }

    #[tokio::test]
    async fn a_failure_carries_the_words_of_git() {
        let dir = tempfile::tempdir().unwrap();
        let command = neutral("git log", &dir.path().join("none"), dir.path()).arg("log");
        let error = run(command).await.unwrap_err();
        assert_eq!(error.code(), Code::GitFailed);
        assert!(error.detail_text().unwrap().contains("not a git repository"), "{error:?}");
    }

    #[tokio::test]
    async fn a_poisoned_repository_runs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join("marker");
        let repo = dir.path().join("r");
        let git = |args: &[&str]| {
            let ok = std::process::Command::new("git").arg("-C").arg(&repo).args(args).output().unwrap();
            assert!(ok.status.success(), "{ok:?}");
        };
        std::fs::create_dir(&repo).unwrap();
        git(&["init", "-q"]);
        std::fs::write(repo.join("a"), "a").unwrap();
        git(&["add", "a"]);
        let touch = format!("touch {}", marker.display());
        git(&["config", "core.fsmonitor", &touch]);
        git(&["config", "core.hooksPath", &repo.join("hooks").to_string_lossy()]);
        git(&["config", "diff.external", &touch]);
        let out = run(neutral("git status", &repo.join(".git"), &repo).args(["status", "--porcelain"]))
            .await
            .unwrap();
        assert_eq!(out, b"A  a\n");
        assert!(!marker.exists());
    }
}
