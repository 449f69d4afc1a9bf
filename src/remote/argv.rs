//! The arguments of `ssh`, `scp` and `rsync`. Pure: a run and a dry run use the same functions.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name of the client configuration in the session's directory.
pub const CLIENT_CONFIG: &str = "ssh_config";
/// The name of the master's configuration there.
pub const MASTER_CONFIG: &str = "ssh_config.master";

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The master connection: a supervised foreground process, which no command outlives.
pub fn master(config: impl AsRef<OsStr>, alias: &str) -> Vec<OsString> {
    let mut args = words(&["-F"]);
    args.push(config.as_ref().to_owned());
    args.extend(words(&["-M", "-N", "-T", "--", alias]));
    args
}

/// A command over the master connection.
pub fn command(config: impl AsRef<OsStr>, alias: &str, script: &str) -> Vec<OsString> {
    let mut args = words(&["-F"]);
    args.push(config.as_ref().to_owned());
    args.extend(words(&["-T", alias, "--", script]));
    args
}

/// Asks the master for a port of the sandbox's loopback that leads to an address of this host.
pub fn forward(config: impl AsRef<OsStr>, alias: &str, port: u16, to: std::net::SocketAddr) -> Vec<OsString> {
    let mut args = words(&["-F"]);
    args.push(config.as_ref().to_owned());
    // The configuration clears forwardings; what comes first counts.
    args.extend(words(&["-o", "ClearAllForwardings=no", "-O", "forward", "-R"]));
    args.push(format!("127.0.0.1:{port}:{to}").into());
    args.extend(words(&["--", alias]));
    args
}

/// A file into the sandbox. `old` is the protocol before SFTP.
pub fn scp(old: bool, local: impl AsRef<OsStr>, target: impl AsRef<OsStr>) -> Vec<OsString> {
    let mut args = words(&["-q", "-F", CLIENT_CONFIG]);
    if old {
        args.push("-O".into());
    }
    args.push("--".into());
    args.push(local.as_ref().to_owned());
    args.push(target.as_ref().to_owned());
    args
}

/// What rsync does with an untrusted tree: regular files and directories only, nobody's ownership, whole files,
/// no set-id bits. With `listed` the paths come NUL-separated on standard input.
pub fn rsync_options(ssh: &Path, listed: bool, excludes: &[String], again: bool) -> Vec<OsString> {
    let mut args = words(&[
        "-a",
        "-W",
        "--no-links",
        "--no-devices",
        "--no-specials",
        "--no-owner",
        "--no-group",
        // Directories stay usable for us; set-id bits go.
        "--chmod=Du+rwx,ug-s",
        "--no-inc-recursive",
        // The remote path is no matter for a shell.
        "--protect-args",
        "--exclude=.git/hooks/",
    ]);
    args.extend(excludes.iter().map(|pattern| format!("--exclude={pattern}").into()));
    if listed {
        // A list switches recursion off, but a directory in it is meant with everything below.
        args.extend(words(&["--recursive", "--from0", "--files-from=-"]));
    }
    if again {
        // What arrived before is no basis to judge by size and time.
        args.push("--ignore-times".into());
    }
    args.push("-e".into());
    args.push(format!("{} -F {CLIENT_CONFIG}", remote_shell(ssh)).into());
    args
}

/// The program as a word that rsync, which splits at spaces and knows quotes, does not take apart.
fn remote_shell(ssh: &Path) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    ssh.to_str().filter(|path| path.chars().all(plain)).unwrap_or("ssh")
}

/// A tree out of the sandbox.
pub fn rsync(options: Vec<OsString>, source: impl AsRef<OsStr>, target: impl AsRef<OsStr>) -> Vec<OsString> {
    let mut args = options;
    args.push("--".into());
    args.push(source.as_ref().to_owned());
    args.push(target.as_ref().to_owned());
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(args: &[OsString]) -> String {
        args.iter().map(|a| a.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rsync_is_asked_for_nothing_but_files_and_directories() {
        let base = "-a -W --no-links --no-devices --no-specials --no-owner --no-group --chmod=Du+rwx,ug-s \
                    --no-inc-recursive --protect-args --exclude=.git/hooks/";
        assert_eq!(
            text(&rsync_options(Path::new("/usr/bin/ssh"), false, &[], false)),
            format!("{base} -e /usr/bin/ssh -F ssh_config")
        );
        assert_eq!(
            text(&rsync_options(Path::new("/my ssh"), true, &["/node_modules/".to_owned()], true)),
            format!(
                "{base} --exclude=/node_modules/ --recursive --from0 --files-from=- --ignore-times -e ssh -F ssh_config"
            )
        );
    }

    #[test]
    fn no_word_of_a_path_or_script_can_be_an_option() {
        assert_eq!(text(&command("c", "h", "-x; y")), "-F c -T h -- -x; y");
        assert_eq!(text(&scp(true, "-local", "h:/-remote")), "-q -F ssh_config -O -- -local h:/-remote");
    }
}
