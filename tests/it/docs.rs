//! Every console block of README.md and docs/ is executed, in the order of its page, in a copy of the project.
//!
//! A block is one whose language is `sh` or `console`. Both run in bash with `-eu -o pipefail`, in one directory per
//! page, so that a later block finds what an earlier one made; `fullsend` is the binary under test, and the embedded
//! backend is the OpenShell at hand. In a `console` block the lines after `$ ` are commands, the others are what they
//! print: `…` stands for anything within a line, a line of `…` alone for any lines.
//!
//! After the language may stand `norun=REASON` (one of [`REASONS`]; such blocks are counted and named), or `exit=N`.
//! What a reader has and a copy of the project has not is made by `<!-- test:` … `-->`, which does not show.

mod blocks;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{Block, Kind, matches, parse};

use crate::stub::not_run;
use crate::support::{World, fullsend};

/// Why a block is not executed here.
const REASONS: [&str; 8] = [
    "checked-elsewhere", // a check of its own runs it
    "installs",          // it changes the machine
    "needs-root",
    "needs-openshell", // a gateway, or an image
    "needs-key",
    "needs-network",
    "needs-forge", // GitHub or GitLab
    "runs-forever",
];
/// Which blocks are what the reader has to fill in.
const OPEN: &str = "placeholder";
/// How long a page may take, in seconds; ends only what hangs.
const LIMIT: &str = "300";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README.md and the pages of docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    for dir in ["docs/guide", "docs/reference", "docs/design"] {
        for entry in std::fs::read_dir(root().join(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "md") {
                pages.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// A copy of the project as it is now, with what git does not ignore, as a repository of its own.
fn copy(world: &World) -> PathBuf {
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(list.status.success(), "the tests of the documentation need a git checkout");
    let to = world.path("project");
    for name in list.stdout.split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let name = std::str::from_utf8(name).unwrap();
        let from = root().join(name);
        // A file may be deleted and not yet committed.
        if !from.is_file() || name.starts_with("tests/") || name.starts_with("src/") {
            continue;
        }
        std::fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
        std::fs::copy(&from, to.join(name)).unwrap();
    }
    let made = world.finish(world.command(
        "bash",
        &["-euc", "git init -q -b main; git config user.name T; git config user.email t@example.com; git add -A; git commit -qm Begin"],
        &to,
    ));
    assert_eq!(made.code, 0, "{made:?}");
    to
}

/// The script of a page: its blocks, each after a line that says which.
fn script(page: &[Block]) -> String {
    let mut script = String::from("set -eu -o pipefail\n");
    for (at, block) in page.iter().enumerate().filter(|(_, b)| b.reason.is_none()) {
        let _ = writeln!(script, "echo '@@{at}'");
        let text = block.commands();
        match block.exit {
            0 => script += &text,
            n => {
                let _ = write!(
                    script,
                    "set +e\n( set -e\n{text})\ncode=$?\nset -e\n\
                     [ $code = {n} ] || {{ echo \"exit $code instead of {n}\"; exit 99; }}\n"
                );
            }
        }
    }
    script + "echo '@@end'\n"
}

/// Runs a page; what is wrong with it.
fn run(page: &Path, blocks: &[Block]) -> Vec<String> {
    let mut world = World::new();
    let path = std::env::var("PATH").unwrap();
    world.env("PATH", format!("{}:{path}", fullsend().parent().unwrap().display()));
    world.env("FULLSEND_OPENSHELL", "local");
    let project = copy(&world);
    let file = world.write("page.sh", script(blocks));
    let done = world.finish(world.command(
        "timeout",
        &[LIMIT, "bash", "-c", "exec bash \"$0\" 2>&1", file.to_str().unwrap()],
        &project,
    ));
    // What each block printed.
    let mut printed: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut ended = false;
    for line in done.stdout.lines() {
        match line.strip_prefix("@@") {
            Some("end") => ended = true,
            Some(at) => printed.push((at.parse().unwrap(), Vec::new())),
            None => printed.last_mut().into_iter().for_each(|(_, lines)| lines.push(line)),
        }
    }
    let mut wrong = Vec::new();
    if !ended {
        let (at, lines) = printed.last().unwrap();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n");
        wrong.push(format!("{}:{}: exit {}\n{tail}", page.display(), blocks[*at].line, done.code));
    }
    for (at, lines) in &printed {
        let Kind::Console(expected) = &blocks[*at].kind else { continue };
        if !matches(expected, lines) {
            let (want, got) = (expected.join("\n"), lines.join("\n"));
            wrong.push(format!(
                "{}:{}: shows\n{want}\n--- and there is\n{got}",
                page.display(),
                blocks[*at].line
            ));
        }
    }
    wrong
}

#[test]
fn every_console_block_of_the_documentation_runs() {
    let (mut ran, mut left, mut wrong) = (0, 0, Vec::new());
    for page in pages() {
        let blocks = parse(&std::fs::read_to_string(root().join(&page)).unwrap());
        for block in &blocks {
            let at = format!("{}:{}", page.display(), block.line);
            match block.reason.as_deref() {
                None => ran += usize::from(block.kind != Kind::Setup),
                Some(reason) if REASONS.contains(&reason) || reason == OPEN => {
                    left += 1;
                    not_run(&at, reason);
                }
                Some(other) => {
                    wrong.push(format!("{at}: {other:?} is no reason; there are {REASONS:?} and {OPEN:?}"));
                }
            }
        }
        if blocks.iter().any(|b| b.reason.is_none() && b.kind != Kind::Setup) {
            wrong.extend(run(&page, &blocks));
        }
    }
    not_run("documentation", &format!("{left} blocks, while {ran} were executed"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    // The guides of images, mirrors and clusters need what a test has not; the others have to run.
    assert!(ran >= 20 && left <= 30, "{ran} blocks were executed, {left} were not");
}

#[test]
fn a_page_that_is_wrong_is_found() {
    let page = |text: &str| run(Path::new("x.md"), &parse(text));
    let nothing: [String; 0] = [];
    assert_eq!(page("```sh\necho hi >made\n```\n\n```console\n$ cat made\nhi\n```\n"), nothing);
    assert_eq!(page("```sh exit=2\nfullsend run nobody --dry-run\n```\n"), nothing);
    for (text, words) in [
        ("one\n```sh\nfalse\ntrue\n```\n", "x.md:2: exit 1"),
        ("```console\n$ echo one\ntwo\n```\n", "and there is\none"),
        ("```sh\nfullsend run --no-such-option\n```\n", "FS-USAGE"),
        ("```sh exit=3\ntrue\n```\n", "exit 0 instead of 3"),
    ] {
        let wrong = page(text);
        assert!(wrong.len() == 1 && wrong[0].contains(words), "{text}: {wrong:?}");
    }
}
