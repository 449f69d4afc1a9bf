//! A server as a harness may start it: `--port`, `--bind-address`, its token in the environment. How it misbehaves is
//! in `API_SERVER_MODE`: `sick`, `deaf`, `dies`, `dies-on-call`, `stubborn`, `mute`,
//! `slow` (well at once when first asked, seconds later after that).

#![allow(clippy::exit, reason = "it dies on request")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether somebody has asked how it is.
static ASKED: AtomicBool = AtomicBool::new(false);

fn option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|a| a != name);
    args.nth(1)
}

fn main() -> std::io::Result<()> {
    let mode = std::env::var("API_SERVER_MODE").unwrap_or_default();
    let token = std::env::var("FULLSEND_API_TOKEN").unwrap_or_default();
    let report = |text: &str| {
        let _ = writeln!(std::io::stderr(), "{text}");
    };
    report(&format!("starting with token {token}"));
    if let Ok(path) = std::env::var("API_SERVER_PID_FILE") {
        std::fs::write(path, std::process::id().to_string())?;
    }
    if mode == "dies" {
        report("out of order");
        std::process::exit(7);
    }
    let address = option("--bind-address").unwrap_or_default();
    let listener = TcpListener::bind(format!("{address}:{}", option("--port").unwrap_or_default()))?;
    for stream in listener.incoming() {
        let stream = stream?;
        if mode == "mute" {
            std::mem::forget(stream);
            continue;
        }
        let (mode, token) = (mode.clone(), token.clone());
        std::thread::spawn(move || answer(stream, &mode, &token));
    }
    Ok(())
}

fn answer(mut stream: TcpStream, mode: &str, token: &str) {
    let Ok(clone) = stream.try_clone() else { return };
    let head: Vec<String> =
        BufReader::new(clone).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let known = head.iter().any(|line| line.eq_ignore_ascii_case(&format!("authorization: bearer {token}")));
    let (status, body) = match (path.as_str(), known) {
        ("/healthz", _) if mode == "sick" => ("503 Service Unavailable", "sick"),
        ("/healthz", _) => {
            if mode == "slow" && ASKED.swap(true, Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(7));
            }
            ("200 OK", "well")
        }
        ("/tools.json", _) => ("200 OK", "[]"),
        (_, false) => ("401 Unauthorized", "who are you"),
        ("/die", true) => std::process::exit(9),
        (_, true) => ("200 OK", "hello from the host"),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}
