//! The first process of the runner image (`images/runner/entrypoint`), with stand-ins for gateway and CLI.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Done, World};

/// Only to end a test that hangs.
const HANG: Duration = Duration::from_mins(2);

fn entrypoint() -> String {
    format!("{}/images/runner/entrypoint", env!("CARGO_MANIFEST_DIR"))
}

/// A world whose gateway writes down its environment and its end, and whose CLI succeeds while the gateway lives.
fn world() -> World {
    let mut world = World::new();
    std::fs::create_dir_all(world.path("log")).unwrap();
    let log = world.path("log").display().to_string();
    world.script(
        "bin/openshell-gateway",
        &format!(
            "if [[ ${{1:-}} == generate-certs ]]; then echo \"$*\" >'{log}/certs'; exit; fi\n\
             env >'{log}/gateway.env'\n\
             trap \"echo TERM >>'{log}/gateway.end'; exit 0\" TERM\n\
             echo $$ >'{log}/gateway.pid'\n\
             while :; do sleep 0.05; done"
        ),
    );
    world.script(
        "bin/openshell",
        &format!(
            "case $* in\n\
             'gateway list')\n\
               if [[ -e '{log}/list' ]]; then cat '{log}/list'; else\n\
               printf 'No gateways found.\\n\\nRegister a gateway with: openshell gateway add <endpoint>\\n'; fi ;;\n\
             'gateway add'*) echo \"$*\" >>'{log}/registered' ;;\n\
             *'sandbox list -o json') [[ -e '{log}/gateway.pid' || ${{FULLSEND_RUNNER_GATEWAY:-}} == http* ]] ;;\n\
             *) exit 64 ;;\n\
             esac"
        ),
    );
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    world.env("PATH", path);
    world
}

fn command(world: &World, script: &str) -> Command {
    // A shell can trap nothing that was ignored when it began, as under nohup.
    let signals = "--default-signal=HUP,INT,QUIT,TERM";
    let args = [signals, "bash", &entrypoint(), "bash", "-c", script];
    let mut command = world.command("env", &args, &world.repo());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(world: &World, script: &str) -> Done {
    world.finish(command(world, script))
}

fn log(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path("log").join(name)).unwrap_or_default()
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < HANG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

#[track_caller]
fn end(mut child: Child) -> Done {
    until("the end of the entrypoint", || child.try_wait().unwrap().is_some());
    let mut done = Done {
        code: child.wait().unwrap().code().unwrap_or(-1),
        stdout: String::new(),
        stderr: String::new(),
    };
    child.stdout.take().unwrap().read_to_string(&mut done.stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut done.stderr).unwrap();
    done
}

fn is_running(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn the_command_runs_beside_a_gateway_and_its_exit_status_is_kept() {
    let world = world();
    for status in [0, 7, 143] {
        let done = run(&world, &format!("cat; echo out; exit {status}"));
        assert_eq!((done.code, done.stdout.as_str()), (status, "out\n"), "{}", done.stderr);
    }
    assert!(log(&world, "certs").contains("--server-san host.openshell.internal"));
    assert!(
        log(&world, "registered").contains("gateway add https://127.0.0.1:17670 --name openshell --local")
    );
    assert_eq!(log(&world, "gateway.end"), "TERM\n".repeat(3));
    assert!(!is_running(&log(&world, "gateway.pid")));
}

#[test]
fn the_command_has_its_standard_input() {
    let world = world();
    let input = world.write("input", "line\n");
    let mut command = command(&world, "cat");
    command.stdin(std::fs::File::open(input).unwrap());
    assert_eq!(world.finish(command).stdout, "line\n");
}

#[test]
fn a_signal_reaches_what_a_shell_waits_for() {
    for (name, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let world = world();
        let inner = format!(
            "bash -c 'trap \"echo {name} >{log}/got; exit 9\" {name}; echo >{log}/up; while :; do sleep 0.05; done'; exit $?",
            log = world.path("log").display()
        );
        let child = command(&world, &inner).spawn().unwrap();
        until("the command", || world.path("log/up").exists());
        signal(&child, name);
        let done = end(child);
        assert_eq!(log(&world, "got").trim(), name, "{}", done.stderr);
        // The shell between them may have been ended by the signal, or have passed the status on.
        assert!([9, 128 + number].contains(&done.code), "{name}: {done:?}");
        assert_eq!(log(&world, "gateway.end"), "TERM\n", "{}", done.stderr);
    }
}

#[test]
fn the_gateway_outlives_what_the_command_leaves_behind() {
    let world = world();
    let dir = world.path("log").display().to_string();
    // As the guard of a run does: another session, still busy when the command is gone.
    let script = format!(
        "setsid bash -c 'sleep 1; ls {dir}/gateway.end >{dir}/too-late 2>/dev/null; echo done >{dir}/guard' </dev/null >/dev/null 2>&1 &"
    );
    let done = run(&world, &script);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!((log(&world, "guard").trim(), log(&world, "too-late").as_str()), ("done", ""));
    assert_eq!(log(&world, "gateway.end"), "TERM\n");
}

#[test]
fn what_does_not_end_is_ended() {
    let mut world = world();
    world.env("FULLSEND_RUNNER_GRACE", "1");
    let dir = world.path("log").display().to_string();
    let script = format!(
        "setsid bash -c 'echo $$ >{dir}/left; exec sleep 600' </dev/null >/dev/null 2>&1 & sleep 0.5"
    );
    let done = run(&world, &script);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("ending what the command left"), "{}", done.stderr);
    until("the end of what was left", || !is_running(&log(&world, "left")));
}

#[test]
fn the_death_of_the_gateway_ends_the_command() {
    let world = world();
    let dir = world.path("log").display().to_string();
    let script =
        format!("trap 'echo told >{dir}/told; exit 0' TERM; echo >{dir}/up; while :; do sleep 0.05; done");
    let child = command(&world, &script).spawn().unwrap();
    until("the command", || world.path("log/up").exists());
    let gateway = log(&world, "gateway.pid");
    assert!(Command::new("kill").args(["-KILL", gateway.trim()]).status().unwrap().success());
    let done = end(child);
    assert_eq!((done.code, log(&world, "told").trim()), (3, "told"), "{}", done.stderr);
    assert!(done.stderr.contains("openshell-gateway ended (status 137)"), "{}", done.stderr);
}

#[test]
fn a_gateway_that_does_not_start_is_told_with_its_log() {
    let mut world = world();
    world.env("FULLSEND_RUNNER_WAIT", "1");
    let script = "[[ ${1:-} == generate-certs ]] || { echo 'no compute driver' >&2; exit 4; }";
    world.script("bin/openshell-gateway", script);
    let done = run(&world, "echo never");
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{}", done.stderr);
    assert!(done.stderr.contains("no compute driver"), "{}", done.stderr);

    world
        .script("bin/openshell-gateway", "[[ ${1:-} == generate-certs ]] && { echo 'no disk' >&2; exit 1; }");
    let done = run(&world, "echo never");
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{}", done.stderr);
    assert!(done.stderr.contains("no disk"), "{}", done.stderr);
}

#[test]
fn the_gateway_sees_none_of_the_job_s_tokens() {
    let mut world = world();
    world.env("GITHUB_TOKEN", "ghs_secret").env("OPENSHELL_COMPUTE_DRIVER", "podman");
    let done = run(&world, "printf %s \"$GITHUB_TOKEN\"");
    assert_eq!((done.code, done.stdout.as_str()), (0, "ghs_secret"), "{}", done.stderr);
    let env = log(&world, "gateway.env");
    assert!(
        env.contains("OPENSHELL_COMPUTE_DRIVER=podman") && env.contains("OPENSHELL_LOCAL_TLS_DIR="),
        "{env}"
    );
    assert!(!env.contains("ghs_secret") && !env.contains("FULLSEND_RUNNER_SESSION"), "{env}");
}

#[test]
fn other_gateways_are_used_as_they_are() {
    let mut world = world();
    world.env("FULLSEND_RUNNER_GATEWAY", "none");
    assert_eq!(run(&world, "exit 5").code, 5);
    assert!(!world.path("log/gateway.pid").exists());
    world.env("FULLSEND_RUNNER_GATEWAY", "https://gateway.test:443").env("FULLSEND_RUNNER_NAME", "team");
    world.env("FULLSEND_RUNNER_OPTIONS", "--oidc-issuer https://id.test");
    assert_eq!(run(&world, "exit 6").code, 6);
    let registered = log(&world, "registered");
    assert!(
        registered.contains("gateway add https://gateway.test:443 --name team --oidc-issuer https://id.test"),
        "{registered}"
    );
    assert!(!world.path("log/gateway.pid").exists());
    world.env("FULLSEND_RUNNER_GATEWAY", "sometimes");
    assert_eq!(run(&world, "true").code, 2);
    world.env("FULLSEND_RUNNER_GATEWAY", "none").env("FULLSEND_RUNNER_WAIT", "60s");
    let done = run(&world, "true");
    assert!(
        done.code == 2 && done.stderr.contains("FULLSEND_RUNNER_WAIT is a number of seconds"),
        "{done:?}"
    );
}

/// The list has advice in it and the addresses of others, in which the name may occur.
#[test]
fn what_is_registered_is_known_by_its_row() {
    let mut world = world();
    let head = "  \u{1b}[1mNAME\u{1b}[0m  \u{1b}[1mENDPOINT\u{1b}[0m  TYPE  SOURCE  AUTH\n";
    world.write(
        "log/list",
        format!("{head}\u{1b}[32m* team  https://openshell.test  cloud  user  oidc\u{1b}[39m\n"),
    );
    assert_eq!(run(&world, "exit 4").code, 4);
    assert!(log(&world, "registered").contains("--name openshell"), "{}", log(&world, "registered"));
    std::fs::remove_file(world.path("log/registered")).unwrap();

    for row in [
        "\u{1b}[32m* openshell  https://127.0.0.1:17670  local\u{1b}[39m",
        "  openshell  https://127.0.0.1:17670/  local",
    ] {
        world.write("log/list", format!("{head}{row}\n"));
        assert_eq!(run(&world, "exit 4").code, 4, "{row}");
        assert_eq!(log(&world, "registered"), "", "{row}");
    }
    world.env("FULLSEND_RUNNER_GATEWAY", "https://other.test");
    let done = run(&world, "exit 4");
    assert!(
        done.code == 3 && done.stderr.contains("registered already, as https://127.0.0.1:17670/"),
        "{done:?}"
    );
}

#[test]
fn health_is_whether_the_gateway_answers() {
    let mut world = world();
    let health =
        |world: &World| world.finish(world.command("bash", &[&entrypoint(), "--health"], &world.repo())).code;
    assert_ne!(health(&world), 0);
    std::fs::write(world.path("log/gateway.pid"), "1").unwrap();
    assert_eq!(health(&world), 0);
    std::fs::remove_file(world.path("log/gateway.pid")).unwrap();
    world.env("FULLSEND_RUNNER_GATEWAY", "none");
    assert_eq!(health(&world), 0);
}

#[test]
fn as_the_first_process_it_reaps_orphans() {
    let world = world();
    let dir = world.path("log").display().to_string();
    // Five processes whose parents are gone by the time that they end; then none may be left as a zombie.
    let script = format!(
        "for n in 1 2 3 4 5; do (sleep 0.1 & echo >>{dir}/orphans) ; done; \
         sleep 1; cat /proc/[0-9]*/stat | grep -c ' Z ' >{dir}/zombies; cat /proc/1/cmdline | tr '\\0' ' ' >{dir}/first; exit 11"
    );
    let entrypoint = entrypoint();
    let args = [
        "--dev-bind",
        "/",
        "/",
        "--unshare-pid",
        "--proc",
        "/proc",
        "--as-pid-1",
        "--die-with-parent",
        "bash",
        &entrypoint,
        "bash",
        "-c",
        &script,
    ];
    let done = world.finish(world.command("bwrap", &args, &world.repo()));
    assert_eq!(done.code, 11, "{}", done.stderr);
    assert!(log(&world, "first").contains("runner/entrypoint"), "{}", log(&world, "first"));
    assert_eq!((log(&world, "orphans").len(), log(&world, "zombies").trim()), (5, "0"));
}
