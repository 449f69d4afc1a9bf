//! One run of the agent: start, follow, and end it by itself, its deadline, or a cancel.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, interval, interval_at, sleep};

use super::bootstrap::Bootstrapped;
use super::context::{Cx, Note};
use super::meter::{Kind, Meter, Over};
use super::outcome::EndedBy;
use super::prepare::Prepared;
use super::servers::Servers;
use super::watch::{Bells, Watch, Watched};
use crate::agent::render::ShowAgent;
use crate::agent::{Exit, Metrics, judge};
use crate::error::{Code, Error, Result};
use crate::plan::layout::{Layout, SUPERVISOR};
use crate::process::scale;
use crate::remote::{self, Ended, Heard, Hurry, Launch, MOST, Session};
use crate::report::{Live, bytes, duration};
use crate::secrets::Registry;
use crate::telemetry;

/// How long an agent that has given its final result may take to exit. Agents are known to stay for hours
/// because a child of theirs holds on (anthropics/claude-code#25629).
const RESULT_GRACE: Duration = Duration::from_secs(30);
/// Between TERM and KILL when the run ends the agent.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The same after a cancel, where everything has to fit into seven seconds.
const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// How long the rest of the stream is read after a cancel. It belongs to the seconds that are left for everything.
const CANCEL_REST: Duration = Duration::from_millis(500);
/// After how long a silence there is a notice.
const SILENCE: Duration = Duration::from_mins(5);
/// A secret whose parts come further apart than this may be shown in parts.
const SETTLED: Duration = Duration::from_millis(500);
/// How long the notice of a budget may be under way.
const NOTICE_LIMIT: Duration = Duration::from_secs(20);
/// How often the line at the bottom of a terminal is drawn.
const REFRESH: Duration = Duration::from_millis(500);
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
    sandbox: &mut Bootstrapped,
    n: u32,
    dir: &Path,
    meter: Meter,
    secrets: &Registry,
) -> Result<Ran> {
    let plan = &prepared.plan;
    let Bootstrapped { session, agent_version, .. } = sandbox;
    cx.recorded("agent", async {
        let bells = Bells::default();
        let format = plan.harness.runtime.runtime().format();
        let watch = RefCell::new(Watch::new(dir, format, prepared.show_agent, secrets, cx, &bells, meter)?);
        let launch = Launch {
            script: SUPERVISOR.into(),
            dir: Layout::iteration(n),
            deadline: plan.deadlines.agent,
            grace: STOP_GRACE,
            marker: cx.id.id.to_string(),
            traceparent: Some(cx.trace.traceparent()),
        };
        let (ended, ended_by) =
            follow(cx, session, &launch, plan.deadlines.idle, &watch, &bells, prepared.show_agent).await;
        let mut watched = watch.into_inner().finish()?;
        // Not every stream says them.
        let metrics = &mut watched.metrics;
        metrics.model = metrics.model.take().or_else(|| plan.model.clone());
        metrics.agent_version = metrics.agent_version.take().or_else(|| agent_version.clone());
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
        if matches!(
            ended_by,
            EndedBy::Cancel | EndedBy::Deadline | EndedBy::Silence | EndedBy::Budget | EndedBy::ApiServer
        ) {
            ran.ended_by = ended_by;
        }
        for (key, value) in about(n, &ran.watched.metrics) {
            cx.trace.note(key, value);
        }
        let note = format!("{}{}", ran.ending(), figures(&ran.watched.metrics));
        let failed = ran.failed();
        Ok((ran, Note::judged(note, failed)))
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
    bells: &Bells,
    show: ShowAgent,
) -> (Result<Ended>, EndedBy) {
    let notices = notices(session, launch);
    let mut sink = |heard: Heard<'_>| watch.borrow_mut().hear(heard);
    let overdue = async {
        loop {
            bells.concluded.notified().await;
            sleep(scale::pause(RESULT_GRACE)).await;
            if watch.borrow().is_done() {
                return;
            }
        }
    };
    let hurry = Hurry::default();
    let ending = async {
        cx.signals.wait_end().await;
        hurry.term().await;
    };
    let asked = || match cx.signals.first() {
        Some(_) => (EndedBy::Cancel, CANCEL_GRACE),
        None => (EndedBy::Deadline, scale::pause(STOP_GRACE)),
    };
    let live = if show == ShowAgent::Full { cx.ui.live() } else { None };
    let (ended_by, grace) = tokio::select! {
        ended = remote::run_agent(session, launch, &hurry, &mut sink) => {
            return (ended, if hurry.used() { asked().0 } else { EndedBy::Itself });
        }
        () = ending => asked(),
        () = silent(idle, watch) => (EndedBy::Silence, scale::pause(STOP_GRACE)),
        () = bells.over.notified() => (EndedBy::Budget, scale::pause(STOP_GRACE)),
        () = server_died(cx) => (EndedBy::ApiServer, scale::pause(STOP_GRACE)),
        () = overdue => (EndedBy::AfterResult, scale::pause(STOP_GRACE)),
        never = heartbeat(cx, launch.deadline, watch, live.is_some()) => match never {},
        never = status_line(live.as_ref(), watch) => match never {},
        never = give_notice(cx, notices, watch, bells) => match never {},
        never = settling(watch) => match never {},
    };
    drop(live);
    let rest = async {
        let exit = end(cx, session, launch, grace).await?.unwrap_or(remote::Exit::Unknown);
        let from = watch.borrow().offset();
        let late = async {
            cx.signals.wait(1).await;
            sleep(CANCEL_REST).await;
        };
        tokio::select! {
            ended = remote::follow_rest(session, launch, from, &mut sink) => ended,
            // What is missing is not waited for by somebody who cancelled.
            () = late => Ok(Ended { exit, reattached: 0, tampered: false, bytes: from }),
        }
    };
    (cx.signals.guard_urgent(rest).await, ended_by)
}

/// Ends the agent. A signal meanwhile shortens its grace.
async fn end(cx: &Cx, session: &Session, launch: &Launch, grace: Duration) -> Result<Option<remote::Exit>> {
    if cx.signals.first().is_none() {
        tokio::select! {
            stopped = remote::stop(session, launch, grace) => return stopped,
            _ = cx.signals.wait(1) => {}
        }
    }
    remote::stop(session, launch, grace.min(CANCEL_GRACE)).await
}

/// What the span of an iteration says.
fn about(n: u32, metrics: &Metrics) -> telemetry::Attributes {
    let mut about = vec![("fullsend.iteration", u64::from(n).into())];
    if metrics.tokens.total() > 0 {
        about.extend(telemetry::usage_attributes(&metrics.tokens));
    }
    about.extend(metrics.cost_usd.map(|cost| ("fullsend.cost_usd", cost.into())));
    about.extend(metrics.model.as_deref().map(|model| ("gen_ai.request.model", model.into())));
    about.push(("fullsend.turns", metrics.turns.into()));
    about.push(("fullsend.tool_calls", metrics.tool_calls.into()));
    about
}

/// The agent's figures in a few words; nothing where it gave none.
pub(super) fn figures(metrics: &Metrics) -> String {
    let mut parts = Vec::new();
    if metrics.turns > 0 {
        parts.push(format!("{} turn(s)", metrics.turns));
    }
    if metrics.tool_calls > 0 {
        parts.push(format!("{} tool call(s)", metrics.tool_calls));
    }
    if metrics.permission_denials > 0 {
        parts.push(format!("{} denied", metrics.permission_denials));
    }
    if metrics.tokens.total() > 0 {
        parts.push(format!("{} tokens", metrics.tokens.total()));
    }
    if let Some(cost) = metrics.cost_usd {
        parts.push(format!("${cost:.4}"));
    }
    std::iter::once(String::new()).chain(parts).collect::<Vec<_>>().join(", ")
}

/// The calls that tell the agent of a budget, one per kind. They are made before the connection is lent out.
fn notices(session: &Session, launch: &Launch) -> Vec<(Kind, crate::process::Command)> {
    let call = |kind: Kind| {
        let dir = &launch.dir;
        // The hook that shows a notice puts it into JSON as it is: no quotes and no backslashes.
        let text = format!(
            "Most of the budget of this run is used: four fifths of {} are gone. Wrap up now: finish or undo what is half \
             done, write the results to the output directory, and end.",
            kind.key()
        );
        let script = format!(
            "printf '%s\\n' '{text}' >{dir}/notice.new && rm -rf {dir}/notice.shown && mv -f {dir}/notice.new {dir}/notice"
        );
        (kind, session.command("notice", &script).deadline(NOTICE_LIMIT))
    };
    Kind::ALL.into_iter().map(call).collect()
}

/// Tells the agent once that a budget is nearly used up.
async fn give_notice(
    cx: &Cx,
    notices: Vec<(Kind, crate::process::Command)>,
    watch: &RefCell<Watch<'_>>,
    bells: &Bells,
) -> std::convert::Infallible {
    bells.near.notified().await;
    let kind = watch.borrow().near();
    if let Some((kind, call)) = notices.into_iter().find(|(of, _)| Some(*of) == kind) {
        cx.ui.info("agent", &format!("four fifths of `{}` are used; it is told to wrap up", kind.key()));
        // An agent that does not hear of it is ended all the same.
        if let Err(failure) = call.output().await {
            tracing::debug!(%failure, "the notice did not arrive");
        }
    }
    std::future::pending().await
}

/// Returns when a server on this host has ended by itself.
async fn server_died(cx: &Cx) {
    match cx.servers.get() {
        Some(servers) => drop(servers.died().await),
        None => std::future::pending().await,
    }
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

/// Lets the end of a line be seen when nothing has followed it for a while.
async fn settling(watch: &RefCell<Watch<'_>>) -> std::convert::Infallible {
    loop {
        sleep(SETTLED).await;
        let mut watch = watch.borrow_mut();
        if watch.quiet_for() >= SETTLED {
            watch.settle();
        }
    }
}

/// Keeps the line at the bottom of a terminal up to date.
async fn status_line(live: Option<&Live>, watch: &RefCell<Watch<'_>>) -> std::convert::Infallible {
    let Some(live) = live else { return std::future::pending().await };
    let mut ticks = interval(REFRESH);
    let begun = Instant::now();
    loop {
        ticks.tick().await;
        let took = Duration::from_secs(begun.elapsed().as_secs());
        live.show(&format!("  agent: {}{}", duration(took), figures(watch.borrow().metrics())));
    }
}

/// Speaks up by timer, so that a log never looks dead; louder, once, when nothing is heard of the agent. Whoever sees a
/// live line needs no more than the latter.
async fn heartbeat(
    cx: &Cx,
    limit: Duration,
    watch: &RefCell<Watch<'_>>,
    live: bool,
) -> std::convert::Infallible {
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
        if live {
            continue;
        }
        cx.ui.info(
            "agent",
            &format!(
                "running for {}, {} left, last heard of {} ago{}",
                duration(start.elapsed()),
                duration(left),
                duration(quiet),
                figures(watch.borrow().metrics())
            ),
        );
    }
}

impl Ran {
    fn new(mut watched: Watched, ended: &Ended, ended_by: EndedBy) -> Self {
        watched.evidence.exit = match ended.exit {
            remote::Exit::Code(code) => Exit::Status(code),
            remote::Exit::Signal(signal) => Exit::Signal(signal),
            remote::Exit::Deadline | remote::Exit::Flood | remote::Exit::Unknown => Exit::Unknown,
        };
        let ended_by = match (ended.exit, ended_by) {
            (remote::Exit::Deadline, _) => EndedBy::Deadline,
            (remote::Exit::Flood, _) => EndedBy::Flood,
            (remote::Exit::Unknown, EndedBy::Itself) => EndedBy::Unknown,
            (_, by) => by,
        };
        Self { watched, ended_by, reattached: ended.reattached, tampered: ended.tampered, failure: None }
    }

    /// The code that stands for how the agent ended, when that is a failure.
    fn failed(&self) -> Option<Code> {
        match self.ended_by {
            EndedBy::Cancel => Some(Code::Cancelled),
            EndedBy::ApiServer => Some(Code::ApiServer),
            EndedBy::Budget | EndedBy::Flood => Some(Code::AgentBudget),
            EndedBy::Deadline | EndedBy::Silence => Some(Code::Timeout),
            EndedBy::Itself | EndedBy::AfterResult | EndedBy::Unknown => None,
        }
        .or_else(|| self.watched.over.is_some().then_some(Code::AgentBudget))
        .or_else(|| self.tampered.then_some(Code::ImportBlocked))
        .or_else(|| self.failure.as_ref().map(Error::code))
        .or_else(|| (self.ended_by == EndedBy::Unknown).then_some(Code::SupervisorLost))
        .or_else(|| judge(&self.watched.evidence).code())
    }

    /// How the agent ended, in a few words.
    fn ending(&self) -> String {
        let by = match self.ended_by {
            EndedBy::Cancel => "cancelled",
            EndedBy::ApiServer => "stopped, as a server that it needs had ended",
            EndedBy::Budget => "stopped over its budget",
            EndedBy::Flood => "stopped for the amount that it wrote",
            EndedBy::Deadline => "stopped at its deadline",
            EndedBy::Silence => "stopped for its silence",
            EndedBy::AfterResult => "stopped after its result",
            EndedBy::Itself | EndedBy::Unknown => return self.watched.evidence.exit.to_string(),
        };
        match self.watched.evidence.exit {
            Exit::Unknown => by.to_owned(),
            exit => format!("{by}, {exit}"),
        }
    }

    /// What of this counts against success, in the order of evidence; validation comes later.
    pub(super) fn failures(&mut self, cx: &Cx, limit: Duration, idle: Option<Duration>) -> Vec<Error> {
        let mut failures = Vec::new();
        if let (EndedBy::Cancel, Some(signal)) = (self.ended_by, cx.signals.first()) {
            failures.push(Error::cancelled(signal).help("what the agent had done is in the run directory"));
        }
        if self.ended_by == EndedBy::ApiServer {
            failures.extend(cx.servers.get().and_then(Servers::dead));
        }
        if self.ended_by == EndedBy::Flood {
            failures.push(flood());
        }
        // Also of an agent that ended by itself before it could be ended.
        failures.extend(self.watched.over.as_ref().map(over_budget));
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
        if failures.is_empty() && self.ended_by == EndedBy::Unknown {
            failures.push(
                Error::new(
                    Code::SupervisorLost,
                    "the supervisor in the sandbox was killed, so nobody knows how the agent ended",
                )
                .help(
                    "did the agent kill every process, or was the memory used up? its stream, and what could be fetched of \
                     its output, are in the run directory; nothing was applied",
                ),
            );
        }
        failures
    }
}

/// The error of an agent that wrote without end.
fn flood() -> Error {
    let most = bytes(scale::size(MOST));
    let what = format!("the agent wrote more than {most} to its standard output and standard error");
    Error::new(Code::AgentBudget, what).help(
        "does a program that it starts write without end? let it write to a file in the sandbox; what the agent had done \
         is in the run directory",
    )
}

/// The error of a budget that is used up.
pub(super) fn over_budget(over: &Over) -> Error {
    let (key, flag) = (over.kind.key(), over.kind.flag());
    Error::new(Code::AgentBudget, format!("the agent used up `{key}`: {}", over.text)).help(format!(
        "raise `{key}` in the harness or pass {flag}, or give the agent less to do; what it had done is in the run directory"
    ))
}
