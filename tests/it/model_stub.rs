//! The model stub itself: what other tests rely on.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

struct Stub {
    child: Child,
    address: String,
    dir: tempfile::TempDir,
}

impl Stub {
    fn start(script: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("script.json"), script.to_string()).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_fullsend")).with_file_name("examples").join("model-stub");
        let mut child = Command::new(program)
            .args([dir.path().join("script.json"), dir.path().join("log.jsonl")])
            .arg("60")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening http://").unwrap().to_owned();
        Self { child, address, dir }
    }

    /// Status, and the body as it came (chunk sizes included).
    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\nx-api-key: dummy-key\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log.jsonl")).unwrap()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main_request(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 1000, "stream": stream, "tools": [{"name": "Bash"}],
           "messages": [{"role": "user", "content": "say \"hello\""}]})
}

#[test]
fn turns_are_for_the_main_conversation_alone() {
    let stub = Stub::start(&json!({"turns": [
        {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}], "usage": {"output_tokens": 7}},
        {"error": {"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error"}}}},
        {"content": [{"type": "text", "text": "last"}], "expect": ["say \"hello\""]},
    ]}));
    let message = |(status, body): (u16, String)| {
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let first = message(stub.post("/v1/messages?beta=true", &main_request(false)));
    assert_eq!((&first["stop_reason"], &first["usage"]["output_tokens"]), (&json!("tool_use"), &json!(7)));

    let side = json!({"model": "small", "max_tokens": 100, "messages": []});
    assert_eq!(message(stub.post("/v1/messages", &side))["stop_reason"], "end_turn");
    assert_eq!(message(stub.post("/v1/messages/count_tokens", &main_request(false)))["input_tokens"], 1000);
    assert_eq!(stub.post("/v1/messages", &main_request(true)).0, 529);

    let vertex = "/v1/projects/p/locations/global/publishers/anthropic/models/claude-x";
    let without = json!({"max_tokens": 1000, "tools": [{}], "messages": []});
    assert_eq!(stub.post(&format!("{vertex}:rawPredict"), &without).0, 400, "the expected text is missing");
    let last = message(stub.post(&format!("{vertex}:rawPredict"), &main_request(false)));
    assert_eq!(last["content"][0]["text"], "last");
    assert_eq!(stub.post("/v1/messages", &main_request(false)).0, 400, "no more turns");

    let log = stub.log();
    assert!(!log.contains("dummy-key") && log.contains("sha256:"), "{log}");
    let kinds: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| (line["kind"].as_str().unwrap().to_owned(), line["turn"].as_u64()))
        .collect();
    let expected = [("main", Some(0)), ("side", None), ("count", None), ("main", Some(1)), ("main", None)];
    assert_eq!(kinds[..5], expected.map(|(k, t)| (k.to_owned(), t)));
}

#[test]
fn streams_are_events_and_a_cut_one_has_no_end() {
    let turn = json!({"content": [{"type": "text", "text": "one two"}]});
    let mut cut = turn.clone();
    cut["cut"] = json!(true);
    let stub = Stub::start(&json!({"turns": [turn, cut], "repeat_last": true}));
    let path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict";
    let (_, whole) = stub.post(path, &main_request(false));
    for event in ["message_start", "content_block_delta", "message_delta", "message_stop"] {
        assert!(whole.contains(&format!("event: {event}\n")), "{whole}");
    }
    for _ in 0..2 {
        let (status, half) = stub.post("/v1/messages", &main_request(true));
        assert_eq!(status, 200);
        assert!(half.contains("content_block_delta") && !half.contains("message_stop"), "{half}");
    }
}

#[test]
fn it_ends_with_its_standard_input() {
    let mut stub = Stub::start(&json!({"turns": [{"content": []}]}));
    drop(stub.child.stdin.take());
    assert!(stub.child.wait().unwrap().success());
}
