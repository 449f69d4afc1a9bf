//! One run of the agent: start, follow, and end it by itself, its deadline, or a cancel.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, interval_at, sleep};

use super::context::Cx;
use super::outcome::EndedBy;
use super::prepare::Prepared;
use super::watch::{Watch, Watched};
use crate::agent::{Exit, Metrics};
use crate::error::{Code, Error, Result};
use crate::plan::layout::{Layout, SUPERVISOR};
use crate::process::scale;
use crate::remote::{self, Ended, Launch, Session};
use crate::report::duration;
use crate::secrets::Registry;

/// How long an agent that has given its final result may take to exit. Agents are known to stay for hours
/// because a child of theirs holds on (anthropics/claude-code#25629).
const RESULT_GRACE: Duration = Duration::from_secs(30);
/// Between TERM and KILL when the run ends the agent.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The same after a cancel, where everything has to fit into seven seconds.
const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// After how long a silence there is a notice.
const SILENCE: Duration = Duration::from_mins(5);
/// How often a running agent is spoken of.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// How the agent ended.
#[derive(Debug)]
pub(super) struct Ran {
    /// What its stream said.
    pub watched: Watched,
    /// Who ended it.
    pub ended_by: EndedBy,
    /// How often the connection was lost and taken up again.
    pub reattached: u32,
    /// Whether the stream file was shortened or replaced while it was read.
    pub tampered: bool,
    /// What went wrong besides the agent itself.
    pub failure: Option<Error>,
}

/// Runs the agent once.
pub(super) async fn run_agent(
    cx: &Cx,
    prepared: &Prepared,
    session: &mut Session,
    n: u32,
    dir: &Path,
    secrets: &Registry,
) -> Result<Ran> {
    let plan = &prepared.plan;
    cx.ui.section(&format!("agent, iteration {n} of {}", plan.iterations));
    cx.recorded("agent", async {
        let concluded = Notify::new();
        let format = plan.harness.runtime.runtime().format();
        let path = dir.join("stream.jsonl");
        let watch = RefCell::new(Watch::new(&path, format, secrets, &cx.ui, &concluded)?);
        let launch = Launch {
            script: SUPERVISOR.into(),
            dir: Layout::iteration(n),
            deadline: plan.deadlines.agent,
            grace: STOP_GRACE,
            marker: cx.id.id.to_string(),
        };
        let (ended, ended_by) = follow(cx, session, &launch, plan.deadlines.idle, &watch, &concluded).await;
        let mut watched = watch.into_inner().finish()?;
        let mut ran = match ended {
            Ok(ended) => Ran::new(watched, &ended, ended_by),
            Err(error) => {
                watched.evidence.exit = Exit::Unknown;
                Ran {
                    watched,
                    ended_by: EndedBy::Unknown,
                    reattached: 0,
                    tampered: false,
                    failure: Some(error),
                }
            }
        };
        if matches!(ended_by, EndedBy::Cancel | EndedBy::Deadline | EndedBy::Silence) {
            ran.ended_by = ended_by;
        }
        let note = format!("{}{}", ran.watched.evidence.exit, figures(&ran.watched.metrics));
        Ok((ran, note))
    })
    .await
}

/// Follows the agent; when the run has to end it, asks the supervisor to and takes what is left of the stream.
async fn follow(
    cx: &Cx,
    session: &mut Session,
    launch: &Launch,
    idle: Option<Duration>,
    watch: &RefCell<Watch<'_>>,
    concluded: &Notify,
) -> (Result<Ended>, EndedBy) {
    let mut sink = |chunk: &[u8]| watch.borrow_mut().push(chunk);
    let overdue = async {
        concluded.notified().await;
        sleep(scale::pause(RESULT_GRACE)).await;
    };
    let (ended_by, grace) = tokio::select! {
        ended = remote::run_agent(session, launch, &mut sink) => return (ended, EndedBy::Itself),
        () = cx.signals.wait_end() => match cx.signals.first() {
            Some(_) => (EndedBy::Cancel, CANCEL_GRACE),
            None => (EndedBy::Deadline, scale::pause(STOP_GRACE)),
        },
        () = silent(idle, watch) => (EndedBy::Silence, scale::pause(STOP_GRACE)),
        () = overdue => (EndedBy::AfterResult, scale::pause(STOP_GRACE)),
        never = heartbeat(cx, launch.deadline, watch) => match never {},
    };
    let rest = async {
        remote::stop(session, launch, grace).await?;
        let from = watch.borrow().bytes();
        remote::follow_rest(session, launch, from, &mut sink).await
    };
    (cx.signals.guard_urgent(rest).await, ended_by)
}

/// The agent's figures in a few words; nothing where it gave none.
fn figures(metrics: &Metrics) -> String {
    let mut parts = Vec::new();
    if metrics.turns > 0 {
        parts.push(format!("{} turn(s)", metrics.turns));
    }
    if metrics.tool_calls > 0 {
        parts.push(format!("{} tool call(s)", metrics.tool_calls));
    }
    if metrics.tokens.total() > 0 {
        parts.push(format!("{} tokens", metrics.tokens.total()));
    }
    if let Some(cost) = metrics.cost_usd {
        parts.push(format!("${cost:.4}"));
    }
    std::iter::once(String::new()).chain(parts).collect::<Vec<_>>().join(", ")
}

/// Returns when nothing was heard of the agent for so long.
async fn silent(limit: Option<Duration>, watch: &RefCell<Watch<'_>>) {
    let Some(limit) = limit else { return std::future::pending().await };
    loop {
        let quiet = watch.borrow().quiet_for();
        if quiet >= limit {
            return;
        }
        sleep(limit.saturating_sub(quiet)).await;
    }
}

/// Speaks up by timer, so that a log never looks dead; louder, once, when nothing is heard of the agent.
async fn heartbeat(cx: &Cx, limit: Duration, watch: &RefCell<Watch<'_>>) -> std::convert::Infallible {
    let start = Instant::now();
    let mut noticed = false;
    let mut ticks = interval_at(start + HEARTBEAT, HEARTBEAT);
    loop {
        ticks.tick().await;
        let left = limit.saturating_sub(start.elapsed());
        let quiet = watch.borrow().quiet_for();
        if quiet >= SILENCE && !noticed {
            cx.ui.warn(&format!(
                "nothing was heard of the agent for {}; it goes on until its deadline (`idle_timeout` in the harness \
                 would end it)",
                duration(quiet)
            ));
        }
        noticed = quiet >= SILENCE;
        cx.ui.info(
            "agent",
            &format!(
                "running for {}, {} left, last heard of {} ago",
                duration(start.elapsed()),
                duration(left),
                duration(quiet)
            ),
        );
    }
}

impl Ran {
    fn new(mut watched: Watched, ended: &Ended, ended_by: EndedBy) -> Self {
        watched.evidence.exit = match ended.exit {
            remote::Exit::Code(code) => Exit::Status(code),
            remote::Exit::Signal(signal) => Exit::Signal(signal),
            remote::Exit::Deadline | remote::Exit::Unknown => Exit::Unknown,
        };
        let ended_by = match (ended.exit, ended_by) {
            (remote::Exit::Deadline, _) => EndedBy::Deadline,
            (remote::Exit::Unknown, EndedBy::Itself) => EndedBy::Unknown,
            (_, by) => by,
        };
        Self { watched, ended_by, reattached: ended.reattached, tampered: ended.tampered, failure: None }
    }

    /// What of this counts against success, in the order of evidence; validation comes later.
    pub(super) fn failures(&mut self, cx: &Cx, limit: Duration, idle: Option<Duration>) -> Vec<Error> {
        let mut failures = Vec::new();
        if let (EndedBy::Cancel, Some(signal)) = (self.ended_by, cx.signals.first()) {
            failures.push(Error::cancelled(signal).help("what the agent had done is in the run directory"));
        }
        if self.ended_by == EndedBy::Silence {
            let idle = idle.map(duration).unwrap_or_default();
            failures.push(
                Error::new(Code::Timeout, format!("nothing was heard of the agent for {idle}"))
                    .help("raise `idle_timeout` in the harness, or remove it; what the agent had done is in the run directory"),
            );
        }
        if let (EndedBy::Deadline, Some(error)) = (self.ended_by, cx.signals.stopped()) {
            failures.push(error);
        } else if self.ended_by == EndedBy::Deadline {
            failures.push(
                Error::new(Code::Timeout, format!("the agent did not finish within {}", duration(limit)))
                    .help("raise `timeout_minutes` in the harness or pass --timeout; what it had done is in the run directory"),
            );
        }
        if self.tampered {
            failures.push(
                Error::new(Code::ImportBlocked, "the agent's stream was shortened or replaced while it ran")
                    .help("nothing is taken over; look at iteration-N/stream.jsonl for what was seen before"),
            );
        }
        failures.extend(self.failure.take());
        failures
    }
}
