//! The plan that a dry run shows is the plan that a run executes.

use serde_json::Value;

use crate::support::{GENERATIONS, World};

#[test]
fn a_run_carries_out_what_its_dry_run_showed() {
    for generation in GENERATIONS {
        let mut world = World::new();
        world.personality(generation);
        world.write("h/files/x", "delivered");
        world.harness(
            "agent: agents/work\nruntime: script\nhost_files: [{src: files/x, dest: /sandbox/workspace/x}]\n\
             env: {sandbox: {A: b}}\n",
        );
        world.agent("cat ../x > \"$FULLSEND_OUTPUT_DIR/x\"");
        let dry = world.run(&["--dry-run", "--format", "json"]).done;
        assert_eq!((dry.code, dry.stderr.as_str()), (0, ""), "{generation}: {dry:?}");
        let shown: Value = serde_json::from_str(&dry.stdout).unwrap();
        let run = world.run(&[]).success();
        assert_eq!(run.json["plan_digest"], shown["plan_digest"], "{generation}");
        assert_eq!(run.file("iteration-1/output/x"), "delivered");

        // Every call of openshell that was shown was made, with the run's id for the zeros.
        let id = run.json["run"].as_str().unwrap();
        let calls = world.calls();
        let made: Vec<&Value> = calls.iter().map(|c| &c["argv"]).collect();
        let label = |key: &str| {
            let mut all = made.iter().flat_map(|m| m.as_array().unwrap()).filter_map(Value::as_str);
            all.find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).unwrap().to_owned()
        };
        let (owner, expires) = (label("fullsend-owner"), label("fullsend-expires"));
        let program = &shown["commands"][0]["argv"][0];
        for command in shown["commands"].as_array().unwrap().iter().filter(|c| c["argv"][0] == *program) {
            let argv = command["argv"].as_array().unwrap()[1..].to_vec();
            let text = Value::Array(argv).to_string().replace("000000000000", id);
            // Moment and host are not part of the plan.
            let text = text.replace("<owner>", &owner).replace("<expires>", &expires);
            let found = made.iter().any(|m| m.to_string().contains(text.trim_matches(['[', ']'])));
            assert!(found, "{generation}: {text} was shown but not called: {made:?}");
        }
    }
}
