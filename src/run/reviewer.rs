//! A review: another agent, in a sandbox of its own, judges the work of this one. It is a whole run of this program
//! with the staged repository as its repository, which it may only read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::agent_phase::figures;
use super::context::{Cx, Note};
use super::meter::{Kind, Meter};
use super::prepare::Prepared;
use super::review::{self, ReviewRecord, Verdict, Word};
use super::shown::Shown;
use super::validate::Iteration;
use crate::agent::Metrics;
use crate::error::{Code, Error, Result};
use crate::process::{Command, Ending, Failure, Output, Signal, Stream};
use crate::report::{Ci, last_lines};
use crate::telemetry;

/// Variables by which a CI job is told of results: what its later steps read is about the run that they started.
const CI_FILES: [&str; 4] = ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "FULLSEND_REPORT_DIR"];
/// How a reviewer is ended. Nobody waits for what it had found, so the second TERM tells it to delete its sandbox at
/// once; all of it fits into what a cancelled run promises. Should it be killed, its guard does the rest.
const ENDING: Ending = &[
    (Signal::TERM, Duration::from_secs(1)),
    (Signal::TERM, Duration::from_secs(3)),
    (Signal::KILL, Duration::from_secs(1)),
];
/// How many lines of its standard error an error report shows.
const SHOWN: usize = 20;

/// A review that has ended.
#[derive(Debug)]
pub(super) struct Reviewed {
    /// For `run.json`.
    pub record: ReviewRecord,
    /// Why there is no verdict.
    pub failure: Option<Error>,
}

/// Has the work of an iteration reviewed. The failure is [`Code::Review`] when the reviewer came to no verdict, the code
/// of its run where that lies with the machine, and [`Code::AgentBudget`] when nothing is left for it.
pub(super) async fn review(
    cx: &Cx,
    prepared: &Prepared,
    agent: &str,
    iteration: &Iteration<'_>,
    meter: &Meter,
) -> Reviewed {
    let mut metrics = Metrics::default();
    let out = iteration.dir.join("review");
    cx.ui.group(&format!("review by {agent}"));
    let verdict = cx
        .recorded("review", async {
            if let Some(over) = meter.exhausted_for_review() {
                return Err(super::agent_phase::over_budget(&over));
            }
            let command = cx.signals.guard(command(cx, prepared, agent, iteration, meter, &out)).await?;
            let done = run(cx, command).await;
            let dir = newest(&out);
            metrics = dir.as_deref().map(review::used).unwrap_or_default();
            for (key, value) in spent(&metrics) {
                cx.trace.note(key, value);
            }
            let verdict = judge(cx, agent, iteration.number, done, dir.as_deref())?;
            let (word, failed) = match verdict.verdict {
                Word::Accept => ("accepts", None),
                Word::Reject => ("rejects", Some(Code::ValidationFailed)),
            };
            let note = Note::judged(format!("{agent}: {word}{}", figures(&metrics)), failed);
            Ok((verdict, note))
        })
        .await;
    let dir = newest(&out);
    let dir = dir.map(|dir| dir.strip_prefix(&cx.id.dir).unwrap_or(&dir).display().to_string());
    let (verdict, failure) = match verdict {
        Ok(verdict) => (Some(verdict), None),
        Err(error) => (None, Some(error)),
    };
    let failed = failure.as_ref().map(Error::code);
    Reviewed { record: ReviewRecord { agent: agent.to_owned(), dir, verdict, failed, metrics }, failure }
}

/// What the span of a review says.
fn spent(metrics: &Metrics) -> telemetry::Attributes {
    let mut about = telemetry::Attributes::new();
    if metrics.tokens.total() > 0 {
        about.extend(telemetry::usage_attributes(&metrics.tokens));
    }
    about.extend(metrics.cost_usd.map(|cost| ("fullsend.cost_usd", cost.into())));
    about
}

/// The reviewer's run.
async fn command(
    cx: &Cx,
    prepared: &Prepared,
    agent: &str,
    iteration: &Iteration<'_>,
    meter: &Meter,
    out: &Path,
) -> Result<Command> {
    let Some(repo) = iteration.repo else {
        return Err(Error::bug("there is no staged repository to review"));
    };
    let input = iteration.tmp.join("review").join(iteration.dir.file_name().unwrap_or_default());
    hand_over(prepared, iteration, &input).await?;
    own_objects(repo, &prepared.world.repo.git_dir)?;
    let mut args: Vec<OsString> = vec!["run".into(), agent.into()];
    args.extend(prepared.world.again.iter().cloned());
    for (flag, path) in [("--target-repo", repo), ("--output-dir", out), ("--review", &input)] {
        args.extend([flag.into(), path.as_os_str().to_owned()]);
    }
    // What is shown by default depends on who reads the log, which the reviewer's run is not told.
    args.extend(["--show-agent-output".into(), prepared.show_agent.as_str().into()]);
    if cx.ui.ci() == Ci::GitLab {
        args.extend(["--report-dir".into(), out.as_os_str().to_owned()]);
    }
    // Only what is left of this run's budgets, whatever the reviewer's own harness allows.
    let left = meter.left();
    args.extend(
        left.max_cost_usd.into_iter().flat_map(|usd| [Kind::Cost.flag().into(), usd.to_string().into()]),
    );
    args.extend(left.max_tokens.into_iter().flat_map(|n| [Kind::Tokens.flag().into(), n.to_string().into()]));
    let own = std::env::current_exe().map_err(|e| Error::io("cannot find this program", &e))?;
    let command =
        Command::new("review", own).args(args).deadline(prepared.plan.deadlines.review).ending(ENDING);
    let command = prepared.world.file_env.iter().fold(command, |c, (key, value)| c.env(key, value));
    Ok(CI_FILES.iter().fold(command, Command::env_remove))
}

/// What the reviewer gets as its input: the output, the changes, and what was asked for.
async fn hand_over(prepared: &Prepared, iteration: &Iteration<'_>, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to.join("output"))?;
    copy(&iteration.dir.join("output"), &to.join("output"))?;
    fs_err::write(to.join("prompt.txt"), prepared.plan.prompt())?;
    if let Some(import) = iteration.import.filter(|import| !import.is_unchanged()) {
        import.write_changes(to, &prepared.world.repo).await?;
    }
    Ok(())
}

/// Gives the staged repository the objects that it borrows from the checkout, as links like a local clone has: what is
/// uploaded must stand alone, and objects are never written again.
fn own_objects(staged: &Path, git_dir: &Path) -> Result<()> {
    let (from, to) = (git_dir.join("objects"), staged.join(".git/objects"));
    let alternates = to.join("info/alternates");
    if !alternates.exists() {
        return Ok(());
    }
    for entry in walkdir::WalkDir::new(&from).min_depth(1) {
        let entry = entry
            .map_err(|e| Error::new(Code::Io, format!("cannot read the objects of the checkout: {e}")))?;
        let below = entry.path().strip_prefix(&from).unwrap_or(entry.path());
        let target = to.join(below);
        if below.starts_with("info") || target.exists() {
            continue;
        }
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() && std::fs::hard_link(entry.path(), &target).is_err() {
            fs_err::copy(entry.path(), &target)?;
        }
    }
    fs_err::remove_file(alternates)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(from).min_depth(1).into_iter().flatten() {
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() {
            fs_err::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Runs it to its end and shows what it prints. A signal, or the end of this run's time, ends it in order.
async fn run(cx: &Cx, command: Command) -> Result<Output, Failure> {
    let (mut out, mut err) = (Shown::of_agent(&cx.ui), Shown::of_agent(&cx.ui));
    let done = command
        .stream_until(cx.signals.wait_end(), |stream, chunk| {
            let shown = if stream == Stream::Stdout { &mut out } else { &mut err };
            shown.bytes(chunk);
            if chunk.ends_with(b"\n") {
                shown.settle();
            }
        })
        .await;
    out.end();
    err.end();
    done
}

/// The verdict, or why there is none.
fn judge(
    cx: &Cx,
    agent: &str,
    number: u32,
    done: Result<Output, Failure>,
    dir: Option<&Path>,
) -> Result<Verdict> {
    if let Some(stopped) = cx.signals.stopped() {
        return Err(stopped.help("the work was not reviewed to the end; it is in the run directory"));
    }
    match (done, dir) {
        (Ok(_), Some(dir)) => review::read(agent, number, dir),
        (Ok(output), None) => Err(review::reported(agent, number, output.status, &output.stderr_text())),
        (Err(Failure::Deadline { after, stderr, .. }), _) => {
            let why = format!("it did not end within {}", crate::report::duration(after));
            Err(review::none(agent, number, &why)
                .detail(last_lines(&stderr, SHOWN))
                .help("`deadlines.review` in the harness gives it more time"))
        }
        (Err(failure), _) => Err(failure.into()),
    }
}

fn newest(out: &Path) -> Option<PathBuf> {
    let dirs = std::fs::read_dir(out).ok()?.flatten().map(|e| e.path()).filter(|p| p.is_dir());
    dirs.max()
}
