//! Asking a server how it is: `GET /healthz`, without its token.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(2);
/// The longest status line.
const LINE: usize = 512;

/// Whether it answers with a status of 200 to 299.
///
/// # Errors
/// What it answered instead.
pub(super) async fn ask(address: SocketAddr) -> Result<(), String> {
    let line = timeout(LIMIT, status_line(address)).await;
    let line = line.map_err(|_| "no answer".to_owned())?.map_err(|e| e.to_string())?;
    match status(&line) {
        Some(200..=299) => Ok(()),
        Some(other) => Err(format!("it answered {other}")),
        None => Err("it did not speak HTTP".to_owned()),
    }
}

async fn status_line(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut line = Vec::new();
    let mut byte = [0; 64];
    while !line.contains(&b'\n') && line.len() < LINE {
        match stream.read(&mut byte).await? {
            0 => break,
            n => line.extend_from_slice(&byte[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The number of a status line.
fn status(line: &str) -> Option<u16> {
    let mut words = line.lines().next()?.split(' ');
    let version = words.next()?;
    let code = words.next()?;
    (version.starts_with("HTTP/1.") && code.len() == 3).then(|| code.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::status;

    #[test]
    fn a_status_line_is_told_from_other_text() {
        assert_eq!(status("HTTP/1.1 200 OK\r\n"), Some(200));
        assert_eq!(status("HTTP/1.0 503\r\nx"), Some(503));
        for other in ["", "220 smtp ready", "HTTP/2 200", "HTTP/1.1 2000", "HTTP/1.1", "SSH-2.0-x"] {
            assert_eq!(status(other), None, "{other}");
        }
    }
}
