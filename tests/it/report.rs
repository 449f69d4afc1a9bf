//! The page about a run, in a real browser; and two runs compared.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::stub::not_run;
use crate::support::World;

/// The browser, or nothing after saying so where the log of the tests shows it.
fn chromium(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("FULLSEND_TEST_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        named.or_else(|| std::env::split_paths(&path).map(|dir| dir.join("chromium")).find(|p| p.is_file()));
    let found = found.filter(|path| !path.as_os_str().is_empty());
    if found.is_none() {
        not_run(test, "there is no chromium on PATH; FULLSEND_TEST_CHROMIUM names one");
    }
    found
}

/// A loopback server that nobody is to call.
struct Bait {
    url: String,
    calls: Arc<AtomicUsize>,
}

impl Bait {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 1024]);
            }
        });
        Self { url, calls }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// What a browser made of a page.
struct Seen {
    dom: String,
    console: Vec<String>,
}

/// Opens a file, lets its scripts run, and ends the browser.
fn open(chromium: &Path, page: &Path, world: &World) -> Seen {
    let profile = tempfile::tempdir_in(world.path("tmp")).unwrap();
    let mut child = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--virtual-time-budget=3000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", world.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let read = |mut pipe: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let end = Instant::now() + Duration::from_mins(3);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("the browser does not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let console =
        stderr.join().unwrap().lines().filter(|l| l.contains("CONSOLE")).map(str::to_owned).collect();
    Seen { dom: stdout.join().unwrap(), console }
}

/// A page of a run, in a file of its own.
fn page_of(world: &World, dir: &Path) -> PathBuf {
    let file = world.path("page.html");
    let done = world.fullsend(&["report", dir.to_str().unwrap(), "-o", file.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    file
}

/// An agent that writes markup, scripts and addresses wherever a page could show them.
fn hostile(url: &str) -> String {
    let evil = format!(
        "</script></style></title><script>document.title='owned';fetch('{url}/s')</script>\
         <img src='{url}/i' onerror=alert(1)><svg onload=\\\"document.title='owned'\\\"><a href='javascript:alert(1)'>\
         <iframe src='{url}/f'></iframe><link rel=stylesheet href='{url}/c'><meta http-equiv=refresh content='0;url={url}/m'>\
         <base href='{url}/'><img src='data:image/svg+xml,<svg onload=alert(1)>'>"
    );
    format!(
        r#"
cat > stream <<'EOF'
{{"type":"system","subtype":"init","model":"{evil}","session_id":"s"}}
{{"type":"assistant","message":{{"id":"m1","role":"assistant","content":[{{"type":"text","text":"{evil} right\u202eleft"}},{{"type":"tool_use","id":"t1","name":"Bash{evil}","input":{{"command":"{evil}"}}}}],"usage":{{"input_tokens":10,"output_tokens":20}}}}}}
{{"type":"assistant","message":{{"id":"m2","role":"assistant","content":[{{"type":"text","text":"needle in the log"}}],"usage":{{"input_tokens":10,"output_tokens":20}}}}}}
{{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":2,"total_cost_usd":0.25,"usage":{{"input_tokens":20,"output_tokens":40}}}}
EOF
cat stream; sed 's/\\"/"/g' stream >&2
sed 's/\\"/"/g' stream > page.html; printf 'a\xe2\x80\xaeb\n' > bidi.txt
touch -- "<img src=x onerror=alert(1)>.txt"
rm stream
"#
    )
}

#[test]
fn the_page_is_complete_and_nothing_on_it_does_anything() {
    let Some(chromium) = chromium("report::the_page_is_complete_and_nothing_on_it_does_anything") else {
        return;
    };
    let bait = Bait::start();
    let world = World::new();
    // That a request and an error would be seen.
    let control = format!("<img src='{}/x'><script>console.error('control')</script>", bait.url);
    let control = open(&chromium, &world.write("control.html", control), &world);
    assert!(
        bait.calls() > 0 && control.console.iter().any(|l| l.contains("control")),
        "{:?}",
        control.console
    );
    let before = bait.calls();

    world.agent(&hostile(&bait.url));
    let run = world.run(&[]).success();
    let dir = run.dir.as_ref().unwrap();
    let file = page_of(&world, dir);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.matches("<script").count() == 1 && page.matches("<style").count() == 1);
    let seen = open(&chromium, &file, &world);

    assert_eq!(seen.console, Vec::<String>::new(), "errors, or what the policy had to stop");
    assert_eq!(bait.calls(), before, "a request was made");
    let dom = &seen.dom;
    assert!(dom.contains("<title>work: success</title>"), "a script ran, or the page is broken");
    for tag in ["<img", "<iframe", "<link", "<base", "<a href=\"javascript"] {
        assert!(!dom.contains(tag), "{tag} became markup");
    }
    for part in [
        "<p class=\"badge\">success</p>",
        "<dd>$0.2500</dd>",
        "class=\"row tool\"",
        "class=\"chart\"",
        "bootstrap",
        "<code>bidi.txt</code>",
        "a⟨U+202E⟩b",
        "&lt;img src=x onerror=alert(1)&gt;.txt",
        "needle in the log",
        "standard error",
    ] {
        assert!(dom.contains(part), "{part} is missing");
    }
    // The page's own script did run: it shows the search. Without it the field stays hidden.
    assert!(page.contains("<p class=\"search\" hidden>") && dom.contains("<p class=\"search\">"));

    // The search, driven by a script that stands for the user. It has to be put into a copy whose policy allows it.
    let typed = "<script>const q=document.getElementById('q');q.value='needle LOG';q.dispatchEvent(new Event('input'))</script>";
    let policy = page.find("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let end = policy + page[policy..].find('>').unwrap() + 1;
    let copy = format!("{}{}{typed}", &page[..policy], &page[end..]);
    let seen = open(&chromium, &world.write("copy.html", copy), &world);
    // Standard error has it as well.
    assert!(seen.dom.contains("id=\"found\">2 of "), "the search does not find");
    assert!(seen.dom.contains("<li class=\"text\">needle in the log</li>"));
    assert_eq!(seen.dom.matches("<li class=\"header\" hidden").count(), 2);
    assert_eq!(bait.calls(), before);
}

#[test]
fn every_run_has_its_curve_or_says_why_not() {
    let world = World::new();
    world.agent(
        r#"for n in 1 2 3; do
echo '{"type":"assistant","message":{"id":"m'$n'","role":"assistant","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":30}}}'
done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":3,"total_cost_usd":0.25}'"#,
    );
    let run = world.run(&[]).success();
    let dir = run.dir.as_ref().unwrap();
    let page = std::fs::read_to_string(page_of(&world, dir)).unwrap();
    let told = "126 tokens (6 output, 30 new input, 90 input from the cache), cost $0.2500.</desc>";
    for part in [
        told,
        "<title id=\"curve-title\">Tokens and cost over time</title>",
        "class=\"cost dot\"",
        "The curve in figures",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(run.file("otel.jsonl").contains("\"fullsend.cost\""));

    for file in ["run.json", "otel.jsonl"] {
        std::fs::remove_file(dir.join(file)).unwrap();
    }
    let page = std::fs::read_to_string(page_of(&world, dir)).unwrap();
    assert!(
        page.contains(&format!("After 3 answers: {told}")) && page.contains("in the order of the answers")
    );

    world.agent("echo nothing");
    let run = world.run(&[]).success();
    let page = std::fs::read_to_string(page_of(&world, run.dir.as_ref().unwrap())).unwrap();
    assert!(page.contains("told neither tokens nor cost") && !page.contains("class=\"chart\""));
}

#[test]
fn a_huge_run_and_a_killed_one_have_a_page() {
    let world = World::new();
    world.agent("seq 1 60000 | sed 's/^/line number /'; seq 1 20000 > numbers.txt");
    let run = world.run(&[]).success();
    let dir = run.dir.as_ref().unwrap();
    let page = std::fs::read_to_string(page_of(&world, dir)).unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(
        page.contains(">line number 1<") && page.contains(">line number 60000<") && page.contains("left out")
    );
    assert!(page.contains("The whole is in <code>changes.patch</code>"));

    std::fs::remove_file(dir.join("run.json")).unwrap();
    let page = std::fs::read_to_string(page_of(&world, dir)).unwrap();
    assert!(page.contains("no verdict") && page.contains("bootstrap") && page.contains(">line number 1<"));
    // Without a file to write, the page lies with the run.
    let done = world.fullsend(&["report", dir.to_str().unwrap()]);
    assert!(done.code == 0 && done.stdout.contains("report.html") && dir.join("report.html").is_file());
}

#[test]
fn a_run_is_found_by_its_id_and_one_that_is_none_is_an_error() {
    let world = World::new();
    let run = world.run(&[]).success();
    let out = world.path("out");
    let out = out.to_str().unwrap();
    let id = run.json["run"].as_str().unwrap();
    let done = world.fullsend(&["report", &id[..6], "--output-dir", out, "-o", "-"]);
    assert!(done.code == 0 && done.stdout.starts_with("<!doctype html>"), "{done:?}");
    for word in ["nosuch", "./nosuch", "/"] {
        let done = world.fullsend(&["report", word, "--output-dir", out]);
        assert!(done.code == 2 && done.stderr.contains("error[FS-RUN-UNKNOWN]"), "{done:?}");
    }
}

#[test]
fn two_runs_are_compared() {
    let world = World::new();
    world.agent("echo a > a; echo both > both");
    let first = world.run(&["--apply", "never"]).success();
    let a = first.dir.as_ref().unwrap().to_str().unwrap().to_owned();
    world.agent("echo b > b; echo both > both; exit 3");
    assert_eq!(world.run(&["--apply", "never"]).done.code, 1);
    // Two runs within one second are not told apart by the names of their directories.
    let mut all = std::fs::read_dir(world.path("out")).unwrap().map(|e| e.unwrap().path());
    let b = all.find(|dir| dir.to_str() != Some(&a)).unwrap();
    let b = b.to_str().unwrap();
    let done = world.fullsend(&["diff-runs", &a, b, "--format", "json"]);
    let value: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(value["schema"], "fullsend.diff-runs/1");
    assert_eq!(value["values"]["verdict"]["a"], "success");
    assert_eq!(value["values"]["verdict"]["b"], "failed");
    assert_eq!(value["paths"]["only_a"], serde_json::json!(["a"]));
    assert!(value["phases_ms"]["agent"]["b"].is_u64());
    let done = world.fullsend(&["diff-runs", &a, b]);
    assert!(done.code == 0 && done.stdout.contains("verdict") && done.stdout.contains('≠'), "{done:?}");
}
