//! `run --dry-run`: what a run would do, without doing any of it.

use std::path::Path;

use serde_json::Value;

use crate::fake;
use crate::support::World;

const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// Values that must never be shown.
const SECRETS: [&str; 5] = ["cred-0a1b2c", "sandbox-3d4e5f", "host-6a7b8c", "runner-9d0e1f", "check-2a3b4c"];

/// A harness with a secret in every place that takes one.
fn full_of_secrets(world: &mut World) {
    for (name, value) in ["CRED", "SANDBOX", "HOST", "RUNNER", "CHECK"].iter().zip(SECRETS) {
        world.env(name, value);
    }
    world.write("h/providers/p.yaml", "name: p\ntype: t\ncredentials: {TOKEN: \"${CRED}\"}\n");
    world.write("h/profiles/t.yaml", "id: t\ndisplay_name: T\ncredentials: []\nendpoints: []\n");
    world.write("h/files/a.env", "export A=${HOST}\n");
    world.write("h/files/data with space", "12345");
    world.write("h/schemas/s.json", "{}");
    world.write("h/skills/one/SKILL.md", "# One\n");
    world.script("h/scripts/post.sh", "true");
    world.harness(
        "agent: agents/work\nruntime: script\nproviders: [p]\nrole: coder\nskills: [skills/one]\n\
         host_files:\n  - {src: files/a.env, dest: /sandbox/workspace/.env.d/a.env, expand: true}\n  \
         - {src: files/data with space, dest: /sandbox/data}\n\
         env: {sandbox: {S: \"${SANDBOX}\"}, runner: {R: \"${RUNNER}\"}}\n\
         post_script: scripts/post.sh\n\
         validation_loop: {schema: schemas/s.json, preflight_check: \"test ${CHECK}\"}\n",
    );
}

fn dry(world: &World, more: &[&str]) -> String {
    let dir = world.path("h");
    let args = [&["run", "work", "--dry-run", "--fullsend-dir", dir.to_str().unwrap()], more].concat();
    let done = world.fullsend(&args);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    done.stdout
}

fn dry_json(world: &World, more: &[&str]) -> Value {
    serde_json::from_str(&dry(world, &[&["--format", "json"], more].concat())).unwrap()
}

/// A path with git and nothing else of what a run needs.
fn only_git(world: &mut World) {
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|d| d.join("git")).find(|p| p.exists()).unwrap();
    std::os::unix::fs::symlink(git, bin.join("git")).unwrap();
    world.env("PATH", bin.to_str().unwrap());
}

#[test]
fn it_needs_nothing_and_changes_nothing() {
    let mut world = World::new();
    full_of_secrets(&mut world);
    only_git(&mut world);
    let text = dry(&world, &[]);
    assert!(text.contains("OpenShell, assumed to be "), "{text}");
    let plan = dry_json(&world, &[]);
    assert_eq!(plan["plan"]["dialect"]["assumed"], true);
    for dir in ["out", "tmp", "state", "home"] {
        let left: Vec<_> = std::fs::read_dir(world.path(dir)).unwrap().collect();
        assert!(left.is_empty(), "{dir}: {left:?}");
    }
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn an_openshell_at_hand_is_asked_for_its_version_and_nothing_else() {
    let mut world = World::new();
    fake::install(&mut world);
    fake::answer(&world, "[[ $* == --version ]] && { echo openshell 0.0.83; exit; }");
    let plan = dry_json(&world, &[]);
    assert_eq!(
        (&plan["plan"]["dialect"]["assumed"], &plan["plan"]["dialect"]["generation"]),
        (&false.into(), &"0.0.83".into())
    );
    let program = plan["commands"][0]["argv"][0].as_str().unwrap();
    assert_eq!(Path::new(program), fake::executable());
    let mut calls = fake::calls(&world);
    calls.sort();
    assert_eq!(calls, ["--version", "sandbox create --help"]);
    // One that is broken, or is none, is no reason to fail.
    fake::answer(&world, "exit 3");
    assert_eq!(dry_json(&world, &[])["plan"]["dialect"]["assumed"], true);
    world.env("FULLSEND_OPENSHELL", "/nonexistent/openshell");
    assert_eq!(dry_json(&world, &[])["plan"]["dialect"]["assumed"], true);
}

#[test]
fn secrets_are_names() {
    let mut world = World::new();
    full_of_secrets(&mut world);
    for format in ["text", "json"] {
        let shown = dry(&world, &["--format", format, "-v"]);
        for secret in SECRETS {
            assert!(!shown.contains(secret), "{secret} is in the {format}:\n{shown}");
        }
        for name in ["TOKEN", "S", "R"] {
            assert!(shown.contains(name), "{name} is not in the {format}");
        }
    }
    let plan = dry_json(&world, &[]);
    let commands = plan["commands"].as_array().unwrap();
    let create = commands.iter().find(|c| c["argv"][1] == "provider" && c["argv"][2] == "create").unwrap();
    assert_eq!(create["secret_env"], serde_json::json!(["TOKEN"]), "the value travels in the environment");
    let post = commands.iter().find(|c| c["phase"] == "post-script").unwrap();
    assert_eq!(post["secret_env"], serde_json::json!(["R"]));
}

#[test]
fn every_file_has_its_size_and_its_source() {
    let mut world = World::new();
    full_of_secrets(&mut world);
    world.write("repo/.gitignore", "ignored\n");
    world.write("repo/ignored", "x".repeat(100_000));
    world.commit("More");
    let plan = dry_json(&world, &[]);
    let files = plan["estimate"]["files"].as_array().unwrap();
    let file = |dest: &str| {
        files.iter().find(|f| f["dest"] == dest).unwrap_or_else(|| panic!("no {dest}: {files:#?}"))
    };
    let host = world.path("h");
    for (dest, size, from) in [
        ("/sandbox/data", 5, "files/data with space"),
        // The value is quoted, so that sourcing it cannot execute it.
        ("/sandbox/workspace/.env.d/a.env", "export A='host-6a7b8c'\n".len(), "files/a.env"),
        ("/sandbox/workspace/.fullsend/output-schema.json", 2, "schemas/s.json"),
    ] {
        let found = file(dest);
        assert!(found["from"].as_str().unwrap().ends_with(from), "{found}");
        assert_eq!(found["size"], size, "{found}");
    }
    assert_eq!(file("/sandbox/data")["from"], host.join("files/data with space").to_str().unwrap());
    let agent = file("/sandbox/workspace/agent/work");
    assert_eq!(
        (&agent["mode"], &agent["from"]),
        (&"0755".into(), &host.join("agents/work").to_str().unwrap().into())
    );
    for f in files {
        assert!(f["size"].is_u64() && !f["from"].as_str().unwrap().is_empty(), "{f}");
    }
    let all = plan["estimate"]["repo_bytes"].as_u64().unwrap();
    world.write("h/harness/work.yaml", "agent: agents/work\nruntime: script\nupload: {ignored: false}\n");
    let less = dry_json(&world, &[])["estimate"]["repo_bytes"].as_u64().unwrap();
    assert!(all >= less + 100_000, "{all} {less}");
}

#[test]
fn the_digest_is_of_the_plan_alone() {
    let mut world = World::new();
    full_of_secrets(&mut world);
    let digest = |w: &World, more: &[&str]| dry_json(w, more)["plan_digest"].as_str().unwrap().to_owned();
    let first = digest(&world, &[]);
    assert!(first.len() == 64 && first.bytes().all(|b| b.is_ascii_hexdigit()), "{first}");
    assert_eq!(digest(&world, &[]), first);
    assert!(dry(&world, &[]).contains(&format!("plan_digest {first}\n")));
    for other in
        [&["--timeout", "7m"][..], &["--image", "other:1"], &["--keep-sandbox"], &["--no-post-script"]]
    {
        assert_ne!(digest(&world, other), first, "{other:?}");
    }
}

#[test]
fn options_show() {
    let world = World::new();
    let text =
        dry(&world, &["--timeout", "90s", "--ready-timeout", "1m", "--image", "img:1", "--keep-sandbox"]);
    for part in [
        "1m 30s for the agent",
        "1m until the sandbox is ready",
        "--from img:1",
        "stays when the run has ended",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("sandbox delete"), "{text}");
    let text = dry(&world, &["--apply", "never"]);
    assert!(text.contains("left as a patch in the run directory"), "{text}");
}

#[test]
fn what_could_not_start_is_all_said_at_once() {
    let mut world = World::new();
    only_git(&mut world);
    world.harness("agent: agents/none\nruntime: skript\nenv: {runner: {A: \"${UNSET}\"}}\n");
    for format in ["text", "json"] {
        let (dir, home) = (world.path("h"), world.path("home"));
        let (dir, home) = (dir.to_str().unwrap(), home.to_str().unwrap());
        let args =
            ["run", "work", "--dry-run", "--format", format, "--fullsend-dir", dir, "--target-repo", home];
        let done = world.fullsend(&args);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done:?}");
        for part in ["4 problems", "agents/none", "`script`?", "`UNSET`", "is not in a git repository"] {
            assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
        }
    }
}

#[test]
fn warnings_do_not_break_the_json() {
    let world = World::new();
    world.write("h/harness/work.yml", "agent: agents/other\n");
    let plan = dry_json(&world, &[]);
    let warnings = plan["warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("both exist"), "{warnings:?}");
    assert!(dry(&world, &[]).starts_with("  ! "));
}

/// What differs between machines and versions is replaced.
fn steady(world: &World, text: &str) -> String {
    let mut text = text.replace(world.path("").to_str().unwrap().trim_end_matches('/'), "<world>");
    text = text.replace(PROJECT, "<project>");
    for (pattern, with) in [
        (r"\b[0-9a-f]{64}\b", "<digest>"),
        (
            r"(?m)^ *[0-9.]+ [KM]?B( +/sandbox/workspace/(?:repo/|bin/fullsend|\.fullsend/supervise\.sh|agent/hello-world))",
            "     <size>$1",
        ),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

#[test]
fn the_text_of_the_projects_harnesses() {
    let mut world = World::new();
    only_git(&mut world);
    world.env("ANTHROPIC_API_KEY", "test-key-of-no-use").env("TASK", "do something");
    for agent in ["hello-world", "starter"] {
        let dir = format!("{PROJECT}/harnesses/{agent}");
        let done = world.fullsend(&["run", agent, "--dry-run", "--fullsend-dir", &dir]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
        insta::assert_snapshot!(agent, steady(&world, &done.stdout));
    }
}
