//! The real claude CLI in a local sandbox, against a stub of its model API on the loopback interface.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::stub::{Stub, claude, result_event};
use crate::support::{Run, World};

const KEY: &str = "sk-ant-test-0123456789abcdefABCDEF";

/// A world whose agent `work` is a claude agent, with a provider for its key, a skill, and an environment.
pub fn claude_world(stub: impl FnOnce(&World) -> Stub, agent: &str) -> (World, Stub) {
    let mut world = World::new();
    let stub = stub(&world);
    world.env("STUB_URL", &stub.url).env("MODEL_KEY", KEY);
    world.write("h/agents/coder.md", agent);
    world.write(
        "h/skills/small-change/SKILL.md",
        "---\nname: small-change\ndescription: How a small change is made here (marker-of-the-skill)\n---\nSmall.\n",
    );
    world.write("h/skills/small-change/notes/more.txt", "more of the skill\n");
    world.write(
        "h/policies/net.yaml",
        "version: 1\nfilesystem_policy:\n  read_only: [/usr, /lib, /etc]\n  read_write: [/sandbox, /tmp]\n\
         network_policies:\n  model:\n    name: model\n    endpoints: [{host: 127.0.0.1, port: 443}]\n    \
         binaries: [{path: '**/claude'}]\n",
    );
    world.write(
        "h/profiles/model.yaml",
        "id: test-model\ndisplay_name: Model\ncategory: inference\ncredentials:\n  - name: api_key\n    \
         env_vars: [ANTHROPIC_API_KEY]\n    required: true\n    auth_style: header\n    header_name: x-api-key\n\
         endpoints:\n  - {host: 127.0.0.1, port: 443, protocol: rest, access: read-write, enforcement: enforce}\n\
         binaries: ['**/claude']\n",
    );
    world.write(
        "h/providers/model.yaml",
        "name: model\ntype: test-model\ncredentials:\n  ANTHROPIC_API_KEY: ${MODEL_KEY}\n",
    );
    world.harness(
        "agent: agents/coder.md\nmodel: sonnet\npolicy: policies/net.yaml\nskills: [skills/small-change]\n\
         providers: [model]\ntimeout_minutes: 3\nenv:\n  sandbox:\n    TASK: \"say 'hi' for $$5\"\n    \
         ANTHROPIC_BASE_URL: ${STUB_URL}\n    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: \"1\"\n    \
         DISABLE_AUTOUPDATER: \"1\"\n    CLAUDE_CODE_MAX_RETRIES: \"1\"\n",
    );
    (world, stub)
}

pub const AGENT: &str = "---\nname: the-coder\ndescription: Makes a change\ntools: Bash, Read, Edit, Skill\n---\n\
                     You are the coder (marker-of-the-agent). Carry out $TASK.\n";

pub fn script(turns: &Value) -> impl FnOnce(&World) -> Stub {
    move |world| Stub::start(world, &json!({ "turns": turns }))
}

/// A directory of a `bin` with the program, as `--local-bind` wants it.
pub fn run_with(world: &World, program: &Path, more: &[&str]) -> Run {
    let modules = program.parent().unwrap();
    std::fs::create_dir_all(world.path("prefix/bin")).unwrap();
    let link = world.path("prefix/bin/claude");
    if !link.exists() {
        std::os::unix::fs::symlink(program, link).unwrap();
    }
    let prefix = world.path("prefix");
    let mut args = vec!["--local-bind", modules.to_str().unwrap(), "--local-bind", prefix.to_str().unwrap()];
    args.extend(more);
    world.run(&args)
}

/// Edits a file, commits, and writes the output.
fn work() -> Value {
    let readme = "/sandbox/workspace/repo/README.md";
    json!([
        {"content": [{"type": "text", "text": "I read."},
                     {"type": "tool_use", "name": "Read", "input": {"file_path": readme}}],
         "usage": {"input_tokens": 101, "output_tokens": 23, "cache_read_input_tokens": 7},
         "expect": ["marker-of-the-agent", "marker-of-the-skill", "Run the agent task"]},
        {"content": [{"type": "tool_use", "name": "Edit", "input":
            {"file_path": readme, "old_string": "# A repository", "new_string": "# An edited repository"}}],
         "usage": {"input_tokens": 211, "output_tokens": 31, "cache_creation_input_tokens": 13}},
        {"content": [{"type": "tool_use", "name": "Bash", "input": {"command":
            "git config user.name Agent && git config user.email agent@example.com && git commit -qam 'Edit it' && \
             echo \"{\\\"task\\\": \\\"$TASK\\\"}\" > \"$FULLSEND_OUTPUT_DIR/agent-result.json\" && \
             cat \"$CLAUDE_CONFIG_DIR/skills/small-change/notes/more.txt\" && echo loose > loose"}}],
         "usage": {"input_tokens": 307, "output_tokens": 41}},
        {"content": [{"type": "text", "text": "All done, é."}], "expect": ["more of the skill"],
         "usage": {"input_tokens": 401, "output_tokens": 53}},
    ])
}

#[test]
fn the_instructions_of_the_harness_directory_are_for_repositories_without_any() {
    let Some(program) = claude("claude::the_instructions_of_the_harness_directory") else { return };
    let turns = |word: &str| json!([{"content": [{"type": "text", "text": "Done."}], "expect": [word]}]);
    let (world, stub) = claude_world(script(&turns("marker-of-the-organisation")), AGENT);
    world.write("h/AGENTS.md", "Always say marker-of-the-organisation.\n");
    run_with(&world, &program, &[]).success();
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    drop(stub);

    let (world, stub) = claude_world(script(&turns("marker-of-the-repository")), AGENT);
    world.write("h/AGENTS.md", "Always say marker-of-the-organisation.\n");
    world.write("repo/AGENTS.md", "Always say marker-of-the-repository.\n");
    world.commit("Instructions");
    run_with(&world, &program, &[]).success();
    let told = stub.requests().iter().map(|r| r["body"].to_string()).collect::<String>();
    assert!(!told.contains("marker-of-the-organisation"), "{told}");
}

#[test]
fn it_edits_commits_and_writes_output_and_its_figures_are_in_run_json() {
    let Some(program) = claude("claude::it_edits_commits_and_writes_output") else { return };
    let (world, stub) = claude_world(script(&work()), AGENT);
    let run = run_with(&world, &program, &[]).success();

    let edited = "# An edited repository\n";
    assert_eq!(std::fs::read_to_string(world.repo().join("README.md")).unwrap(), edited);
    assert_eq!(world.git(&["log", "--format=%s %an"]), "Edit it Agent\nBegin Test\n");
    assert_eq!(world.git(&["show", "HEAD:README.md"]), edited);
    assert_eq!(world.git(&["status", "--porcelain"]), "?? loose\n");
    assert_eq!(run.file("iteration-1/output/agent-result.json"), "{\"task\": \"say 'hi' for $5\"}\n");

    let stream = run.file("iteration-1/stream.jsonl");
    let result = result_event(&stream);
    let metrics = &run.json["iterations"][0]["metrics"];
    assert_eq!(metrics, &run.json["totals"]);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!(metrics["turns"], result["num_turns"]);
    assert!(metrics["cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(metrics["cost_usd"], result["total_cost_usd"]);
    for (ours, theirs, sum) in [
        ("input", "input_tokens", 101 + 211 + 307 + 401),
        ("output", "output_tokens", 23 + 31 + 41 + 53),
        ("cache_read", "cache_read_input_tokens", 7),
        ("cache_creation", "cache_creation_input_tokens", 13),
    ] {
        assert_eq!(metrics["tokens"][ours], result["usage"][theirs], "{ours}: {metrics}");
        assert_eq!(metrics["tokens"][ours], sum, "{ours}");
    }
    assert_eq!((&metrics["tool_calls"], &metrics["tool_errors"]), (&json!(3), &json!(0)));
    assert_eq!(metrics["session"], result["session_id"]);
    assert_eq!(metrics["agent_version"], "2.1.332");
    assert_eq!(run.json["iterations"][0]["stream"]["bytes"], stream.len());

    // The transcript of the session is there.
    let session = result["session_id"].as_str().unwrap();
    let transcripts = crate::support::files_below(&run.dir.as_ref().unwrap().join("iteration-1/transcripts"));
    let main = transcripts.iter().find(|(p, _)| p.ends_with(format!("{session}.jsonl")));
    let text = String::from_utf8_lossy(&main.expect("the session's transcript").1).into_owned();
    assert!(text.contains("An edited repository"));

    // The key went to the API as the profile says, and is in none of the results.
    let digest = Sha256::digest(KEY).iter().take(6).map(|b| format!("{b:02x}")).collect::<Vec<_>>().concat();
    let requests = stub.requests();
    assert!(requests.iter().filter(|r| r["kind"] == "main").count() == 4, "{requests:?}");
    for request in &requests {
        assert_eq!(request["headers"]["x-api-key"], format!("sha256:{digest}"), "{request}");
        assert!(
            request["body"]["model"].as_str().is_none_or(|m| m.contains("sonnet") || m.contains("haiku"))
        );
    }
    assert!(run.done.stdout.contains("All done, é.") && !run.done.stdout.contains(KEY));
    world.assert_clean();
}

/// What a pull request may bring along: a hook of the session, and a variable for every tool.
const REPO_SETTINGS: &str = r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command",
    "command": "touch /sandbox/workspace/output/hook-ran"}]}]}, "env": {"REPO_MARK": "set-by-the-repo"}}"#;

/// Looks at what is left of it in the sandbox, and works.
fn look_and_work() -> Value {
    json!([
        {"content": [{"type": "tool_use", "name": "Bash", "input": {"command":
            "cd /sandbox/workspace/repo && git status --porcelain > $FULLSEND_OUTPUT_DIR/status && \
             echo \"${REPO_MARK:-unset}\" > $FULLSEND_OUTPUT_DIR/mark && echo work > made && \
             git config user.name A && git config user.email a@example.com && git add -A && git commit -qam Work && \
             git ls-files .claude > $FULLSEND_OUTPUT_DIR/tracked"}}]},
        {"content": [{"type": "text", "text": "done"}]},
    ])
}

#[test]
fn the_session_hook_of_a_repository_does_not_run_unless_the_harness_trusts_it() {
    let Some(program) = claude("claude::the_session_hook_of_a_repository") else { return };
    for trusted in [false, true] {
        let (world, _stub) = claude_world(script(&look_and_work()), AGENT);
        world.write("repo/.claude/settings.json", REPO_SETTINGS);
        world.write("repo/.mcp.json", r#"{"mcpServers": {"evil": {"command": "/bin/false"}}}"#);
        world.write("repo/.claude/skills/own/SKILL.md", "---\nname: own\ndescription: d\n---\ntext\n");
        world.commit("Configure agents");
        if trusted {
            let yaml = std::fs::read_to_string(world.path("h/harness/work.yaml")).unwrap();
            world.harness(&format!("{yaml}trust_repo_config: true\n"));
        }
        let run = run_with(&world, &program, &[]).success();
        let output = run.dir.as_ref().unwrap().join("iteration-1/output");
        assert_eq!(output.join("hook-ran").exists(), trusted, "whether the hook ran");
        assert_eq!(
            run.file("iteration-1/output/mark"),
            if trusted { "set-by-the-repo\n" } else { "unset\n" }
        );
        assert_eq!(run.file("iteration-1/output/status"), "", "git status in the sandbox is clean");
        assert!(run.file("iteration-1/output/tracked").contains(".claude/settings.json"));
        assert!(run.done.stdout.contains(".claude/settings.json (hooks: SessionStart; env: REPO_MARK)"));
        let config = run.json["repo_config"].as_array().unwrap();
        let paths: Vec<_> = config.iter().map(|c| (c["path"].as_str().unwrap(), &c["uploaded"])).collect();
        assert_eq!(paths, [(".claude/settings.json", &json!(trusted)), (".mcp.json", &json!(trusted))]);

        // What stayed on the host is as it was, in the checkout and in the agent's commit.
        assert_eq!(
            std::fs::read_to_string(world.repo().join(".claude/settings.json")).unwrap(),
            REPO_SETTINGS
        );
        assert_eq!(world.git(&["show", "HEAD:.claude/settings.json"]), REPO_SETTINGS);
        assert_eq!(world.git(&["diff", "--stat", "--name-only", "HEAD^", "HEAD"]), "made\n");
        assert_eq!(world.git(&["status", "--porcelain"]), "");
        world.assert_clean();
    }
}

#[test]
fn a_key_that_is_none_fails_with_the_words_of_the_cli() {
    let Some(program) = claude("claude::a_key_that_is_none_fails") else { return };
    // It passes on what the API says, but has words of its own for the commonest case.
    let error = json!({"type": "authentication_error", "message": "invalid x-api-key"});
    let refused = json!({"error": {"status": 401, "body": {"type": "error", "error": error}}});
    let turns = json!({"turns": [refused], "repeat_last": true});
    let (world, _stub) = claude_world(|world| Stub::start(world, &turns), AGENT);
    let run = run_with(&world, &program, &[]).failure("FS-AGENT-FAILED", 1);
    assert!(run.done.stderr.contains("Invalid API key"), "{}", run.done.stderr);
    assert_eq!(result_event(&run.file("iteration-1/stream.jsonl"))["is_error"], true);
    world.assert_clean();
}

#[test]
fn a_killed_cli_leaves_an_incomplete_run() {
    let Some(program) = claude("claude::a_killed_cli") else { return };
    let kill = json!([
        {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "echo x > made; kill -9 $PPID"}}]},
        {"content": [{"type": "text", "text": "never"}]},
    ]);
    let (world, _stub) = claude_world(script(&kill), AGENT);
    let run = run_with(&world, &program, &[]).failure("FS-AGENT-INCOMPLETE", 1);
    assert_eq!(run.json["iterations"][0]["result"], Value::Null);
    assert_eq!(run.json["iterations"][0]["exit"], json!({"signal": 9}));
    assert!(run.file("changes.patch").contains("made"));
    world.assert_clean();
}

#[test]
fn a_cli_that_is_not_there_is_named_before_anything_starts() {
    let (mut world, _stub) = claude_world(script(&json!([{"content": []}])), AGENT);
    // A search path with everything but the agent's program.
    let needed = ["bash", "bwrap", "git", "nsenter", "rsync", "scp", "setpriv", "setsid", "ssh"];
    for program in needed {
        let found =
            ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(program)).into_iter().find(|p| p.exists());
        std::fs::create_dir_all(world.path("bin")).unwrap();
        std::os::unix::fs::symlink(found.unwrap(), world.path("bin").join(program)).unwrap();
    }
    let bin = world.path("bin");
    world.env("PATH", bin.to_str().unwrap());
    let run = world.run(&[]).failure("FS-IMAGE-LACKS", 3);
    assert!(run.done.stderr.contains("not found on this machine: claude"), "{}", run.done.stderr);
    assert!(run.dir.is_none(), "a run was begun");
    world.assert_clean();
}

/// The layout of the native installer: a link in ~/.local/bin to a file below ~/.local/share.
#[test]
fn the_cli_on_the_search_path_is_enough() {
    let Some(program) = claude("claude::the_cli_on_the_search_path_is_enough") else { return };
    let turns = json!([{"content": [{"type": "text", "text": "hello from it"}]}]);
    let (mut world, _stub) = claude_world(script(&turns), AGENT);
    let versions = world.path("home/.local/share/claude/versions");
    std::fs::create_dir_all(&versions).unwrap();
    std::fs::create_dir_all(world.path("home/.local/bin")).unwrap();
    let file = versions.join("2.1.332");
    std::fs::hard_link(&program, &file).or_else(|_| std::fs::copy(&program, &file).map(drop)).unwrap();
    std::os::unix::fs::symlink(&file, world.path("home/.local/bin/claude")).unwrap();
    world.write("home/.local/bin/private", "not for the sandbox");
    first_on_path(&mut world, "home/.local/bin");
    let run = world.run(&[]).success();
    assert!(run.done.stdout.contains("hello from it"));
    world.assert_clean();
}

/// A script of an npm prefix, whose interpreter lies in another. The interpreter stands in for node.
#[test]
fn a_script_finds_its_interpreter_of_another_prefix() {
    let turns = json!([{"content": []}]);
    let (mut world, _stub) = claude_world(script(&turns), AGENT);
    let package = "home/.npm-global/lib/node_modules/@anthropic-ai/claude-code";
    world.write(&format!("{package}/data.txt"), "read beside the program");
    let cli = world.write(&format!("{package}/cli.js"), "#!/usr/bin/env stub-node\n");
    crate::support::make_executable(&cli);
    std::fs::create_dir_all(world.path("home/.npm-global/bin")).unwrap();
    let link = world.path("home/.npm-global/bin/claude");
    std::os::unix::fs::symlink("../lib/node_modules/@anthropic-ai/claude-code/cli.js", link).unwrap();
    world.script(
        "home/.nvm/versions/node/v22/bin/stub-node",
        r#"real=$(readlink -f "$1"); text=$(cat "${real%/*}/data.txt")
        echo '{"type":"system","subtype":"init","model":"m","session_id":"s"}'
        ls -A ~ "$(dirname "$real")/../../../../.." >&2
        echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$text\",\"num_turns\":1}""#,
    );
    world.write("home/.ssh/id", "private");
    first_on_path(&mut world, "home/.nvm/versions/node/v22/bin");
    first_on_path(&mut world, "home/.npm-global/bin");
    let run = world.run(&[]).success();
    assert_eq!(run.json["iterations"][0]["result"]["text"], "read beside the program");
    let seen = run.file("iteration-1/stderr.log");
    assert!(seen.contains(".npm-global") && !seen.contains(".ssh"), "{seen}");
    world.assert_clean();
}

fn first_on_path(world: &mut World, below: &str) {
    let before = world.variable("PATH").unwrap_or_else(|| std::env::var("PATH").unwrap());
    let dir = world.path(below);
    world.env("PATH", format!("{}:{before}", dir.display()));
}

#[test]
fn it_is_shown_the_notice_that_its_time_is_nearly_over() {
    let Some(program) = claude("claude::it_is_shown_the_notice_that_its_time_is_nearly_over") else { return };
    // The supervisor writes the file at 80 % of the time (see `limits`); here the agent does not wait for that.
    let tell = "printf 'Time is running out: marker-of-the-notice.\\n' > \"$FULLSEND_NOTICE_FILE\"";
    let bash = |command: &str| json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}]);
    let turns = json!([
        {"content": bash("true")},
        {"content": bash(tell)},
        {"content": bash("true"), "expect": ["marker-of-the-notice"]},
        {"content": [{"type": "text", "text": "Done."}]},
    ]);
    let (world, stub) = claude_world(script(&turns), AGENT);
    run_with(&world, &program, &[]).success();
    // Once, and from then on a part of the conversation.
    let requests = stub.requests();
    let main: Vec<_> = requests.iter().filter(|r| r["kind"] == "main").collect();
    assert_eq!(main.len(), 4, "{requests:?}");
}
