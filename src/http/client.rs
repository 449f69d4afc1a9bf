//! The client: one policy, many requests.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Proxy};

use super::address::{check_host, checked_addresses};
use super::failure::Failure;
use super::trust;
use crate::process::scale;
use crate::secrets::Secret;

/// How long it may take until a server accepts a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The pause before the second attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(250);
/// The most addresses of one host that are tried.
const ADDRESSES: usize = 16;

/// What every request of a client keeps to.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Hosts, by name and without port, that may have private or loopback addresses.
    pub private_hosts: Vec<String>,
    /// Whether plain HTTP is allowed.
    pub plain_http: bool,
    /// How many redirects are followed; each is checked like the first URL.
    pub redirects: u32,
    /// The largest answer, in bytes.
    pub max_bytes: u64,
    /// The time for one request with all its attempts, name resolution to last byte.
    pub timeout: Duration,
    /// How often a request is tried when the failure may pass by itself; at least 1.
    pub attempts: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            private_hosts: Vec::new(),
            plain_http: false,
            redirects: 0,
            max_bytes: 10 * 1024 * 1024,
            timeout: Duration::from_secs(30),
            attempts: 3,
        }
    }
}

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `GET`, `POST` …; empty is `GET`.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Headers; values may be secret.
    pub headers: Vec<(String, Secret)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers, names in lower case. Values that are not text are left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A client. Cheap to clone; connections are kept between requests.
#[derive(Debug, Clone)]
pub struct Client {
    agent: Agent,
    policy: Policy,
}

impl Client {
    /// A client of this policy. Proxies come from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`; behind one the proxy
    /// resolves names, so only hosts that are addresses can be checked here.
    pub fn new(policy: Policy) -> Result<Self, Failure> {
        let resolver = Checked { private_hosts: policy.private_hosts.clone() };
        // Without TLS nobody needs to be trusted.
        let tls = if policy.plain_http { trust::config().unwrap_or_default() } else { trust::config()? };
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .https_only(!policy.plain_http)
            .max_redirects(policy.redirects)
            .max_redirects_will_error(false)
            .timeout_connect(Some(scale::limit(CONNECT)))
            .user_agent(concat!("fullsend/", env!("CARGO_PKG_VERSION")))
            .proxy(Proxy::try_from_env())
            .build();
        Ok(Self { agent: Agent::with_parts(config, DefaultConnector::default(), resolver), policy })
    }

    /// The body of `url`. Blocks.
    pub fn get(&self, url: &str) -> Result<Vec<u8>, Failure> {
        self.send(&Request { url: url.to_owned(), ..Request::default() }).map(|response| response.body)
    }

    /// Sends a request and reads the whole answer; any status but 2xx is a failure. Blocks for at most the policy's
    /// timeout. What is sent again must not do harm: give a policy with one attempt otherwise.
    pub fn send(&self, request: &Request) -> Result<Response, Failure> {
        let timeout = scale::limit(self.policy.timeout);
        let end = Instant::now() + timeout;
        let mut pause = PAUSE;
        let mut attempt = 1;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let failure = match self.once(request, left, timeout) {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let late = Instant::now() + pause >= end;
            if !failure.is_transient() || attempt >= self.policy.attempts || late {
                return Err(failure);
            }
            tracing::debug!(url = %request.url, %failure, attempt, "trying again");
            std::thread::sleep(pause);
            pause *= 2;
            attempt += 1;
        }
    }

    /// One attempt, within `limit`. An answer that refuses is an answer here, for callers who read what it says;
    /// only a redirect is a failure. Blocks.
    pub fn exchange(&self, request: &Request, limit: Duration) -> Result<Response, Failure> {
        self.answer(request, limit, limit)
    }

    fn once(&self, request: &Request, left: Duration, timeout: Duration) -> Result<Response, Failure> {
        match self.answer(request, left, timeout)? {
            Response { status, .. } if !(200..300).contains(&status) => Err(Failure::Status(status)),
            response => Ok(response),
        }
    }

    fn answer(&self, request: &Request, left: Duration, timeout: Duration) -> Result<Response, Failure> {
        let uri: Uri =
            request.url.parse().map_err(|e: ureq::http::uri::InvalidUri| Failure::Url(e.to_string()))?;
        check_host(uri.host().unwrap_or_default(), &self.policy.private_hosts)?;
        let late = |failure: ureq::Error| match failure {
            ureq::Error::Timeout(ureq::Timeout::Global | ureq::Timeout::PerCall) => {
                Failure::Deadline(timeout)
            }
            other => other.into(),
        };
        let method = if request.method.is_empty() { "GET" } else { &request.method };
        let mut builder = ureq::http::Request::builder().method(method).uri(uri);
        for (name, value) in &request.headers {
            builder = builder.header(name, value.expose());
        }
        let call = builder.body(request.body.clone()).map_err(|e| Failure::Url(e.to_string()))?;
        let call = self.agent.configure_request(call).timeout_global(Some(left)).build();
        let mut response = self.agent.run(call).map_err(late)?;
        let status = response.status().as_u16();
        let headers: Vec<(String, String)> = response
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
            .collect();
        if (300..400).contains(&status) {
            let to = headers.iter().find(|(name, _)| name == "location");
            let to = to.map_or_else(|| "an unnamed place".to_owned(), |(_, to)| to.clone());
            return Err(Failure::Redirect { status, to });
        }
        let body =
            response.body_mut().with_config().limit(self.policy.max_bytes).read_to_vec().map_err(late)?;
        Ok(Response { status, headers, body })
    }
}

/// Looks names up and refuses what is not public. The connection goes to the addresses that were checked.
#[derive(Debug)]
struct Checked {
    private_hosts: Vec<String>,
}

impl Resolver for Checked {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = ureq::unversioned::resolver::DefaultResolver::default().resolve(uri, config, timeout)?;
        // The user's own proxy may be anywhere.
        if config.proxy().is_some_and(|proxy| proxy.uri() == uri) {
            return Ok(found);
        }
        let host = uri.host().unwrap_or_default();
        let checked = checked_addresses(host, found.iter().copied(), &self.private_hosts)
            .map_err(|failure| ureq::Error::Other(Box::new(failure)))?;
        let mut out = self.empty();
        for address in checked.into_iter().take(ADDRESSES) {
            out.push(address);
        }
        Ok(out)
    }
}

/// The host of a URL, as [`Policy::private_hosts`] names it.
pub fn host(url: &str) -> Option<String> {
    url.parse::<Uri>().ok()?.host().map(str::to_owned)
}

/// The checked addresses of a host, for a program that makes the connection itself. Blocks.
pub fn resolve(host: &str, port: u16, private_hosts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    check_host(host, private_hosts)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port).to_socket_addrs().map_err(|e| Failure::Network(format!("{host}: {e}")))?;
    checked_addresses(host, found, private_hosts)
}
