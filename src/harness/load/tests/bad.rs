//! One clear problem for each bad input, and all of them at once.

use super::*;

/// One bad input each: harness text, code, place, a part of the message or help.
const BAD: &[(&str, Code, &str, &str)] = &[
    // The text itself.
    ("", Code::Required, "harness/h.yaml", "empty"),
    ("# only a comment\n", Code::Required, "harness/h.yaml", "empty"),
    ("- a\n", Code::YamlType, "harness/h.yaml:1:1", "a list, not a mapping"),
    ("just text\n", Code::YamlType, "harness/h.yaml:1:1", "text, not a mapping"),
    ("agent: a: b\n", Code::YamlSyntax, "harness/h.yaml:1:9", "mapping values"),
    ("agent: agents/hello.md\nenv:\n\trunner: {}\n", Code::YamlSyntax, "harness/h.yaml:3", "spaces"),
    ("agent: agents/hello.md\n---\nagent: x\n", Code::YamlSyntax, "harness/h.yaml:3:1", "more than one"),
    ("agent: 'agents/hello.md\n", Code::YamlSyntax, "harness/h.yaml:1:8", "quote"),
    ("agent: agents/hello.md\nagent: agents/run.sh\n", Code::YamlKey, "harness/h.yaml:2:1", "repeated"),
    ("agent: agents/hello.md\nenv: {runner: {A: 1, A: 2}}\n", Code::YamlKey, "harness/h.yaml:2:22", "line 2"),
    // Keys.
    ("description: x\n", Code::Required, "harness/h.yaml", "`agent` is missing"),
    (
        "agent: agents/hello.md\ntimout_minutes: 30\n",
        Code::YamlKey,
        "harness/h.yaml:2:1",
        "`timeout_minutes`?",
    ),
    (
        "agent: agents/hello.md\nvalidation-loop: {}\n",
        Code::YamlKey,
        "harness/h.yaml:2:1",
        "`validation_loop`?",
    ),
    ("agent: agents/hello.md\nmax_iterations: 2\n", Code::YamlKey, "harness/h.yaml:2:1", "`validation_loop`"),
    ("agent: agents/hello.md\nenv: {runer: {}}\n", Code::YamlKey, "harness/h.yaml:2:7", "`runner`?"),
    ("agent: agents/hello.md\nforge: {github: {}}\n", Code::Required, "harness/h.yaml:2:1", "--forge github"),
    (
        "agent: agents/hello.md\napi_servers: [{name: a}]\n",
        Code::Required,
        "harness/h.yaml:2:16",
        "`script:`",
    ),
    (
        "agent: agents/hello.md\napi_servers: [{name: a, script: none}]\n",
        Code::FileMissing,
        "harness/h.yaml:2:33",
        "",
    ),
    (
        "agent: agents/hello.md\napi_servers: [{name: a, script: agents/hello.md, port: 80}]\n",
        Code::Value,
        "harness/h.yaml:2:56",
        "1024",
    ),
    (
        "agent: agents/hello.md\napi_servers: [{name: a b, script: agents/hello.md}]\n",
        Code::Value,
        "harness/h.yaml:2:22",
        "letters",
    ),
    (
        "agent: agents/hello.md\napi_servers: [{name: a, script: agents/hello.md}, {name: A, script: agents/hello.md}]\n",
        Code::Value,
        "harness/h.yaml:2:58",
        "the same",
    ),
    (
        "agent: agents/hello.md\napi_servers: [{name: a, script: agents/hello.md, bind_address: localhost}]\n",
        Code::Value,
        "harness/h.yaml:2:64",
        "127.0.0.1",
    ),
    ("agent: agents/hello.md\nresources: {cpus: 2}\n", Code::YamlKey, "harness/h.yaml:2:13", "`cpu`?"),
    ("agent: agents/hello.md\nresources: {memory: 4GB}\n", Code::Value, "harness/h.yaml:2:21", "4Gi"),
    ("agent: agents/hello.md\nlabels: {fullsend-run: x}\n", Code::Value, "harness/h.yaml:2:10", "own"),
    ("agent: agents/hello.md\nmax_concurrent: -1\n", Code::Value, "harness/h.yaml:2:17", "no limit"),
    ("agent: agents/hello.md\nttl: soon\n", Code::Value, "harness/h.yaml:2:6", "1h30m"),
    // Types.
    ("agent: [agents/hello.md]\n", Code::YamlType, "harness/h.yaml:1:8", "`agent` is a list, not text"),
    ("agent: agents/hello.md\nskills: skills/one\n", Code::YamlType, "harness/h.yaml:2:9", "not a list"),
    ("agent: agents/hello.md\nskills:\n  - [a]\n", Code::YamlType, "harness/h.yaml:3:5", "a list, not text"),
    ("agent: agents/hello.md\nskills:\n  -\n", Code::Value, "harness/h.yaml:3", "empty"),
    ("agent: agents/hello.md\nenv: [A]\n", Code::YamlType, "harness/h.yaml:2:6", "not a mapping"),
    ("agent: agents/hello.md\nrunner_env: {A: [1]}\n", Code::YamlType, "harness/h.yaml:2:17", "not text"),
    ("agent: agents/hello.md\nrunner_env:\n  A: ~\n", Code::YamlType, "harness/h.yaml:3:6", "null"),
    (
        "agent: agents/hello.md\nreadonly_repo: \"true\"\n",
        Code::YamlType,
        "harness/h.yaml:2:16",
        "without quotes",
    ),
    ("agent: agents/hello.md\ntimeout_minutes: '5'\n", Code::YamlType, "harness/h.yaml:2:18", "whole number"),
    ("agent: agents/hello.md\ntimeout_minutes: 5.5\n", Code::YamlType, "harness/h.yaml:2:18", "whole number"),
    ("agent: agents/hello.md\nhost_files: [x]\n", Code::YamlType, "harness/h.yaml:2:14", "not a mapping"),
    (
        "agent: agents/hello.md\nrunner_env: {A: ${SET}}\n",
        Code::YamlSyntax,
        "harness/h.yaml:2:",
        "needs quotes",
    ),
    // Values.
    ("agent: agents/hello.md\ntimeout_minutes: -1\n", Code::Value, "harness/h.yaml:2:18", "range"),
    ("agent: agents/hello.md\ntimeout_minutes: 99999\n", Code::Value, "harness/h.yaml:2:18", "range"),
    ("agent: agents/hello.md\nsandbox_timeout_seconds: 3601\n", Code::Value, "harness/h.yaml:2:26", "3600"),
    ("agent: agents/hello.md\nrole: Code\n", Code::Value, "harness/h.yaml:2:7", "lower-case"),
    ("agent: agents/hello.md\nrole: a--b\n", Code::Value, "harness/h.yaml:2:7", "single `-`"),
    ("agent: agents/hello.md\nslug: -x\n", Code::Value, "harness/h.yaml:2:7", "`slug`"),
    ("agent: agents/hello.md\nmodel: a/b\n", Code::Value, "harness/h.yaml:2:8", "`model`"),
    ("agent: agents/hello.md\neffort: hihg\n", Code::Value, "harness/h.yaml:2:9", "`high`?"),
    ("agent: agents/hello.md\neffort: ultracode\n", Code::Value, "harness/h.yaml:2:9", "xhigh or max"),
    ("agent: agents/hello.md\nimage: a b\n", Code::Value, "harness/h.yaml:2:8", "one word"),
    ("agent: agents/hello.md\nimage: ${IMG}\n", Code::Value, "harness/h.yaml:2:8", "variables"),
    ("agent: agents/hello.md\nruntime: aider\n", Code::Value, "harness/h.yaml:2:10", "opencode"),
    ("agent: agents/hello.md\nrunner_env: {1A: x}\n", Code::Value, "harness/h.yaml:2:14", "variable name"),
    ("agent: agents/hello.md\nrunner_env: {A: \"\\0\"}\n", Code::Value, "harness/h.yaml:2:17", "NUL"),
    (
        "agent: agents/hello.md\nenv: {sandbox: {ACTIONS_ID_TOKEN_REQUEST_URL: x}}\n",
        Code::Value,
        "harness/h.yaml:2:17",
        "identity",
    ),
    (
        "agent: agents/hello.md\nlimits: {max_patch_bytes: -1}\n",
        Code::Value,
        "harness/h.yaml:2:27",
        "negative",
    ),
    ("agent: agents/hello.md\nupload: {exclude: [../x]}\n", Code::Value, "harness/h.yaml:2:20", "`..`"),
    // Paths.
    ("agent: agents/none.md\n", Code::FileMissing, "harness/h.yaml:1:8", "does not exist"),
    ("agent: agents/dangling.md\n", Code::FileMissing, "harness/h.yaml:1:8", "does not exist"),
    ("agent: agents\n", Code::FileType, "harness/h.yaml:1:8", "a directory"),
    ("agent: ../outside/secret\n", Code::PathEscape, "harness/h.yaml:1:8", "leads outside"),
    ("agent: agents/../../outside/secret\n", Code::PathEscape, "harness/h.yaml:1:8", "leads outside"),
    ("agent: https://x.test/a.md\n", Code::RemoteDenied, "harness/h.yaml:1:8", "prefix"),
    ("agent: \"agents/a\\nb.md\"\n", Code::Value, "harness/h.yaml:1:8", "control character"),
    ("agent: agents/hello.md/x\n", Code::FileMissing, "harness/h.yaml:1:8", "not a directory"),
    (
        "agent: agents/hello.md\npolicy: policies/link.yaml\n",
        Code::PathEscape,
        "harness/h.yaml:2:9",
        "symbolic link",
    ),
    (
        "agent: agents/hello.md\nskills: [skills/link]\n",
        Code::PathEscape,
        "harness/h.yaml:2:10",
        "symbolic link",
    ),
    (
        "agent: agents/hello.md\nskills: [agents/hello.md]\n",
        Code::FileType,
        "harness/h.yaml:2:10",
        "directory",
    ),
    (
        "agent: agents/hello.md\nskills: [skills/one, ./skills/one]\n",
        Code::Value,
        "harness/h.yaml:2:22",
        "twice",
    ),
    (
        "agent: agents/hello.md\nskills: [{skills/one: {a: b}}]\n",
        Code::FileMissing,
        "harness/h.yaml:2:27",
        "`b`",
    ),
    ("agent: agents/hello.md\nskills: [{a: , b: }]\n", Code::YamlType, "harness/h.yaml:2:", "not a path"),
    ("agent: agents/hello.md\nagent_input: env/a.env\n", Code::FileType, "harness/h.yaml:2:14", "directory"),
    (
        "agent: agents/hello.md\npre_script: scripts/no.sh\n",
        Code::FileMissing,
        "harness/h.yaml:2:13",
        "pre_script",
    ),
    (
        "agent: agents/hello.md\npolicy: policies/list.yaml\n",
        Code::YamlType,
        "policies/list.yaml:1:1",
        "mapping",
    ),
    ("agent: agents/hello.md\npolicy: policies/none.yaml\n", Code::Required, "policies/none.yaml", "version"),
    // The validation loop.
    (
        "agent: agents/hello.md\nvalidation_loop: {max_iterations: 2}\n",
        Code::Required,
        "harness/h.yaml:2:1",
        "script",
    ),
    (
        "agent: agents/hello.md\nvalidation_loop: {schema: schemas/broken.json}\n",
        Code::Value,
        "schemas/broken.json:2:11",
        "JSON",
    ),
    (
        "agent: agents/hello.md\nvalidation_loop: {schema: schemas/bad.json}\n",
        Code::Value,
        "schemas/bad.json",
        "schema",
    ),
    (
        "agent: agents/hello.md\nvalidation_loop: {script: scripts/s.sh, max_iterations: 101}\n",
        Code::Value,
        "harness/h.yaml:2:57",
        "100",
    ),
    (
        "agent: agents/hello.md\nvalidation_loop: {script: scripts/s.sh, preflight_check: 'x `${SET}`'}\n",
        Code::Value,
        "harness/h.yaml:2:62",
        "backquotes",
    ),
    // Host files.
    (
        "agent: agents/hello.md\nhost_files:\n  - src: env/a.env\n",
        Code::Required,
        "harness/h.yaml:3:5",
        "`dest`",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - dest: /tmp/a\n",
        Code::Required,
        "harness/h.yaml:3:5",
        "`src`",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/a.env, dest: tmp/a}\n",
        Code::Value,
        "harness/h.yaml:3:28",
        "absolute",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/a.env, dest: /tmp/workspace/.env}\n",
        Code::Value,
        "harness/h.yaml:3:28",
        "runner",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/a.env, dest: /tmp/a}\n  - {src: env/a.env, dest: /tmp/./a}\n",
        Code::Value,
        "harness/h.yaml:4:28",
        "twice",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/a.env, dest: /tmp/a}\n  - {src: env/a.env, dest: /tmp/a/b}\n",
        Code::Value,
        "harness/h.yaml:4:28",
        "directory",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env, dest: /tmp/a}\n",
        Code::FileType,
        "harness/h.yaml:3:11",
        "a directory",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - src: ${NOPE}\n    dest: /tmp/a\n",
        Code::EnvUnset,
        "harness/h.yaml:3:10",
        "`NOPE` is not set",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - src: ${EMPTY}\n    dest: /tmp/a\n",
        Code::Value,
        "harness/h.yaml:3:10",
        "expands to nothing",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - src: ${OUTSIDE}\n    dest: /tmp/a\n",
        Code::FileMissing,
        "harness/h.yaml:3:10",
        "${OUTSIDE} = /outside",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - src: env/${UP}\n    dest: /tmp/a\n",
        Code::PathEscape,
        "harness/h.yaml:3:10",
        "leads outside",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/missing.env, dest: /tmp/a, expand: true}\n",
        Code::EnvUnset,
        "env/missing.env:3:18",
        "`NOPE`",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/default.env, dest: /tmp/a, expand: true}\n",
        Code::Value,
        "env/default.env:1:3",
        "plain",
    ),
    (
        "agent: agents/hello.md\nhost_files:\n  - {src: env/tick.env, dest: /tmp/a, expand: true}\n",
        Code::Value,
        "env/tick.env:1:9",
        "$(…)",
    ),
    // Variables.
    (
        "agent: agents/hello.md\nrunner_env:\n  A: \"é ${NOPE}\"\n",
        Code::EnvUnset,
        "harness/h.yaml:3:9",
        "NOPE",
    ),
    ("agent: agents/hello.md\nrunner_env:\n  A: ${X:-y}\n", Code::Value, "harness/h.yaml:3:6", "${X:-y}"),
    ("agent: agents/hello.md\nrunner_env:\n  A: a${\n", Code::Value, "harness/h.yaml:3:7", "without a `}`"),
    (
        "agent: agents/hello.md\nrunner_env:\n  A: x${ACTIONS_ID_TOKEN_REQUEST_TOKEN}\n",
        Code::EnvUnset,
        "harness/h.yaml:3:7",
        "never expands",
    ),
    // Providers and profiles.
    ("agent: agents/hello.md\nproviders: [a b]\n", Code::Value, "harness/h.yaml:2:13", "provider name"),
    (
        "agent: agents/hello.md\nproviders: [providers/no.yaml]\n",
        Code::FileMissing,
        "harness/h.yaml:2:13",
        "exist",
    ),
    (
        "agent: agents/hello.md\nproviders: [https://x/p.yaml]\n",
        Code::RemoteDenied,
        "harness/h.yaml:2:13",
        "config.yaml",
    ),
    (
        "agent: agents/hello.md\nopenshell: {profiles: [profiles]}\n",
        Code::Value,
        "harness/h.yaml:2:24",
        ".yaml",
    ),
    (
        "agent: agents/hello.md\nopenshell: {profiles: [policies/p.yaml]}\n",
        Code::Required,
        "policies/p.yaml",
        "`id` is missing",
    ),
];

#[test]
fn every_bad_input_gives_one_clear_problem() {
    let mut f = Fixture::new();
    f.env.insert("UP".into(), "../../outside/secret".into());
    f.env.insert("ACTIONS_ID_TOKEN_REQUEST_TOKEN".into(), "t".into());
    for (text, code, place, part) in BAD {
        let problems = f.bad(text);
        assert_eq!(problems.len(), 1, "{text}\n{problems:#?}");
        let (got_code, got_place, problem) = &problems[0];
        assert_eq!(got_code, code, "{text}\n{problem:?}");
        assert!(got_place.starts_with(place), "{text}\n{got_place} for {place}: {problem:?}");
        let help = problem.help.as_deref().unwrap_or_default();
        let said = format!("{} {help}", problem.message);
        assert!(said.contains(part), "{text}\n{said}");
        assert!(!help.is_empty() || *code == Code::Required, "{text}: no help");
        assert!(!problem.message.contains('\n'), "{text}");
    }
    assert!(BAD.len() >= 40);
}

#[test]
fn bad_bytes() {
    let f = Fixture::new();
    for (bytes, place) in [
        (&b"agent: agents/hello.md\ndescription: \xff\n"[..], "harness/h.yaml:2"),
        (b"\xff\xfea\0g\0", "harness/h.yaml:1"),
    ] {
        let problems = f.bad(bytes);
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].0, problems[0].1.as_str()), (Code::YamlSyntax, place));
        assert!(problems[0].2.help.as_ref().unwrap().contains("UTF-8"));
    }
    f.good("\u{feff}agent: agents/hello.md\n");
    f.good("agent: agents/hello.md\r\ndescription: x\r\n");
    let big = format!("agent: agents/hello.md\n{}", "# x\n".repeat(300_000));
    assert_eq!(f.bad(big)[0].0, Code::FileMissing);
}

#[test]
fn all_problems_at_once_in_the_order_of_the_text() {
    let f = Fixture::new();
    let problems = f.bad(
        "agent: agents/none.md\nrunner_env:\n  A: ${ONE} ${TWO} ${ONE}\n  B: ${THREE}\nmodel: a/b\nrol: x\n\
         policy: policies/none.yaml\nhost_files:\n  - src: ${FOUR}\n    dest: rel\nenv:\n  sandbox: {C: '${FIVE}'}\n",
    );
    let got: Vec<_> = problems.iter().map(|(code, place, _)| format!("{code} {place}")).collect();
    assert_eq!(
        got,
        [
            "FS-FILE-MISSING harness/h.yaml:1:8",
            "FS-ENV-UNSET harness/h.yaml:3:6",
            "FS-ENV-UNSET harness/h.yaml:3:13",
            "FS-ENV-UNSET harness/h.yaml:3:20",
            "FS-ENV-UNSET harness/h.yaml:4:6",
            "FS-VALUE harness/h.yaml:5:8",
            "FS-YAML-KEY harness/h.yaml:6:1",
            "FS-ENV-UNSET harness/h.yaml:9:10",
            "FS-VALUE harness/h.yaml:10:11",
            "FS-ENV-UNSET harness/h.yaml:12:17",
            "FS-REQUIRED policies/none.yaml",
        ]
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    /// Text that looks like a harness, with bases, blocks and overlays, is a harness or a list of problems.
    #[test]
    fn any_harness_text_is_answered(
        lines in proptest::collection::vec(
            proptest::sample::select(vec![
                "agent: agents/hello.md", "base: h.yaml", "base: other.yaml", "forge:", "  github:", "  gitlab: ~",
                "    skills: [skills/one, {skills/one: {a: }}]", "    remove: {skills: [one], policy: true}",
                "    env: {runner: {A: '${SET}'}}", "overlays:", "  - when: event.x", "  - when: 'true'", "    policy: x",
                "plugins: [{path: a}, b]", "skills: [skills/one: {b: ~}]", "remove:", "  env.runner: [A]", "  skills.one: [b]",
                "host_files: [{src: env/a.env, dest: /tmp/a}]", "env: &e {runner: {A: 1}}", "x: *e", "required_env: [A, SET]",
                "validation_loop: {}", "upload: [", "\u{feff}", "\t- x", "? [a]", "security: {a: {b: [c]}}", "env:", "  runner: 5",
            ]),
            0..12,
        ),
        noise in "\\PC{0,20}",
    ) {
        let f = Fixture { forge: Some(Forge::Github), ..Fixture::new() };
        f.write("harness/other.yaml", format!("agent: agents/hello.md\n{noise}\n"));
        let _ = f.load(format!("{}\n{noise}\n", lines.join("\n")));
        let _ = f.load(format!("{noise}\n{}\n", lines.join("\n")));
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
        let f = Fixture::new();
        let _ = f.load(&bytes);
        f.write("config.yaml", &bytes);
        let _ = f.load(GOOD);
    }
}

/// Texts that grow in one direction each.
fn growing(shape: usize, n: usize) -> String {
    let many = |line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let head = "agent: agents/hello.md\n";
    match shape {
        0 => format!("{head}env:\n  sandbox:\n{}", many(&|i| format!("    A{i}: value\n"))),
        1 => format!("{head}env:\n  sandbox:\n{}", many(&|i| format!("    A{i}: ${{NOPE{i}}}\n"))),
        2 => format!("{head}{}", many(&|i| format!("unknown_thing_{i}: 1\n"))),
        3 => format!("{head}skills:\n{}", many(&|i| format!("  - skills/none{i}\n"))),
        4 => format!("{head}host_files:\n{}", many(&|i| format!("  - {{src: env/a.env, dest: /d/{i}}}\n"))),
        5 => format!("{head}env: {{sandbox: {{{}}}}}\n", many(&|i| format!("A{i}: \"${{NOPE{i}}}\", "))),
        6 => format!("{head}required_env: [{}]\n", many(&|i| format!("NOPE{i}, "))),
        7 => format!("{head}runner_env: {{A: \"{}\"}}\n", "$NOPE ".repeat(n)),
        8 => format!("{head}forge: {{github: {{skills: [{}]}}}}\n", many(&|i| format!("s{i}, "))),
        9 => format!("{head}providers: [{}]\n", many(&|i| format!("p{i}, "))),
        10 => format!("{head}description: \"{}\"\n", "é\\n".repeat(n)),
        11 => format!("{head}remove: {{skills: [{}]}}\n", many(&|i| format!("p{i}, "))),
        12 => format!("{head}overlays: [{}]\n", many(&|_| "{when: 'false'}, ".to_owned())),
        13 => format!("{head}plugins: [{}]\n", many(&|i| format!("p{i}, "))),
        14 => format!("{head}{}", many(&|_| "same: 1\n".to_owned())),
        15 => "[".repeat(n),
        16 => "a: ".repeat(n),
        17 => format!("{head}x: {}", "'".repeat(n)),
        _ => format!(
            "base: other.yaml\nskills: [{}]\nproviders: [{}]\n",
            many(&|i| format!("s{i}, ")),
            many(&|i| format!("q{i}, "))
        ),
    }
}

/// Four times the text takes about four times as long, whatever it is made of. What grows with the square would take
/// sixteen times as long; the allowance is for a busy machine.
#[test]
fn the_time_grows_with_the_text() {
    let mut slow = Vec::new();
    for shape in 0..=18 {
        let f = Fixture { forge: Some(Forge::Github), ..Fixture::new() };
        let base = (0..250).map(|i| format!("t{i}")).collect::<Vec<_>>().join(", ");
        f.write("harness/other.yaml", format!("agent: agents/hello.md\nskills: [{base}]\n"));
        let [small, large] = [250, 1000].map(|n| {
            let text = growing(shape, n);
            let once = || {
                let start = std::time::Instant::now();
                let _ = f.load(&text);
                start.elapsed()
            };
            once().min(once())
        });
        if large > small * 10 + Duration::from_secs(1) {
            slow.push(format!("shape {shape}: {small:?}, then {large:?}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

/// What fuzzing begins with is answered, and so is all that one changed byte makes of it.
#[test]
fn the_seeds_of_the_fuzzer_are_answered() {
    let seeds = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/harness");
    let f = Fixture { forge: Some(Forge::Github), ..Fixture::new() };
    let mut count = 0;
    for seed in seeds.read_dir_utf8().unwrap() {
        let bytes = std::fs::read(seed.unwrap().path()).unwrap();
        for at in (0..bytes.len()).step_by(5) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x15;
            let mut files = changed.split(|byte| *byte == b'%');
            let text = files.next().unwrap_or_default();
            f.write("harness/base.yaml", files.next().unwrap_or_default());
            f.write("config.yaml", files.next().unwrap_or_default());
            let _ = f.load(text);
            count += 1;
        }
    }
    assert!(count > 100);
}
