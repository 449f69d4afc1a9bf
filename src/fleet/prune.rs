//! Removing old run directories.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::ps::between;
use super::rundir;
use super::standing::Standing;
use super::survey::Problem;
use crate::error::{Error, Result};
use crate::report::duration;
use crate::run::owner::Owner;
use crate::run::{journal, leftovers};

/// What was removed.
#[derive(Debug, Serialize)]
pub(crate) struct Pruned {
    schema: &'static str,
    dry_run: bool,
    /// The directories that went, or would go.
    pub dirs: Vec<Old>,
    /// What could not be removed.
    pub problems: Vec<Problem>,
}

/// An old run directory.
#[derive(Debug, Serialize)]
pub(crate) struct Old {
    /// Where it was.
    pub path: PathBuf,
    /// The run's id.
    pub run: String,
    /// Since the run ended, in seconds.
    pub age_s: u64,
}

/// Removes the run directories in `output` whose runs ended at least `older_than` ago. A directory of a run that
/// lives, or whose sandbox is kept, stays.
pub(crate) fn prune(output: &Path, older_than: Duration, dry_run: bool) -> Result<Pruned> {
    let alive = in_use()?;
    let now = Timestamp::now();
    let mut pruned = Pruned { schema: "fullsend.prune/1", dry_run, dirs: Vec::new(), problems: Vec::new() };
    for dir in rundir::scan(output)? {
        let age = between(dir.ended(), now);
        if age < older_than || alive.contains(&dir.run) {
            continue;
        }
        if !dry_run && let Err(error) = leftovers::remove_tree(&dir.path) {
            let error = Error::io("cannot remove it", &error).help("look at its permissions");
            pruned.problems.push(Problem::new(&dir.path.display().to_string(), &error));
            continue;
        }
        pruned.dirs.push(Old { path: dir.path, run: dir.run, age_s: age.as_secs() });
    }
    Ok(pruned)
}

/// The runs whose directories are in use.
fn in_use() -> Result<BTreeSet<String>> {
    let contents = journal::read_all()?;
    let (here, now) = (Owner::this(), Timestamp::now());
    let over = |entry: &journal::Entry| Standing::of_entry(entry, entry.owner.liveness(&here), now).is_over();
    let live = contents.entries.iter().filter(|(_, entry)| !over(entry)).map(|(_, entry)| entry.run.clone());
    // An entry that a newer version wrote is named after its run, too.
    let strange =
        contents.strange.iter().filter_map(|(path, _)| Some(path.file_stem()?.to_str()?.to_owned()));
    Ok(live.chain(strange).collect())
}

impl Pruned {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if self.dirs.is_empty() && self.problems.is_empty() {
            out.push_str("nothing to prune\n");
        }
        let verb = if self.dry_run { "would remove" } else { "removed" };
        for Old { path, age_s, .. } in &self.dirs {
            let age = duration(Duration::from_secs(*age_s));
            let _ = writeln!(out, "{verb} {} (ended {age} ago)", path.display());
        }
        out
    }
}
