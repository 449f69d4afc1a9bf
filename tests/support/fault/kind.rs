//! What kind of call it is: the program, and what it is asked to do.

use std::ffi::OsString;

/// Commands of openshell whose second word says what is done.
const GROUPS: [&str; 6] = ["sandbox", "provider", "profile", "settings", "gateway", "policy"];

/// What a command over ssh does, by a part of its text.
const OVER_SSH: [(&str, &str); 9] = [
    ("-M", "master"),
    ("rsync --server", "rsync"),
    ("sftp", "sftp"),
    ("supervise.sh run", "agent"),
    ("supervise.sh stop", "stop"),
    ("supervise.sh sweep", "sweep"),
    ("tar -xpf", "bootstrap"),
    ("ls-files", "collect"),
    ("cat > ", "pipe"),
];

/// The kind of a call, e.g. `openshell sandbox create`, `ssh agent`, `git fetch`, `pre-script`.
pub(crate) fn kind(program: &str, args: &[OsString]) -> String {
    let args: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    match program {
        "openshell" => openshell(&args),
        "ssh" => {
            let line = args.join(" ");
            let found = OVER_SSH.iter().find(|(part, _)| line.contains(part));
            format!("ssh {}", found.map_or("other", |(_, name)| *name))
        }
        "git" => format!("git {}", git(&args)),
        "rsync" if args.iter().any(|a| a == "--version") => "rsync --version".to_owned(),
        other => other.to_owned(),
    }
}

fn openshell(args: &[String]) -> String {
    let first = args.first().map_or("", String::as_str);
    let mut kind = format!("openshell {first}");
    if let Some(second) = args.get(1).filter(|_| GROUPS.contains(&first)) {
        kind = format!("{kind} {second}");
    }
    if args.iter().any(|a| a == "--help") {
        kind.push_str(" --help");
    }
    kind
}

/// The subcommand, after the options of git itself.
fn git(args: &[String]) -> &str {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" | "-C" => {
                words.next();
            }
            option if option.starts_with('-') => {}
            command => return command,
        }
    }
    "nothing"
}
