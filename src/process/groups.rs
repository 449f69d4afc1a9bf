//! Process groups: who lives, and how to signal them.

use std::sync::OnceLock;

use rustix::process::{Pid, Signal, kill_process_group};

/// A change in the set of living child groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupEvent {
    /// A child with this process group was started.
    Started(i32),
    /// The child was reaped and nothing of its group is of interest any more.
    Ended(i32),
}

type Observer = Box<dyn Fn(GroupEvent) + Send + Sync>;

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Registers the one observer of child groups (the guard's line to its process). Later calls are ignored.
pub fn observe(observer: impl Fn(GroupEvent) + Send + Sync + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

fn tell(event: GroupEvent) {
    if let Some(observer) = OBSERVER.get() {
        observer(event);
    }
}

/// Signals a whole process group; a group that is gone is fine.
pub fn signal_group(pgid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pgid) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Kills the group on drop, unless the child was reaped and the group released.
#[derive(Debug)]
pub(super) struct Group {
    pgid: i32,
    armed: bool,
}

impl Group {
    pub(super) fn new(pgid: i32) -> Self {
        tell(GroupEvent::Started(pgid));
        Self { pgid, armed: true }
    }

    pub(super) fn id(&self) -> i32 {
        self.pgid
    }

    pub(super) fn signal(&self, signal: Signal) {
        if self.armed {
            signal_group(self.pgid, signal);
        }
    }

    /// The child was reaped; its number may be given to another process from now on.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.armed) {
            tell(GroupEvent::Ended(self.pgid));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.armed {
            signal_group(self.pgid, Signal::KILL);
            tell(GroupEvent::Ended(self.pgid));
        }
    }
}
