//! Breaking a call.
//!
//! | fault | what happens |
//! |---|---|
//! | `exit=N` | nothing is done; exit status N, one line on standard error |
//! | `hang` | nothing is done, for ever |
//! | `signal=NAME` | the process ends by that signal |
//! | `garbage` | bytes that are neither text nor JSON, status 0; nothing is done |
//! | `half` | the call is made, half of its output passed on, status 0 |
//! | `slow=MS` | the call is made after a pause |
//! | `nospace` | the call is made, but no file of it can grow beyond a block |
//! | `fill=DIR` | the file system of DIR is filled to the last byte, then the call is made |
//! | `runner=NAME` | the runner is signalled, then the call is made |
//! | `once-gone=N` | the call is made, then exit status N in place of its own |

use std::ffi::OsString;
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// A call that was met.
pub(crate) struct Call<'a> {
    /// Where everything stands.
    pub(crate) dir: &'a Path,
    /// The real program and what comes before its arguments.
    pub(crate) real: &'a [String],
    /// The arguments.
    pub(crate) args: &'a [OsString],
    /// Its kind.
    pub(crate) kind: &'a str,
}

/// Two-way protocols: their output has no half that could be waited for.
const PROTOCOLS: [&str; 4] = ["openshell ssh-proxy", "ssh master", "ssh rsync", "ssh sftp"];
/// After how many bytes of such a protocol the call stops.
const CUT: usize = 3000;

impl Call<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.real[0]);
        command.args(&self.real[1..]).args(self.args);
        command
    }

    /// Becomes the real program.
    pub(crate) fn pass(&self) -> std::io::Result<u8> {
        Err(self.command().exec())
    }

    /// Waits for the real program.
    fn make(&self) -> std::io::Result<u8> {
        let status = self.command().status()?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(u8::try_from(code).unwrap_or(255))
    }

    fn half(&self) -> std::io::Result<u8> {
        let mut child = self.command().stdout(Stdio::piped()).spawn()?;
        let mut pipe = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        let mut out = std::io::stdout();
        if PROTOCOLS.contains(&self.kind) {
            let mut left = CUT;
            let mut buf = [0; 512];
            while left > 0 {
                let n = pipe.read(&mut buf)?;
                if n == 0 {
                    break;
                }
                out.write_all(&buf[..n.min(left)])?;
                out.flush()?;
                left = left.saturating_sub(n);
            }
        } else {
            let mut all = Vec::new();
            pipe.read_to_end(&mut all)?;
            out.write_all(&all[..all.len() / 2])?;
        }
        let _ = child.kill();
        child.wait()?;
        Ok(0)
    }

    /// Signals the runner, when it is still there.
    fn signal_runner(&self, name: &str) -> std::io::Result<()> {
        let path = self.dir.join("runner.pid");
        // The runner was started a moment ago; its number may not be written yet.
        for _ in 0..500 {
            if let Some(pid) = std::fs::read_to_string(&path).ok().and_then(|t| t.trim().parse().ok()) {
                let pid = Pid::from_raw(pid).ok_or(ErrorKind::InvalidData)?;
                let _ = kill_process(pid, signal(name)?);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(Error::new(ErrorKind::NotFound, "no runner.pid"))
    }

    fn without_space(&self) -> std::io::Result<u8> {
        let mut command = Command::new("sh");
        // An ignored SIGXFSZ is inherited: a write then fails as on a full disk.
        command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
        command.args(self.real).args(self.args);
        Err(command.exec())
    }
}

/// Does `what` to a call; the exit status, when there is one.
pub(crate) fn strike(call: &Call<'_>, what: &str) -> std::io::Result<u8> {
    let (fault, value) = what.split_once('=').unwrap_or((what, ""));
    let number = || value.parse::<u64>().map_err(|_| Error::new(ErrorKind::InvalidInput, what.to_owned()));
    match fault {
        "exit" => {
            let _ = writeln!(std::io::stderr(), "broken on purpose: {}", call.kind);
            Ok(u8::try_from(number()?).unwrap_or(1))
        }
        "hang" => loop {
            std::thread::sleep(Duration::from_hours(1));
        },
        "signal" => {
            kill_process(getpid(), signal(value)?)?;
            Ok(1)
        }
        "garbage" => {
            std::io::stdout().write_all(b"\x00\xff\xfe{\"sandboxes\": [\x1b[31m\xc3(\n")?;
            Ok(0)
        }
        "half" => call.half(),
        "slow" => {
            std::thread::sleep(Duration::from_millis(number()?));
            call.pass()
        }
        "nospace" => call.without_space(),
        "fill" => {
            fill(Path::new(value))?;
            call.pass()
        }
        "runner" => {
            call.signal_runner(value)?;
            call.pass()
        }
        "once-gone" => {
            call.make()?;
            Ok(u8::try_from(number()?).unwrap_or(1))
        }
        _ => Err(Error::new(ErrorKind::InvalidInput, format!("unknown fault {what}"))),
    }
}

fn signal(name: &str) -> std::io::Result<Signal> {
    match name {
        "KILL" => Ok(Signal::KILL),
        "TERM" => Ok(Signal::TERM),
        "INT" => Ok(Signal::INT),
        "HUP" => Ok(Signal::HUP),
        _ => Err(Error::new(ErrorKind::InvalidInput, format!("unknown signal {name}"))),
    }
}

/// Writes until there is no space; the ballast stays.
fn fill(dir: &Path) -> std::io::Result<()> {
    let mut file = std::fs::File::create(dir.join(".ballast"))?;
    for size in [64 * 1024, 4096, 1] {
        let block = vec![0; size];
        while file.write_all(&block).is_ok() {}
    }
    Ok(())
}
