//! `fullsend check-output`.

use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};
use crate::output_check::{Check, DEFAULT_OUTPUT, check_all, refusal};
use crate::report::{Mark, Printer};

/// Check output files against their JSON Schemas, as a run does.
///
/// In a sandbox the files, their schemas and the directory are those of the harness, and no argument is needed;
/// `fullsend-check-output` is the same there. Elsewhere name them. Exit status: 0 accepted, 1 not accepted, 2 the
/// question cannot be answered.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The files to check [default: those of the harness in a sandbox, else `$FULLSEND_OUTPUT_FILE`, else
    /// `agent-result.json`]. A relative name is looked for in the output directory first.
    file: Vec<PathBuf>,
    /// The schema, for every file that is named [default: that of the harness for the file].
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The directory of the output [default: `$FULLSEND_OUTPUT_DIR`, else the working directory].
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    let output = args.output_dir.clone().or_else(|| variable("FULLSEND_OUTPUT_DIR").map(PathBuf::from));
    let output = output.unwrap_or_else(|| ".".into());
    let checks = checks(args, &output)?;
    let mut faults = Vec::new();
    for check in &checks {
        let found = check_all(std::slice::from_ref(check), &output)?;
        match found.first() {
            None => ui.check(Mark::Good, &check.file, "accepted"),
            // What is wrong stands in the error.
            Some(_) => ui.check(Mark::Bad, &check.file, "not accepted"),
        }
        faults.extend(found);
    }
    if faults.is_empty() { Ok(()) } else { Err(refusal(&faults)) }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn checks(args: &Args, output: &Path) -> Result<Vec<Check>> {
    let listed = listed()?;
    let schema = args.schema.clone().or_else(|| variable("FULLSEND_OUTPUT_SCHEMA").map(PathBuf::from));
    let needed = || {
        Error::new(Code::Usage, "there is no schema to check with")
            .help("name one with --schema; in a sandbox that is `validation_loop.schema` of the harness")
    };
    if args.file.is_empty() {
        if args.schema.is_none() && !listed.is_empty() {
            return Ok(listed);
        }
        let file = variable("FULLSEND_OUTPUT_FILE").unwrap_or_else(|| DEFAULT_OUTPUT.to_owned());
        return Ok(vec![Check { file, schema: schema.ok_or_else(needed)? }]);
    }
    let one = |path: &PathBuf| {
        let file = place(path, output)?;
        let own = listed.iter().find(|check| check.file == file).map(|check| check.schema.clone());
        let schema = args.schema.clone().or(own).or_else(|| schema.clone()).ok_or_else(needed)?;
        Ok(Check { file, schema })
    };
    args.file.iter().map(one).collect()
}

/// The name as the output directory has it. A file elsewhere keeps its whole path, which joins to itself.
fn place(path: &Path, output: &Path) -> Result<String> {
    let whole = if path.is_relative() && !output.join(path).exists() && path.exists() {
        std::path::absolute(path).map_err(|e| Error::io("cannot resolve a path", &e))?
    } else {
        path.to_owned()
    };
    let below = whole.strip_prefix(output).unwrap_or(&whole);
    below.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(Code::Usage, format!("{} is not UTF-8", path.display())).help("give the file another name")
    })
}

/// What the harness checks, in a sandbox.
fn listed() -> Result<Vec<Check>> {
    let Some(path) = variable("FULLSEND_OUTPUT_CHECKS") else { return Ok(Vec::new()) };
    let unusable = |why: String| {
        Error::new(Code::Value, format!("{path} cannot be used: {why}"))
            .help("it is written by `fullsend run`; unset FULLSEND_OUTPUT_CHECKS outside a sandbox")
    };
    let text = fs_err::read(&path).map_err(|e| unusable(e.to_string()))?;
    let list: Vec<serde_json::Value> = serde_json::from_slice(&text).map_err(|e| unusable(e.to_string()))?;
    let check = |entry: &serde_json::Value| {
        let text = |key: &str| entry[key].as_str().map(str::to_owned);
        Some(Check { file: text("file")?, schema: text("schema")?.into() })
    };
    let checks: Option<Vec<_>> = list.iter().map(check).collect();
    checks.ok_or_else(|| unusable("an entry has no `file` or no `schema`".into()))
}
