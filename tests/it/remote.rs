//! What a harness takes from URLs, through the real binary and a real TLS server on the loopback interface.

mod refused;
mod server;

use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::support::{Done, World};
use server::{Answer, Server};

/// A world whose harness directory may read from a server.
struct Remote {
    world: World,
    server: Server,
}

fn sha(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

const AGENT: &str = "#!/bin/bash\nset -eu\necho remote > made\n";

impl Remote {
    fn new() -> Self {
        let (mut world, server) = (World::new(), Server::start());
        let authority = world.write("authority.pem", &server.authority);
        world.env("SSL_CERT_FILE", authority.to_str().unwrap());
        let remote = Self { world, server };
        remote.config("");
        remote
    }

    /// Writes `config.yaml`, which allows everything of the server, and more lines.
    fn config(&self, more: &str) {
        let text = format!(
            "allowed_remote_resources: ['{}']\nprivate_hosts: [localhost]\n{more}",
            self.server.url("/")
        );
        self.world.write("h/config.yaml", text);
    }

    /// A harness that may name URLs of the server.
    fn harness(&self, text: &str) {
        self.world.harness(&format!("allowed_remote_resources: ['{}']\n{text}", self.server.url("/")));
    }

    /// Puts a text on the server and returns its URL with the digest.
    fn pinned(&self, path: &str, text: &str) -> String {
        self.server.text(path, text);
        format!("{}#sha256={}", self.server.url(path), sha(text))
    }

    fn call(&self, command: &str, more: &[&str]) -> Done {
        let dir = self.world.path("h");
        let args = [&[command], more, &["--fullsend-dir", dir.to_str().unwrap()]].concat();
        self.world.fullsend(&args)
    }

    /// The plan as JSON; the run directory and everything else is the same for each.
    fn plan(&self, more: &[&str]) -> Done {
        self.call("run", &[&["work", "--dry-run", "--format", "json", "--local"], more].concat())
    }

    /// A bare repository `g/p` with a skill; returns its commit.
    fn repository(&self) -> String {
        let work = self.world.path("skills-repo");
        self.world.write("skills-repo/skills/one/SKILL.md", "---\nname: one\n---\n");
        self.world.write("skills-repo/skills/one/scripts/run.sh", "#!/bin/sh\n");
        self.world.write("skills-repo/other/large", vec![b'x'; 1000]);
        let git = |args: &[&str]| git(&self.world, &work, args);
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "-A"]);
        git(&["-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "-m", "skills"]);
        let bare = self.world.path("bare/g/p.git");
        git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
        for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            git(&["-C", bare.to_str().unwrap(), "config", key, "true"]);
        }
        self.server.git(self.world.path("bare"));
        git(&["rev-parse", "HEAD"]).trim().to_owned()
    }
}

fn git(world: &World, dir: &Path, args: &[&str]) -> String {
    let out = world.command("git", args, dir).output().unwrap();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[track_caller]
fn fails(done: &Done, exit: i32, code: &str, parts: &[&str]) {
    assert_eq!(done.code, exit, "{}\n{}", done.stdout, done.stderr);
    assert!(done.stderr.contains(code), "no {code}:\n{}", done.stderr);
    for part in parts {
        assert!(done.stderr.contains(part), "no {part:?}:\n{}", done.stderr);
    }
    assert!(done.stderr.contains("help: "), "{}", done.stderr);
}

#[track_caller]
fn fine(done: Done) -> Done {
    assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
    done
}

#[test]
fn a_base_with_all_that_it_names_runs_from_its_lock() {
    let remote = Remote::new();
    let (world, server) = (&remote.world, &remote.server);
    let commit = remote.repository();
    let home = format!("/g/p/-/raw/{commit}");
    server.text(&format!("{home}/agents/work"), AGENT);
    server.text(&format!("{home}/policies/p.yaml"), "version: 1\n");
    server.text(&format!("{home}/harness/common.yaml"), "policy: policies/p.yaml\ntimeout_minutes: 3\n");
    let base = "base: common.yaml\nagent: agents/work\nruntime: script\nskills: [skills/one]\n";
    let base = remote.pinned(&format!("{home}/harness/base.yaml"), base);
    // What a pinned base names is not pinned by that: only the lock says what it must be.
    world.harness(&format!("base: {base}\n"));
    fails(&remote.plan(&[]), 2, "FS-REMOTE-UNPINNED", &["/harness/common.yaml", "fullsend lock work"]);

    let done = fine(remote.call("lock", &["work"]));
    assert!(done.stdout.contains("5 URLs"), "{}", done.stdout);
    let lock = std::fs::read_to_string(world.path("h/lock.yaml")).unwrap();
    for part in ["agents/work", "policies/p.yaml", "skills/one", "common.yaml", "directory", "SKILL.md"] {
        assert!(lock.contains(part), "{part}: {lock}");
    }
    let again = fine(remote.call("lock", &["work"]));
    assert!(again.stdout.contains("is up to date"), "{}", again.stdout);

    let run = world.run(&[]).success();
    assert_eq!(
        run.json["result"]["verdict"].as_str().or(run.json["verdict"].as_str()),
        Some("success"),
        "{}",
        run.json
    );
    assert_eq!(std::fs::read_to_string(world.path("repo/made")).unwrap(), "remote\n");
    let show = fine(remote.call("show", &["work"])).stdout;
    assert!(show.contains(&format!("{}:1", server.url(&format!("{home}/harness/common.yaml")))), "{show}");
    world.assert_clean();
}

#[test]
fn a_script_of_a_base_finds_the_files_beside_it() {
    let remote = Remote::new();
    remote.world.write("skills-repo/scripts/pre.sh", "#!/bin/sh\n. \"$(dirname \"$0\")/lib.sh\"\n");
    remote.world.write("skills-repo/scripts/lib.sh", "echo from the library\n");
    let commit = remote.repository();
    let base =
        remote.pinned(&format!("/g/p/-/raw/{commit}/harness/base.yaml"), "pre_script: scripts/pre.sh\n");
    remote.world.harness(&format!("base: {base}\nagent: agents/work\nruntime: script\n"));
    fails(&remote.plan(&[]), 2, "FS-REMOTE-UNPINNED", &["/scripts, ", "base.yaml:1:13"]);
    fine(remote.call("lock", &["work"]));
    let run = remote.world.run(&[]).success();
    let said = format!("{}{}", run.done.stdout, run.done.stderr);
    assert!(said.contains("from the library"), "{said}");
}

#[test]
fn one_changed_byte_behind_a_url_stops_the_run() {
    let remote = Remote::new();
    let pinned = remote.pinned("/o/agents/work", AGENT);
    remote.harness(&format!("agent: {pinned}\nruntime: script\n"));
    fine(remote.plan(&[]));
    let changed = AGENT.replace("remote", "Remote");
    remote.server.text("/o/agents/work", &changed);
    // What was fetched before is what was pinned.
    fine(remote.plan(&[]));
    let other = remote.world.path("other-cache");
    let args = ["--cache-dir", other.to_str().unwrap()];
    let run = remote.world.run(&args).failure("FS-REMOTE-HASH", 4);
    let url = remote.server.url("/o/agents/work");
    for part in [&url, &sha(AGENT), &sha(&changed), "work.yaml:2"] {
        assert!(run.done.stderr.contains(part), "{part}:\n{}", run.done.stderr);
    }
    assert!(run.dir.is_none(), "nothing was started");
    // The same by a lock, and an update takes the change.
    remote.server.text("/o/agents/work", AGENT);
    remote.harness(&format!("agent: {url}\nruntime: script\n"));
    fine(remote.call("lock", &["work"]));
    remote.server.text("/o/agents/work", &changed);
    let args = ["--cache-dir", other.to_str().unwrap()];
    std::fs::remove_dir_all(&other).unwrap();
    fails(&remote.plan(&args), 4, "FS-REMOTE-HASH", &[&url, &sha(AGENT), &sha(&changed), "--update"]);
    fine(remote.call("lock", &["work", "--update"]));
    fine(remote.plan(&args));
}

#[test]
fn offline_with_a_warm_cache_the_plan_is_the_same_byte_for_byte() {
    let remote = Remote::new();
    let commit = remote.repository();
    let agent = remote.pinned("/o/agents/work", AGENT);
    let policy = remote.pinned("/o/p.yaml", "version: 1\n");
    let skill = remote.server.url(&format!("/g/p/tree/{commit}/skills/one"));
    remote.harness(&format!("agent: {agent}\nruntime: script\npolicy: {policy}\nskills: ['{skill}']\n"));
    fails(&remote.plan(&["--offline"]), 2, "FS-REMOTE-UNPINNED", &[&skill]);
    fine(remote.call("lock", &["--all"]));
    let online = fine(remote.plan(&[]));
    remote.server.requests();
    let offline = fine(remote.plan(&["--offline"]));
    assert_eq!(online.stdout, offline.stdout);
    fine(remote.call("validate", &["--offline"]));
    fine(remote.call("show", &["work", "--offline"]));
    fine(remote.call("lock", &["work", "--offline"]));
    assert_eq!(remote.server.requests(), [""; 0], "something was asked for");
    let cold = remote.world.path("cold");
    let args = ["--offline", "--cache-dir", cold.to_str().unwrap()];
    fails(&remote.plan(&args), 2, "FS-REMOTE-OFFLINE", &["/o/agents/work", "/o/p.yaml", "skills/one"]);
    assert_eq!(remote.server.requests(), [""; 0]);
}

/// Files of the default cache.
fn cached(world: &World, kind: &str) -> Vec<std::path::PathBuf> {
    let files = crate::support::files_below(&world.path("home/.cache/fullsend").join(kind));
    files.into_iter().map(|(path, _)| path).collect()
}

#[test]
fn a_damaged_cache_is_noticed_and_mended() {
    let remote = Remote::new();
    let commit = remote.repository();
    let agent = remote.pinned("/o/agents/work", AGENT);
    let skill = remote.server.url(&format!("/g/p/tree/{commit}/skills/one"));
    remote.harness(&format!("agent: {agent}\nruntime: script\nskills: ['{skill}']\n"));
    fine(remote.call("lock", &["work"]));
    for kind in ["files", "trees"] {
        let file = cached(&remote.world, kind).pop().unwrap();
        std::fs::write(&file, "#!/bin/bash\necho evil\n").unwrap();
        fails(&remote.plan(&["--offline"]), 4, "FS-REMOTE-HASH", &["in the cache"]);
        fine(remote.plan(&[]));
        assert!(!std::fs::read_to_string(&file).unwrap().contains("evil"));
        fine(remote.plan(&["--offline"]));
    }
}

#[test]
fn runs_at_the_same_time_share_a_cold_cache() {
    let remote = Remote::new();
    let commit = remote.repository();
    let agent = remote.pinned("/o/agents/work", AGENT);
    let skill = remote.server.url(&format!("/g/p/tree/{commit}/skills/one"));
    remote.harness(&format!("agent: {agent}\nruntime: script\nskills: ['{skill}']\n"));
    let lock_cache = remote.world.path("lock-cache");
    fine(remote.call("lock", &["work", "--cache-dir", lock_cache.to_str().unwrap()]));
    let plans: Vec<Done> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| remote.plan(&[]))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let plans: Vec<_> = plans.into_iter().map(fine).collect();
    assert!(plans.iter().all(|plan| plan.stdout == plans[0].stdout));
    assert_eq!(cached(&remote.world, "tmp"), Vec::<std::path::PathBuf>::new(), "something half is left");
}

#[test]
fn an_agent_of_the_registry_may_be_elsewhere() {
    let remote = Remote::new();
    remote.server.text("/o/agents/far", AGENT);
    let text = "agent: agents/far\nruntime: script\ndescription: far away\n";
    let source = remote.pinned("/o/harness/far.yaml", text);
    remote
        .config(&format!("agents:\n  - '{source}'\n  - {{name: off, source: '{source}', enabled: false}}\n"));
    let list = fine(remote.call("list", &[])).stdout;
    assert!(list.lines().any(|line| line.trim() == "far"), "{list}");
    fails(&remote.call("run", &["far", "--dry-run", "--local"]), 2, "FS-REMOTE-UNPINNED", &["/o/agents/far"]);
    let done = fine(remote.call("lock", &["--all"]));
    assert!(done.stdout.contains("far   2 URLs") || done.stdout.contains("far"), "{}", done.stdout);
    fine(remote.call("run", &["far", "--dry-run", "--local", "--offline"]));
    // An agent that is gone leaves the lock with `--all`.
    remote.config("");
    fine(remote.call("lock", &["--all"]));
    let lock = std::fs::read_to_string(remote.world.path("h/lock.yaml")).unwrap();
    assert!(!lock.contains("far"), "{lock}");
}

#[test]
fn every_kind_of_file_may_be_elsewhere() {
    let remote = Remote::new();
    let pin = |path: &str, text: &str| remote.pinned(path, text);
    let text = format!(
        "agent: {}\nruntime: script\npolicy: {}\npre_script: {}\npost_script: {}\nproviders: ['{}']\nopenshell:\n  \
         profiles: ['{}']\nvalidation_loop: {{script: '{}', schema: '{}'}}\nhost_files:\n  - {{src: '{}', dest: \
         /sandbox/workspace/x}}\n",
        pin("/o/agents/work", AGENT),
        pin("/o/policies/p.yaml", "version: 1\n"),
        pin("/o/scripts/pre.sh", "#!/bin/sh\nexit 0\n"),
        pin("/o/scripts/post.sh", "#!/bin/sh\nexit 0\n#\n"),
        pin("/o/providers/p.yaml", "name: p\ntype: t\ncredentials: {KEY: literal}\n"),
        pin("/o/profiles/t.yaml", "id: t\nendpoints: []\n"),
        pin("/o/scripts/check.sh", "#!/bin/sh\nexit 0\n##\n"),
        pin("/o/schemas/s.json", "{\"type\": \"object\"}\n"),
        pin("/o/env/x", "content\n"),
    );
    remote.harness(&text);
    let plan: serde_json::Value = serde_json::from_str(&fine(remote.plan(&[])).stdout).unwrap();
    let harness = &plan["plan"]["harness"];
    for key in ["agent", "policy", "pre_script", "post_script"] {
        let path = harness[key].as_str().unwrap();
        assert!(path.contains("/.cache/fullsend/files/"), "{key}: {path}");
    }
    assert_eq!(harness["agent_name"], "work");
    assert_eq!(harness["providers"][0]["defined"]["type"], "t");
    assert_eq!(harness["profiles"][0]["id"], "t");
    assert!(harness["validation"]["schema"].as_str().unwrap().ends_with("/s.json"));
    assert!(harness["host_files"][0]["src"].as_str().unwrap().ends_with("/x"));
}
