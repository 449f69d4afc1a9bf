//! Skills that an agent's definition names come along.

use serde_json::json;

use crate::endings::Cli;
use crate::support::World;

fn brought_along(cli: &Cli) {
    let answer = json!({"content": [{"type": "text", "text": "Done."}],
        "expect": ["marker-of-the-skill", "marker-of-the-named-one", "marker-of-the-other"]});
    let (world, _stub) = cli.world(&json!({"turns": [answer]}), "");
    for name in ["named-one", "other"] {
        let text = format!("---\nname: {name}\ndescription: marker-of-the-{name}\n---\nText.\n");
        world.write(&format!("h/skills/{name}/SKILL.md"), text);
    }
    let front = "---\nname: the-coder\ndescription: d\nskills: small, named-one, other # three\n---\nWork.\n";
    world.write("h/agents/coder.md", front);
    cli.run(&world, &[]).success();
    world.assert_clean();
}

#[test]
fn claude_gets_the_skills_that_its_definition_names() {
    if let Some(cli) = Cli::claude("agent_skills::claude_gets_the_skills") {
        brought_along(&cli);
    }
}

#[test]
fn codex_gets_the_skills_that_its_definition_names() {
    if let Some(cli) = Cli::codex("agent_skills::codex_gets_the_skills") {
        brought_along(&cli);
    }
}

#[test]
fn a_name_that_is_no_skill_is_refused_at_its_place() {
    let world = World::new();
    world.harness("agent: agents/coder.md\n");
    world.write("h/skills/empty/README.md", "not a skill\n");
    world.write("h/skills/there/SKILL.md", "text\n");
    world.write(
        "h/agents/coder.md",
        "---\nname: c\ndescription: d\nskills:\n  - there\n  - missing\n  - ../agents\n  - \"empty\"\n  - plugin:own\n---\n",
    );
    let dir = world.path("h");
    let done = world.fullsend(&["validate", "--fullsend-dir", dir.to_str().unwrap(), "work"]);
    assert_eq!(done.code, 2, "{done:?}");
    let said = format!("{}{}", done.stdout, done.stderr);
    for part in [
        "agents/coder.md:6:5",
        "`skills` names `missing`",
        "skills/missing",
        "agents/coder.md:7:5",
        "`../agents` is not the name of a skill",
        "agents/coder.md:8:6",
        "the skill `empty` has no SKILL.md",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("coder.md:5:") && !said.contains("coder.md:9:"), "{said}");
}
