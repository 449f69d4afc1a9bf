//! The options for status comments, and `fullsend reconcile-status`.

use std::time::Duration;

use super::backend::runtime;
use super::run::Format;
use super::{age, first_problem, json};
use crate::error::{Code, Error, Result};
use crate::harness::Forge;
use crate::report::Printer;
use crate::status::{Asked, Number, Reconcile, is_link, reconcile};

/// Where status comments go.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Comments {
    /// The repository whose issue, pull request or merge request gets a status comment: OWNER/NAME, or the path of
    /// a GitLab project. Needs --status-number.
    #[arg(long, value_name = "REPO")]
    status_repo: Option<String>,
    /// Its number; `!12` is GitLab's merge request 12. Needs --status-repo. An empty text or 0: no comment.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    status_number: Option<Number>,
    /// The variable with the token for status comments [default: `GH_TOKEN`, else `GITHUB_TOKEN`; GitLab: `GITLAB_TOKEN`].
    #[arg(long, value_name = "VARIABLE")]
    status_token_env: Option<String>,
    /// Where the log of this CI run is, for status comments [default: from the CI environment].
    #[arg(long, value_name = "URL", value_parser = link)]
    run_url: Option<String>,
}

impl Comments {
    /// What was asked for. A job may pass an empty text or 0 for what it does not have; an option without its other
    /// half is a mistake.
    pub(super) fn asked(&self) -> Result<Asked> {
        let repo = self.status_repo.as_deref().is_some_and(|repo| !repo.trim().is_empty());
        let half = |given: &str, missing: &str, example: &str| {
            Err(Error::new(Code::Usage, format!("{given} needs {missing}")).help(format!(
                "add {missing}, e.g. `{missing} {example}`, or leave {given} out for no status comment"
            )))
        };
        match self.status_number {
            None if repo => half("--status-repo", "--status-number", "12"),
            Some(number) if number.is_some() && !repo => {
                half("--status-number", "--status-repo", "OWNER/NAME")
            }
            _ => Ok(self.given()),
        }
    }

    fn given(&self) -> Asked {
        Asked {
            repo: self.status_repo.clone(),
            number: self.status_number,
            run_url: self.run_url.clone(),
            token_env: self.status_token_env.clone(),
        }
    }
}

/// A URL that may stand in a comment; an empty one is none, as a CI job cannot leave an option out.
fn link(text: &str) -> std::result::Result<String, String> {
    if text.is_empty() || is_link(text) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is not an http(s) URL that can stand in a comment"))
}

/// Write the end of status comments whose run was killed.
///
/// Looks at the comments that runs of this host began, and with --status-repo and --status-number at those of one
/// thread. A comment is over when its run's process has ended (judged on the same host, boot and container only), when
/// the run's time is over, when it belongs to the CI run of --run-url, or when it has not changed for --older-than.
/// Runs that live here are not touched; it may run beside them, and several times.
///
/// Exit status: 0; 3 when a comment could not be read or changed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    comments: Comments,
    /// GitHub or GitLab [default: from the CI environment].
    #[arg(long, value_name = "NAME")]
    forge: Option<Forge>,
    /// Also comments that were not changed for so long, e.g. `12h`, `2d`.
    #[arg(long, value_name = "DURATION", value_parser = age::some_time)]
    older_than: Option<Duration>,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// The form of the answer.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let options = Reconcile {
        asked: args.comments.asked()?,
        forge: args.forge,
        older_than: args.older_than,
        dry_run: args.dry_run,
    };
    let done = runtime()?.block_on(async {
        tokio::task::spawn_blocking(move || reconcile(&options))
            .await
            .map_err(|e| Error::bug(format!("looking at the comments: {e}")))
    })??;
    match args.format {
        Format::Json => ui.data(&json(&done)?),
        Format::Text => ui.plain(&done.text()),
    }
    first_problem(&done.problems, ui)
}
