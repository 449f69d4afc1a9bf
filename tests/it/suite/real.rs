//! The agents as they are, under the real claude CLI with a stub of its model API.

use serde_json::{Value, json};

use super::forge::{FORGES, Suite, act};
use super::{does, reviewed, says};
use crate::claude::run_with;
use crate::stub::{Stub, claude};
use crate::support::Run;

/// One run of an agent on a forge. What the model says is a script; what it is told must hold these words.
fn real(agent: &str, forge: &'static str, told: &[&str]) -> Option<(Suite, Run)> {
    let program = claude(&format!("suite::real::{agent} on {forge}"))?;
    let prepare = |state: &mut Value| {
        if agent == "fix" {
            reviewed(state);
        }
    };
    let mut suite = Suite::start(agent, forge, prepare);
    let command = act(&does(agent, 1), &says(agent));
    let bash = |command: &str| json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}]);
    let turns = json!([
        {"content": bash("cat /sandbox/workspace/agent-input/*"), "expect": told},
        {"content": bash(&command), "expect": [if agent == "triage" || agent == "code" { "It crashes" } else { "+++ b/README.md" }]},
        {"content": [{"type": "text", "text": "Done."}]},
    ]);
    let stub = Stub::start(&suite.world, &json!({ "turns": turns }));
    suite.world.env("STUB_URL", &stub.url);
    // As it is, but for where its model is.
    suite.world.write(
        "h/policies/net.yaml",
        "version: 1\nfilesystem_policy:\n  read_only: [/usr, /lib, /etc]\n  read_write: [/sandbox, /tmp]\n\
         network_policies:\n  model:\n    name: model\n    endpoints: [{host: 127.0.0.1, port: 443}]\n    \
         binaries: [{path: '**/claude'}]\n",
    );
    suite.world.harness(&format!(
        "base: {agent}.yaml\npolicy: policies/net.yaml\nenv:\n  sandbox:\n    ANTHROPIC_BASE_URL: ${{STUB_URL}}\n    \
         CLAUDE_CODE_MAX_RETRIES: \"1\"\n"
    ));
    let run = run_with(&suite.world, &program, &["--forge", forge]).success();
    assert!(run.file("iteration-1/output/environment").contains("CLAUDE_CONFIG_DIR"));
    suite.assert_no_token(&run);
    suite.world.assert_clean();
    Some((suite, run))
}

#[test]
fn triage_with_claude() {
    for forge in FORGES {
        let Some((suite, _)) = real("triage", forge, &["triage-issue", "allowed-labels.json"]) else {
            return;
        };
        assert!(suite.comments()[0].contains("Please name the version."));
        assert_eq!(suite.state()["issues"][0]["labels"], json!(["agent-code", "bug", "needs-info"]));
    }
}

#[test]
fn code_with_claude() {
    for forge in FORGES {
        let Some((suite, _)) = real("code", forge, &["small-change", "such a change is refused"]) else {
            return;
        };
        assert_eq!(suite.remote(&["show", "fullsend/issue-7:README.md"]), "# A repository\nLine 1.\n");
        assert_eq!(suite.state()["changes"][0]["title"], "Start without crashing");
    }
}

#[test]
fn review_with_claude() {
    for forge in FORGES {
        let Some((suite, _)) = real("review", forge, &["review-change", "it is a finding"]) else { return };
        assert!(suite.comments()[0].contains("- **high** `README.md`:1 – Which one?"));
    }
}

#[test]
fn fix_with_claude() {
    for forge in FORGES {
        let Some((suite, _)) = real("fix", forge, &["answer-review", "on top of the branch"]) else { return };
        assert_eq!(suite.remote(&["log", "--format=%s", "main..fullsend/issue-7"]), "Say more\nImprove\n");
        assert!(suite.comments().iter().any(|c| c.contains("README.md:1 – Named it.")));
    }
}
