//! Which run a word on the command line means.

use std::path::{Path, PathBuf};

use super::rundir::{self, RunDir};
use crate::error::{Code, Error, Result};
use crate::openshell::names::{RunId, sandbox_name};
use crate::run::journal;

/// How many runs an error lists.
const LISTED: usize = 10;

/// The run that is named by its directory (a path, or the name of the directory alone), its id, a unique start of its
/// id, or its sandbox.
///
/// # Errors
/// [`Code::RunUnknown`], with the runs that could have been meant.
pub(super) fn find(word: &str, output_dir: &Path) -> Result<RunDir> {
    let path = Path::new(word);
    // A run directory of this name in the working directory is meant before anything else.
    if let Some(dir) = rundir::look(&tidy(path)) {
        return Ok(dir);
    }
    if path.components().count() > 1 {
        let why = if path.exists() { "is not a directory of a run of yours" } else { "does not exist" };
        return Err(Error::new(Code::RunUnknown, format!("{word} {why}")).help(
            "the last lines of a run name its directory; `fullsend logs --agent NAME` shows past runs",
        ));
    }
    let mut dirs = rundir::scan(output_dir)?;
    // A run of the journal may have its directory elsewhere.
    let known = journal::read_all()?.entries.into_iter().map(|(_, entry)| entry);
    for entry in known.filter(|entry| !dirs.iter().any(|d| d.run == entry.run)).collect::<Vec<_>>() {
        dirs.extend(rundir::look(&entry.run_dir));
    }
    match choose(&dirs, word.trim_end_matches('/')) {
        Ok(at) => Ok(dirs.swap_remove(at)),
        Err(candidates) => Err(none(word, &dirs, &candidates, output_dir)),
    }
}

/// The directory of the run.
pub(crate) fn run_dir(word: &str, output_dir: &Path) -> Result<PathBuf> {
    find(word, output_dir).map(|dir| dir.path)
}

/// `.` and a trailing slash say nothing about the name of a directory.
fn tidy(path: &Path) -> PathBuf {
    let named = path.file_name().is_some() && !path.ends_with("..");
    let absolute = if named { std::path::absolute(path) } else { path.canonicalize() };
    absolute.map_or_else(|_| path.to_owned(), |path| path.components().collect())
}

/// Which of the runs is meant, or the indices of those that may be. Pure.
fn choose(dirs: &[RunDir], word: &str) -> std::result::Result<usize, Vec<usize>> {
    let whole = |dir: &RunDir| {
        dir.run == word
            || dir.path.file_name().is_some_and(|name| name == word)
            || RunId::parse(&dir.run).is_some_and(|run| sandbox_name(&dir.agent, &run) == word)
    };
    if let Some(at) = dirs.iter().position(whole) {
        return Ok(at);
    }
    let starts = |dir: &RunDir| !word.is_empty() && dir.run.starts_with(word);
    let hits: Vec<usize> = (0..dirs.len()).filter(|at| starts(&dirs[*at])).collect();
    match hits.as_slice() {
        [at] => Ok(*at),
        _ => Err(hits),
    }
}

fn none(word: &str, dirs: &[RunDir], candidates: &[usize], output_dir: &Path) -> Error {
    let place = output_dir.display();
    let row = |dir: &RunDir| {
        let verdict = dir.record.as_ref().map_or("no run.json", |record| record.verdict.as_str());
        format!("{}  {}  {}  {verdict}", dir.run, dir.started.strftime("%Y-%m-%d %H:%M:%S UTC"), dir.agent)
    };
    // The newest last, as everywhere.
    let list = |all: Vec<&RunDir>| {
        all[all.len().saturating_sub(LISTED)..].iter().map(|dir| row(dir)).collect::<Vec<_>>().join("\n")
    };
    if candidates.len() > 1 {
        let what = format!("{word:?} is the start of {} runs", candidates.len());
        return Error::new(Code::RunUnknown, what)
            .detail(list(candidates.iter().map(|at| &dirs[*at]).collect()))
            .help("give more of the id");
    }
    let what = format!("there is no run {word:?} in {place}");
    if dirs.is_empty() {
        return Error::new(Code::RunUnknown, format!("{what}; it has no runs"))
            .help("`--output-dir` names another directory of runs");
    }
    Error::new(Code::RunUnknown, what).detail(list(dirs.iter().collect())).help(
        "give one of these (the newest are shown): its id, a unique start of it, or its directory; `--output-dir` names \
         another directory of runs",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(agent: &str, run: &str) -> RunDir {
        RunDir {
            path: format!("/out/{agent}-20260301T120000Z-{run}").into(),
            agent: agent.into(),
            run: run.into(),
            started: "2026-03-01T12:00:00Z".parse().unwrap(),
            record: None,
        }
    }

    #[test]
    fn a_word_means_one_run_or_none() {
        let dirs = [dir("a", "aa0000000000"), dir("work", "aab000000000"), dir("work", "bb0000000000")];
        let sandbox = sandbox_name("work", &RunId::parse("aab000000000").unwrap());
        for (word, at) in [
            ("bb0000000000", Ok(2)),
            ("aa0", Ok(0)),
            ("work-20260301T120000Z-aab000000000", Ok(1)),
            (sandbox.as_str(), Ok(1)),
            ("aa", Err(vec![0, 1])),
            ("", Err(vec![])),
            ("work", Err(vec![])),
            ("work-20260301T120000Z", Err(vec![])),
            ("c", Err(vec![])),
        ] {
            assert_eq!(choose(&dirs, word), at, "{word}");
        }
    }

    #[test]
    fn who_is_told_no_is_told_what_there_is() {
        let dirs = [dir("a", "aa0000000000"), dir("work", "aab000000000")];
        let several = none("aa", &dirs, &[0, 1], Path::new("/out"));
        assert_eq!(several.message(), "\"aa\" is the start of 2 runs");
        assert!(several.detail_text().unwrap().contains("aab000000000  2026-03-01 12:00:00 UTC  work"));
        let many: Vec<_> = (0..50).map(|n| dir("a", &format!("{n:012}"))).collect();
        let nothing = none("x", &many, &[], Path::new("/out"));
        assert_eq!(nothing.detail_text().unwrap().lines().count(), LISTED);
        assert!(nothing.detail_text().unwrap().contains("000000000049"));
        assert!(none("x", &[], &[], Path::new("/out")).message().contains("it has no runs"));
    }
}
