//! Just enough HTTP/1.1 (RFC 9112) to read requests of an agent CLI.

use std::io::{self, BufRead, Read as _, Write as _};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The longest body that is read, in bytes.
const BODY_LIMIT: u64 = 256 * 1024 * 1024;

/// One request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as JSON; `Null` when there is none or it is not JSON.
    pub(crate) body: Value,
}

impl Request {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The path without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The line of the log file. `turn` is the scripted turn that was given, from 0.
    pub(crate) fn log_line(&self, kind: &str, turn: Option<usize>) -> String {
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| {
                let secret = ["authorization", "x-api-key", "private-token", "proxy-authorization", "cookie"];
                let shown = if secret.contains(&name.as_str()) { digest(value) } else { value.clone() };
                (name.clone(), Value::from(shown))
            })
            .collect();
        let line = json!({
            "kind": kind, "turn": turn, "method": self.method, "target": self.target,
            "headers": headers, "body": self.body,
        });
        format!("{line}\n")
    }
}

/// The bare credential (no `Bearer `) as a short digest, so that a test can compare it with a value it knows.
fn digest(value: &str) -> String {
    let bare = value.strip_prefix("Bearer ").unwrap_or(value);
    let hex: Vec<_> = Sha256::digest(bare).iter().take(6).map(|b| format!("{b:02x}")).collect();
    format!("sha256:{}", hex.concat())
}

/// Reads a request; `None` when the client closed the connection between requests.
pub(crate) fn read<R: BufRead>(reader: &mut R) -> io::Result<Option<Request>> {
    let first = line(reader)?;
    let mut parts = first.split(' ');
    let (Some(method), Some(target)) = (parts.next().filter(|m| !m.is_empty()), parts.next()) else {
        return Ok(None);
    };
    let mut request =
        Request { method: method.into(), target: target.into(), headers: Vec::new(), body: Value::Null };
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let mut body = Vec::new();
    if request.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        chunked(reader, &mut body)?;
    } else if let Some(length) = request.header("content-length").and_then(|v| v.parse::<u64>().ok()) {
        reader.take(length.min(BODY_LIMIT)).read_to_end(&mut body)?;
    }
    request.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(request))
}

fn chunked<R: BufRead>(reader: &mut R, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = line(reader)?;
        let size = size.split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
        if size > BODY_LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        reader.take(size).read_to_end(body)?;
        line(reader)?;
        if size == 0 {
            return Ok(());
        }
    }
}

fn line<R: BufRead>(reader: &mut R) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(64 * 1024).read_until(b'\n', &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Writes the head of a response. `length` none means chunked.
pub(crate) fn head(
    out: &mut Vec<u8>,
    status: u16,
    content_type: &str,
    length: Option<usize>,
    extra: &[(String, String)],
) {
    let _ = write!(out, "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\n", reason(status));
    let _ = match length {
        Some(length) => write!(out, "content-length: {length}\r\n"),
        None => write!(out, "transfer-encoding: chunked\r\n"),
    };
    for (name, value) in extra {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out.extend_from_slice(b"request-id: req_stub\r\n\r\n");
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        529 => "Overloaded",
        _ => "Status",
    }
}
