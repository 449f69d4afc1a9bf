//! Why there is no answer.

use std::net::IpAddr;
use std::time::Duration;

/// Why a request has no usable answer. The texts complete "URL: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The URL itself cannot be used.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// The host is, or resolves to, an address that is not public.
    #[error("`{host}` is at {address}, which is not a public address")]
    Address {
        /// The host of the URL.
        host: String,
        /// Where it is.
        address: IpAddr,
    },
    /// The host is a number in a form that only some programs take for an address.
    #[error("`{0}` is not a host name")]
    Host(String),
    /// The machine has no certificate authorities, or the given ones cannot be read.
    #[error("{0}")]
    Trust(String),
    /// The certificate of the server is not trusted, or TLS failed otherwise.
    #[error("no secure connection: {0}")]
    Tls(String),
    /// The server sends to another place.
    #[error("the server redirects to {to} (HTTP {status}), which is not followed")]
    Redirect {
        /// The HTTP status.
        status: u16,
        /// Where to.
        to: String,
    },
    /// The server refuses.
    #[error("the server answers HTTP {0}")]
    Status(u16),
    /// The answer is larger than the limit, in bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// The answer was not complete in time.
    #[error("no complete answer within {}", crate::report::duration(*.0))]
    Deadline(Duration),
    /// Name resolution or the connection failed.
    #[error("{0}")]
    Network(String),
}

impl Failure {
    /// Whether it may pass by itself.
    pub fn is_transient(&self) -> bool {
        match self {
            Failure::Status(status) => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            Failure::Network(_) => true,
            _ => false,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Failure::Url(_) | Failure::Host(_) => "correct the URL",
            Failure::Address { .. } => {
                "name the host under `private_hosts` in config.yaml if it is one of your own"
            }
            Failure::Trust(_) => "install the package `ca-certificates`, or name a file with SSL_CERT_FILE",
            Failure::Tls(_) => {
                "if the server has a certificate of your own authority, name it with SSL_CERT_FILE"
            }
            Failure::Redirect { .. } => "give the URL that it redirects to",
            Failure::Status(401 | 403 | 404 | 410) => {
                "check the URL, and that it can be read without signing in"
            }
            Failure::Status(_) => "the server is not well; try again later",
            Failure::TooLarge(_) => "only text files belong here; check the URL",
            Failure::Deadline(_) | Failure::Network(_) => {
                "check the connection, HTTPS_PROXY and the host, then try again"
            }
        }
    }
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Self {
        use ureq::Error as E;
        match error {
            // The resolver's own refusals come through the library.
            E::Other(inner) => match inner.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(other) => Failure::Network(other.to_string()),
            },
            E::StatusCode(status) => Failure::Status(status),
            E::BadUri(why) => Failure::Url(why),
            E::Http(why) => Failure::Url(why.to_string()),
            E::RequireHttpsOnly(_) => Failure::Url("it is not https".to_owned()),
            E::Tls(why) => Failure::Tls(why.to_owned()),
            E::Rustls(why) => Failure::Tls(why.to_string()),
            E::BodyExceedsLimit(limit) => Failure::TooLarge(limit),
            E::HostNotFound => Failure::Network("the host was not found".to_owned()),
            E::Io(error) => io(&error),
            other => Failure::Network(other.to_string()),
        }
    }
}

/// TLS failures arrive as I/O errors that hold the real one.
fn io(error: &std::io::Error) -> Failure {
    if let Some(why) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return Failure::Tls(why.to_string());
    }
    let text = error.to_string();
    Failure::Network(text.split(" (os error").next().unwrap_or(&text).to_owned())
}
