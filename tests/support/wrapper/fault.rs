//! Faults on demand: `COMMAND:K:KIND[:stdout=TEXT][:stderr=TEXT]`.
//!
//! `COMMAND` is the words of the subcommand (`sandbox create`), `K` the call that is struck (1 is the first), `*`
//! all, or `K+` from there on. In the texts `\n` is a newline. Kinds:
//!
//! | kind | what happens |
//! |---|---|
//! | `exit=N` | nothing is done; exit status N |
//! | `hang` | nothing is done, for ever |
//! | `slow=MS` | the call is made MS milliseconds later |
//! | `garbage` | nothing is done; bytes that are neither text nor JSON, status 0 |
//! | `kill` | the process ends by SIGKILL |
//!
//! With `then-` in front (`then-exit=1`, `then-hang`, `then-kill`) the call is made first.

use std::io::{Error, ErrorKind, Write as _};
use std::time::Duration;

use crate::target::{say_err, say_out};

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Exit(i32),
    Hang,
    Slow(u64),
    Garbage,
    Kill,
}

/// A fault that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Whether the call is made first.
    pub(crate) after: bool,
    kind: Kind,
    stdout: String,
    stderr: String,
}

/// The fault that the environment has for this call, after the earlier ones.
pub(crate) fn due(argv: &[String], earlier: &[Vec<String>]) -> std::io::Result<Option<Fault>> {
    let Ok(specs) = std::env::var("FULLSEND_WRAP_FAULT") else { return Ok(None) };
    for spec in specs.split(';').filter(|s| !s.trim().is_empty()) {
        let bad = || Error::new(ErrorKind::InvalidInput, format!("bad fault {spec:?}"));
        let (head, stderr) = spec.split_once(":stderr=").unwrap_or((spec, ""));
        let (head, stdout) = head.split_once(":stdout=").unwrap_or((head, ""));
        let mut parts = head.split(':');
        let (Some(command), Some(which), Some(kind)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad());
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        let nth = earlier.iter().filter(|call| matches(call, &words)).count() + 1;
        if !matches(argv, &words) || !strikes(which, nth).ok_or_else(bad)? {
            continue;
        }
        let (after, kind) = match kind.strip_prefix("then-") {
            Some(kind) => (true, kind),
            None => (false, kind),
        };
        let text = |t: &str| t.replace("\\n", "\n");
        let kind = parse_kind(kind).ok_or_else(bad)?;
        return Ok(Some(Fault { after, kind, stdout: text(stdout), stderr: text(stderr) }));
    }
    Ok(None)
}

/// Whether the words of the subcommand are these; options before them are skipped.
fn matches(argv: &[String], words: &[&str]) -> bool {
    let mut rest = argv;
    while let [flag, tail @ ..] = rest
        && flag.starts_with('-')
        && words.first().is_none_or(|w| w != flag)
    {
        let takes_value = ["-g", "--gateway", "--workspace", "--color"].contains(&flag.as_str());
        rest = if takes_value { tail.get(1..).unwrap_or_default() } else { tail };
    }
    words.iter().enumerate().all(|(at, word)| rest.get(at).is_some_and(|a| a == word))
}

fn strikes(which: &str, nth: usize) -> Option<bool> {
    if which == "*" {
        return Some(true);
    }
    match which.strip_suffix('+') {
        Some(from) => from.parse::<usize>().ok().map(|from| nth >= from),
        None => which.parse::<usize>().ok().map(|only| nth == only),
    }
}

fn parse_kind(kind: &str) -> Option<Kind> {
    match kind.split_once('=') {
        None => match kind {
            "hang" => Some(Kind::Hang),
            "garbage" => Some(Kind::Garbage),
            "kill" => Some(Kind::Kill),
            _ => None,
        },
        Some(("exit", n)) => n.parse().ok().map(Kind::Exit),
        Some(("slow", n)) => n.parse().ok().map(Kind::Slow),
        Some(_) => None,
    }
}

impl Fault {
    /// Does it. The exit status, or `None` when the call is still to be made.
    pub(crate) fn strike(&self) -> std::io::Result<Option<i32>> {
        say_out(&self.stdout);
        say_err(&self.stderr);
        match self.kind {
            Kind::Exit(code) => Ok(Some(code)),
            Kind::Hang => loop {
                std::thread::sleep(Duration::from_hours(1));
            },
            Kind::Slow(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(None)
            }
            Kind::Garbage => {
                std::io::stdout().write_all(b"\x00\xff\xfe{\"sandboxes\": [\x1b[31m\xc3(\n")?;
                Ok(Some(0))
            }
            Kind::Kill => {
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
                Ok(Some(137))
            }
        }
    }
}
