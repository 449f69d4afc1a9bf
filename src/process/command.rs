//! What to spawn, and running it to its end.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep_until;

use super::capture::Ring;
use super::child::Child;
use super::groups::Group;
use super::trace::{self, End, Traced};
use super::{mark, scale};
use rustix::process::Signal;

/// How long a child may take between TERM and KILL once its deadline has passed.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How a child is ended: signals, each with the time until the next; the last one is repeated.
pub type Ending = &'static [(Signal, Duration)];
const USUAL: Ending = &[(Signal::TERM, TERM_GRACE), (Signal::KILL, TERM_GRACE)];
/// How long pipes are still read after the direct child has ended while a grandchild holds them.
const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// Where a child's standard input comes from.
#[derive(Debug, Default)]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// A pipe that the caller of [`Command::spawn`] writes.
    Piped,
}

/// Which of a child's streams a chunk came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this status.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
}

impl Status {
    /// Exit status 0.
    pub fn success(self) -> bool {
        self == Status::Exited(0)
    }

    /// The exit status; `None` when a signal ended the child.
    pub fn code(self) -> Option<i32> {
        match self {
            Status::Exited(code) => Some(code),
            Status::Signaled(_) => None,
        }
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, Some(signal)) => Status::Signaled(signal),
            (None, None) => Status::Exited(-1),
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Exited(code) => write!(f, "exit status {code}"),
            Status::Signaled(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What a finished child left.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: Status,
    /// The last bytes of its standard output.
    pub stdout: Vec<u8>,
    /// Whether older bytes of standard output were dropped.
    pub stdout_truncated: bool,
    /// The last bytes of its standard error.
    pub stderr: Vec<u8>,
    /// From spawn to the end.
    pub elapsed: Duration,
}

impl Output {
    /// Standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Why there is no [`Output`].
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program does not exist.
    #[error("{program} was not found")]
    NotFound {
        /// The program as it was named.
        program: String,
    },
    /// The directory that the program was to work in does not exist.
    #[error("{label} cannot work in {}: the directory is not there any more", dir.display())]
    NoDirectory {
        /// What was being done.
        label: String,
        /// The directory.
        dir: PathBuf,
    },
    /// The program could not be started or waited for.
    #[error("{program} could not be run: {error}")]
    NotRun {
        /// The program as it was named.
        program: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The deadline passed; the whole group was killed.
    #[error("{label} did not end within {}", crate::report::duration(*.after))]
    Deadline {
        /// What was being done.
        label: String,
        /// The deadline.
        after: Duration,
        /// The last bytes of standard error.
        stderr: String,
    },
}

impl From<Failure> for crate::Error {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::NotFound { .. } => {
                Self::new(crate::Code::ToolMissing, message).help("install it, or put it on PATH")
            }
            Failure::NoDirectory { .. } => Self::new(crate::Code::Io, message)
                .help("was it moved or deleted meanwhile? leave it where it is until the run has ended"),
            Failure::NotRun { .. } => Self::new(crate::Code::Process, message),
            Failure::Deadline { stderr, .. } => Self::new(crate::Code::Process, message).detail(stderr),
        }
    }
}

/// A child to be spawned. The environment is inherited, with changes.
#[derive(Debug)]
pub struct Command {
    label: String,
    program: PathBuf,
    args: Vec<OsString>,
    clear_env: bool,
    env: Vec<(OsString, Option<OsString>)>,
    cwd: Option<PathBuf>,
    stdin: Stdin,
    deadline: Option<Duration>,
    ending: Ending,
    keep_stdout: usize,
}

impl Command {
    /// `label` names the call in errors and logs, e.g. `openshell sandbox create`.
    pub fn new(label: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            label: label.into(),
            program: program.into(),
            args: Vec::new(),
            clear_env: false,
            env: Vec::new(),
            cwd: None,
            stdin: Stdin::Null,
            deadline: None,
            ending: USUAL,
            keep_stdout: Ring::DEFAULT,
        }
    }

    /// Adds an argument. Secrets never go here: argv is public on the machine.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the child.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable from the child.
    #[must_use]
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), None));
        self
    }

    /// Starts the child from an empty environment.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.clear_env = true;
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Ends the child's group after this time: TERM, a grace of two seconds, KILL.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(scale::limit(deadline));
        self
    }

    /// Ends the child's group like this instead.
    #[must_use]
    pub fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    /// Keeps up to `limit` bytes of standard output instead of 64 KiB.
    #[must_use]
    pub fn keep_stdout(mut self, limit: usize) -> Self {
        self.keep_stdout = limit;
        self
    }

    /// The program and its arguments.
    pub fn argv(&self) -> Vec<OsString> {
        std::iter::once(self.program.clone().into_os_string()).chain(self.args.iter().cloned()).collect()
    }

    /// What the call is named in messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Spawns the child with piped output streams, for callers that follow it while it runs. The deadline is
    /// the caller's to keep.
    pub fn spawn(mut self) -> Result<Child, Failure> {
        let stdin = std::mem::take(&mut self.stdin);
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(match stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Bytes(_) | Stdin::Piped => Stdio::piped(),
        });
        if self.clear_env {
            command.env_clear();
        }
        let (mut traced, context) = Traced::start(&self.label, &self.program);
        if let Some(context) = context {
            command.env(trace::VARIABLE, context);
        }
        for (key, value) in &self.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(mark) = mark::get() {
            command.env(mark::VARIABLE, mark);
        }
        if let Some(dir) = &self.cwd {
            command.current_dir(dir);
        }
        tracing::debug!(label = %self.label, argv = ?self.argv(), "spawn");
        let inner = command.spawn().map_err(|error| {
            traced.end(End::NotStarted);
            self.not_run(error)
        })?;
        let pid = inner.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        let mut child = Child::new(inner, Group::new(pid), traced, self.label);
        if let Stdin::Bytes(bytes) = stdin
            && let Some(mut pipe) = child.stdin.take()
        {
            // A child that does not read its input must not block us, so a task of its own writes it.
            tokio::spawn(async move {
                let _ = pipe.write_all(&bytes).await;
            });
        }
        Ok(child)
    }

    /// Runs the child to its end.
    pub async fn output(self) -> Result<Output, Failure> {
        self.stream(|_, _| {}).await
    }

    /// Runs the child to its end; `sink` sees every chunk as it comes.
    pub async fn stream(self, sink: impl FnMut(Stream, &[u8])) -> Result<Output, Failure> {
        self.stream_until(std::future::pending(), sink).await
    }

    /// The same; once `end` comes the child is asked to end, as at its deadline, and waited for.
    pub async fn stream_until(
        self,
        end: impl Future<Output = ()>,
        mut sink: impl FnMut(Stream, &[u8]),
    ) -> Result<Output, Failure> {
        let started = Instant::now();
        let (deadline, keep, label) = (self.deadline, self.keep_stdout, self.label.clone());
        let mut steps = Steps { ending: self.ending, next: 0 };
        let program = self.program.display().to_string();
        let mut child = self.spawn()?;
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (Ring::new(keep), Ring::new(Ring::DEFAULT));
        let (mut out_buf, mut err_buf) = (vec![0; 32 * 1024], vec![0; 8 * 1024]);
        let mut status = None;
        let (mut expired, mut asked) = (false, false);
        let mut alarm = deadline.map(|d| started + d);
        tokio::pin!(end);
        loop {
            if status.is_some() && stdout.is_none() && stderr.is_none() {
                break;
            }
            tokio::select! {
                n = read(&mut stdout, &mut out_buf), if stdout.is_some() => {
                    out.push(&out_buf[..n]);
                    sink(Stream::Stdout, &out_buf[..n]);
                }
                n = read(&mut stderr, &mut err_buf), if stderr.is_some() => {
                    err.push(&err_buf[..n]);
                    sink(Stream::Stderr, &err_buf[..n]);
                }
                ended = child.wait(), if status.is_none() => {
                    status = Some(ended.map_err(|error| Failure::NotRun { program: program.clone(), error })?);
                    alarm = Some(Instant::now() + DRAIN_GRACE);
                }
                () = sleep_until(alarm.unwrap_or_else(Instant::now).into()), if alarm.is_some() => {
                    if status.is_some() {
                        // Only grandchildren are left, and they hold a pipe.
                        child.kill_leftovers();
                        break;
                    }
                    expired |= !asked;
                    alarm = Some(steps.signal(&child));
                }
                () = &mut end, if !asked && !expired && status.is_none() => {
                    asked = true;
                    alarm = Some(steps.signal(&child));
                }
            }
        }
        let elapsed = started.elapsed();
        let (stderr, _) = err.finish();
        tracing::debug!(%label, ?status, ?elapsed, "ended");
        match (expired, deadline, status) {
            (true, Some(after), _) => {
                Err(Failure::Deadline { label, after, stderr: String::from_utf8_lossy(&stderr).into_owned() })
            }
            (_, _, Some(status)) => {
                let (stdout, stdout_truncated) = out.finish();
                Ok(Output { status, stdout, stdout_truncated, stderr, elapsed })
            }
            (_, _, None) => Err(Failure::NotRun { program, error: std::io::ErrorKind::Other.into() }),
        }
    }

    fn not_run(&self, error: std::io::Error) -> Failure {
        let program = self.program.display().to_string();
        // The system says the same of a program and of a directory that does not exist.
        let lost = self.cwd.as_ref().filter(|dir| !dir.is_dir());
        match (error.kind(), lost) {
            (std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory, Some(dir)) => {
                Failure::NoDirectory { label: self.label.clone(), dir: dir.clone() }
            }
            (std::io::ErrorKind::NotFound, None) => Failure::NotFound { program },
            _ => Failure::NotRun { program, error },
        }
    }
}

/// How far the ending of a child has come.
struct Steps {
    ending: Ending,
    next: usize,
}

impl Steps {
    /// Sends the next signal. The moment is that of the one after it.
    fn signal(&mut self, child: &Child) -> Instant {
        let step = self.ending.get(self.next).or_else(|| self.ending.last());
        let (signal, grace) = step.copied().unwrap_or((Signal::KILL, TERM_GRACE));
        self.next += 1;
        child.signal(signal);
        Instant::now() + scale::pause(grace)
    }
}

/// Reads a chunk; end of file and errors close the pipe (a broken pipe says no more than its end).
async fn read<R: AsyncRead + Unpin>(pipe: &mut Option<R>, buf: &mut [u8]) -> usize {
    let Some(reader) = pipe else { return 0 };
    let n = reader.read(buf).await.unwrap_or(0);
    if n == 0 {
        *pipe = None;
    }
    n
}
