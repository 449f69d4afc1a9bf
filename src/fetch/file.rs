//! Single files, over HTTPS.

use std::sync::{Arc, OnceLock};

use super::cache::{Cache, digest};
use crate::error::Code;
use crate::harness::remote::{Need, Object, Refusal};
use crate::http::{Client, Failure, Policy};

/// Where files come from; the client is made when it is first needed.
#[derive(Debug, Clone)]
pub(super) struct Source {
    private_hosts: Vec<String>,
    client: Arc<OnceLock<Result<Client, Failure>>>,
}

impl Source {
    pub(super) fn new(private_hosts: Vec<String>) -> Self {
        Self { private_hosts, client: Arc::default() }
    }

    /// Fetches a file into the cache. What has another digest is not kept. Blocks.
    pub(super) fn fetch(&self, need: &Need, cache: &Cache) -> Result<Object, Refusal> {
        let policy = || Policy { private_hosts: self.private_hosts.clone(), ..Policy::default() };
        let client = self.client.get_or_init(|| Client::new(policy()));
        let content = client
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|client| client.get(need.url.as_str()))
            .map_err(|failure| refusal(need, &failure))?;
        let found = digest(&content);
        if need.sha256.as_ref().is_some_and(|expected| *expected != found) {
            return Err(super::hash(need, &found, "what is behind"));
        }
        cache.store_file(need, &content).map_err(|error| super::disk(&error))
    }
}

/// A failure of the network at a URL.
pub(super) fn refusal(need: &Need, failure: &Failure) -> Refusal {
    let code = match failure {
        Failure::Address { .. } | Failure::Host(_) => Code::RemoteDenied,
        _ => Code::RemoteFetch,
    };
    Refusal { code, message: format!("{}: {failure}", need.url), help: failure.help().to_owned() }
}
