//! The host's side of the supervisor in the sandbox: start an agent, follow its stream, stop it.

use std::cell::Cell;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::session::{MARK, SAY_MARK, Session};
use super::ssh_config::shell_quote;
use crate::error::{Code, Error, Result};
use crate::process::{Ring, Status, Stdin, scale};

/// The supervisor, a POSIX shell script that the bootstrap archive brings into the sandbox.
pub const SUPERVISOR: &str = include_str!("supervise.sh");

/// How long one follower lives; then it is replaced, so that none is left behind for long by a server that does
/// not tell it of a lost connection.
const FOLLOWER_LIFE: Duration = Duration::from_mins(10);
/// How long the agent's end may come after its own deadline and grace before the host stops waiting.
const DEADLINE_SLACK: Duration = Duration::from_mins(1);
/// How long a lost connection is tried again without any byte of news.
const REATTACH_LIMIT: Duration = Duration::from_mins(2);
/// The first and the longest pause before a new attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The most that an agent may write to its standard output and standard error together: much more than any writes
/// that works, and not enough to fill the disk of a sandbox.
pub const MOST: u64 = 1_000_000_000;
/// How much of a stream is still read after its agent was ended, and for how long. It is the end of it.
const REST: u64 = 16_000_000;
const REST_LIMIT: Duration = Duration::from_secs(20);
/// The same once that time was not enough: the result comes last.
const LAST: u64 = 200_000;

/// Statuses of the script; see its head.
const TAMPERED: i32 = 65;
const LOST: i32 = 66;
const NOBODY_READS: i32 = 74;
const LIFE_OVER: i32 = 75;
const BEHIND: i32 = 76;
/// From here on a status is that of a shell whose command a signal ended; 255 is ssh's own.
const KILLED: i32 = 129;
/// What the line begins with in which the follower reports the end.
const REPORT: &str = "fullsend-supervise v1 ";

/// One start of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The path of [`SUPERVISOR`] in the sandbox.
    pub script: String,
    /// The directory of this start in the sandbox. It holds `command`, which a login bash runs; the supervisor
    /// adds `stream.jsonl`, `stderr.log`, `exit` and its own files.
    pub dir: String,
    /// How long the agent may run; enforced in the sandbox, to the second.
    pub deadline: Duration,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// The value of `FULLSEND_RUN_MARKER` in the agent's environment, by which a sweep finds what it left.
    pub marker: String,
    /// `TRACEPARENT` in the agent's environment.
    pub traceparent: Option<String>,
}

/// How the agent ended, as the supervisor saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// It was ended by this signal, or its shell said so with 128 and the number.
    Signal(i32),
    /// Its deadline ended it.
    Deadline,
    /// It was ended because it wrote more than [`MOST`].
    Flood,
    /// There is no exit file, or it cannot be read. Never a success.
    Unknown,
}

/// What is known after the agent's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// How often a lost connection was replaced.
    pub reattached: u32,
    /// Whether the stream was shortened or replaced, or does not have the length that was reported.
    pub tampered: bool,
    /// The bytes of the stream that were received or passed over.
    pub bytes: u64,
}

/// What is heard of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The next bytes.
    Bytes(&'a [u8]),
    /// So many bytes are left out: the agent was ended, and they stood before its last ones. What follows may begin
    /// within a line.
    Gap(u64),
}

/// Whoever takes a stream.
type Sink<'a> = &'a mut dyn FnMut(Heard<'_>);

/// A way to tell the agent at once that it is to end; [`stop`] has to follow, for an agent that does not listen.
#[derive(Debug, Default)]
pub struct Hurry {
    asked: Notify,
    sent: Notify,
    used: Cell<bool>,
}

/// How long the word may take to leave this host.
const HURRY_LIMIT: Duration = Duration::from_millis(40);
/// How long ssh needs to send it on.
const HURRY_PAUSE: Duration = Duration::from_millis(15);

impl Hurry {
    /// Sends TERM to the agent's group over the follower that is there, without a new process on either side. Returns
    /// when the word is under way; [`run_agent`] has to be polled meanwhile.
    pub async fn term(&self) {
        self.used.set(true);
        self.asked.notify_one();
        let _ = timeout(HURRY_LIMIT, self.sent.notified()).await;
    }

    /// Whether the agent may have ended because it was told to.
    pub fn used(&self) -> bool {
        self.used.get()
    }
}

/// Starts the agent (unless an earlier call did) and follows its stream to the end; `sink` gets every byte once
/// and in order, but of an agent that was ended only the last ones of what is not read by then. A lost connection is replaced. Dropping the future leaves the agent running: [`stop`] ends it.
///
/// # Errors
/// [`Code::SshFailed`] when a lost connection cannot be replaced, [`Code::SupervisorLost`] when the supervisor
/// could not start.
pub async fn run_agent(
    session: &mut Session,
    launch: &Launch,
    hurry: &Hurry,
    sink: Sink<'_>,
) -> Result<Ended> {
    let limit = launch.deadline + launch.grace + scale::limit(DEADLINE_SLACK);
    let mut follow = Follow::new(launch, hurry, sink, 0);
    match timeout(limit, follow.until_end(session)).await {
        Ok(ended) => ended,
        Err(_) => follow.late(session).await,
    }
}

/// Follows the rest of a stream of which `offset` bytes are known, after [`stop`]. It is bounded like that of an agent
/// that its deadline ended.
///
/// # Errors
/// As [`run_agent`].
pub async fn follow_rest(
    session: &mut Session,
    launch: &Launch,
    offset: u64,
    sink: Sink<'_>,
) -> Result<Ended> {
    let hurry = &Hurry::default();
    let mut follow = Follow::new(launch, hurry, sink, offset);
    match timeout(scale::limit(DEADLINE_SLACK), follow.until_end(session)).await {
        Ok(ended) => ended,
        Err(_) => Ok(follow.ended(Exit::Unknown, false)),
    }
}

struct Follow<'a> {
    launch: &'a Launch,
    hurry: &'a Hurry,
    sink: Sink<'a>,
    bytes: u64,
    reattached: u32,
    /// When something was last heard.
    news: Instant,
    /// Whether the sandbox has answered at all.
    answered: bool,
    /// Set when the agent was ended and not everything is read.
    rest: Option<Rest>,
}

/// The end of a stream whose agent was ended.
#[derive(Debug, Clone, Copy)]
struct Rest {
    exit: Exit,
    /// The length of the stream.
    total: u64,
    /// How long it is waited for.
    until: Instant,
    /// Whether only the last bytes are.
    last: bool,
}

impl<'a> Follow<'a> {
    fn new(launch: &'a Launch, hurry: &'a Hurry, sink: Sink<'a>, offset: u64) -> Self {
        let news = Instant::now();
        Self { launch, hurry, sink, bytes: offset, reattached: 0, news, answered: false, rest: None }
    }

    fn ended(&self, exit: Exit, tampered: bool) -> Ended {
        Ended { exit, tampered, reattached: self.reattached, bytes: self.bytes }
    }

    async fn until_end(&mut self, session: &mut Session) -> Result<Ended> {
        let mut pause = FIRST_PAUSE;
        loop {
            let rest = self.rest;
            let (before, answered) = (self.bytes, self.answered);
            let once = self.once(session);
            let (status, words) = match rest {
                None => once.await?,
                Some(rest) => match timeout_at(rest.until, once).await {
                    Ok(done) => done?,
                    Err(_) if rest.last => return Ok(self.ended(rest.exit, false)),
                    Err(_) => {
                        self.rest_of(rest.exit, rest.total, true);
                        continue;
                    }
                },
            };
            if self.bytes > before {
                pause = FIRST_PAUSE;
            }
            match status.code() {
                Some(0) => {
                    let (exit, total) = parse_report(&words).unwrap_or((Exit::Unknown, self.bytes));
                    return Ok(self.ended(exit, total != self.bytes));
                }
                Some(TAMPERED) => return Ok(self.ended(Exit::Unknown, true)),
                Some(LOST) => return Ok(self.ended(Exit::Unknown, false)),
                Some(LIFE_OVER) => {}
                Some(BEHIND) => {
                    let (exit, total) = parse_report(&words).unwrap_or((Exit::Unknown, self.bytes));
                    self.rest_of(exit, total, false);
                }
                // The connection, or the follower saw the connection end, or somebody killed the follower.
                Some(NOBODY_READS | KILLED..) | None => {
                    self.reattach(session, &words, &mut pause).await?;
                    self.reattached += 1;
                }
                // It was there, and now nothing can be started in the sandbox.
                Some(_) if answered => {
                    tracing::warn!(words, "the sandbox does not answer any more");
                    return Ok(self.ended(Exit::Unknown, false));
                }
                Some(code) => {
                    return Err(Error::new(
                        Code::SupervisorLost,
                        format!("the agent could not be started (status {code})"),
                    )
                    .detail(words));
                }
            }
        }
    }

    /// Goes on shortly before the end.
    fn rest_of(&mut self, exit: Exit, total: u64, last: bool) {
        let until = Instant::now() + scale::limit(REST_LIMIT);
        self.rest = Some(Rest { exit, total, until, last });
        let offset = total.saturating_sub(scale::size(if last { LAST } else { REST }));
        let gap = offset.saturating_sub(self.bytes);
        if gap > 0 {
            self.bytes = offset;
            (self.sink)(Heard::Gap(gap));
        }
    }

    /// The deadline has passed and no end was reported: the connection hangs, or the supervisor does. A new
    /// connection tells which, and has what the old one did not bring.
    async fn late(&mut self, session: &mut Session) -> Result<Ended> {
        self.reattached += 1;
        let again = async {
            session.reopen().await?;
            self.until_end(session).await
        };
        match timeout(scale::limit(DEADLINE_SLACK), again).await {
            Ok(Ok(ended)) if ended.exit != Exit::Unknown || ended.tampered => Ok(ended),
            _ => Ok(self.ended(Exit::Deadline, false)),
        }
    }

    /// One follower, from the byte that is next. Returns its status and what it said.
    async fn once(&mut self, session: &Session) -> Result<(Status, String)> {
        let script = run_script(self.launch, self.bytes);
        // The follower ends when its standard input does, which is when this client or the connection dies.
        let mut child = session.command("agent", &script).stdin(Stdin::Piped).spawn()?;
        let (mut stdin, mut stdout, mut stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut words = Ring::new(Ring::DEFAULT);
        let mut begin = Begin::default();
        let (mut out, mut err) = (vec![0; 64 * 1024], vec![0; 4096]);
        while stdout.is_some() || stderr.is_some() {
            tokio::select! {
                n = read(stdout.as_mut(), &mut out), if stdout.is_some() => {
                    if n == 0 { stdout = None; continue; }
                    let news = begin.rest(&out[..n]);
                    self.answered |= begin.found;
                    if news.is_empty() { continue; }
                    self.bytes += news.len() as u64;
                    self.news = Instant::now();
                    (self.sink)(Heard::Bytes(news));
                    // The pipe of an agent that floods is never empty; others have to come to their turn.
                    tokio::task::yield_now().await;
                }
                n = read(stderr.as_mut(), &mut err), if stderr.is_some() => {
                    if n == 0 { stderr = None; continue; }
                    words.push(&err[..n]);
                }
                () = self.hurry.asked.notified() => {
                    if let Some(stdin) = &mut stdin {
                        // Without it `stop` is the first word.
                        let _ = stdin.write_all(b"term\n").await;
                    }
                    // ssh reads it, and sends it on, before this future is dropped and ssh with it.
                    sleep(HURRY_PAUSE).await;
                    self.hurry.sent.notify_one();
                }
            }
        }
        let status = child.wait().await.map_err(|e| Error::io("cannot wait for ssh", &e))?;
        if status.code().is_some_and(|code| code < KILLED) {
            self.news = Instant::now();
        }
        Ok((status, words.text()))
    }

    async fn reattach(&mut self, session: &mut Session, words: &str, pause: &mut Duration) -> Result<()> {
        let lost = session.broken("agent", words);
        let limit = scale::limit(REATTACH_LIMIT);
        tracing::warn!(bytes = self.bytes, words, "the connection to the agent was lost");
        loop {
            sleep(*pause).await;
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            // The channel may have failed alone: the connection is then as good as before.
            if session.is_open() && self.news.elapsed() < limit {
                return Ok(());
            }
            match session.reopen().await {
                Ok(()) if self.news.elapsed() < limit => return Ok(()),
                Err(_) if self.news.elapsed() < limit => {}
                Ok(()) => return Err(lost),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Finds where the answer of a command begins: after [`MARK`].
#[derive(Debug, Default)]
struct Begin {
    /// The end of what was heard before.
    held: Vec<u8>,
    found: bool,
}

impl Begin {
    /// What of a chunk belongs to the answer.
    fn rest<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        if self.found {
            return chunk;
        }
        let before = self.held.len();
        self.held.extend_from_slice(chunk);
        if let Some(at) = memchr::memmem::find(&self.held, MARK) {
            self.found = true;
            self.held = Vec::new();
            return &chunk[at + MARK.len() - before..];
        }
        let keep = self.held.len().min(MARK.len() - 1);
        self.held.drain(..self.held.len() - keep);
        &[]
    }
}

async fn read(pipe: Option<&mut (impl tokio::io::AsyncRead + Unpin)>, buf: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buf).await.unwrap_or(0),
        None => 0,
    }
}

fn quoted(text: &str) -> String {
    // Quoting adds only ASCII to UTF-8.
    String::from_utf8_lossy(&shell_quote(text.as_bytes())).into_owned()
}

fn call(script: &str, words: &[&str]) -> String {
    words.iter().fold(format!("exec sh {}", quoted(script)), |call, word| format!("{call} {}", quoted(word)))
}

fn run_script(launch: &Launch, offset: u64) -> String {
    let seconds = |d: Duration| d.as_secs().max(1).to_string();
    let (deadline, grace, life) = (seconds(launch.deadline), seconds(launch.grace), seconds(FOLLOWER_LIFE));
    let (most, offset, rest) =
        (scale::size(MOST).to_string(), offset.to_string(), scale::size(REST).to_string());
    let words = ["run", &launch.dir, &deadline, &launch.marker, &grace, &most, &offset, &life, &rest];
    // The supervisor passes its environment on to the agent.
    let context = launch.traceparent.as_ref().map(|t| format!("export TRACEPARENT={}; ", quoted(t)));
    format!("{SAY_MARK}{}{}", context.unwrap_or_default(), call(&launch.script, &words))
}

/// The last report of a follower: how the agent ended, and the length of its stream.
fn parse_report(words: &str) -> Option<(Exit, u64)> {
    let report = words.lines().rev().find_map(|line| line.strip_prefix(REPORT))?;
    let (exit, total) = report.rsplit_once(' ')?;
    Some((parse_exit(exit), total.parse().ok()?))
}

/// Reads what stands in the exit file after `v1`.
fn parse_exit(text: &str) -> Exit {
    let Some((kind, Ok(number))) = text.trim().split_once(' ').map(|(k, n)| (k, n.parse::<i32>())) else {
        return Exit::Unknown;
    };
    match kind {
        "signal" => Exit::Signal(number),
        "deadline" => Exit::Deadline,
        "flood" => Exit::Flood,
        // Asked to stop: the shell's status says by which signal, unless the agent exited by itself.
        "stopped" if number > 128 => Exit::Signal(number - 128),
        "exit" | "stopped" => Exit::Code(number),
        _ => Exit::Unknown,
    }
}

/// Stops the agent: TERM to its group, KILL after `grace`, then a sweep for what left the group. Fine when
/// nothing runs. Returns how the agent ended, when that is known.
///
/// # Errors
/// [`Code::SshFailed`] when the connection failed.
pub async fn stop(session: &Session, launch: &Launch, grace: Duration) -> Result<Option<Exit>> {
    let script = call(&launch.script, &["stop", &launch.dir, &grace.as_secs().to_string()]);
    // Beside the grace: waiting for the exit file, and a sweep of four rounds.
    let output = session.exec("stop the agent", &script, grace + Duration::from_secs(20)).await?;
    Ok(output.stdout_text().lines().rev().find_map(|line| line.strip_prefix("v1 ")).map(parse_exit))
}

/// Ends every process of the sandbox that carries the marker in its environment, but never process 1 and the main
/// process.
///
/// # Errors
/// [`Code::SshFailed`] when the connection failed, [`Code::SupervisorLost`] when something outlived KILL.
pub async fn sweep(session: &Session, launch: &Launch) -> Result<()> {
    let script = call(&launch.script, &["sweep", &launch.marker]);
    let output = session.exec("sweep", &script, Duration::from_secs(20)).await?;
    if output.status.success() {
        return Ok(());
    }
    let what = "processes of the agent are left in the sandbox";
    Err(Error::new(Code::SupervisorLost, what).detail(output.stderr_text()))
}

#[cfg(test)]
mod tests;
