//! `ssh -R`: a port of the sandbox's loopback that leads to the client.
//!
//! A socket belongs to the network namespace in which it was made, whoever holds it. So a helper, this program again,
//! enters the namespaces of the sandbox, listens there, and passes the socket over its standard input; nothing of it
//! stays in the sandbox.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use russh::server::Handle;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::io::copy_bidirectional;

use super::fail::{Fail, Outcome};
use super::join::Door;

/// How long the helper may take. It needs milliseconds.
const LIMIT: Duration = Duration::from_secs(10);
/// The most connections at once.
const CONNECTIONS: usize = 256;

/// A listener on `port` of the sandbox's loopback.
pub(super) async fn listen(door: &Door, port: u16) -> std::io::Result<tokio::net::TcpListener> {
    let listener = match door.listener(port)? {
        // The sandbox has this machine's network.
        None => TcpListener::bind((Ipv4Addr::LOCALHOST, port))?,
        Some(mut helper) => {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_read_timeout(Some(LIMIT))?;
            helper.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
            tokio::task::spawn_blocking(move || {
                let mut child = helper.spawn()?;
                // The helper's end must not stay open here, or its death would not be seen.
                drop(helper);
                let received = receive(&ours);
                let _ = child.kill();
                let _ = child.wait();
                received
            })
            .await
            .map_err(std::io::Error::other)??
        }
    };
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// Passes connections on to the client until the client is gone.
pub(super) async fn accept(listener: tokio::net::TcpListener, port: u16, handle: Handle) {
    let slots = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((mut stream, peer)) = listener.accept().await else {
            // Out of descriptors, most likely; it may pass.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let handle = handle.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let (ip, from) = (peer.ip().to_string(), u32::from(peer.port()));
            let opened = handle.channel_open_forwarded_tcpip("127.0.0.1", u32::from(port), ip, from).await;
            if let Ok(channel) = opened {
                let _ = copy_bidirectional(&mut stream, &mut channel.into_stream()).await;
            }
        });
    }
}

/// The helper: listens where it is and passes the socket on. Its standard input is the way back.
pub(super) fn helper(port: u16) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|e| Fail::new(format!("cannot listen on port {port}")).cause(e))?;
    let fds = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(std::io::stdin(), &[IoSlice::new(b"l")], &mut control, SendFlags::empty())?;
    Ok(())
}

fn receive(from: &UnixStream) -> std::io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let passed = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    passed.map(TcpListener::from).ok_or_else(|| std::io::Error::other("no socket came back"))
}
