//! Processes that outlive the call that started them: a number and a start time name one for good.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Proc {
    /// Its number.
    pub(super) pid: i32,
    /// Its start, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub(super) start: u64,
}

impl Proc {
    /// The process that has this number now.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let (state, start) = stat(pid)?;
        (state != b'Z').then_some(Self { pid, start })
    }

    /// The calling process.
    pub(super) fn own() -> Option<Self> {
        Self::of(i32::try_from(std::process::id()).ok()?)
    }

    /// Whether it runs. A zombie does not.
    pub(super) fn alive(self) -> bool {
        stat(self.pid).is_some_and(|(state, start)| start == self.start && state != b'Z' && state != b'X')
    }

    /// Kills it and waits up to `limit` for its end. Returns whether it is gone.
    ///
    /// The number is checked right before the signal. The first process of a pid namespace takes all others of
    /// the namespace with it, and ends after them.
    pub(super) fn kill(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_micros(200);
        while self.alive() {
            if let Some(pid) = Pid::from_raw(self.pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        true
    }
}

/// State letter and start time.
fn stat(pid: i32) -> Option<(u8, u64)> {
    parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The command name may hold spaces and parentheses, so fields are counted after the last `)`.
fn parse_stat(stat: &[u8]) -> Option<(u8, u64)> {
    let rest = &stat[stat.iter().rposition(|&b| b == b')')? + 1..];
    let text = std::str::from_utf8(rest).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let ticks = fields.nth(18)?.parse().ok()?;
    Some((state, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_cannot_shift_the_fields() {
        let line = b"42 (a) R 1 2) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        assert_eq!(parse_stat(line), Some((b'S', 98765)));
    }

    #[test]
    fn a_number_alone_is_not_a_process() {
        let own = Proc::own().unwrap();
        assert!(own.alive());
        assert!(!Proc { start: own.start + 1, ..own }.alive());
    }

    #[test]
    fn kill_ends_a_child_and_says_so() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let target = Proc::of(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(target.kill(Duration::from_secs(5)));
        assert!(!target.alive());
        child.wait().unwrap();
    }
}
