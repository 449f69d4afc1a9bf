//! `fullsend show`.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use super::fetching::{Fetching, wait};
use crate::error::Result;
use crate::fetch;
use crate::harness::remote::{Fetched, Pinning};
use crate::harness::{self, Environment, Forge, Overrides, Request};
use crate::report::Printer;

/// Show a harness as it resolves, with the file and line that each value comes from.
///
/// Bases, the block of the forge and the overlay are merged. Variables are not expanded, so no secret is shown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent; `fullsend list` shows them.
    agent: String,
    /// The harness directory [default: the nearest `.fullsend/` upwards, else the working directory if it has `harness/`].
    #[arg(long, value_name = "DIR")]
    fullsend_dir: Option<Utf8PathBuf>,
    /// The forge whose part of the harness applies [default: from the CI environment, else from `config.yaml`].
    #[arg(long, value_name = "NAME")]
    forge: Option<Forge>,
    #[command(flatten)]
    fetching: Fetching,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let dir = harness::find_dir(args.fullsend_dir.as_deref(), &super::run::working_dir()?)?;
    let mut request = Request {
        dir,
        agent: args.agent.clone(),
        forge: args.forge,
        env: Environment::new(std::env::vars_os(), BTreeMap::new()),
        overrides: Overrides::default(),
        fetched: Fetched::default(),
    };
    let text = wait(fetch::settle(&args.fetching.options(), Pinning::Refuse, |fetched| {
        request.fetched = fetched.clone();
        harness::attempt_show(&request)
    }))?;
    let lines: Vec<_> = text.lines().map(|line| ui.clean(line)).collect();
    ui.data(&format!("{}\n", lines.join("\n")));
    Ok(())
}
