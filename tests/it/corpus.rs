//! A harness directory that people use, byte for byte: `hello-world` of the folder in `FULLSEND_CORPUS`. What it
//! refers to and does not hold (agent, skill, validation script, program) is stood in for here.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::stub::{Stub, claude, not_run, result_event};
use crate::support::{World, files_below};

const NAME: &str = "corpus::hello_world_as_people_use_it";

/// The folder, or nothing after saying so.
fn hello_world() -> Option<PathBuf> {
    let Some(corpus) = std::env::var_os("FULLSEND_CORPUS").filter(|c| !c.is_empty()) else {
        not_run(NAME, "FULLSEND_CORPUS is not set");
        return None;
    };
    let dir = Path::new(&corpus).join("hello-world");
    assert!(dir.join("harness/hello-world.yaml").is_file(), "{} has no hello-world", corpus.display());
    Some(dir)
}

/// The directory as it is, and beside it the files that it refers to.
fn furnish(world: &World, corpus: &Path) {
    for (path, bytes) in files_below(corpus) {
        let below = path.strip_prefix(corpus).unwrap().to_str().unwrap();
        world.write(&format!("corpus/{below}"), bytes);
    }
    world.write(
        "corpus/agents/hello-world.md",
        "---\nname: hello-world\ndescription: Greets\ntools: Bash, Skill\n---\nSummarise (marker-of-the-agent).\n",
    );
    world.write(
        "corpus/skills/hello-world-summary/SKILL.md",
        "---\nname: hello-world-summary\ndescription: How to summarise (marker-of-the-skill)\n---\nShort.\n",
    );
    // It fails as often as it is told to; what it knows of earlier calls lies in the run directory.
    world.script(
        "corpus/scripts/validate-output.sh",
        r#"set -eu
        tries=$FULLSEND_RUN_DIR/validations
        echo "$(basename "$PWD") $(git -C "$TARGET_REPO_DIR" rev-parse HEAD)" >> "$tries"
        grep -q '^# ' output/summary.md || { echo "no heading in output/summary.md"; exit 2; }
        if [ "$(wc -l < "$tries")" -le "$VALIDATION_EXPECTED_FAILURES" ]; then
          echo "failing as asked"
          exit 1
        fi"#,
    );
}

#[test]
fn hello_world_as_people_use_it() {
    let (Some(corpus), Some(program)) = (hello_world(), claude(NAME)) else { return };
    let mut world = World::new();
    furnish(&world, &corpus);

    // The target is a clone of this project, which may belong to somebody else.
    world.write("home/.gitconfig", "[safe]\n\tdirectory = *\n");
    let project = env!("CARGO_MANIFEST_DIR");
    let repo = world.path("clone/fullsend");
    let clone = ["clone", "-q", "--no-hardlinks", project, repo.to_str().unwrap()];
    let cloned = world.finish(world.command("git", &clone, &world.path("")));
    if cloned.code != 0 {
        not_run(NAME, &format!("{project} cannot be cloned: {}", cloned.stderr));
        return;
    }
    let git = |world: &World, args: &[&str]| world.finish(world.command("git", args, &repo)).stdout;
    let state = |world: &World| (git(world, &["rev-parse", "HEAD"]), git(world, &["status", "--porcelain"]));
    let before = state(&world);

    let write = "cd \"$FULLSEND_TARGET_REPO_DIR\" && grep -q '^name = \"fullsend\"$' Cargo.toml && \
                 test -s \"$GOOGLE_APPLICATION_CREDENTIALS\" && test -s /tmp/workspace/.env.d/gcp-vertex.env && \
                 echo \"# Summary of $ANTHROPIC_VERTEX_PROJECT_ID in $CLOUD_ML_REGION, $GOOGLE_APPLICATION_CREDENTIALS\" \
                 > \"$FULLSEND_OUTPUT_DIR/summary.md\"";
    let iteration = [
        json!({"content": [{"type": "tool_use", "name": "Bash", "input": {"command": write}}],
               "usage": {"input_tokens": 31, "output_tokens": 11},
               "expect": ["marker-of-the-agent", "marker-of-the-skill"]}),
        json!({"content": [{"type": "text", "text": "Summarised."}], "usage": {"input_tokens": 41, "output_tokens": 13}}),
    ];
    let turns = [iteration.as_slice(), iteration.as_slice()].concat();
    let stub = Stub::start(&world, &json!({ "turns": turns }));
    world.script(
        "prefix/bin/claude",
        &format!(
            "export ANTHROPIC_VERTEX_BASE_URL={}/v1 CLAUDE_CODE_SKIP_VERTEX_AUTH=1\n\
             export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_MAX_RETRIES=1\n\
             exec '{}' \"$@\"",
            stub.url,
            program.display()
        ),
    );
    let credentials = world.write("secret/gcp.json", r#"{"type": "external_account"}"#);
    world.env("GOOGLE_APPLICATION_CREDENTIALS", credentials.to_str().unwrap());
    world.env("ANTHROPIC_VERTEX_PROJECT_ID", "test-project").env("CLOUD_ML_REGION", "us-east5");

    let dir = world.path("corpus");
    let (out, prefix) = (world.path("out"), world.path("prefix"));
    let done = world.fullsend(&[
        "run",
        "hello-world",
        "--local",
        "--fullsend-dir",
        dir.to_str().unwrap(),
        "--target-repo",
        repo.to_str().unwrap(),
        "--output-dir",
        out.to_str().unwrap(),
        "--local-bind",
        prefix.to_str().unwrap(),
        "--local-bind",
        program.parent().unwrap().to_str().unwrap(),
    ]);
    let run = world.collect(done).success();

    let iterations = run.json["iterations"].as_array().unwrap();
    let valid: Vec<_> = iterations.iter().map(|i| i["valid"].as_bool()).collect();
    assert_eq!(valid, [Some(false), Some(true)]);
    assert_eq!(run.json["validated_iteration"], 2);
    let head = before.0.trim();
    assert_eq!(run.file("validations"), format!("iteration-1 {head}\niteration-2 {head}\n"));
    let mut cost = 0.0;
    for n in 1..=2 {
        assert_eq!(
            run.file(&format!("iteration-{n}/output/summary.md")),
            "# Summary of test-project in us-east5, /tmp/workspace/.gcp-credentials.json\n"
        );
        let result = result_event(&run.file(&format!("iteration-{n}/stream.jsonl")));
        let metrics = &iterations[n - 1]["metrics"];
        assert_eq!(metrics["turns"], result["num_turns"]);
        // The second start goes on with the session of the first, whose cost its result has as well.
        let total = result["total_cost_usd"].as_f64().unwrap();
        assert!((metrics["cost_usd"].as_f64().unwrap() - (total - cost)).abs() < 1e-9, "{metrics}");
        cost = total;
        assert_eq!(metrics["tokens"]["input"], result["usage"]["input_tokens"]);
        assert_eq!(metrics["tokens"]["input"], 31 + 41);
    }
    assert!((run.json["totals"]["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9);
    assert_eq!(run.json["totals"]["tokens"]["output"], 2 * (11 + 13));

    let requests = stub.requests();
    let main: Vec<_> = requests.iter().filter(|r| r["kind"] == "main").collect();
    assert_eq!(main.len(), 4);
    for request in main {
        let target = request["target"].as_str().unwrap();
        let wanted =
            "/v1/projects/test-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-";
        assert!(target.starts_with(wanted) && target.contains("redict"), "{target}");
    }

    // Nothing of the clone changed, and nothing of the corpus did.
    assert_eq!(state(&world), before);
    for (path, bytes) in files_below(&corpus) {
        assert_eq!(std::fs::read(dir.join(path.strip_prefix(&corpus).unwrap())).unwrap(), bytes);
    }
    world.assert_clean();
}
