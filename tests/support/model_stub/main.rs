//! `model-stub`: a loopback model API for tests, driven by a script file.
//!
//! It speaks the Anthropic Messages API (`/v1/messages`, `/v1/messages/count_tokens`) and its Vertex form
//! (`…/publishers/anthropic/models/<model>:rawPredict` and `:streamRawPredict`), streaming and not, and OpenAI's
//! Responses API (`/v1/responses`), streaming. Turns of the script are given to the main conversation only; what
//! an agent CLI asks on the side (titles, quota checks) is answered plainly. It listens on 127.0.0.1 alone and ends
//! by itself.
//!
//! ```text
//! model-stub [--bind ADDRESS] SCRIPT.json LOG.jsonl [SECONDS]
//! ```
//!
//! The first line on stdout is `listening http://ADDRESS:PORT`. Every request is appended to the log as a
//! JSON line; values of credentials are replaced by the first 12 hex digits of their SHA-256. The process ends
//! when its stdin ends, or after SECONDS (300).

mod http;
mod reply;
mod responses;
mod script;

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use script::{Kind, State};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "model-stub: {message}");
            ExitCode::from(2)
        }
    }
}

fn serve(args: &[String]) -> Result<(), String> {
    let (address, args) = match args {
        [option, address, rest @ ..] if option == "--bind" => (address.as_str(), rest),
        _ => ("127.0.0.1", args),
    };
    let [script, log, rest @ ..] = args else {
        return Err("usage: model-stub [--bind ADDRESS] SCRIPT.json LOG.jsonl [SECONDS]".into());
    };
    let seconds = match rest {
        [] => 300,
        [seconds, ..] => seconds.parse().map_err(|_| format!("not a number of seconds: {seconds}"))?,
    };
    let text = std::fs::read(script).map_err(|e| format!("{script}: {e}"))?;
    let state = State::parse(&text).map_err(|e| format!("{script}: {e}"))?;
    let log = OpenOptions::new().create(true).append(true).open(log).map_err(|e| format!("{log}: {e}"))?;
    let shared = Arc::new(Mutex::new((state, log)));
    let listener = TcpListener::bind((address, 0)).map_err(|e| e.to_string())?;
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
        let _ = std::io::copy(&mut std::io::stdin().lock().by_ref(), &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = end.recv_timeout(Duration::from_secs(seconds));
    Ok(())
}

type Shared = Mutex<(State, std::fs::File)>;

/// Answers requests of one connection until the client closes it or a scripted cut does.
fn connection(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = std::io::BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = http::read(&mut reader)? {
        let kind = Kind::of(&request);
        let answer = {
            let mut guard = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (state, log) = &mut *guard;
            let (answer, turn) = state.answer(&kind, &request);
            let line = request.log_line(kind.name(), turn);
            // One write, so that lines of parallel requests never mix.
            log.write_all(line.as_bytes())?;
            answer
        };
        if !reply::write(&mut writer, &answer)? {
            return Ok(());
        }
    }
    Ok(())
}
