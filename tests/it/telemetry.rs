//! Spans and metrics: what is written, what a collector receives, and that none of it can harm a run.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Run, World};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// What a collector does with a request.
#[derive(Clone, Copy)]
enum Mood {
    Takes,
    Fails,
    Hangs,
}

/// A collector on the loopback interface: the head and the body of every request.
#[derive(Clone)]
struct Collector {
    url: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self { url, seen: Arc::default() };
        let mine = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mine = mine.clone();
                std::thread::spawn(move || mine.answer(stream, mood));
            }
        });
        collector
    }

    fn answer(&self, mut stream: TcpStream, mood: Mood) {
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 65536];
        loop {
            let n = stream.read(&mut chunk).unwrap_or(0);
            bytes.extend_from_slice(&chunk[..n]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                if n == 0 {
                    return;
                }
                continue;
            };
            let head = head.to_lowercase();
            let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
            let length: usize = length.unwrap().trim().parse().unwrap();
            if body.len() < length && n > 0 {
                continue;
            }
            self.seen.lock().unwrap().push((head, serde_json::from_str(body).unwrap()));
            let status = match mood {
                Mood::Takes => "200 OK",
                Mood::Fails => "500 Internal Server Error",
                Mood::Hangs => return std::thread::sleep(Duration::from_mins(1)),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
            );
            let _ = stream.write_all(answer.as_bytes());
            bytes.clear();
        }
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap().clone()
    }
}

/// The spans of a request or of a line of the file.
fn spans_of(value: &Value) -> Vec<Value> {
    value["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn written(run: &Run) -> Vec<Value> {
    run.file("otel.jsonl").lines().flat_map(|l| spans_of(&serde_json::from_str(l).unwrap())).collect()
}

fn time(span: &Value, key: &str) -> u64 {
    span[key].as_str().unwrap().parse().unwrap()
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    spans.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("no span {name}"))
}

/// An agent that uses a tool, as its stream says.
const AGENT: &str = r#"
echo '{"type":"system","subtype":"init","model":"model-1","session_id":"s"}'
echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}],"usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":300}}}'
sleep 0.3
echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}'
echo "$TRACEPARENT" > "$FULLSEND_OUTPUT_DIR/context"
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":2,"total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":300}}'
"#;

#[test]
fn the_spans_of_a_run_are_one_tree_and_add_up() {
    let collector = Collector::start(Mood::Takes);
    let mut world = World::new();
    world.env("TRACEPARENT", format!("00-{TRACE}-{PARENT}-01"));
    world.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    world.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k3y-of-the-collector,x-team=a");
    world.env("OTEL_RESOURCE_ATTRIBUTES", "team=blue");
    world.agent(AGENT);
    world.script("h/pre.sh", "echo \"context $TRACEPARENT header $OTEL_EXPORTER_OTLP_HEADERS\"");
    world.harness("agent: agents/work\nruntime: script\ntimeout_minutes: 2\npre_script: pre.sh\n");
    let run = world.run(&[]).success();
    assert!(!run.done.stdout.contains("could not be sent"), "{}", run.done.stdout);

    let requests = collector.requests();
    assert!(!requests.is_empty());
    let mut sent = Vec::new();
    for (head, body) in &requests {
        assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(head.contains("authorization: bearer k3y-of-the-collector") && head.contains("x-team: a"));
        assert!(body["resourceSpans"][0]["resource"]["attributes"].to_string().contains("\"blue\""));
        sent.extend(spans_of(body));
    }
    assert_eq!(sent, written(&run), "the file has what the collector received");

    // One tree: everything leads to the run, and the run to who called it.
    let by_id: BTreeMap<&str, &Value> = sent.iter().map(|s| (s["spanId"].as_str().unwrap(), s)).collect();
    assert_eq!(by_id.len(), sent.len());
    let roots: Vec<_> =
        sent.iter().filter(|s| !by_id.contains_key(s["parentSpanId"].as_str().unwrap())).collect();
    assert_eq!(roots.len(), 1);
    let root = roots[0];
    assert_eq!((root["name"].as_str(), root["parentSpanId"].as_str()), (Some("run work"), Some(PARENT)));
    for span in &sent {
        assert_eq!(span["traceId"], TRACE);
        let (start, end) = (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"));
        assert!(
            time(root, "startTimeUnixNano") <= start && start <= end && end <= time(root, "endTimeUnixNano")
        );
    }

    // Phases follow one another within the run, and are those of run.json.
    let length = |span: &Value| time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano");
    let id = root["spanId"].as_str().unwrap();
    let phases: Vec<_> = sent.iter().filter(|s| s["parentSpanId"] == id && s["kind"] == 1).collect();
    let recorded: Vec<_> = run.json["phases"].as_array().unwrap().iter().collect();
    assert_eq!(phases.len(), recorded.len() + 1, "and `prepare`");
    for (span, phase) in phases[1..].iter().zip(recorded) {
        assert_eq!(span["name"], phase["name"]);
        assert!(length(span) / 1_000_000 >= phase["duration_ms"].as_u64().unwrap(), "{span}");
    }
    assert!(phases.windows(2).all(|p| time(p[0], "endTimeUnixNano") <= time(p[1], "startTimeUnixNano")));
    assert!(phases.iter().map(|s| length(s)).sum::<u64>() <= length(root));
    assert!(length(root) / 1_000_000 >= run.json["duration_ms"].as_u64().unwrap());

    let agent = sent.iter().find(|s| s["name"] == "agent" && s["kind"] == 1).unwrap();
    let tool = named(&sent, "execute_tool Bash");
    assert_eq!(tool["parentSpanId"], agent["spanId"]);
    assert!(length(tool) >= 200_000_000 && length(tool) <= length(agent));
    assert!(tool["attributes"].to_string().contains("cargo test"));
    assert!(agent["attributes"].to_string().contains("\"model-1\""));
    assert!(agent["events"].as_array().is_some_and(|e| !e.is_empty()));
    assert!(root["attributes"].to_string().contains("\"success\""));

    // Scripts and the sandbox are told where they belong.
    let script = named(&sent, "pre-script");
    let call = sent.iter().find(|s| s["name"] == "pre-script" && s["kind"] == 3).unwrap();
    assert_eq!(
        call["parentSpanId"],
        sent.iter().find(|s| s["name"] == "pre-script" && s["kind"] == 1).unwrap()["spanId"]
    );
    assert!(script["spanId"].is_string());
    let context = format!("context 00-{TRACE}-{}-01", call["spanId"].as_str().unwrap());
    assert!(run.done.stdout.contains(&context), "{}", run.done.stdout);
    let context = format!("00-{TRACE}-{}-01\n", agent["spanId"].as_str().unwrap());
    assert_eq!(run.file("iteration-1/output/context"), context);

    // The header is a secret.
    for text in [&run.done.stdout, &run.done.stderr, &run.file("otel.jsonl")] {
        assert!(!text.contains("k3y-of-the-collector"), "{text}");
    }
    world.assert_clean();
}

#[test]
fn a_collector_that_is_not_well_neither_fails_a_run_nor_holds_it_up() {
    let refuses = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", refuses.local_addr().unwrap());
    drop(refuses);
    for (url, seen) in [
        (gone, None),
        (Collector::start(Mood::Fails).url, Some("HTTP 500")),
        (Collector::start(Mood::Hangs).url, Some("within")),
    ] {
        let mut world = World::new();
        world.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
        world.env("OTEL_EXPORTER_OTLP_TIMEOUT", "1500");
        let start = Instant::now();
        let run = world.run(&[]).success();
        let after =
            start.elapsed().saturating_sub(Duration::from_millis(run.json["duration_ms"].as_u64().unwrap()));
        assert!(after < Duration::from_secs(15), "{url}: {after:?} longer than the run");
        let line = run.done.stdout.lines().find(|l| l.contains("could not be sent"));
        let line = line.unwrap_or_else(|| panic!("{url}: nothing is said: {}", run.done.stdout));
        assert!(line.contains("otel.jsonl") && seen.is_none_or(|seen| line.contains(seen)), "{line}");
        assert!(!written(&run).is_empty());
        world.assert_clean();
    }
}

#[test]
fn a_run_that_cannot_start_is_told_of() {
    let collector = Collector::start(Mood::Takes);
    let mut world = World::new();
    world.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("{}/custom", collector.url));
    let file = world.path("m.prom");
    world.harness("agent: agents/nowhere\nruntime: script\n");
    let run = world.run(&["--metrics-file", file.to_str().unwrap()]);
    assert_eq!(run.done.code, 2);
    let requests = collector.requests();
    assert!(requests[0].0.starts_with("post /custom http/1.1"));
    let spans = spans_of(&requests[0].1);
    let root = named(&spans, "run work");
    assert_eq!((&root["status"]["code"], root.get("parentSpanId")), (&Value::from(2), None));
    assert!(root["attributes"].to_string().contains("\"usage\""));
    assert!(
        std::fs::read_to_string(file)
            .unwrap()
            .contains("fullsend_runs_total{agent=\"work\",verdict=\"usage\"} 1")
    );
}

#[test]
fn what_cannot_be_sent_is_said_and_the_spans_are_written_all_the_same() {
    let mut world = World::new();
    world.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    world.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    world.env("TRACEPARENT", "nonsense");
    let run = world.run(&[]).success();
    assert!(run.done.stdout.contains("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported"));
    assert!(!run.done.stdout.contains("could not be sent"));
    let spans = written(&run);
    assert!(named(&spans, "run work").get("parentSpanId").is_none());
    assert!(run.json["artefacts"].as_array().unwrap().iter().any(|a| a == "otel.jsonl"));
}

#[test]
fn the_metrics_file_counts_run_after_run() {
    let world = World::new();
    let file = world.path("metrics.prom");
    let flag = ["--metrics-file", file.to_str().unwrap()];
    world.agent(AGENT);
    world.run(&flag).success();
    world.run(&flag).success();
    world.agent("exit 3");
    assert_eq!(world.run(&flag).done.code, 1);
    let text = std::fs::read_to_string(&file).unwrap();
    for line in [
        "fullsend_runs_total{agent=\"work\",verdict=\"success\"} 2",
        "fullsend_runs_total{agent=\"work\",verdict=\"failed\"} 1",
        "fullsend_run_duration_seconds_count{agent=\"work\"} 3",
        "fullsend_tokens_total{agent=\"work\",type=\"cache_read\"} 600",
        "fullsend_cost_usd_total{agent=\"work\"} 1",
        "fullsend_tool_calls_total{agent=\"work\"} 2",
        "fullsend_active_sandboxes 0",
        "fullsend_last_run_success{agent=\"work\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
    // A file of somebody else's stays as it is, and the run as well.
    world.write("metrics.prom", "node_load1 0.5\n");
    world.agent("true");
    let run = world.run(&flag).success();
    assert!(run.done.stdout.contains("was not written"), "{}", run.done.stdout);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "node_load1 0.5\n");
}
