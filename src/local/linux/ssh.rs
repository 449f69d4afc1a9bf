//! `ssh-proxy`: an SSH server on standard input and output for the one client that ssh starts it for.
//!
//! Whoever can read the state directory may enter its sandboxes, so every login is accepted. The host key is new
//! each time; the client is told not to look at it. A port of the sandbox's loopback can be forwarded to the client
//! (`ssh -R`); any other forwarding, environment requests and pseudo-terminals are refused.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use russh::keys::{Algorithm, PrivateKey};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session};
use russh::{Channel, ChannelId, ChannelReadHalf, ChannelWriteHalf, Pty, cipher};
use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::bridge;
use super::fail::{Fail, Outcome};
use super::forward;
use super::join::{Door, Inside, sftp_server};

/// The window of a channel, in bytes. With a smaller one the client waits for us.
const WINDOW: u32 = 8 * 1024 * 1024;

/// Serves until the client hangs up.
pub(super) fn serve(door: Door) -> Outcome {
    // No program in the sandbox gains power by being executed; children inherit this.
    rustix::thread::set_no_new_privs(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519)
            .map_err(|e| Fail::new("cannot make a host key").cause(e))?;
        let stream = client_stream()?;
        let server = Server { door: Arc::new(door), waiting: Vec::new() };
        let session = russh::server::run_stream(Arc::new(config(key)), stream, server)
            .await
            .map_err(|e| Fail::new("the ssh client did not start a session").cause(e))?;
        // A client that goes away without goodbye is an ordinary end.
        let _ = session.await;
        Ok(())
    });
    // Commands that still run go on.
    runtime.shutdown_background();
    result
}

fn config(key: PrivateKey) -> Config {
    let mut config = Config {
        keys: vec![key],
        inactivity_timeout: None,
        window_size: WINDOW,
        maximum_packet_size: 65_535,
        // A full buffer stops the connection, and `bridge` empties it at once.
        channel_buffer_size: 1024,
        event_buffer_size: 64,
        ..Config::default()
    };
    // The fastest of the client's usual offers; the bytes never leave this machine.
    config.preferred.cipher =
        vec![cipher::AES_128_GCM, cipher::AES_256_GCM, cipher::CHACHA20_POLY1305].into();
    config
}

struct Server {
    door: Arc<Door>,
    /// Channels that have not said yet what they want.
    waiting: Vec<(ChannelId, ChannelReadHalf, ChannelWriteHalf<Msg>)>,
}

impl Server {
    /// Starts `what` on a channel, or refuses the request.
    fn start(
        &mut self,
        id: ChannelId,
        what: Option<Inside>,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let Some(at) = self.waiting.iter().position(|(waiting, ..)| *waiting == id) else {
            return session.channel_failure(id);
        };
        let Some(what) = what else { return session.channel_failure(id) };
        match bridge::spawn(&self.door, &what) {
            Ok(child) => {
                session.channel_success(id)?;
                let (_, read, write) = self.waiting.swap_remove(at);
                tokio::spawn(bridge::run(child, id, read, write, session.handle()));
                Ok(())
            }
            Err(error) => {
                tracing::debug!(%error, "cannot run nsenter");
                session.channel_failure(id)
            }
        }
    }
}

impl Handler for Server {
    type Error = russh::Error;

    async fn auth_none(&mut self, _user: &str) -> Result<Auth, Self::Error> {
        Ok(Auth::Accept)
    }

    async fn auth_publickey(
        &mut self,
        _user: &str,
        _key: russh::server::VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        let id = channel.id();
        let (read, write) = channel.split();
        self.waiting.push((id, read, write));
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let line = OsString::from_vec(data.to_vec());
        // A command line with a NUL cannot be passed on.
        let what = (!data.contains(&0)).then_some(Inside::Line(line));
        self.start(channel, what, session)
    }

    async fn shell_request(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), Self::Error> {
        self.start(channel, Some(Inside::Shell), session)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let what = (name == "sftp").then(sftp_server).flatten().map(Inside::Sftp);
        self.start(channel, what, session)
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _col_width: u32,
        _row_height: u32,
        _pix_width: u32,
        _pix_height: u32,
        _modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        _name: &str,
        _value: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn agent_request(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<bool, Self::Error> {
        session.channel_failure(channel)?;
        Ok(false)
    }

    async fn tcpip_forward(
        &mut self,
        address: &str,
        port: &mut u32,
        session: &mut Session,
    ) -> Result<bool, Self::Error> {
        let wanted = u16::try_from(*port).ok().filter(|port| *port >= 1024);
        let Some(wanted) = wanted.filter(|_| matches!(address, "127.0.0.1" | "localhost")) else {
            return Ok(false);
        };
        match forward::listen(&self.door, wanted).await {
            Ok(listener) => {
                tokio::spawn(forward::accept(listener, wanted, session.handle()));
                Ok(true)
            }
            Err(error) => {
                tracing::debug!(%error, wanted, "cannot listen in the sandbox");
                Ok(false)
            }
        }
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.waiting.retain(|(waiting, ..)| *waiting != channel);
        Ok(())
    }
}

/// Standard input and output as one stream.
struct Joined {
    read: Box<dyn AsyncRead + Send + Unpin>,
    write: Box<dyn AsyncWrite + Send + Unpin>,
}

/// ssh gives its `ProxyCommand` two pipes; tests and other clients may give a socket or something else.
fn client_stream() -> Outcome<Joined> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let stdout = std::io::stdout().as_fd().try_clone_to_owned()?;
    let kind = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|s| FileType::from_raw_mode(s.st_mode));
    let socket = |fd: OwnedFd| -> std::io::Result<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(fd);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    };
    let read: Box<dyn AsyncRead + Send + Unpin> = match kind(&stdin)? {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(stdin)?),
        FileType::Socket => Box::new(socket(stdin)?),
        _ => {
            return Err(Fail::new(
                "ssh-proxy is started by ssh; standard input is neither a pipe nor a socket",
            ));
        }
    };
    let write: Box<dyn AsyncWrite + Send + Unpin> = match kind(&stdout)? {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(stdout)?),
        FileType::Socket => Box::new(socket(stdout)?),
        _ => {
            return Err(Fail::new(
                "ssh-proxy is started by ssh; standard output is neither a pipe nor a socket",
            ));
        }
    };
    Ok(Joined { read, write })
}

impl AsyncRead for Joined {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buf)
    }
}

impl AsyncWrite for Joined {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(cx)
    }
}
