//! The embedded backend through the real `ssh` and `scp`: isolation, life and death, many at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// One state directory. What it holds is deleted at the end of the test.
struct Local {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Local {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("quiet.yaml"), "version: 1\n").unwrap();
        let net = "version: 1\nnetwork_policies:\n  any: {endpoints: [{host: example.com, port: 443}]}\n";
        fs::write(dir.path().join("net.yaml"), net).unwrap();
        Self { dir, env: Vec::new() }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullsend"));
        command.arg("openshell").args(shell_words::split(line).unwrap()).stdin(Stdio::null());
        command.env("FULLSEND_LOCAL_STATE", self.state()).envs(self.env.iter().cloned());
        command
    }

    fn cli(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn ok(&self, line: &str) -> String {
        let output = self.cli(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn create(&self, name: &str, more: &str) {
        let policy = self.dir.path().join("quiet.yaml");
        let policy =
            if more.contains("--policy") { String::new() } else { format!("--policy {}", policy.display()) };
        self.ok(&format!("sandbox create --name {name} --no-tty --no-auto-providers {policy} {more} --detach -- sleep infinity"));
    }

    fn config(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(format!("{name}.ssh"));
        fs::write(&path, self.ok(&format!("sandbox ssh-config {name}"))).unwrap();
        path
    }

    fn ssh_command(&self, name: &str) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-F").arg(self.config(name)).args(["-o", "BatchMode=yes"]);
        command.env("FULLSEND_LOCAL_STATE", self.state()).stdin(Stdio::null());
        command
    }

    fn ssh(&self, name: &str, line: &str) -> Output {
        self.ssh_command(name).arg(host(name)).arg(line).output().unwrap()
    }

    /// What a command prints; it must succeed.
    fn inside(&self, name: &str, line: &str) -> String {
        let output = self.ssh(name, line);
        assert!(output.status.success(), "{line}: {:?} {}", output.status, text(&output.stderr));
        text(&output.stdout)
    }

    fn record(&self, name: &str) -> Value {
        let path = self.state().join("sandboxes").join(name).join("sandbox.json");
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    fn init(&self, name: &str) -> u32 {
        u32::try_from(self.record(name)["init"]["pid"].as_u64().unwrap()).unwrap()
    }

    fn phase(&self, name: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("sandbox get {name} -o json"))).unwrap()
    }

    /// Processes of the host that write to a log under this state directory: everything in a sandbox that was not
    /// started over ssh, and what holds it.
    fn processes(&self) -> Vec<PathBuf> {
        let state = self.state();
        let of_ours =
            |proc: &Path| fs::read_link(proc.join("fd/2")).is_ok_and(|target| target.starts_with(&state));
        fs::read_dir("/proc").unwrap().filter_map(|e| Some(e.ok()?.path())).filter(|p| of_ours(p)).collect()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for name in text(&self.cli("sandbox list --names").stdout).lines() {
            self.cli(&format!("sandbox delete {name}"));
        }
    }
}

fn host(name: &str) -> String {
    format!("openshell-{name}.default")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_user_inside_is_1000_and_without_power() {
    let local = Local::new();
    local.create("a", "");
    assert_eq!(
        local.inside("a", "id -u; id -un; id -g; pwd; echo $HOME"),
        "1000\nsandbox\n1000\n/sandbox\n/sandbox\n"
    );
    let status = local.inside("a", "grep -E '^(CapPrm|CapEff|NoNewPrivs|Groups)' /proc/self/status");
    for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{line} in {status}");
    }
    // Seen from the host: what runs inside is not root, even when root started it.
    let children = |parent: u32| -> Vec<u32> {
        let path = format!("/proc/{parent}/task/{parent}/children");
        fs::read_to_string(path).unwrap().split_whitespace().map(|p| p.parse().unwrap()).collect()
    };
    let main = children(local.init("a"));
    assert!(!main.is_empty());
    for pid in main {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let uid = status.lines().find(|l| l.starts_with("Uid:")).unwrap();
        assert!(!uid.split_whitespace().any(|id| id == "0"), "{uid}");
    }
    let map = fs::read_to_string(format!("/proc/{}/uid_map", local.init("a"))).unwrap();
    let line =
        map.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|l| l[0] == "1000").unwrap();
    assert_ne!(line[1], "0", "{map}");
}

#[test]
fn a_file_that_only_root_may_read_stays_closed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: nothing to be closed");
        return;
    }
    let mut local = Local::new();
    let bound = tempfile::tempdir_in("/root").unwrap();
    fs::set_permissions(bound.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, mode) in [("secret", 0o600), ("open", 0o644)] {
        fs::write(bound.path().join(name), name).unwrap();
        fs::set_permissions(bound.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    local.env.push(("FULLSEND_LOCAL_BINDS".to_owned(), bound.path().display().to_string()));
    local.create("a", "");
    let dir = bound.path().display();
    assert_eq!(local.inside("a", &format!("cat {dir}/open")), "open");
    let closed = local.ssh("a", &format!("cat {dir}/secret"));
    assert!(!closed.status.success() && text(&closed.stderr).contains("Permission denied"));
    assert!(!local.ssh("a", &format!("touch {dir}/new")).status.success());
}

#[test]
fn the_host_is_out_of_sight() {
    let mut local = Local::new();
    local.env.push(("HOST_ONLY_VARIABLE".to_owned(), "seen".to_owned()));
    local.create("a", "--env GIVEN='a b'");
    let env = local.inside("a", "env");
    assert!(!env.contains("HOST_ONLY_VARIABLE") && env.contains("GIVEN=a b") && env.contains("LANG=C.UTF-8"));
    let shown = local.inside("a", "ls -A /");
    for hidden in ["root", "home", "srv", "opt", "sys", "boot"] {
        assert!(!shown.lines().any(|l| l == hidden), "{hidden} in {shown}");
    }
    let numbers = local.inside("a", "ls /proc | grep -c '^[0-9]'");
    assert!(numbers.trim().parse::<u32>().unwrap() < 10, "{numbers}");
    for place in ["/x", "/usr/x", "/etc/x", "/dev/x", "/var/x"] {
        assert!(!local.ssh("a", &format!("touch {place}")).status.success(), "{place}");
    }
    assert_eq!(local.inside("a", "touch /sandbox/x /tmp/x /var/tmp/y /dev/shm/z && ls /tmp"), "x\ny\n");
    assert_eq!(local.inside("a", "getent passwd 1000 | cut -d: -f1; hostname"), "sandbox\na\n");
}

#[test]
fn there_is_no_network_without_a_rule() {
    let local = Local::new();
    local.create("quiet", "");
    let devices = |name: &str| local.inside(name, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '");
    assert_eq!(devices("quiet"), "lo\n");
    let policy = local.dir.path().join("net.yaml");
    let line = format!("sandbox create --name loud --policy {} --detach -- sleep infinity", policy.display());
    let output = local.cli(&line);
    assert!(output.status.success() && text(&output.stderr).contains("not enforced locally"));
    let own: Vec<String> = fs::read_to_string("/proc/net/dev")
        .unwrap()
        .lines()
        .skip(2)
        .filter_map(|l| Some(l.split_once(':')?.0.trim().to_owned()))
        .collect();
    assert_eq!(devices("loud").lines().map(str::to_owned).collect::<Vec<_>>(), own);
}

#[test]
fn credentials_are_in_the_environment_and_nowhere_else_that_others_can_read() {
    let mut local = Local::new();
    local.env.push(("TOK".to_owned(), "token-value-1".to_owned()));
    let profile = local.dir.path().join("p.yaml");
    fs::write(&profile, "id: prof\ndisplay_name: P\n").unwrap();
    local.ok(&format!("profile import -f {}", profile.display()));
    local.ok("provider create --name p1 --type prof --credential TOK --config region=eu");
    local.create("a", "--provider p1");
    assert_eq!(local.inside("a", "echo $TOK; env | grep -c region || true"), "token-value-1\n0\n");
    for entry in walk(&local.state()) {
        let mode = fs::symlink_metadata(&entry).unwrap().permissions().mode() & 0o777;
        let inner = entry.components().any(|c| {
            ["home", "tmp", "etc", "log", "status", "connections"].contains(&c.as_os_str().to_str().unwrap())
        });
        assert!(inner || mode.trailing_zeros() >= 6, "{} {mode:o}", entry.display());
    }
    let argv_of_all: Vec<u8> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|e| fs::read(e.ok()?.path().join("cmdline")).ok())
        .flatten()
        .collect();
    assert!(!text(&argv_of_all).contains("token-value-1"));
    local.ok("sandbox delete a");
    local.ok("provider delete p1");
    for entry in walk(&local.state()).iter().filter(|p| p.is_file()) {
        assert!(!text(&fs::read(entry).unwrap()).contains("token-value-1"), "{}", entry.display());
    }
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    walkdir::WalkDir::new(dir).into_iter().map(|e| e.unwrap().into_path()).skip(1).collect()
}

#[test]
fn a_bound_prefix_is_read_only_and_on_the_path() {
    let mut local = Local::new();
    let prefix = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(prefix.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(prefix.path().join("bin")).unwrap();
    let tool = prefix.path().join("bin/fs-test-tool");
    fs::write(&tool, "#!/bin/sh\necho tool\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    local.env.push(("FULLSEND_LOCAL_BINDS".to_owned(), prefix.path().display().to_string()));
    local.create("a", "");
    assert_eq!(local.inside("a", "fs-test-tool"), "tool\n");
    assert!(!local.ssh("a", &format!("echo x >> {}", tool.display())).status.success());

    local.env[0].1 = "/does/not/exist".to_owned();
    let output = local.cli("sandbox create --name b --detach -- sleep infinity");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("'/does/not/exist' does not exist"));
}

#[test]
fn open_files_of_the_caller_do_not_lead_out() {
    let local = Local::new();
    let exe = env!("CARGO_BIN_EXE_fullsend");
    let script = format!(
        "exec 7</ 8<>/dev/null; \"{exe}\" openshell sandbox create --name a --detach -- sleep infinity && \
         \"{exe}\" openshell sandbox exec -n a -- sh -c 'ls /proc/2/fd; ls /proc/self/fd | tail -n +4'"
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("FULLSEND_LOCAL_STATE", local.state())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let fds = text(&output.stdout).replace("\nCreated sandbox: a\n\n", "");
    assert!(fds.lines().all(|fd| fd.parse::<u32>().unwrap() <= 3), "{fds}");
    assert!(!local.processes().is_empty());
}

#[test]
fn one_connection_carries_many_commands_and_is_counted_once() {
    let local = Local::new();
    local.create("a", "");
    let socket = local.dir.path().join("s");
    let mut master =
        local.ssh_command("a").args(["-M", "-N", "-S"]).arg(&socket).arg(host("a")).spawn().unwrap();
    eventually("the master listens", || socket.exists());
    let children: Vec<_> = (0..20)
        .map(|i| {
            let mut command = local.ssh_command("a");
            command.arg("-S").arg(&socket).arg(host("a")).arg(format!("head -c 300000 /dev/zero; exit {i}"));
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for (i, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (i32::try_from(i).ok(), 300_000));
    }
    let count = || fs::read_to_string(local.state().join("sandboxes/a/connections")).unwrap().lines().count();
    assert_eq!(count(), 1);
    master.kill().unwrap();
    master.wait().unwrap();
    local.inside("a", "true");
    assert_eq!(count(), 2);
}

#[test]
fn bytes_pass_unchanged_and_a_command_that_does_not_read_blocks_nobody() {
    let local = Local::new();
    local.create("a", "");
    let bytes: Vec<u8> =
        (0..12_000_000_u32).map(|i| u8::try_from(i.wrapping_mul(2_654_435_761) >> 24).unwrap()).collect();
    let sent = local.dir.path().join("sent");
    fs::write(&sent, &bytes).unwrap();
    let through = |line: &str| {
        let mut command = local.ssh_command("a");
        command.arg(host("a")).arg(line).stdin(fs::File::open(&sent).unwrap());
        command.output().unwrap()
    };
    assert!(through("cat").stdout == bytes, "cat must give back what it got");
    assert_eq!(through("sleep 0.3; exit 9").status.code(), Some(9));
    for old in [false, true] {
        let back = local.dir.path().join("back");
        let remote = format!("{}:/sandbox/file", host("a"));
        for (from, to) in
            [(sent.to_str().unwrap(), remote.as_str()), (remote.as_str(), back.to_str().unwrap())]
        {
            let mut scp = Command::new("scp");
            scp.args(["-q", "-F"]).arg(local.config("a")).env("FULLSEND_LOCAL_STATE", local.state());
            if old {
                scp.arg("-O");
            }
            assert!(scp.args([from, to]).status().unwrap().success());
        }
        assert!(fs::read(&back).unwrap() == bytes, "scp must not change bytes");
        fs::remove_file(back).unwrap();
    }
}

#[test]
fn a_process_left_behind_does_not_hold_the_connection() {
    let local = Local::new();
    local.create("a", "");
    let started = Instant::now();
    assert_eq!(local.inside("a", "sleep 600 & echo done"), "done\n");
    assert!(started.elapsed() < Duration::from_mins(1));
    // It lives on after its connection.
    assert_eq!(local.inside("a", "pgrep -x sleep | wc -l").trim(), "2");
}

#[test]
fn a_dead_sandbox_says_so_and_can_be_deleted() {
    let local = Local::new();
    local.create("a", "");
    assert_eq!(local.phase("a")["phase"], "Ready");
    let pid = rustix::process::Pid::from_raw(i32::try_from(local.init("a")).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    eventually("the sandbox is in Error", || local.phase("a")["phase"] == "Error");
    let ssh = local.ssh("a", "true");
    assert_eq!(ssh.status.code(), Some(255));
    assert!(text(&ssh.stderr).contains("sandbox is not ready"), "{}", text(&ssh.stderr));
    local.ok("sandbox delete a");
    assert!(local.processes().is_empty());
}

#[test]
fn the_end_of_the_main_process_ends_the_sandbox() {
    let local = Local::new();
    local.create("a", "");
    // The command may not live to report its own success.
    local.ssh("a", "setsid sleep 600 </dev/null >/dev/null 2>&1 & kill 2");
    eventually("the sandbox has ended", || local.phase("a")["phase"] != "Ready");
    assert_eq!(local.phase("a")["conditions"][0]["reason"], "MainProcessFailed");
    let gone = local.init("a");
    eventually("the other processes are gone", || {
        !fs::read_to_string(format!("/proc/{gone}/stat")).is_ok_and(|s| !s.contains(") Z"))
    });
}

#[test]
fn delete_ends_everything_and_removes_closed_directories() {
    let local = Local::new();
    local.create("a", "");
    local.inside(
        "a",
        "mkdir -p d/e && touch d/e/f && chmod 0 d/e d; setsid sleep 600 </dev/null >/dev/null 2>&1 &",
    );
    assert!(!local.processes().is_empty());
    local.ok("sandbox delete a");
    assert!(local.processes().is_empty());
    assert_eq!(fs::read_dir(local.state().join("sandboxes")).unwrap().count(), 0);
    assert!(local.ok("sandbox delete a").contains("not found"));
}

#[test]
fn a_create_that_is_killed_leaves_nothing_that_delete_does_not_end() {
    let local = Local::new();
    for delay in (0..30).step_by(3) {
        let mut child = local.command("sandbox create --name a --detach -- sleep infinity").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        let _ = child.kill();
        child.wait().unwrap();
        local.ok("sandbox delete a");
        eventually("no process is left", || local.processes().is_empty());
    }
    local.create("a", "");
    assert_eq!(local.phase("a")["phase"], "Ready");
}

#[test]
fn many_at_once_do_not_meet() {
    let local = Local::new();
    let line = |name: &str| format!("sandbox create --name {name} --detach -- sleep infinity");
    let mut all: Vec<_> = (0..6).map(|i| local.command(&line(&format!("n{i}"))).spawn().unwrap()).collect();
    for child in &mut all {
        assert!(child.wait().unwrap().success());
    }
    let same: Vec<_> = (0..4)
        .map(|_| {
            local.command(&line("same")).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
        })
        .collect();
    assert_eq!(same.iter().filter(|o| o.status.success()).count(), 1);
    let mut racing: Vec<_> =
        (0..4).map(|_| local.command(&line("race")).stderr(Stdio::null()).spawn().unwrap()).collect();
    let won =
        racing.iter_mut().filter_map(|c| c.wait().ok()).filter(std::process::ExitStatus::success).count();
    assert_eq!(won, 1);
    let names = local.ok("sandbox list --names");
    assert_eq!(names, "n0\nn1\nn2\nn3\nn4\nn5\nrace\nsame\n");
    let mut deletes: Vec<_> =
        (0..6).map(|i| local.command(&format!("sandbox delete n{i}")).spawn().unwrap()).collect();
    for child in &mut deletes {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(local.ok("sandbox list --names"), "race\nsame\n");
    assert_eq!(local.inside("race", "echo alive"), "alive\n");
}

#[test]
fn requests_that_are_not_served_are_refused() {
    let local = Local::new();
    local.create("a", "");
    let refused = |option: &[&str]| {
        let mut command = local.ssh_command("a");
        command.args(["-o", "ExitOnForwardFailure=yes"]).args(option).arg(host("a")).arg("true");
        command.output().unwrap()
    };
    assert_eq!(refused(&["-R", "0:127.0.0.1:9"]).status.code(), Some(255));
    assert!(!refused(&["-W", "127.0.0.1:9"]).status.success());
    // The environment of the client does not pass, the command runs.
    let mut command = local.ssh_command("a");
    command.args(["-o", "SendEnv=FS_SENT"]).env("FS_SENT", "1").arg(host("a")).arg("echo [$FS_SENT]");
    assert_eq!(text(&command.output().unwrap().stdout), "[]\n");
}
