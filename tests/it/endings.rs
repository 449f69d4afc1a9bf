//! Every way in which an agent ends, with the real CLIs against the stub: a row per ending, and who can produce it. What
//! a CLI cannot produce is in docs/reference/runtimes.md.

use serde_json::{Value, json};

use crate::claude::run_with;
use crate::stub::{Stub, claude, fetched, world_for};
use crate::support::{Run, World};

/// An agent CLI as the tests use it.
pub struct Cli {
    runtime: &'static str,
    model: &'static str,
    /// Its tool for shell commands, and that tool's key for the command.
    shell: (&'static str, &'static str),
    program: std::path::PathBuf,
}

impl Cli {
    pub fn claude(test: &str) -> Option<Self> {
        let program = claude(test)?;
        Some(Self { runtime: "claude", model: "sonnet", shell: ("Bash", "command"), program })
    }

    pub fn codex(test: &str) -> Option<Self> {
        let program = fetched(test, "codex", "0.171.0", "bin/codex")?;
        Some(Self { runtime: "codex", model: "gpt-5-codex", shell: ("exec_command", "cmd"), program })
    }

    /// A use of the shell.
    pub fn shell(&self, command: &str) -> Value {
        let (name, key) = self.shell;
        json!({"type": "tool_use", "name": name, "input": {key: command}})
    }

    /// A world whose agent it is; its own repetitions are kept few. `more` is added to the harness.
    pub fn world(&self, script: &Value, more: &str) -> (World, Stub) {
        let (mut world, stub) = world_for(self.runtime, self.model, script);
        world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.1");
        let yaml = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
        let config = match self.runtime {
            "codex" => {
                world.write(
                    "h/config.toml",
                    format!(
                        "model_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"{}/v1\"\n\
                         env_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 1\n\
                         stream_max_retries = 1\n",
                        stub.url
                    ),
                );
                "host_files: [{src: config.toml, dest: /sandbox/codex-config/config.toml}]\n"
            }
            _ => "",
        };
        world.harness(&format!(
            "{yaml}    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: \"1\"\n    DISABLE_AUTOUPDATER: \"1\"\n    \
             CLAUDE_CODE_MAX_RETRIES: \"1\"\n{config}{more}"
        ));
        (world, stub)
    }

    /// Puts a shell script in the place of the program; `$REAL` is that.
    pub fn wrap(&self, world: &World, body: &str) {
        let body = format!("REAL='{}'\n{body}", self.program.display());
        world.script(&format!("prefix/bin/{}", self.runtime), &body);
    }

    /// Runs the agent.
    pub fn run(&self, world: &World, options: &[&str]) -> Run {
        if self.runtime == "claude" {
            return run_with(world, &self.program, options);
        }
        let prefix = self.program.parent().unwrap().parent().unwrap();
        let own = world.path("prefix");
        let wrapped = if own.exists() { &["--local-bind", own.to_str().unwrap()][..] } else { &[] };
        world.run(&[wrapped, &["--local-bind", prefix.to_str().unwrap()], options].concat())
    }
}

/// An ending.
struct Row {
    name: &'static str,
    /// Who can produce it.
    of: &'static [&'static str],
    /// What the API answers after the agent's first tool.
    answers: fn(&Cli) -> Vec<Value>,
    /// Whether the last of it is repeated.
    for_ever: bool,
    options: &'static [&'static str],
    /// What else there is to be done before.
    prepare: fn(&Cli, &mut World, &Stub),
    /// The code of the failure; none for success.
    code: Option<&'static str>,
    /// A part of the message, from the API or else from the CLI.
    says: fn(&Cli) -> &'static str,
    /// Why the agent was started, start by start.
    starts: &'static [&'static str],
    /// Who ended the last start.
    ended_by: &'static str,
}

const BOTH: &[&str] = &["claude", "codex"];

impl Row {
    const fn new(name: &'static str, of: &'static [&'static str], answers: fn(&Cli) -> Vec<Value>) -> Self {
        Self {
            name,
            of,
            answers,
            for_ever: true,
            options: &[],
            prepare: |_, _, _| {},
            code: Some("FS-AGENT-FAILED"),
            says: |_| "",
            starts: &["first"],
            ended_by: "itself",
        }
    }
}

/// An error of the API, in the form of either.
fn refusal(status: u16, kind: &str, words: &str) -> Value {
    let error = json!({"type": kind, "code": kind, "message": words});
    json!({"error": {"status": status, "body": {"type": "error", "error": error}}})
}

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "All done."}]})
}

/// Nobody listens there.
fn nobody(cli: &Cli, world: &mut World, stub: &Stub) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    if cli.runtime == "codex" {
        let config = std::fs::read_to_string(world.path("h/config.toml")).unwrap();
        world.write("h/config.toml", config.replace(&stub.url, &url));
    }
    world.env("STUB_URL", url);
}

const ROWS: &[Row] = &[
    Row {
        says: |_| "this key was revoked",
        ..Row::new("HTTP 401", BOTH, |_| vec![refusal(401, "authentication_error", "this key was revoked")])
    },
    // Claude asks again itself, codex does not: its session goes on.
    Row {
        code: None,
        for_ever: false,
        ..Row::new("HTTP 429, then an answer", &["claude"], |_| {
            vec![refusal(429, "rate_limit_error", "slow down"), done()]
        })
    },
    Row {
        code: None,
        for_ever: false,
        starts: &["first", "api_error"],
        ..Row::new("HTTP 429, then an answer", &["codex"], |_| {
            vec![refusal(429, "rate_limit_error", "slow down"), done()]
        })
    },
    Row {
        options: &["--api-retries", "1"],
        starts: &["first", "api_error"],
        says: |_| "too busy just now",
        ..Row::new("HTTP 529 for ever", BOTH, |_| vec![refusal(529, "overloaded_error", "too busy just now")])
    },
    Row {
        options: &["--api-retries", "1"],
        starts: &["first", "api_error"],
        says: |_| "down for repair",
        ..Row::new("HTTP 503 for ever", BOTH, |_| vec![refusal(503, "api_error", "down for repair")])
    },
    Row {
        options: &["--api-retries", "1"],
        starts: &["first", "api_error"],
        says: |cli| {
            if cli.runtime == "codex" {
                "stream disconnected before completion"
            } else {
                "Connection dropped"
            }
        },
        ..Row::new("a stream that is cut in the middle of an event", BOTH, |_| {
            vec![json!({"content": [{"type": "text", "text": "one two three"}], "cut": true})]
        })
    },
    // The CLIs have words of their own for it.
    Row {
        says: |cli| {
            if cli.runtime == "codex" {
                "ran out of room in the model's context window"
            } else {
                "Prompt is too long"
            }
        },
        ..Row::new("a full context", BOTH, |cli| {
            let kind =
                if cli.runtime == "codex" { "context_length_exceeded" } else { "invalid_request_error" };
            vec![refusal(400, kind, "prompt is too long: 210000 tokens > 200000 maximum")]
        })
    },
    Row {
        code: Some("FS-AGENT-BUDGET"),
        options: &["--max-turns", "2"],
        says: |_| "Reached maximum number of turns (2)",
        ..Row::new("the CLI's own limit of turns", &["claude"], |cli| {
            vec![json!({"content": [cli.shell("true")]})]
        })
    },
    Row {
        code: Some("FS-AGENT-BUDGET"),
        options: &["--max-turns", "2"],
        says: |_| "3 turns of 2",
        ended_by: "budget",
        ..Row::new("the run's limit of turns", &["codex"], |cli| {
            vec![json!({"content": [cli.shell("sleep 0.2")]})]
        })
    },
    Row {
        says: |_| "this key was revoked",
        prepare: |cli, world, _| cli.wrap(world, "\"$REAL\" \"$@\"; exit 0"),
        ..Row::new("an error and exit status 0", BOTH, |_| {
            vec![refusal(401, "authentication_error", "this key was revoked")]
        })
    },
    Row {
        code: None,
        for_ever: false,
        ended_by: "after_result",
        prepare: |cli, world, _| cli.wrap(world, "\"$REAL\" \"$@\"; sleep 1000"),
        ..Row::new("a result and no exit", BOTH, |_| vec![done()])
    },
];

/// Runs the rows of a CLI, and says of every row that is wrong what is.
fn rows(cli: &Cli) {
    let mine = ROWS.iter().filter(|row| row.of.contains(&cli.runtime));
    let wanted = std::env::var("FULLSEND_TEST_ENDING").unwrap_or_default();
    for row in mine.filter(|row| row.name.contains(&wanted)) {
        eprintln!("{}: {}", cli.runtime, row.name);
        let work = json!({"content": [cli.shell("echo work > made")], "usage": {"input_tokens": 101, "output_tokens": 23}});
        let turns = [vec![work], (row.answers)(cli)].concat();
        let (mut world, stub) = cli.world(&json!({"turns": turns, "repeat_last": row.for_ever}), "");
        (row.prepare)(cli, &mut world, &stub);
        let run = cli.run(&world, row.options);
        let run = match row.code {
            Some(code) => run.failure(code, 1),
            None => run.success(),
        };
        let verdict = match row.code {
            None => "success",
            Some("FS-AGENT-BUDGET") => "budget",
            Some(_) => "failed",
        };
        assert_eq!(run.json["verdict"], verdict, "{}", run.json["error"]);
        let message = run.json["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains((row.says)(cli)), "{message}");
        let starts = run.json["iterations"].as_array().unwrap();
        assert_eq!(starts.iter().map(|s| &s["why"]).collect::<Vec<_>>(), row.starts);
        assert_eq!(starts.last().unwrap()["ended_by"], row.ended_by);
        for again in &starts[1..] {
            assert_eq!(again["resumed"], starts[0]["metrics"]["session"], "the session did not go on");
        }
        // What was done and used is kept.
        let totals = &run.json["totals"];
        let at_least = |key: &Value, least: u64| assert!(key.as_u64().unwrap() >= least, "{totals}");
        at_least(&totals["turns"], 1);
        at_least(&totals["tool_calls"], 1);
        at_least(&totals["tokens"]["input"], 101);
        at_least(&totals["tokens"]["output"], 23);
        match row.code {
            None => assert_eq!(std::fs::read_to_string(world.repo().join("made")).unwrap(), "work\n"),
            Some(_) => assert!(run.file("changes.patch").contains("+work")),
        }
        world.assert_clean();
    }
}

#[test]
fn claude_through_every_ending() {
    if let Some(cli) = Cli::claude("endings::claude_through_every_ending") {
        rows(&cli);
    }
}

#[test]
fn codex_through_every_ending() {
    if let Some(cli) = Cli::codex("endings::codex_through_every_ending") {
        rows(&cli);
    }
}

/// Nothing is done and nothing used, so that it is no row.
fn without_a_connection(cli: &Cli, says: &str) {
    let (mut world, stub) = cli.world(&json!({"turns": [done()]}), "");
    nobody(cli, &mut world, &stub);
    let run = cli.run(&world, &["--api-retries", "1"]).failure("FS-AGENT-FAILED", 1);
    assert_eq!(run.json["iterations"].as_array().unwrap().len(), 2);
    assert_eq!(run.json["iterations"][1]["resumed"], run.json["iterations"][0]["metrics"]["session"]);
    assert!(run.done.stderr.contains(says), "{}", run.done.stderr);
    assert!(run.json["totals"]["api_retries"].as_u64().unwrap() > 0);
    world.assert_clean();
}

#[test]
fn claude_without_a_connection() {
    if let Some(cli) = Cli::claude("endings::claude_without_a_connection") {
        without_a_connection(&cli, "Connection refused");
    }
}

#[test]
fn codex_without_a_connection_does_not_wait_for_ever() {
    if let Some(cli) = Cli::codex("endings::codex_without_a_connection_does_not_wait_for_ever") {
        without_a_connection(&cli, "Connection failed");
    }
}

#[test]
fn claude_is_denied_what_the_settings_deny() {
    let Some(cli) = Cli::claude("endings::claude_is_denied_what_the_settings_deny") else { return };
    let turns = json!({"turns": [{"content": [cli.shell("git push origin main")]}, done()]});
    let settings = "host_files: [{src: settings.json, dest: /sandbox/claude-config/settings.json}]\n";
    let (world, _stub) = cli.world(&turns, settings);
    world.write("h/settings.json", r#"{"permissions": {"deny": ["Bash(git push:*)"]}}"#);
    let run = cli.run(&world, &[]).success();
    assert_eq!(run.json["totals"]["permission_denials"], 1, "{}", run.json["totals"]);
    assert!(run.done.stdout.contains("Permission denied: Bash"), "{}", run.done.stdout);
    world.assert_clean();
}

const SCHEMA: &str = r#"{"type":"object","required":["answer"],"properties":{"answer":{"type":"integer"}}}"#;

/// Edits, commits, writes an output that is not valid, is told so in the same session, and mends it.
fn good_after_feedback(cli: &Cli) -> (World, Run) {
    let write = |answer: &str| {
        format!("echo '{{\"answer\": {answer}}}' > \"$FULLSEND_OUTPUT_DIR/agent-result.json\"")
    };
    let commit =
        "git config user.name Agent && git config user.email agent@example.com && git commit -qam 'Edit it'";
    let edit = format!("echo '# Edited' > README.md && {commit} && {}", write("\"four\""));
    let usage =
        |input, output| json!({"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 7});
    let turns = json!({"turns": [
        {"content": [{"type": "text", "text": "marker-of-the-first-session"}, cli.shell(&edit)], "usage": usage(101, 23)},
        {"content": [{"type": "text", "text": "First done."}], "usage": usage(211, 31)},
        {"content": [cli.shell(&write("4"))], "usage": usage(307, 41), "expect":
            ["marker-of-the-first-session", "First done.", "/answer: \"four\" is not of type \"integer\"", "was emptied"]},
        {"content": [{"type": "text", "text": "Mended."}], "usage": usage(401, 53)},
    ]});
    let (world, stub) = cli.world(&turns, "validation_loop: {schema: schemas/s.json, max_iterations: 2}\n");
    world.write("h/schemas/s.json", SCHEMA);
    let run = cli.run(&world, &[]).success();
    assert_eq!(run.json["validated_iteration"], 2);
    let starts = run.json["iterations"].as_array().unwrap();
    assert_eq!(starts[1]["resumed"], starts[0]["metrics"]["session"]);
    assert_eq!(world.git(&["log", "-1", "--format=%s %an"]), "Edit it Agent\n");
    assert_eq!(world.git(&["show", "HEAD:README.md"]), "# Edited\n");
    assert_eq!(run.file("iteration-2/output/agent-result.json"), "{\"answer\": 4}\n");
    assert_eq!(stub.requests().iter().filter(|r| r["kind"] == "main").count(), 4);
    let totals = &run.json["totals"];
    assert_eq!((&totals["turns"], &totals["tool_calls"]), (&json!(4), &json!(2)));
    let tokens = json!({"input": 101 + 211 + 307 + 401, "output": 23 + 31 + 41 + 53, "cache_read": 4 * 7, "cache_creation": 0});
    assert_eq!(totals["tokens"], tokens);
    // A replay comes to the same figures.
    let dir = run.dir.as_ref().unwrap().to_str().unwrap();
    let replayed = world.fullsend(&["replay", dir, "--format", "json"]);
    let replayed: Value = serde_json::from_str(&replayed.stdout).unwrap();
    for (start, again) in starts.iter().zip(replayed.as_array().unwrap()) {
        for figure in ["turns", "tokens", "cost_usd"] {
            assert_eq!(start["metrics"][figure], again["metrics"][figure], "{figure}");
        }
    }
    world.assert_clean();
    (world, run)
}

/// The events of a kind of both streams.
fn events(run: &Run, kind: &str) -> Vec<Value> {
    let streams = [run.file("iteration-1/stream.jsonl"), run.file("iteration-2/stream.jsonl")].concat();
    let events = streams.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] == kind).collect()
}

#[test]
fn claude_mends_its_output_in_its_session() {
    let Some(cli) = Cli::claude("endings::claude_mends_its_output_in_its_session") else { return };
    let (_world, run) = good_after_feedback(&cli);
    let results = events(&run, "result");
    let turns: u64 = results.iter().map(|r| r["num_turns"].as_u64().unwrap()).sum();
    assert_eq!(run.json["totals"]["turns"], turns);
    // Its last result has the cost of the whole session.
    let (ours, theirs) = (&run.json["totals"]["cost_usd"], &results[1]["total_cost_usd"]);
    assert!((ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs() < 1e-9, "{ours} {theirs}");
    assert!(ours.as_f64() > results[0]["total_cost_usd"].as_f64());
}

#[test]
fn codex_mends_its_output_in_its_session() {
    let Some(cli) = Cli::codex("endings::codex_mends_its_output_in_its_session") else { return };
    let (_world, run) = good_after_feedback(&cli);
    // Its last result has the tokens of the whole session, and counts cached ones as input.
    let ends = events(&run, "turn.completed");
    let (usage, totals) = (&ends[1]["usage"], &run.json["totals"]["tokens"]);
    assert_eq!(
        usage["input_tokens"].as_u64(),
        Some(totals["input"].as_u64().unwrap() + totals["cache_read"].as_u64().unwrap())
    );
    assert_eq!(
        (&usage["output_tokens"], &usage["cached_input_tokens"]),
        (&totals["output"], &totals["cache_read"])
    );
}

#[test]
fn without_its_session_codex_begins_anew_with_the_feedback() {
    let Some(cli) = Cli::codex("endings::without_its_session_codex_begins_anew") else { return };
    let write = |answer: &str| {
        format!("echo '{{\"answer\": {answer}}}' > \"$FULLSEND_OUTPUT_DIR/agent-result.json\"")
    };
    let lose =
        format!("{} && find /sandbox/codex-config/sessions -name '*.jsonl' -delete", write("\"four\""));
    let turns = json!({"turns": [
        {"content": [cli.shell(&lose)]},
        done(),
        {"content": [cli.shell(&write("4"))], "expect": ["Run the agent task", "/answer: \"four\" is not of type \"integer\""]},
        done(),
    ]});
    let (world, _stub) = cli.world(&turns, "validation_loop: {schema: schemas/s.json, max_iterations: 2}\n");
    world.write("h/schemas/s.json", SCHEMA);
    let run = cli.run(&world, &[]).success();
    assert_eq!(run.json["iterations"][1]["resumed"], Value::Null);
    assert!(run.done.stdout.contains("it begins anew"), "{}", run.done.stdout);
    world.assert_clean();
}
