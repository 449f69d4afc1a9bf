//! One SSH channel and the command behind it.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use russh::server::{Handle, Msg};
use russh::{ChannelId, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::join::{Door, Inside};
use super::spool::Spool;

/// After the command has ended, how long its output may stay silent while a process that it left behind holds
/// it open. What was written before the end is in the pipe already.
const SILENCE: Duration = Duration::from_millis(500);

/// The size of a read from the command, in bytes.
const READ: usize = 64 * 1024;

/// Starts the command with three pipes. It is not killed when its handle is dropped: as in OpenShell, a command
/// survives its connection.
pub(super) fn spawn(door: &Door, what: &Inside) -> std::io::Result<Child> {
    let mut command = door.command(what);
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Command::from(command).spawn()
}

/// Moves bytes until the command has ended and its output is sent, then reports how it ended.
pub(super) async fn run(
    mut child: Child,
    id: ChannelId,
    read: ChannelReadHalf,
    write: ChannelWriteHalf<Msg>,
    handle: Handle,
) {
    let input = child.stdin.take().map(|stdin| tokio::spawn(feed(read, stdin)));
    let (ended, over) = tokio::sync::watch::channel(false);
    let out = child.stdout.take().map(|p| tokio::spawn(drain(p, write.make_writer(), over.clone())));
    let err = child.stderr.take().map(|p| tokio::spawn(drain(p, write.make_writer_ext(Some(1)), over)));
    let status = child.wait().await;
    let _ = ended.send(true);
    for task in [out, err].into_iter().flatten() {
        let _ = task.await;
    }
    if let Ok(status) = status {
        report(&handle, id, status).await;
    }
    let _ = handle.eof(id).await;
    let _ = handle.close(id).await;
    if let Some(task) = input {
        task.abort();
    }
}

/// Sends a stream of the command to the client. A client that is gone does not stop the command: the rest is
/// read and dropped.
async fn drain(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut over: tokio::sync::watch::Receiver<bool>,
) {
    let mut buf = vec![0; READ];
    let mut client = true;
    loop {
        let ended = *over.borrow_and_update();
        let read = async {
            if ended {
                tokio::time::timeout(SILENCE, from.read(&mut buf)).await.unwrap_or(Ok(0))
            } else {
                from.read(&mut buf).await
            }
        };
        let n = tokio::select! {
            n = read => n.unwrap_or(0),
            Ok(()) = over.changed(), if !ended => continue,
        };
        if n == 0 {
            return;
        }
        client = client && to.write_all(&buf[..n]).await.is_ok();
    }
}

/// Takes everything that the client sends at once, and writes it to the command at the command's pace.
async fn feed(mut read: ChannelReadHalf, mut stdin: ChildStdin) {
    let (wake, mut woken) = mpsc::channel::<()>(1);
    let spool = std::sync::Arc::new(std::sync::Mutex::new((Spool::default(), false)));
    let take = {
        let spool = spool.clone();
        async move {
            loop {
                let message = read.wait().await;
                let Ok(mut spool) = spool.lock() else { return };
                let more = match message {
                    Some(ChannelMsg::Data { data }) => spool.0.push(data.to_vec()).is_ok(),
                    Some(ChannelMsg::Eof | ChannelMsg::Close) | None => false,
                    Some(_) => continue,
                };
                spool.1 = !more;
                let _ = wake.try_send(());
                if !more {
                    return;
                }
            }
        }
    };
    let give = async move {
        loop {
            let (piece, last) = match spool.lock() {
                Ok(mut spool) => (spool.0.pop(), spool.1),
                Err(_) => return,
            };
            match piece {
                // A command that closed its input loses the rest; it is still taken from the client.
                Ok(Some(piece)) if stdin.write_all(&piece).await.is_err() => return,
                Ok(Some(_)) => {}
                Ok(None) if last => return,
                Ok(None) => {
                    woken.recv().await;
                }
                Err(_) => return,
            }
        }
    };
    tokio::join!(take, give);
}

/// Tells the client how the command ended.
async fn report(handle: &Handle, id: ChannelId, status: ExitStatus) {
    if let Some(code) = status.code() {
        let _ = handle.exit_status_request(id, u32::from_ne_bytes(code.to_ne_bytes())).await;
    } else if let Some(signal) = status.signal() {
        let _ = handle
            .exit_signal_request(id, name(signal), status.core_dumped(), String::new(), String::new())
            .await;
    }
}

/// The name of a signal on the wire (RFC 4254, section 6.10).
fn name(signal: i32) -> Sig {
    match signal {
        1 => Sig::HUP,
        2 => Sig::INT,
        3 => Sig::QUIT,
        4 => Sig::ILL,
        6 => Sig::ABRT,
        8 => Sig::FPE,
        9 => Sig::KILL,
        10 => Sig::USR1,
        11 => Sig::SEGV,
        13 => Sig::PIPE,
        14 => Sig::ALRM,
        15 => Sig::TERM,
        other => Sig::Custom(format!("{other}@fullsend")),
    }
}
