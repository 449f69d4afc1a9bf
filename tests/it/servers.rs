//! Servers on the host that the agent may call.

use std::time::Duration;

use crate::lifecycle::{HANG, Live, assert_nothing_left, run_of, wait_in_sandbox};
use crate::support::{World, helper};

/// An agent that asks the server `tool` and keeps the answer.
const ASK: &str = r#"
for _ in 1 2 3 4 5 6 7 8 9 10; do
    (: <"/dev/tcp/127.0.0.1/${FULLSEND_API_TOOL_URL##*:}") 2>/dev/null && break
    sleep 0.5
done
exec 3<>"/dev/tcp/127.0.0.1/${FULLSEND_API_TOOL_URL##*:}"
printf 'GET /hello HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n' "$FULLSEND_API_TOOL_TOKEN" >&3
cat <&3 > answer
"#;

/// A world with one server that behaves as `mode` says.
fn world(mode: &str, keys: &str) -> World {
    let world = World::new();
    serve(&world, mode, keys);
    world
}

fn serve(world: &World, mode: &str, keys: &str) {
    let stubborn = if mode == "stubborn" { "trap '' TERM\n" } else { "" };
    let server = helper("api-server");
    world.script("h/scripts/tool", &format!("{stubborn}exec {} \"$@\"", server.display()));
    let pid = world.path("server.pid");
    world.harness(&format!(
        "agent: agents/work\nruntime: script\ntimeout_minutes: 2\n{keys}\napi_servers:\n  - name: tool\n    script: \
         scripts/tool\n    env: {{API_SERVER_MODE: {mode}, API_SERVER_PID_FILE: {}}}\n",
        pid.display()
    ));
    world.agent(ASK);
}

fn server_pid(world: &World) -> Option<u32> {
    std::fs::read_to_string(world.path("server.pid")).ok()?.trim().parse().ok()
}

fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

#[track_caller]
fn assert_server_gone(world: &World) {
    let pid = server_pid(world).expect("the server was started");
    let end = std::time::Instant::now() + HANG;
    while lives(pid) {
        assert!(std::time::Instant::now() < end, "the server {pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_agent_without_a_network_calls_a_server_of_the_host() {
    let world = world("well", "");
    let run = world.run(&[]).success();
    let answer = std::fs::read_to_string(world.repo().join("answer")).unwrap();
    assert!(answer.contains("hello from the host"), "{answer}");
    let log = run.file("logs/api-tool.log");
    assert!(log.contains("starting with token ***"), "{log}");
    let shown = format!("{}{}", run.done.stdout, run.done.stderr);
    assert!(shown.contains("tool at 127.0.0.1:"), "{shown}");
    assert_server_gone(&world);
    world.assert_clean();
}

#[test]
fn an_agent_with_the_network_of_the_machine_calls_it_too() {
    let world = world("well", "policy: policies/open.yaml");
    world.write(
        "h/policies/open.yaml",
        "version: 1\nnetwork_policies:\n  any:\n    name: any\n    endpoints: [{host: example.com, port: 443}]\n    \
         binaries: [{path: /**}]\n",
    );
    world.run(&[]).success();
    assert!(std::fs::read_to_string(world.repo().join("answer")).unwrap().contains("hello"));
    assert_server_gone(&world);
}

#[test]
fn the_token_is_in_no_argv_and_in_no_artefact() {
    let world = world("well", "");
    world.agent(&format!(
        "{ASK}\nprintf %s \"$FULLSEND_API_TOOL_TOKEN\" | tr -d '\\n' | rev > reversed\necho \"said $FULLSEND_API_TOOL_TOKEN\"\n\
         mkdir -p \"$FULLSEND_OUTPUT_DIR\"; echo \"t=$FULLSEND_API_TOOL_TOKEN\" > \"$FULLSEND_OUTPUT_DIR/notes.txt\""
    ));
    // The script sees the command lines of the whole machine at that moment: it is the server itself.
    world.script(
        "h/scripts/tool",
        &format!(
            "tr '\\0' ' ' < /proc/$$/cmdline > {}; exec {} \"$@\"",
            world.path("argv").display(),
            helper("api-server").display()
        ),
    );
    let run = world.run(&[]).success();
    let reversed = std::fs::read_to_string(world.repo().join("reversed")).unwrap();
    let token: String = reversed.chars().rev().collect();
    assert_eq!(token.len(), 48, "{token}");
    assert!(!std::fs::read_to_string(world.path("argv")).unwrap().contains(&token));
    for (path, bytes) in crate::support::files_below(run.dir.as_ref().unwrap()) {
        assert!(!String::from_utf8_lossy(&bytes).contains(&token), "{}", path.display());
    }
    assert!(!run.done.stdout.contains(&token) && !run.done.stderr.contains(&token));
    assert!(run.file("iteration-1/output/notes.txt").contains("t=***"));
}

#[test]
fn a_server_that_is_never_healthy_ends_the_run_before_a_sandbox() {
    for mode in ["sick", "mute"] {
        let world = world(mode, "deadlines: {api_server: 1s}");
        let run = world.run(&[]).failure("FS-API-SERVER", 3);
        assert!(
            run.done.stderr.contains("was not healthy within 1 s") || run.done.stderr.contains("not healthy"),
            "{}",
            run.done.stderr
        );
        assert!(
            run.json["phases"].as_array().unwrap().iter().all(|p| p["name"] != "sandbox"),
            "{}",
            run.json
        );
        assert_server_gone(&world);
        world.assert_clean();
    }
}

/// As the first request through a proxy that has to look at the program first.
#[test]
fn a_way_to_the_server_that_takes_seconds_at_first_is_found() {
    let world = world("slow", "");
    world.run(&[]).success();
    assert_server_gone(&world);
    world.assert_clean();
}

#[test]
fn a_server_that_dies_at_once_shows_its_last_words() {
    let world = world("dies", "");
    let run = world.run(&[]).failure("FS-API-SERVER", 3);
    assert!(
        run.done.stderr.contains("exit status 7") && run.done.stderr.contains("out of order"),
        "{}",
        run.done.stderr
    );
    world.assert_clean();
}

#[test]
fn a_server_that_dies_ends_the_agent_and_its_work_is_kept() {
    let world = world("well", "");
    world.agent(&format!("echo half > half\n{}\nsleep 600", ASK.replace("/hello", "/die")));
    let live = Live::start(&world, "a", &[]);
    let run = run_of(&world, live.wait(HANG)).failure("FS-API-SERVER", 3);
    assert!(run.done.stderr.contains("exit status 9"), "{}", run.done.stderr);
    assert_eq!(run.json["iterations"][0]["ended_by"], "api_server");
    assert_eq!(run.json["iterations"][0]["partial"], true);
    assert!(run.file("changes.patch").contains("half"));
    assert_nothing_left(&world);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let world = World::new();
    serve(&world, "well", "");
    world.write(
        "h/harness/work.yaml",
        format!("agent: agents/work\nruntime: script\napi_servers: [{{name: tool, script: scripts/tool, port: {port}}}]\n"),
    );
    let run = world.run(&[]).failure("FS-API-SERVER", 3);
    assert!(run.done.stderr.contains(&format!("127.0.0.1:{port}")), "{}", run.done.stderr);
    world.assert_clean();
}

#[test]
fn a_server_that_ignores_term_is_killed_within_its_grace() {
    let world = world("stubborn", "");
    let start = std::time::Instant::now();
    world.run(&[]).success();
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    assert!(!lives(server_pid(&world).unwrap()), "it outlives the run");
    world.assert_clean();
}

#[test]
fn a_lost_connection_takes_the_forwarded_port_up_again() {
    let world = world("well", "");
    world.agent(&format!(
        "touch \"$FULLSEND_OUTPUT_DIR/started\"\nuntil [ -e /sandbox/go ]; do sleep 0.05; done\n{ASK}"
    ));
    let live = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "started");
    // The master, by the configuration that is its own.
    let master = || {
        let tmp = world.path("tmp");
        pids().into_iter().find(|pid| {
            let argv = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let argv = String::from_utf8_lossy(&argv).replace('\0', " ");
            argv.contains(tmp.to_str().unwrap()) && argv.contains("ssh_config.master -M")
        })
    };
    let first = master().expect("a connection");
    std::process::Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap();
    let begun = std::time::Instant::now();
    while master().is_none_or(|pid| pid == first) {
        assert!(begun.elapsed() < HANG, "no new connection");
        std::thread::sleep(Duration::from_millis(30));
    }
    let home =
        std::fs::read_dir(world.path("state/fullsend/local/sandboxes")).unwrap().next().unwrap().unwrap();
    std::fs::write(home.path().join("home/go"), "").unwrap();
    // The new connection has the port a moment after it is up, which the agent waits for.
    run_of(&world, live.wait(HANG)).success();
    assert!(std::fs::read_to_string(world.repo().join("answer")).unwrap().contains("hello from the host"));
    assert_nothing_left(&world);
}

fn pids() -> Vec<u32> {
    let names = std::fs::read_dir("/proc").unwrap().map(|e| e.unwrap().file_name());
    names.filter_map(|n| n.to_str()?.parse().ok()).collect()
}

#[test]
fn a_killed_run_takes_its_servers_along() {
    let world = world("stubborn", "");
    world.agent("touch \"$FULLSEND_OUTPUT_DIR/started\"; sleep 600");
    let live = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "started");
    live.signal("KILL");
    let _ = live.wait(HANG);
    assert_server_gone(&world);
    assert_nothing_left(&world);
}

#[test]
fn a_cancelled_run_stops_its_servers() {
    let world = world("stubborn", "");
    world.agent("touch \"$FULLSEND_OUTPUT_DIR/started\"; sleep 600");
    let live = Live::start(&world, "a", &[]);
    wait_in_sandbox(&world, "started");
    live.signal("TERM");
    let run = run_of(&world, live.wait(HANG)).failure("FS-CANCELLED", 143);
    assert!(run.dir.is_some());
    assert_server_gone(&world);
    assert_nothing_left(&world);
}

#[test]
fn the_way_through_the_alias_is_refused_with_what_to_do() {
    // As OpenShell, the embedded backend behind a wrapper is not known to share this machine's loopback, and its
    // sandbox does not know the alias. Forwarding is taken away.
    let mut world = world("well", "");
    world.personality("0.1.10");
    let ssh = world.script(
        "bin/ssh",
        &format!(
            "case \" $* \" in *' -O forward '*) echo refused >&2; exit 255;; esac\nexec {} \"$@\"",
            which("ssh")
        ),
    );
    let path = format!("{}:{}", ssh.parent().unwrap().display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
    let run = world.run(&[]).failure("FS-API-SERVER", 3);
    assert!(run.done.stderr.contains("host.openshell.internal"), "{}", run.done.stderr);
    assert!(run.done.stderr.contains("allowed_ips"), "{}", run.done.stderr);
    assert_server_gone(&world);
    world.assert_clean();
}

fn which(program: &str) -> String {
    let path = std::env::var("PATH").unwrap();
    path.split(':').map(|dir| format!("{dir}/{program}")).find(|p| std::path::Path::new(p).exists()).unwrap()
}

#[test]
fn forwarding_works_behind_every_generation() {
    for version in crate::support::GENERATIONS {
        let mut world = world("well", "");
        world.personality(version);
        world.run(&[]).success();
        assert!(std::fs::read_to_string(world.repo().join("answer")).unwrap().contains("hello"), "{version}");
        assert_server_gone(&world);
    }
}
