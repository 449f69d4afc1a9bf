//! The embedded stand-in for `openshell`: `fullsend openshell …`, a hidden subcommand.
//!
//! It speaks the CLI contract of OpenShell 0.1.x for the calls that a runner makes, so that the real `ssh`,
//! `scp` and `rsync` clients and the runner's one code path work on a laptop without a gateway.
//!
//! * One sandbox is one [bubblewrap](https://github.com/containers/bubblewrap) process that holds the
//!   namespaces (`linux::bubble`); it lives until `sandbox delete`. Liveness is a process number together with its
//!   start time (`linux::procs`).
//! * `ssh-proxy` is an SSH server on standard input and output (`linux::ssh`). It runs each command in those
//!   namespaces by `nsenter` (`linux::join`).
//! * State is a directory that only its owner can read (`linux::state`). Provider values lie there in files of mode
//!   0600 until the provider is deleted.
//!
//! # What it is not
//! It is not a boundary equal to OpenShell: same kernel, no Landlock rules, no seccomp filter, no proxy. A policy
//! is checked for the mistakes that OpenShell refuses, and decides whether there is a network at all; its
//! network rules are not enforced. As there is no proxy that could fill in credentials, a provider's values are
//! in the environment of the sandbox as they are. The image is not used; the host's `/usr` is, read-only.
//! There is no pseudo-terminal inside.
//!
//! # Whose power a sandbox has
//! A process inside is user 1000. For an ordinary user that is an alias of the user's own number, without any
//! capability on the host. Started as root it is an alias of an unprivileged number (`linux::identity`), never of
//! root's.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::Result;

pub mod programs;

#[cfg(all(target_os = "linux", feature = "local"))]
mod linux;

/// The version that `--version` prints. The build part keeps version comparisons working and says whose it is.
pub const VERSION: &str = "0.1.10+fullsend";

/// Colon separated absolute directories (or files) of the host that a new sandbox sees read-only at the same
/// place. The `bin` directory of each is on the PATH of login shells.
pub const BINDS_ENV: &str = "FULLSEND_LOCAL_BINDS";

/// Colon separated `NAME=PATH`: programs that a new sandbox finds on its PATH by that name. The path itself must
/// be visible there, see [`BINDS_ENV`].
pub const PROGRAMS_ENV: &str = "FULLSEND_LOCAL_PROGRAMS";

/// Overrides the state directory, by default `$XDG_STATE_HOME/fullsend/local`.
pub const STATE_ENV: &str = "FULLSEND_LOCAL_STATE";

/// Runs `fullsend openshell ARGS…`; `args` are the words after `openshell`.
///
/// Exit status as OpenShell's: 0, 1 for a failure, 2 for usage; that of the command for `sandbox exec`.
#[cfg(all(target_os = "linux", feature = "local"))]
pub fn main(args: Vec<OsString>) -> ExitCode {
    linux::main(args)
}

/// Says that there is no embedded backend here.
#[cfg(not(all(target_os = "linux", feature = "local")))]
pub fn main(_args: Vec<OsString>) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "Error:   × the embedded backend works on Linux only");
    ExitCode::from(2)
}

/// Whether the embedded backend can work on this machine: bubblewrap and nsenter are there, and a trivial
/// sandbox starts. Costs one run of `bwrap`.
///
/// # Errors
/// [`crate::Code::LocalUnavailable`] with the thing to do.
#[cfg(all(target_os = "linux", feature = "local"))]
pub fn preflight() -> Result<()> {
    linux::preflight()
}

/// Says that there is no embedded backend here.
#[cfg(not(all(target_os = "linux", feature = "local")))]
pub fn preflight() -> Result<()> {
    Err(crate::Error::new(crate::Code::LocalUnavailable, "the embedded backend works on Linux only")
        .help("use an OpenShell gateway; `--dry-run` works everywhere"))
}

/// Why a sandbox could not show these directories, see [`BINDS_ENV`].
#[cfg(all(target_os = "linux", feature = "local"))]
pub fn unusable_binds(list: &str) -> Option<String> {
    linux::binds(list).err()
}

/// There is no sandbox to show anything.
#[cfg(not(all(target_os = "linux", feature = "local")))]
pub fn unusable_binds(_list: &str) -> Option<String> {
    None
}

/// What a user of the embedded backend must know; a runner prints it once per run.
pub const NOTE: &str = "the embedded backend is not a boundary equal to OpenShell: same kernel, programs of this machine \
                        instead of the image, network rules not enforced, credentials visible to the agent";
