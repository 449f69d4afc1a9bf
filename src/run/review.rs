//! A review: another agent, in a sandbox of its own, judges the work of this one. It is a whole run of this program
//! with the staged repository as its repository, which it may only read.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::{Cx, Note};
use super::prepare::Prepared;
use super::shown::Shown;
use super::validate::Iteration;
use crate::error::{Code, Error, Family, Result};
use crate::output_check::DEFAULT_OUTPUT;
use crate::process::{Command, Failure, Stream};
use crate::report::truncate;

/// Files by which a GitHub job is told of results.
const CI_FILES: [&str; 3] = ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"];
/// The largest verdict that is read, in bytes.
const MAX_VERDICT: u64 = 1024 * 1024;
/// How many findings are passed on.
const FINDINGS: usize = 50;
/// How much of one text of a verdict, in bytes.
const TEXT: usize = 2000;

/// What a reviewer writes to its output file `agent-result.json`. Other keys are its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the field is a key of a file that others write")]
pub(super) struct Verdict {
    /// Whether the work is good.
    pub verdict: Word,
    /// Why, in a sentence or two.
    #[serde(default)]
    pub summary: String,
    /// What has to be changed.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// The verdict itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    /// The work is good.
    Accept,
    /// It is not.
    Reject,
}

/// One thing that has to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    /// What is wrong, and what would be right.
    pub message: String,
    /// The file.
    #[serde(default)]
    pub path: Option<String>,
    /// The line in it.
    #[serde(default)]
    pub line: Option<u64>,
}

impl Verdict {
    /// The summary, else the first finding.
    pub(super) fn headline(&self) -> String {
        let first = self.findings.first().map(|f| f.message.as_str());
        let text =
            Some(self.summary.trim()).filter(|s| !s.is_empty()).or(first).unwrap_or("it gave no reason");
        truncate(text.lines().next().unwrap_or_default(), TEXT).into_owned()
    }

    /// The findings, one per line.
    pub(super) fn lines(&self) -> String {
        let mut text = String::new();
        for finding in self.findings.iter().take(FINDINGS) {
            let place = match (&finding.path, finding.line) {
                (Some(path), Some(line)) => format!("{path}:{line}: "),
                (Some(path), None) => format!("{path}: "),
                _ => String::new(),
            };
            _ = writeln!(text, "- {}", truncate(&format!("{place}{}", finding.message), TEXT));
        }
        if self.findings.len() > FINDINGS {
            _ = writeln!(text, "- and {} more", self.findings.len() - FINDINGS);
        }
        text
    }
}

/// What `run.json` says of a review.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ReviewRecord {
    /// The reviewing agent.
    pub agent: String,
    /// Its run directory, relative to the one of this run.
    pub dir: String,
    /// What it said.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Has the work of an iteration reviewed.
///
/// # Errors
/// [`Code::Review`] when the reviewer came to no verdict; the code of its run where that lies with the machine.
pub(super) async fn review(
    cx: &Cx,
    prepared: &Prepared,
    agent: &str,
    iteration: &Iteration<'_>,
) -> Result<ReviewRecord> {
    let Some(repo) = iteration.repo else {
        return Err(Error::bug("there is no staged repository to review"));
    };
    cx.phase("review", async {
        let input = iteration.tmp.join("review").join(iteration.dir.file_name().unwrap_or_default());
        hand_over(prepared, iteration, &input).await?;
        own_objects(repo, &prepared.world.repo.git_dir)?;
        let out = iteration.dir.join("review");
        let mut args: Vec<OsString> = vec!["run".into(), agent.into()];
        args.extend(prepared.world.again.iter().cloned());
        for (flag, path) in [("--target-repo", repo), ("--output-dir", &out), ("--review", &input)] {
            args.extend([flag.into(), path.as_os_str().to_owned()]);
        }
        let limit = prepared.plan.deadlines.review;
        let own = std::env::current_exe().map_err(|e| Error::io("cannot find this program", &e))?;
        let command = Command::new("review", own).args(args).deadline(limit);
        let command = prepared.world.file_env.iter().fold(command, |c, (key, value)| c.env(key, value));
        // What a job's later steps read is about the run that they started.
        let command = CI_FILES.iter().fold(command, Command::env_remove);
        run(cx, command).await?;
        let dir = newest(&out).ok_or_else(|| none(agent, "its run made no run directory"))?;
        let verdict = read(agent, &dir)?;
        let dir = dir.strip_prefix(&cx.id.dir).unwrap_or(&dir).display().to_string();
        let note = match verdict.verdict {
            Word::Accept => Note::judged(format!("{agent}: accepts"), None),
            Word::Reject => Note::judged(format!("{agent}: rejects"), Some(Code::ValidationFailed)),
        };
        Ok((ReviewRecord { agent: agent.to_owned(), dir, verdict }, note))
    })
    .await
}

/// What the reviewer gets as its input: the output, the changes, and what was asked for.
async fn hand_over(prepared: &Prepared, iteration: &Iteration<'_>, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to.join("output"))?;
    copy(&iteration.dir.join("output"), &to.join("output"))?;
    fs_err::write(to.join("prompt.txt"), prepared.plan.prompt())?;
    if let Some(import) = iteration.import.filter(|import| !import.is_unchanged()) {
        import.write_changes(to, &prepared.world.repo).await?;
    }
    Ok(())
}

/// Gives the staged repository the objects that it borrows from the checkout, as links like a local clone has: what is
/// uploaded must stand alone, and objects are never written again.
fn own_objects(staged: &Path, git_dir: &Path) -> Result<()> {
    let (from, to) = (git_dir.join("objects"), staged.join(".git/objects"));
    let alternates = to.join("info/alternates");
    if !alternates.exists() {
        return Ok(());
    }
    for entry in walkdir::WalkDir::new(&from).min_depth(1) {
        let entry = entry
            .map_err(|e| Error::new(Code::Io, format!("cannot read the objects of the checkout: {e}")))?;
        let below = entry.path().strip_prefix(&from).unwrap_or(entry.path());
        let target = to.join(below);
        if below.starts_with("info") || target.exists() {
            continue;
        }
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() && std::fs::hard_link(entry.path(), &target).is_err() {
            fs_err::copy(entry.path(), &target)?;
        }
    }
    fs_err::remove_file(alternates)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(from).min_depth(1).into_iter().flatten() {
        let target = to.join(entry.path().strip_prefix(from).unwrap_or(entry.path()));
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() {
            fs_err::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Runs it to its end and shows what it prints.
async fn run(cx: &Cx, command: Command) -> Result<()> {
    let (mut out, mut err) = (Shown::new(&cx.ui), Shown::new(&cx.ui));
    let done = command
        .stream(|stream, chunk| {
            let shown = if stream == Stream::Stdout { &mut out } else { &mut err };
            shown.bytes(chunk);
            if chunk.ends_with(b"\n") {
                shown.settle();
            }
        })
        .await;
    out.end();
    err.end();
    match done {
        Ok(_) => Ok(()),
        Err(failure @ Failure::Deadline { .. }) => Err(Error::new(Code::Review, format!("the {failure}"))
            .help("`deadlines.review` in the harness gives it more time")),
        Err(failure) => Err(failure.into()),
    }
}

fn newest(out: &Path) -> Option<PathBuf> {
    let dirs = std::fs::read_dir(out).ok()?.flatten().map(|e| e.path()).filter(|p| p.is_dir());
    dirs.max()
}

fn none(agent: &str, why: &str) -> Error {
    Error::new(Code::Review, format!("the reviewer `{agent}` came to no verdict: {why}")).help(
        "the work is neither accepted nor rejected; the reviewer's run is in iteration-N/review, and has to leave \
         `{\"verdict\": \"accept\"}` or `\"reject\"` in its agent-result.json",
    )
}

/// The verdict of a review that has ended.
fn read(agent: &str, dir: &Path) -> Result<Verdict> {
    let text = fs_err::read(dir.join("run.json")).map_err(|_| none(agent, "its run left no run.json"))?;
    let json: serde_json::Value =
        serde_json::from_slice(&text).map_err(|_| none(agent, "its run.json cannot be read"))?;
    if json["verdict"] != "success" {
        let said = json["error"]["message"].as_str().or(json["skip_reason"].as_str()).unwrap_or("no reason");
        let why = format!("{}: {said}", json["verdict"].as_str().unwrap_or("unknown"));
        let code = json["error"]["code"].as_str().and_then(|code| code.parse::<Code>().ok());
        let machine = code.filter(|c| matches!(c.family(), Family::Infrastructure | Family::User));
        let error = none(agent, &why);
        return Err(match machine {
            Some(code) => Error::new(code, error.message()).help(error.help_text()),
            None => error,
        });
    }
    let last = json["iterations"].as_array().and_then(|all| all.last());
    let number = json["validated_iteration"].as_u64().or_else(|| last?["number"].as_u64()).unwrap_or(1);
    let path = dir.join(format!("iteration-{number}")).join("output").join(DEFAULT_OUTPUT);
    let meta = std::fs::symlink_metadata(&path).map_err(|_| none(agent, "it wrote no agent-result.json"))?;
    if !meta.is_file() || meta.len() > MAX_VERDICT {
        return Err(none(agent, "its agent-result.json is no file of at most 1 MiB"));
    }
    let text = fs_err::read(&path)?;
    serde_json::from_slice(&text)
        .map_err(|e| none(agent, &format!("its agent-result.json is no verdict: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(run: &str, result: Option<&str>) -> Result<Verdict> {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("run.json"), run).unwrap();
        let output = dir.path().join("iteration-2/output");
        fs_err::create_dir_all(&output).unwrap();
        if let Some(text) = result {
            fs_err::write(output.join(DEFAULT_OUTPUT), text).unwrap();
        }
        read("r", dir.path())
    }

    const GOOD: &str =
        r#"{"verdict":"success","iterations":[{"number":1},{"number":2}],"validated_iteration":null}"#;

    #[test]
    fn a_verdict_is_read_from_the_last_iteration() {
        let text = r#"{"verdict":"reject","summary":"No tests.","findings":[{"message":"add one","path":"a.rs","line":7},{"message":"b"}],"more":1}"#;
        let verdict = judged(GOOD, Some(text)).unwrap();
        assert_eq!(verdict.verdict, Word::Reject);
        assert_eq!(verdict.headline(), "No tests.");
        assert_eq!(verdict.lines(), "- a.rs:7: add one\n- b\n");
        assert_eq!(judged(GOOD, Some(r#"{"verdict":"accept"}"#)).unwrap().verdict, Word::Accept);
    }

    #[test]
    fn what_is_no_verdict_accepts_nothing() {
        for text in
            [None, Some("{}"), Some(r#"{"verdict":"maybe"}"#), Some("accept"), Some(r#"{"verdict":true}"#)]
        {
            assert_eq!(judged(GOOD, text).unwrap_err().code(), Code::Review, "{text:?}");
        }
        let failed = r#"{"verdict":"failed","error":{"code":"FS-AGENT-FAILED","message":"m"}}"#;
        assert_eq!(judged(failed, Some(r#"{"verdict":"accept"}"#)).unwrap_err().code(), Code::Review);
        let down = r#"{"verdict":"infrastructure","error":{"code":"FS-GATEWAY","message":"down"}}"#;
        let error = judged(down, None).unwrap_err();
        assert_eq!(error.code(), Code::GatewayDown);
        assert!(error.message().contains("down"), "{error}");
    }
}
