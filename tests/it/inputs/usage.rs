//! Bad command lines.

use super::{Case, Found, args, check, none};

#[test]
#[expect(clippy::too_many_lines, reason = "a flat table")]
fn command_lines() {
    check(
        &[
            Case {
                name: "a duration that is none",
                code: "FS-USAGE",
                exit: 2,
                says: &["'soon'", "--timeout", "90s, 45m, 2h or 1h30m"],
                make: |_| args(&["--timeout", "soon"]),
            },
            Case {
                name: "a duration without end",
                code: "FS-USAGE",
                exit: 2,
                says: &["--timeout", "1s to 168h"],
                make: |_| args(&["--timeout", "400h"]),
            },
            Case {
                name: "no time at all",
                code: "FS-USAGE",
                exit: 2,
                says: &["--ready-timeout", "1s to"],
                make: |_| args(&["--ready-timeout", "0"]),
            },
            Case {
                name: "--format without --dry-run",
                code: "FS-USAGE",
                exit: 2,
                says: &["--dry-run"],
                make: |_| args(&["--format", "json"]),
            },
            Case {
                name: "a directory to show that does not exist",
                code: "FS-USAGE",
                exit: 2,
                says: &["--local-bind /nope", "does not exist"],
                make: |_| args(&["--local", "--local-bind", "/nope"]),
            },
            Case {
                name: "a directory to show that is not absolute",
                code: "FS-USAGE",
                exit: 2,
                says: &["--local-bind nope", "absolute"],
                make: |_| args(&["--local", "--local-bind", "nope"]),
            },
            Case {
                name: "a gateway of the embedded backend",
                code: "FS-USAGE",
                exit: 2,
                says: &["--gateway"],
                make: |_| args(&["--local", "--gateway", "prod"]),
            },
            Case {
                name: "an unknown option",
                code: "FS-USAGE",
                exit: 2,
                says: &["--tmeout", "'--timeout'", "fullsend run --help"],
                make: |_| args(&["--tmeout", "5"]),
            },
            Case {
                name: "an option without its value",
                code: "FS-USAGE",
                exit: 2,
                says: &["--model <MODEL>"],
                make: |_| args(&["--model"]),
            },
            Case {
                name: "two agents",
                code: "FS-USAGE",
                exit: 2,
                says: &["'other'"],
                make: |_| args(&["other"]),
            },
            Case {
                name: "a choice that is none",
                code: "FS-USAGE",
                exit: 2,
                says: &["'sometimes'", "auto, never, always"],
                make: |_| args(&["--apply", "sometimes"]),
            },
            Case {
                name: "loud and quiet",
                code: "FS-USAGE",
                exit: 2,
                says: &["--verbose", "--quiet"],
                make: |_| args(&["-v", "-q"]),
            },
            Case {
                name: "the embedded backend and another openshell",
                code: "FS-USAGE",
                exit: 2,
                says: &["--local", "--openshell"],
                make: |_| args(&["--local", "--openshell", "/bin/true"]),
            },
            Case {
                name: "a bind without the embedded backend",
                code: "FS-USAGE",
                exit: 2,
                says: &["--local-bind", "--local"],
                make: |_| args(&["--local-bind", "/opt"]),
            },
            Case {
                name: "a model that is none",
                code: "FS-VALUE",
                exit: 2,
                says: &["model"],
                make: |_| args(&["--model", "a model"]),
            },
            Case {
                name: "a duration below nothing",
                code: "FS-USAGE",
                exit: 2,
                says: &["--timeout takes no negative value, and \"-5m\" is one", "leave the `-`"],
                make: |_| args(&["--timeout", "-5m"]),
            },
            Case {
                name: "a number below nothing",
                code: "FS-USAGE",
                exit: 2,
                says: &["--max-turns takes no negative value", "fullsend run --help"],
                make: |_| args(&["--max-turns", "-1"]),
            },
            Case {
                name: "a number that is too large",
                code: "FS-USAGE",
                exit: 2,
                says: &["--max-tokens", "the number is too large"],
                make: |_| args(&["--max-tokens", "99999999999999999999999"]),
            },
            Case {
                name: "half a turn",
                code: "FS-USAGE",
                exit: 2,
                says: &["--max-turns", "it is not a whole number"],
                make: |_| args(&["--max-turns", "1.5"]),
            },
            Case {
                name: "a metrics file in a directory that is not there",
                code: "FS-USAGE",
                exit: 2,
                says: &[
                    "--metrics-file /nope/fullsend.prom",
                    "there is no directory /nope",
                    "create the directory",
                ],
                make: |_| args(&["--metrics-file", "/nope/fullsend.prom"]),
            },
            Case {
                name: "a metrics file that is a directory",
                code: "FS-USAGE",
                exit: 2,
                says: &["--metrics-file .: it is a directory", "name a file"],
                make: |_| args(&["--metrics-file", "."]),
            },
            Case {
                name: "a report directory below a file",
                code: "FS-USAGE",
                exit: 2,
                says: &["--report-dir README.md/reports", "README.md is not a directory"],
                make: |_| args(&["--report-dir", "README.md/reports"]),
            },
            Case {
                name: "a report directory that cannot be written",
                code: "FS-USAGE",
                exit: 2,
                says: &["--report-dir /proc/reports", "/proc cannot be written", "another place"],
                make: |_| args(&["--report-dir", "/proc/reports"]),
            },
            Case {
                name: "a status comment without a number",
                code: "FS-USAGE",
                exit: 2,
                says: &["--status-repo needs --status-number", "`--status-number 12`"],
                make: |_| args(&["--status-repo", "octo/shop"]),
            },
            Case {
                name: "a status comment without a repository",
                code: "FS-USAGE",
                exit: 2,
                says: &["--status-number needs --status-repo", "OWNER/NAME"],
                make: |_| args(&["--status-number", "12"]),
            },
            Case {
                name: "a gateway of the embedded backend that the environment chose",
                code: "FS-USAGE",
                exit: 2,
                says: &["--gateway means nothing to the embedded backend"],
                make: |w| {
                    w.env("FULLSEND_OPENSHELL", "local");
                    args(&["--gateway", "prod"])
                },
            },
            Case {
                name: "an image that is an option",
                code: "FS-VALUE",
                exit: 2,
                says: &["image"],
                make: |_| args(&["--image=-x"]),
            },
        ],
        Found::BeforeRun,
    );
}

#[test]
fn environment_files() {
    check(
        &[
            Case {
                name: "an environment file that does not exist",
                code: "FS-ENV-FILE",
                exit: 2,
                says: &["none.env", "does not exist"],
                make: |_| args(&["--env-file", "none.env"]),
            },
            Case {
                name: "an environment file with a line that is none",
                code: "FS-ENV-FILE",
                exit: 2,
                says: &["a.env:2:"],
                make: |w| {
                    w.write("repo/a.env", "GOOD=1\nthis is no assignment\n");
                    args(&["--env-file", "a.env"])
                },
            },
            Case {
                name: "an environment file that is a directory",
                code: "FS-ENV-FILE",
                exit: 2,
                says: &["directory"],
                make: |_| args(&["--env-file", "."]),
            },
            Case {
                name: "a bad environment file and no repository at once",
                code: "FS-ENV-FILE",
                exit: 2,
                says: &["2 problems", "none.env", "is not in a git repository"],
                make: |w| {
                    let dir = w.path("home");
                    args(&["--env-file", "none.env", "--target-repo", dir.to_str().unwrap()])
                },
            },
        ],
        Found::BeforeRun,
    );
}

/// What has no ordinary run: other commands, and arguments that are not text.
#[test]
fn other_command_lines() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let world = crate::support::World::new();
    let bytes = OsStr::from_bytes(b"a\xffgent");
    for (line, says) in [
        (vec![OsStr::new("nosuch")], "'nosuch'"),
        (vec![OsStr::new("runn"), OsStr::new("work")], "'run'"),
        (vec![OsStr::new("run")], "<AGENT>"),
        (vec![OsStr::new("run"), bytes], "UTF-8"),
        (vec![OsStr::new("run"), OsStr::new("work"), OsStr::new("--fullsend-dir"), bytes], "UTF-8"),
        (vec![OsStr::new("list"), OsStr::new("work")], "'work'"),
        (vec![OsStr::new("completions"), OsStr::new("tcsh")], "bash"),
        (["prune", "--older-than", "-1d"].map(OsStr::new).into(), "--older-than takes no negative value"),
        (["logs", "--agent", "a", "--limit", "0"].map(OsStr::new).into(), "0 is less than 1"),
        (["ps", "--openshell", "local", "--gateway", "x"].map(OsStr::new).into(), "--gateway means nothing"),
        (
            ["reap", "--openshell", "local", "--gateway", "x"].map(OsStr::new).into(),
            "--gateway means nothing",
        ),
        (
            ["doctor", "--openshell", "local", "--gateway", "x"].map(OsStr::new).into(),
            "--gateway means nothing",
        ),
    ] {
        let mut command = world.command(crate::support::fullsend(), &[], &world.repo());
        command.args(&line);
        let done = world.finish(command);
        let case = Case { name: "a command line", code: "FS-USAGE", exit: 2, says: &[], make: |_| none() };
        assert_eq!(super::complaints(&case, &done), Vec::<String>::new(), "{line:?}: {done:?}");
        assert!(done.stderr.contains(says) && done.stdout.is_empty(), "{line:?}: {done:?}");
    }
}
