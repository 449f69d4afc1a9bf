//! Bases and forges: every row of the merge tables, the three meanings of nothing, and whose mistake it was.

use super::*;
use crate::harness::model::Validation;

fn fixture(files: &[(&str, &str)]) -> Fixture {
    let f = Fixture::new();
    for (path, text) in [
        ("agents/other.md", "x\n"),
        ("scripts/t.sh", "#!/bin/sh\n"),
        ("skills/a/one/SKILL.md", "other one\n"),
        ("policies/q.yaml", "version: 1\n"),
        ("profiles/u.yaml", "id: u\n"),
        ("plugins/p1/plugin.json", "{}\n"),
        ("plugins/p2/.claude-plugin/plugin.json", "{}\n"),
        ("schemas/two.json", "{}\n"),
    ] {
        f.write(path, text);
    }
    for (path, text) in files {
        f.write(path, text);
    }
    f
}

fn forge(files: &[(&str, &str)], forge: Forge) -> Fixture {
    Fixture { forge: Some(forge), ..fixture(files) }
}

/// Everything that a base can say.
const BASE: &str = "\
agent: agents/hello.md
doc: docs/base.md
description: base
role: base-role
slug: base-slug
runtime: claude
image: base:1
policy: policies/p.yaml
model: base-model
effort: low
pre_script: scripts/s.sh
post_script: scripts/s.sh
agent_input: input
timeout_minutes: 5
sandbox_timeout_seconds: 60
readonly_repo: true
upload: {ignored: false, exclude: [target]}
skills: [skills/one, skills/two]
plugins: [plugins/p1]
providers: [p, elsewhere]
required_env: [SET]
openshell: {profiles: [profiles/t.yaml]}
host_files:
  - {src: env/a.env, dest: /tmp/workspace/a}
  - {src: env/raw.json, dest: /tmp/b}
runner_env: {OLD: base, BOTH: base}
env:
  runner: {A: base, B: base}
  sandbox: {S: base, T: base}
validation_loop: {script: scripts/s.sh, schema: schemas/ok.json, max_iterations: 3, preflight_check: test base}
";

fn over(child: &str) -> Harness {
    let f = fixture(&[("harness/base.yaml", BASE)]);
    f.good(&format!("base: base.yaml\n{child}")).harness
}

fn names(h: &Harness) -> (Vec<String>, Vec<String>, Vec<String>) {
    (
        h.skills.iter().map(|s| s.dir.strip_prefix(&h.dir).unwrap().to_string()).collect(),
        h.providers.iter().map(|p| p.name().to_owned()).collect(),
        h.profiles.iter().map(|p| p.id.clone()).collect(),
    )
}

#[test]
fn an_empty_child_is_its_base() {
    let f = fixture(&[("harness/base.yaml", BASE)]);
    let child = f.good("base: base.yaml\n");
    let base = f.good(BASE);
    let json = |h: &Harness| {
        let mut json = serde_json::to_value(h).unwrap();
        for key in ["digest", "bases"] {
            json.as_object_mut().unwrap().remove(key);
        }
        json
    };
    assert_eq!(json(&child.harness), json(&base.harness));
    let text = |loaded: &Loaded| loaded.warnings.iter().map(|w| w.message.clone()).collect::<Vec<_>>();
    assert_eq!(text(&child), text(&base));
    assert_eq!(child.harness.bases.len(), 1);
    assert_eq!(child.harness.bases[0].digest, crate::harness::source::Source::new("x", BASE).digest);
}

/// Null, empty and 0 leave what the base says; so do absent keys.
#[test]
fn nothing_is_inherited_over() {
    let h = over(
        "agent:\ndescription: ''\nrole: ~\nmodel: null\npolicy: ''\ntimeout_minutes: 0\nsandbox_timeout_seconds: ~\n\
         readonly_repo:\nskills: []\nproviders: ~\nhost_files: []\nrunner_env: {}\nenv: {runner: , sandbox: {}}\n\
         validation_loop: {}\nopenshell: {}\nupload: ~\nplugins: []\nrequired_env: []\n",
    );
    assert_eq!((h.agent_name.as_str(), h.role.as_deref()), ("hello", Some("base-role")));
    assert_eq!((h.description.as_deref(), h.model.as_deref()), (Some("base"), Some("base-model")));
    assert_eq!((h.timeout.as_secs(), h.sandbox_timeout.as_secs(), h.readonly_repo), (300, 60, true));
    assert_eq!((h.skills.len(), h.providers.len(), h.host_files.len(), h.plugins.len()), (2, 2, 2, 1));
    assert_eq!((h.runner_env.len(), h.sandbox_env.len()), (4, 2));
    assert_eq!(h.validation.unwrap().max_iterations, 3);
    assert!(!h.upload.ignored);
}

#[test]
fn a_scalar_of_the_child_wins() {
    let h = over(
        "agent: agents/other.md\ndescription: child\nrole: child-role\nslug: child-slug\nimage: child:1\n\
         policy: policies/q.yaml\nmodel: child-model\neffort: high\npre_script: scripts/t.sh\n\
         post_script: scripts/t.sh\nagent_input: env\ntimeout_minutes: 7\nsandbox_timeout_seconds: 70\n\
         readonly_repo: false\nupload: {ignored: true}\n",
    );
    let inside = |path: Option<&Utf8PathBuf>| path.unwrap().strip_prefix(&h.dir).unwrap().to_string();
    assert_eq!(h.agent_name, "other");
    assert_eq!((h.description.as_deref(), h.role.as_deref()), (Some("child"), Some("child-role")));
    assert_eq!((h.slug.as_deref(), h.image.as_deref()), (Some("child-slug"), Some("child:1")));
    assert_eq!((h.model.as_deref(), h.effort), (Some("child-model"), Some(Effort::High)));
    assert_eq!(inside(h.policy.as_ref()), "policies/q.yaml");
    assert_eq!(inside(h.pre_script.as_ref()), "scripts/t.sh");
    assert_eq!(inside(h.post_script.as_ref()), "scripts/t.sh");
    assert_eq!(inside(h.agent_input.as_ref()), "env");
    assert_eq!((h.timeout.as_secs(), h.sandbox_timeout.as_secs()), (420, 70));
    assert!(!h.readonly_repo && h.upload.ignored);
    assert_eq!(h.upload.exclude, ["target"]);
}

#[test]
fn lists_add_up() {
    let h = over(
        "skills: [skills/a/one]\nproviders: [elsewhere, third]\nplugins: [plugins/p2]\nrequired_env: [DOLLAR]\n\
         openshell: {profiles: [profiles/u.yaml, profiles/t.yaml]}\nupload: {exclude: [target, '*.o']}\n\
         host_files:\n  - {src: env/raw.json, dest: /sandbox/workspace/a}\n  - {src: env/a.env, dest: /tmp/c}\n",
    );
    // A skill and a host file take the place of their namesakes; everything else comes after the base's.
    let (skills, providers, profiles) = names(&h);
    assert_eq!(skills, ["skills/a/one", "skills/two"]);
    assert_eq!(providers, ["p", "elsewhere", "third"]);
    assert_eq!(profiles, ["t", "u"]);
    assert_eq!(h.plugins.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["p1", "p2"]);
    assert_eq!(h.upload.exclude, ["target", "*.o"]);
    let files: Vec<_> = h.host_files.iter().map(|f| (f.src.file_name().unwrap(), f.dest.as_str())).collect();
    assert_eq!(files, [("raw.json", "/sandbox/workspace/a"), ("raw.json", "/tmp/b"), ("a.env", "/tmp/c")]);
}

#[test]
fn maps_merge_key_by_key() {
    let h = over(
        "runner_env: {BOTH: child, NEW: child}\nenv: {runner: {B: child}, sandbox: {T: child, U: child}}\n",
    );
    assert_eq!(
        exposed(&h.runner_env),
        [("A", "base"), ("B", "child"), ("BOTH", "child"), ("NEW", "child"), ("OLD", "base")]
    );
    assert_eq!(exposed(&h.sandbox_env), [("S", "base"), ("T", "child"), ("U", "child")]);
}

fn loop_of(h: &Harness) -> (String, String, u32, String) {
    let Validation { script, schema, max_iterations, preflight_check, .. } = h.validation.clone().unwrap();
    let name = |path: Option<Utf8PathBuf>| path.unwrap().file_name().unwrap().to_owned();
    (name(script), name(schema), max_iterations, preflight_check.unwrap().expose().to_owned())
}

#[test]
fn the_validation_loop_merges_per_field() {
    for (child, want) in [
        ("{schema: schemas/two.json}", ("s.sh", "two.json", 3, "test base")),
        ("{script: scripts/t.sh}", ("t.sh", "ok.json", 3, "test base")),
        ("{max_iterations: 1}", ("s.sh", "ok.json", 1, "test base")),
        ("{preflight_check: test child, script: ''}", ("s.sh", "ok.json", 3, "test child")),
    ] {
        let (script, schema, max, check) = loop_of(&over(&format!("validation_loop: {child}\n")));
        assert_eq!((script.as_str(), schema.as_str(), max, check.as_str()), want, "{child}");
    }
}

#[test]
fn overrides_of_a_skill_merge_and_the_child_wins() {
    let f = fixture(&[
        (
            "harness/base.yaml",
            "agent: agents/hello.md\nskills:\n  - skills/one: {a: env/a.env, b: env/a.env, c: }\n",
        ),
        ("skills/one/b", "b\n"),
        ("skills/one/c", "c\n"),
    ]);
    let shown = |h: &Harness| -> Vec<(String, String)> {
        let name = |p: &Option<Utf8PathBuf>| p.as_ref().map_or("-", |p| p.file_name().unwrap()).to_owned();
        h.skills[0].overrides.iter().map(|(k, v)| (k.clone(), name(v))).collect()
    };
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    };
    let plain = f.good("base: base.yaml\nskills: [skills/a/one]\n").harness;
    assert_eq!(plain.skills[0].dir, f.dir.join("skills/a/one"));
    assert_eq!(shown(&plain), pairs(&[("a", "a.env"), ("b", "a.env"), ("c", "-")]));
    let child =
        f.good("base: base.yaml\nskills:\n  - skills/one: {b: , c: env/raw.json, d: env/a.env}\n").harness;
    assert_eq!(shown(&child), pairs(&[("a", "a.env"), ("b", "-"), ("c", "raw.json"), ("d", "a.env")]));
    let less = f.good("base: base.yaml\nremove: {skills.one: [a, c]}\n").harness;
    assert_eq!(shown(&less), pairs(&[("b", "a.env")]));
}

/// Harnesses of the field have this; what is dropped is at least told.
#[test]
fn namesakes_in_the_list_of_a_block_are_told() {
    let f = forge(&[], Forge::Github);
    let loaded = f.good(&format!(
        "{GOOD}skills: [skills/two]\nforge: {{github: {{skills: [skills/one, skills/a/one]}}}}\n"
    ));
    let told: Vec<_> = loaded.warnings.iter().filter(|w| w.message.contains("called `one` too")).collect();
    assert_eq!(told.len(), 1, "{:?}", loaded.warnings);
    assert_eq!(told[0].place.as_ref().unwrap().to_string().rsplit_once("harness/").unwrap().1, "h.yaml:3:27");
    assert_eq!(names(&loaded.harness).0, ["skills/two", "skills/a/one"]);
}

#[test]
fn a_child_removes_what_it_inherits() {
    let h = over(
        "remove:\n  post_script: true\n  validation_loop.preflight_check: true\n  skills: [two]\n  plugins: [p1]\n\
         \x20 providers: [elsewhere]\n  openshell.profiles: [t]\n  host_files: [/sandbox/workspace/a]\n\
         \x20 runner_env: [OLD]\n  env.runner: [A]\n  env.sandbox: [S]\n  required_env: [SET]\n  upload.exclude: [target]\n\
         env: {sandbox: {S: again}}\n",
    );
    assert!(h.post_script.is_none() && h.pre_script.is_some() && h.plugins.is_empty());
    assert!(h.validation.as_ref().is_some_and(|v| v.preflight_check.is_none() && v.script.is_some()));
    assert_eq!(names(&h), (vec!["skills/one".into()], vec!["p".into()], vec!["t".into()]));
    assert_eq!(h.host_files.iter().map(|f| f.dest.as_str()).collect::<Vec<_>>(), ["/tmp/b"]);
    assert_eq!(exposed(&h.runner_env), [("B", "base"), ("BOTH", "base")]);
    // What the child says itself stays.
    assert_eq!(exposed(&h.sandbox_env), [("S", "again"), ("T", "base")]);
    assert!(h.upload.exclude.is_empty());
    assert!(over("remove: {validation_loop: true}\n").validation.is_none());
}

#[test]
fn a_removal_of_nothing_is_told() {
    let f = fixture(&[("harness/base.yaml", "agent: agents/hello.md\nskills: [skills/one]\n")]);
    let loaded = f.good("base: base.yaml\nremove:\n  skills: [one, three]\n  trigger: true\n");
    let told: Vec<_> = loaded
        .warnings
        .iter()
        .filter(|w| w.message.contains("remove"))
        .map(|w| (w.place.as_ref().unwrap().line, w.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (3, "`remove` names `three` of `skills`, but nothing of it is inherited"),
            (4, "`remove` names `trigger`, but nothing of it is inherited"),
        ]
    );
    for (text, place, part) in [
        ("remove: [skills]\n", "harness/h.yaml:2:9", "a mapping"),
        ("remove: {skills: one}\n", "harness/h.yaml:2:18", "a list of names"),
        ("remove: {skills: false}\n", "harness/h.yaml:2:18", "a list of names"),
        ("remove: {skils: [one]}\n", "harness/h.yaml:2:10", "`skills`?"),
        ("remove: {skills: [[one]]}\n", "harness/h.yaml:2:19", "a list, not text"),
    ] {
        let problems = f.bad(format!("base: base.yaml\n{text}"));
        assert_eq!((problems.len(), problems[0].1.as_str()), (1, place), "{text}: {problems:?}");
        let said = format!("{} {}", problems[0].2.message, problems[0].2.help.clone().unwrap());
        assert!(said.contains(part), "{said}");
    }
}

/// A base is looked for from its file; all other paths start at the harness directory, whoever says them.
#[test]
fn paths_of_a_chain() {
    let f = fixture(&[
        ("harness/team/mid.yaml", "base: ../../shared/top.yaml\nmodel: mid\nskills: [skills/two]\n"),
        ("shared/top.yaml", "base: ./deep.yaml\nskills: [skills/one]\npre_script: scripts/s.sh\n"),
        ("shared/deep.yaml", "agent: agents/hello.md\nmodel: deep\nrole: deep\n"),
    ]);
    let h = f.good("base: team/mid.yaml\n").harness;
    assert_eq!((h.model.as_deref(), h.role.as_deref()), (Some("mid"), Some("deep")));
    assert_eq!(names(&h).0, ["skills/one", "skills/two"]);
    assert_eq!(h.pre_script, Some(f.dir.join("scripts/s.sh")));
    let bases: Vec<_> = h.bases.iter().map(|b| b.file.strip_prefix(&f.dir).unwrap().as_str()).collect();
    assert_eq!(bases, ["harness/team/mid.yaml", "shared/top.yaml", "shared/deep.yaml"]);
    let absolute = format!("base: {}/shared/top.yaml\n", f.dir);
    assert_eq!(f.good(&absolute).harness.role.as_deref(), Some("deep"));
}

#[test]
fn a_chain_ends_and_does_not_go_round() {
    let f = fixture(&[
        ("harness/b0.yaml", "agent: agents/hello.md\n"),
        ("harness/round.yaml", "base: back.yaml\n"),
        ("harness/back.yaml", "base: ../harness/round.yaml\n"),
        ("harness/broken.yaml", "agent: [\n"),
        ("harness/list.yaml", "- a\n"),
    ]);
    for n in 1..=5 {
        f.write(&format!("harness/b{n}.yaml"), format!("base: b{}.yaml\n", n - 1));
    }
    symlink("../../outside/secret", f.dir.join("harness/out.yaml")).unwrap();
    assert_eq!(f.good("base: b4.yaml\n").harness.bases.len(), 5);
    for (base, code, place, part) in [
        ("b5.yaml", Code::Value, "harness/b1.yaml:1:7", "longer than 5"),
        ("h.yaml", Code::Value, "harness/h.yaml:1:7", "round in a circle"),
        ("round.yaml", Code::Value, "harness/back.yaml:1:7", "round.yaml"),
        ("none.yaml", Code::FileMissing, "harness/h.yaml:1:7", "does not exist"),
        ("../../outside/secret", Code::PathEscape, "harness/h.yaml:1:7", "leads outside"),
        ("/etc/passwd", Code::PathEscape, "harness/h.yaml:1:7", "leads outside"),
        ("out.yaml", Code::PathEscape, "harness/h.yaml:1:7", "symbolic link"),
        ("https://x.test/b.yaml#sha256=00", Code::RemoteUrl, "harness/h.yaml:1:7", "digest"),
        ("https://x.test/b.yaml", Code::RemoteDenied, "harness/h.yaml:1:7", "config.yaml"),
        ("[x]", Code::YamlType, "harness/h.yaml:1:7", "not text"),
        ("broken.yaml", Code::YamlSyntax, "harness/broken.yaml:", ""),
        ("list.yaml", Code::YamlType, "harness/list.yaml:1:1", "not a mapping"),
    ] {
        let problems = f.bad(format!("base: {base}\n"));
        let found = problems.iter().find(|(c, at, _)| *c == code && at.starts_with(place));
        let (_, _, problem) = found.unwrap_or_else(|| panic!("{base}: {problems:?}"));
        assert!(problem.message.contains(part), "{base}: {}", problem.message);
    }
}

#[test]
fn a_problem_is_where_the_value_is() {
    let f = fixture(&[(
        "harness/base.yaml",
        "agent: agents/hello.md\nskils: []\nenv:\n  runner: {A: '${NOPE}'}\nmodel: a/b\npolicy: policies/gone.yaml\n\
         skills:\n  - skills/one\n  - skills/gone\nforge: {gitlab: {policy: [x]}}\n",
    )]);
    let problems =
        f.bad("base: base.yaml\nrole: Bad\nskills: [skills/missing]\nforge: {github: {}, gitlab: ~}\n");
    let got: Vec<_> = problems.iter().map(|(code, place, _)| format!("{code} {place}")).collect();
    assert_eq!(
        got,
        [
            "FS-REQUIRED harness/h.yaml:4:1",
            "FS-YAML-KEY harness/base.yaml:2:1",
            "FS-YAML-TYPE harness/base.yaml:10:26",
        ]
    );
    let f = Fixture { forge: Some(Forge::Github), ..f };
    let problems =
        f.bad("base: base.yaml\nrole: Bad\nskills: [skills/missing]\nforge: {github: {}, gitlab: ~}\n");
    let mut got: Vec<_> = problems.iter().map(|(code, place, _)| format!("{code} {place}")).collect();
    got.sort();
    assert_eq!(
        got,
        [
            "FS-ENV-UNSET harness/base.yaml:4:16",
            "FS-FILE-MISSING harness/base.yaml:6:9",
            "FS-FILE-MISSING harness/base.yaml:9:5",
            "FS-FILE-MISSING harness/h.yaml:3:10",
            "FS-VALUE harness/base.yaml:5:8",
            "FS-VALUE harness/h.yaml:2:7",
            "FS-YAML-KEY harness/base.yaml:2:1",
            "FS-YAML-TYPE harness/base.yaml:10:26",
        ]
    );
}

/// What every forge's block may say, over the same top level.
#[test]
fn a_block_goes_over_the_top_level() {
    let block = "forge:
  github:
    pre_script: scripts/t.sh
    post_script: scripts/t.sh
    policy: policies/q.yaml
    skills: [skills/a/one]
    providers: [third]
    required_env: [OUTSIDE]
    openshell: {profiles: [profiles/u.yaml]}
    host_files: [{src: env/raw.json, dest: /tmp/workspace/a}, {src: env/a.env, dest: /tmp/c}]
    validation_loop: {max_iterations: 9}
    runner_env: {OLD: block}
    env: {runner: {B: block}, sandbox: {S: block, U: block}}
  gitlab: ~
";
    let text = format!("{BASE}{block}");
    let h = forge(&[], Forge::Github).good(&text).harness;
    assert_eq!(h.forge, Some(Forge::Github));
    assert_eq!(h.policy, Some(h.dir.join("policies/q.yaml")));
    assert_eq!(h.pre_script, Some(h.dir.join("scripts/t.sh")));
    assert_eq!(h.post_script, Some(h.dir.join("scripts/t.sh")));
    let (skills, providers, profiles) = names(&h);
    assert_eq!(skills, ["skills/a/one", "skills/two"]);
    assert_eq!(providers, ["p", "elsewhere", "third"]);
    assert_eq!(profiles, ["t", "u"]);
    let dests: Vec<_> = h.host_files.iter().map(|f| (f.src.file_name().unwrap(), f.dest.as_str())).collect();
    assert_eq!(dests, [("raw.json", "/tmp/workspace/a"), ("raw.json", "/tmp/b"), ("a.env", "/tmp/c")]);
    assert_eq!(loop_of(&h), ("s.sh".into(), "ok.json".into(), 9, "test base".into()));
    assert_eq!(exposed(&h.runner_env), [("A", "base"), ("B", "block"), ("BOTH", "base"), ("OLD", "block")]);
    assert_eq!(exposed(&h.sandbox_env), [("S", "block"), ("T", "base"), ("U", "block")]);
    // A null block overrides nothing.
    let null = forge(&[], Forge::Gitlab).good(&text).harness;
    assert_eq!(null.policy, Some(null.dir.join("policies/p.yaml")));
    assert_eq!(null.runner_env["OLD"].expose(), "base");
}

#[test]
fn the_forge_is_asked_for_or_found() {
    let text = "agent: agents/hello.md\nforge:\n  github: {runner_env: {F: hub}}\n  gitlab: {runner_env: {F: lab}}\n";
    let mut f = fixture(&[]);
    let got = |f: &Fixture| f.good(text).harness.runner_env["F"].expose().to_owned();
    let problems = f.bad(text);
    assert_eq!((problems[0].0, problems[0].1.as_str()), (Code::Required, "harness/h.yaml:2:1"));
    assert!(problems[0].2.message.ends_with("github, gitlab"), "{}", problems[0].2.message);
    // config.yaml, then the CI environment, then the command line; the later wins.
    f.write("config.yaml", "defaults: {forge: gitlab}\n");
    assert_eq!(got(&f), "lab");
    f.env.insert("GITHUB_ACTIONS".into(), "true".into());
    assert_eq!(got(&f), "hub");
    f.forge = Some(Forge::Gitlab);
    assert_eq!(got(&f), "lab");
    f.forge = Some(Forge::Jira);
    let problem = &f.bad(text)[0].2;
    assert!(problem.message.contains("no block for jira, only for github, gitlab"), "{}", problem.message);
    f.forge = None;
    f.env.remove("GITHUB_ACTIONS");
    f.env.insert("GITLAB_CI".into(), "true".into());
    f.write("config.yaml", "forge: github\n");
    assert_eq!(got(&f), "lab");
    // Without blocks the forge does not matter.
    assert!(f.good(GOOD).harness.runner_env.is_empty());
    assert!(f.good("agent: agents/hello.md\nforge: {}\n").harness.runner_env.is_empty());
}

#[test]
fn blocks_of_base_and_child_merge() {
    let base = "agent: agents/hello.md\nproviders: [p]\nforge:\n  github:\n    providers: [q]\n    policy: policies/p.yaml\n\
                \x20   env: {sandbox: {A: base, B: base}}\n  gitlab: {policy: policies/q.yaml}\n";
    let f = forge(&[("harness/base.yaml", base)], Forge::Github);
    let child =
        "base: base.yaml\nforge:\n  github: {providers: [r], env: {sandbox: {B: child}}}\n  jira: {}\n";
    let h = f.good(child).harness;
    assert_eq!(names(&h).1, ["p", "q", "r"]);
    assert_eq!(h.policy, Some(h.dir.join("policies/p.yaml")));
    assert_eq!(exposed(&h.sandbox_env), [("A", "base"), ("B", "child")]);
    // A block removes from the block it inherits and from the top level alike.
    let less =
        "base: base.yaml\nforge:\n  github: {remove: {providers: [p, q], policy: true}, providers: [r]}\n";
    let loaded = f.good(less);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!((names(&loaded.harness).1, loaded.harness.policy), (vec!["r".to_owned()], None));
    // A null block of the child removes the base's; an empty one leaves it.
    assert!(f.good("base: base.yaml\nforge: {github: {}}\n").harness.policy.is_some());
    let gone = f.bad("base: base.yaml\nforge: {github: ~}\n");
    assert!(gone[0].2.message.contains("no block for github, only for gitlab"), "{}", gone[0].2.message);
}

#[test]
fn mistakes_in_blocks_are_told_whichever_forge_is_chosen() {
    for chosen in [Forge::Github, Forge::Gitlab] {
        let f = forge(&[], chosen);
        for (text, place, part) in [
            ("forge: [github]\n", "harness/h.yaml:2:8", "a mapping"),
            ("forge: {github: [], gitlab: {}}\n", "harness/h.yaml:2:17", "a mapping"),
            ("forge: {github: {}, gitlab: {}, gihub: {}}\n", "harness/h.yaml:2:33", "`github`?"),
            ("forge: {gitlab: {}, github: {model: x}}\n", "harness/h.yaml:2:30", "the top level"),
            ("forge: {gitlab: {}, github: {polciy: x}}\n", "harness/h.yaml:2:30", "`policy`?"),
            ("forge: {gitlab: {}, github: {skills: x}}\n", "harness/h.yaml:2:38", "a list"),
        ] {
            let problems = f.bad(format!("{GOOD}{text}"));
            let (_, at, problem) = &problems[0];
            let said = format!("{} {}", problem.message, problem.help.clone().unwrap_or_default());
            assert!(at == place && said.contains(part), "{text}: {at} {said}");
        }
    }
}
