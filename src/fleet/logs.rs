//! What past runs said.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::find::find;
use super::rundir::{self, RunDir};
use crate::agent::render::Renderer;
use crate::agent::{Decoder, Format};
use crate::error::{Code, Error, Result};
use crate::report::{Printer, duration};

/// Which runs.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// This one, as [`find`] takes it. Without it and without an agent all runs are meant.
    pub run: Option<String>,
    /// Those of this agent.
    pub agent: Option<String>,
    /// Those that began at most this long ago.
    pub since: Option<Duration>,
    /// The newest of them.
    pub limit: usize,
    /// Where run directories are.
    pub output_dir: PathBuf,
}

/// A past run, or one that still runs.
#[derive(Debug, Serialize)]
pub(crate) struct Past {
    /// The run's id.
    pub run: String,
    /// The agent's name.
    pub agent: String,
    /// When it began.
    pub started: Timestamp,
    /// Its directory.
    pub dir: PathBuf,
    /// How it ended; nothing while it runs, and when it was killed.
    pub verdict: Option<String>,
    /// Its exit status.
    pub exit_code: Option<i64>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The code and the words of its failure, or why it was skipped.
    pub reason: Option<String>,
    /// What the agent said.
    pub iterations: Vec<Iteration>,
}

/// One iteration.
#[derive(Debug, Serialize)]
pub(crate) struct Iteration {
    /// 1 for the first.
    pub number: u32,
    /// Its stream.
    pub stream: PathBuf,
    /// What its program wrote to standard error.
    pub stderr: PathBuf,
}

/// The runs that are wanted, by start.
pub(crate) fn past(wanted: &Wanted) -> Result<Vec<Past>> {
    if let Some(word) = &wanted.run {
        return Ok(vec![of_dir(find(word, &wanted.output_dir)?)]);
    }
    let mut dirs = rundir::scan(&wanted.output_dir)?;
    if let Some(agent) = &wanted.agent {
        dirs.retain(|d| d.agent == *agent);
    }
    if let Some(since) = wanted.since {
        let from = Timestamp::now().checked_sub(since).unwrap_or(Timestamp::MIN);
        dirs.retain(|d| d.started >= from);
    }
    dirs.drain(..dirs.len().saturating_sub(wanted.limit));
    if dirs.is_empty() {
        let place = wanted.output_dir.display();
        let (what, help) = match &wanted.agent {
            None => {
                (format!("there are no runs in {place}"), "`--output-dir` names another directory of runs")
            }
            Some(agent) => (
                format!("there is no such run of {agent} in {place}"),
                "`--output-dir` names another directory of runs, `--since` a longer time",
            ),
        };
        return Err(Error::new(Code::RunUnknown, what).help(help));
    }
    Ok(dirs.into_iter().map(of_dir).collect())
}

fn of_dir(dir: RunDir) -> Past {
    let iterations = iterations(&dir.path);
    let RunDir { path, agent, run, started, record } = dir;
    let reason = record.as_ref().and_then(|r| match (&r.error, &r.skip_reason) {
        (Some(error), _) => Some(format!("{}: {}", error.code, error.message)),
        (None, skip) => skip.clone(),
    });
    Past {
        run,
        agent,
        started,
        dir: path,
        verdict: record.as_ref().map(|r| r.verdict.clone()),
        exit_code: record.as_ref().map(|r| r.exit_code),
        duration_ms: record.as_ref().map(|r| r.duration_ms),
        reason,
        iterations,
    }
}

fn iterations(dir: &Path) -> Vec<Iteration> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()))
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("iteration-")?.parse().ok()?;
            let dir = entry.path();
            Some(Iteration { number, stream: dir.join("stream.jsonl"), stderr: dir.join("stderr.log") })
        })
        .collect();
    found.sort_by_key(|i| i.number);
    found
}

impl Past {
    /// Shows what the agent said, and how it ended.
    pub(crate) fn show(&self, ui: &Printer) {
        let started = self.started.strftime("%Y-%m-%d %H:%M:%S UTC");
        ui.plain(&format!("run {} of {}, {started}", self.run, self.agent));
        for iteration in &self.iterations {
            if self.iterations.len() > 1 {
                ui.plain(&format!("iteration {}", iteration.number));
            }
            if let Err(error) = render(&iteration.stream, ui) {
                ui.plain(&format!("(no stream: {error})"));
            }
        }
        let verdict = match (&self.verdict, self.exit_code, self.duration_ms) {
            (Some(verdict), Some(exit), Some(ms)) => {
                format!("{verdict} (exit {exit}, {})", duration(Duration::from_millis(ms)))
            }
            _ => "none: it still runs, or it was killed; `fullsend ps` knows".into(),
        };
        ui.closing("verdict", &verdict);
        if let Some(reason) = &self.reason {
            ui.closing("reason", reason);
        }
        ui.closing("results", &self.dir.display().to_string());
    }
}

/// Renders a stream as the run did, in bounded memory.
fn render(stream: &Path, ui: &Printer) -> std::io::Result<()> {
    let mut file = rundir::open_plain(stream)?;
    let mut decoder = Decoder::new(Format::Auto);
    let mut renderer = Renderer::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let n = file.read(&mut chunk)?;
        let mut show = |event| {
            for line in renderer.event(&event) {
                ui.quote(&line.text);
            }
        };
        if n == 0 {
            decoder.finish(&mut show);
            break;
        }
        decoder.push(&chunk[..n], &mut show);
    }
    for line in renderer.finish() {
        ui.quote(&line.text);
    }
    Ok(())
}
