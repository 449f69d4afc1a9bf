//! Sandboxes that no journal here knows, and those that are kept.

use serde_json::Value;

use super::{FUTURE, PAST, backend, foreign_sandbox, json, look, provider, providers, sandboxes, until};
use crate::support::{GENERATIONS, World};

#[test]
fn runs_of_other_hosts_end_by_their_labels_alone() {
    for generation in GENERATIONS {
        let mut world = World::new();
        world.personality(generation);
        let (over, live, kept, kept_over) = ("00000000000a", "00000000000b", "00000000000c", "00000000000d");
        foreign_sandbox(&world, &format!("fs-wor-{over}"), over, &[PAST]);
        foreign_sandbox(&world, &format!("fs-wor-{live}"), live, &[FUTURE]);
        foreign_sandbox(&world, &format!("fs-wor-{kept}"), kept, &[PAST, "keep=20990101T000000Z"]);
        foreign_sandbox(&world, &format!("fs-wor-{kept_over}"), kept_over, &[PAST, "keep=1577836800"]);
        for run in [over, live, kept, kept_over] {
            provider(&world, &format!("gh-{run}"));
        }
        assert_eq!(json(&world, &["ps"])["runs"], Value::Array(vec![]), "others show with --all only");
        let all = json(&world, &["ps", "--all"]);
        let mut states: Vec<_> =
            all["runs"].as_array().unwrap().iter().map(|r| r["state"].as_str().unwrap()).collect();
        states.sort_unstable();
        assert_eq!(states, ["elsewhere", "expired", "kept", "kept_over"]);

        let dry = json(&world, &["reap", "--dry-run"]);
        assert_eq!(dry["runs"][0]["providers"][0], format!("gh-{over}"), "{dry:#}");
        let reaped = look(&world, &["reap"]);
        assert_eq!(reaped.code, 0, "{reaped:?}");
        assert_eq!(sandboxes(&world), [format!("fs-wor-{live}"), format!("fs-wor-{kept}")]);
        assert_eq!(providers(&world), [format!("gh-{live}"), format!("gh-{kept}")]);
    }
}

#[test]
fn what_only_looks_like_ours_is_never_deleted() {
    let world = World::new();
    let run = "00000000000a";
    let names = ["fs-wor-0000000000", "fs-wor-00000000000b", "production", "fs-wor-00000000"];
    for name in names {
        // Expired, ours by its labels, and of a run that it is not named after.
        foreign_sandbox(&world, name, run, &[PAST]);
    }
    foreign_sandbox(&world, "fs-00000000000c", "no-run", &[PAST]);
    foreign_sandbox(&world, "fs-00000000000d", "00000000000d", &[]);
    foreign_sandbox(&world, "fs-00000000000e", "00000000000e", &["fullsend-expires=soon"]);
    let args = ["sandbox", "create", "--name", "fs-00000000000f", "--label", PAST, "--label"];
    backend(
        &world,
        &[&args[..], &["fullsend-run=00000000000f", "--detach", "--", "sleep", "infinity"]].concat(),
    );
    // One that is really over, so that its run is known to be dead.
    foreign_sandbox(&world, &format!("fs-wor-{run}"), run, &[PAST]);
    for name in ["gh", "gh-00000000000", "gh-00000000000a0", "gh-00000000000b", "00000000000a"] {
        provider(&world, name);
    }
    let before = (sandboxes(&world), providers(&world));
    let reaped = look(&world, &["reap"]);
    assert_eq!(reaped.code, 0, "{reaped:?}");
    let mut expected = before.0;
    expected.retain(|name| *name != format!("fs-wor-{run}"));
    assert_eq!((sandboxes(&world), providers(&world)), (expected, before.1));
}

#[test]
fn a_kept_sandbox_stays_for_its_time() {
    let world = World::new();
    let run = world.run(&["--keep-sandbox"]).success();
    let name = run.json["sandbox"].as_str().unwrap();
    let ps = json(&world, &["ps"]);
    assert_eq!(
        (&ps["runs"][0]["state"], &ps["runs"][0]["sandbox"]),
        (&"kept".into(), &name.into()),
        "{ps:#}"
    );
    let list = backend(&world, &["sandbox", "list", "-o", "json"]).stdout;
    let labels = serde_json::from_str::<Value>(&list).unwrap()["sandboxes"][0]["labels"].clone();
    let labels = labels.as_object().unwrap();
    for key in ["managed-by", "fullsend-run", "fullsend-agent", "fullsend-owner", "fullsend-expires", "keep"]
    {
        let value = labels[key].as_str().unwrap();
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        assert!(!value.is_empty() && value.len() <= 63 && value.chars().all(legal), "{key}={value}");
    }
    assert!(labels["keep"].as_str() > labels["fullsend-expires"].as_str());
    assert_eq!(look(&world, &["reap"]).stdout, "nothing to reap\n");
    assert_eq!(sandboxes(&world), [name]);
    // The journal knows the gateway, so that no option is needed.
    let stopped = world.fullsend(&["stop", &run.json["run"].as_str().unwrap()[..6]]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    world.assert_clean();

    let run = world.run(&["--keep-sandbox=1s"]).success();
    assert!(run.done.stdout.contains("is kept until"), "{}", run.done.stdout);
    until("the end of the time", || json(&world, &["ps"])["runs"][0]["state"] == "kept_over");
    assert_eq!(look(&world, &["reap"]).code, 0);
    world.assert_clean();
    for bad in ["--keep-sandbox=0s", "--keep-sandbox=soon"] {
        assert_eq!(world.run(&[bad]).done.code, 2, "{bad}");
    }
}

#[test]
fn a_sandbox_that_never_became_ready_is_not_kept() {
    let mut world = World::new();
    world.personality("0.1.10");
    world.env("FULLSEND_WRAP_FAULT", "sandbox create:2:then-exit=1:stderr=Error: × invalid policy: no");
    world.run(&["--keep-sandbox"]).failure("FS-POLICY", 3);
    world.assert_clean();
}
