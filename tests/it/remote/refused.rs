//! What is not read: URLs that are not allowed, servers that do not behave, places that are not public.

use std::time::{Duration, Instant};

use super::{AGENT, Answer, Remote, fails, fine, sha};

#[test]
fn a_server_that_does_not_behave_is_refused_in_bounded_time() {
    let mut remote = Remote::new();
    let target = remote.server.url("/o/agents/work");
    for (answer, parts) in [
        (
            Answer::Redirect("https://elsewhere.example/x".into()),
            ["redirects to https://elsewhere.example/x", "302"],
        ),
        (Answer::Status(404), ["HTTP 404", "check the URL"]),
        (Answer::Status(503), ["HTTP 503", "later"]),
        (Answer::Big(10 * 1024 * 1024 + 1), ["larger than 10485760 bytes", "check the URL"]),
        (Answer::Truncated, ["/o/agents/work", "try again"]),
        (Answer::Drip, ["no complete answer within", "5.0s"]),
    ] {
        let what = format!("{answer:?}");
        if what == "Drip" {
            remote.world.env("FULLSEND_TEST_DEADLINE_SCALE", "0.01");
        }
        remote.server.put("/o/agents/work", answer);
        remote.harness(&format!("agent: {target}#sha256={}\nruntime: script\n", sha(AGENT)));
        let started = Instant::now();
        let done = remote.plan(&[]);
        fails(&done, 3, "FS-REMOTE-FETCH", &[&target, parts[0], parts[1]]);
        assert!(started.elapsed() < Duration::from_mins(1), "{what} took {:?}", started.elapsed());
    }
}

#[test]
fn a_server_that_recovers_is_asked_again() {
    let remote = Remote::new();
    remote.server.put("/o/agents/work", Answer::Flaky(2, AGENT.into()));
    let target = remote.server.url("/o/agents/work");
    remote.harness(&format!("agent: {target}#sha256={}\nruntime: script\n", sha(AGENT)));
    fine(remote.plan(&[]));
    assert_eq!(remote.server.requests().len(), 3);
}

#[test]
fn a_certificate_of_a_stranger_is_refused() {
    let mut remote = Remote::new();
    let pinned = remote.pinned("/o/agents/work", AGENT);
    remote.harness(&format!("agent: {pinned}\nruntime: script\n"));
    let stranger = super::Server::start();
    let path = remote.world.write("stranger.pem", &stranger.authority);
    remote.world.env("SSL_CERT_FILE", path.to_str().unwrap());
    fails(&remote.plan(&[]), 3, "FS-REMOTE-FETCH", &["no secure connection", "SSL_CERT_FILE"]);
    remote.world.env("SSL_CERT_FILE", "/nonexistent.pem");
    fails(&remote.plan(&[]), 3, "FS-REMOTE-FETCH", &["certificate authorities", "ca-certificates"]);
    assert_eq!(remote.server.requests(), [""; 0]);
}

#[test]
fn both_lists_must_allow_a_url() {
    let remote = Remote::new();
    let pinned = remote.pinned("/o/agents/work", AGENT);
    let base = remote.pinned("/o/harness/base.yaml", "runtime: script\n");
    let (all, harness) = (remote.server.url("/"), "runtime: script\n");
    // Nothing in the harness.
    remote.world.harness(&format!("agent: {pinned}\n{harness}"));
    fails(
        &remote.plan(&[]),
        2,
        "FS-REMOTE-DENIED",
        &["which the harness does not allow", "allowed_remote_resources"],
    );
    // Another place in the harness.
    let other = remote.server.url("/other/");
    remote.world.harness(&format!("agent: {pinned}\n{harness}allowed_remote_resources: ['{other}']\n"));
    fails(&remote.plan(&[]), 2, "FS-REMOTE-DENIED", &["which the harness does not allow"]);
    // A base needs only the list of config.yaml, which a harness cannot widen.
    remote.world.harness(&format!("base: {base}\nagent: agents/work\n"));
    fine(remote.plan(&[]));
    remote.world.write(
        "h/config.yaml",
        format!("allowed_remote_resources: ['{other}']\nprivate_hosts: [localhost]\n"),
    );
    fails(&remote.plan(&[]), 2, "FS-REMOTE-DENIED", &["which config.yaml does not allow"]);
    remote.world.harness(&format!("agent: {pinned}\n{harness}allowed_remote_resources: ['{all}']\n"));
    fails(&remote.plan(&[]), 2, "FS-REMOTE-DENIED", &["is not allowed by config.yaml"]);
    remote.world.write("h/config.yaml", "allowed_remote_resources: []\n");
    fails(&remote.plan(&[]), 2, "FS-REMOTE-DENIED", &["config.yaml"]);
    assert_eq!(remote.server.requests(), ["/o/harness/base.yaml"], "what is not allowed is not asked for");
}

#[test]
fn addresses_that_are_not_public_are_not_reached() {
    let remote = Remote::new();
    let port = remote.server.port;
    let pin = sha(AGENT);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "0.0.0.0",
        // A name with a private address, where nothing says that it may have one.
        "localhost",
    ] {
        let place = format!("https://{host}:{port}/");
        let hosts = if host == "localhost" { "[]" } else { "[localhost]" };
        remote.world.write(
            "h/config.yaml",
            format!("allowed_remote_resources: ['{place}']\nprivate_hosts: {hosts}\n"),
        );
        remote.world.harness(&format!(
            "agent: '{place}x#sha256={pin}'\nruntime: script\nallowed_remote_resources: ['{place}']\n"
        ));
        fails(&remote.plan(&[]), 2, "FS-REMOTE-DENIED", &[host]);
        // The same for a directory, which git would fetch.
        remote.world.harness(&format!(
            "agent: agents/work\nruntime: script\nskills: ['{place}o/r/tree/c/s#sha256={pin}']\n\
             allowed_remote_resources: ['{place}']\n"
        ));
        fails(&remote.plan(&[]), 2, "FS-REMOTE-DENIED", &[host]);
    }
    assert_eq!(remote.server.requests(), [""; 0]);
}

#[test]
fn odd_urls_are_explained_where_they_stand() {
    let mut remote = Remote::new();
    remote.world.env("PLACE", remote.server.url("/x"));
    let place = remote.server.url("");
    let bare = place.trim_start_matches("https://").to_owned();
    for (line, code, part) in [
        (format!("agent: http://{bare}/x"), "FS-REMOTE-URL", "not https"),
        (format!("agent: https://me:pw@{bare}/x"), "FS-REMOTE-URL", "user name"),
        (format!("agent: {place}/x#sha256=12"), "FS-REMOTE-URL", "digest"),
        (format!("agent: {place}/a/../x"), "FS-REMOTE-URL", "`..`"),
        (format!("agent: {place}/dir/"), "FS-REMOTE-URL", "no file"),
        (format!("agent: agents/work\nskills: ['{place}/g/p/blob/c/x']"), "FS-REMOTE-URL", "no directory"),
        (
            "agent: agents/work\nhost_files: [{src: '${PLACE}', dest: /tmp/x}]".into(),
            "FS-REMOTE-URL",
            "variable",
        ),
        (format!("agent: {place}/x"), "FS-REMOTE-UNPINNED", "fullsend lock work"),
    ] {
        remote.harness(&format!("{line}\nruntime: script\n"));
        fails(&remote.plan(&[]), 2, code, &[part, "work.yaml:"]);
    }
    assert_eq!(remote.server.requests(), [""; 0]);
}

#[test]
fn chains_of_urls_end() {
    let remote = Remote::new();
    let server = &remote.server;
    server.text("/o/harness/a.yaml", "base: b.yaml\nagent: agents/work\n");
    server.text("/o/harness/b.yaml", "base: a.yaml\n");
    remote.harness(&format!("base: {}\nruntime: script\n", server.url("/o/harness/a.yaml")));
    fails(
        &remote.call("lock", &["work"]),
        2,
        "goes round in a circle",
        &["/o/harness/a.yaml", "/o/harness/b.yaml", "remove one"],
    );
    assert!(!remote.world.path("h/lock.yaml").exists(), "nothing is locked by halves");
    for n in 1..=6 {
        server.text(&format!("/o/harness/{n}.yaml"), &format!("base: {}.yaml\n", n + 1));
    }
    remote.harness(&format!("base: {}\nruntime: script\n", server.url("/o/harness/1.yaml")));
    fails(&remote.call("lock", &["work"]), 2, "longer than 5", &["5.yaml"]);
    assert!(!server.requests().contains(&"/o/harness/6.yaml".to_owned()));
}

#[test]
fn a_lock_that_cannot_be_read_stops_the_run() {
    let remote = Remote::new();
    remote.harness("agent: agents/work\nruntime: script\n");
    for text in ["version: 7\n", "version: 1\nharnesses: {work: {dependencies: [{url: x}]}}\n", "a: [\n"] {
        remote.world.write("h/lock.yaml", text);
        fails(&remote.plan(&[]), 2, "FS-LOCK", &["lock.yaml"]);
    }
}

#[test]
fn a_directory_with_links_is_refused() {
    let remote = Remote::new();
    remote.repository();
    let work = remote.world.path("skills-repo");
    std::os::unix::fs::symlink("/etc/passwd", work.join("skills/one/link")).unwrap();
    let git = |args: &[&str]| super::git(&remote.world, &work, args);
    git(&["add", "-A"]);
    git(&["-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "-m", "link"]);
    git(&["push", "-q", remote.world.path("bare/g/p.git").to_str().unwrap(), "main"]);
    let skill = remote.server.url("/g/p/tree/main/skills/one");
    remote.harness(&format!("agent: agents/work\nruntime: script\nskills: ['{skill}']\n"));
    fails(&remote.call("lock", &["work"]), 3, "FS-REMOTE-FETCH", &["symbolic link", &skill]);
    let missing = remote.server.url("/g/p/tree/main/skills/none");
    remote.harness(&format!("agent: agents/work\nruntime: script\nskills: ['{missing}']\n"));
    fails(&remote.call("lock", &["work"]), 3, "FS-REMOTE-FETCH", &["has no directory `skills/none`"]);
    let nowhere = remote.server.url("/g/p/tree/nowhere/skills/one");
    remote.harness(&format!("agent: agents/work\nruntime: script\nskills: ['{nowhere}']\n"));
    fails(&remote.call("lock", &["work"]), 3, "FS-REMOTE-FETCH", &["git: "]);
}
