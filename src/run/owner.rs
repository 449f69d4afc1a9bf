//! Which process owns a run, and whether it still lives.
//!
//! A process number means something only within one boot of one kernel and one pid namespace: two containers of a
//! machine share the boot id, and may share the host name. So an owner is judged only where all three are the
//! same; of any other owner nothing is known.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::process::Signal;

/// A process, identified so that a reused number is not mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The host's name.
    pub host: String,
    /// The kernel's boot id.
    pub boot: String,
    /// The pid namespace (`/proc/self/ns/pid`).
    pub pidns: String,
    /// The process number.
    pub pid: u32,
    /// Its start time in clock ticks since boot (`/proc/<pid>/stat`, field 22).
    pub start: u64,
}

/// What is known of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It belongs to another host, boot or container: it cannot be judged from here.
    Elsewhere,
}

impl Owner {
    /// This process.
    pub(crate) fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let pidns = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            boot: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            pidns: pidns.to_string_lossy().into_owned(),
            pid: std::process::id(),
            start: parse_stat(&read("/proc/self/stat")).map_or(0, |(_, start)| start),
        }
    }

    /// The label that says whose a sandbox is: a digest of host, boot and pid namespace, as the values themselves
    /// are nobody else's business.
    pub(crate) fn label(&self) -> String {
        let text = format!("{}\0{}\0{}", self.host, self.boot, self.pidns);
        crate::report::hex(&Sha256::digest(text)[..16])
    }

    /// Whether it lives, as seen by `here`.
    pub(crate) fn liveness(&self, here: &Owner) -> Liveness {
        self.judged_by(here, |pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok())
    }

    fn judged_by(&self, here: &Owner, read: impl Fn(u32) -> Option<String>) -> Liveness {
        let known = !self.boot.is_empty() && !self.pidns.is_empty() && self.start != 0;
        if !known || (&self.host, &self.boot, &self.pidns) != (&here.host, &here.boot, &here.pidns) {
            return Liveness::Elsewhere;
        }
        match read(self.pid).as_deref().and_then(parse_stat) {
            Some((state, start)) if start == self.start && !matches!(state, 'Z' | 'X') => Liveness::Alive,
            _ => Liveness::Dead,
        }
    }

    /// Sends it a signal; false when it does not run any more. The process is held by a descriptor while it is
    /// compared, so that a reused number is never signalled.
    pub(crate) fn signal(&self, here: &Owner, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) else {
            return false;
        };
        let held = Held::open(pid);
        if self.liveness(here) != Liveness::Alive {
            return false;
        }
        held.signal(pid, signal)
    }
}

/// A process held by a descriptor, where the kernel can do that.
struct Held {
    #[cfg(target_os = "linux")]
    fd: Option<std::os::fd::OwnedFd>,
}

impl Held {
    #[cfg(target_os = "linux")]
    fn open(pid: rustix::process::Pid) -> Self {
        Self { fd: rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok() }
    }

    #[cfg(not(target_os = "linux"))]
    fn open(_pid: rustix::process::Pid) -> Self {
        Self {}
    }

    fn signal(&self, pid: rustix::process::Pid, signal: Signal) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(fd) = &self.fd {
            return rustix::process::pidfd_send_signal(fd, signal).is_ok();
        }
        rustix::process::kill_process(pid, signal).is_ok()
    }
}

/// State letter and start time of a stat line; the command in field 2 may hold spaces and parentheses.
fn parse_stat(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(state: char, start: u64) -> String {
        let rest: Vec<String> = (4..=30).map(|n| n.to_string()).collect();
        let line = format!("7 (a) b) (c) {state} {}", rest.join(" "));
        line.replace(" 22 ", &format!(" {start} "))
    }

    #[test]
    fn a_command_with_parentheses_does_not_shift_the_fields() {
        assert_eq!(parse_stat(&stat('S', 4711)), Some(('S', 4711)));
        assert_eq!(parse_stat("7 (x"), None);
    }

    #[test]
    fn this_process_lives() {
        let owner = Owner::this();
        assert!(owner.start > 0 && owner.pid > 0 && !owner.boot.is_empty());
        assert_eq!(owner.liveness(&owner), Liveness::Alive);
        assert_eq!(crate::openshell::names::label_value(&owner.label()), owner.label());
    }

    #[test]
    fn a_reused_number_and_a_zombie_are_dead() {
        let owner = Owner::this();
        let seen = |text: Option<String>| owner.judged_by(&owner, |_| text.clone());
        assert_eq!(seen(Some(stat('S', owner.start))), Liveness::Alive);
        assert_eq!(seen(Some(stat('T', owner.start))), Liveness::Alive);
        assert_eq!(seen(Some(stat('S', owner.start + 1))), Liveness::Dead);
        assert_eq!(seen(Some(stat('Z', owner.start))), Liveness::Dead);
        assert_eq!(seen(None), Liveness::Dead);
    }

    #[test]
    fn an_owner_elsewhere_is_never_called_dead() {
        let here = Owner::this();
        for other in [
            Owner { host: "other".into(), ..here.clone() },
            Owner { boot: "other".into(), ..here.clone() },
            Owner { pidns: "pid:[1]".into(), ..here.clone() },
            Owner { boot: String::new(), ..here.clone() },
            Owner { start: 0, ..here.clone() },
        ] {
            assert_eq!(other.judged_by(&here, |_| None), Liveness::Elsewhere, "{other:?}");
            assert!(!other.signal(&here, Signal::TERM));
        }
    }
}
