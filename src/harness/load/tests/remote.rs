//! What loading asks for, with a map in place of the network.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::harness::remote::{Form, Need, Object, Pinning};

/// A place with files, by URL. Everything that is asked for and not there is an empty file or directory.
struct Place {
    home: tempfile::TempDir,
    texts: BTreeMap<&'static str, &'static str>,
}

impl Place {
    fn new(texts: &[(&'static str, &'static str)]) -> Self {
        Self { home: tempfile::tempdir().unwrap(), texts: texts.iter().copied().collect() }
    }

    fn object(&self, need: &Need, number: usize) -> Object {
        let home = Utf8PathBuf::from_path_buf(self.home.path().join(number.to_string())).unwrap();
        let path = home.join(need.url.name());
        std::fs::create_dir_all(&home).unwrap();
        match need.form {
            Form::File => std::fs::write(&path, self.texts.get(need.url.as_str()).unwrap_or(&"")).unwrap(),
            Form::Tree => {
                std::fs::create_dir(&path).unwrap();
                for name in ["SKILL.md", "plugin.json", "pre.sh", "post.sh", "check.sh"] {
                    std::fs::write(path.join(name), "#!/bin/sh\n").unwrap();
                }
            }
        }
        let sha256 = need.sha256.clone().unwrap_or_else(|| "0".repeat(64));
        Object { path, sha256, files: Vec::new() }
    }

    /// Loads until nothing is missing; also what was asked for, round by round.
    fn load(&self, request: &Request, pinning: Pinning) -> (Result<Loaded>, Vec<Vec<String>>) {
        let mut have = BTreeMap::new();
        let mut rounds = Vec::new();
        loop {
            let fetched = Fetched { have: Arc::new(have.clone()), pinning };
            let Attempt { result, needs, .. } = attempt(&Request { fetched, ..request.clone() });
            if let Some(result) = result {
                return (result, rounds);
            }
            assert!(!needs.is_empty() && rounds.len() < 10, "{rounds:?}");
            rounds.push(needs.iter().map(|need| format!("{:?} {}", need.form, need.url)).collect());
            for need in needs {
                let object = self.object(&need, have.len());
                have.insert(need, Ok(object));
            }
        }
    }
}

const ORG: &str = "allowed_remote_resources: ['https://h/', 'https://raw.githubusercontent.com/o/']\n";

const BASE: &str = "\
base: ../shared/other.yaml
agent: agents/hello.md
policy: policies/p.yaml
skills: [skills/one, skills/two: {a.md: docs/a.md}]
plugins: [plugins/tool]
providers: [vertex, providers/p.yaml]
openshell: {profiles: [profiles/t.yaml]}
agent_input: input
pre_script: scripts/pre.sh
validation_loop: {script: scripts/check.sh, schema: schemas/s.json}
host_files:
  - {src: env/x, dest: /tmp/x}
  - {src: '${SET}', dest: /tmp/y, optional: true}
forge:
  github: {policy: policies/github.yaml, post_script: scripts/post.sh}
";

#[test]
fn relative_paths_of_a_base_are_where_it_lives() {
    const AT: &str = "https://raw.githubusercontent.com/o/r/c";
    let f = Fixture::new();
    f.write("config.yaml", ORG);
    f.write("harness/h.yaml", format!("base: {AT}/harness/base.yaml\nskills: [skills/two]\n"));
    let place = Place::new(&[
        ("https://raw.githubusercontent.com/o/r/c/harness/base.yaml", BASE),
        ("https://raw.githubusercontent.com/o/r/c/shared/other.yaml", "description: shared\nmodel: opus\n"),
        ("https://raw.githubusercontent.com/o/r/c/policies/github.yaml", "version: 1\n"),
        ("https://raw.githubusercontent.com/o/r/c/providers/p.yaml", "name: q\ntype: t\n"),
        ("https://raw.githubusercontent.com/o/r/c/profiles/t.yaml", "id: t\n"),
        ("https://raw.githubusercontent.com/o/r/c/schemas/s.json", "{}"),
    ]);
    let request = Request { forge: Some(Forge::Github), ..f.request() };
    let (loaded, rounds) = place.load(&request, Pinning::Add);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error} {:?}", error.problem_list()));
    let at = |form: &str, path: &str| format!("{form} {AT}/{path}");
    assert_eq!(rounds[0], [at("File", "harness/base.yaml")]);
    assert_eq!(rounds[1], [at("File", "shared/other.yaml")]);
    let mut all: Vec<_> = rounds[2..].iter().flatten().cloned().collect();
    all.sort();
    let mut want: Vec<_> =
        ["agents/hello.md", "docs/a.md", "env/x", "policies/github.yaml", "profiles/t.yaml"]
            .iter()
            .chain(&["providers/p.yaml", "schemas/s.json"])
            .map(|path| at("File", path))
            .chain(["input", "plugins/tool", "scripts", "skills/one"].iter().map(|path| at("Tree", path)))
            .collect();
    want.sort();
    assert_eq!(all, want);
    let h = loaded.harness;
    assert_eq!((h.description.as_deref(), h.model.as_deref()), (Some("shared"), Some("opus")));
    assert_eq!(h.agent_name, "hello");
    // The skill of the child took the place of the base's, in the child's directory.
    let two = h.skills.iter().find(|skill| skill.name == "two").unwrap();
    assert!(two.dir.starts_with(&f.dir) && two.overrides["a.md"].as_ref().unwrap().ends_with("a.md"));
    assert!(h.post_script.unwrap().ends_with("scripts/post.sh"));
}

#[test]
fn what_is_wrong_already_is_said_before_anything_is_asked_for() {
    let f = Fixture::new();
    f.write("config.yaml", ORG);
    f.write(
        "harness/h.yaml",
        "agent: 'https://h/a.md'\nmodel: a/b\nallowed_remote_resources: ['https://h/']\n",
    );
    let (loaded, rounds) = Place::new(&[]).load(&f.request(), Pinning::Add);
    assert_eq!(loaded.unwrap_err().code(), Code::Value);
    assert!(rounds.is_empty());
}

#[test]
fn only_the_text_or_the_lock_says_what_must_be_there() {
    let f = Fixture::new();
    f.write("config.yaml", ORG);
    let harness = |url: &str| {
        f.write("harness/h.yaml", format!("agent: '{url}'\nallowed_remote_resources: ['https://h/']\n"));
        Place::new(&[]).load(&f.request(), Pinning::Refuse)
    };
    let (loaded, _) = harness("https://h/a.md");
    let error = loaded.unwrap_err();
    assert_eq!(error.code(), Code::RemoteUnpinned);
    assert!(error.help_text().contains("fullsend lock h"), "{}", error.help_text());
    let (said, locked) = ("1".repeat(64), "2".repeat(64));
    assert!(harness(&format!("https://h/a.md#sha256={said}")).0.is_ok());
    let lock = |agent: &str| {
        let text = format!(
            "version: 1\nharnesses:\n  {agent}:\n    dependencies:\n      - {{url: 'https://h/a.md', sha256: '{locked}'}}\n"
        );
        f.write("lock.yaml", text);
    };
    lock("other");
    assert_eq!(harness("https://h/a.md").0.unwrap_err().code(), Code::RemoteUnpinned);
    lock("h");
    assert!(harness("https://h/a.md").0.is_ok());
    // Asked for is what the text says, else what the lock says.
    let asked = |url: &str| {
        f.write("harness/h.yaml", format!("agent: '{url}'\nallowed_remote_resources: ['https://h/']\n"));
        attempt(&f.request()).needs[0].sha256.clone().unwrap()
    };
    assert_eq!(asked("https://h/a.md"), locked);
    assert_eq!(asked(&format!("https://h/a.md#sha256={said}")), said);
}

#[test]
fn loading_without_a_network_names_what_is_missing() {
    let f = Fixture::new();
    f.write("config.yaml", ORG);
    let pin = "3".repeat(64);
    f.write(
        "harness/h.yaml",
        format!("agent: 'https://h/a.md#sha256={pin}'\nallowed_remote_resources: ['https://h/']\n"),
    );
    let error = load(&f.request()).unwrap_err();
    assert_eq!(error.code(), Code::RemoteOffline);
    assert!(error.message().contains("https://h/a.md"), "{error}");
}
