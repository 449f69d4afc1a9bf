//! The line at the bottom of a terminal.

use std::process::Stdio;

use crate::support::{World, fullsend};

/// A world whose agent says something, works for a while, and says something again.
fn world() -> World {
    let world = World::new();
    world.agent(
        r#"echo '{"type":"system","subtype":"init","model":"m","session_id":"s"}'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"before"}],"usage":{"input_tokens":1200,"output_tokens":34}}}'
sleep 2
echo '{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"behind"}]}}'
sleep 2
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":2,"total_cost_usd":0.25}'"#,
    );
    world
}

/// What a run writes to a terminal of so many columns.
fn on_terminal(world: &World, columns: u32, more: &[&str]) -> String {
    let words: Vec<_> = world.run_args(more);
    let quoted: Vec<_> =
        [fullsend().to_str().unwrap().to_owned()].iter().chain(&words).map(|w| format!("'{w}'")).collect();
    let script = format!("stty cols {columns} rows 24; exec {}", quoted.join(" "));
    let mut command = world.command("script", &["-qec", &script, "/dev/null"], &world.repo());
    let out = command.env("TERM", "xterm").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    text.replace("\r\n", "\n")
}

/// Takes away what is drawn and erased again: what stays is what a person can scroll back to.
fn stays(text: &str) -> (String, Vec<&str>) {
    let (mut rest, mut drawn) = (String::new(), Vec::new());
    let mut parts = text.split("\r\x1b[J").peekable();
    while let Some(part) = parts.next() {
        let line = part.rfind('\n').map_or(0, |at| at + 1);
        if parts.peek().is_some() {
            drawn.push(&part[line..]);
            rest.push_str(&part[..line]);
        } else {
            rest.push_str(part);
        }
    }
    (rest, drawn)
}

#[test]
fn a_terminal_has_a_line_with_the_figures_that_leaves_nothing() {
    let world = world();
    let text = on_terminal(&world, 80, &["--color", "never"]);
    let (rest, drawn) = stays(&text);
    assert!(
        drawn.iter().any(|l| l.starts_with("  agent: ") && l.contains("1 turn(s), 1234 tokens")),
        "{drawn:?}"
    );
    assert!(drawn.iter().any(|l| l.contains("2 turn(s)")), "{drawn:?}");
    assert!(!rest.contains("agent: ") && !rest.contains('\x1b'), "{rest}");
    let said: Vec<_> = rest.lines().filter(|l| l.contains("before") || l.contains("behind")).collect();
    assert_eq!(said.len(), 2, "{rest}");
    assert!(said.iter().all(|l| l.starts_with("  | ") || l.starts_with("  │ ")), "{said:?}");
}

#[test]
fn a_narrow_terminal_has_a_shorter_line() {
    let world = world();
    let text = on_terminal(&world, 20, &["--color", "never"]);
    let (_, drawn) = stays(&text);
    assert!(!drawn.is_empty() && drawn.iter().all(|l| l.chars().count() < 20), "{drawn:?}");
}

#[test]
fn pipes_and_ci_and_those_who_see_no_texts_have_none() {
    let mut world = world();
    let piped = world.run(&[]).success();
    assert!(!piped.done.stdout.contains("\x1b[J") && !piped.done.stdout.contains("agent: "));
    let text = on_terminal(&world, 80, &["--show-agent-output", "tools"]);
    assert!(!text.contains("\x1b[J"), "{text}");
    world.env("GITHUB_ACTIONS", "true");
    let text = on_terminal(&world, 80, &["--show-agent-output", "full"]);
    assert!(!text.contains("\x1b[J"), "{text}");
}
