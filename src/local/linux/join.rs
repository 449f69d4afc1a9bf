//! Running a command in the namespaces of a sandbox.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::fail::{Fail, Outcome};
use super::identity::{INSIDE, Identity};
use super::launch::program;
use super::record::{Phase, Record};
use super::state::State;

/// Namespaces: the name under `/proc/PID/ns` and the option of nsenter.
const NAMESPACES: [(&str, &str); 7] = [
    ("user", "-U"),
    ("mnt", "-m"),
    ("pid", "-p"),
    ("ipc", "-i"),
    ("uts", "-u"),
    ("net", "-n"),
    ("cgroup", "-C"),
];

/// Where a Linux distribution puts the SFTP server.
const SFTP_SERVERS: [&str; 6] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib64/misc/sftp-server",
    "/usr/lib/misc/sftp-server",
];

/// A way into one sandbox.
#[derive(Debug, Clone)]
pub(super) struct Door {
    nsenter: PathBuf,
    options: Vec<OsString>,
    /// The first process of the sandbox.
    init: i32,
    env: Vec<(String, String)>,
}

/// What to run inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inside {
    /// A command line for a login shell.
    Line(OsString),
    /// A login shell that reads commands.
    Shell,
    /// A program and its arguments, in a login shell's environment.
    Argv(Vec<OsString>),
    /// The SFTP server.
    Sftp(OsString),
}

impl Door {
    /// The door of a sandbox that is ready.
    pub(super) fn open(state: &State, record: &Record) -> Outcome<Self> {
        let condition = record.condition(state);
        let (Phase::Ready, Some(init)) = (condition.phase, record.init) else {
            return Err(Fail::new(format!(
                "sandbox '{}' is not ready (phase: {}); wait for it to reach Ready state",
                record.name,
                condition.phase.as_str()
            )));
        };
        let nsenter = program("nsenter", "util-linux")?;
        let options = options(init.pid, record.identity, |ns| differs(init.pid, ns));
        Ok(Self { nsenter, options, init: init.pid, env: record.env.clone() })
    }

    /// Adds variables.
    pub(super) fn with_env(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        super::etc::merge(&mut self.env, more);
        self
    }

    /// The child that makes a socket in the sandbox's network (see [`super::forward`]); `None` when the sandbox has the
    /// network of this machine. It keeps this machine's files, so that this program is found.
    pub(super) fn listener(&self, port: u16) -> std::io::Result<Option<std::process::Command>> {
        if !differs(self.init, "net") {
            return Ok(None);
        }
        let mut command = std::process::Command::new(&self.nsenter);
        command.args(["-t", &self.init.to_string()]);
        command.args(
            NAMESPACES
                .iter()
                .filter(|(ns, _)| matches!(*ns, "user" | "net"))
                .filter_map(|(ns, flag)| differs(self.init, ns).then_some(*flag)),
        );
        command.args(["--preserve-credentials", "--"]).arg(std::env::current_exe()?);
        command.args(["openshell", "listen", "--port", &port.to_string()]).env_clear().current_dir("/");
        Ok(Some(command))
    }

    /// The child that runs `what`, in a session of its own inside. Standard streams are the caller's to set.
    /// It is not ended when its handle is dropped.
    pub(super) fn command(&self, what: &Inside) -> std::process::Command {
        let mut command = std::process::Command::new(&self.nsenter);
        command.args(&self.options).args(["--", "/usr/bin/setsid"]).args(argv(what));
        command.env_clear().envs(self.env.iter().map(|(k, v)| (k, v))).current_dir("/");
        command
    }
}

/// The SFTP server, which is visible inside at the same path.
pub(super) fn sftp_server() -> Option<OsString> {
    SFTP_SERVERS.iter().find(|p| Path::new(p).is_file()).map(OsString::from)
}

fn argv(what: &Inside) -> Vec<OsString> {
    // The caller of `sandbox exec` may have left files open; ssh closes its own before it starts us.
    let login = format!("{}exec /bin/bash -lc 'exec \"$@\"' \"$@\"", super::bubble::CLOSE);
    let (head, rest): (Vec<&str>, &[OsString]) = match what {
        Inside::Line(line) => (vec!["/bin/bash", "-lc"], std::slice::from_ref(line)),
        Inside::Shell => (vec!["/bin/bash", "-l"], &[]),
        Inside::Sftp(server) => (vec![], std::slice::from_ref(server)),
        Inside::Argv(words) => (vec!["/bin/bash", "-c", &login, "exec", "exec"], words),
    };
    head.into_iter().map(OsString::from).chain(rest.iter().cloned()).collect()
}

/// The options of nsenter for the namespaces that differ from the caller's.
fn options(pid: i32, identity: Identity, differs: impl Fn(&str) -> bool) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec!["-t".into(), pid.to_string().into()];
    options.extend(NAMESPACES.iter().filter(|(ns, _)| differs(ns)).map(|(_, flag)| (*flag).into()));
    // The working directory of the first process, which is `/sandbox`.
    options.push("-w".into());
    match identity {
        Identity::Own => options.push("--preserve-credentials".into()),
        Identity::Dropped { .. } => {
            let id = INSIDE.to_string();
            options.extend(["--setuid", &id, "--setgid", &id].map(Into::into));
        }
    }
    options
}

fn differs(pid: i32, ns: &str) -> bool {
    let link = |who: &OsStr| fs::read_link(Path::new("/proc").join(who).join("ns").join(ns)).ok();
    match (link(OsStr::new("self")), link(OsStr::new(&pid.to_string()))) {
        (Some(own), Some(theirs)) => own != theirs,
        // A kernel without this namespace.
        (None, None) => false,
        // Better an error than a command outside.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differing_namespaces_are_entered_and_root_drops() {
        let text = |v: Vec<OsString>| v.join(OsStr::new(" ")).into_string().unwrap();
        assert_eq!(
            text(options(7, Identity::Own, |ns| ns != "net")),
            "-t 7 -U -m -p -i -u -C -w --preserve-credentials"
        );
        assert_eq!(
            text(options(7, Identity::Dropped { uid: 65534, gid: 65534 }, |_| true)),
            "-t 7 -U -m -p -i -u -n -C -w --setuid 1000 --setgid 1000"
        );
    }

    #[test]
    fn a_process_that_is_gone_counts_as_elsewhere() {
        assert!(differs(i32::MAX, "mnt"));
        assert!(!differs(i32::try_from(std::process::id()).unwrap(), "mnt"));
    }
}
