//! What the pre-script leaves for the agent.
//!
//! Two runs may share a harness directory, so a pre-script has nowhere to write but a directory of the run. It
//! stays among the results: there one sees what the agent was given.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;

use crate::error::{Code, Error, Result};
use crate::plan::Plan;
use crate::plan::files::{Source, Upload};
use crate::plan::layout::INPUT_DIR;

/// The variable that names the directory to the pre-script.
pub(super) const VARIABLE: &str = "FULLSEND_AGENT_INPUT_DIR";

/// The directory in the run directory.
pub(super) fn dir(run_dir: &Path) -> PathBuf {
    run_dir.join("agent-input")
}

/// The plan's uploads, with what the pre-script left. Where both have a file of one name, the pre-script's counts.
pub(super) fn uploads(plan: &Plan, run_dir: &Path) -> Result<Vec<Upload>> {
    let mut uploads = plan.uploads.clone();
    let made = dir(run_dir);
    if !made.is_dir() {
        return Ok(uploads);
    }
    let made = Utf8PathBuf::from_path_buf(std::path::absolute(&made)?).map_err(|path| {
        Error::new(Code::FileType, format!("the run directory {} is not UTF-8", path.display()))
            .help("choose another with --output-dir")
    })?;
    let fixed = uploads.iter_mut().find(|u| u.dest == INPUT_DIR && matches!(u.source, Source::Dir(_)));
    match fixed {
        None => uploads.push(Upload::dir(INPUT_DIR, made)),
        Some(upload) => {
            let below = Upload::dir("", made.clone()).expand()?;
            let files: BTreeMap<_, _> = below
                .iter()
                .map(|file| file.dest.trim_start_matches('/').to_owned())
                .map(|name| (name.clone(), Some(made.join(name))))
                .collect();
            *upload = upload.clone().changed(files);
        }
    }
    Ok(uploads)
}
