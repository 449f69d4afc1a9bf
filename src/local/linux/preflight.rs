//! Whether the embedded backend can work on this machine, and what to do when it cannot.

use std::process::{Command, Stdio};

use super::identity::Identity;
use super::state;
use crate::error::{Code, Error, Result};

/// Tries it: one run of bubblewrap.
pub(in crate::local) fn preflight() -> Result<()> {
    let missing = |program: &str, package: &str| {
        Error::new(Code::LocalUnavailable, format!("the embedded backend needs `{program}`"))
            .help(format!("apt-get install {package}"))
    };
    for (program, package) in [("nsenter", "util-linux"), ("setsid", "util-linux"), ("setpriv", "util-linux")]
    {
        which::which(program).map_err(|_| missing(program, package))?;
    }
    let bwrap = which::which("bwrap").map_err(|_| missing("bwrap", "bubblewrap"))?;
    Identity::detect()
        .map_err(|e| Error::new(Code::LocalUnavailable, e.to_string()).help("run as an ordinary user"))?;
    state::State::open().map_err(|e| {
        Error::new(Code::Io, format!("the embedded backend cannot keep its state: {e}"))
            .help("set XDG_STATE_HOME to a directory that can be written")
    })?;
    let out = Command::new(bwrap)
        .args(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net"])
        .args([
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "--perms",
            "0700",
            "--tmpfs",
            "/tmp",
            "/bin/sh",
            "-c",
            ":",
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::new(Code::LocalUnavailable, format!("bubblewrap cannot be started: {e}")))?;
    if out.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&out.stderr);
    Err(Error::new(Code::LocalUnavailable, "bubblewrap cannot make a sandbox on this machine")
        .help(advice(&words, Kernel::look()))
        .detail(words))
}

/// The switches of the kernel that matter.
#[expect(clippy::struct_excessive_bools, reason = "four switches that are independent of each other")]
#[derive(Debug, Clone, Copy, Default)]
struct Kernel {
    /// Ubuntu 23.10 and later: `kernel.apparmor_restrict_unprivileged_userns`.
    apparmor: bool,
    /// Debian 10 and earlier: `kernel.unprivileged_userns_clone = 0`.
    clone_off: bool,
    /// `user.max_user_namespaces = 0`.
    none_left: bool,
    /// Whether this looks like the inside of a container.
    container: bool,
}

impl Kernel {
    fn look() -> Self {
        let is = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|t| t.trim() == value);
        Self {
            apparmor: is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            clone_off: is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            none_left: is("/proc/sys/user/max_user_namespaces", "0"),
            container: ["/.dockerenv", "/run/.containerenv"].iter().any(|p| std::path::Path::new(p).exists())
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }
}

/// What to do about bubblewrap's words.
fn advice(words: &str, kernel: Kernel) -> &'static str {
    if kernel.none_left {
        return "allow user namespaces: sysctl -w user.max_user_namespaces=15000";
    }
    if kernel.clone_off {
        return "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1";
    }
    if words.contains("--perms") || words.contains("Unknown option") {
        return "bubblewrap 0.5 or newer is needed";
    }
    if kernel.container {
        return "this container does not allow namespaces or a fresh /proc: start it with --privileged, or with \
                --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt \
                systempaths=unconfined";
    }
    if kernel.apparmor {
        return "AppArmor keeps programs from user namespaces (Ubuntu 23.10 and later): add a profile for \
                /usr/bin/bwrap with `userns,` (package apparmor-profiles has bwrap-userns-restrict), or sysctl -w \
                kernel.apparmor_restrict_unprivileged_userns=0";
    }
    "user namespaces must be allowed for this user; `bwrap --unshare-user --ro-bind / / true` must succeed"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_the_fix_of_the_case() {
        let none = Kernel::default();
        let uid_map = "bwrap: setting up uid map: Permission denied";
        for (words, kernel, want) in [
            (uid_map, Kernel { apparmor: true, ..none }, "apparmor_restrict_unprivileged_userns=0"),
            (
                "bwrap: No permissions to create new namespace",
                Kernel { container: true, ..none },
                "--privileged",
            ),
            (uid_map, Kernel { none_left: true, ..none }, "max_user_namespaces"),
            (uid_map, Kernel { clone_off: true, ..none }, "unprivileged_userns_clone=1"),
            ("bwrap: Unknown option --perms", none, "0.5 or newer"),
            ("bwrap: whatever", none, "must succeed"),
        ] {
            assert!(advice(words, kernel).contains(want), "{words} {kernel:?}");
        }
    }
}
