//! What has to hold whatever was broken.

use std::time::Duration;

use super::Combination;
use super::stage::{Outcome, RESULT, SAID, Stage};

/// How long the guard may need after the run has ended: it holds an absence for a while.
const GUARD: Duration = Duration::from_secs(40);
/// Kinds that come after the results are on the host.
const AFTER_RESULTS: [&str; 4] =
    ["openshell logs", "openshell sandbox delete", "openshell provider delete", "post-script"];
/// Kinds during or after which the agent has spoken.
const AFTER_AGENT: [&str; 5] = ["ssh collect", "rsync", "ssh rsync", "check-script", "git fetch"];

/// Kinds that bring results to the host.
const COLLECTING: [&str; 3] = ["ssh collect", "rsync", "ssh rsync"];

/// Everything that is wrong with a run.
pub(super) fn complaints(stage: &Stage, combination: &Combination, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let code = outcome.run.done.code;
    let killed = combination.what == "runner=KILL" && outcome.struck;
    if code == -1000 {
        wrong.push("it did not end".to_owned());
    } else if killed {
        if code != -9 {
            wrong.push("it was not killed".to_owned());
        }
    } else if code < 0 {
        wrong.push(format!("it was ended by signal {}", -code));
    } else {
        wrong.extend(status(combination, outcome));
        if code == 0 {
            wrong.extend(success(stage, outcome));
        } else {
            wrong.extend(failure(combination, outcome));
        }
    }
    wrong.extend(kept(combination, outcome));
    wrong.extend(after_all(stage, outcome));
    wrong
}

/// What holds after every run: nothing is left, and the checkout is whole.
pub(super) fn after_all(stage: &Stage, outcome: &Outcome) -> Vec<String> {
    let mut wrong: Vec<_> = stage.leftovers(GUARD).into_iter().map(|left| format!("left: {left}")).collect();
    wrong.extend(checkout(stage, outcome));
    wrong
}

/// The exit status is one of the documented, belongs to the code of the error, and fits what was done.
fn status(combination: &Combination, outcome: &Outcome) -> Vec<String> {
    let code = outcome.run.done.code;
    let mut wrong = Vec::new();
    let may = match combination.what.as_str() {
        _ if !outcome.struck => vec![0],
        "runner=INT" => vec![130],
        "runner=TERM" => vec![143],
        "runner=HUP" => vec![129],
        "slow=300" => vec![0],
        // It said that it was done and had not been: the next call meets it as the environment's fault.
        "garbage" if combination.kind == "openshell profile import" => vec![0, 2, 3],
        // The sandbox still holds the results: collecting is tried again over a new connection.
        "exit=255" | "signal=KILL" | "signal=TERM" if COLLECTING.contains(&combination.kind.as_str()) => {
            vec![0]
        }
        _ => expected(&combination.kind),
    };
    if !may.contains(&code) {
        wrong.push(format!("exit status {code}, not one of {may:?}"));
    }
    let json = &outcome.run.json;
    if !json.is_null() && json["exit_code"] != code {
        wrong.push(format!("run.json says exit {}", json["exit_code"]));
    }
    wrong
}

/// What a broken call of a kind may end in.
fn expected(kind: &str) -> Vec<i32> {
    match kind {
        "pre-script" | "post-script" => vec![0, 5, 3],
        // The output does not validate, or the script could not be run.
        "check-script" => vec![0, 1, 3],
        // What is no usable openshell is the environment's fault.
        "openshell --version" | "openshell sandbox create --help" => vec![0, 2, 3],
        // The agent may have reached its deadline before its connection came back.
        "ssh agent" => vec![0, 1, 3, 4, 124],
        // Before a run a repository that git cannot read is the user's.
        kind if kind.starts_with("git") => vec![0, 2, 3, 4],
        // What comes back from the sandbox garbled may be refused as an attack.
        _ => vec![0, 3, 4],
    }
}

/// A success has everything.
pub(super) fn success(stage: &Stage, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    let json = &outcome.run.json;
    if json["verdict"] != "success" || json["applied"] != true || json["validated_iteration"].is_null() {
        wrong.push("run.json is not that of a success".to_owned());
    }
    for (path, text) in [("repo/made", "work\n"), ("repo/deep/made", "more\n")] {
        if std::fs::read_to_string(stage.path(path)).ok().as_deref() != Some(text) {
            wrong.push(format!("success, but {path} is not what the agent made"));
        }
    }
    let last = json["iterations"].as_array().map_or(0, Vec::len);
    if file(outcome, &format!("iteration-{last}/output/agent-result.json")).as_deref() != Some(RESULT) {
        wrong.push("success without the output".to_owned());
    }
    wrong
}

/// A failure says which call, why, and what to do.
fn failure(combination: &Combination, outcome: &Outcome) -> Vec<String> {
    let stderr = &outcome.run.done.stderr;
    let mut wrong = Vec::new();
    if !stderr.contains("error[FS-") || stderr.contains("error[FS-BUG]") {
        wrong.push("no error, or a bug".to_owned());
    }
    if stderr.matches("error[FS-").count() > 1 {
        wrong.push("more than one report".to_owned());
    }
    if !stderr.contains("help: ") {
        wrong.push("no help".to_owned());
    }
    if stderr.contains("panicked") {
        wrong.push("a panic".to_owned());
    }
    let flat = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    if !combination.what.starts_with("runner=") && !names(&combination.kind, &flat) {
        wrong.push("the error does not name the call".to_owned());
    }
    wrong
}

/// Whether an error is about a kind of call.
fn names(kind: &str, text: &str) -> bool {
    let words: &[&str] = match kind {
        "openshell --version" | "openshell sandbox create --help" => &["openshell"],
        "openshell ssh-proxy" | "ssh master" => &["connection", "ssh", "scp", "rsync"],
        // A call that only pretended to work shows in what is missing after it.
        "openshell sandbox get" | "openshell sandbox create" => &["sandbox"],
        "openshell profile import" | "openshell provider profile" => &["profile"],
        "openshell provider create" => &["provider"],
        "ssh agent" => &["agent"],
        "ssh bootstrap" => &["bootstrap", "sandbox"],
        "ssh collect" => &["collect", "listing", "results"],
        "rsync" | "ssh rsync" => &["rsync", "results"],
        "scp" | "ssh sftp" => &["scp", "sent", "archive"],
        "check-script" => &["validation", "valid"],
        "pre-script" | "post-script" => &[kind],
        kind if kind.starts_with("git") => &["git", "repository", "secret", "commit", "archive"],
        kind => &[kind],
    };
    words.iter().any(|word| text.contains(word))
}

/// What was on the host before the fault is in the run directory.
fn kept(combination: &Combination, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    if !outcome.struck {
        return wrong;
    }
    let kind = combination.kind.as_str();
    if AFTER_RESULTS.contains(&kind)
        && outcome.calls.iter().any(|c| c == "check-script")
        && file(outcome, "iteration-1/output/agent-result.json").as_deref() != Some(RESULT)
    {
        wrong.push("the results are not in the run directory".to_owned());
    }
    if kind == "check-script" && outcome.run.done.code > 0 && file(outcome, "changes.patch").is_none() {
        wrong.push("the agent's changes are not in the run directory".to_owned());
    }
    if AFTER_RESULTS.contains(&kind) || AFTER_AGENT.contains(&kind) {
        let said = file(outcome, "iteration-1/stream.jsonl").unwrap_or_default();
        let spoke = outcome.calls.iter().any(|c| c == "ssh agent");
        if spoke && !said.contains(SAID) {
            wrong.push("what the agent said is not in the run directory".to_owned());
        }
    }
    wrong
}

/// The checkout has all of the agent's work or nothing of it, and git can read it.
fn checkout(stage: &Stage, outcome: &Outcome) -> Vec<String> {
    let have = ["made", "deep/made"].map(|path| stage.world.repo().join(path).exists());
    let mut wrong = Vec::new();
    if have[0] != have[1] {
        wrong.push("the checkout has half of the work".to_owned());
    }
    if have[0] && outcome.run.done.code > 0 && outcome.run.json["applied"] == false {
        wrong.push("a failed run changed the checkout and does not say so".to_owned());
    }
    let git = stage.world.finish(stage.plain_git(&["fsck", "--no-dangling"]));
    if git.code != 0 {
        wrong.push(format!("the checkout is broken: {}", git.stderr));
    }
    wrong
}

fn file(outcome: &Outcome, below: &str) -> Option<String> {
    let bytes = std::fs::read(outcome.run.dir.as_ref()?.join(below)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
