//! Whole directories through [`load`]: what good ones become, and one clear problem for each bad one.

mod bad;
mod compose;
mod config;
mod overlays;
mod paths;
mod providers;
mod remote;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::harness::FULLSEND_SANDBOX_IMAGE;
use crate::harness::model::{Effort, ProviderUse, Runtime, Scope, Skill};
use crate::harness::problem::Severity;

/// A harness directory in a temporary place.
struct Fixture {
    _temp: tempfile::TempDir,
    dir: Utf8PathBuf,
    env: BTreeMap<String, String>,
    overrides: Overrides,
    forge: Option<Forge>,
}

const GOOD: &str = "agent: agents/hello.md\n";

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(temp.path().canonicalize().unwrap()).unwrap();
        let env = [("SET", "value"), ("EMPTY", ""), ("DOLLAR", "${SET}$$"), ("OUTSIDE", "/outside")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let fixture =
            Self { dir: root.join("dir"), _temp: temp, env, overrides: Overrides::default(), forge: None };
        for (path, text) in [
            ("agents/hello.md", "---\nname: hello\n---\n"),
            ("agents/run.sh", "#!/bin/sh\n"),
            ("agents/plain", "text\n"),
            ("policies/p.yaml", "version: 1\n"),
            ("policies/list.yaml", "- a\n"),
            ("policies/none.yaml", "network_policies: {}\n"),
            ("skills/one/SKILL.md", "one\n"),
            ("skills/two/README.md", "two\n"),
            ("scripts/s.sh", "#!/bin/sh\n"),
            ("schemas/ok.json", "{\"type\": \"object\"}\n"),
            ("schemas/broken.json", "{\n  \"type\": ,\n}\n"),
            ("schemas/bad.json", "{\"type\": 7}\n"),
            ("input/data", "x\n"),
            ("env/a.env", "export A=${SET} B=\"${DOLLAR}\"\n"),
            ("env/missing.env", "# x\nA=1\nSECRET=s3cr3t; B=${NOPE}\n"),
            ("env/default.env", "A=${X:-d}\n"),
            ("env/tick.env", "A=`echo ${SET}`\n"),
            ("env/raw.json", "{\"a\": \"${DOLLAR}\"}\n"),
            (
                "providers/p.yaml",
                "name: p\ntype: t\ncredentials:\n  K: ${SET}\n  E: \"\"\nconfig:\n  url: https://x/$SET\n",
            ),
            ("profiles/t.yaml", "id: t\nendpoints: []\n"),
        ] {
            fixture.write(path, text);
        }
        fixture.write("../outside/secret", "s\n");
        symlink("../../outside", fixture.dir.join("skills/link")).unwrap();
        symlink("../../outside/secret", fixture.dir.join("policies/link.yaml")).unwrap();
        symlink("../scripts", fixture.dir.join("input/inner")).unwrap();
        symlink("nowhere", fixture.dir.join("agents/dangling.md")).unwrap();
        fixture
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn request(&self) -> Request {
        Request {
            dir: self.dir.clone(),
            agent: "h".into(),
            fetched: Fetched::default(),
            forge: self.forge,
            env: Environment(self.env.clone()),
            overrides: self.overrides.clone(),
        }
    }

    fn load(&self, text: impl AsRef<[u8]>) -> Result<Loaded> {
        self.write("harness/h.yaml", text);
        load(&self.request())
    }

    fn good(&self, text: &str) -> Loaded {
        self.load(text).unwrap_or_else(|error| panic!("{text}\n{error}\n{:?}", error.problem_list()))
    }

    /// The problems as `code file:line:col`, relative to the directory.
    fn bad(&self, text: impl AsRef<[u8]>) -> Vec<(Code, String, Problem)> {
        let error = self.load(&text).expect_err(&String::from_utf8_lossy(text.as_ref()));
        assert_eq!(error.exit_code(), 2);
        let problems = error.problem_list().expect("problems").0.clone();
        problems
            .into_iter()
            .map(|p| {
                let place = p.place.as_ref().map(ToString::to_string).unwrap_or_default();
                let place = place.replace(&format!("{}/", self.dir), "");
                (p.code, place, p)
            })
            .collect()
    }
}

fn exposed(map: &BTreeMap<String, Secret>) -> Vec<(&str, &str)> {
    map.iter().map(|(k, v)| (k.as_str(), v.expose())).collect()
}

#[test]
fn the_smallest_harness_has_the_defaults() {
    let f = Fixture::new();
    let Loaded { harness: h, warnings, .. } = f.good(GOOD);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((h.name.as_str(), h.agent_name.as_str()), ("h", "hello"));
    assert_eq!(h.agent, f.dir.join("agents/hello.md"));
    assert_eq!(h.runtime, Runtime::Claude);
    assert_eq!((h.timeout.as_secs(), h.sandbox_timeout.as_secs()), (1800, 300));
    assert!(h.upload.ignored && h.upload.exclude.is_empty() && !h.readonly_repo);
    assert!(h.validation.is_none() && h.model.is_none() && h.image.is_none() && h.role.is_none());
    // sha256 of GOOD
    assert_eq!(h.digest.len(), 64);
    assert_ne!(h.digest, f.good("agent: agents/hello.md # other\n").harness.digest);
}

const FULL: &str = "\
description: Does things
agent: agents/hello.md
role: code-fix
slug: Slug-1
model: claude-opus-4@2025
effort: xhigh
image: quay.io/o/i:1
policy: policies/p.yaml
skills: [skills/one]
host_files:
  - {src: env/a.env, dest: /tmp/workspace/.env.d/a.env, expand: true}
  - src: env/raw.json
    dest: /tmp/raw.json
    expand: yes
  - src: ${OUTSIDE_FILE}
    dest: /tmp/x
  - src: ${UNSET_ONE}
    dest: /tmp/y
    optional: true
  - src: env/not-there
    dest: /tmp/z
    optional: true
providers: [p, elsewhere]
agent_input: input
pre_script: scripts/s.sh
post_script: ./scripts/../scripts/s.sh
validation_loop:
  script: scripts/s.sh
  schema: ${FULLSEND_DIR}/schemas/ok.json
  max_iterations: 3
  preflight_check: test -n ${SET} && echo \"$?\"
runner_env:
  A: old
  B: ${DOLLAR}
env:
  runner: {A: new, C: no, V: 1.10, O: 0123, T: 12:30:45, N: \"~\", E: , X: 1e3, L: $$5}
  sandbox: {S: $SET-x}
timeout_minutes: 5
sandbox_timeout_seconds: 60
readonly_repo: true
upload: {ignored: false, exclude: [target, '*.log']}
";

#[test]
fn a_full_harness() {
    let mut f = Fixture::new();
    f.env.insert("OUTSIDE_FILE".into(), f.dir.join("../outside/secret").to_string());
    let Loaded { harness: h, warnings, .. } = f.good(FULL);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(h.effort, Some(Effort::Xhigh));
    assert_eq!((h.role.as_deref(), h.slug.as_deref()), (Some("code-fix"), Some("Slug-1")));
    assert_eq!(
        h.skills,
        [Skill { name: "one".into(), dir: f.dir.join("skills/one"), overrides: BTreeMap::new() }]
    );
    assert_eq!(h.post_script, Some(f.dir.join("scripts/s.sh")));
    let content = |i: usize| h.host_files[i].content.as_ref().map(Secret::expose);
    assert_eq!(h.host_files.len(), 3);
    assert_eq!(content(0), Some("export A='value' B=\"\\${SET}\\$\\$\"\n"));
    assert_eq!(content(1), Some("{\"a\": \"${SET}$$\"}\n"));
    assert_eq!(content(2), None);
    let validation = h.validation.as_ref().unwrap();
    assert_eq!(validation.schema, Some(f.dir.join("schemas/ok.json")));
    assert_eq!(validation.max_iterations, 3);
    assert_eq!(validation.preflight_check.as_ref().unwrap().expose(), "test -n 'value' && echo \"$?\"");
    assert_eq!(
        exposed(&h.runner_env),
        [
            ("A", "new"),
            ("B", "${SET}$$"),
            ("C", "no"),
            ("E", ""),
            ("L", "$5"),
            ("N", "~"),
            ("O", "0123"),
            ("T", "12:30:45"),
            ("V", "1.10"),
            ("X", "1e3"),
        ]
    );
    assert_eq!(exposed(&h.sandbox_env), [("S", "value-x")]);
    assert_eq!((h.timeout.as_secs(), h.sandbox_timeout.as_secs(), h.readonly_repo), (300, 60, true));
    assert_eq!((h.upload.ignored, h.upload.exclude.len()), (false, 2));
    let ProviderUse::Defined(def) = &h.providers[0] else { panic!("{:?}", h.providers) };
    assert_eq!((def.name.as_str(), def.kind.as_str(), def.scope), ("p", "t", Scope::Run));
    assert_eq!(exposed(&def.credentials), [("E", ""), ("K", "value")]);
    assert_eq!(def.config["url"], "https://x/value");
    assert!(matches!(&h.providers[1], ProviderUse::Existing(name) if name == "elsewhere"));
    assert_eq!(h.profiles, [crate::harness::Profile { id: "t".into(), file: f.dir.join("profiles/t.yaml") }]);
}

#[test]
fn nothing_secret_is_serialised_or_printed() {
    let mut f = Fixture::new();
    f.env.insert("SET".into(), "s3cr3t".into());
    f.env.insert("OUTSIDE_FILE".into(), f.dir.join("scripts/s.sh").to_string());
    let harness = f.good(FULL).harness;
    let mut shown = format!("{harness:?}{}", serde_json::to_string(&harness).unwrap());
    // A provider's config is not secret by its meaning; it goes to the command line.
    shown = shown.replace("https://x/s3cr3t", "");
    assert!(!shown.contains("s3cr3t"), "{shown}");
    let json = serde_json::to_value(&harness).unwrap();
    assert_eq!(json["timeout_seconds"], 300);
    assert_eq!(json["runtime"], "claude");
    assert_eq!(json["providers"][0]["defined"]["credentials"]["K"], "***");
}

#[test]
fn null_and_empty_mean_absent() {
    let f = Fixture::new();
    let text = "agent: agents/hello.md\nskills:\nhost_files: ~\nproviders: null\nmodel: ''\npolicy:\nenv:\n\
                runner_env: {}\nvalidation_loop:\nbase: ''\nforge: {}\nplugins: []\napi_servers:\nupload: ~\n\
                timeout_minutes: 0\nsandbox_timeout_seconds: 0\nreadonly_repo:\nopenshell: {profiles: }\n\
                x-anything: [1]\nsecurity:\n";
    let Loaded { harness: h, warnings, .. } = f.good(text);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((h.timeout, h.sandbox_timeout), (DEFAULT_TIMEOUT, DEFAULT_SANDBOX_TIMEOUT));
    assert!(h.skills.is_empty() && h.model.is_none() && h.policy.is_none());
}

#[test]
fn the_runtime_follows_the_key_then_the_file() {
    let f = Fixture::new();
    f.write("agents/exec", "binary");
    std::fs::set_permissions(f.dir.join("agents/exec"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for (text, want, name) in [
        ("agent: agents/hello.md", Runtime::Claude, "hello"),
        ("agent: agents/run.sh", Runtime::Script, "run"),
        ("agent: agents/exec", Runtime::Script, "exec"),
        ("agent: agents/plain", Runtime::Claude, "plain"),
        ("agent: agents/plain\nruntime: script", Runtime::Script, "plain"),
        ("agent: agents/run.sh\nruntime: claude", Runtime::Claude, "run"),
    ] {
        let h = f.good(text).harness;
        assert_eq!((h.runtime, h.agent_name.as_str()), (want, name), "{text}");
    }
}

#[test]
fn the_command_line_wins() {
    let mut f = Fixture::new();
    let text = "agent: agents/hello.md\nimage: from-harness:1\nmodel: m1\ntimeout_minutes: 1\n";
    f.env.insert(FULLSEND_SANDBOX_IMAGE.into(), "from-env:1".into());
    assert_eq!(f.good(text).harness.image.as_deref(), Some("from-env:1"));
    f.env.insert(FULLSEND_SANDBOX_IMAGE.into(), String::new());
    assert_eq!(f.good(text).harness.image.as_deref(), Some("from-harness:1"));
    f.env.insert(FULLSEND_SANDBOX_IMAGE.into(), "from-env:1".into());
    f.overrides = Overrides {
        image: Some("from-flag:1".into()),
        model: Some("m2".into()),
        timeout: Some(Duration::from_secs(7)),
        ready_timeout: Some(Duration::from_secs(9)),
        ..Overrides::default()
    };
    let h = f.good(text).harness;
    assert_eq!((h.image.as_deref(), h.model.as_deref()), (Some("from-flag:1"), Some("m2")));
    assert_eq!((h.timeout.as_secs(), h.sandbox_timeout.as_secs()), (7, 9));
    f.overrides = Overrides {
        image: Some("-x".into()),
        model: Some("a/b".into()),
        timeout: Some(Duration::ZERO),
        ready_timeout: Some(Duration::from_secs(3601)),
        ..Overrides::default()
    };
    let problems = f.bad(text);
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems.iter().all(|(code, place, _)| *code == Code::Value && place.is_empty()));
}

#[test]
fn warnings_do_not_stop_a_run() {
    let f = Fixture::new();
    let loaded = f.good(
        "agent: agents/hello.md\ndoc: x\ntrigger: x\nwhatever: 1\nskills: [skills/two]\n\
         runner_env: {A: costs $5, B: $UNSET}\nvalidation_loop: {script: scripts/s.sh, max_iterations: 0, \
         feedback_mode: append}\nproviders: [p, p]\n",
    );
    let got: Vec<_> = loaded
        .warnings
        .iter()
        .map(|w| {
            assert_eq!(w.severity, Severity::Warning);
            (w.place.as_ref().unwrap().line, w.message.as_str())
        })
        .collect();
    assert_eq!(
        got,
        [
            (3, "`trigger` is accepted but not applied by this version"),
            (4, "`whatever` is not a key of the top level"),
            (5, "the skill `two` has no SKILL.md"),
            (6, "`$5` is not set and expands to nothing"),
            (6, "`$UNSET` is not set and expands to nothing"),
            (7, "`max_iterations` below 1 counts as 1"),
            (8, "the provider `p` is listed twice"),
        ]
    );
    let h = loaded.harness;
    assert_eq!(exposed(&h.runner_env), [("A", "costs "), ("B", "")]);
    assert_eq!(h.validation.unwrap().max_iterations, 1);
    assert_eq!(h.providers.len(), 1);
}

#[test]
fn a_fifo_is_refused_before_it_is_opened() {
    let f = Fixture::new();
    let fifo = f.dir.join("policies/fifo.yaml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fifo.as_std_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let problems = f.bad("agent: agents/hello.md\npolicy: policies/fifo.yaml\n");
    assert_eq!((problems[0].0, problems.len()), (Code::FileType, 1));
    // The harness file itself must not be one either: opening it would wait forever.
    std::fs::rename(&fifo, f.dir.join("harness/h.yml")).unwrap();
    std::fs::remove_file(f.dir.join("harness/h.yaml")).unwrap();
    let error = load(&f.request()).unwrap_err();
    assert_eq!(error.code(), Code::FileMissing);
    assert!(error.message().contains("not a regular file"), "{error}");
}

/// The directory that `FULLSEND_CORPUS` holds, byte for byte; what it names and does not bring is stood in for.
#[test]
fn the_corpus_loads() {
    let Some(corpus) = std::env::var_os("FULLSEND_CORPUS") else {
        eprintln!("NOT RUN: FULLSEND_CORPUS is not set, so the corpus was not loaded");
        return;
    };
    let corpus = Utf8PathBuf::from_path_buf(corpus.into()).unwrap().join("hello-world");
    let mut f = Fixture::new();
    for entry in walkdir::WalkDir::new(&corpus).into_iter().map(std::result::Result::unwrap) {
        if entry.file_type().is_file() {
            let inside = Utf8Path::from_path(entry.path()).unwrap().strip_prefix(&corpus).unwrap();
            f.write(inside.as_str(), std::fs::read(entry.path()).unwrap());
        }
    }
    f.write("agents/hello-world.md", "x\n");
    f.write("skills/hello-world-summary/SKILL.md", "x\n");
    f.write("scripts/validate-output.sh", "#!/bin/sh\n");
    f.env.extend(
        [("ANTHROPIC_VERTEX_PROJECT_ID", "it's"), ("CLOUD_ML_REGION", "global")]
            .map(|(k, v)| (k.into(), v.into())),
    );
    f.env.insert("GOOGLE_APPLICATION_CREDENTIALS".into(), f.dir.join("input/data").to_string());
    let request = Request { agent: "hello-world".into(), ..f.request() };
    let loaded = load(&request).unwrap_or_else(|e| panic!("{:?}", e.problem_list()));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!(exposed(&loaded.harness.runner_env), [("VALIDATION_EXPECTED_FAILURES", "1")]);
    let content = loaded.harness.host_files[0].content.as_ref().unwrap().expose();
    assert!(content.contains(r"PROJECT_ID='it'\''s'"), "{content}");
    assert_eq!(loaded.harness.validation.unwrap().max_iterations, 3);
}

/// A harness as they are in the field; what it names and does not bring is stood in for.
#[test]
fn a_harness_from_the_field_loads() {
    let mut f = Fixture::new();
    f.write("agents/hello-world.md", "x\n");
    f.write("skills/hello-world-summary/SKILL.md", "x\n");
    f.write("scripts/validate-output.sh", "#!/bin/sh\n");
    f.write("policies/hello-world.yaml", "version: 1\n");
    f.write(
        "env/gcp-vertex.env",
        "export CLAUDE_CODE_USE_VERTEX=1\nexport ANTHROPIC_VERTEX_PROJECT_ID=${ANTHROPIC_VERTEX_PROJECT_ID}\n\
         export CLOUD_ML_REGION=${CLOUD_ML_REGION}\n",
    );
    let text = "agent: agents/hello-world.md\nmodel: sonnet\nimage: quay.io/x/y:latest\npolicy: policies/hello-world.yaml\n\
                host_files:\n  - src: env/gcp-vertex.env\n    dest: /tmp/workspace/.env.d/gcp-vertex.env\n    expand: true\n\
                \x20 - src: ${GOOGLE_APPLICATION_CREDENTIALS}\n    dest: /tmp/workspace/.gcp-credentials.json\n\
                skills:\n  - skills/hello-world-summary\nvalidation_loop:\n  script: scripts/validate-output.sh\n\
                \x20 max_iterations: 3\nrunner_env:\n  VALIDATION_EXPECTED_FAILURES: \"1\"\ntimeout_minutes: 5\n";
    let codes: Vec<_> = f.bad(text).into_iter().map(|(code, place, _)| (code, place)).collect();
    assert_eq!(
        codes,
        [
            (Code::EnvUnset, "harness/h.yaml:9:10".to_owned()),
            (Code::EnvUnset, "env/gcp-vertex.env:2:36".to_owned()),
            (Code::EnvUnset, "env/gcp-vertex.env:3:24".to_owned()),
        ]
    );
    for (name, value) in [("ANTHROPIC_VERTEX_PROJECT_ID", "my project"), ("CLOUD_ML_REGION", "global")] {
        f.env.insert(name.into(), value.into());
    }
    f.env.insert("GOOGLE_APPLICATION_CREDENTIALS".into(), f.dir.join("input/data").to_string());
    let h = f.good(text).harness;
    assert_eq!(h.host_files.len(), 2);
    assert!(h.host_files[0].content.as_ref().unwrap().expose().contains("PROJECT_ID='my project'\n"));
    assert_eq!(h.timeout.as_secs(), 300);
}
