//! `fullsend list`.

use camino::Utf8PathBuf;

use crate::error::{Code, Error, Result};
use crate::harness;
use crate::report::Printer;

/// List the agents of the harness directory.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The harness directory [default: the nearest `.fullsend/` upwards, else the working directory if it has `harness/`].
    #[arg(long, value_name = "DIR")]
    fullsend_dir: Option<Utf8PathBuf>,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let dir = harness::find_dir(args.fullsend_dir.as_deref(), &super::run::working_dir()?)?;
    let agents = harness::list_agents(&dir)?;
    if agents.is_empty() {
        return Err(Error::new(Code::AgentUnknown, format!("{dir} has no agents"))
            .help("add harness/NAME.yaml there, or give another directory with --fullsend-dir"));
    }
    let width = agents.iter().map(|a| a.name.chars().count()).max().unwrap_or(0);
    for agent in agents {
        let text = match agent.problem {
            Some(problem) => {
                format!(
                    "(cannot be used: {}; `fullsend run {} --dry-run` says more)",
                    problem.message, agent.name
                )
            }
            None => agent.description.unwrap_or_default(),
        };
        let first = text.lines().next().unwrap_or("");
        ui.data(&format!("{}\n", ui.clean(&format!("{:<width$}  {first}", agent.name)).trim_end()));
    }
    Ok(())
}
