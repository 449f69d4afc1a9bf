//! Repositories that cannot be used, and machines that lack something.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::{Case, Found, args, check, none};
use crate::support::World;

fn target(dir: impl AsRef<Path>) -> Vec<String> {
    args(&["--target-repo", dir.as_ref().to_str().unwrap()])
}

fn git(world: &World, line: &[&str]) {
    world.git(&[&["-c", "protocol.file.allow=always"], line].concat());
}

#[test]
fn repositories() {
    check(
        &[
            Case {
                name: "not a repository",
                code: "FS-REPO",
                exit: 2,
                says: &["is not in a git repository", "--target-repo"],
                make: |w| target(w.path("home")),
            },
            Case {
                name: "a repository that does not exist",
                code: "FS-REPO",
                exit: 2,
                says: &["nowhere", "--target-repo"],
                make: |w| target(w.path("nowhere")),
            },
            Case {
                name: "a file",
                code: "FS-REPO",
                exit: 2,
                says: &["state/file"],
                make: |w| target(w.write("state/file", "")),
            },
            Case {
                name: "a bare repository",
                code: "FS-REPO",
                exit: 2,
                says: &["bare repository", "git clone"],
                make: |w| {
                    git(w, &["clone", "-q", "--bare", ".", "../bare.git"]);
                    target(w.path("bare.git"))
                },
            },
        ],
        Found::BeforeRun,
    );
}

#[test]
fn kinds_of_repositories() {
    check(
        &[
            Case {
                name: "a linked worktree that was moved",
                code: "FS-REPO",
                exit: 2,
                says: &["git worktree repair"],
                make: |w| {
                    git(w, &["worktree", "add", "-q", "../linked"]);
                    std::fs::rename(w.path("linked"), w.path("moved")).unwrap();
                    std::fs::remove_dir_all(w.path("repo/.git/worktrees")).unwrap();
                    target(w.path("moved"))
                },
            },
            Case {
                name: "a git directory behind a link",
                code: "FS-UNSUPPORTED",
                exit: 2,
                says: &[".git", "link"],
                make: |w| {
                    std::fs::rename(w.path("repo/.git"), w.path("elsewhere")).unwrap();
                    symlink(w.path("elsewhere"), w.path("repo/.git")).unwrap();
                    target(w.path("repo"))
                },
            },
            Case {
                name: "a repository that is broken",
                code: "FS-REPO",
                exit: 2,
                says: &["HEAD", "git fsck"],
                make: |w| {
                    std::fs::remove_file(w.path("repo/.git/HEAD")).unwrap();
                    target(w.path("repo"))
                },
            },
            Case {
                name: "a repository with the name of a place in the sandbox",
                code: "FS-REPO",
                exit: 2,
                says: &["output", "rename"],
                make: |w| {
                    git(w, &["clone", "-q", ".", "../output"]);
                    target(w.path("output"))
                },
            },
            Case {
                name: "a repository whose name is not UTF-8",
                code: "FS-REPO",
                exit: 2,
                says: &["not UTF-8", "move"],
                make: |w| {
                    use std::os::unix::ffi::OsStrExt as _;
                    git(w, &["clone", "-q", ".", "../plain"]);
                    let odd = w.path(std::ffi::OsStr::from_bytes(b"od\xffd"));
                    std::fs::rename(w.path("plain"), &odd).unwrap();
                    symlink(&odd, w.path("link")).unwrap();
                    target(w.path("link"))
                },
            },
        ],
        Found::BeforeRun,
    );
}

/// A PATH with everything that the tests find, but without one program.
fn without(world: &mut World, program: &str) {
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for dir in std::env::split_paths(&std::env::var_os("PATH").unwrap()) {
        for name in ["bash", "sh", "env", "git", "ssh", "scp", "rsync", "openshell", "tar", "bwrap"] {
            let (from, to) = (dir.join(name), bin.join(name));
            if name != program && from.exists() && to.symlink_metadata().is_err() {
                symlink(from, to).unwrap();
            }
        }
    }
    let path = bin.to_str().unwrap().to_owned();
    world.env("PATH", path);
}

#[test]
fn missing_programs() {
    check(
        &[
            Case {
                name: "no ssh",
                code: "FS-TOOL-MISSING",
                exit: 2,
                says: &["ssh was not found", "apt-get install openssh-client"],
                make: |w| {
                    without(w, "ssh");
                    none()
                },
            },
            Case {
                name: "no scp",
                code: "FS-TOOL-MISSING",
                exit: 2,
                says: &["scp was not found", "apt-get install openssh-client"],
                make: |w| {
                    without(w, "scp");
                    none()
                },
            },
            Case {
                name: "no rsync",
                code: "FS-TOOL-MISSING",
                exit: 2,
                says: &["rsync was not found", "apt-get install rsync"],
                make: |w| {
                    without(w, "rsync");
                    none()
                },
            },
            Case {
                name: "no git",
                code: "FS-TOOL-MISSING",
                exit: 2,
                says: &["git was not found", "apt-get install git"],
                make: |w| {
                    without(w, "git");
                    none()
                },
            },
            Case {
                name: "nothing at all",
                code: "FS-TOOL-MISSING",
                exit: 2,
                // Each once, whoever misses it.
                says: &["4 problems", "git was not found", "ssh was", "scp was", "rsync was"],
                make: |w| {
                    let home = w.path("home").to_str().unwrap().to_owned();
                    w.env("PATH", home);
                    none()
                },
            },
            Case {
                name: "no openshell at the path",
                code: "FS-OPENSHELL-MISSING",
                exit: 2,
                says: &["/nonexistent/openshell", "--openshell", "--local"],
                make: |_| args(&["--openshell", "/nonexistent/openshell"]),
            },
            Case {
                name: "no openshell on PATH",
                code: "FS-OPENSHELL-MISSING",
                exit: 2,
                says: &["openshell was not found", "--local"],
                make: |w| {
                    without(w, "openshell");
                    w.env("FULLSEND_OPENSHELL", "");
                    none()
                },
            },
            Case {
                name: "an openshell that is not executable",
                code: "FS-OPENSHELL-MISSING",
                exit: 2,
                says: &["README.md"],
                make: |w| args(&["--openshell", w.path("repo/README.md").to_str().unwrap()]),
            },
        ],
        Found::BeforeRun,
    );
}

#[test]
fn places_that_cannot_be_written() {
    check(
        &[
            Case {
                name: "the output directory is below a file",
                code: "FS-IO",
                exit: 3,
                says: &["README.md", "--output-dir"],
                make: |_| args(&["--output-dir", "README.md/out"]),
            },
            Case {
                name: "the output directory cannot be made",
                code: "FS-IO",
                exit: 3,
                says: &["/proc/none", "--output-dir"],
                make: |_| args(&["--output-dir", "/proc/none/out"]),
            },
            Case {
                name: "the state directory of the embedded backend cannot be made",
                code: "FS-IO",
                exit: 3,
                says: &[
                    "cannot keep its state",
                    "/proc/nope/fullsend/local",
                    "set XDG_STATE_HOME to a directory",
                ],
                make: |w| {
                    w.env("XDG_STATE_HOME", "/proc/nope");
                    args(&["--local"])
                },
            },
        ],
        Found::BeforeRun,
    );
    check(
        &[
            Case {
                name: "the state directory cannot be made",
                code: "FS-IO",
                exit: 3,
                says: &["README.md", "XDG_STATE_HOME"],
                make: |w| {
                    let file = w.path("repo/README.md").to_str().unwrap().to_owned();
                    w.env("XDG_STATE_HOME", file);
                    none()
                },
            },
            Case {
                name: "TMPDIR does not exist",
                code: "FS-IO",
                exit: 3,
                says: &["TMPDIR"],
                make: |w| {
                    w.env("TMPDIR", "/nonexistent/tmp");
                    none()
                },
            },
        ],
        Found::BeforeCreate,
    );
}

/// As the XDG specification wants it; the checkout would change by it besides.
#[test]
fn a_relative_state_directory_is_ignored() {
    let mut world = World::new();
    world.env("XDG_STATE_HOME", "relative");
    world.agent("echo x > new");
    world.run(&[]).success();
    assert!(world.repo().join("new").exists() && !world.repo().join("relative").exists());
    assert!(world.path("home/.local/state/fullsend").is_dir());
}
