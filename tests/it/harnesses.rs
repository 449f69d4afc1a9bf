//! Every harness directory of this project loads, and one from elsewhere when it is at hand.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::support::World;

/// What the harnesses want to be set.
const VARIABLES: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "test-key-of-no-use"),
    ("GITHUB_REPOSITORY", "acme/widget"),
    ("TASK", "do something"),
];

fn directories() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut dirs: Vec<_> =
        std::fs::read_dir(root.join("harnesses")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(dirs.len() >= 2, "{dirs:?}");
    dirs.push(root.join("tests/bench/harness"));
    dirs
}

/// Dry-runs every agent of a directory and returns their names.
fn load_all(world: &World, dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let list = world.fullsend(&["list", "--fullsend-dir", dir]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""), "{dir}");
    let names: Vec<_> =
        list.stdout.lines().map(|l| l.split_whitespace().next().unwrap().to_owned()).collect();
    for name in &names {
        let done = world.fullsend(&["run", name, "--dry-run", "--format", "json", "--fullsend-dir", dir]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{dir} {name}: {done:?}");
        let plan: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(plan["plan"]["harness"]["name"], name.as_str());
        assert_eq!(plan["warnings"], serde_json::json!([]), "{dir} {name}");
        assert!(plan["plan"]["harness"]["description"].is_string(), "{name} does not say what it is for");
    }
    names
}

#[test]
fn the_projects_own_harnesses_load() {
    let mut world = World::new();
    for (name, value) in VARIABLES {
        world.env(name, value);
    }
    let mut names: Vec<_> = directories().iter().flat_map(|dir| load_all(&world, dir)).collect();
    names.sort();
    assert!(["hello-world", "nothing", "starter"].iter().all(|n| names.iter().any(|m| m == n)), "{names:?}");
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Agent, skill and script belong to the field and are not part of the corpus.
fn stand_ins(world: &World) {
    world.write(
        "field/agents/hello-world.md",
        "---\nname: hello-world\ndescription: Says hello\n---\nSay hello.\n",
    );
    world
        .write("field/skills/hello-world-summary/SKILL.md", "---\nname: hello-world-summary\n---\nSum up.\n");
    world.script("field/scripts/validate-output.sh", "exit 0");
}

#[test]
fn a_harness_from_the_field_loads_unchanged() {
    let Some(corpus) = std::env::var_os("FULLSEND_CORPUS").filter(|v| !v.is_empty()) else {
        // Not through the macros, whose output the test runner hides.
        let note = "SKIPPED a_harness_from_the_field_loads_unchanged: FULLSEND_CORPUS is not set\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    };
    let mut world = World::new();
    copy(&Path::new(&corpus).join("hello-world"), &world.path("field"));
    let dir = world.path("field").to_str().unwrap().to_owned();
    let args = ["run", "hello-world", "--dry-run", "--format", "json", "--fullsend-dir", dir.as_str()];

    // As it is, everything that is missing is named at once.
    let done = world.fullsend(&args);
    assert_eq!(done.code, 2, "{done:?}");
    for missing in [
        "agents/hello-world.md",
        "skills/hello-world-summary",
        "scripts/validate-output.sh",
        "`ANTHROPIC_VERTEX_PROJECT_ID` is not set",
        "`CLOUD_ML_REGION` is not set",
        "`GOOGLE_APPLICATION_CREDENTIALS` is not set",
    ] {
        assert!(done.stderr.contains(missing), "{missing}: {}", done.stderr);
    }

    stand_ins(&world);
    let key = world.write("home/key.json", "{\"private_key\": \"key-of-no-use\"}");
    world.env("GOOGLE_APPLICATION_CREDENTIALS", key.to_str().unwrap());
    world.env("ANTHROPIC_VERTEX_PROJECT_ID", "project-of-no-use").env("CLOUD_ML_REGION", "region-of-no-use");
    let done = world.fullsend(&args);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert!(!done.stdout.contains("-of-no-use"), "an expanded value is shown");
    let plan: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(plan["warnings"], serde_json::json!([]));
    assert_eq!(plan["plan"]["iterations"], 3);
    assert_eq!(plan["plan"]["layout"]["old_workspace"], true);
    assert_eq!(plan["plan"]["harness"]["image"], "quay.io/manonru/fullsend-exp:latest");
    let files = plan["estimate"]["files"].as_array().unwrap();
    let delivered: Vec<_> = files.iter().map(|f| f["dest"].as_str().unwrap()).collect();
    for dest in [
        "/sandbox/workspace/.env.d/gcp-vertex.env",
        "/sandbox/workspace/.gcp-credentials.json",
        "/sandbox/claude-config/agents/hello-world.md",
        "/sandbox/claude-config/skills/hello-world-summary/SKILL.md",
    ] {
        assert!(delivered.contains(&dest), "{dest} is not in {delivered:?}");
    }
}

/// The first line for editors leads to the schema that the program prints.
#[test]
fn the_hints_for_editors_lead_to_the_schemas() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let world = World::new();
    let mut hints = 0;
    for (path, bytes) in crate::support::files_below(&root.join("harnesses")) {
        let text = String::from_utf8(bytes).unwrap();
        let Some(hint) = text.strip_prefix("# yaml-language-server: $schema=") else { continue };
        let target = path.parent().unwrap().join(hint.lines().next().unwrap());
        let kept = std::fs::read_to_string(&target).unwrap_or_else(|e| panic!("{}: {e}", target.display()));
        let printed = world.fullsend(&["schema", target.file_stem().unwrap().to_str().unwrap()]).stdout;
        assert_eq!(kept, printed, "{}: bring it up to date with .ci/generated --write", target.display());
        hints += 1;
    }
    assert!(hints >= 4, "only {hints} files have a hint");
}
