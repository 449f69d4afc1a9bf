//! `fullsend explain`.

use crate::error::{Code, Error, Result};
use crate::report::{Printer, explain};

/// Explain an error code such as FS-GATEWAY.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The code, e.g. FS-GATEWAY; without one, all codes are listed.
    code: Option<String>,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let Some(text) = &args.code else {
        for code in Code::ALL {
            ui.data(&format!("{:<24} {}\n", code.as_str(), code.summary()));
        }
        return Ok(());
    };
    let code: Code = text.parse().map_err(|()| {
        Error::new(Code::Usage, format!("there is no error code {text:?}"))
            .help("`fullsend explain` without an argument lists all of them")
    })?;
    ui.page(&explain::page(code));
    Ok(())
}
