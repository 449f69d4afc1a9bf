//! What a run may use: resources, labels, time, and how many there are at once.

use serde_json::Value;

use crate::lifecycle::{HANG, Live, assert_nothing_left, run_of, wait_in_sandbox};
use crate::support::{GENERATIONS, World};

/// The argv of every call that creates a sandbox.
fn creates(world: &World) -> Vec<Vec<String>> {
    let words = |call: &Value| -> Vec<String> {
        call["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
    };
    let all = world.calls().iter().map(words).collect::<Vec<_>>();
    all.into_iter().filter(|w| w[0] == "sandbox" && w[1] == "create" && w[2] != "--help").collect()
}

/// What follows `flag`, every time it stands there.
fn values<'a>(argv: &'a [String], flag: &str) -> Vec<&'a str> {
    argv.windows(2).filter(|w| w[0] == flag).map(|w| w[1].as_str()).collect()
}

fn harness(more: &str) -> String {
    format!("agent: agents/work\nruntime: script\ntimeout_minutes: 2\n{more}\n")
}

#[test]
fn every_generation_is_asked_for_what_the_harness_says() {
    for version in GENERATIONS {
        let mut world = World::new();
        world.personality(version);
        world.write("h/config.yaml", "defaults: {labels: {team: core, cost: a}, resources: {memory: 4Gi}}\n");
        world.harness(&harness("resources: {cpu: 500m}\nlabels: {cost: \"a place & more\"}"));
        world.run(&[]).success();
        let argv = creates(&world).pop().unwrap();
        assert_eq!(
            (values(&argv, "--cpu"), values(&argv, "--memory")),
            (vec!["500m"], vec!["4Gi"]),
            "{version}"
        );
        let labels = values(&argv, "--label");
        assert!(labels.contains(&"team=core"), "{labels:?}");
        let cost = labels.iter().find_map(|l| l.strip_prefix("cost=")).unwrap();
        assert!(cost.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{cost}");
        world.assert_clean();
    }
}

#[test]
fn what_openshell_cannot_limit_is_an_error_before_anything_is_created() {
    for (resource, name) in [("disk: 10Gi", "disk"), ("gpu: 2", "gpu")] {
        let mut world = World::new();
        world.personality("0.1.10");
        world.harness(&harness(&format!("resources: {{{resource}}}")));
        let run = world.run(&[]).failure("FS-OPENSHELL-VERSION", 2);
        assert!(run.done.stderr.contains(&format!("resources.{name}")), "{}", run.done.stderr);
        assert!(creates(&world).is_empty());
    }
}

#[test]
fn the_embedded_backend_says_what_it_does_not_hold_to() {
    let world = World::new();
    world.harness(&harness("resources: {cpu: 2, memory: 4Gi, disk: 10Gi, gpu: true}"));
    let note = "not enforced by the embedded backend: resources.cpu, resources.memory, resources.disk, resources.gpu";
    for args in [&[][..], &["--dry-run"]] {
        let run = world.run(args).success();
        assert!(format!("{}{}", run.done.stdout, run.done.stderr).contains(note), "{:?}", run.done);
    }
}

#[test]
fn a_run_ends_at_its_ttl_and_its_label_says_so() {
    let mut world = World::new();
    world.personality("0.1.10");
    world.harness(&harness("ttl: 2h\ndeadlines: {collect: 60, delete: 60}"));
    world.agent("echo half > half; sleep 600");
    let begun = jiff::Timestamp::now();
    let run =
        run_of(&world, Live::start(&world, "a", &["--ttl", "4s"]).wait(HANG)).failure("FS-TIMEOUT", 124);
    assert!(run.done.stderr.contains("--ttl"), "{}", run.done.stderr);
    assert!(run.file("changes.patch").contains("half"));
    let argv = creates(&world).pop().unwrap();
    let expires =
        values(&argv, "--label").into_iter().find_map(|l| l.strip_prefix("fullsend-expires=")).unwrap();
    // The ttl, then 60 s to collect, 60 s to delete, and 60 s of grace.
    let stamp = |after: i64| {
        let at = begun + jiff::SignedDuration::from_secs(after);
        at.strftime("%Y%m%dT%H%M%SZ").to_string()
    };
    assert!(stamp(180).as_str() <= expires && expires <= stamp(244).as_str(), "{expires}");
    assert_nothing_left(&world);
}

/// A run that works until it is ended, and a second one that has to wait.
#[test]
fn a_run_waits_for_another_one_and_then_works() {
    let world = World::new();
    world.harness(&harness("max_concurrent: 1"));
    world.agent("if mkdir /sandbox/workspace/output/first-one; then sleep 600; fi");
    let first = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "stream.jsonl");
    world.script("h/agents/work", "echo second > second");
    let second = Live::start(&world, "b", &[]);
    let told = || std::fs::read_to_string(world.path("b.stdout")).unwrap().contains("waiting for one to end");
    let begun = std::time::Instant::now();
    while !told() {
        assert!(begun.elapsed() < HANG, "it does not say that it waits");
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    first.signal("TERM");
    assert_eq!(first.wait(HANG).code, 143);
    let done = second.wait(HANG);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(world.repo().join("second").exists());
    assert_nothing_left(&world);
}

#[test]
fn without_patience_a_second_run_is_refused() {
    let mut world = World::new();
    world.personality("0.0.83");
    world.harness(&harness("max_concurrent: 1"));
    world.agent("sleep 600");
    let first = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "stream.jsonl");
    let before = creates(&world).len();
    let refused = world.run(&["--queue-timeout", "0"]);
    assert!(refused.done.stderr.contains("1 of at most 1 runs of work"), "{}", refused.done.stderr);
    refused.failure("FS-BUSY", 3);
    assert_eq!(creates(&world).len(), before, "nothing was created");
    // Of another agent any number may run.
    world.write("h/harness/other.yaml", harness("max_concurrent: 1"));
    world.script("h/agents/work", "true");
    let args = world.run_args(&["--queue-timeout", "0"]);
    let args: Vec<_> = args.iter().map(|a| if a == "work" { "other" } else { a.as_str() }).collect();
    let other = world.fullsend(&args);
    assert_eq!(other.code, 0, "{other:?}");
    first.signal("INT");
    assert_eq!(first.wait(HANG).code, 130);
    assert_nothing_left(&world);
}

#[test]
fn runs_that_start_at_once_never_work_at_once() {
    let world = World::new();
    world.harness(&harness("max_concurrent: 1"));
    world.agent("sleep 0.3");
    let live: Vec<_> = ["a", "b", "c"].map(|name| Live::start(&world, name, &["--apply", "never"])).into();
    for run in live {
        let done = run.wait(HANG * 2);
        assert_eq!(done.code, 0, "{done:?}");
    }
    let mut spans = Vec::new();
    for entry in std::fs::read_dir(world.path("out")).unwrap() {
        let json: Value =
            serde_json::from_slice(&std::fs::read(entry.unwrap().path().join("run.json")).unwrap()).unwrap();
        let started: jiff::Timestamp = json["started"].as_str().unwrap().parse().unwrap();
        let phase = json["phases"].as_array().unwrap().iter().find(|p| p["name"] == "agent").unwrap();
        let from = started.as_millisecond() + phase["start_ms"].as_i64().unwrap();
        spans.push((from, from + phase["duration_ms"].as_i64().unwrap()));
    }
    spans.sort_unstable();
    assert_eq!(spans.len(), 3);
    assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{spans:?}");
    assert_nothing_left(&world);
}

#[test]
fn a_run_that_another_one_was_before_deletes_its_sandbox_and_waits() {
    let mut world = World::new();
    world.personality("0.1.10");
    // A run of another host, older, that the first look does not show yet.
    let labels = ["managed-by=fullsend", "fullsend-run=00000000000a", "fullsend-agent=work"];
    let mut args = vec!["openshell", "sandbox", "create", "--name", "fs-wor-00000000000a"];
    for label in labels.iter().chain(&["fullsend-expires=20990101T000000Z"]) {
        args.extend(["--label", label]);
    }
    args.extend(["--detach", "--", "sleep", "infinity"]);
    let made = world.fullsend(&args);
    assert_eq!(made.code, 0, "{made:?}");
    world.env(
        "FULLSEND_WRAP_FAULT",
        "sandbox list:2:exit=0:stdout={\"sandboxes\":[],\"next_page_token\":\"\"}",
    );
    world.harness(&harness("max_concurrent: 1"));
    world.agent("echo work > made");
    let run = world.run(&["--queue-timeout", "0", "--apply", "always"]).failure("FS-BUSY", 3);
    assert!(run.done.stdout.contains("another run was first"), "{}", run.done.stdout);
    assert!(run.done.stderr.contains("00000000000a"), "{}", run.done.stderr);
    assert_eq!(creates(&world).len(), 1);
    assert!(!world.repo().join("made").exists());
    let list = world.fullsend(&["openshell", "sandbox", "list", "--names"]).stdout;
    assert_eq!(list.trim(), "fs-wor-00000000000a", "its own is gone, the other one stays");
    // The same count of two has room for both.
    world.harness(&harness("max_concurrent: 2"));
    world.run(&["--queue-timeout", "0"]).success();
    assert_eq!(world.fullsend(&["openshell", "sandbox", "delete", "fs-wor-00000000000a"]).code, 0);
    world.assert_clean();
}

#[test]
fn a_kept_sandbox_takes_no_place() {
    let world = World::new();
    world.harness(&harness("max_concurrent: 1"));
    let kept = world.run(&["--keep-sandbox"]).success();
    world.run(&["--queue-timeout", "0"]).success();
    assert_eq!(world.fullsend(&["stop", kept.json["run"].as_str().unwrap()]).code, 0);
    world.assert_clean();
}

#[test]
fn a_short_name_of_an_image_is_looked_up_in_the_registry() {
    let mut world = World::new();
    world.personality("0.1.10");
    world.harness(&harness("image: python"));
    let run = world.run(&[]).failure("FS-VALUE", 2);
    assert!(run.done.stderr.contains("image_registry"), "{}", run.done.stderr);
    world.write("h/config.yaml", "image_registry: registry.example.com/team\nimage_tag: v7\n");
    let run = world.run(&[]).success();
    assert_eq!(run.json["image"], "registry.example.com/team/fullsend-python:v7");
    assert_eq!(run.json["image_digest"], Value::Null);
    assert_eq!(
        values(&creates(&world).pop().unwrap(), "--from"),
        ["registry.example.com/team/fullsend-python:v7"]
    );
    let digest = format!("sha256:{}", "0".repeat(64));
    let run = world.run(&["--image", &format!("example.com/a@{digest}")]).success();
    assert_eq!(run.json["image_digest"], digest.as_str());
}

#[test]
fn credentials_expire_with_their_run_in_every_generation() {
    for version in GENERATIONS {
        let mut world = World::new();
        world.personality(version).env("MODEL_KEY", "sk-test-0123456789abcdef");
        world.write(
            "h/profiles/model.yaml",
            "id: test-model\ndisplay_name: Model\ncategory: inference\ncredentials:\n  - name: api_key\n    \
             env_vars: [MODEL_KEY]\n    required: true\nendpoints:\n  - {host: example.com, port: 443, protocol: rest, \
             access: read-write, enforcement: enforce}\nbinaries: ['**/curl']\n",
        );
        for (name, scope) in [("own", "run"), ("shared", "gateway")] {
            world.write(
                &format!("h/providers/{name}.yaml"),
                format!("name: {name}\ntype: test-model\nscope: {scope}\ncredentials: {{MODEL_KEY: \"${{MODEL_KEY}}\"}}\n"),
            );
        }
        world.harness(&harness("providers: [own]\nttl: 1h\ndeadlines: {collect: 60, delete: 60}"));
        let begun = jiff::Timestamp::now();
        let run = world.run(&[]).success();
        let own = format!("own-{}", run.json["run"].as_str().unwrap());
        let expiry = |world: &World| -> Vec<String> {
            let all = world.calls();
            let is = |c: &&Value| c["argv"][0] == "provider" && c["argv"][1] == "update";
            all.iter()
                .filter(is)
                .map(|c| {
                    c["argv"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|w| w.as_str().unwrap())
                        .collect::<Vec<_>>()
                        .join(" ")
                })
                .collect()
        };
        let seen = expiry(&world);
        let head = format!("provider update {own} --credential-expires-at MODEL_KEY=");
        let at = seen[0].strip_prefix(&head).unwrap_or_else(|| panic!("{version}: {seen:?}"));
        let at: jiff::Timestamp = at.parse().unwrap();
        let after = (at - begun).as_secs_f64();
        assert!((3600.0 + 178.0..3600.0 + 240.0).contains(&after), "{after}");
        // One that others share is not this run's to end.
        world.harness(&harness("providers: [shared]"));
        world.run(&[]).success();
        assert_eq!(expiry(&world).len(), 1, "{version}");
    }
}

#[test]
fn the_agent_is_told_when_its_time_is_nearly_over() {
    let world = World::new();
    world.agent(
        "while [ ! -f \"$FULLSEND_NOTICE_FILE\" ]; do sleep 0.1; done\ncp \"$FULLSEND_NOTICE_FILE\" \"$FULLSEND_OUTPUT_DIR/notice\"",
    );
    let run = world.run(&["--timeout", "15s"]).success();
    let notice = run.file("iteration-1/output/notice");
    assert!(notice.starts_with("Time is running out: 3 seconds are left"), "{notice}");
}
