//! The servers on the host that an agent may call: started after the pre-script, healthy before the sandbox is
//! created, watched while the agent runs, stopped when the sandbox is gone.
//!
//! A server gets `--port` and `--bind-address`; its token is in its environment, as an argv is public on the machine.
//! It runs in a group of its own, of which the guard knows like of every child's: a run that is killed takes its
//! servers along.

mod health;
mod log;
mod reach;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::context::Cx;
use super::prepare::Prepared;
use super::script;
use crate::error::{Code, Error, Result};
use crate::harness::model::ApiServer;
use crate::process::{Child, Signal, Status, scale, signal_group};
use crate::report::{duration, last_lines};
use crate::secrets::Secret;
use log::Log;
pub(super) use reach::reach;

/// The variable that carries the token to a server.
pub(super) const TOKEN: &str = "FULLSEND_API_TOKEN";
/// Between TERM and KILL, and the same after a cancel, where everything has to fit into seven seconds.
const GRACE: Duration = Duration::from_secs(5);
const CANCEL_GRACE: Duration = Duration::from_millis(500);
/// How long output is still read after the server has ended while a child of it holds it open.
const DRAIN: Duration = Duration::from_millis(300);
/// The pauses between two looks at its health.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How much of its log an error shows.
const LOG_LINES: usize = 12;

/// The servers of a run.
#[derive(Debug)]
pub(super) struct Servers {
    list: Vec<Running>,
    death: watch::Receiver<Option<Death>>,
    stop: watch::Sender<Option<Duration>>,
}

/// One server.
#[derive(Debug)]
struct Running {
    /// What the names of its variables in the sandbox start with.
    variable: String,
    name: String,
    /// Where it listens, as this host reaches it.
    address: SocketAddr,
    log: PathBuf,
    task: JoinHandle<()>,
}

/// A server that ended by itself.
#[derive(Debug, Clone)]
struct Death {
    name: String,
    status: String,
    log: PathBuf,
}

/// The token of a run.
///
/// # Errors
/// [`Code::Io`] when the system has no random numbers.
pub(super) fn token() -> Result<Secret> {
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::new(Code::Io, format!("the system's random source failed: {e}")))?;
    Ok(Secret::new(crate::report::hex(bytes)))
}

/// Starts all and waits until each is healthy. What was started is in the context, also when this fails.
pub(super) async fn start(cx: &Cx, prepared: &Prepared) -> Result<()> {
    let wanted = &prepared.plan.harness.api_servers;
    if wanted.is_empty() {
        return Ok(());
    }
    cx.phase("servers", async {
        let (dead, death) = watch::channel(None);
        let mut servers = Servers { list: Vec::new(), death, stop: watch::channel(None).0 };
        let started = wanted.iter().try_for_each(|server| servers.launch(cx, prepared, server, dead.clone()));
        // Dropping a server that is not in the context would end it without its grace.
        cx.servers.set(servers).map_err(|_| Error::bug("the servers were started twice"))?;
        started?;
        let Some(servers) = cx.servers.get() else { return Err(Error::bug("there are no servers")) };
        let limit = prepared.plan.deadlines.api_server;
        super::join_all(servers.list.iter().map(|server| servers.healthy(server, limit))).await?;
        let note: Vec<_> = servers.list.iter().map(|s| format!("{} on {}", s.name, s.address)).collect();
        Ok(((), note.join(", ")))
    })
    .await
}

impl Servers {
    fn launch(
        &mut self,
        cx: &Cx,
        prepared: &Prepared,
        server: &ApiServer,
        dead: watch::Sender<Option<Death>>,
    ) -> Result<()> {
        // A container reaches this host by an address that is not the loopback's; the embedded sandbox does.
        let any = if prepared.plan.local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let bind = server.bind_address.unwrap_or(IpAddr::V4(any));
        let used: BTreeSet<_> = self.list.iter().map(|s| s.address.port()).collect();
        let port = free_port(server, bind, &used)?;
        let token = prepared.world.token.clone().unwrap_or_default();
        let log_path = cx.id.dir.join("logs").join(format!("api-{}.log", server.name));
        let secrets = cx.ui.secrets();
        let log = Log::create(&log_path, &secrets)?;
        let mut extra: Vec<(&str, OsString)> = vec![(TOKEN, token.expose().into())];
        extra.extend(server.env.iter().map(|(key, value)| (key.as_str(), value.expose().into())));
        let command = script::command(&format!("server {}", server.name), &server.script)?.args([
            "--port",
            &port.to_string(),
            "--bind-address",
            &bind.to_string(),
        ]);
        let child = script::with_env(command, &prepared.script_env(), &extra).spawn()?;
        let death = Death { name: server.name.clone(), status: String::new(), log: log_path.clone() };
        let task = tokio::spawn(watch_over(child, log, death, dead, self.stop.subscribe()));
        self.list.push(Running {
            variable: server.variable(),
            name: server.name.clone(),
            address: SocketAddr::new(reachable(bind), port),
            log: log_path,
            task,
        });
        Ok(())
    }

    /// Waits until a server says that it is well.
    async fn healthy(&self, server: &Running, limit: Duration) -> Result<()> {
        let limit = scale::limit(limit);
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = tokio::select! {
                answer = health::ask(server.address) => answer,
                error = self.died() => return Err(error),
            };
            let why = match answer {
                // Somebody else may listen on the port, while ours could not and is about to end.
                Ok(()) => {
                    return tokio::select! {
                        biased;
                        error = self.died() => Err(error),
                        () = sleep(FIRST_PAUSE) => Ok(()),
                    };
                }
                Err(why) => why,
            };
            if started.elapsed() >= limit {
                let what = format!("the server {} was not healthy within {}", server.name, duration(limit));
                return Err(Error::new(Code::ApiServer, what)
                    .detail(format!("GET http://{}/healthz: {why}\n{}", server.address, tail(&server.log)))
                    .help(format!(
                        "it has to answer GET /healthz with 200 on its --bind-address and --port; its log is {}; \
                         `deadlines.api_server` gives it more time",
                        server.log.display()
                    )));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until one ends by itself, and says so.
    pub(super) async fn died(&self) -> Error {
        let mut death = self.death.clone();
        match death.wait_for(Option::is_some).await.ok().and_then(|d| d.clone()) {
            Some(death) => death.error(),
            // All were stopped, so that none can die any more.
            None => std::future::pending().await,
        }
    }

    /// The one that ended by itself, if one did.
    pub(super) fn dead(&self) -> Option<Error> {
        self.death.borrow().as_ref().map(Death::error)
    }

    /// Ends all: TERM, a grace, KILL.
    pub(super) async fn stop(&self, cancelled: bool) {
        let grace = if cancelled { CANCEL_GRACE } else { scale::pause(GRACE) };
        self.stop.send_replace(Some(grace));
        let end = Instant::now() + grace + DRAIN * 4;
        while self.list.iter().any(|server| !server.task.is_finished()) && Instant::now() < end {
            sleep(Duration::from_millis(5)).await;
        }
        // What is left is killed with its task.
        for server in &self.list {
            server.task.abort();
        }
    }
}

impl Death {
    fn error(&self) -> Error {
        Error::new(Code::ApiServer, format!("the server {} ended with {}", self.name, self.status))
            .detail(tail(&self.log))
            .help(format!(
                "a server has to run until it gets TERM at the end of the run; its log is {}",
                self.log.display()
            ))
    }
}

/// Follows one server to its end.
async fn watch_over(
    mut child: Child,
    mut log: Log,
    mut death: Death,
    dead: watch::Sender<Option<Death>>,
    mut stop: watch::Receiver<Option<Duration>>,
) {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut out_buf, mut err_buf) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut ended: Option<Status> = None;
    let (mut alarm, mut asked) = (None, false);
    loop {
        if ended.is_some() && out.is_none() && err.is_none() {
            break;
        }
        tokio::select! {
            n = read(&mut out, &mut out_buf), if out.is_some() => log.out(&out_buf[..n]),
            n = read(&mut err, &mut err_buf), if err.is_some() => log.err(&err_buf[..n]),
            status = child.wait(), if ended.is_none() => {
                ended = Some(status.unwrap_or(Status::Exited(-1)));
                alarm = Some(Instant::now() + DRAIN);
            }
            grace = to_stop(&mut stop), if !asked && ended.is_none() => {
                asked = true;
                child.signal(Signal::TERM);
                alarm = Some(Instant::now() + grace);
            }
            () = tokio::time::sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                if ended.is_some() {
                    // A child of it holds the pipe, so that the number of the group is still taken.
                    signal_group(child.pgid(), Signal::KILL);
                    break;
                }
                child.signal(Signal::KILL);
                alarm = None;
            }
        }
    }
    log.end();
    if !asked && let Some(status) = ended {
        death.status = format!("{status} while the run needed it");
        dead.send_if_modified(|known| {
            known.is_none() && {
                *known = Some(death);
                true
            }
        });
    }
}

/// Waits until the run stops its servers, and gives the grace.
async fn to_stop(stop: &mut watch::Receiver<Option<Duration>>) -> Duration {
    match stop.wait_for(Option::is_some).await.map(|grace| grace.unwrap_or_default()) {
        Ok(grace) => grace,
        // The run is gone without a word; its tasks go too.
        Err(_) => std::future::pending().await,
    }
}

async fn read(pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>, buf: &mut [u8]) -> usize {
    let Some(reader) = pipe else { return 0 };
    let n = reader.read(buf).await.unwrap_or(0);
    if n == 0 {
        *pipe = None;
    }
    n
}

/// The last lines of a log, which is without secrets.
fn tail(path: &std::path::Path) -> String {
    let text = fs_err::read(path).unwrap_or_default();
    last_lines(&String::from_utf8_lossy(&text), LOG_LINES)
}

/// The address by which this host reaches what listens on `bind`.
fn reachable(bind: IpAddr) -> IpAddr {
    match bind {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// The server's own port, or one that is free now.
fn free_port(server: &ApiServer, bind: IpAddr, taken: &BTreeSet<u16>) -> Result<u16> {
    let listen = |port| TcpListener::bind((bind, port)).and_then(|l| l.local_addr()).map(|a| a.port());
    let failed = |port: u16, e: &std::io::Error| {
        let what =
            format!("the server {} cannot listen on {}: {e}", server.name, SocketAddr::new(bind, port));
        let help = if port == 0 {
            "`bind_address` has to be an address of this machine"
        } else {
            "end what uses the port (perhaps another run of this agent), or leave `port` out: then a free one is chosen"
        };
        Error::new(Code::ApiServer, what).help(help)
    };
    if let Some(port) = server.port {
        return listen(port).map_err(|e| failed(port, &e));
    }
    loop {
        let port = listen(0).map_err(|e| failed(0, &e))?;
        if !taken.contains(&port) {
            return Ok(port);
        }
    }
}
