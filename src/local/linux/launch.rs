//! Starting the process that holds a sandbox's namespaces, so that it outlives the call.
//!
//! This and [`super::join`] are where the stand-in spawns. They do not use [`crate::process`]: its children end
//! with the caller, and here the opposite is wanted.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, PipeReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};

use super::bubble::{self, Fds, Host, Spec};
use super::fail::{Fail, Outcome};
use super::identity::Identity;
use super::procs::Proc;

/// How long bubblewrap may take for each step. It needs milliseconds.
const LIMIT: Duration = Duration::from_secs(30);

/// A sandbox that is set up and waits to be let go.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) monitor: Proc,
    pub(super) init: Proc,
    go: ChildStdin,
    ready: BufReader<PipeReader>,
    log: PathBuf,
}

/// The programs that start a sandbox.
#[derive(Debug)]
pub(super) struct Tools {
    setsid: PathBuf,
    bwrap: PathBuf,
}

impl Tools {
    /// Finds them.
    pub(super) fn find() -> Outcome<Self> {
        Ok(Self { setsid: program("setsid", "util-linux")?, bwrap: program("bwrap", "bubblewrap")? })
    }
}

/// The path of a program that the stand-in runs.
pub(super) fn program(name: &str, package: &str) -> Outcome<PathBuf> {
    which::which(name).map_err(|_| {
        Fail::new(format!("{name} was not found")).hint(format!("hint: apt-get install {package}"))
    })
}

/// Starts bubblewrap in a session of its own. When this returns the processes are known, and the first one
/// waits for [`Launched::go`].
pub(super) fn launch(
    tools: &Tools,
    spec: &Spec,
    env: &[(String, String)],
    command: &[OsString],
) -> Outcome<Launched> {
    let Tools { setsid, bwrap } = tools;
    let log = spec.dir.join("log");
    let log_file = File::options().create(true).append(true).open(&log)?;
    let status = File::options().create(true).append(true).open(spec.dir.join("status"))?;
    let (mut info, info_write) = std::io::pipe()?;
    let (ready, ready_write) = std::io::pipe()?;

    let fds = Fds { info: info_write.as_raw_fd(), status: status.as_raw_fd() };
    // Through a file: the list can be longer than a pipe holds, and paths of the host stay out of what
    // `/proc/1/cmdline` shows inside.
    let options = options_file(&bubble::options(spec, &Host::look(), fds))?;
    // The read end goes along, so that bubblewrap can write even when this process has just been killed: SIGPIPE
    // would end its outer half and leave the inner one waiting for ever.
    for fd in [info.as_fd(), info_write.as_fd(), status.as_fd(), options.as_fd()] {
        fcntl_setfd(fd, FdFlags::empty())?;
    }
    let mut child = Command::new(setsid)
        .arg(bwrap)
        .arg("--args")
        .arg(options.as_raw_fd().to_string())
        .arg("--")
        .args(bubble::main_command(spec.identity, command))
        .env_clear()
        .envs(env.iter().map(|(k, v)| (k, v)))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(ready_write)
        .stderr(log_file)
        .spawn()
        .map_err(|e| Fail::new("cannot start bubblewrap").cause(e))?;
    drop((info_write, status, options));

    let go = child.stdin.take().ok_or_else(|| Fail::new("no pipe to bubblewrap"))?;
    let text = read_object(&mut info);
    let init = child_pid(&text).and_then(Proc::of);
    let monitor = i32::try_from(child.id()).ok().and_then(Proc::of);
    let (Some(init), Some(monitor)) = (init, monitor) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(failed(&log));
    };
    let mut launched = Launched { monitor, init, go, ready: BufReader::new(ready), log };
    if let Identity::Dropped { uid, gid } = spec.identity
        && let Err(e) = launched.write_maps(uid, gid)
    {
        init.kill(LIMIT);
        return Err(Fail::new("cannot set up the user numbers of the sandbox").cause(e));
    }
    Ok(launched)
}

impl Launched {
    /// Lets the main process go. When this returns, commands can be run inside.
    pub(super) fn go(mut self) -> Outcome {
        let mut line = String::new();
        if !readable(self.ready.get_ref(), LIMIT)
            || self.ready.read_line(&mut line).is_err()
            || line != "ready\n"
        {
            self.init.kill(LIMIT);
            return Err(failed(&self.log));
        }
        self.go.write_all(b"go\n").map_err(|_| failed(&self.log))
    }

    /// Ends what was started.
    pub(super) fn abandon(self) {
        self.init.kill(LIMIT);
    }

    fn write_maps(&mut self, uid: u32, gid: u32) -> std::io::Result<()> {
        let proc = Path::new("/proc").join(self.init.pid.to_string());
        fs_err::write(proc.join("uid_map"), Identity::map(uid))?;
        fs_err::write(proc.join("gid_map"), Identity::map(gid))?;
        self.go.write_all(b"x")
    }
}

fn options_file(options: &[OsString]) -> Outcome<File> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut file = tempfile::tempfile()?;
    for option in options {
        file.write_all(option.as_bytes())?;
        file.write_all(&[0])?;
    }
    file.rewind()?;
    Ok(file)
}

/// Reads up to the closing brace of one flat JSON object, to the end of the stream, or to the limit.
fn read_object(pipe: &mut PipeReader) -> String {
    let deadline = Instant::now() + LIMIT;
    let mut text = Vec::new();
    let mut buf = [0; 1024];
    while !text.contains(&b'}') && readable(&*pipe, deadline.saturating_duration_since(Instant::now())) {
        match pipe.read(&mut buf) {
            Ok(n) if n > 0 => text.extend_from_slice(&buf[..n]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn child_pid(info: &str) -> Option<i32> {
    let value: serde_json::Value = serde_json::from_str(info).ok()?;
    i32::try_from(value.get("child-pid")?.as_i64()?).ok()
}

/// Whether there is something to read (or the end) within `limit`.
fn readable(fd: impl AsFd, limit: Duration) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let limit = Timespec::try_from(limit).ok();
    matches!(poll(&mut fds, limit.as_ref()), Ok(n) if n > 0)
}

/// Why bubblewrap ended, from its own words.
fn failed(log: &Path) -> Fail {
    let text = fs_err::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("bubblewrap ended without a word");
    Fail::new("sandbox entered error phase while provisioning: ContainerExited: Container exited")
        .cause(last)
        .hint("hint: `fullsend doctor` says what the embedded backend needs on this machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_the_first_process_is_read() {
        assert_eq!(
            child_pid("{\n    \"child-pid\": 766,\n    \"net-namespace\": 4026532184\n}\n"),
            Some(766)
        );
        assert_eq!(child_pid("{\n    \"child-pid\": "), None);
    }

    #[test]
    fn an_object_that_never_closes_ends_with_the_stream() {
        let (mut read, mut write) = std::io::pipe().unwrap();
        write.write_all(b"{\"child-pid\": 1").unwrap();
        drop(write);
        assert_eq!(read_object(&mut read), "{\"child-pid\": 1");
    }
}
