//! `fullsend man`: manual pages, for packagers.

use crate::error::{Code, Error, Result};
use crate::report::Printer;

/// Print a manual page in roff.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The command whose page is wanted, `fullsend-COMMAND(1)` [default: the page of fullsend itself].
    command: Option<String>,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let mut root = super::visible_command();
    root.build();
    let page = match &args.command {
        None => root,
        Some(name) => {
            let found = root.find_subcommand(name).cloned().ok_or_else(|| {
                Error::new(Code::Usage, format!("there is no command {name:?}")).help("see `fullsend --help`")
            })?;
            found.version(env!("CARGO_PKG_VERSION")).display_name(format!("fullsend-{name}"))
        }
    };
    let title = page.get_display_name().unwrap_or("fullsend").to_owned();
    let mut out = Vec::new();
    clap_mangen::Man::new(page)
        .title(title)
        .render(&mut out)
        .map_err(|e| Error::io("cannot make the manual page", &e))?;
    ui.data(&String::from_utf8_lossy(&out));
    Ok(())
}
