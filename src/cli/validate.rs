//! `fullsend validate`.

use std::process::ExitCode;

use camino::Utf8PathBuf;
use clap::ValueEnum;

use super::fetching::{Fetching, wait};
use crate::error::Result;
use crate::fetch;
use crate::harness::remote::{Fetched, Pinning};
use crate::harness::{self, Environment, Forge, Forges, ValidateScope};
use crate::report::{Printer, findings, gitlab};

/// Look for mistakes in the harness directory and show all of them at once.
///
/// Without an agent: every agent, config.yaml, providers, profiles, policies and schemas. Variables need not be
/// set, and nothing is started. Only what the harnesses take from URLs is fetched, unless --offline forbids it.
///
/// Exit status: 0 no errors, 2 errors.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agents to look at [default: the whole directory].
    agent: Vec<String>,
    /// The harness directory [default: the nearest `.fullsend/` upwards, else the working directory if it has `harness/`].
    #[arg(long, value_name = "DIR")]
    fullsend_dir: Option<Utf8PathBuf>,
    /// Whose part of each harness is looked at [default: the forge that a run here would choose, else all].
    #[arg(long, value_name = "NAME")]
    forge: Option<Which>,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// The form of the report.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    #[command(flatten)]
    fetching: Fetching,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Jira.
    Jira,
    /// Every forge that a harness has a block for.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// A code-quality report of GitLab.
    Gitlab,
}

pub(super) fn main(args: &Args, ui: &Printer) -> ExitCode {
    match report(args, ui) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => super::finish(Err(error), ui),
    }
}

fn report(args: &Args, ui: &Printer) -> Result<bool> {
    let dir = harness::find_dir(args.fullsend_dir.as_deref(), &super::run::working_dir()?)?;
    let mut scope = ValidateScope {
        dir,
        agents: args.agent.clone(),
        forges: match args.forge {
            None => Forges::Here,
            Some(Which::All) => Forges::All,
            Some(Which::Github) => Forges::One(Forge::Github),
            Some(Which::Gitlab) => Forges::One(Forge::Gitlab),
            Some(Which::Jira) => Forges::One(Forge::Jira),
        },
        env: Environment::new(std::env::vars_os(), std::collections::BTreeMap::new()),
        fetched: Fetched::default(),
    };
    let mut report = wait(fetch::settle(&args.fetching.options(), Pinning::Refuse, |fetched| {
        scope.fetched = fetched.clone();
        harness::attempt_validate(&scope)
    }))?;
    if args.strict {
        report.strict();
    }
    ui.data(&match args.format {
        Format::Text => findings::text(&report.problems, report.agents.len(), ui),
        Format::Json => findings::json(&report.problems, &report.agents),
        Format::Sarif => findings::sarif(&report.problems),
        Format::Github => findings::github(&report.problems),
        Format::Gitlab => {
            let top = std::env::var_os("CI_PROJECT_DIR").map(std::path::PathBuf::from);
            gitlab::problems(&report.problems, top.as_deref(), ui)
        }
    });
    Ok(!report.problems.has_errors())
}
