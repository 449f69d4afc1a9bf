//! `config.yaml`: the registry, defaults, image names; and required variables, plugins, keys without effect.

use super::*;

fn fixture(config: &str) -> Fixture {
    let f = Fixture::new();
    f.write("config.yaml", config);
    f.write("harness/h.yaml", GOOD);
    f.write("harness/other.yaml", "agent: agents/hello.md\ndescription: other\n");
    f.write("team/extra.yaml", "agent: agents/hello.md\ndescription: extra\n");
    symlink("../../outside/secret", f.dir.join("team/out.yaml")).unwrap();
    f
}

fn load_agent(f: &Fixture, name: &str) -> Result<Loaded> {
    load(&Request { agent: name.into(), ..f.request() })
}

#[test]
fn the_registry_names_agents() {
    let f = fixture(
        "version: '1'\nallowed_remote_resources: []\nagents:\n  - harness/other.yaml\n  - source: team/extra.yaml\n\
         \x20 - {name: Fixer, source: team/extra.yaml}\n  - {name: fixer, source: harness/other.yaml}\n\
         \x20 - {name: off, source: harness/h.yaml, enabled: false}\n",
    );
    let what = |name: &str| load_agent(&f, name).map(|l| l.harness.description.unwrap_or_default());
    assert_eq!(what("other").unwrap(), "other");
    assert_eq!(what("extra").unwrap(), "extra");
    // The last of two entries counts, and upper and lower case are the same.
    assert_eq!((what("fixer").unwrap(), what("FIXER").unwrap()), ("other".into(), "other".into()));
    // What the registry does not name goes by its file.
    assert_eq!(what("h").unwrap(), "");
    let error = load_agent(&f, "off").unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::AgentUnknown, "the agent `off` is switched off"));
    let error = load_agent(&f, "extar").unwrap_err();
    assert_eq!(error.help_text(), "did you mean `extra`?");
}

#[test]
fn a_switched_off_agent_is_not_found_by_its_file_either() {
    let f = fixture("agents:\n  - {source: harness/other.yaml, enabled: false}\n");
    assert_eq!(load_agent(&f, "other").unwrap_err().code(), Code::AgentUnknown);
    let f = fixture("agents:\n  - {source: harness/other.yaml, enabled: false}\n  - harness/other.yaml\n");
    assert!(load_agent(&f, "other").is_ok());
}

#[test]
fn listing_shows_the_registry_too() {
    let f = fixture(
        "agents: [team/extra.yaml, {name: renamed, source: harness/other.yaml}, harness/gone.yaml, \
         {name: off, source: harness/h.yaml, enabled: false}, {name: out, source: team/out.yaml}, \
         {name: far, source: 'https://x.test/a.yaml#sha256=00'}]\n",
    );
    let agents = crate::harness::list_agents(&f.dir).unwrap();
    let got: Vec<_> = agents
        .iter()
        .map(|a| (a.name.as_str(), a.description.as_deref(), a.problem.as_ref().map(|p| p.code)))
        .collect();
    assert_eq!(
        got,
        [
            ("extra", Some("extra"), None),
            ("far", None, Some(Code::RemoteUrl)),
            ("gone", None, Some(Code::FileMissing)),
            ("off", None, Some(Code::AgentUnknown)),
            ("out", None, Some(Code::PathEscape)),
            ("renamed", Some("other"), None),
        ]
    );
}

#[test]
fn mistakes_of_the_configuration() {
    for (config, code, place, part) in [
        ("- a\n", Code::YamlType, "config.yaml:1:1", "mapping"),
        ("agents: x\n", Code::YamlType, "config.yaml:1:9", "a list"),
        ("agents: [{role: fix}]\n", Code::Required, "config.yaml:1:11", "older form"),
        ("agents: [{name: a}]\n", Code::Required, "config.yaml:1:11", "source"),
        ("agents: [{source: a.yaml, enbled: no}]\n", Code::YamlKey, "config.yaml:1:27", "`enabled`?"),
        ("agents: [{source: a.yaml, enabled: 'no'}]\n", Code::YamlType, "config.yaml:1:36", "without quotes"),
        ("agents: ['a b.yaml']\n", Code::Value, "config.yaml:1:10", "agent name"),
        ("agnets: []\n", Code::YamlKey, "config.yaml:1:1", "`agents`?"),
        ("enabled: true\n", Code::YamlKey, "config.yaml:1:1", "an entry of `agents`"),
        ("forge: gihub\n", Code::Value, "config.yaml:1:8", "`github`?"),
        ("defaults: {forge: svn}\n", Code::Value, "config.yaml:1:19", "github, gitlab and jira"),
        ("runtime: cluade\n", Code::Value, "config.yaml:1:10", "`claude`?"),
        ("images: {py: python}\n", Code::Value, "config.yaml:1:14", "full image"),
        ("images: {'a/b': x:1}\n", Code::Value, "config.yaml:1:10", "short name"),
        ("image_policy: x\n", Code::YamlType, "config.yaml:1:15", "a mapping"),
        ("image_policy: {digest: requird}\n", Code::Value, "config.yaml:1:24", "`required`?"),
        ("image_policy: {signature: yes}\n", Code::Value, "config.yaml:1:27", "if-available"),
        ("image_policy: {signature: required}\n", Code::Required, "config.yaml:1:1", "signers"),
        ("image_policy: {signer: []}\n", Code::YamlKey, "config.yaml:1:16", "`signers`?"),
        ("image_policy: {signers: [{identity: a}]}\n", Code::Required, "config.yaml:1:27", "issuer"),
        ("image_policy: {signers: [{issuer: a}]}\n", Code::Value, "config.yaml:1:27", "identity_regexp"),
        (
            "image_policy: {signers: [{identity_regexp: a, issuer: b}]}\n",
            Code::Value,
            "config.yaml:1:44",
            "`^`",
        ),
        ("image_policy: {signers: [{key: ../k.pub}]}\n", Code::PathEscape, "config.yaml:1:32", "beside"),
        ("image_policy: {signers: [{key: k.pub}]}\n", Code::FileMissing, "config.yaml:1:32", "relative"),
        ("allowed_remote_resources: x\n", Code::YamlType, "config.yaml:1:27", "a list"),
    ] {
        let f = fixture(config);
        let problems = f.bad(GOOD);
        assert_eq!((problems.len(), problems[0].0, problems[0].1.as_str()), (1, code, place), "{config}");
        let said = format!("{} {}", problems[0].2.message, problems[0].2.help.clone().unwrap_or_default());
        assert!(said.contains(part), "{config}: {said}");
    }
    assert!(fixture("").good(GOOD).warnings.is_empty());
    let warned = fixture("something_of_another_program: {a: 1}\n").good(GOOD).warnings;
    assert_eq!(warned.len(), 1);
}

#[test]
fn short_names_of_images() {
    let mut f = fixture("images: {python: registry.test/py@sha256:00, mine: mine:2}\n");
    let image = |f: &Fixture, name: &str| f.good(&format!("{GOOD}image: {name}\n")).harness.image.unwrap();
    assert_eq!(image(&f, "python"), "registry.test/py@sha256:00");
    assert_eq!(image(&f, "mine"), "mine:2");
    for whole in ["python:3", "./dir", "a/b", "x.test/i@sha256:00"] {
        assert_eq!(image(&f, whole), whole);
    }
    for (name, code, part) in [
        ("java", Code::Value, "image_registry: REGISTRY"),
        ("pyhton", Code::Value, "`python`?"),
        ("zzz", Code::Value, "mine, python, golang, java, node, python, sandbox"),
    ] {
        let problems = f.bad(format!("{GOOD}image: {name}\n"));
        assert_eq!((problems[0].0, problems[0].1.as_str()), (code, "harness/h.yaml:2:8"), "{name}");
        assert!(problems[0].2.help.as_ref().unwrap().contains(part), "{:?}", problems[0].2.help);
    }
    f.overrides.image = Some("mine".into());
    assert_eq!(image(&f, "zzz"), "mine:2");
}

#[test]
fn built_in_images_are_in_the_registry_that_is_named() {
    let f = fixture("image_registry: registry.test:5000/team/\nimages: {node: mine:2}\n");
    let image = |f: &Fixture, name: &str| f.good(&format!("{GOOD}image: {name}\n")).harness.image.unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(image(&f, "python"), format!("registry.test:5000/team/fullsend-python:{version}"));
    assert_eq!(image(&f, "sandbox"), format!("registry.test:5000/team/fullsend-sandbox:{version}"));
    assert_eq!(image(&f, "node"), "mine:2");
    let f = fixture("image_registry: registry.test\nimage_tag: nightly\n");
    assert_eq!(image(&f, "java"), "registry.test/fullsend-java:nightly");
    for bad in ["image_registry: a b", "image_registry: x@sha256:00", "image_tag: a/b"] {
        let problems = fixture(&format!("{bad}\n")).bad(GOOD);
        assert_eq!(problems[0].0, Code::Value, "{bad}");
    }
}

#[test]
fn limits_of_the_configuration_are_for_harnesses_that_say_nothing() {
    let f = fixture("defaults: {ttl: 2h, labels: {team: core, cost: a}, resources: {cpu: 2, memory: 4Gi}}\n");
    let plain = f.good(GOOD).harness;
    assert_eq!((plain.ttl.unwrap().as_secs(), plain.resources.cpu.as_deref()), (7200, Some("2")));
    let own = f.good(&format!(
        "{GOOD}ttl: 1h\nlabels: {{cost: b}}\nresources: {{cpu: 500m, gpu: true}}\nmax_concurrent: 3\n"
    ));
    let own = own.harness;
    assert_eq!((own.ttl.unwrap().as_secs(), own.max_concurrent), (3600, Some(3)));
    assert_eq!(
        own.labels.into_iter().collect::<Vec<_>>(),
        [("cost".to_owned(), "b".to_owned()), ("team".to_owned(), "core".to_owned())]
    );
    assert_eq!((own.resources.cpu.as_deref(), own.resources.memory.as_deref()), (Some("500m"), Some("4Gi")));
    for bad in ["{ttl: x}", "{labels: {keep: x}}", "{resources: {cpu: x}}"] {
        assert_eq!(fixture(&format!("defaults: {bad}\n")).bad(GOOD)[0].0, Code::Value, "{bad}");
    }
}

#[test]
fn the_runtime_of_the_configuration_is_for_definitions() {
    let runtime = |config: &str, text: &str| fixture(config).good(text).harness.runtime;
    assert_eq!(runtime("runtime: script\n", GOOD), Runtime::Script);
    assert_eq!(runtime("defaults: {runtime: script}\n", GOOD), Runtime::Script);
    assert_eq!(runtime("runtime: script\n", "agent: agents/hello.md\nruntime: claude\n"), Runtime::Claude);
    assert_eq!(runtime("runtime: claude\n", "agent: agents/run.sh\n"), Runtime::Script);
}

#[test]
fn every_variable_that_is_needed_is_asked_for_at_once() {
    let mut f = Fixture::new();
    f.env.insert(crate::harness::DENIED[0].into(), "x".into());
    let problems = f.bad(
        "agent: agents/hello.md\nrequired_env: [SET, EMPTY, NOPE, 1X, ACTIONS_ID_TOKEN_REQUEST_URL, OTHER]\n",
    );
    let got: Vec<_> = problems.iter().map(|(code, _, p)| (*code, p.message.as_str())).collect();
    assert_eq!(
        got,
        [
            (Code::EnvUnset, "the harness needs the variable `EMPTY`, which is empty"),
            (Code::EnvUnset, "the harness needs the variable `NOPE`, which is not set"),
            (Code::Value, "`1X` is not a variable name"),
            (Code::Value, "`ACTIONS_ID_TOKEN_REQUEST_URL` never reaches a harness"),
            (Code::EnvUnset, "the harness needs the variable `OTHER`, which is not set"),
        ]
    );
    assert!(f.good("agent: agents/hello.md\nrequired_env: [SET, SET]\n").warnings.is_empty());
}

#[test]
fn plugins_are_paths_or_have_an_environment() {
    let f = Fixture::new();
    f.write("plugins/a/plugin.json", "{}");
    f.write("plugins/b/.claude-plugin/plugin.json", "{}");
    f.write("plugins/bare/x", "");
    f.write("other/a/plugin.json", "{}");
    f.write("plugins/cache/plugin.json", "{}");
    f.write("plugins/a b/plugin.json", "{}");
    let h = f
        .good("agent: agents/hello.md\nplugins: [plugins/a, {path: plugins/b, env: {P: '${SET}', Q: plugin}}]\nenv: {sandbox: {Q: mine}}\n")
        .harness;
    let got: Vec<_> = h.plugins.iter().map(|p| (p.name.as_str(), p.dir.clone())).collect();
    assert_eq!(got, [("a", f.dir.join("plugins/a")), ("b", f.dir.join("plugins/b"))]);
    assert_eq!(exposed(&h.sandbox_env), [("P", "value"), ("Q", "mine")]);
    assert_eq!(f.good("agent: agents/hello.md\nplugins: [plugins/bare]\n").warnings.len(), 1);
    for (plugins, code, part) in [
        ("plugins/none", Code::FileMissing, "does not exist"),
        ("agents/hello.md", Code::FileType, "directory"),
        ("plugins/a, other/a", Code::Value, "twice"),
        ("plugins/cache", Code::Value, "usable name"),
        ("plugins/a b", Code::Value, "usable name"),
        ("npm:thing", Code::Unsupported, "fetch"),
        ("https://x.test/p", Code::RemoteDenied, "config.yaml"),
        ("{env: {A: b}}", Code::Required, "`path`"),
        ("{path: plugins/a, evn: {A: b}}", Code::YamlKey, "`env`?"),
        ("{path: plugins/a, env: {a: b}}", Code::Value, "upper-case"),
        ("{path: plugins/a, env: {ACTIONS_ID_TOKEN_REQUEST_URL: b}}", Code::Value, "identity"),
    ] {
        let problems = f.bad(format!("agent: agents/hello.md\nplugins: [{plugins}]\n"));
        assert_eq!((problems.len(), problems[0].0), (1, code), "{plugins}: {problems:?}");
        let said = format!("{} {}", problems[0].2.message, problems[0].2.help.clone().unwrap_or_default());
        assert!(said.contains(part), "{plugins}: {said}");
    }
}

#[test]
fn overrides_of_skills_are_checked() {
    let f = Fixture::new();
    f.write("skills/one/docs/a.md", "a");
    let h = f.good("agent: agents/hello.md\nskills:\n  - skills/one: {./docs/a.md: env/a.env, new.md: input/data, SKILL.md: input/data}\n").harness;
    let keys: Vec<_> = h.skills[0].overrides.keys().map(String::as_str).collect();
    assert_eq!(keys, ["SKILL.md", "docs/a.md", "new.md"]);
    let warned = f.good("agent: agents/hello.md\nskills: [skills/one: {SKILL.md: , gone: }]\n").warnings;
    let got: Vec<_> = warned.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(got, ["the skill `one` has no SKILL.md", "the skill has no file `gone` to leave out"]);
    for (overrides, code, part) in [
        ("{../x: env/a.env}", Code::Value, "without `..`"),
        ("{/x: env/a.env}", Code::Value, "relative"),
        ("{a: env/none}", Code::FileMissing, "does not exist"),
        ("{a: ../../outside/secret}", Code::PathEscape, "leads outside"),
        ("{a: https://x.test/a}", Code::RemoteDenied, "config.yaml"),
        ("{docs: env/a.env}", Code::Value, "one by one"),
        ("{a: [x]}", Code::YamlType, "the path of a file"),
        ("[a]", Code::YamlType, "a mapping"),
    ] {
        let problems = f.bad(format!("agent: agents/hello.md\nskills: [skills/one: {overrides}]\n"));
        assert_eq!((problems.len(), problems[0].0), (1, code), "{overrides}: {problems:?}");
        let said = format!("{} {}", problems[0].2.message, problems[0].2.help.clone().unwrap_or_default());
        assert!(said.contains(part), "{overrides}: {said}");
    }
}

#[test]
fn keys_without_an_effect_have_a_type_all_the_same() {
    let f = Fixture::new();
    for (text, wanted) in [
        ("doc: [a]", "text"),
        ("security: true", "a mapping"),
        ("trigger: {a: b}", "text"),
        ("allowed_remote_resources: x", "not a list"),
        ("allowed_remote_resources: [[x]]", "not text"),
        ("allow_runtime_fetch: 'yes'", "`true` or `false`"),
        ("max_runtime_fetches: many", "a whole number"),
        ("privilege_levels: [a]", "a mapping"),
        ("workflow: a", "a mapping"),
        ("plugins: [{path: plugins/x, pi: {args: x}}]", "a list of texts"),
        ("security: {sandbox_hooks: {tirith: {enabled: 'no'}}}", "`true` or `false`"),
        ("security: {sandbox_hooks: {ssrf_egress_allowlist: {a: b}}}", "text, or a list of texts"),
        ("security: {host_scanners: {llm_guard: {threshold: high}}}", "a number"),
        ("validation_loop: {script: scripts/s.sh, feedback_mode: [a]}", "text"),
    ] {
        let problems = f.bad(format!("{GOOD}{text}\n"));
        let (_, _, problem) = problems.iter().find(|(code, ..)| *code == Code::YamlType).expect(text);
        assert!(problem.message.contains(wanted), "{text}: {}", problem.message);
    }
    let all = "doc: d\nsecurity: {enabled: true, fail_mode: open}\ntrigger: event.x == 1\n\
               allow_runtime_fetch: true\nmax_runtime_fetches: 3\nprivilege_levels: {run: x}\nworkflow: {source: .}\n";
    let warnings = f.good(&format!("{GOOD}{all}")).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].message.contains("`workflow` are accepted but not applied"),
        "{}",
        warnings[0].message
    );
}

/// What has no effect is looked at to its last value all the same, so that it means the same where it has one.
#[test]
fn keys_without_an_effect_are_checked_to_their_last_value() {
    let f = Fixture::new();
    for (text, code, part) in [
        ("security: {fail_mode: close}", Code::Value, "`close` is not a fail mode"),
        (
            "security: {sandbox_hooks: {ssrf_egress_allowlist: 'a.test:443, b c'}}",
            Code::Value,
            "`b c` is no host",
        ),
        ("security: {enable: true}", Code::YamlKey, "`enable` is not a key of `security`"),
        (
            "security: {escalation: {on_critical: stop}}",
            Code::Value,
            "`stop` is not a value of `on_critical`",
        ),
        (
            "security: {host_scanners: {llm_guard: {threshold: 2}}}",
            Code::Value,
            "`threshold` is out of range",
        ),
        (
            "security: {sandbox_hooks: {tirith: {fail_on: low}}}",
            Code::Value,
            "`low` is not a value of `fail_on`",
        ),
        ("allowed_remote_resources: ['http://x/']", Code::RemoteUrl, "is no prefix of URLs"),
        ("max_runtime_fetches: 1001", Code::Value, "`max_runtime_fetches` is out of range"),
        ("workflow: {name: x}", Code::Required, "`source` is missing in `workflow`"),
        ("workflow: {source: ., args: \"a\\nb\"}", Code::Value, "`args` is not a text of one line"),
        ("privilege_levels: {run: [x]}", Code::YamlType, "`run` is a list, not text"),
    ] {
        let mut problems = f.bad(format!("{GOOD}{text}\n"));
        problems.retain(|(_, _, problem)| problem.severity == Severity::Error);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        let (found, place, problem) = &problems[0];
        assert!(*found == code && problem.message.contains(part), "{text}: {problem:?}");
        assert!(place.starts_with("harness/h.yaml:2:"), "{text}: {place}");
    }
}
