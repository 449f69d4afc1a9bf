//! Where a status comment goes, by the command line, the environment of the job, and `config.yaml`.

use camino::Utf8PathBuf;

use crate::forge::{Kind, Platform, Site, Thread, is_repo};
use crate::harness::{self, Completion, Environment, Forge, Notifications};

/// What the command line says about status comments.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The repository.
    pub repo: Option<String>,
    /// The issue, pull request or merge request.
    pub number: Option<Number>,
    /// Where the log is.
    pub run_url: Option<String>,
    /// The variable with the token.
    pub token_env: Option<String>,
}

/// A number as it is written: `12`, `#12`, `!12`. Nothing, `0` or an empty text for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The number.
    number: u64,
    /// The kind, where the sign says it.
    kind: Option<Kind>,
}

impl std::str::FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (kind, digits) = match text.strip_prefix('!') {
            Some(rest) => (Some(Kind::MergeRequest), rest),
            None => match text.strip_prefix('#') {
                Some(rest) => (Some(Kind::Issue), rest),
                None => (None, text),
            },
        };
        let number = match digits {
            "" if kind.is_none() => 0,
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().map_err(|_| format!("{text:?} is too large"))?
            }
            _ => return Err(format!("{text:?} is not a number; write 12, #12 or, for a merge request, !12")),
        };
        Ok(Self { number, kind })
    }
}

impl Number {
    /// Whether it names something.
    pub(crate) fn is_some(self) -> bool {
        self.number > 0
    }
}

/// Whether a text can be the target of a link in a comment.
pub(crate) fn is_link(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_graphic() && !b"()[]<>\"'`\\{}|^".contains(&b);
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    text.len() <= 2000 && rest.is_some_and(|rest| !rest.is_empty()) && text.bytes().all(plain)
}

/// Everything that is known before the run is.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The server.
    pub site: Site,
    /// Where the comment goes.
    pub thread: Thread,
    /// The CI run, by its id.
    pub ci_run: Option<String>,
    /// The job in it.
    pub job: String,
    /// Which attempt at the job this is.
    pub attempt: u64,
    /// Where the log is.
    pub run_url: Option<String>,
    /// The commit, shortened.
    pub commit: Option<String>,
    /// When there are comments.
    pub when: Notifications,
}

impl Settings {
    /// The settings; nothing where no comment was asked for.
    ///
    /// # Errors
    /// Why there can be none, for a warning.
    pub(super) fn find(
        asked: &Asked,
        forge: Option<Forge>,
        dir: Option<&Utf8PathBuf>,
        env: &Environment,
    ) -> Result<Option<Self>, String> {
        let number = asked.number.filter(|n| n.number > 0);
        let repo = asked.repo.as_deref().map(str::trim).filter(|r| !r.is_empty());
        let (repo, number) = match (repo, number) {
            (Some(repo), Some(number)) => (repo, number),
            // Jobs that were not started by an issue have no number to give.
            (_, None) => return Ok(None),
            (None, Some(_)) => return Err("--status-number needs --status-repo".into()),
        };
        let get = |name: &str| env.0.get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let platform = platform(forge, &get)?;
        let thread = thread(platform, repo, number, &get)?;
        let site = Site::from_env(platform, asked.token_env.as_deref(), get).map_err(|e| e.to_string())?;
        let when = dir.map(|dir| harness::notifications(dir)).unwrap_or_default();
        let ci = Ci::find(platform, &get);
        let run_url = asked.run_url.clone().filter(|url| !url.trim().is_empty()).or(ci.url);
        Ok(Some(Self {
            site,
            thread,
            ci_run: ci.run.or_else(|| run_url.clone()),
            job: ci.job,
            attempt: ci.attempt,
            commit: ci.commit,
            run_url: run_url.filter(|url| is_link(url)),
            when,
        }))
    }

    /// Whether there is a comment at the beginning.
    pub(super) fn at_start(&self) -> bool {
        // One that is wanted for failures alone says nothing before there is one.
        self.when.start && self.when.completion != Completion::OnFailure
    }
}

/// The platform: the forge that was given, else the CI system that this is.
pub(super) fn platform(
    forge: Option<Forge>,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Platform, String> {
    let is_true = |name: &str| get(name).is_some_and(|v| v == "true");
    match forge {
        Some(Forge::Github) => Ok(Platform::GitHub),
        Some(Forge::Gitlab) => Ok(Platform::GitLab),
        Some(Forge::Jira) => Err("there are none for Jira".into()),
        None if is_true("GITHUB_ACTIONS") => Ok(Platform::GitHub),
        None if is_true("GITLAB_CI") => Ok(Platform::GitLab),
        None => {
            Err("nothing says whether it is GitHub or GitLab; add --forge github or --forge gitlab".into())
        }
    }
}

/// The thread of a number.
pub(super) fn thread(
    platform: Platform,
    repo: &str,
    number: Number,
    get: &dyn Fn(&str) -> Option<String>,
) -> Result<Thread, String> {
    let parts = repo.split('/').count();
    if !is_repo(repo) || (platform == Platform::GitHub && parts != 2) {
        return Err(format!("--status-repo {repo:?} is not the path of a repository, such as owner/name"));
    }
    let of_job = || {
        let same = get("CI_MERGE_REQUEST_IID").and_then(|iid| iid.parse().ok()) == Some(number.number);
        if same { Kind::MergeRequest } else { Kind::Issue }
    };
    let kind = match platform {
        // A pull request's conversation is that of an issue.
        Platform::GitHub => Kind::Issue,
        Platform::GitLab => number.kind.unwrap_or_else(of_job),
    };
    Ok(Thread { repo: repo.to_owned(), kind, number: number.number })
}

/// What the CI system says about this job.
#[derive(Default)]
struct Ci {
    run: Option<String>,
    job: String,
    attempt: u64,
    url: Option<String>,
    commit: Option<String>,
}

impl Ci {
    fn find(platform: Platform, get: &dyn Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| get(name).and_then(|n| n.parse().ok());
        let commit = |names: &[&str]| {
            let sha = names.iter().find_map(|name| get(name))?;
            let hex = sha.len() >= 7 && sha.bytes().all(|b| b.is_ascii_hexdigit());
            hex.then(|| sha[..7].to_owned())
        };
        match platform {
            Platform::GitHub => Self {
                run: get("GITHUB_RUN_ID"),
                job: get("GITHUB_JOB").unwrap_or_default(),
                attempt: number("GITHUB_RUN_ATTEMPT").unwrap_or(1),
                url: get("GITHUB_SERVER_URL")
                    .zip(get("GITHUB_REPOSITORY"))
                    .zip(get("GITHUB_RUN_ID"))
                    .map(|((server, repo), run)| format!("{server}/{repo}/actions/runs/{run}")),
                commit: commit(&["PR_HEAD_SHA", "GITHUB_SHA"]),
            },
            Platform::GitLab => Self {
                run: get("CI_PIPELINE_ID"),
                job: get("CI_JOB_NAME").unwrap_or_default(),
                // A retried job is a new one of the same name, with a larger number.
                attempt: number("CI_JOB_ID").unwrap_or(1),
                url: get("CI_JOB_URL"),
                commit: commit(&["CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"]),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_sign_or_none() {
        let read = |text: &str| text.parse::<Number>().map(|n| (n.number, n.kind));
        assert_eq!(read("12"), Ok((12, None)));
        assert_eq!(read("#12"), Ok((12, Some(Kind::Issue))));
        assert_eq!(read("!12"), Ok((12, Some(Kind::MergeRequest))));
        assert_eq!((read(""), read("0")), (Ok((0, None)), Ok((0, None))));
        for bad in ["x", "-1", "#", "!", "1.5", "99999999999999999999", "#!1", "+1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_link_does_not_leave_its_parentheses() {
        assert!(is_link("https://github.com/o/r/actions/runs/1?a=b#c") && is_link("http://gitlab.local/x"));
        for bad in [
            "",
            "https://",
            "javascript:x",
            "https://x/)[y](z",
            "https://x/ y",
            "https://x/\n",
            "https://x/<",
        ] {
            assert!(!is_link(bad), "{bad}");
        }
    }

    #[test]
    fn a_plain_number_is_that_of_the_jobs_merge_request() {
        let get = |name: &str| (name == "CI_MERGE_REQUEST_IID").then(|| "12".to_owned());
        let kind =
            |number: &str, platform| thread(platform, "g/s/p", number.parse().unwrap(), &get).map(|t| t.kind);
        assert_eq!(kind("12", Platform::GitLab), Ok(Kind::MergeRequest));
        assert_eq!(kind("13", Platform::GitLab), Ok(Kind::Issue));
        assert_eq!(kind("#12", Platform::GitLab), Ok(Kind::Issue));
        assert!(kind("12", Platform::GitHub).unwrap_err().contains("g/s/p"));
    }
}
