//! `fullsend validate`: all mistakes of a directory at once, in each form.

use serde_json::Value;

use crate::support::{Done, World};

fn validate(world: &World, more: &[&str]) -> Done {
    let dir = world.path("h").to_str().unwrap().to_owned();
    world.fullsend(&[&["validate", "--fullsend-dir", &dir], more].concat())
}

/// Mistakes in files that have nothing to do with each other.
fn broken() -> World {
    let world = World::new();
    for (path, text) in [
        ("h/harness/work.yaml", "agent: agents/work\ntimout_minutes: 3\nenv: {sandbox: {A: '${UNSET}'}}\n"),
        (
            "h/harness/forges.yaml",
            "agent: agents/work\nforge:\n  github: {policy: no.yaml}\n  jira: {skills: x}\n",
        ),
        ("h/harness/guards.yaml", "agent: agents/work\noverlays: [{when: 'true', policy: gone.yaml}]\n"),
        ("h/harness/script.yaml", "agent: agents/def.md\npost_script: scripts/bare\nunknown_thing: 1\n"),
        ("h/agents/def.md", "---\nname: [\n---\n"),
        ("h/scripts/bare", "echo\n"),
        ("h/config.yaml", "agents: [{source: harness/work.yaml, enbled: true}]\n"),
        ("h/providers/p.yaml", "name: p\ncredentials: {PATH: x}\n"),
        ("h/profiles/p.yaml", "name: no id\n"),
        ("h/policies/deep/p.yaml", "rules: []\n"),
        ("h/schemas/s.json", "{\"type\": 7}\n"),
        ("h/harness/skilled.yaml", "agent: agents/work\nskills: [skills/s]\nsecurity: {fail_mode: close}\n"),
        ("h/skills/s/SKILL.md", "---\nname: s\n---\nText.\n"),
        ("h/policies/o.yaml", "version: 1\nfilesystem: {}\nlandlock: {compatibility: best}\n"),
        ("h/profiles/o.yaml", "id: o\nendpoints: [{host: x, port: 99999}]\n"),
        ("h/env/deep/x.env", "# note\nA=${B:-c}\nC=`echo ${D}`\n"),
    ] {
        world.write(path, text);
    }
    world
}

#[test]
fn every_mistake_of_every_file_is_shown() {
    let world = broken();
    let done = validate(&world, &["--forge", "all", "--format", "json"]);
    assert_eq!((done.code, done.stderr.as_str()), (2, ""));
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let root = format!("{}/", world.path("h").display());
    let got: Vec<_> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| {
            assert!(p["message"].is_string() && p["help"].is_string() || p["code"] == "FS-REQUIRED", "{p}");
            let file = p["file"].as_str().unwrap().replace(&root, "");
            let file = file.rsplit_once("/h/").map_or(file.as_str(), |(_, f)| f).to_owned();
            format!(
                "{} {} {file}:{}",
                p["severity"].as_str().unwrap(),
                p["code"].as_str().unwrap(),
                p["line"].as_u64().unwrap_or(0)
            )
        })
        .collect();
    assert_eq!(
        got,
        [
            "warning FS-YAML-SYNTAX agents/def.md:2",
            "error FS-YAML-KEY config.yaml:1",
            "warning FS-VALUE env/deep/x.env:2",
            "warning FS-VALUE env/deep/x.env:3",
            "error FS-FILE-MISSING harness/forges.yaml:3",
            "error FS-YAML-TYPE harness/forges.yaml:4",
            "error FS-FILE-MISSING harness/guards.yaml:2",
            "warning FS-YAML-KEY harness/script.yaml:3",
            "error FS-VALUE harness/skilled.yaml:3",
            "error FS-YAML-KEY harness/work.yaml:2",
            "error FS-REQUIRED policies/deep/p.yaml:0",
            "warning FS-YAML-KEY policies/deep/p.yaml:1",
            "warning FS-YAML-KEY policies/o.yaml:2",
            "warning FS-VALUE policies/o.yaml:3",
            "warning FS-VALUE profiles/o.yaml:2",
            "error FS-REQUIRED profiles/p.yaml:0",
            "error FS-REQUIRED providers/p.yaml:1",
            "error FS-VALUE providers/p.yaml:2",
            "error FS-VALUE schemas/s.json:0",
            "warning FS-FILE-TYPE scripts/bare:0",
            "warning FS-REQUIRED skills/s/SKILL.md:1",
        ]
    );
}

#[test]
fn one_agent_one_forge_and_strictness() {
    let world = broken();
    world.write("h/config.yaml", "");
    let count = |more: &[&str]| {
        let done = validate(&world, &[more, &["--format", "json"]].concat());
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        (done.code, report["errors"].as_u64().unwrap(), report["warnings"].as_u64().unwrap())
    };
    // A wrong type in a block is told whichever forge is asked for, a missing file only where it is used.
    assert_eq!(count(&["forges", "--forge", "github"]), (2, 2, 0));
    assert_eq!(count(&["forges", "--forge", "jira"]), (2, 1, 0));
    assert_eq!(count(&["script"]), (0, 0, 3));
    assert_eq!(count(&["script", "--strict"]), (2, 3, 0));
    assert_eq!(count(&["nothing-there"]), (2, 1, 0));
    assert_eq!(count(&["script", "work"]), (2, 1, 3));
}

#[test]
fn every_form_says_the_same() {
    let world = broken();
    let text = validate(&world, &["work"]);
    assert_eq!(text.code, 2);
    for part in ["timout_minutes", "did you mean `timeout_minutes`?", "1 agent: 2 errors, 0 warnings"] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    let sarif: Value =
        serde_json::from_str(&validate(&world, &["work", "--format", "sarif"]).stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 2);
    let github = validate(&world, &["work", "--format", "github"]).stdout;
    assert_eq!(github.lines().filter(|l| l.starts_with("::error file=")).count(), 2, "{github}");
    assert!(github.contains("harness/work.yaml,line=2,col=1,title=FS-YAML-KEY::"), "{github}");
}

/// What code scanners need of SARIF 2.1.0 (OASIS).
#[test]
fn sarif_has_the_shape_that_its_standard_asks_for() {
    let world = broken();
    let done = validate(&world, &["--forge", "all", "--format", "sarif"]);
    let sarif: Value = serde_json::from_str(&done.stdout).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../fixtures/sarif.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let wrong: Vec<_> =
        validator.iter_errors(&sarif).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(wrong, [""; 0]);
    let run = &sarif["runs"][0];
    let rules: Vec<_> = run["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|r| &r["id"]).collect();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 20 && results.iter().all(|r| rules.contains(&&r["ruleId"])));
}

#[test]
fn a_good_directory_is_good() {
    let world = World::new();
    let done = validate(&world, &[]);
    assert_eq!(
        (done.code, done.stdout.as_str(), done.stderr.as_str()),
        (0, "1 agent: 0 errors, 0 warnings\n", "")
    );
    let none = world.fullsend(&["validate", "--fullsend-dir", "nowhere"]);
    assert!(none.code == 2 && none.stderr.contains("FS-DIR-MISSING"), "{none:?}");
}

#[test]
fn what_only_looks_like_a_file_is_told() {
    let world = World::new();
    std::fs::create_dir(world.path("h/harness/dir.yaml")).unwrap();
    std::fs::create_dir_all(world.path("h/providers/p.yml")).unwrap();
    std::os::unix::fs::symlink("/nope/away", world.path("h/harness/link.yaml")).unwrap();
    let fifo = world.path("h/harness/pipe.yaml");
    let made = world.finish(world.command("mkfifo", &[fifo.to_str().unwrap()], &world.repo()));
    assert_eq!(made.code, 0, "{made:?}");
    let dir = world.path("h");
    let done = world.fullsend(&["validate", "--fullsend-dir", dir.to_str().unwrap()]);
    assert_eq!(done.code, 2, "{done:?}");
    for part in [
        "dir.yaml` is a directory, not a file",
        "p.yml` is a directory, not a file",
        "pipe.yaml` is not a regular file",
        "link.yaml` cannot be read: it does not exist",
        "put a file in its place, or remove it",
        "1 agent: 4 errors, 0 warnings",
    ] {
        assert!(done.stdout.contains(part), "no {part:?} in {done:?}");
    }
}
