//! Signals as events: the first asks for the end, the second for the end at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::error::{Code, Error, Result};
use crate::plan::Limit;
use crate::report::duration;

/// What has been received so far.
#[derive(Debug, Clone, Copy, Default)]
struct Received {
    count: u32,
    first: i32,
    /// The run's own deadline has passed; to its phases that is an end like a signal.
    expired: Option<(Duration, Limit)>,
}

impl Received {
    fn ends(self) -> bool {
        self.count > 0 || self.expired.is_some()
    }

    /// The error that a phase ends with.
    fn error(self) -> Error {
        match self.expired {
            Some((limit, what)) if self.count == 0 => {
                let help = match what {
                    Limit::Run => "raise `deadlines.run` in the harness, or pass --deadline run=DURATION",
                    Limit::Ttl => "raise `ttl` in the harness or in config.yaml, or pass --ttl DURATION",
                };
                Error::new(Code::Timeout, format!("the run did not finish within {}", duration(limit)))
                    .help(help)
            }
            _ => Error::cancelled(self.first),
        }
    }
}

/// A handle on the signals of this process; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    state: watch::Receiver<Received>,
    sender: Arc<watch::Sender<Received>>,
}

impl Signals {
    /// Takes over INT, TERM and HUP, but not a HUP that was ignored from the start. `on_first` runs on the signal task itself, so that it is not delayed by
    /// whatever the run is doing at that moment.
    pub(super) fn install(on_first: impl Fn(i32) + Send + 'static) -> Result<Self> {
        let (sender, state) = watch::channel(Received::default());
        let sender = Arc::new(sender);
        let open = |kind| signal(kind).map_err(|e| Error::io("cannot listen for signals", &e));
        let mut int = open(SignalKind::interrupt())?;
        let mut term = open(SignalKind::terminate())?;
        // `nohup` and service managers start a program with HUP ignored, and then it stays so (POSIX, nohup).
        let mut hup = if ignored(1) { None } else { Some(open(SignalKind::hangup())?) };
        let task_sender = Arc::clone(&sender);
        tokio::spawn(async move {
            loop {
                let number = tokio::select! {
                    _ = int.recv() => 2,
                    _ = term.recv() => 15,
                    () = next(&mut hup) => 1,
                };
                let mut first = false;
                task_sender.send_modify(|r| {
                    first = r.count == 0;
                    r.count += 1;
                    if first {
                        r.first = number;
                    }
                });
                if first {
                    on_first(number);
                }
            }
        });
        Ok(Self { state, sender })
    }

    /// The number of the first signal, if one came.
    pub(super) fn first(&self) -> Option<i32> {
        let r = *self.state.borrow();
        (r.count > 0).then_some(r.first)
    }

    /// Whether a second signal came.
    pub(super) fn urgent(&self) -> bool {
        self.state.borrow().count > 1
    }

    /// Ends the phases of the run after `limit`.
    pub(super) fn expire_after(&self, limit: Duration, what: Limit) {
        let sender = Arc::clone(&self.sender);
        tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            sender.send_modify(|r| r.expired = Some((limit, what)));
        });
    }

    /// What a phase that is not begun any more reports: a signal, or the deadline of the run.
    pub(super) fn stopped(&self) -> Option<Error> {
        let received = *self.state.borrow();
        received.ends().then(|| received.error())
    }

    /// Waits for the `n`-th signal and gives the number of the first.
    pub(super) async fn wait(&self, n: u32) -> i32 {
        self.received(|r| r.count >= n).await.first
    }

    /// Waits for a signal or the deadline of the run.
    pub(super) async fn wait_end(&self) {
        self.received(Received::ends).await;
    }

    async fn received(&self, condition: impl Fn(Received) -> bool) -> Received {
        let mut state = self.state.clone();
        // The sender lives as long as `self`, so this cannot fail.
        state.wait_for(|r| condition(*r)).await.map_or_else(|_| Received::default(), |r| *r)
    }

    /// Runs `work` unless the run is to end; that drops it, which kills its children.
    pub(super) async fn guard<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            received = self.received(Received::ends) => Err(received.error()),
            done = work => done,
        }
    }

    /// Runs `work` unless a second signal comes.
    pub(super) async fn guard_urgent<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            number = self.wait(2) => Err(Error::cancelled(number)),
            done = work => done,
        }
    }
}

/// Waits for a signal that may not be listened to.
async fn next(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started with a signal ignored; false where there is no `/proc`.
fn ignored(number: u32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| in_mask(&status, number))
}

/// Whether `SigIgn` (a bit per signal, hexadecimal; `proc_pid_status(5)`) has a signal.
fn in_mask(status: &str, number: u32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask >> (number - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::in_mask;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(in_mask(status, 1) && in_mask(status, 13));
        assert!(!in_mask(status, 2) && !in_mask(status, 15));
        assert!(!in_mask("", 1) && !in_mask("SigIgn:\tx\n", 1));
    }
}
