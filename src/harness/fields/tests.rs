//! The tables against the code that reads the files, against the schemas, and against each other.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value as Json;

use super::schema::schema;
use super::*;
use crate::harness::compose::guard::json_of;
use crate::harness::compose::merge_for_tests as merge;
use crate::harness::keys::Format;
use crate::harness::problem::{Problems, Severity};
use crate::harness::source::Source;
use crate::harness::{raw, yaml};

fn tree(text: &str) -> yaml::Node {
    let mut problems = Problems::default();
    let node =
        yaml::parse(&Source::new("t.yaml", text), &mut problems).unwrap_or_else(|p| panic!("{text}: {p:?}"));
    assert!(problems.0.is_empty(), "{text}: {problems:?}");
    node
}

fn json(text: &str) -> Json {
    json_of(&tree(text))
}

/// The problems of one harness file by itself.
fn layer(text: &str) -> Problems {
    let source = Source::new("t.yaml", text);
    let mut problems = Problems::default();
    match yaml::parse(&source, &mut problems) {
        Ok(node) => raw::check_layer(&node, &source, &mut problems),
        Err(problem) => problems.push(problem),
    }
    problems
}

fn validator(format: Format) -> jsonschema::Validator {
    jsonschema::draft202012::new(&schema(format)).unwrap()
}

fn mistakes(format: Format, text: &str) -> Vec<String> {
    validator(format).iter_errors(&json(text)).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// A mapping of `line` and of the fields that must be beside it.
fn beside(required: &[&str], line: &str) -> String {
    let key = line.split(':').next().unwrap();
    let others = required.iter().filter(|other| other.split(':').next() != Some(key));
    let all: Vec<_> = others.copied().chain([line]).filter(|text| !text.is_empty()).collect();
    format!("{{{}}}", all.join(", "))
}

/// A file in which `line` is a field of `level`, and nothing is missing.
fn within(level: Level, line: &str) -> String {
    let only = beside(&[], line);
    let lines = |required: &[&str]| {
        let key = line.split(':').next().unwrap();
        let others = required.iter().filter(|other| other.split(':').next() != Some(key));
        others.copied().chain([line, ""]).collect::<Vec<_>>().join("\n")
    };
    let inner = match level {
        Level::Harness => return lines(&["agent: agents/a.md"]),
        Level::Config => return lines(&[]),
        Level::Provider => return lines(&["name: n", "type: t"]),
        Level::Profile => return lines(&["id: i"]),
        Level::ProfileCredential => return format!("id: i\ncredentials: [{}]\n", beside(&["name: n"], line)),
        Level::Policy => return lines(&["version: 1"]),
        Level::Filesystem => return format!("version: 1\nfilesystem_policy: {only}\n"),
        Level::Landlock => return format!("version: 1\nlandlock: {only}\n"),
        Level::Identity => return format!("version: 1\nprocess: {only}\n"),
        Level::NetworkRule => return format!("version: 1\nnetwork_policies: {{r: {only}}}\n"),
        Level::Endpoint => return format!("version: 1\nnetwork_policies: {{r: {{endpoints: [{only}]}}}}\n"),
        Level::Binary => {
            let entry = beside(&["path: /p"], line);
            return format!("version: 1\nnetwork_policies: {{r: {{binaries: [{entry}]}}}}\n");
        }
        Level::ConfigAgent => return format!("agents: [{}]\n", beside(&["source: harness/x.yaml"], line)),
        Level::ConfigDefaults => return format!("defaults: {only}\n"),
        Level::ImagePolicy => return format!("image_policy: {only}\n"),
        Level::ImageSigner => return format!("image_policy: {{signers: [{only}]}}\n"),
        Level::StatusNotifications => return format!("status_notifications: {only}\n"),
        Level::StatusComment => return format!("status_notifications: {{comment: {only}}}\n"),
        Level::Env => format!("env: {only}"),
        Level::Openshell => format!("openshell: {only}"),
        Level::Validation => format!("validation_loop: {}", beside(&["script: s"], line)),
        Level::HostFile => format!("host_files: [{}]", beside(&["src: s", "dest: /d"], line)),
        Level::Upload => format!("upload: {only}"),
        Level::Deadlines => format!("deadlines: {only}"),
        Level::Plugin => format!("plugins: [{}]", beside(&["path: p"], line)),
        Level::PluginPi => format!("plugins: [{{path: p, pi: {only}}}]"),
        Level::Forges => format!("forge: {only}"),
        Level::Forge => format!("forge: {{github: {only}}}"),
        Level::Overlay => format!("overlays: [{}]", beside(&["when: 'true'"], line)),
        Level::ApiServer => format!("api_servers: [{}]", beside(&["name: n", "script: s"], line)),
        Level::Resources => format!("resources: {only}"),
        Level::Limits => format!("limits: {only}"),
        Level::Workflow => format!("workflow: {}", beside(&["source: s"], line)),
        Level::Security => format!("security: {only}"),
        Level::HostScanners => format!("security: {{host_scanners: {only}}}"),
        Level::LlmGuard => format!("security: {{host_scanners: {{llm_guard: {only}}}}}"),
        Level::SandboxHooks => format!("security: {{sandbox_hooks: {only}}}"),
        Level::Tirith => format!("security: {{sandbox_hooks: {{tirith: {only}}}}}"),
        Level::ToolAllowlist => format!("security: {{sandbox_hooks: {{tool_allowlist_pretool: {only}}}}}"),
        Level::Escalation => format!("security: {{escalation: {only}}}"),
        Level::Trace => format!("security: {{trace: {only}}}"),
    };
    format!("agent: agents/a.md\n{inner}\n")
}

fn with(level: Level, field: &Field, value: &str) -> String {
    within(level, &format!("{}: {value}", field.name))
}

fn harness_levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.format() == Format::Harness)
}

#[test]
fn the_tables_are_in_order() {
    for level in Level::ALL {
        let names: Vec<_> = level.keys().collect();
        let unique: BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "a field of {} is there twice: {names:?}", level.name());
        for field in level.fields() {
            assert!(field.doc.ends_with('.'), "{}: {}", level.name(), field.name);
            assert!(!field.example.is_empty(), "{}: {} has no example", level.name(), field.name);
        }
    }
    let deadlines: Vec<_> = Level::Deadlines.keys().collect();
    assert_eq!(deadlines, crate::plan::deadlines::NAMES);
    let forges: Vec<_> = Level::Forges.keys().collect();
    assert_eq!(forges, crate::harness::Forge::ALL.map(crate::harness::Forge::as_str));
    for block in Level::Forge.keys() {
        assert!(Level::Harness.has(block) && Level::Overlay.has(block), "{block}");
    }
    assert!(Level::Overlay.has("when") && !Level::Harness.has("when") && !Level::Forge.has("when"));
    assert!(!Level::Forge.has("agent") && Level::Harness.has("agent"));
}

/// Every example is a good value to the code that reads the file and to the schema.
#[test]
fn every_example_is_good() {
    for level in Level::ALL {
        for field in level.fields() {
            let text = with(level, field, field.example);
            assert_eq!(mistakes(level.format(), &text), [""; 0], "{text}");
            if level.format() == Format::Harness {
                let problems = layer(&text);
                assert!(problems.0.is_empty(), "{text}: {problems:?}");
            }
        }
    }
}

/// A value that the type does not have.
fn wrong(ty: &Type) -> &'static str {
    match ty {
        Type::Text | Type::Path | Type::Dir | Type::Form(..) | Type::Words(_) | Type::Duration => "[x]",
        Type::Int(..) => "'5'",
        Type::Number(..) => "'0.5'",
        Type::Bool => "'true'",
        Type::List(_) | Type::Map(_) | Type::Section(_) => "just-text",
        Type::Either(_) => "{a: b}",
        Type::Any => "",
    }
}

/// Every field is read: a value of the wrong type is an error where it stands, for the reader and for the schema.
#[test]
fn every_wrong_type_is_an_error() {
    for level in Level::ALL {
        for field in level.fields() {
            let value = wrong(&field.ty);
            // An empty one says nothing.
            if value.is_empty() {
                continue;
            }
            let text = with(level, field, value);
            assert!(!mistakes(level.format(), &text).is_empty(), "the schema takes {text}");
            if level.format() == Format::Harness {
                let problems = layer(&text);
                assert!(problems.has_errors(), "{text}: {problems:?}");
                let place = problems.0[0].place.as_ref().unwrap();
                assert!(place.line > 0 && place.column > 0, "{text}: {place}");
            }
        }
    }
}

/// What is neither known nor near anything is a warning to the reader and a mistake to the schema.
#[test]
fn every_level_tells_unknown_keys() {
    for level in harness_levels().filter(|level| *level != Level::Forges) {
        let text = within(level, "qqqqqqqqqq: 1");
        let problems = layer(&text);
        let told = problems.0.iter().any(|p| {
            p.severity == Severity::Warning
                && p.message == format!("`qqqqqqqqqq` is not a key of {}", level.name())
        });
        assert!(told, "{text}: {problems:?}");
        assert!(!mistakes(Format::Harness, &text).is_empty(), "{text}");
        // A near one is an error that names it.
        let near = level.keys().find(|key| key.len() > 3).unwrap();
        let text = within(level, &format!("{}: x", near.replacen(|_| true, "q", 1)));
        let problems = layer(&text);
        assert!(problems.0.iter().any(|p| p.severity == Severity::Error), "{text}: {problems:?}");
    }
}

/// A key of the top level is told from where it does not belong.
#[test]
fn keys_at_the_wrong_level_are_errors() {
    for field in Level::Harness.fields().filter(|field| field.home == Home::File) {
        for level in [Level::Forge, Level::Overlay] {
            let text = within(level, &format!("{}: {}", field.name, field.example));
            let problems = layer(&text);
            let told = problems.0.iter().any(|p| {
                p.severity == Severity::Error
                    && p.help.as_ref().is_some_and(|h| h.starts_with("it belongs in"))
            });
            assert!(told, "{text}: {problems:?}");
        }
    }
}

fn merged(base: &str, child: &str) -> Json {
    let nodes = vec![tree(child), tree(base)];
    json_of(&merge(nodes).unwrap())
}

/// Row by row: what a child inherits, and what its own value does to it.
#[test]
fn every_field_merges_by_its_rule() {
    let inherited = |field: &Field| {
        let base = format!("{}: {}\n", field.name, field.example);
        (json(&base), base)
    };
    for field in Level::Harness.fields().filter(|field| field.merge != Merge::Steers) {
        let (whole, base) = inherited(field);
        let name = field.name;
        assert_eq!(merged(&base, "x-other: 1\n")[name], whole[name], "{name} is not inherited");
        assert_eq!(merged(&base, &format!("{name}: ~\n"))[name], whole[name], "{name}: null removes");
        assert_eq!(merged("x-other: 1\n", &base)[name], whole[name], "{name} of the child alone");
        // Its own value again: nothing is there twice.
        if field.merge != Merge::Overlays {
            assert_eq!(merged(&base, &base)[name], whole[name], "{name} is doubled");
        }
        let with = |value: &str| merged(&base, &format!("{name}: {value}\n"))[name].clone();
        match field.merge {
            Merge::Filled => {
                assert_eq!(with("''"), whole[name], "{name}: an empty text removes");
                assert_eq!(with("0"), whole[name], "{name}: 0 removes");
                assert_eq!(with("other"), "other", "{name}");
            }
            Merge::Present => {
                assert_eq!(with("false"), false, "{name}");
                assert_eq!(with("[]"), Json::Array(Vec::new()), "{name}");
            }
            Merge::Append | Merge::Skills | Merge::HostFiles => {
                assert_eq!(with("[]"), whole[name], "{name}: an empty list removes");
                let longer = with("[other-entry]");
                let longer = longer.as_array().unwrap();
                assert_eq!(longer.len(), whole[name].as_array().unwrap().len() + 1, "{name}");
                assert_eq!(longer.last().unwrap(), "other-entry", "{name}");
            }
            Merge::Map | Merge::Section | Merge::Forge => {
                assert_eq!(with("{}"), whole[name], "{name}: an empty mapping removes");
                let more = with("{x-more: 1}");
                for (key, value) in whole[name].as_object().unwrap() {
                    assert_eq!(more[key], *value, "{name}.{key}");
                }
                assert_eq!(more["x-more"], 1, "{name}");
            }
            Merge::Overlays => {
                let more = with("[{when: 'false'}]");
                assert_eq!((&more[0]["when"], &more[1]), (&Json::from("false"), &whole[name][0]));
            }
            Merge::Steers => {}
        }
    }
    for level in [Level::Env, Level::Openshell, Level::Validation, Level::Upload, Level::Deadlines] {
        for field in level.fields() {
            let section = within(level, "").lines().nth(1).unwrap().split(':').next().unwrap().to_owned();
            let base = format!("{section}: {{{}: {}}}\n", field.name, field.example);
            let whole = json(&base);
            for child in [format!("{section}: {{}}\n"), format!("{section}: {{{}: ~}}\n", field.name)] {
                let got = merged(&base, &child);
                assert_eq!(
                    got[&section][field.name], whole[&section][field.name],
                    "{section}.{}",
                    field.name
                );
            }
        }
    }
}

fn files(dir: &Utf8Path, folder: &str) -> Vec<Utf8PathBuf> {
    let found = crate::harness::provider::yaml_files(&dir.join(folder));
    found.into_iter().filter(|file| std::fs::metadata(file).is_ok_and(|m| m.len() > 0)).collect()
}

fn check_directory(dir: &Utf8Path) -> usize {
    let mut count = 0;
    for (folder, format) in
        [("harness", Format::Harness), ("providers", Format::Provider), ("profiles", Format::Profile)]
    {
        for file in files(dir, folder) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(mistakes(format, &text), [""; 0], "{file}");
            count += 1;
        }
    }
    if let Ok(text) = std::fs::read_to_string(dir.join("config.yaml")) {
        assert_eq!(mistakes(Format::Config, &text), [""; 0], "{dir}/config.yaml");
        count += 1;
    }
    count
}

#[test]
fn the_schemas_take_what_comes_with_the_program() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("harnesses");
    let mut count = 0;
    for dir in root.read_dir_utf8().unwrap() {
        count += check_directory(dir.unwrap().path());
    }
    assert!(count >= 4, "only {count} files");
}

#[test]
fn the_schemas_take_the_directories_of_the_field() {
    let Some(corpus) = std::env::var_os("FULLSEND_CORPUS").filter(|v| !v.is_empty()) else {
        eprintln!("NOT RUN: FULLSEND_CORPUS is not set, so the corpus was not held against the schemas");
        return;
    };
    let corpus = Utf8PathBuf::from_path_buf(corpus.into()).unwrap();
    let count = check_directory(&corpus.join("agents")) + check_directory(&corpus.join("hello-world"));
    assert!(count >= 15, "only {count} files");
}

#[test]
fn the_schemas_refuse_what_is_bad() {
    for (format, text) in [
        (Format::Harness, "model: opus\n"),
        (Format::Harness, "- agent: a\n"),
        (Format::Harness, "agent: a\ntimout_minutes: 3\n"),
        (Format::Harness, "agent: a\nmax_iterations: 3\n"),
        (Format::Harness, "agent: a\ntimeout_minutes: -1\n"),
        (Format::Harness, "agent: a\nrole: Coder\n"),
        (Format::Harness, "agent: a\nrole: a--b\n"),
        (Format::Harness, "agent: a\neffort: ultra\n"),
        (Format::Harness, "agent: a\nhost_files: [{src: a}]\n"),
        (Format::Harness, "agent: a\nhost_files: [{src: a, dest: relative}]\n"),
        (Format::Harness, "agent: a\nforge: {gitea: {}}\n"),
        (Format::Harness, "agent: a\nforge: {github: {agent: b}}\n"),
        (Format::Harness, "agent: a\noverlays: [{policy: p}]\n"),
        (Format::Harness, "agent: a\nsecurity: {fail_mode: ajar}\n"),
        (Format::Harness, "agent: a\nenv: {sandbox: {A: [b]}}\n"),
        (Format::Config, "agents: [{name: a}]\n"),
        (Format::Config, "forge: gitea\n"),
        (Format::Config, "agent: [x]\n"),
        (Format::Provider, "name: a\n"),
        (Format::Provider, "name: a\ntype: b\nscope: all\n"),
        (Format::Provider, "name: a b\ntype: b\n"),
        (Format::Profile, "endpoints: []\n"),
        (Format::Policy, "landlock: {}\n"),
        (Format::Policy, "version: 2\n"),
        (Format::Policy, "version: 1\nnetworks: {}\n"),
        (Format::Policy, "version: 1\nprocess: {run_as_user: root}\n"),
        (Format::Policy, "version: 1\nnetwork_policies: {a: {endpoints: [{port: 70000}]}}\n"),
        (Format::Profile, "id: a/b\n"),
    ] {
        assert!(!mistakes(format, text).is_empty(), "{text}");
    }
    // Empty and null mean absent, numbers and the like are their text.
    let good = "agent: a\nmodel: ''\nrole: ~\nskills:\nrunner_env: {A: 1.10, B: no, C: }\nx-mine: [1]\ntimeout_minutes: 0\n";
    assert_eq!(mistakes(Format::Harness, good), [""; 0]);
}
