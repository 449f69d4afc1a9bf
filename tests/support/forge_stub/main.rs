//! `forge-stub`: a loopback forge for tests, with the part of the REST API of GitHub or GitLab that scripts of a
//! harness use. It is strict: wrong tokens, writing with a token that may only read, bodies that are no JSON, and
//! fields or paths that it does not know are refused.
//!
//! ```text
//! forge-stub STATE.json LOG.jsonl [SECONDS]
//! ```
//!
//! The first line on stdout is `listening http://127.0.0.1:PORT`. Every request is appended to the log as a JSON
//! line whose `kind` is the status it got; values of credentials are replaced by digests. After each change the
//! state is written to `STATE.json.now`. The process ends when its stdin ends, or after SECONDS (300).

#![allow(clippy::result_large_err, reason = "an answer is an answer, refusals too")]

mod github;
mod gitlab;
#[path = "../model_stub/http.rs"]
mod http;
mod state;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::json;
use state::{Reply, State};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "forge-stub: {message}");
            ExitCode::from(2)
        }
    }
}

fn serve(args: &[String]) -> Result<(), String> {
    let [file, log, rest @ ..] = args else {
        return Err("usage: forge-stub STATE.json LOG.jsonl [SECONDS]".into());
    };
    let seconds = match rest {
        [] => 300,
        [seconds, ..] => seconds.parse().map_err(|_| format!("not a number of seconds: {seconds}"))?,
    };
    let text = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    let state: State = serde_json::from_slice(&text).map_err(|e| format!("{file}: {e}"))?;
    let log = OpenOptions::new().create(true).append(true).open(log).map_err(|e| format!("{log}: {e}"))?;
    let shared = Arc::new(Mutex::new((state, log, format!("{file}.now"))));
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "listening http://{address}")
        .and_then(|()| stdout.flush())
        .map_err(|e| e.to_string())?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                let _ = connection(stream, &shared);
            });
        }
    });
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = end.recv_timeout(Duration::from_secs(seconds));
    Ok(())
}

type Shared = Mutex<(State, std::fs::File, String)>;

fn connection(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = std::io::BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = http::read(&mut reader)? {
        let reply = {
            let mut guard = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (state, log, now) = &mut *guard;
            let reply = answer(state, &request);
            log.write_all(request.log_line(&reply.status.to_string(), None).as_bytes())?;
            if request.method != "GET" {
                std::fs::write(now, serde_json::to_vec(state)?)?;
            }
            reply
        };
        let body = match &reply.text {
            Some(text) => text.clone().into_bytes(),
            None => serde_json::to_vec(&reply.body)?,
        };
        let mut out = Vec::new();
        http::head(&mut out, reply.status, "application/json", Some(body.len()), &reply.headers);
        out.extend_from_slice(&body);
        writer.write_all(&out)?;
    }
    Ok(())
}

fn answer(state: &mut State, request: &http::Request) -> Reply {
    if let Some(reply) = state.fault(&request.method, request.path()) {
        return reply;
    }
    let github = state.kind == "github";
    let sent = if github {
        request.header("authorization").and_then(|v| v.strip_prefix("Bearer "))
    } else {
        request.header("private-token")
    };
    let Some(token) = sent.and_then(|token| state.tokens.get(token)).cloned() else {
        return Reply::refused(401, "Bad credentials");
    };
    if github && request.header("user-agent").is_none_or(str::is_empty) {
        return Reply::refused(403, "Request forbidden by administrative rules: no User-Agent");
    }
    if request.method != "GET" {
        if !token.write {
            return Reply::refused(403, "Resource not accessible by this token");
        }
        if request.header("content-type") != Some("application/json") || !request.body.is_object() {
            return Reply::refused(400, "Problems parsing JSON");
        }
    }
    let path: Vec<&str> = request.path().trim_start_matches('/').split('/').collect();
    let reply = if github {
        github::answer(state, &token, request, &path)
    } else {
        gitlab::answer(state, &token, request, &path)
    };
    reply.unwrap_or_else(|| Reply { body: json!({"message": "Not Found"}), ..Reply::refused(404, "") })
}
