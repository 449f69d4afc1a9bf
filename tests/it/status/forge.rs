//! A stand-in for the comment APIs of GitHub and GitLab on the loopback interface, over plain HTTP.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The token that the stub knows.
pub const TOKEN: &str = "ghs_StatusTokenOfTheTests0123456789abcdef";
/// The author of what is written with the token.
pub const SELF: &str = "fullsend[bot]";

/// What the stub answers instead of doing what it is asked.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A status.
    Status(u16),
    /// The secondary limit of GitHub, and GitLab's: 429 with so many seconds.
    RetryAfter(u32),
    /// The primary limit of GitHub: 403, over in so many seconds.
    UsedUp(u64),
    /// It does what it is asked, and answers 502 all the same.
    DoneButLost,
    /// A redirect to there.
    Redirect(String),
    /// No answer for so long.
    Slow(Duration),
}

/// One comment.
#[derive(Debug, Clone)]
pub struct Comment {
    pub id: u64,
    pub thread: String,
    pub author: String,
    pub body: String,
}

/// One request: method, path with query, and body.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: String,
    pub body: String,
}

#[derive(Default)]
pub struct State {
    pub comments: Vec<Comment>,
    pub requests: Vec<Request>,
    /// Taken one by one, by requests that begin with the method.
    pub faults: VecDeque<(&'static str, Fault)>,
    /// Whether the token is that of an app, which has no user.
    pub app: bool,
    next: u64,
}

/// A running stub; its threads end with the test's process.
pub struct Forge {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Forge {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { app: true, ..State::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { port, state }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn comments(&self) -> Vec<Comment> {
        self.state().comments.clone()
    }

    /// The texts of the comments on a thread.
    pub fn bodies(&self) -> Vec<String> {
        self.state().comments.iter().map(|c| c.body.clone()).collect()
    }

    pub fn fault(&self, method: &'static str, fault: Fault) {
        self.state().faults.push_back((method, fault));
    }

    pub fn add(&self, thread: &str, author: &str, body: &str) -> u64 {
        self.state().add(thread, author, body)
    }

    pub fn count(&self, method: &str) -> usize {
        self.state().requests.iter().filter(|r| r.method == method).count()
    }
}

impl State {
    fn add(&mut self, thread: &str, author: &str, body: &str) -> u64 {
        self.next += 1;
        let comment =
            Comment { id: self.next, thread: thread.into(), author: author.into(), body: body.into() };
        self.comments.push(comment);
        self.next
    }

    fn fault(&mut self, method: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(of, _)| *of == method || of.is_empty())?;
        self.faults.remove(at).map(|(_, fault)| fault)
    }
}

type Answer = (u16, Vec<(String, String)>, Value);

fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(&mut reader) {
        let (fault, slow) = {
            let mut state = state.lock().unwrap();
            state.requests.push(request.clone());
            match state.fault(&request.method) {
                Some(Fault::Slow(time)) => (None, time),
                fault => (fault, Duration::ZERO),
            }
        };
        std::thread::sleep(slow);
        let answer = match fault {
            None => act(&mut state.lock().unwrap(), &request),
            Some(Fault::DoneButLost) => {
                act(&mut state.lock().unwrap(), &request);
                (502, vec![], json!({"message": "Bad gateway"}))
            }
            Some(Fault::Status(status)) => (status, vec![], json!({"message": "No"})),
            Some(Fault::RetryAfter(s)) => {
                (429, vec![("Retry-After".into(), s.to_string())], json!({"message": "slow down"}))
            }
            Some(Fault::UsedUp(seconds)) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
                let headers = [
                    ("X-RateLimit-Remaining", "0".into()),
                    ("X-RateLimit-Reset", (now + seconds).to_string()),
                ];
                let headers = headers.map(|(k, v)| (k.to_owned(), v)).into();
                (403, headers, json!({"message": "API rate limit exceeded"}))
            }
            Some(Fault::Redirect(to)) => (301, vec![("Location".into(), to)], json!({})),
            Some(Fault::Slow(_)) => unreachable!(),
        };
        if write(stream, answer).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|n| *n > 0)?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        headers.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body: String::from_utf8(body).ok()? })
}

fn write(mut stream: &TcpStream, (status, headers, body): Answer) -> std::io::Result<()> {
    let body = if status == 204 { String::new() } else { body.to_string() };
    let mut text = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes())
}

/// `/repos/O/R/issues/N/comments`, `/repos/O/R/issues/comments/ID`, `/projects/P/KIND/N/notes[/ID]`, `/user`.
fn act(state: &mut State, request: &Request) -> Answer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let gitlab = parts[0] == "projects" || request.headers.to_ascii_lowercase().contains("private-token:");
    let lower = request.headers.to_ascii_lowercase();
    let known =
        if gitlab { format!("private-token: {TOKEN}") } else { format!("authorization: Bearer {TOKEN}") };
    if !lower.contains(&known.to_ascii_lowercase()) {
        return (401, vec![], json!({"message": "Bad credentials"}));
    }
    let (thread, id) = match parts[..] {
        ["user"] if state.app => {
            return (403, vec![], json!({"message": "Resource not accessible by integration"}));
        }
        ["user"] => return (200, vec![], json!({"login": SELF, "username": SELF})),
        ["repos", owner, repo, "issues", "comments", id] => (format!("{owner}/{repo}"), id.parse().ok()),
        ["repos", owner, repo, "issues", number, "comments"] => (format!("{owner}/{repo}#{number}"), None),
        ["projects", project, kind, number, "notes"] => (format!("{project} {kind} {number}"), None),
        ["projects", project, kind, number, "notes", id] => {
            (format!("{project} {kind} {number}"), id.parse().ok())
        }
        _ => return (404, vec![], json!({"message": "Not Found"})),
    };
    let text = || serde_json::from_str::<Value>(&request.body).ok()?["body"].as_str().map(str::to_owned);
    let at = id
        .and_then(|id: u64| state.comments.iter().position(|c| c.id == id && c.thread.starts_with(&thread)));
    match (request.method.as_str(), id, at) {
        ("GET", None, _) => list(state, &thread, query, gitlab),
        ("POST", None, _) => {
            let id = state.add(&thread, SELF, &text().unwrap());
            (201, vec![], json_of(state.comments.iter().find(|c| c.id == id).unwrap(), gitlab))
        }
        ("GET", _, Some(at)) => (200, vec![], json_of(&state.comments[at], gitlab)),
        ("PATCH" | "PUT", _, Some(at)) if (request.method == "PUT") == gitlab => {
            if state.comments[at].author != SELF {
                return (403, vec![], json!({"message": "Forbidden"}));
            }
            state.comments[at].body = text().unwrap();
            (200, vec![], json_of(&state.comments[at], gitlab))
        }
        ("DELETE", _, Some(at)) => {
            state.comments.remove(at);
            (204, vec![], Value::Null)
        }
        _ => (404, vec![], json!({"message": "Not Found"})),
    }
}

fn list(state: &State, thread: &str, query: &str, gitlab: bool) -> Answer {
    let number = |name: &str| query.split('&').find_map(|p| p.strip_prefix(name)?.parse::<usize>().ok());
    let (size, page) = (number("per_page=").unwrap_or(20), number("page=").unwrap_or(1));
    let mut all: Vec<&Comment> = state.comments.iter().filter(|c| c.thread == thread).collect();
    if gitlab {
        all.reverse();
    }
    let pages = all.len().div_ceil(size).max(1);
    let shown: Vec<Value> =
        all.into_iter().skip((page - 1) * size).take(size).map(|c| json_of(c, gitlab)).collect();
    let mut headers = Vec::new();
    if !gitlab && page < pages {
        let link = format!(
            "<http://x.invalid/y?page={}>; rel=\"next\", <http://x.invalid/y?page={pages}>; rel=\"last\"",
            page + 1
        );
        headers.push(("Link".to_owned(), link));
    }
    (200, headers, Value::Array(shown))
}

fn json_of(comment: &Comment, gitlab: bool) -> Value {
    let updated = "2026-03-01T12:00:00Z";
    if gitlab {
        json!({"id": comment.id, "body": comment.body, "author": {"username": comment.author}, "updated_at": updated})
    } else {
        let kind = if comment.author.ends_with("[bot]") { "Bot" } else { "User" };
        json!({"id": comment.id, "body": comment.body, "user": {"login": comment.author, "type": kind}, "updated_at": updated})
    }
}
