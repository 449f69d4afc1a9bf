//! Overlays: which one applies, and what is wrong with one.

use super::*;

const OVERLAYS: &str = "agent: agents/hello.md
model: top
runner_env: {A: top}
overlays:
  - when: has(event.label) && event.label == 'security'
    runner_env: {A: security}
  - when: runtime.forge == 'gitlab'
    runner_env: {A: lab}
    policy: policies/p.yaml
  - when: has(config.defaults) && config.defaults.runtime == 'claude'
    runner_env: {A: config}
    remove: {model: true}
";

fn value(f: &Fixture, text: &str) -> String {
    f.good(text).harness.runner_env["A"].expose().to_owned()
}

#[test]
fn the_first_guard_that_holds_wins() {
    let mut f = Fixture::new();
    assert_eq!(value(&f, OVERLAYS), "top");
    f.write("config.yaml", "defaults: {runtime: claude}\n");
    let h = f.good(OVERLAYS).harness;
    assert_eq!((h.runner_env["A"].expose(), h.model), ("config", None));
    f.forge = Some(Forge::Gitlab);
    let h = f.good(OVERLAYS).harness;
    assert_eq!((h.runner_env["A"].expose(), h.policy), ("lab", Some(f.dir.join("policies/p.yaml"))));
    f.write("event.json", "{\"label\": \"security\"}");
    f.env.insert("GITHUB_EVENT_PATH".into(), f.dir.join("event.json").to_string());
    assert_eq!(value(&f, OVERLAYS), "security");
}

#[test]
fn the_overlays_of_a_child_are_asked_before_those_of_its_base() {
    let f = Fixture::new();
    f.write(
        "harness/base.yaml",
        "agent: agents/hello.md\noverlays: [{when: 'true', runner_env: {A: base}}]\n",
    );
    assert_eq!(value(&f, "base: base.yaml\n"), "base");
    assert_eq!(value(&f, "base: base.yaml\noverlays: [{when: 'true', runner_env: {A: child}}]\n"), "child");
    assert_eq!(value(&f, "base: base.yaml\noverlays: [{when: 'false', runner_env: {A: child}}]\n"), "base");
}

#[test]
fn mistakes_of_overlays() {
    let f = Fixture::new();
    for (text, code, place, part) in [
        ("overlays: {a: b}\n", Code::YamlType, "harness/h.yaml:2:11", "a list"),
        ("overlays: [a]\n", Code::YamlType, "harness/h.yaml:2:12", "a mapping"),
        ("overlays: [{policy: policies/p.yaml}]\n", Code::Required, "harness/h.yaml:2:13", "`when`"),
        ("overlays: [{when: [a]}]\n", Code::YamlType, "harness/h.yaml:2:19", "not text"),
        ("overlays: [{when: 'event.'}]\n", Code::Value, "harness/h.yaml:2:19", "`when` cannot be read"),
        ("overlays: [{when: evnt.x}]\n", Code::Value, "harness/h.yaml:2:19", "no `evnt`"),
        ("overlays: [{when: event.x == 1}]\n", Code::Value, "harness/h.yaml:2:19", "no answer"),
        ("overlays: [{when: \"'x'\"}]\n", Code::Value, "harness/h.yaml:2:19", "neither true nor false"),
        ("overlays: [{when: 'false', model: x}]\n", Code::YamlKey, "harness/h.yaml:2:28", "the top level"),
        ("overlays: [{when: 'true'}]\nforge: {github: {}}\n", Code::Value, "harness/h.yaml:2:12", "not both"),
    ] {
        let problems = f.bad(format!("{GOOD}{text}"));
        let (found, at, problem) = &problems[0];
        assert_eq!((*found, at.as_str()), (code, place), "{text}: {problems:?}");
        let said = format!("{} {}", problem.message, problem.help.clone().unwrap_or_default());
        assert!(said.contains(part), "{text}: {said}");
    }
    assert!(f.good(&format!("{GOOD}overlays: []\nforge: {{}}\n")).warnings.is_empty());
}

#[test]
fn an_event_that_cannot_be_read_stops_only_who_asks() {
    let mut f = Fixture::new();
    f.env.insert("GITHUB_EVENT_PATH".into(), "/nowhere/event.json".into());
    assert!(f.load(GOOD).is_ok());
    assert!(f.bad(OVERLAYS)[0].2.message.contains("/nowhere/event.json"));
}
