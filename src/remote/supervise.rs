//! The host's side of the supervisor in the sandbox: start an agent, follow its stream, stop it.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, sleep, timeout};

use super::session::Session;
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

/// Statuses of the script; see its head.
const TAMPERED: i32 = 65;
const LOST: i32 = 66;
const LIFE_OVER: i32 = 75;
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
    /// The bytes of the stream that were received.
    pub bytes: u64,
}

/// Starts the agent (unless an earlier call did) and follows its stream to the end; `sink` gets every byte once
/// and in order. A lost connection is replaced. Dropping the future leaves the agent running: [`stop`] ends it.
///
/// # Errors
/// [`Code::SshFailed`] when a lost connection cannot be replaced, [`Code::SupervisorLost`] when the supervisor
/// could not start.
pub async fn run_agent(session: &mut Session, launch: &Launch, sink: &mut dyn FnMut(&[u8])) -> Result<Ended> {
    let limit = launch.deadline + launch.grace + scale::limit(DEADLINE_SLACK);
    let mut follow = Follow { launch, sink, bytes: 0, reattached: 0, news: Instant::now() };
    match timeout(limit, follow.until_end(session)).await {
        Ok(ended) => ended,
        // The supervisor itself hangs; the deadline has passed all the same.
        Err(_) => Ok(follow.ended(Exit::Deadline, false)),
    }
}

/// Follows the rest of a stream of which `offset` bytes are known, after [`stop`].
///
/// # Errors
/// As [`run_agent`].
pub async fn follow_rest(
    session: &mut Session,
    launch: &Launch,
    offset: u64,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Ended> {
    let mut follow = Follow { launch, sink, bytes: offset, reattached: 0, news: Instant::now() };
    match timeout(scale::limit(DEADLINE_SLACK), follow.until_end(session)).await {
        Ok(ended) => ended,
        Err(_) => Ok(follow.ended(Exit::Unknown, false)),
    }
}

struct Follow<'a> {
    launch: &'a Launch,
    sink: &'a mut dyn FnMut(&[u8]),
    bytes: u64,
    reattached: u32,
    /// When something was last heard.
    news: Instant,
}

impl Follow<'_> {
    fn ended(&self, exit: Exit, tampered: bool) -> Ended {
        Ended { exit, tampered, reattached: self.reattached, bytes: self.bytes }
    }

    async fn until_end(&mut self, session: &mut Session) -> Result<Ended> {
        let mut pause = FIRST_PAUSE;
        loop {
            let before = self.bytes;
            let (status, words) = self.once(session).await?;
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
                // The connection, or the follower saw the connection end.
                Some(255 | 74) | None => {
                    self.reattach(session, &words, &mut pause).await?;
                    self.reattached += 1;
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

    /// One follower, from the byte that is next. Returns its status and what it said.
    async fn once(&mut self, session: &Session) -> Result<(Status, String)> {
        let script = run_script(self.launch, self.bytes);
        // The follower ends when its standard input does, which is when this client or the connection dies.
        let mut child = session.command("agent", &script).stdin(Stdin::Piped).spawn()?;
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let mut words = Ring::new(Ring::DEFAULT);
        let (mut out, mut err) = (vec![0; 64 * 1024], vec![0; 4096]);
        while stdout.is_some() || stderr.is_some() {
            tokio::select! {
                n = read(stdout.as_mut(), &mut out), if stdout.is_some() => {
                    if n == 0 { stdout = None; continue; }
                    self.bytes += n as u64;
                    self.news = Instant::now();
                    (self.sink)(&out[..n]);
                }
                n = read(stderr.as_mut(), &mut err), if stderr.is_some() => {
                    if n == 0 { stderr = None; continue; }
                    words.push(&err[..n]);
                }
            }
        }
        let status = child.wait().await.map_err(|e| Error::io("cannot wait for ssh", &e))?;
        if status.code().is_some_and(|code| code != 255) {
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
    let words = ["run", &launch.dir, &deadline, &launch.marker, &grace, &offset.to_string(), &life];
    call(&launch.script, &words)
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
mod tests {
    use super::*;

    fn launch() -> Launch {
        Launch {
            script: "/sandbox/.fs/supervise.sh".into(),
            dir: "/sandbox/my run".into(),
            deadline: Duration::from_mins(1),
            grace: Duration::from_millis(10),
            marker: "fs-1".into(),
        }
    }

    #[test]
    fn the_call_is_quoted() {
        assert_eq!(
            run_script(&launch(), 17),
            "exec sh /sandbox/.fs/supervise.sh run '/sandbox/my run' 60 fs-1 1 17 600"
        );
    }

    #[test]
    fn reports_are_read_and_nonsense_is_unknown() {
        let read = |words| parse_report(words);
        assert_eq!(
            read("/bin/bash: warning\nfullsend-supervise v1 exit 3 120\n"),
            Some((Exit::Code(3), 120))
        );
        assert_eq!(read("fullsend-supervise v1 signal 9 0"), Some((Exit::Signal(9), 0)));
        assert_eq!(read("fullsend-supervise v1 deadline 60 5"), Some((Exit::Deadline, 5)));
        assert_eq!(read("fullsend-supervise v1 stopped 143 5"), Some((Exit::Signal(15), 5)));
        assert_eq!(read("fullsend-supervise v1 stopped 0 5"), Some((Exit::Code(0), 5)));
        assert_eq!(read("fullsend-supervise v1 else 1 5"), Some((Exit::Unknown, 5)));
        assert_eq!(read("fullsend-supervise v1 exit x 5"), Some((Exit::Unknown, 5)));
        assert_eq!(read("fullsend-supervise v2 exit 0 5"), None);
        assert_eq!(read(""), None);
    }
}
