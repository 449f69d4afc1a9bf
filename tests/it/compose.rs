//! Harnesses in several parts through the real binary: directories of the field, bases, forges, the registry.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harnesses::copy;
use crate::support::World;

/// The directory of the corpus, or a visible note that there is none.
pub fn corpus(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os("FULLSEND_CORPUS").filter(|v| !v.is_empty());
    if found.is_none() {
        // Not through the macros, whose output the test runner hides.
        let note = format!("SKIPPED {test}: FULLSEND_CORPUS is not set\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
    }
    found.map(PathBuf::from)
}

/// Texts of a directory's harness files.
fn harnesses(dir: &Path) -> Vec<(String, String)> {
    let mut out: Vec<_> = std::fs::read_dir(dir.join("harness"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    out.sort();
    out
}

/// Empty files for what the corpus names and does not bring.
fn stand_in(dir: &Path) {
    for (_, text) in harnesses(dir) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let Some(word) = line.split_whitespace().last() else { continue };
            let file = match word.split('/').next() {
                Some("agents" | "scripts" | "policies") => dir.join(word),
                Some("skills") => dir.join(word).join("SKILL.md"),
                Some("plugins") => dir.join(word).join("plugin.json"),
                _ => continue,
            };
            if !file.exists() {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "").unwrap();
            }
        }
    }
}

/// The variables that the texts below a directory refer to.
fn variables(dir: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            variables(&entry, out);
        } else if let Ok(text) = std::fs::read_to_string(&entry) {
            out.extend(text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())));
        }
    }
}

/// A world with a copy of the corpus and every variable set.
fn field(corpus: &Path) -> (World, Vec<PathBuf>) {
    let mut world = World::new();
    let mut names = Vec::new();
    let mut dirs = Vec::new();
    for dir in ["agents", "hello-world"] {
        let to = world.path(dir);
        copy(&corpus.join(dir), &to);
        stand_in(&to);
        variables(&to, &mut names);
        dirs.push(to);
    }
    let key = world.write("home/key.json", "{}");
    names.sort();
    names.dedup();
    for name in names.iter().filter(|name| !name.ends_with("_FILE")) {
        world.env(name, format!("value-of-{name}"));
    }
    world.env("GOOGLE_APPLICATION_CREDENTIALS", key.to_str().unwrap());
    (world, dirs)
}

fn plan(world: &World, dir: &Path, agent: &str, more: &[&str]) -> Value {
    let dir = dir.to_str().unwrap();
    let args = [&["run", agent, "--dry-run", "--format", "json", "--fullsend-dir", dir], more].concat();
    let done = world.fullsend(&args);
    assert_eq!(done.code, 0, "{args:?}\n{}", done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

const FORGES: [&str; 3] = ["github", "gitlab", "jira"];

#[test]
fn every_agent_of_the_field_has_a_plan_for_every_forge() {
    let Some(corpus) = corpus("every_agent_of_the_field_has_a_plan_for_every_forge") else { return };
    let (world, dirs) = field(&corpus);
    let mut plans = 0;
    for dir in &dirs {
        for (agent, text) in harnesses(dir) {
            let named: Vec<_> =
                FORGES.iter().filter(|forge| text.contains(&format!("\n  {forge}:"))).collect();
            for forge in &named {
                let plan = plan(&world, dir, &agent, &["--forge", forge]);
                assert_eq!(plan["plan"]["harness"]["forge"], **forge, "{agent}");
                plans += 1;
            }
            if named.is_empty() {
                plan(&world, dir, &agent, &[]);
                plans += 1;
            }
        }
    }
    assert!(plans >= 8, "only {plans} plans");
}

#[test]
fn no_directory_of_the_field_has_an_error() {
    let Some(corpus) = corpus("no_directory_of_the_field_has_an_error") else { return };
    let (_kept, dirs) = field(&corpus);
    // Validating needs no variable, so this is another world.
    let world = World::new();
    for dir in dirs {
        let args =
            ["validate", "--forge", "all", "--format", "json", "--fullsend-dir", dir.to_str().unwrap()];
        let done = world.fullsend(&args);
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((done.code, &report["errors"]), (0, &json!(0)), "{}", done.stdout);
        assert!(!report["agents"].as_array().unwrap().is_empty());
    }
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|item| item[key].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

fn providers(harness: &Value) -> Vec<String> {
    let list = harness["providers"].as_array().unwrap().iter();
    list.map(|p| p["defined"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Rule by rule: what a block replaces, adds and leaves.
#[test]
fn the_code_agent_of_the_field_resolves_for_github_and_gitlab() {
    let Some(corpus) = corpus("the_code_agent_of_the_field_resolves_for_github_and_gitlab") else { return };
    let (world, dirs) = field(&corpus);
    let of = |forge: &str| plan(&world, &dirs[0], "code", &["--forge", forge])["plan"]["harness"].clone();
    let (hub, lab) = (of("github"), of("gitlab"));
    for harness in [&hub, &lab] {
        // Scalars without a word of the block.
        assert_eq!((&harness["model"], &harness["role"]), (&json!("opus"), &json!("coder")));
        assert_eq!(harness["slug"], "fullsend-ai-coder");
        assert_eq!(harness["timeout_seconds"], 35 * 60);
        assert!(harness["pre_script"].as_str().unwrap().ends_with("agents/scripts/pre-code.sh"));
        assert_eq!(names(&harness["plugins"], "dir"), ["gopls-lsp"]);
        assert_eq!(harness["validation"]["max_iterations"], 2);
        assert!(harness["validation"]["schema"].as_str().unwrap().ends_with("code-result.schema.json"));
        // Host files in the order of the lists; an optional one without its variable is absent.
        assert_eq!(
            names(&harness["host_files"], "dest"),
            ["gcp-vertex.env", "ssl-cainfo.env", ".gcp-credentials.json", "forge-code.env"]
        );
        // Environments merge key by key.
        assert_eq!(harness["runner_env"].as_object().unwrap().len(), 8);
        assert_eq!(harness["sandbox_env"].as_object().unwrap().len(), 12);
    }
    // A scalar of the block wins.
    assert!(hub["policy"].as_str().unwrap().ends_with("policies/base.yaml"));
    assert!(lab["policy"].as_str().unwrap().ends_with("policies/gitlab/code.yaml"));
    // Lists go on.
    assert_eq!(names(&hub["skills"], "name"), ["code-implementation", "github-forge"]);
    assert_eq!(names(&lab["skills"], "name"), ["code-implementation", "gitlab-forge"]);
    assert_eq!(providers(&hub), ["vertex-ai", "package-registries", "gitleaks", "github-code"]);
    assert_eq!(providers(&lab), ["vertex-ai", "package-registries", "gitleaks"]);
    let ids = |h: &Value| names(&h["profiles"], "id");
    assert_eq!(ids(&hub), ["fullsend-vertex-ai", "fullsend-gitleaks", "fullsend-github-code"]);
    assert_eq!(ids(&lab), ["fullsend-vertex-ai", "fullsend-gitleaks"]);
    // The block's own files and names.
    let from = |h: &Value| h["host_files"][3]["src"].as_str().unwrap().to_owned();
    assert!(from(&hub).ends_with("env/github/code.env") && from(&lab).ends_with("env/gitlab/code.env"));
    let has = |h: &Value, map: &str, key: &str| h[map].get(key).is_some();
    for map in ["runner_env", "sandbox_env"] {
        assert!(has(&hub, map, "GH_TOKEN") && !has(&hub, map, "GITLAB_TOKEN"));
        assert!(has(&lab, map, "GITLAB_TOKEN") && !has(&lab, map, "GH_TOKEN"));
    }
    assert!(!hub.to_string().contains("value-of-"), "an expanded value is shown");
}

#[test]
fn the_forge_comes_from_ci_and_a_missing_choice_is_named() {
    let mut world = World::new();
    world.harness(
        "agent: agents/work\nruntime: script\nforge:\n  github: {env: {sandbox: {F: hub}}}\n  gitlab: {env: {sandbox: {F: lab}}}\n",
    );
    let run = |world: &World, more: &[&str]| {
        let dir = world.path("h");
        let dir = dir.to_str().unwrap();
        let args = [&["run", "work", "--dry-run", "--format", "json", "--fullsend-dir", dir], more].concat();
        world.fullsend(&args)
    };
    let done = run(&world, &[]);
    assert_eq!(done.code, 2);
    for part in ["FS-REQUIRED", "no forge was chosen", "github, gitlab", "--forge github", "work.yaml:3:1"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    let forge = |done: &crate::support::Done| -> Value {
        assert_eq!(done.code, 0, "{}", done.stderr);
        serde_json::from_str::<Value>(&done.stdout).unwrap()["plan"]["harness"]["forge"].clone()
    };
    assert_eq!(forge(&run(&world, &["--forge", "gitlab"])), "gitlab");
    world.env("GITLAB_CI", "true");
    assert_eq!(forge(&run(&world, &[])), "gitlab");
    assert_eq!(forge(&run(&world, &["--forge", "github"])), "github");
}

#[test]
fn plugins_and_replaced_files_of_skills_are_delivered() {
    let world = World::new();
    world.write("h/harness/base.yaml", "agent: agents/code.md\nskills: [skills/s]\nplugins: [plugins/lsp]\n");
    world.harness("base: base.yaml\nskills:\n  - skills/s: {extra.md: notes/mine.md, old.md: }\n");
    for (path, text) in [
        ("h/agents/code.md", "---\nname: code\ndescription: d\n---\nx\n"),
        ("h/skills/s/SKILL.md", "s\n"),
        ("h/skills/s/old.md", "old\n"),
        ("h/skills/s/extra.md", "theirs\n"),
        ("h/notes/mine.md", "mine, and longer\n"),
        ("h/plugins/lsp/plugin.json", "{}\n"),
        ("h/plugins/lsp/.lsp.json", "{}\n"),
    ] {
        world.write(path, text);
    }
    let plan = plan(&world, &world.path("h"), "work", &[]);
    let command = plan["plan"]["agent_command"].as_str().unwrap();
    assert!(command.contains(" --plugin-dir /sandbox/claude-config/plugins/lsp "), "{command}");
    let files: Vec<_> = plan["estimate"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| {
            Some((f["dest"].as_str()?.strip_prefix("/sandbox/claude-config/")?, f["size"].as_u64()?))
        })
        .filter(|(dest, _)| !dest.starts_with("agents/"))
        .collect();
    assert_eq!(
        files,
        [
            ("skills/s/SKILL.md", 2),
            ("skills/s/extra.md", 17),
            ("plugins/lsp/.lsp.json", 3),
            ("plugins/lsp/plugin.json", 3)
        ]
    );
}

#[test]
fn the_registry_is_listed_and_obeyed() {
    let world = World::new();
    world.write("h/harness/off.yaml", "agent: agents/work\ndescription: Switched off\n");
    world.write("h/team/more.yaml", "agent: agents/work\ndescription: More work\n");
    world.write(
        "h/config.yaml",
        "agents:\n  - team/more.yaml\n  - {source: harness/off.yaml, enabled: false}\n  - harness/gone.yaml\n",
    );
    let dir = world.path("h").to_str().unwrap().to_owned();
    let list = world.fullsend(&["list", "--fullsend-dir", &dir]);
    let lines: Vec<_> = list.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", list.stdout);
    assert!(lines[0].starts_with("gone  (cannot be used:"), "{}", lines[0]);
    assert_eq!(lines[1], "more  More work");
    assert!(lines[2].starts_with("off   (cannot be used: the agent `off` is switched off"), "{}", lines[2]);
    let run = |agent: &str| world.fullsend(&["run", agent, "--dry-run", "--fullsend-dir", &dir]);
    assert_eq!(run("more").code, 0);
    let off = run("off");
    assert!(off.code == 2 && off.stderr.contains("config.yaml says `enabled: false`"), "{}", off.stderr);
    let unknown = run("mroe");
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean `more`?"), "{}", unknown.stderr);
}

#[test]
fn show_names_the_place_of_every_value() {
    let world = World::new();
    world.write(
        "h/shared/base.yaml",
        "agent: agents/work\nruntime: script\nenv:\n  sandbox: {A: base, MY_TOKEN: s3cr3t-s3cr3t, B: '${X}'}\n",
    );
    world.harness("base: ../shared/base.yaml\nforge:\n  github:\n    env:\n      sandbox: {A: block}\n");
    let dir = world.path("h").to_str().unwrap().to_owned();
    let done = world.fullsend(&["show", "work", "--forge", "github", "--fullsend-dir", &dir]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(!done.stdout.contains("s3cr3t"), "{}", done.stdout);
    for (line, place) in [
        ("agent: agents/work", "shared/base.yaml:1"),
        ("    A: block", "harness/work.yaml:5"),
        ("    MY_TOKEN: \"***\"", "shared/base.yaml:4"),
        ("    B: ${X}", "shared/base.yaml:4"),
        ("timeout_minutes: 30", "default"),
    ] {
        let found = done.stdout.lines().find(|l| l.split("  #").next().unwrap().trim_end() == line);
        assert!(found.is_some_and(|l| l.ends_with(place)), "{line}: {}", done.stdout);
    }
    let error = world.fullsend(&["show", "work", "--fullsend-dir", &dir]);
    assert!(error.code == 2 && error.stderr.contains("no forge was chosen"), "{}", error.stderr);
}
