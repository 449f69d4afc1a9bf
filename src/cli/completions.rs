//! `fullsend completions`.

use clap_complete::Shell;

use crate::report::Printer;

/// Print a completion script for a shell.
///
/// For example: `fullsend completions bash > ~/.local/share/bash-completion/completions/fullsend`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

pub(super) fn main(args: &Args, ui: &Printer) {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut super::visible_command(), "fullsend", &mut out);
    ui.data(&String::from_utf8_lossy(&out));
}
