//! Secrets of a run: in no argument list, on no console, in no file afterwards, and in no repository.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::stub::not_run;
use crate::support::{GENERATIONS, Run, World, files_below, fullsend};

/// A value that JSON and shells have to escape, unlike that of any other test that runs at the same time.
fn token(of: &str) -> String {
    format!("tok-{of}-\"q\\u/+'$x 0123456789")
}

/// The lines of a key, without its fences.
const KEY_LINES: [&str; 2] = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"];

/// A world with a provider for a token and a key of several lines, and a secret of the scripts on the host.
fn secret_world(token: &str) -> World {
    let mut world = World::new();
    let key = format!("-----BEGIN KEY-----\n{}\n-----END KEY-----\n", KEY_LINES.join("\n"));
    world.env("MY_TOKEN", token).env("MY_KEY", key).env("MY_PUSH", format!("push-{token}"));
    world.write(
        "h/profiles/tool.yaml",
        "id: test-tool\ndisplay_name: Tool\ncategory: other\ncredentials:\n  - name: token\n    \
         env_vars: [TOOL_TOKEN]\n    required: true\n  - name: key\n    env_vars: [TOOL_KEY]\n    required: true\n\
         endpoints: []\n",
    );
    world.write(
        "h/providers/tool.yaml",
        "name: tool\ntype: test-tool\ncredentials:\n  TOOL_TOKEN: ${MY_TOKEN}\n  TOOL_KEY: ${MY_KEY}\n",
    );
    world.script("h/scripts/pre.sh", "echo \"pushing with $PUSH_TOKEN\"; echo \"$PUSH_TOKEN\" >&2");
    world.harness(
        "agent: agents/work\nruntime: script\nproviders: [tool]\npre_script: scripts/pre.sh\n\
         env: {runner: {PUSH_TOKEN: \"${MY_PUSH}\"}}\n\
         # These agents encode credentials on purpose.\n\
         security: {host_scanners: {context_injection: false}}\n",
    );
    world
}

/// What may be nowhere: the values as they are, in JSON, in base64, and the lines of the key.
fn forms(token: &str) -> Vec<String> {
    let json = Value::from(token).to_string();
    let mut forms = vec![token.to_owned(), json[1..json.len() - 1].to_owned(), STANDARD.encode(token)];
    forms.extend(KEY_LINES.map(str::to_owned));
    forms
}

#[track_caller]
fn assert_none(what: &str, bytes: &[u8], token: &str) {
    for form in forms(token) {
        let found = bytes.windows(form.len()).any(|w| w == form.as_bytes());
        assert!(!found, "{what} holds the secret as {form}:\n{}", String::from_utf8_lossy(bytes));
    }
}

/// Collects the argument lists of every process of the machine until it is stopped.
struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<BTreeSet<Vec<u8>>>,
}

impl Sampler {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !flag.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                    seen.extend(std::fs::read(entry.path().join("cmdline")));
                }
                std::thread::yield_now();
            }
            seen
        });
        Self { stop, thread }
    }

    fn finish(self) -> BTreeSet<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Prints the secrets in every way that an agent has.
const LEAK: &str = r#"
    json=$(printf %s "$TOOL_TOKEN" | sed 's/[\\"]/\\&/g')
    echo "the token is $TOOL_TOKEN, and the key:"; echo "$TOOL_KEY"
    echo "to stderr: $TOOL_TOKEN" >&2
    printf %s "$TOOL_TOKEN" | base64 -w0
    echo
    out=$FULLSEND_OUTPUT_DIR
    mkdir "$out/deep"
    printf 'text %s\nand\n%s\n' "$TOOL_TOKEN" "$TOOL_KEY" > "$out/deep/notes.txt"
    printf '{"said": "use %s now", "list": ["%s"], "n": 1}\n' "$json" "$json" > "$out/agent-result.json"
    printf '{"b64": "%s"}\n' "$(printf %s "$TOOL_TOKEN" | base64 -w0)" > "$out/encoded.json"
"#;

#[test]
fn a_leaking_agent_leaks_nothing_under_any_generation() {
    for generation in GENERATIONS {
        let token = token(generation);
        let mut world = secret_world(&token);
        world.personality(generation);
        world.agent(LEAK);
        for form in ["text", "json"] {
            let args = world.run_args(&["--dry-run", "--format", form, "-v"]);
            let done = world.fullsend(&args.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(done.code, 0, "{done:?}");
            assert!(done.stdout.contains("TOOL_TOKEN"), "the credential's name is to be seen");
            if form == "json" {
                serde_json::from_str::<Value>(&done.stdout).unwrap();
            }
            assert_none("the dry run", format!("{done:?}{}{}", done.stdout, done.stderr).as_bytes(), &token);
        }
        let sampler = Sampler::start();
        let run = world.run(&["-v"]).success();
        let argvs = sampler.finish();
        assert!(
            argvs.iter().any(|argv| argv.windows(8).any(|w| w == b"provider")),
            "the sampler saw nothing"
        );
        for argv in &argvs {
            assert_none("an argument list", argv, &token);
        }
        for call in world.calls() {
            assert_none("a call of openshell", call["argv"].to_string().as_bytes(), &token);
        }
        let shown = format!("{}{}", run.done.stdout, run.done.stderr);
        assert!(shown.contains("the token is ***") && shown.contains("pushing with ***"), "{shown}");
        assert_none("the console", shown.as_bytes(), &token);

        assert_redacted(&run);
        assert_nowhere(&world.path(""), &token);
        world.assert_clean();
    }
}

/// The sampler may miss a process of a millisecond; strace misses none.
#[test]
fn no_program_is_given_a_secret() {
    const NAME: &str = "secrets::no_program_is_given_a_secret";
    let token = token("strace");
    let mut world = secret_world(&token);
    let usable = world.command("strace", &["-f", "-o", "/dev/null", "true"], &world.repo()).status();
    if !usable.is_ok_and(|status| status.success()) {
        return not_run(NAME, "strace is missing or may not trace here");
    }
    world.env("FULLSEND_OPENSHELL", "local");
    world.agent(LEAK);
    let trace = world.path("trace");
    let args = world.run_args(&[]);
    let mut traced = vec!["-f", "-qq", "-s", "1000000", "-e", "trace=execve,execveat", "-o"];
    traced.extend([trace.to_str().unwrap(), fullsend().to_str().unwrap()]);
    traced.extend(args.iter().map(String::as_str));
    let done = world.finish(world.command("strace", &traced, &world.repo()));
    world.collect(done).success();
    let trace = std::fs::read_to_string(trace).unwrap();
    for program in ["/ssh\"", "/rsync\"", "/sed\"", "/base64\"", "\"provider\", \"create\""] {
        assert!(trace.contains(program), "{program} was not seen:\n{trace}");
    }
    // strace writes strings with escapes, so the plain part of the token is looked for.
    for form in ["tok-strace", STANDARD.encode("tok-strace-").as_str(), KEY_LINES[0], KEY_LINES[1]] {
        assert!(!trace.contains(&form[..form.len().min(12)]), "{form} was given to a program");
    }
}

/// What came back says where the secrets were, and JSON is still JSON.
fn assert_redacted(run: &Run) {
    let result: Value = serde_json::from_str(&run.file("iteration-1/output/agent-result.json")).unwrap();
    assert_eq!(result, serde_json::json!({"said": "use *** now", "list": ["***"], "n": 1}));
    serde_json::from_str::<Value>(&run.file("iteration-1/output/encoded.json")).unwrap();
    let notes = run.file("iteration-1/output/deep/notes.txt");
    assert!(notes.starts_with("text ***\nand\n") && notes.contains("***"), "{notes}");
    assert!(run.file("iteration-1/stream.jsonl").starts_with("the token is ***, and the key:\n"));
    assert!(run.file("iteration-1/stderr.log").contains("to stderr: ***"));
    assert!(run.json["iterations"][0]["stream"]["replacements"].as_u64().unwrap() >= 3);
}

/// No file of the world holds a secret: run directory, home, state, temp files, repository, git objects aside.
fn assert_nowhere(world: &Path, token: &str) {
    let files = files_below(world);
    assert!(files.iter().any(|(p, _)| p.ends_with("run.json")));
    for (path, bytes) in files {
        assert_none(&path.display().to_string(), &bytes, token);
    }
}

#[test]
fn json_events_stay_json_without_the_secret() {
    let token = token("events");
    let mut world = secret_world(&token);
    world.env("FULLSEND_OPENSHELL", "local");
    world.agent(
        r#"
        json=$(printf %s "$TOOL_TOKEN" | sed 's/[\\"]/\\&/g')
        echo '{"type":"system","subtype":"init","model":"m","session_id":"s"}'
        printf '{"type":"assistant","message":{"content":[{"type":"text","text":"it is %s\\n"}]}}\n' "$json"
        printf '{"type":"result","subtype":"success","is_error":true,"result":"failed with %s","num_turns":1}\n' "$json"
        "#,
    );
    let run = world.run(&[]).failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stdout.contains("it is ***"), "{}", run.done.stdout);
    assert!(run.done.stderr.contains("failed with ***"), "{}", run.done.stderr);
    for line in run.file("iteration-1/stream.jsonl").lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert_none("the console", format!("{}{}", run.done.stdout, run.done.stderr).as_bytes(), &token);
    assert_nowhere(&world.path(""), &token);
}

#[test]
fn a_secret_in_the_repository_stops_the_import() {
    let commit = "git config user.name A; git config user.email a@example.com; git add -A; git commit -qm";
    let cases = [
        ("a file", "echo \"x $TOOL_TOKEN\" > config.ini".to_owned(), "config.ini"),
        ("base64", "printf '%40s%s' '' \"$TOOL_TOKEN\" | base64 > wrapped".to_owned(), "wrapped"),
        ("a line of a key", "echo \"$TOOL_KEY\" | sed -n 3p >> README.md".to_owned(), "README.md"),
        (
            "a commit and its undoing",
            format!("echo \"$TOOL_TOKEN\" > oops; {commit} Add; rm oops; {commit} Remove"),
            "the blob",
        ),
        ("a commit message", format!("echo x > fine; {commit} \"with $TOOL_TOKEN\""), "the commit"),
    ];
    for (what, script, place) in cases {
        let token = token("repo");
        let world = secret_world(&token);
        let before = (world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"]));
        world.agent(&format!("echo kept > \"$FULLSEND_OUTPUT_DIR/kept\"; {script}"));
        let run = world.run(&[]).failure("FS-SECRET-FOUND", 4);
        assert!(run.done.stderr.contains(place), "{what}: {}", run.done.stderr);
        assert_eq!(run.json["verdict"], "blocked", "{what}");
        assert_eq!(run.file("iteration-1/output/kept"), "kept\n");
        assert_eq!((world.git(&["rev-parse", "HEAD"]), world.git(&["status", "--porcelain"])), before);
        assert_eq!(world.git(&["count-objects"]).split(' ').next(), Some("3"), "{what}: an object came in");
        assert_none(what, format!("{}{}", run.done.stdout, run.done.stderr).as_bytes(), &token);
        assert_nowhere(&world.path(""), &token);
        world.assert_clean();
    }
}

/// Line breaks, real ones and those of JSON strings, hide nothing: on the console, in the stream, in files.
#[test]
fn a_value_that_line_breaks_cut_is_hidden() {
    let token = token("wrapped");
    let mut world = secret_world(&token);
    world.env("FULLSEND_OPENSHELL", "local");
    world.agent(
        r#"out=$FULLSEND_OUTPUT_DIR
        printf '%50s%s' '' "$TOOL_TOKEN" | base64 | tee "$out/b64"
        printf 'first %s\nsecond %s end\n' "${TOOL_TOKEN:0:9}" "${TOOL_TOKEN:9}" > "$out/no-value"
        printf 'in halves: %s\n%s\n' "${TOOL_TOKEN:0:9}" "${TOOL_TOKEN:9}" | tee "$out/halves"
        printf '{"log": "%s"}\n' "$(printf '%50s%s' '' "$TOOL_TOKEN" | base64 | sed ':a;N;$!ba;s/\n/\\n/g')" > "$out/wrapped.json""#,
    );
    let run = world.run(&[]).success();
    assert!(run.done.stdout.contains("in halves: ***"), "{}", run.done.stdout);
    assert_eq!(run.file("iteration-1/output/halves"), "in halves: ***\n\n");
    assert!(run.file("iteration-1/output/b64").contains("***"));
    let events = run.file("iteration-1/events.jsonl");
    assert!(events.contains("in halves: ***") && !events.contains("tok-wrap"), "{events}");
    let json: Value = serde_json::from_str(&run.file("iteration-1/output/wrapped.json")).unwrap();
    assert!(json["log"].as_str().unwrap().contains("***"), "{json}");
    let wrapped = STANDARD.encode(format!("{:50}{token}", ""));
    for (what, text) in
        [("the console", run.done.stdout.clone()), ("the stream", run.file("iteration-1/stream.jsonl"))]
    {
        let joined: String = text.chars().filter(|c| !c.is_whitespace() && *c != '│' && *c != '|').collect();
        assert!(!joined.contains(&wrapped[72..90]), "{what}: {text}");
    }
    assert_nowhere(&world.path(""), &token);
}

/// A text that arrives in pieces, and the telling part of a tool's input that is cut for display.
#[test]
fn pieces_of_a_text_and_cut_summaries_show_no_half() {
    let token = "tok-pieces-0123456789-abcdefghij-klmnopqrst";
    let mut world = secret_world(token);
    world.env("FULLSEND_OPENSHELL", "local");
    world.agent(
        r#"
        delta() { printf '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}}\n' "$1"; }
        echo '{"type":"system","subtype":"init","model":"m::error::x","session_id":"s"}'
        echo '{"type":"stream_event","event":{"type":"message_start","message":{"id":"a","model":"m","content":[],"usage":{"input_tokens":1}}}}'
        echo '{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}'
        delta "say ${TOOL_TOKEN:0:7}"; delta "${TOOL_TOKEN:7:9}"; delta "${TOOL_TOKEN:16} now:"; delta ':add-mask:'; delta ':x'
        echo '{"type":"stream_event","event":{"type":"content_block_stop","index":0}}'
        printf '{"type":"assistant","message":{"id":"b","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"%100s%s"}}]}}\n' 'echo' "$(printf 'x%.0s' {1..95}) $TOOL_TOKEN" | sed 's/  */ /g'
        echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","num_turns":1}'
        "#,
    );
    world.env("GITHUB_ACTIONS", "true");
    let run = world.run(&["--show-agent-output", "full"]).success();
    let shown: String =
        run.done.stdout.lines().filter(|l| !l.starts_with("::add-mask::")).collect::<Vec<_>>().join("\n");
    assert!(shown.contains("say *** now: :add-mask: :x"), "{shown}");
    assert!(shown.contains("Bash: echoxxx") && !shown.contains("tok-pieces"), "{shown}");
    assert!(!shown.contains("m::error") && !shown.contains("9-abcd"), "{shown}");
    let stream = run.file("iteration-1/stream.jsonl");
    for part in ["tok-pi", "eces-0123", "9-abcdefghij", "klmnopqrst"] {
        assert!(!stream.contains(part), "{part}: {stream}");
    }
    for line in stream.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

/// Nothing is declared in the harness: the job's own token, a password in an address, and a token of the agent's own.
#[test]
fn tokens_of_the_job_and_tokens_by_shape_are_hidden() {
    let mut world = World::new();
    let job = "job-token-of-this-test-1";
    let minted = format!("ghs_{}", "aB3dZ9".repeat(6));
    world
        .env("GITHUB_TOKEN", job)
        .env("CI_REPOSITORY_URL", "https://gitlab-ci-token:pw-of-the-clone@host/x.git");
    world.script("h/scripts/pre.sh", "echo \"$GITHUB_TOKEN $CI_REPOSITORY_URL\"");
    world.harness("agent: agents/work\nruntime: script\npre_script: scripts/pre.sh\nenv: {sandbox: {AUTH_TOKEN: none}}\n");
    world.agent(&format!(
        "echo \"minted $(echo {} | rev), auth $AUTH_TOKEN\" | tee \"$FULLSEND_OUTPUT_DIR/out.txt\"; echo none > file",
        minted.chars().rev().collect::<String>()
    ));
    let run = world.run(&[]).success();
    assert!(run.done.stdout.contains("*** https://gitlab-ci-token:***@host/x.git"), "{}", run.done.stdout);
    assert!(run.done.stdout.contains("minted ***, auth none"), "{}", run.done.stdout);
    assert_eq!(run.file("iteration-1/output/out.txt"), "minted ***, auth none\n");
    assert_eq!(std::fs::read_to_string(world.repo().join("file")).unwrap(), "none\n");
    for (path, bytes) in files_below(run.dir.as_ref().unwrap()) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(job) && !text.contains(&minted), "{}: {text}", path.display());
    }
}

/// What git tracks on the host already is known to everybody; what git ignores is not.
#[test]
fn only_what_is_not_in_the_repository_yet_stops_the_import() {
    let token = token("tracked");
    for (file, ignored) in [("docs/example.txt", false), ("local.env", true)] {
        let world = secret_world(&token);
        world.write(&format!("repo/{file}"), format!("for example {token}\n"));
        world.write("repo/.gitignore", "local.env\n");
        world.commit("Document it");
        world.agent(&format!("cp {file} copy.txt"));
        let run = world.run(&[]);
        if ignored {
            run.failure("FS-SECRET-FOUND", 4);
            assert!(!world.repo().join("copy.txt").exists());
        } else {
            run.success();
            assert!(world.repo().join("copy.txt").exists());
        }
        world.assert_clean();
    }
}

#[test]
fn an_output_that_cannot_be_redacted_is_left_out() {
    let cases = [
        ("binary", "printf '\\0\\377%s\\0' \"$TOOL_TOKEN\" > \"$out/core\"", "core"),
        ("name", "echo x > \"$out/a-$(echo \"$TOOL_KEY\" | sed -n 2p)\"", "a-***"),
    ];
    for (what, script, named) in cases {
        let token = token(what);
        let world = secret_world(&token);
        world.agent(&format!("out=$FULLSEND_OUTPUT_DIR; echo x > \"$out/kept\"; {script}"));
        let run = world.run(&[]).failure("FS-SECRET-FOUND", 4);
        assert!(run.done.stderr.contains(named), "{what}: {}", run.done.stderr);
        let output = std::fs::read_dir(run.dir.as_ref().unwrap().join("iteration-1/output")).unwrap();
        let names: Vec<_> = output.map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"], "{what}");
        assert_nowhere(&world.path(""), &token);
        world.assert_clean();
    }
}
