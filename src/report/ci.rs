//! Which CI system reads the log.

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
}
