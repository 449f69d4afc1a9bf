//! `fullsend lock`.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use super::fetching::{Fetching, wait};
use crate::error::{Code, Error, Result};
use crate::harness::{self, Environment, Forges, ValidateScope};
use crate::report::Printer;
use crate::{fetch, harness::remote::Fetched};

/// Write down what is behind every URL of an agent, so that a run uses nothing else.
///
/// Fetches what the harness takes from elsewhere, for every forge and overlay, also the files of bases, and writes the
/// digests to `lock.yaml` in the harness directory. Commit that file. What is locked already stays as it is; --update
/// looks at it anew.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agents; `fullsend list` shows them.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    agent: Vec<String>,
    /// All agents of the harness directory; entries of agents that are no more are dropped.
    #[arg(long)]
    all: bool,
    /// Take what is behind the URLs now, also where the lock has something else.
    #[arg(long)]
    update: bool,
    /// The harness directory [default: the nearest `.fullsend/` upwards, else the working directory if it has `harness/`].
    #[arg(long, value_name = "DIR")]
    fullsend_dir: Option<Utf8PathBuf>,
    #[command(flatten)]
    fetching: Fetching,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let options = args.fetching.options();
    if args.update && options.offline {
        return Err(Error::new(Code::Usage, "--update looks at URLs, which --offline forbids")
            .help("leave one of them out"));
    }
    let dir = harness::find_dir(args.fullsend_dir.as_deref(), &super::run::working_dir()?)?;
    let scope = ValidateScope {
        dir,
        agents: args.agent.clone(),
        forges: Forges::All,
        env: Environment::new(std::env::vars_os(), BTreeMap::new()),
        fetched: Fetched::default(),
    };
    let outcome = wait(fetch::lock(&scope, args.update, &options))?;
    for warning in &outcome.warnings {
        let place = warning.place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
        ui.warn(&format!("{place}{}", warning.message));
    }
    let width = outcome.agents.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, urls) in &outcome.agents {
        let text = match urls {
            0 => "takes nothing from URLs".to_owned(),
            1 => "1 URL".to_owned(),
            n => format!("{n} URLs"),
        };
        ui.data(&format!("{}\n", ui.clean(&format!("{name:<width$}  {text}"))));
    }
    let state = if outcome.changed { "written" } else { "is up to date" };
    ui.data(&format!("{}\n", ui.clean(&format!("{} {state}", outcome.file))));
    Ok(())
}
