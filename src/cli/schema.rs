//! `fullsend schema`.

use crate::error::Result;
use crate::harness::{self, SchemaFormat};
use crate::report::Printer;

/// Print the JSON Schema (2020-12) of a file of the harness directory, for editors.
///
/// An editor with a YAML language server takes it from a first line such as
/// `# yaml-language-server: $schema=../harness.schema.json`. The schema is strict: a key that `validate` only warns
/// of is a mistake in it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The format.
    #[arg(default_value = "harness")]
    format: SchemaFormat,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    ui.data(&super::json(&harness::schema(args.format))?);
    Ok(())
}
