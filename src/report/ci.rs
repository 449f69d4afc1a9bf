//! Which CI system reads the log.

use crate::error::{Code, Error, Result};

/// The reader of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ci {
    /// A person or a file.
    None,
    /// GitHub Actions: `::` commands in the log steer the runner.
    GitHub,
    /// GitLab CI: `section_start` markers fold the log.
    GitLab,
}

impl Ci {
    /// Reads the variables that the CI systems promise to set.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        let is_true = |name: &str| env(name).is_some_and(|v| v == "true");
        if is_true("GITHUB_ACTIONS") {
            Ci::GitHub
        } else if is_true("GITLAB_CI") {
            Ci::GitLab
        } else {
            Ci::None
        }
    }

    /// Refuses a GitLab job that shares its machine and its user with other jobs: GitLab Runner sets
    /// `CI_SHARED_ENVIRONMENT` for the shell and ssh executors (`CI_DISPOSABLE_ENVIRONMENT` for the others).
    ///
    /// # Errors
    /// [`Code::SharedExecutor`].
    pub fn refuse_shared(self, env: impl Fn(&str) -> Option<String>) -> Result<()> {
        if self != Ci::GitLab || env("CI_SHARED_ENVIRONMENT").is_none_or(|v| v != "true") {
            return Ok(());
        }
        Err(Error::new(
            Code::SharedExecutor,
            "this GitLab job runs on the shell or ssh executor, where all jobs share one user and its files",
        )
        .help(
            "use a runner with the docker or kubernetes executor; on a runner that only jobs you trust use, pass \
             --allow-shell-executor",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shared_machine_of_gitlab_is_refused() {
        let shared = |name: &str| (name == "CI_SHARED_ENVIRONMENT").then(|| "true".to_owned());
        assert_eq!(Ci::GitLab.refuse_shared(shared).unwrap_err().code(), Code::SharedExecutor);
        Ci::GitLab.refuse_shared(|_| None).unwrap();
        Ci::GitHub.refuse_shared(shared).unwrap();
        Ci::None.refuse_shared(shared).unwrap();
    }
}
