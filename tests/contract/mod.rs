//! What a runner expects of the `openshell` command line, written down once.
//!
//! The expectations are data ([`expectations::ALL`]); [`run`] checks them against any executable. Continuous
//! integration runs them against every personality of the wrapper. By hand they run against a real release with
//! a gateway:
//!
//! ```text
//! FULLSEND_CONTRACT_OPENSHELL=/path/to/openshell FULLSEND_CONTRACT_IMAGE=registry/image:tag \
//!     cargo test --test it contract_runs::by_hand -- --nocapture
//! ```
//!
//! Each expectation says whether it was seen on a real release, and on which, or only read.

pub(crate) mod expectations;
mod steps;

use std::ffi::OsString;
use std::path::Path;

pub(crate) use steps::Workshop;

/// A generation of the command line, in order of age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Personality {
    /// 0.0.83.
    V0_0_83,
    /// 0.0.110.
    V0_0_110,
    /// 0.0.111 to 0.0.116.
    V0_0_116,
    /// 0.1.x.
    V0_1,
}

impl Personality {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::V0_0_83, Self::V0_0_110, Self::V0_0_116, Self::V0_1];

    /// What the wrapper calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V0_0_83 => "0.0.83",
            Self::V0_0_110 => "0.0.110",
            Self::V0_0_116 => "0.0.116",
            Self::V0_1 => "0.1.10",
        }
    }

    /// The generation of a version as `--version` prints it (`openshell 0.0.112-dev.7+g2f7fb6559`).
    pub(crate) fn of_version(text: &str) -> Self {
        let numbers: Vec<u32> = text
            .trim_start_matches("openshell ")
            .split(['.', '-', '+', '\n'])
            .map_while(|part| part.parse().ok())
            .collect();
        match numbers[..] {
            [0, 0, patch, ..] if patch < 92 => Self::V0_0_83,
            [0, 0, patch, ..] if patch < 111 => Self::V0_0_110,
            [0, 0, ..] => Self::V0_0_116,
            _ => Self::V0_1,
        }
    }
}

/// How an expectation is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Seen on real gateways of these releases (`HEAD` is 0.0.111 and seven commits).
    Seen(&'static str),
    /// Taken from sources or release notes; never seen.
    Read,
}

/// One call, or one ssh command, and what is expected of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// What is called.
    pub(crate) call: Call,
    /// The exit status.
    pub(crate) code: i32,
    /// What holds for standard output and error.
    pub(crate) expect: &'static [Expect],
}

/// What is called. In all words `{N}` is the sandbox, `{P}` the provider, `{T}` the profile, `{D}` a directory
/// with the files of the workshop; `{KEEP}` stands for the flags that make a lasting sandbox in this generation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// `openshell` with these words, separated by blanks.
    Cli(&'static str),
    /// The same, with variables.
    CliEnv(&'static str, &'static [(&'static str, &'static str)]),
    /// A command through ssh, with the configuration that `ssh-config` prints.
    Ssh(&'static str),
    /// `scp` of the workshop's file to this path and back; both must be equal.
    ScpRoundTrip(&'static str),
    /// `list -o json` is asked until the sandbox has this phase.
    Phase(&'static str),
    /// The same until it is not there any more.
    Gone,
}

/// What holds for the output. Text is compared after escapes and the frame of reports are taken out and blanks
/// are collapsed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// Standard output has this text.
    Out(&'static str),
    /// Standard output does not have this text.
    NotOut(&'static str),
    /// Standard error has this text.
    Err(&'static str),
    /// Standard output is JSON of this shape.
    Json(Shape),
}

/// The outer shape of JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// An array.
    Array,
    /// An object that has this array and `next_page_token`.
    Page(&'static str),
    /// An object.
    Object,
}

/// A sequence of steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expectation {
    /// What is expected, as a sentence.
    pub(crate) name: &'static str,
    /// The first and the last generation that it is expected of.
    pub(crate) on: (Personality, Personality),
    /// How it is known.
    pub(crate) known: Known,
    /// The calls, in order. What they leave is removed.
    pub(crate) steps: &'static [Step],
}

/// What became of an expectation.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The expectation.
    pub(crate) name: &'static str,
    /// How it is known.
    pub(crate) known: Known,
    /// What was different.
    pub(crate) result: Result<(), String>,
}

/// Checks every expectation of a generation against an executable, called with these variables.
pub(crate) fn run(exe: &Path, personality: Personality, env: &[(OsString, OsString)]) -> Vec<Outcome> {
    expectations::ALL
        .iter()
        .filter(|e| (e.on.0..=e.on.1).contains(&personality))
        .enumerate()
        .map(|(at, expectation)| {
            let mut workshop = Workshop::new(exe, personality, env, at);
            let result = expectation.steps.iter().try_for_each(|step| workshop.check(step));
            workshop.tidy();
            Outcome { name: expectation.name, known: expectation.known, result }
        })
        .collect()
}
