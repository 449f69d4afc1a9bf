//! Bad harness directories.

use std::os::unix::fs::symlink;

use super::{Case, Found, args, check, complaint, none};

const AGENT: &str = "agent: agents/work\nruntime: script\n";

#[test]
fn directories_and_agents() {
    check(
        &[
            Case {
                name: "the harness directory does not exist",
                code: "FS-DIR-MISSING",
                exit: 2,
                says: &["nowhere", "does not exist", "--fullsend-dir"],
                make: |_| args(&["--fullsend-dir", "nowhere"]),
            },
            Case {
                name: "the harness directory is a file",
                code: "FS-DIR-MISSING",
                exit: 2,
                says: &["README.md", "not a directory"],
                make: |_| args(&["--fullsend-dir", "README.md"]),
            },
            Case {
                name: "the repository was given instead of its .fullsend",
                code: "FS-DIR-MISSING",
                exit: 2,
                says: &["did you mean --fullsend-dir ./.fullsend?"],
                make: |w| {
                    w.write("repo/.fullsend/harness/a.yaml", AGENT);
                    args(&["--fullsend-dir", "."])
                },
            },
            Case {
                name: "the agent is misspelt",
                code: "FS-AGENT-UNKNOWN",
                exit: 2,
                says: &["no agent `work`", "did you mean `works`?"],
                make: |w| {
                    std::fs::rename(w.path("h/harness/work.yaml"), w.path("h/harness/works.yaml")).unwrap();
                    none()
                },
            },
            Case {
                name: "the agent is unknown",
                code: "FS-AGENT-UNKNOWN",
                exit: 2,
                says: &["no agent `work`", "it has: code, review"],
                make: |w| {
                    std::fs::remove_file(w.path("h/harness/work.yaml")).unwrap();
                    w.write("h/harness/review.yaml", AGENT);
                    w.write("h/harness/code.yml", AGENT);
                    none()
                },
            },
            Case {
                name: "the harness file is a directory",
                code: "FS-FILE-MISSING",
                exit: 2,
                says: &["work.yaml", "directory"],
                make: |w| {
                    std::fs::remove_file(w.path("h/harness/work.yaml")).unwrap();
                    std::fs::create_dir(w.path("h/harness/work.yaml")).unwrap();
                    none()
                },
            },
            Case {
                name: "the harness file is a dangling link",
                code: "FS-FILE-MISSING",
                exit: 2,
                says: &["work.yaml", "does not exist"],
                make: |w| {
                    std::fs::remove_file(w.path("h/harness/work.yaml")).unwrap();
                    symlink("gone.yaml", w.path("h/harness/work.yaml")).unwrap();
                    none()
                },
            },
        ],
        Found::BeforeRun,
    );
}

/// A bad text of the harness file: name, code, parts of the report, text.
struct Text(&'static str, &'static str, &'static [&'static str], &'static str);

const TEXTS: &[Text] = &[
    Text("empty", "FS-REQUIRED", &["work.yaml", "empty"], ""),
    Text(
        "unclosed list",
        "FS-YAML-SYNTAX",
        &["work.yaml:2:", "may not be closed"],
        "agent: [agents/work\nruntime: script\n",
    ),
    Text(
        "tab",
        "FS-YAML-SYNTAX",
        &["work.yaml:3:", "indent with spaces"],
        "agent: agents/work\nenv:\n\trunner: {}\n",
    ),
    Text(
        "unknown key",
        "FS-YAML-KEY",
        &["work.yaml:2:1", "did you mean `runtime`?"],
        "agent: agents/work\nruntme: script\n",
    ),
    Text(
        "repeated key",
        "FS-YAML-KEY",
        &["work.yaml:3:1", "repeated"],
        "agent: agents/work\nruntime: script\nagent: agents/other\n",
    ),
    Text("no agent", "FS-REQUIRED", &["`agent` is missing"], "description: x\n"),
    Text(
        "text for a list",
        "FS-YAML-TYPE",
        &["work.yaml:3:9", "not a list"],
        "agent: agents/work\nruntime: script\nskills: skills/one\n",
    ),
    Text(
        "quoted number",
        "FS-YAML-TYPE",
        &["work.yaml:2:18", "whole number"],
        "agent: agents/work\ntimeout_minutes: '5'\n",
    ),
    Text("text for a mapping", "FS-YAML-TYPE", &["not a mapping"], "agent: agents/work\nenv: yes\n"),
    Text(
        "number out of range",
        "FS-VALUE",
        &["work.yaml:2:18", "range"],
        "agent: agents/work\ntimeout_minutes: 99999\n",
    ),
    Text(
        "unknown runtime",
        "FS-VALUE",
        &["`codex` or `opencode` or `script`"],
        "agent: agents/work\nruntime: bash\n",
    ),
    Text("bad image", "FS-VALUE", &["`image`"], "agent: agents/work\nruntime: script\nimage: a b\n"),
    Text(
        "server without a script",
        "FS-REQUIRED",
        &["work.yaml:2:16", "`script`"],
        "agent: agents/work\napi_servers: [{name: a}]\n",
    ),
    Text(
        "missing agent file",
        "FS-FILE-MISSING",
        &["work.yaml:1:8", "agents/none", "does not exist"],
        "agent: agents/none\nruntime: script\n",
    ),
    Text(
        "directory for a file",
        "FS-FILE-TYPE",
        &["`agent` names `agents`", "a directory"],
        "agent: agents\nruntime: script\n",
    ),
    Text(
        "path that climbs",
        "FS-PATH-ESCAPE",
        &["work.yaml:1:8", "../repo/README.md", "leads outside"],
        "agent: ../repo/README.md\nruntime: script\n",
    ),
    Text(
        "missing policy",
        "FS-FILE-MISSING",
        &["policies/none.yaml"],
        "agent: agents/work\nruntime: script\npolicy: policies/none.yaml\n",
    ),
    Text(
        "missing host file",
        "FS-FILE-MISSING",
        &["files/none"],
        "agent: agents/work\nruntime: script\nhost_files: [{src: files/none, dest: /sandbox/x}]\n",
    ),
    Text(
        "destination of the runner",
        "FS-VALUE",
        &["belongs to the runner"],
        "agent: agents/work\nruntime: script\nhost_files: [{src: agents/work, dest: /sandbox/workspace/.env}]\n",
    ),
    Text(
        "missing schema",
        "FS-FILE-MISSING",
        &["schemas/none.json"],
        "agent: agents/work\nruntime: script\nvalidation_loop: {schema: schemas/none.json}\n",
    ),
    Text(
        "provider that climbs",
        "FS-PATH-ESCAPE",
        &["`providers` names `../x`"],
        "agent: agents/work\nruntime: script\nproviders: ['../x']\n",
    ),
    Text(
        "reserved variable",
        "FS-VALUE",
        &["FULLSEND_OUTPUT_DIR"],
        "agent: agents/work\nruntime: script\nenv: {sandbox: {FULLSEND_OUTPUT_DIR: /x}}\n",
    ),
    Text(
        "all unset variables",
        "FS-ENV-UNSET",
        &["2 problems", "`ONE`", "`TWO`", "--env-file"],
        "agent: agents/work\nruntime: script\nenv: {runner: {A: \"${ONE}\"}, sandbox: {B: \"${TWO}\"}}\n",
    ),
    Text(
        "variable that grants identity",
        "FS-ENV-UNSET",
        &["ACTIONS_ID_TOKEN_REQUEST_TOKEN"],
        "agent: agents/work\nruntime: script\nenv: {sandbox: {B: \"${ACTIONS_ID_TOKEN_REQUEST_TOKEN}\"}}\n",
    ),
    Text(
        "several problems",
        "FS-YAML-KEY",
        &["3 problems", "`runtime`?", "`readonly_repo` is text", "agents/none"],
        "runtme: script\nreadonly_repo: sometimes\nagent: agents/none\n",
    ),
];

#[test]
fn texts_of_the_harness() {
    let mut wrong = Vec::new();
    for Text(name, code, says, text) in TEXTS {
        TEXT.set(text);
        let make = |w: &mut crate::support::World| {
            w.harness(TEXT.get());
            w.env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "token");
            none()
        };
        wrong.extend(complaint(&Case { name, code, exit: 2, says, make }, Found::BeforeRun));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

thread_local! {
    static TEXT: std::cell::Cell<&'static str> = const { std::cell::Cell::new("") };
}

#[test]
fn files_that_the_harness_names() {
    check(
        &[
            Case {
                name: "bytes that are not UTF-8",
                code: "FS-YAML-SYNTAX",
                exit: 2,
                says: &["work.yaml", "UTF-8"],
                make: |w| {
                    w.write("h/harness/work.yaml", b"agent: agents/work\ndescription: \xff\n");
                    none()
                },
            },
            Case {
                name: "a link out of the directory",
                code: "FS-PATH-ESCAPE",
                exit: 2,
                says: &["agents/out", "symbolic link"],
                make: |w| {
                    symlink(w.path("repo/README.md"), w.path("h/agents/out")).unwrap();
                    w.harness("agent: agents/out\nruntime: script\n");
                    none()
                },
            },
            Case {
                name: "a schema that is no schema",
                code: "FS-VALUE",
                exit: 2,
                says: &["schemas/s.json"],
                make: |w| {
                    w.write("h/schemas/s.json", r#"{"type": "objekt"}"#);
                    w.harness(
                        "agent: agents/work\nruntime: script\nvalidation_loop: {schema: schemas/s.json}\n",
                    );
                    none()
                },
            },
            Case {
                name: "a provider file that is broken",
                code: "FS-YAML-KEY",
                exit: 2,
                says: &["providers/p.yaml:3:1", "did you mean `credentials`?"],
                make: |w| {
                    w.write("h/providers/p.yaml", "name: p\ntype: t\ncredentails: {A: b}\n");
                    w.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
                    none()
                },
            },
            Case {
                name: "a credential that expands to nothing",
                code: "FS-CREDENTIAL-EMPTY",
                exit: 2,
                says: &["providers/p.yaml:3:", "TOKEN"],
                make: |w| {
                    w.env("EMPTY", "");
                    w.write("h/providers/p.yaml", "name: p\ntype: t\ncredentials: {TOKEN: \"${EMPTY}\"}\n");
                    w.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
                    none()
                },
            },
            Case {
                name: "a credential whose variable is unset",
                code: "FS-ENV-UNSET",
                exit: 2,
                says: &["`SECRET_OF_MINE`", "export SECRET_OF_MINE"],
                make: |w| {
                    w.write(
                        "h/providers/p.yaml",
                        "name: p\ntype: t\ncredentials: {TOKEN: \"${SECRET_OF_MINE}\"}\n",
                    );
                    w.harness("agent: agents/work\nruntime: script\nproviders: [p]\n");
                    none()
                },
            },
            Case {
                name: "the variable of a host file's text is unset",
                code: "FS-ENV-UNSET",
                exit: 2,
                says: &["`NOT_SET`", "files/a.env"],
                make: |w| {
                    w.write("h/files/a.env", "export A=${NOT_SET}\n");
                    w.harness(
                        "agent: agents/work\nruntime: script\n\
                         host_files: [{src: files/a.env, dest: /sandbox/workspace/.env.d/a.env, expand: true}]\n",
                    );
                    none()
                },
            },
        ],
        Found::BeforeRun,
    );
}

/// The variable has the path of a file, and people put the event itself there.
#[test]
fn an_event_is_never_shown() {
    let payload = r#"{"token": "ghp_notToBeShown", bad"#;
    for (name, file, says) in [
        ("TRIGGER_PAYLOAD", None, "TRIGGER_PAYLOAD names cannot be read: it does not exist"),
        ("GITHUB_EVENT_PATH", None, "GITHUB_EVENT_PATH names cannot be read: it does not exist"),
        ("TRIGGER_PAYLOAD", Some(payload), "is not JSON: the mistake is in line 1, column 31"),
    ] {
        let mut world = crate::support::World::new();
        crate::fake::install(&mut world);
        world.harness(&format!("{AGENT}overlays:\n- when: event.x == 1\n  pre_script: agents/work\n"));
        let value =
            file.map_or(payload.to_owned(), |text| world.write("state/event", text).display().to_string());
        world.env(name, value);
        let done = world.run(&["--dry-run"]).done;
        assert_eq!(done.code, 2, "{done:?}");
        let flat = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("error[FS-FILE-MISSING]") && flat.contains(says), "{done:?}");
        assert!(!flat.contains("ghp_") && flat.contains("has the path of a file in JSON"), "{done:?}");
    }
}
