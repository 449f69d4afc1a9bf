//! What a run costs: programs started on the host, and connections to the sandbox.

use std::process::Command;

use crate::support::{World, fullsend};

/// The most programs that hello-world may start on the host; polls for readiness and what runs inside the sandbox
/// are not counted.
const MOST_PROGRAMS: usize = 40;

/// The lines of a trace that are successful starts of programs by the host's side.
fn host_side(trace: &str) -> Vec<&str> {
    let ours = fullsend().to_str().unwrap();
    let host = |line: &&str| {
        let Some(call) = line.split_once("execve(\"").map(|(_, rest)| rest) else { return false };
        let program = call.split('"').next().unwrap();
        let name = program.rsplit('/').next().unwrap();
        match name {
            "ssh" | "scp" | "nsenter" | "bwrap" | "validate-output.sh" => true,
            "rsync" => !call.contains("--sender"),
            "git" => call.contains("safe.directory") || call.contains("--no-includes"),
            "sh" => call.contains("exec /"),
            _ => program == ours && !call.contains("\"get\""),
        }
    };
    trace.lines().filter(|l| l.ends_with("= 0")).filter(host).collect()
}

#[test]
fn hello_world_starts_few_programs_and_opens_one_connection() {
    let world = World::new();
    let trace = world.path("trace");
    let harness = concat!(env!("CARGO_MANIFEST_DIR"), "/harnesses/hello-world");
    let out = world.path("out");
    // A trace goes on until the last process that it follows has ended.
    let mut args: Vec<&str> = vec!["120", "strace", "-f", "-s", "4096", "-e", "trace=execve", "-o"];
    args.extend([trace.to_str().unwrap(), fullsend().to_str().unwrap()]);
    args.extend(["run", "hello-world", "--local", "--fullsend-dir", harness]);
    args.extend(["--output-dir", out.to_str().unwrap()]);
    if Command::new("strace").arg("-V").output().is_err() {
        crate::stub::not_run("hello_world_starts_few_programs", "there is no strace");
        return;
    }
    world.collect(world.finish(world.command("timeout", &args, &world.repo()))).success();

    let text = String::from_utf8_lossy(&std::fs::read(&trace).unwrap()).into_owned();
    let programs = host_side(&text);
    let all = programs.join("\n");
    assert!(programs.len() <= MOST_PROGRAMS, "{} programs:\n{all}", programs.len());
    for part in ["\"create\"", "\"ssh-proxy\"", "/scp\"", "/rsync\"", "/nsenter\""] {
        assert!(all.contains(part), "the trace misses {part}:\n{all}");
    }

    // Every connection to the backend is one start of its proxy.
    assert_eq!(all.matches("\"ssh-proxy\"").count(), 1, "{all}");
    world.assert_clean();
}
