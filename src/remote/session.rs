//! The one connection to a sandbox.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::argv::{self, CLIENT_CONFIG, MASTER_CONFIG};
use super::ssh_config::SshConfig;
use crate::error::{Code, Error, Result};
use crate::openshell::ChildEnv;
use crate::process::{Child, Command, Failure, Output, Ring, Signal, locate, scale, signal_group};

/// The longest path of a control socket, in bytes: a socket address takes 108 on Linux and 104 on macOS, and ssh
/// appends 17 while it makes the socket.
const SOCKET_PATH_MAX: usize = 85;
/// The first and the longest pause between two looks for the socket, which cost next to nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// How long a request for a forwarded port may take.
const FORWARD_LIMIT: Duration = Duration::from_secs(20);
/// How long the master may take to end after TERM, and its proxy after it.
const CLOSE_GRACE: Duration = Duration::from_secs(2);
const PROXY_GRACE: Duration = Duration::from_millis(300);

/// What stands between the words of a login shell and the answer of a command. The files that a login shell reads
/// belong to the image and to the agent, and may print whatever they like.
pub(super) const MARK: &[u8] = b"\x1efullsend-answer\x1e\n";
/// A command that prints [`MARK`]; what follows it is the answer.
pub(super) const SAY_MARK: &str = r"printf '\036fullsend-answer\036\n'; ";

/// What a session is made of.
pub struct OpenSpec<'a> {
    /// What `openshell sandbox ssh-config` printed.
    pub ssh_config: &'a [u8],
    /// The executable of openshell and what comes before every subcommand
    /// ([`crate::openshell::Openshell::program`]).
    pub program: &'a [OsString],
    /// The environment that openshell wants ([`crate::openshell::Openshell::child_env`]): the proxy is one.
    pub env: &'a ChildEnv,
    /// A private directory (0700) that outlives the session.
    pub dir: &'a Path,
    /// How long the connection may take to come up, each time.
    pub limit: Duration,
    /// Hears of a directory outside `dir`, as soon as it was made: it has to go should this process be killed.
    pub made: &'a dyn Fn(&Path),
}

/// A multiplexed ssh connection; every command and transfer is a channel of it.
#[derive(Debug)]
pub struct Session {
    dir: PathBuf,
    socket: PathBuf,
    /// Keeps the socket's own directory where the path of `dir` is too long for a socket.
    _socket_dir: Option<tempfile::TempDir>,
    alias: String,
    env: ChildEnv,
    ssh: PathBuf,
    limit: Duration,
    master: Option<Master>,
    /// Ports of the sandbox's loopback that lead to addresses of this host.
    forwards: Vec<(u16, SocketAddr)>,
}

#[derive(Debug)]
struct Master {
    child: Child,
    stderr: Arc<Mutex<Ring>>,
    /// Ends when nothing of the master's group holds its output any more.
    pump: JoinHandle<()>,
}

impl Session {
    /// Writes the configuration and opens the connection.
    ///
    /// # Errors
    /// [`Code::SshConfig`] for a configuration that is not acceptable, [`Code::SshFailed`] with the words of ssh
    /// when the connection does not come up.
    pub async fn open(spec: OpenSpec<'_>) -> Result<Self> {
        let config = SshConfig::parse(spec.ssh_config)?;
        let ssh = locate("ssh", "install the OpenSSH client (package openssh-client)")?;
        let dir = std::path::absolute(spec.dir).map_err(|e| Error::io("cannot resolve a path", &e))?;
        let (socket, socket_dir) = socket_path(&dir)?;
        if let Some(made) = &socket_dir {
            (spec.made)(made.path());
        }
        write_private(&dir.join(MASTER_CONFIG), &config.render_master(spec.program, &socket)?)?;
        write_private(&dir.join(CLIENT_CONFIG), &config.render_client(&socket)?)?;
        let mut session = Self {
            dir,
            socket,
            _socket_dir: socket_dir,
            alias: config.alias,
            env: ssh_env(spec.env),
            ssh,
            limit: spec.limit,
            master: None,
            forwards: Vec::new(),
        };
        session.connect().await?;
        Ok(session)
    }

    /// Closes what is left of the connection and opens it again, with the same configuration.
    pub async fn reopen(&mut self) -> Result<()> {
        self.close().await;
        self.connect().await?;
        for (port, to) in self.forwards.clone() {
            if let Some(why) = self.ask_forward(port, to).await? {
                return Err(self.broken("forward", &why));
            }
        }
        Ok(())
    }

    /// Asks for `port` of the sandbox's loopback to lead to `to`, also after [`Session::reopen`]. False when the
    /// sandbox's ssh server does not do that, or when the port is taken there.
    pub async fn forward(&mut self, port: u16, to: SocketAddr) -> Result<bool> {
        if let Some(why) = self.ask_forward(port, to).await? {
            tracing::debug!(port, why, "no forwarding");
            return Ok(false);
        }
        self.forwards.push((port, to));
        Ok(true)
    }

    /// Why it was refused, if it was.
    async fn ask_forward(&self, port: u16, to: SocketAddr) -> Result<Option<String>> {
        let args = argv::forward(self.client_config(), &self.alias, port, to);
        let command = self.env.apply(Command::new("ssh -O forward", &self.ssh).args(args));
        match command.deadline(FORWARD_LIMIT).output().await {
            Ok(output) if output.status.success() => Ok(None),
            Ok(output) => Ok(Some(output.stderr_text())),
            Err(failure @ Failure::Deadline { .. }) => Ok(Some(failure.to_string())),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Whether the master still runs. A connection that hangs counts until its sign of life is missed.
    pub fn is_open(&mut self) -> bool {
        self.master.as_mut().is_some_and(|m| matches!(m.child.try_wait(), Ok(None)))
    }

    /// The ssh client.
    pub(super) fn ssh(&self) -> &Path {
        &self.ssh
    }

    /// The name that transfers address the sandbox by.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// Runs `script` in the sandbox, which hands it to `bash -lc`. Not yet started; standard input is empty.
    pub fn command(&self, label: impl Into<String>, script: &str) -> Command {
        let args = argv::command(self.client_config(), &self.alias, script);
        self.env.apply(Command::new(label, &self.ssh).args(args))
    }

    /// Runs `script` to its end. Its status is for the caller, but for 255, which is ssh's own: a script must not
    /// use it.
    ///
    /// # Errors
    /// [`Code::SshFailed`] when the connection failed or the deadline passed.
    pub async fn exec(&self, label: &str, script: &str, deadline: Duration) -> Result<Output> {
        self.answer(label, script, deadline, Ring::DEFAULT).await
    }

    /// The same for a script that answers at length: up to `limit` bytes of standard output are kept.
    ///
    /// # Errors
    /// As [`Session::exec`].
    pub async fn answer(
        &self,
        label: &str,
        script: &str,
        deadline: Duration,
        limit: usize,
    ) -> Result<Output> {
        let script = format!("{SAY_MARK}{script}");
        let command = self.command(label, &script).deadline(deadline).keep_stdout(limit);
        let mut output = self.finish(label, command.output().await)?;
        match memchr::memmem::find(&output.stdout, MARK) {
            Some(at) => drop(output.stdout.drain(..at + MARK.len())),
            // The oldest bytes of a long answer are forgotten.
            None if output.stdout_truncated || !output.status.success() => {}
            None => return Err(self.unheard(label, &output)),
        }
        Ok(output)
    }

    /// The error of a command that went well and did not run.
    fn unheard(&self, label: &str, output: &Output) -> Error {
        let said = format!("{}\n{}", output.stdout_text().trim(), output.stderr_text().trim());
        Error::new(Code::SshFailed, format!("the login shell of the sandbox did not run `{label}`"))
            .detail(self.words(&said))
            .help("the files that a login shell reads (/etc/profile, ~/.profile, ~/.bash_profile) must come to an end without `exit` and `exec`")
    }

    /// A transfer program with our configuration; it runs in the session's directory, so that the configuration
    /// has a name without characters that need quoting.
    pub(super) fn transfer(&self, label: &str, program: PathBuf) -> Command {
        self.env.apply(Command::new(label, program).current_dir(&self.dir))
    }

    /// What a finished command of [`Session::command`] means; as [`Session::exec`].
    ///
    /// # Errors
    /// As [`Session::exec`].
    pub fn finished(&self, label: &str, result: Result<Output, Failure>) -> Result<Output> {
        self.finish(label, result)
    }

    /// What a finished ssh client means.
    pub(super) fn finish(&self, label: &str, result: Result<Output, Failure>) -> Result<Output> {
        match result {
            Ok(output) if output.status.code().is_none_or(|code| code == 255) => {
                Err(self.broken(label, &output.stderr_text()))
            }
            Ok(output) => Ok(output),
            Err(failure @ Failure::Deadline { .. }) => {
                let message = failure.to_string();
                let Failure::Deadline { stderr, .. } = failure else { return Err(Error::bug(message)) };
                Err(Error::new(Code::SshFailed, message).detail(self.words(&stderr)))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// The error of a call whose connection failed.
    pub(super) fn broken(&self, label: &str, stderr: &str) -> Error {
        Error::new(Code::SshFailed, format!("the connection to the sandbox failed during `{label}`"))
            .detail(self.words(stderr))
    }

    /// What the client and the master said.
    fn words(&self, client: &str) -> String {
        let master = self.master.as_ref().map(Master::words).unwrap_or_default();
        format!("{}\n{}", client.trim(), master.trim()).trim().to_owned()
    }

    fn client_config(&self) -> PathBuf {
        self.dir.join(CLIENT_CONFIG)
    }

    async fn connect(&mut self) -> Result<()> {
        // A socket that is in the way would make ssh go on without one.
        let _ = fs_err::remove_file(&self.socket);
        let args = argv::master(self.dir.join(MASTER_CONFIG), &self.alias);
        let command = self.env.apply(Command::new("ssh (master)", &self.ssh).args(args));
        let mut master = Master::start(command)?;
        let started = Instant::now();
        let limit = scale::limit(self.limit);
        let mut pause = FIRST_PAUSE;
        // ssh links the socket into place when it already listens, after authentication.
        while !self.socket.exists() {
            if let Some(status) = master.child.try_wait().map_err(|e| Error::io("cannot wait for ssh", &e))? {
                let _ = timeout(PROXY_GRACE, &mut master.pump).await;
                return Err(Error::new(
                    Code::SshFailed,
                    format!("no connection to the sandbox: ssh ended with {status}"),
                )
                .detail(master.words()));
            }
            if started.elapsed() > limit {
                let words = master.words();
                master.end().await;
                let after = crate::report::duration(limit);
                return Err(Error::new(
                    Code::SshFailed,
                    format!("no connection to the sandbox within {after}"),
                )
                .detail(words));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        tracing::debug!(elapsed = ?started.elapsed(), "connected");
        self.master = Some(master);
        Ok(())
    }

    /// Ends the connection: the master, and the proxy that it started. Dropping a session does the same at once
    /// and without grace.
    pub async fn close(&mut self) {
        if let Some(master) = self.master.take() {
            master.end().await;
        }
        let _ = fs_err::remove_file(&self.socket);
    }
}

impl Master {
    fn start(command: Command) -> Result<Self> {
        let mut child = command.spawn()?;
        let stderr = Arc::new(Mutex::new(Ring::new(Ring::DEFAULT)));
        let pump = tokio::spawn(pump(child.stdout.take(), child.stderr.take(), Arc::clone(&stderr)));
        Ok(Self { child, stderr, pump })
    }

    fn words(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    async fn end(mut self) {
        let group = self.child.pgid();
        let _ = self.child.stop(Signal::TERM, CLOSE_GRACE).await;
        // The proxy is of the same group and holds the same pipe. While the pipe is open the group has a member,
        // so its number cannot belong to a stranger.
        if timeout(PROXY_GRACE, &mut self.pump).await.is_err() {
            signal_group(group, Signal::KILL);
            let _ = timeout(PROXY_GRACE, &mut self.pump).await;
        }
        self.pump.abort();
    }
}

async fn pump(
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
    ring: Arc<Mutex<Ring>>,
) {
    let (out, err) = (
        async {
            if let Some(mut stdout) = stdout {
                let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
            }
        },
        async {
            let Some(mut stderr) = stderr else { return };
            let mut buf = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut buf).await {
                ring.lock().unwrap_or_else(PoisonError::into_inner).push(&buf[..n]);
            }
        },
    );
    tokio::join!(out, err);
}

/// The environment of ssh: nothing that asks a person, no agent to offer keys of, and a shell for the proxy
/// command that understands our quoting.
fn ssh_env(env: &ChildEnv) -> ChildEnv {
    ["SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY"]
        .into_iter()
        .fold(env.clone(), ChildEnv::remove)
        .set("SHELL", "/bin/sh")
}

/// A path for the control socket that fits into a socket address, and the directory made for it where `dir` is
/// too deep.
fn socket_path(dir: &Path) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    let fits = |path: &Path| path.as_os_str().len() <= SOCKET_PATH_MAX;
    let own = dir.join("s");
    if fits(&own) {
        return Ok((own, None));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute());
    for parent in runtime.into_iter().chain([PathBuf::from("/tmp")]) {
        let private = std::fs::Permissions::from_mode(0o700);
        if let Ok(made) =
            tempfile::Builder::new().prefix("fullsend-").permissions(private).tempdir_in(&parent)
        {
            let socket = made.path().join("s");
            if fits(&socket) {
                return Ok((socket, Some(made)));
            }
        }
    }
    Err(Error::new(Code::Io, "no directory has a path short enough for a control socket")
        .help("set TMPDIR or XDG_RUNTIME_DIR to a short path"))
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let write = || -> std::io::Result<()> {
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.options_mut().mode(0o600);
        options.open(path)?.write_all(bytes)
    };
    write().map_err(|e| Error::io("cannot write the ssh configuration", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &[u8] = b"Host openshell-x\n  User sandbox\n  ProxyCommand openshell ssh-proxy --name x\n";

    async fn open(program: &[OsString], dir: &Path) -> Result<Session> {
        let env = ChildEnv::default();
        Session::open(OpenSpec {
            ssh_config: CONFIG,
            program,
            env: &env,
            dir,
            limit: Duration::from_mins(1),
            made: &|_| {},
        })
        .await
    }

    #[tokio::test]
    async fn a_master_that_dies_shows_the_words_of_its_proxy() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("proxy");
        fs_err::write(&script, "echo \"sandbox not found: $*\" >&2; exit 1").unwrap();
        let error = open(&["/bin/sh".into(), script.into()], dir.path()).await.unwrap_err();
        assert_eq!(error.code(), Code::SshFailed);
        let detail = error.detail_text().unwrap();
        assert!(detail.contains("sandbox not found: ssh-proxy --name x"), "{detail}");
        for file in [CLIENT_CONFIG, MASTER_CONFIG] {
            let mode = fs_err::metadata(dir.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn a_deep_directory_gets_a_socket_elsewhere() {
        let deep = PathBuf::from(format!("/tmp/{}", "d".repeat(100)));
        let (socket, made) = socket_path(&deep).unwrap();
        assert!(socket.as_os_str().len() <= SOCKET_PATH_MAX);
        let made = made.unwrap();
        let rights = fs_err::metadata(made.path()).unwrap().permissions().mode();
        assert_eq!(rights & 0o777, 0o700);
        assert_eq!(socket_path(Path::new("/run/x")).unwrap().0, Path::new("/run/x/s"));
    }

    #[test]
    fn ssh_sees_no_agent_and_a_plain_shell() {
        let command = ssh_env(&ChildEnv::default().set("KEEP", "1"));
        let text = format!("{command:?}");
        for key in ["SSH_AUTH_SOCK", "SSH_ASKPASS", "KEEP", "/bin/sh"] {
            assert!(text.contains(key), "{text}");
        }
    }
}
