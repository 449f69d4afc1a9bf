//! The supervisor script itself, without a sandbox, under every shell that an image may have as `sh`.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::SUPERVISOR;

const SHELLS: &[&str] = &["dash", "bash", "busybox"];
const LONG: Duration = Duration::from_mins(1);
/// More than any agent here writes.
const MOST: &str = "1000000000";

/// A machine with one kind of `sh`.
struct Place {
    dir: tempfile::TempDir,
    path: String,
}

impl Place {
    /// `shell` as `sh`, before everything else on PATH. `None` where it is not installed.
    fn with(shell: &str) -> Option<Self> {
        let program = crate::process::locate(shell, "").ok()?;
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("bin")).unwrap();
        symlink(program, dir.path().join("bin/sh")).unwrap();
        let path = format!("{}:{}", dir.path().join("bin").display(), std::env::var("PATH").unwrap());
        Some(Self::at(dir, path))
    }

    /// A PATH with only what the script needs, and no `setsid`.
    fn without_setsid(shell: &str, more: &[&str]) -> Option<Self> {
        let place = Self::with(shell)?;
        let bin = place.dir.path().join("bin");
        for tool in
            ["cat", "cmp", "cp", "date", "dd", "grep", "ls", "mkdir", "mv", "rm", "sleep", "tail", "tr"]
                .iter()
                .chain(more)
        {
            symlink(crate::process::locate(tool, "").ok()?, bin.join(tool)).unwrap();
        }
        let path = bin.display().to_string();
        Some(Self { path, ..place })
    }

    fn at(dir: tempfile::TempDir, path: String) -> Self {
        fs_err::write(dir.path().join("supervise.sh"), SUPERVISOR).unwrap();
        fs_err::create_dir(dir.path().join("run")).unwrap();
        Self { dir, path }
    }

    fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn marker(&self) -> String {
        self.dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned()
    }

    fn agent(&self, command: &str) {
        fs_err::write(self.run_dir().join("command"), command).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.dir.path().join("bin/sh"));
        command.arg(self.dir.path().join("supervise.sh")).args(args);
        command.env("PATH", &self.path).env("HOME", self.dir.path()).env_remove("BASH_ENV").env_remove("ENV");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the agent and follows it.
    fn spawn(&self, deadline: &str, grace: &str) -> Follower {
        self.spawn_limited(deadline, grace, MOST, MOST)
    }

    /// The same with other limits than those that nobody reaches.
    fn spawn_limited(&self, deadline: &str, grace: &str, most: &str, rest: &str) -> Follower {
        let (dir, marker) = (self.run_dir().display().to_string(), self.marker());
        Follower::new(self.command(&["run", &dir, deadline, &marker, grace, most, "0", "600", rest]))
    }

    fn follow(&self, offset: usize, life: &str) -> Follower {
        let dir = self.run_dir().display().to_string();
        Follower::new(self.command(&["follow", &dir, &offset.to_string(), life, MOST]))
    }

    fn stop(&self, grace: &str) -> Output {
        let dir = self.run_dir().display().to_string();
        self.command(&["stop", &dir, grace]).stdin(Stdio::null()).output().unwrap()
    }

    fn file(&self, name: &str) -> String {
        fs_err::read_to_string(self.run_dir().join(name)).unwrap()
    }

    fn wait_for(&self, name: &str) {
        let path = self.run_dir().join(name);
        wait_until(&format!("{} to appear", path.display()), || path.exists());
    }
}

/// A follower whose standard input stays open until it is dropped or ended.
struct Follower {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Follower {
    fn new(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        Self { child, stdin }
    }

    /// Reads to the end: status, stdout, stderr.
    fn finish(mut self) -> (i32, Vec<u8>, String) {
        let (mut out, mut err) = (Vec::new(), String::new());
        self.child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code().unwrap(), out, err)
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < LONG, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
    status.lines().any(|l| l.starts_with("State:") && !l.contains('Z'))
}

/// Whether a process carries the marker in its environment.
fn carried(marker: &str) -> bool {
    let variable = format!("FULLSEND_RUN_MARKER={marker}");
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|v| v == variable.as_bytes())
    })
}

fn every_shell(test: impl Fn(&Place, &str) + Sync) {
    let places: Vec<_> = SHELLS.iter().filter_map(|s| Some((Place::with(s)?, *s))).collect();
    assert!(!places.is_empty(), "none of {SHELLS:?} is installed");
    std::thread::scope(|scope| {
        for (place, shell) in &places {
            scope.spawn(|| test(place, shell));
        }
    });
}

#[test]
fn a_word_to_the_follower_asks_the_agent_to_end_once() {
    for shell in SHELLS {
        let Some(place) = Place::with(shell) else { continue };
        place.agent("trap 'echo asked' TERM; echo ready; while :; do sleep 0.1; done");
        let mut follower = place.spawn("60", "1");
        place.wait_for("agent");
        wait_until("the agent to be ready", || place.file("stream.jsonl").contains("ready"));
        follower.stdin.as_mut().unwrap().write_all(b"other\nterm\nterm\n").unwrap();
        wait_until("the agent to hear", || place.file("stream.jsonl").contains("asked"));
        let stopped = place.stop("1");
        assert!(stopped.status.success(), "{shell}: {stopped:?}");
        let (status, out, err) = follower.finish();
        assert_eq!((status, &out[..]), (0, &b"ready\nasked\n"[..]), "{shell}: {err}");
        assert!(place.file("exit").starts_with("v1 stopped 137"), "{shell}: {}", place.file("exit"));
    }
}

#[test]
fn what_a_login_shell_reads_is_put_back_before_the_end_is_reported() {
    for shell in SHELLS {
        let Some(place) = Place::with(shell) else { continue };
        let at = |name: &str| place.dir.path().join(name);
        fs_err::write(at(".profile"), "# of the image\n").unwrap();
        place.agent(
            "echo 'echo noise' >> ~/.profile; echo 'exit 1' > ~/.bash_profile; mkdir ~/.bash_login; echo done",
        );
        let (status, out, err) = place.spawn("60", "1").finish();
        assert_eq!((status, &out[..]), (0, &b"done\n"[..]), "{shell}: {err}");
        assert_eq!(fs_err::read_to_string(at(".profile")).unwrap(), "# of the image\n", "{shell}");
        assert!(!at(".bash_profile").exists() && !at(".bash_login").exists(), "{shell}");
    }
}

#[test]
fn output_and_status_come_back_whole() {
    every_shell(|place, shell| {
        place.agent(
            "echo \"marker $FULLSEND_RUN_MARKER\"; echo noise >&2; cat; sleep 0.2; printf tail; exit 3",
        );
        let (status, out, err) = place.spawn("60", "5").finish();
        let expected = format!("marker {}\ntail", place.marker());
        assert_eq!((status, String::from_utf8(out).unwrap()), (0, expected.clone()), "{shell}: {err}");
        assert_eq!(err, format!("fullsend-supervise v1 exit 3 {}\n", expected.len()), "{shell}");
        assert_eq!(place.file("exit"), "v1 exit 3\n", "{shell}");
        assert_eq!(place.file("stderr.log"), "noise\n", "{shell}");
    });
}

#[test]
fn a_notice_comes_before_the_deadline() {
    every_shell(|place, shell| {
        place.agent("[ ! -e \"$FULLSEND_NOTICE_FILE\" ] || exit 1; while [ ! -e \"$FULLSEND_NOTICE_FILE\" ]; do sleep 0.1; done; cat \"$FULLSEND_NOTICE_FILE\"");
        let (status, out, err) = place.spawn("10", "5").finish();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(status, 0, "{shell}: {err}");
        assert!(out.starts_with("Time is running out: 2 seconds are left"), "{shell}: {out}");
        assert_eq!(place.file("exit"), "v1 exit 0\n", "{shell}");
    });
}

#[test]
fn nothing_is_left_of_a_short_run() {
    every_shell(|place, shell| {
        place.agent("setsid sleep 99 & exit 0");
        let (status, _, err) = place.spawn("60", "5").finish();
        assert_eq!(status, 0, "{shell}: {err}");
        assert!(!carried(&place.marker()), "{shell}");
    });
}

#[test]
fn any_bytes_at_any_offset() {
    every_shell(|place, shell| {
        let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(300_000).collect();
        fs_err::write(place.run_dir().join("data"), &bytes).unwrap();
        place.agent(&format!("cat '{}'", place.run_dir().join("data").display()));
        let (status, out, err) = place.spawn("60", "5").finish();
        assert_eq!((status, out.len()), (0, bytes.len()), "{shell}: {err}");
        assert!(out == bytes, "{shell}");
        for offset in [1, 65_536, 131_073, 299_999, 300_000] {
            let (status, out, err) = place.follow(offset, "600").finish();
            assert_eq!(status, 0, "{shell} {offset}: {err}");
            assert!(out == bytes[offset..], "{shell} {offset}");
        }
    });
}

#[test]
fn the_deadline_holds_against_an_agent_that_ignores_term() {
    every_shell(|place, shell| {
        place.agent("trap '' TERM; echo on; while :; do sleep 0.1; done");
        let (status, out, err) = place.spawn("1", "1").finish();
        assert_eq!((status, out.as_slice()), (0, &b"on\n"[..]), "{shell}: {err}");
        assert_eq!(place.file("exit"), "v1 deadline 1\n", "{shell}");
    });
}

#[test]
fn a_signal_is_told_from_a_status() {
    every_shell(|place, shell| {
        place.agent("kill -9 $$");
        let (status, _, err) = place.spawn("60", "5").finish();
        assert_eq!(status, 0, "{shell}: {err}");
        assert_eq!(place.file("exit"), "v1 signal 9\n", "{shell}");
    });
}

#[test]
fn a_stream_that_shrinks_or_is_replaced_is_tampering() {
    every_shell(|place, shell| {
        let stream = place.run_dir().join("stream.jsonl");
        place.agent("echo one; echo two; sleep 60");
        let mut follower = place.spawn("60", "5");
        let mut first = [0; 8];
        follower.child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        fs_err::OpenOptions::new().write(true).open(&stream).unwrap().set_len(3).unwrap();
        let (status, _, err) = follower.finish();
        assert_eq!(status, 65, "{shell}: {err}");
        let follower = place.follow(0, "600");
        fs_err::write(place.run_dir().join("new"), "one\ntwo\nthree\n").unwrap();
        fs_err::rename(place.run_dir().join("new"), &stream).unwrap();
        let (status, _, err) = follower.finish();
        assert_eq!(status, 65, "{shell}: {err}");
        assert_eq!(place.follow(999, "600").finish().0, 65, "{shell}");
        place.stop("1");
    });
}

#[test]
fn a_lost_supervisor_is_no_end() {
    every_shell(|place, shell| {
        place.agent("echo on; sleep 60");
        let follower = place.spawn("60", "5");
        place.wait_for("agent");
        let kill = Command::new("sh")
            .args(["-c", "kill -KILL \"$0\"", place.file("watch").trim()])
            .status()
            .unwrap();
        assert!(kill.success());
        let (status, out, err) = follower.finish();
        assert_eq!((status, out.as_slice()), (66, &b"on\n"[..]), "{shell}: {err}");
        assert!(!place.run_dir().join("exit").exists(), "{shell}");
        let agent = place.file("agent");
        place.stop("1");
        wait_until("the agent to end", || !lives(agent.split(' ').nth(1).unwrap()));
    });
}

#[test]
fn a_follower_ends_with_its_connection_and_the_agent_goes_on() {
    every_shell(|place, shell| {
        place.agent("echo on; while [ ! -e \"$0.go\" ]; do sleep 0.05; done; echo off");
        let mut follower = place.spawn("60", "5");
        let mut first = [0; 3];
        follower.child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        drop(follower.stdin.take());
        let (status, _, err) = follower.finish();
        assert_eq!(status, 74, "{shell}: {err}");
        let again = place.follow(3, "600");
        fs_err::write(place.run_dir().join("command.go"), "").unwrap();
        let (status, out, err) = again.finish();
        assert_eq!((status, out.as_slice()), (0, &b"off\n"[..]), "{shell}: {err}");
    });
}

#[test]
fn a_follower_has_a_bounded_life() {
    every_shell(|place, shell| {
        place.agent("sleep 60");
        let follower = place.spawn("60", "5");
        place.wait_for("agent");
        let (status, out, err) = place.follow(0, "1").finish();
        assert_eq!((status, out.len()), (75, 0), "{shell}: {err}");
        place.stop("1");
        let (status, _, err) = follower.finish();
        assert_eq!(status, 0, "{shell}: {err}");
        assert_eq!(place.file("exit"), "v1 stopped 143\n", "{shell}");
    });
}

#[test]
fn a_second_start_finds_the_first() {
    every_shell(|place, shell| {
        place.agent("echo once; sleep 0.5");
        let first = place.spawn("60", "5");
        let second = place.spawn("60", "5");
        for follower in [first, second] {
            let (status, out, err) = follower.finish();
            assert_eq!((status, out.as_slice()), (0, &b"once\n"[..]), "{shell}: {err}");
        }
    });
}

#[test]
fn stop_ends_the_group_and_what_left_it() {
    every_shell(|place, shell| {
        place.agent(
            "cd \"${0%/*}\"; sleep 61 & echo $! >child; setsid sleep 62 & echo $! >left; echo $$ >main; trap '' TERM; \
             touch up; while :; do sleep 0.1; done",
        );
        let follower = place.spawn("60", "5");
        place.wait_for("up");
        let mut stranger =
            Command::new("sleep").arg("63").env("FULLSEND_RUN_MARKER", "another").spawn().unwrap();
        let mut main =
            Command::new("sleep").arg("infinity").env("FULLSEND_RUN_MARKER", place.marker()).spawn().unwrap();
        let stopped = place.stop("1");
        assert_eq!(String::from_utf8_lossy(&stopped.stdout), "v1 stopped 137\n", "{shell}");
        for name in ["child", "left", "main"] {
            wait_until(name, || !lives(&place.file(name)));
        }
        for kept in [&mut stranger, &mut main] {
            assert!(kept.try_wait().unwrap().is_none(), "{shell}");
            kept.kill().unwrap();
            kept.wait().unwrap();
        }
        assert_eq!(follower.finish().0, 0, "{shell}");
        assert!(place.stop("1").status.success(), "{shell}: a second stop is fine");
    });
}

#[test]
fn what_the_agent_leaves_in_its_group_ends_before_the_exit_file() {
    every_shell(|place, shell| {
        place.agent("(trap '' HUP; while :; do echo more; sleep 0.01; done) & sleep 0.1; exit 0");
        let (status, out, err) = place.spawn("60", "5").finish();
        assert_eq!(status, 0, "{shell}: {err}");
        let size = fs_err::metadata(place.run_dir().join("stream.jsonl")).unwrap().len();
        assert_eq!(size, out.len() as u64, "{shell}");
    });
}

#[test]
fn without_setsid_the_deadline_still_ends_the_agent() {
    for (shell, more, mode) in [("dash", &["bash"][..], "group"), ("dash", &[], "single")] {
        let Some(place) = Place::without_setsid(shell, more) else { continue };
        place.agent("echo on; exec sleep 60");
        let (status, out, err) = place.spawn("1", "1").finish();
        assert_eq!((status, out.as_slice()), (0, &b"on\n"[..]), "{mode}: {err}");
        assert_eq!(place.file("exit"), "v1 deadline 1\n", "{mode}");
        assert!(place.file("agent").starts_with(mode), "{}", place.file("agent"));
    }
}

#[test]
fn a_start_that_cannot_work_says_so() {
    every_shell(|place, shell| {
        let (status, _, err) = place.spawn("60", "5").finish();
        assert_eq!(status, 67, "{shell}");
        assert!(err.contains("command"), "{shell}: {err}");
        let mut odd =
            place.command(&["run", "x", "1; touch /tmp/x", "m", "1", "1", "0", "1", "1"]).spawn().unwrap();
        odd.stdin.take().unwrap().flush().unwrap();
        assert_eq!(odd.wait().unwrap().code(), Some(67), "{shell}");
        assert!(!Path::new("/tmp/x").exists());
    });
}

/// An agent that writes 200 KB and goes on to its deadline: its end is asked for, and found.
#[test]
fn of_an_agent_that_was_ended_only_a_rest_is_given() {
    every_shell(|place, shell| {
        place.agent(
            "i=0; while [ $i -lt 2000 ]; do printf '%099d\\n' $i; i=$((i+1)); done; echo end; sleep 600",
        );
        let starter = place.spawn_limited("2", "1", MOST, MOST);
        place.wait_for("exit");
        starter.finish();
        let dir = place.run_dir().display().to_string();
        let (status, out, err) = Follower::new(place.command(&["follow", &dir, "0", "600", "1000"])).finish();
        assert_eq!((status, out.len()), (76, 0), "{shell}: {err}");
        assert!(err.contains("v1 deadline 2 200004\n"), "{shell}: {err}");
        let (status, out, err) =
            Follower::new(place.command(&["follow", &dir, "199004", "600", "1000"])).finish();
        assert_eq!((status, out.len()), (0, 1000), "{shell}: {err}");
        assert!(out.ends_with(b"1999\nend\n"), "{shell}");
    });
}

#[test]
fn of_an_agent_that_ended_by_itself_everything_is_given() {
    every_shell(|place, shell| {
        place.agent("head -c 9000000 /dev/zero");
        let (status, out, err) = place.spawn_limited("60", "1", MOST, "1000").finish();
        assert_eq!((status, out.len()), (0, 9_000_000), "{shell}: {err}");
    });
}

#[test]
fn an_agent_that_writes_too_much_is_ended() {
    every_shell(|place, shell| {
        place.agent("head -c 3000000 /dev/zero; head -c 1200000 /dev/zero >&2; echo end >&2; sleep 600");
        let (status, _, err) = place.spawn_limited("300", "5", "4000000", "100").finish();
        // The follower may have given everything by then.
        assert!([0, 76].contains(&status) && err.contains("v1 flood 4 3000000\n"), "{shell}: {status} {err}");
        assert_eq!(place.file("exit"), "v1 flood 4\n", "{shell}");
        let said = fs_err::read(place.run_dir().join("stderr.log")).unwrap();
        assert!(said.starts_with(b"[") && said.ends_with(b"end\n") && said.len() < 70_000, "{shell}");
    });
}
