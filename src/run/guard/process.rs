//! The guard's own process.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{sleep, sleep_until, timeout};

use super::protocol::{Knowledge, Message};
use crate::openshell::Openshell;
use crate::process::{Signal, detach, mark, new_session, own_executable, scale, signal_group};
use crate::run::{journal, leftovers};

/// The argument that marks the second half of the double fork.
pub const STAGE_TWO: &str = "--detached";

/// For how long the sandbox has to stay absent. A create that was in flight when the run died can finish after
/// the first delete (seen on OpenShell 0.0.112-dev).
const ABSENT_FOR: Duration = Duration::from_secs(5);
/// The same in a test that scales deadlines: a create in flight is still seen.
const SCALED_ABSENT_FOR: Duration = Duration::from_secs(1);
/// How often marked children are looked for, and the pause between.
const MARKED_ROUNDS: u32 = 4;
const MARKED_PAUSE: Duration = Duration::from_millis(50);
/// Between two deletes.
const BETWEEN: Duration = Duration::from_millis(400);
/// When the guard gives up.
const GIVE_UP: Duration = Duration::from_mins(2);

/// The hidden subcommand. The first half starts the second and ends, so that the second has no parent whose end
/// could take it along.
pub fn main(stage_two: bool) -> ExitCode {
    if !stage_two {
        let started = own_executable().is_ok_and(|exe| detach(&exe, &["guard", STAGE_TWO]).is_ok());
        return if started { ExitCode::SUCCESS } else { ExitCode::from(3) };
    }
    // Fails only when we lead a session already, which is what we want.
    let _ = new_session();
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::from(3);
    };
    runtime.block_on(async {
        let knowledge = listen().await;
        if !knowledge.released {
            clean(knowledge).await;
        }
    });
    ExitCode::SUCCESS
}

/// Follows the run until it ends, releases us, or lets its deadline pass.
async fn listen() -> Knowledge {
    ignore_signals();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut knowledge = Knowledge::default();
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { return knowledge };
                let Some(message) = Message::decode(&line) else { continue };
                let news = matches!(message, Message::Deadline(_) | Message::Gone);
                knowledge.learn(message);
                if news {
                    due = knowledge.deadline.map(|ms| Instant::now() + Duration::from_millis(ms));
                }
                if knowledge.released {
                    return knowledge;
                }
            }
            () = sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => return knowledge,
        }
    }
}

/// A terminal or a service manager that signals everything must not end us before our work is done.
fn ignore_signals() {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        if let Ok(mut stream) = signal(kind) {
            tokio::spawn(async move { while stream.recv().await.is_some() {} });
        }
    }
}

async fn clean(knowledge: Knowledge) {
    for pgid in &knowledge.children {
        signal_group(*pgid, Signal::KILL);
    }
    if let Some(mark) = &knowledge.mark {
        // Again, because one that is just being started may not show its mark yet.
        for _ in 0..MARKED_ROUNDS {
            mark::kill_marked(mark);
            sleep(MARKED_PAUSE).await;
        }
    }
    for dir in &knowledge.tmp {
        let _ = fs_err::remove_dir_all(dir);
    }
    let gone = knowledge.keep || timeout(GIVE_UP, delete(&knowledge)).await.unwrap_or(false);
    let Some(path) = &knowledge.journal else { return };
    let entry = journal::read(path).ok().flatten();
    if let Some(entry) = &entry {
        leftovers::remove(entry);
    }
    // The entry of a kept sandbox stays: it says until when.
    if gone && entry.is_none_or(|e| e.keep_until.is_none()) {
        journal::close(path);
    }
}

/// Deletes what the run made; true when all of it is known to be gone.
async fn delete(knowledge: &Knowledge) -> bool {
    if knowledge.sandboxes.is_empty() && knowledge.providers.is_empty() {
        return true;
    }
    let Some(openshell) = Openshell::from_argv(&knowledge.openshell) else { return false };
    let Ok(dialect) = openshell.probe().await else { return false };
    // Also providers: a child that the run had just started when it was killed is not always known here.
    let absent_for = scale::pause(ABSENT_FOR).max(ABSENT_FOR.min(SCALED_ABSENT_FOR));
    let limit = Duration::from_secs(30);
    let mut absent_since = None;
    while absent_since.is_none_or(|t: Instant| t.elapsed() < absent_for) {
        let mut gone = true;
        for name in &knowledge.sandboxes {
            gone &= openshell.delete(&dialect, name, limit).await.is_ok();
        }
        for name in &knowledge.providers {
            gone &= openshell.delete_provider(name, limit).await.is_ok();
        }
        absent_since = gone.then(|| absent_since.unwrap_or_else(Instant::now));
        sleep(BETWEEN).await;
    }
    true
}
