//! An HTTPS server on the loopback interface, with a certificate of its own authority, that also serves git.

use std::collections::HashMap;
use std::io::{Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What the server does at a path.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This body.
    Body(Vec<u8>),
    /// A redirect.
    Redirect(String),
    /// A status without more.
    Status(u16),
    /// This many failures with status 503, then the body.
    Flaky(u32, Vec<u8>),
    /// A byte now and then, for ever.
    Drip,
    /// Half of what was promised.
    Truncated,
    /// This many bytes.
    Big(usize),
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    requests: Vec<String>,
    /// Where the bare repositories are.
    git: Option<PathBuf>,
}

/// A running server. Its threads end with the test's process.
pub struct Server {
    pub port: u16,
    pub authority: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub fn start() -> Self {
        let issuer = {
            let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
        };
        let key = rcgen::KeyPair::generate().unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let cert = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let (config, shared) = (Arc::new(config), Arc::clone(&state));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, state) = (Arc::clone(&config), Arc::clone(&shared));
                std::thread::spawn(move || serve(stream, config, &state));
            }
        });
        Self { port, authority: issuer.pem(), state }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// Sets what is at a path.
    pub fn put(&self, path: &str, answer: Answer) {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// Sets the text at a path.
    pub fn text(&self, path: &str, text: &str) {
        self.put(path, Answer::Body(text.as_bytes().to_vec()));
    }

    /// Serves the bare repositories below a directory.
    pub fn git(&self, root: PathBuf) {
        self.state.lock().unwrap().git = Some(root);
    }

    /// The requests so far, and forgets them.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

type Tls = StreamOwned<ServerConnection, TcpStream>;

fn serve(stream: TcpStream, config: Arc<ServerConfig>, state: &Mutex<State>) {
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let Ok(connection) = ServerConnection::new(config) else { return };
    let mut tls = StreamOwned::new(connection, stream);
    let Some((head, body)) = request(&mut tls) else { return };
    let _ = answer(&mut tls, &head, &body, state);
    tls.conn.send_close_notify();
    let _ = tls.flush();
}

/// Head and body of a request.
fn request(tls: &mut Tls) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        let n = tls.read(&mut buffer).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = header(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end);
    while body.len() < length {
        let n = tls.read(&mut buffer).ok().filter(|n| *n > 0)?;
        body.extend_from_slice(&buffer[..n]);
    }
    Some((head, body))
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}

fn answer(out: &mut Tls, head: &str, body: &[u8], state: &Mutex<State>) -> std::io::Result<()> {
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (found, git) = {
        let mut state = state.lock().unwrap();
        state.requests.push(path.to_owned());
        let found = state.answers.get(path).cloned();
        if let Some(Answer::Flaky(left, _)) = state.answers.get_mut(path) {
            *left = left.saturating_sub(1);
        }
        (found, state.git.clone())
    };
    let plain = |out: &mut Tls, status: &str, body: &[u8]| {
        write!(out, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len())?;
        out.write_all(body)
    };
    match found {
        None if path.contains(".git/") && git.is_some() => {
            backend(out, &git.unwrap(), (method, path, query), head, body)
        }
        None => plain(out, "404 Not Found", b""),
        Some(Answer::Body(body) | Answer::Flaky(0, body)) => plain(out, "200 OK", &body),
        Some(Answer::Flaky(..)) => plain(out, "503 Service Unavailable", b""),
        Some(Answer::Status(status)) => plain(out, &format!("{status} X"), b""),
        Some(Answer::Redirect(to)) => {
            write!(
                out,
                "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        }
        Some(Answer::Truncated) => write!(out, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
        Some(Answer::Big(size)) => plain(out, "200 OK", &vec![b'x'; size]),
        Some(Answer::Drip) => {
            write!(out, "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")?;
            // Until the client goes away.
            loop {
                out.write_all(b"x")?;
                out.flush()?;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// `git http-backend`, the CGI program of git itself.
fn backend(
    out: &mut Tls,
    root: &PathBuf,
    (method, path, query): (&str, &str, &str),
    head: &str,
    body: &[u8],
) -> std::io::Result<()> {
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header(head, "content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header(head, "content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", header(head, "git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    child.stdin.take().unwrap().write_all(body)?;
    let output = child.wait_with_output()?.stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(0);
    let (fields, body) = output.split_at(end);
    let fields = String::from_utf8_lossy(fields);
    let status = header(&fields, "status").unwrap_or_else(|| "200 OK".to_owned());
    let kind = header(&fields, "content-type").unwrap_or_default();
    let body = body.get(4..).unwrap_or_default();
    write!(out, "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n", body.len())?;
    write!(out, "connection: close\r\n\r\n")?;
    out.write_all(body)
}
