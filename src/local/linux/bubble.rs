//! The argument list of bubblewrap: what a sandbox sees. Pure; the host's layout comes in as a value.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::identity::{INSIDE, Identity};

/// System directories that are bound when they exist.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Files and directories of `/etc` that are bound when they exist. None of them holds a secret.
const ETC: [&str; 25] = [
    "alternatives",
    "bash.bashrc",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "magic",
    "mime.types",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// Devices that are bound.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Directories that have a meaning of their own inside, so nothing of the host may be laid over them.
const RESERVED: [&str; 5] = ["/dev", "/etc", "/proc", "/sandbox", "/sys"];

/// The directory with a link for each named program.
pub(super) const LINKS: &str = "/run/fullsend/bin";

/// One of the system directories on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum System {
    /// A real directory.
    Dir(PathBuf),
    /// A link such as `/bin -> usr/bin`.
    Link(PathBuf, PathBuf),
}

/// What the host looks like.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    pub(super) system: Vec<System>,
    pub(super) etc: Vec<PathBuf>,
    pub(super) devices: Vec<PathBuf>,
}

impl Host {
    /// Looks at this host.
    pub(super) fn look() -> Self {
        let system = SYSTEM.iter().map(PathBuf::from).filter_map(|path| match std::fs::read_link(&path) {
            Ok(target) => Some(System::Link(path, target)),
            Err(_) => path.is_dir().then_some(System::Dir(path)),
        });
        let etc = ETC.iter().map(|name| Path::new("/etc").join(name)).filter(|p| p.exists());
        let devices = DEVICES.iter().map(|name| Path::new("/dev").join(name)).filter(|p| p.exists());
        Self { system: system.collect(), etc: etc.collect(), devices: devices.collect() }
    }
}

/// What a sandbox is to be.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) name: String,
    /// Its directory on the host, with `home`, `tmp` and `etc`.
    pub(super) dir: PathBuf,
    pub(super) identity: Identity,
    pub(super) network: bool,
    pub(super) binds: Vec<PathBuf>,
    /// Names on the search path, and the programs that they stand for.
    pub(super) links: Vec<(String, PathBuf)>,
    /// Names of the generated files in `dir/etc`.
    pub(super) generated: Vec<&'static str>,
}

/// File numbers that bubblewrap inherits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fds {
    /// Where it tells the number of the first process.
    pub(super) info: i32,
    /// Where it tells how the main process ended.
    pub(super) status: i32,
}

/// Closes what was inherited from the caller beyond the standard streams: an open directory of the host would
/// lead out of the sandbox, and a pipe would keep its reader waiting.
pub(super) const CLOSE: &str =
    r#"for fd in /proc/self/fd/*; do fd=${fd##*/}; if [ "$fd" -gt 2 ]; then eval "exec $fd<&-"; fi; done; "#;

/// The script of bash that becomes the main process, after [`CLOSE`]: it says that all is set up, waits to be
/// let go (so that a sandbox whose creator died before it wrote down the process numbers ends), and becomes the
/// command.
const HANDSHAKE: &str = r#"echo ready; read -r go || exit 125; exec "$@" </dev/null >&2"#;

/// Options of bubblewrap, in order.
pub(super) fn options(spec: &Spec, host: &Host, fds: Fds) -> Vec<OsString> {
    let mut o = Options(Vec::new());
    for flag in ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    {
        o.word(flag);
    }
    if !spec.network {
        o.word("--unshare-net");
    }
    let inside = INSIDE.to_string();
    match spec.identity {
        Identity::Own => {
            o.words(&["--uid", &inside, "--gid", &inside]);
        }
        // The caller writes the number maps. The capabilities are those over the sandbox's own mounts and
        // numbers; `setpriv` gives them up before the first foreign program.
        Identity::Dropped { .. } => {
            o.words(&["--userns-block-fd", "0", "--cap-drop", "ALL"]);
            for cap in ["CAP_SETUID", "CAP_SETGID", "CAP_DAC_OVERRIDE"] {
                o.words(&["--cap-add", cap]);
            }
        }
    }
    o.words(&["--hostname", &spec.name]);
    o.mounts(spec, host);
    o.words(&["--remount-ro", "/", "--chdir", "/sandbox", "--new-session"]);
    o.words(&["--info-fd", &fds.info.to_string(), "--json-status-fd", &fds.status.to_string()]);
    o.0
}

/// The main process behind the options.
pub(super) fn main_command(identity: Identity, command: &[OsString]) -> Vec<OsString> {
    let inside = INSIDE.to_string();
    let mut argv: Vec<OsString> = Vec::new();
    if let Identity::Dropped { .. } = identity {
        argv.extend(
            ["/usr/bin/setpriv", "--reuid", &inside, "--regid", &inside, "--clear-groups"].map(Into::into),
        );
    }
    argv.extend(["/bin/bash", "-c", &format!("{CLOSE}{HANDSHAKE}"), "main"].map(Into::into));
    argv.extend(command.iter().cloned());
    argv
}

/// Checks the directories to be bound besides the system's. Those under `/usr` are visible anyway.
pub(super) fn parse_binds(value: &str) -> Result<Vec<PathBuf>, String> {
    let mut binds: Vec<PathBuf> = Vec::new();
    for part in value.split(':').filter(|p| !p.is_empty()) {
        let path = PathBuf::from(part);
        if !path.is_absolute() || path.components().any(|c| c == std::path::Component::ParentDir) {
            return Err(format!("'{part}' is not an absolute path without '..'"));
        }
        let path: PathBuf = path.components().collect();
        if ["/", "/tmp"].iter().any(|p| path == Path::new(p)) || RESERVED.iter().any(|r| path.starts_with(r))
        {
            return Err(format!("'{part}' cannot be shown in a sandbox"));
        }
        if !binds.contains(&path) {
            binds.push(path);
        }
    }
    Ok(binds)
}

/// Reads what programs are to be found by which names.
pub(super) fn parse_links(value: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let parts = value.split(':').filter(|p| !p.is_empty());
    parts
        .map(|part| {
            let (name, path) = part.split_once('=').ok_or(format!("'{part}' has no '='"))?;
            if name.is_empty() || name.contains('/') || name.starts_with('.') || !path.starts_with('/') {
                return Err(format!("'{part}' is not a name and an absolute path"));
            }
            Ok((name.to_owned(), PathBuf::from(path)))
        })
        .collect()
}

struct Options(Vec<OsString>);

impl Options {
    fn word(&mut self, word: impl Into<OsString>) {
        self.0.push(word.into());
    }

    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn bind(&mut self, kind: &str, from: &Path, to: &Path) {
        self.word(kind);
        self.word(from);
        self.word(to);
    }

    /// A directory of mode 0755: bubblewrap's own parents of a file are 0700.
    fn dir(&mut self, path: &Path) {
        self.words(&["--perms", "0755", "--dir"]);
        self.word(path);
    }

    fn mounts(&mut self, spec: &Spec, host: &Host) {
        for entry in &host.system {
            match entry {
                System::Dir(path) => self.bind("--ro-bind", path, path),
                System::Link(path, target) => self.bind("--symlink", target, path),
            }
        }
        let made: BTreeSet<&Path> =
            host.etc.iter().filter_map(|p| p.parent()).chain([Path::new("/etc")]).collect();
        for dir in made {
            self.dir(dir);
        }
        for path in &host.etc {
            self.bind("--ro-bind", path, path);
        }
        for name in &spec.generated {
            self.bind("--ro-bind", &spec.dir.join("etc").join(name), &Path::new("/etc").join(name));
        }
        if spec.network {
            let resolver = Path::new("/etc/resolv.conf");
            self.bind("--ro-bind-try", resolver, resolver);
        }
        self.words(&["--symlink", "../usr/lib/os-release", "/etc/os-release"]);
        self.words(&["--symlink", "/proc/mounts", "/etc/mtab"]);
        self.words(&["--proc", "/proc"]);
        self.dir(Path::new("/dev"));
        for path in &host.devices {
            self.bind("--dev-bind", path, path);
        }
        for (target, link) in [("fd", "fd"), ("fd/0", "stdin"), ("fd/1", "stdout"), ("fd/2", "stderr")] {
            self.words(&["--symlink", &format!("/proc/self/{target}"), &format!("/dev/{link}")]);
        }
        self.words(&["--perms", "1777", "--tmpfs", "/dev/shm"]);
        self.bind("--bind", &spec.dir.join("home"), Path::new("/sandbox"));
        self.bind("--bind", &spec.dir.join("tmp"), Path::new("/tmp"));
        self.dir(Path::new("/run"));
        self.dir(Path::new("/var"));
        self.words(&["--symlink", "../tmp", "/var/tmp", "--symlink", "../run", "/var/run"]);
        self.extra(&spec.binds);
        if !spec.links.is_empty() {
            for dir in Path::new(LINKS).ancestors().take(2).collect::<Vec<_>>().into_iter().rev() {
                self.dir(dir);
            }
        }
        for (name, program) in &spec.links {
            self.bind("--symlink", program, &Path::new(LINKS).join(name));
        }
    }

    fn extra(&mut self, binds: &[PathBuf]) {
        let shown = |p: &Path| p.starts_with("/usr");
        let mut made: BTreeSet<PathBuf> = BTreeSet::new();
        for bind in binds.iter().filter(|b| !shown(b)) {
            let parents = bind.ancestors().skip(1);
            // `/tmp` is there; a directory of ours below it must be open to the sandbox's user.
            made.extend(
                parents.filter(|p| p.parent().is_some() && *p != Path::new("/tmp")).map(Path::to_owned),
            );
        }
        for dir in made.difference(&binds.iter().cloned().collect()) {
            self.dir(dir);
        }
        // An outer directory before one inside it.
        let mut binds: Vec<_> = binds.iter().filter(|b| !shown(b)).collect();
        binds.sort();
        for bind in binds {
            self.bind("--ro-bind", bind, bind);
        }
    }
}
