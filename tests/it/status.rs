//! Status comments, against a stand-in for the APIs of GitHub and GitLab.

mod forge;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use forge::{Fault, Forge, SELF, TOKEN};
use serde_json::Value;

use crate::support::{Done, Run, World, files_below, fullsend};

/// A world in a job of GitHub, on issue 7 of `o/r`.
struct Job {
    world: World,
    forge: Forge,
}

const ON: [&str; 4] = ["--status-repo", "o/r", "--status-number", "7"];
const URL: &str = "https://ci.example/o/r/actions/runs/900";

impl Job {
    fn new() -> Self {
        let (mut world, forge) = (World::new(), Forge::start());
        world.env("GITHUB_API_URL", forge.url());
        world.env("GH_TOKEN", TOKEN);
        world.env("GITHUB_RUN_ID", "900");
        world.env("GITHUB_JOB", "agent");
        world.env("GITHUB_SHA", "0123456789abcdef0123456789abcdef01234567");
        Self { world, forge }
    }

    fn run(&self, more: &[&str]) -> Run {
        self.world.run(&[&ON[..], &["--forge", "github", "--run-url", URL], more].concat())
    }

    fn reconcile(&self, more: &[&str]) -> (Done, Value) {
        let args = [&["reconcile-status", "--forge", "github", "--format", "json"], more].concat();
        let done = self.world.fullsend(&args);
        let json = serde_json::from_str(&done.stdout).unwrap_or(Value::Null);
        (done, json)
    }

    /// The only comment.
    #[track_caller]
    fn comment(&self) -> String {
        let mut bodies = self.forge.bodies();
        assert_eq!(bodies.len(), 1, "{bodies:#?}");
        bodies.remove(0)
    }

    fn start(&self, more: &[&str]) -> Child {
        let args = self.world.run_args(&[&ON[..], &["--forge", "github", "--run-url", URL], more].concat());
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let mut command = self.world.command(fullsend(), &args, &self.world.repo());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Kills a run as the kernel would, and waits until its guard has cleaned up.
    fn kill(&self, mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
        self.cleaned_up();
    }

    fn cleaned_up(&self) {
        let runs = self.world.path("state/fullsend/runs");
        until("cleaning up", || std::fs::read_dir(&runs).is_ok_and(|mut d| d.next().is_none()));
    }

    fn records(&self) -> usize {
        std::fs::read_dir(self.world.path("state/fullsend/status")).map_or(0, Iterator::count)
    }
}

/// Waits for something that another process does; the limit only ends a test that would hang.
#[track_caller]
fn until(what: &str, fulfilled: impl Fn() -> bool) {
    let begun = Instant::now();
    while !fulfilled() {
        assert!(begun.elapsed() < Duration::from_mins(2), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(30));
    }
}

const WORKING: &str =
    "touch $FULLSEND_OUTPUT_DIR/started; until [ -e $FULLSEND_OUTPUT_DIR/go ]; do sleep 0.1; done";

#[test]
fn a_comment_is_written_and_edited_in_place() {
    let job = Job::new();
    let run = job.run(&[]).success();
    let body = job.comment();
    assert!(
        body.contains("✅ `work` succeeded · took ") && body.contains(&format!("[log]({URL})")),
        "{body}"
    );
    assert!(body.contains("commit `0123456`") && body.contains("state=ended"), "{body}");
    assert_eq!((job.forge.count("POST"), job.forge.count("PATCH")), (1, 1));
    let first = job.forge.state().requests.iter().find(|r| r.method == "POST").unwrap().clone();
    assert!(
        first.body.contains("`work` is at work") && first.path == "/repos/o/r/issues/7/comments",
        "{first:?}"
    );
    assert_eq!(job.records(), 0, "nothing is left to reconcile");
    assert_eq!(run.json["status_comment"], serde_json::json!({"written": true, "error": null}));
    assert_eq!(run.json["schema"], "fullsend.run/1");
    job.world.assert_clean();
}

#[test]
fn each_ending_has_its_words() {
    let job = Job::new();
    job.world.agent("exit 3");
    job.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert!(job.comment().contains("❌ `work` failed"), "{}", job.comment());
    assert!(job.comment().contains("\n\n`FS-AGENT-FAILED: "), "{}", job.comment());
    job.world.script("h/scripts/pre.sh", "echo 'ask @octocat about #12'; exit 78");
    job.world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\n");
    job.run(&[]).success();
    let body = job.comment();
    assert!(body.contains("⏭️ `work` had nothing to do") && body.contains("ask @\u{200b}octocat"), "{body}");
    // A harness that cannot be loaded is told, too; nothing of it is quoted.
    job.world.harness("agent: agents/work\nruntime: script\nrequired_env: [NOT_SET_ANYWHERE]\n");
    job.run(&[]).failure("FS-ENV-UNSET", 2);
    let body = job.comment();
    assert!(
        body.contains("❌ `work` could not start") && body.contains("FS-ENV-UNSET: A variable"),
        "{body}"
    );
    assert_eq!(job.forge.count("POST"), 1, "the attempts share one comment");
}

#[test]
fn two_agents_in_one_workflow_have_a_comment_each() {
    let job = Job::new();
    job.world.script("h/agents/other", "exit 4");
    job.world.write("h/harness/other.yaml", "agent: agents/other\nruntime: script\n");
    job.run(&[]).success();
    let args = job.world.run_args(&[&ON[..], &["--forge", "github"]].concat());
    let args: Vec<_> = args.iter().map(|a| if a == "work" { "other" } else { a.as_str() }).collect();
    assert_eq!(job.world.fullsend(&args).code, 1);
    let bodies = job.forge.bodies();
    assert_eq!(bodies.len(), 2, "{bodies:?}");
    assert!(bodies[0].contains("`work` succeeded") && bodies[1].contains("`other` failed"), "{bodies:?}");
}

#[test]
fn the_same_agent_in_two_places_does_not_collide() {
    let mut job = Job::new();
    job.world.agent(WORKING);
    // Two runs of the same job and attempt at the same time, as two entries of a matrix.
    let one = job.start(&[]);
    until("the first comment", || job.forge.bodies().len() == 1);
    let two = job.start(&[]);
    until("the second comment", || job.forge.bodies().len() == 2);
    for mut child in [one, two] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    job.cleaned_up();
    // A later attempt at the job takes over a comment of the killed one instead of adding a third.
    job.world.agent("true");
    job.world.env("GITHUB_RUN_ATTEMPT", "2");
    job.run(&[]).success();
    assert_eq!(job.forge.bodies().len(), 2);
    // Another workflow run has its own.
    job.world.env("GITHUB_RUN_ID", "901");
    job.run(&[]).success();
    assert_eq!(job.forge.bodies().len(), 3);
}

#[test]
fn a_killed_run_is_reconciled_and_a_live_one_left_alone() {
    let job = Job::new();
    job.world.agent(WORKING);
    let child = job.start(&[]);
    until("the comment", || job.forge.bodies().len() == 1);
    until("the record", || {
        let files = files_below(&job.world.path("state/fullsend/status"));
        files.iter().any(|(_, text)| String::from_utf8_lossy(text).contains("\"comment\": 1"))
    });
    // While it lives, not even the claim that its CI run is over ends it.
    let (done, json) = job.reconcile(&[&ON[..], &["--run-url", URL]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(json["comments"][0]["ended"], false, "{json}");
    assert!(job.comment().contains("is at work"));
    job.kill(child);
    assert!(job.comment().contains("is at work"), "nobody could write the end");
    let (_, json) = job.reconcile(&["--dry-run"]);
    assert_eq!(json["comments"][0]["ended"], true, "{json}");
    assert!(job.comment().contains("is at work"), "a dry run changes nothing");
    let (done, json) = job.reconcile(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(json["comments"][0]["why"], "its process has ended", "{json}");
    let body = job.comment();
    assert!(body.contains("⚠️ `work` ended without a report · started "), "{body}");
    assert!(body.contains(&format!("[log]({URL})")) && body.contains("state=ended"), "{body}");
    assert_eq!(job.records(), 0);
    // Again, and over the whole thread: nothing is left to do.
    let edits = job.forge.count("PATCH");
    let (done, json) = job.reconcile(&[&ON[..], &["--run-url", URL]].concat());
    assert_eq!((done.code, json["comments"].as_array().map(Vec::len)), (0, Some(0)), "{done:?}");
    assert_eq!(job.forge.count("PATCH"), edits);
}

#[test]
fn another_host_reconciles_by_url_age_and_time() {
    let job = Job::new();
    job.world.agent(WORKING);
    let child = job.start(&[]);
    until("the comment", || job.forge.bodies().len() == 1);
    job.kill(child);
    // This host knows nothing of it.
    std::fs::remove_dir_all(job.world.path("state/fullsend/status")).unwrap();
    let waiting = job.comment();
    let see = |more: &[&str]| job.reconcile(&[&ON[..], more].concat()).1["comments"][0].clone();
    assert_eq!(see(&[])["ended"], false, "its time is not over");
    assert_eq!(see(&["--run-url", "https://ci.example/other"])["ended"], false);
    assert_eq!(see(&["--older-than", "52w", "--dry-run"])["ended"], false);
    assert_eq!(see(&["--older-than", "1h", "--dry-run"])["ended"], true);
    assert_eq!(see(&["--run-url", URL, "--dry-run"])["ended"], true);
    assert_eq!(job.comment(), waiting);
    // What a stranger wrote with a copied marker is not touched, and does not end the search.
    let stranger = job.forge.add("o/r#7", "mallory", &waiting);
    assert_eq!(job.reconcile(&[&ON[..], &["--run-url", URL]].concat()).0.code, 0);
    let comments = job.forge.comments();
    assert!(comments[0].body.contains("ended without a report"), "{comments:?}");
    assert!(comments.iter().find(|c| c.id == stranger).unwrap().body == waiting);
}

#[test]
fn a_marker_of_a_stranger_is_not_taken_over() {
    let job = Job::new();
    job.run(&[]).success();
    let mine = job.forge.state().comments.remove(0);
    job.forge.add("o/r#7", "mallory", &mine.body);
    for n in 0..250 {
        job.forge.add("o/r#7", "mallory", &format!("noise {n}"));
    }
    job.run(&[]).success();
    let comments = job.forge.comments();
    assert_eq!(comments.iter().filter(|c| c.author == SELF).count(), 1, "it has a new one of its own");
    assert_eq!(comments[0].body, mine.body, "the copy stays what it was");
    // And behind three pages of noise its own is found again, also with a token that has a user.
    job.forge.state().app = false;
    job.run(&[]).success();
    assert_eq!(job.forge.comments().len(), comments.len());
}

#[test]
fn limits_and_bad_days_of_the_forge_are_waited_out() {
    let job = Job::new();
    job.forge.fault("GET", Fault::Status(503));
    job.forge.fault("POST", Fault::RetryAfter(1));
    job.forge.fault("POST", Fault::UsedUp(1));
    job.forge.fault("PATCH", Fault::Status(500));
    job.forge.fault("PATCH", Fault::RetryAfter(1));
    // Longer than all of the waits together, so that the end does not come before the beginning.
    job.world.agent("sleep 8");
    let run = job.run(&[]).success();
    assert!(job.comment().contains("succeeded"), "{}\n{}", job.comment(), run.done.stderr);
    assert!(job.forge.state().faults.is_empty(), "each was met");
}

#[test]
fn a_lost_answer_makes_no_second_comment() {
    let job = Job::new();
    job.forge.fault("POST", Fault::DoneButLost);
    job.world.agent("sleep 4");
    job.run(&[]).success();
    assert!(job.comment().contains("succeeded"));
}

#[test]
fn a_comment_that_fails_changes_nothing_about_the_run() {
    let mut job = Job::new();
    // A limit that is too long to wait for, a refusal, a redirect to another host, a forge that is away.
    job.world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.05");
    for (fault, words) in [
        (Fault::UsedUp(3600), "rate limit"),
        (Fault::Status(403), "HTTP 403"),
        (Fault::Status(401), "token is not valid"),
        (Fault::Redirect("https://evil.example/x".into()), "redirects to https://evil.example/x"),
        (Fault::Status(500), "HTTP 500"),
        (Fault::Slow(Duration::from_secs(20)), "no "),
    ] {
        job.forge.state().faults.clear();
        for _ in 0..40 {
            job.forge.fault("", fault.clone());
        }
        let run = job.run(&[]).success();
        let said = &run.done.stdout;
        assert!(
            said.contains("status comment could not be written") && said.contains(words),
            "{fault:?}: {said}"
        );
        assert_eq!(run.json["verdict"], "success");
    }
    job.forge.state().faults.clear();
    assert!(job.forge.bodies().is_empty());
    // What could not be said then can be said later, once for all attempts at the job.
    assert_eq!(job.records(), 6);
    let (done, _) = job.reconcile(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(job.comment().contains("✅ `work` succeeded"), "{}", job.comment());
    assert_eq!(job.records(), 0);
}

#[test]
fn what_a_run_could_not_say_is_said_later() {
    let mut job = Job::new();
    job.world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.05");
    for _ in 0..40 {
        job.forge.fault("PATCH", Fault::Status(502));
    }
    job.run(&[]).success();
    assert!(job.comment().contains("is at work"));
    job.forge.state().faults.clear();
    let (done, _) = job.reconcile(&[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(job.comment().contains("✅ `work` succeeded"), "{}", job.comment());
    assert_eq!(job.records(), 0);
}

#[test]
fn the_token_goes_to_the_forge_and_nowhere_else() {
    let mut job = Job::new();
    job.world.env("GH_TOKEN", "not-this-one-0123456789");
    job.world.env("COMMENTS", TOKEN);
    job.world.script("h/scripts/post.sh", "echo the token is $COMMENTS; exit 1");
    job.world.harness("agent: agents/work\nruntime: script\npost_script: scripts/post.sh\n");
    let run = job.run(&["--status-token-env", "COMMENTS"]).failure("FS-POST-SCRIPT", 5);
    assert!(job.comment().contains("failed in a script"), "{}", job.comment());
    assert!(!format!("{:?}", run.done).contains(TOKEN), "the log shows the token");
    for place in ["out", "state", "tmp"] {
        for (path, text) in files_below(&job.world.path(place)) {
            assert!(!String::from_utf8_lossy(&text).contains(TOKEN), "{} has the token", path.display());
        }
    }
    // A record is reconciled with the server of this environment only.
    job.world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.05");
    for _ in 0..20 {
        job.forge.fault("PATCH", Fault::Status(502));
    }
    job.run(&["--status-token-env", "COMMENTS"]).failure("FS-POST-SCRIPT", 5);
    let elsewhere = Forge::start();
    job.world.env("GITHUB_API_URL", elsewhere.url());
    let (done, _) = job.reconcile(&["--status-token-env", "COMMENTS"]);
    assert_eq!(done.code, 3);
    assert!(done.stderr.contains("FS-FORGE") && done.stderr.contains("GITHUB_API_URL="), "{done:?}");
    assert_eq!(elsewhere.state().requests.len(), 0);
}

#[test]
fn the_configuration_says_when_there_are_comments() {
    let job = Job::new();
    let config = |text: &str| {
        job.forge.state().comments.clear();
        job.world.write("h/config.yaml", format!("status_notifications: {{comment: {text}}}\n"));
    };
    config("{start: disabled}");
    job.run(&[]).success();
    assert_eq!(job.forge.bodies().len(), 1);
    config("{completion: disabled}");
    job.run(&[]).success();
    assert_eq!(job.forge.bodies().len(), 0, "the comment of the beginning is deleted");
    config("{completion: on_failure}");
    let posts = job.forge.count("POST");
    job.run(&[]).success();
    assert_eq!(job.forge.count("POST"), posts);
    job.world.agent("exit 1");
    job.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert!(job.comment().contains("❌ `work` failed"));
    assert_eq!(job.records(), 0);
}

#[test]
fn what_is_not_asked_for_or_cannot_be_is_said() {
    let mut job = Job::new();
    // A job that no issue started.
    job.world.run(&["--status-repo", "o/r", "--status-number", "", "--run-url", ""]).success();
    assert_eq!(job.forge.state().requests.len(), 0);
    for (args, words) in [
        (vec!["--status-repo", "o/r", "--status-number", "7"], "--forge github"),
        (vec!["--status-repo", "o", "--status-number", "7", "--forge", "github"], "owner/name"),
        (
            vec![
                "--status-repo",
                "o/r",
                "--status-number",
                "7",
                "--forge",
                "github",
                "--status-token-env",
                "NONE",
            ],
            "NONE is not set",
        ),
    ] {
        let run = job.world.run(&args).success();
        let said = &run.done.stdout;
        assert!(said.contains("no status comment") && said.contains(words), "{said}");
    }
    for (args, words) in [
        (["--status-number", "seven"], "is not a number"),
        (["--run-url", "javascript:alert(1)"], "is not an http(s) URL"),
        (["--status-number", "7"], "--status-number needs --status-repo"),
        (["--status-repo", "o/r"], "--status-repo needs --status-number"),
    ] {
        let done = job.world.run(&args).done;
        assert!(done.code == 2 && done.stderr.contains(words), "{args:?}: {done:?}");
        assert_eq!(done.stderr.matches("help: ").count(), 1, "{done:?}");
    }
    job.world.env("GITHUB_API_URL", "http://api.example");
    let run = job.run(&[]).success();
    assert!(run.done.stdout.contains("not https"), "{}", run.done.stdout);
}

#[test]
fn a_merge_request_of_gitlab_has_its_comment() {
    let (mut world, forge) = (World::new(), Forge::start());
    forge.state().app = false;
    world.env("GITLAB_CI", "true");
    world.env("CI_API_V4_URL", forge.url());
    world.env("GITLAB_TOKEN", TOKEN);
    world.env("CI_PIPELINE_ID", "55");
    world.env("CI_JOB_NAME", "agent 1/2");
    world.env("CI_JOB_ID", "1000");
    world.env("CI_JOB_URL", "https://gitlab.example/g/s/p/-/jobs/1000");
    let on = ["--status-repo", "g/s/p", "--status-number", "!12"];
    world.run(&on).success();
    let comments = forge.comments();
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert_eq!(comments[0].thread, "g%2Fs%2Fp merge_requests 12");
    assert!(comments[0].body.contains("[log](https://gitlab.example/g/s/p/-/jobs/1000)"));
    assert_eq!((forge.count("POST"), forge.count("PUT")), (1, 1));
    // The job is retried: the same name, a new number. The comment is edited, not added.
    world.env("CI_JOB_ID", "1001");
    world.run(&on).success();
    assert_eq!((forge.count("POST"), forge.comments().len()), (1, 1));
    // Its neighbour of the parallel job has its own.
    world.env("CI_JOB_NAME", "agent 2/2");
    world.run(&on).success();
    assert_eq!(forge.comments().len(), 2);
}

#[test]
fn a_cancelled_run_says_so_within_its_grace() {
    let job = Job::new();
    job.world.agent(WORKING);
    let mut child = job.start(&[]);
    until("the comment", || job.forge.bodies().len() == 1);
    let running = Path::new("/proc").join(child.id().to_string());
    assert!(running.exists());
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(job.comment().contains("🚫 `work` was cancelled"), "{}", job.comment());
    assert_eq!(job.records(), 0);
}
