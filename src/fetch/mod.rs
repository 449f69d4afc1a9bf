//! What a harness takes from elsewhere, on this machine: asks the cache, then the network, and loads again until
//! nothing is missing.
//!
//! The harness says what it needs ([`crate::harness::remote::Need`]); nothing here decides what may be read.

mod cache;
mod file;
mod lock;
mod repository;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Code, Error, Result};
use crate::harness::remote::{Attempt, Fetched, Form, Need, Object, Pinning, Refusal};

use cache::Cache;
pub use lock::{Outcome, lock};

/// How often something may be found missing before it is a bug: a chain of five bases, what they name, and room.
const ROUNDS: usize = 16;
/// How many things are fetched at once.
const PARALLEL: usize = 8;

/// Where things come from.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether only the cache may be used.
    pub offline: bool,
    /// The cache directory, when it is not the usual one.
    pub cache_dir: Option<PathBuf>,
}

/// Loads something, fetching what it needs.
///
/// # Errors
/// Those of `attempt`; what cannot be fetched is a problem at the place that names it.
pub async fn settle<T>(
    options: &Options,
    pinning: Pinning,
    mut attempt: impl FnMut(&Fetched) -> Attempt<T>,
) -> Result<T> {
    let mut have = BTreeMap::new();
    for _ in 0..ROUNDS {
        let fetched = Fetched { have: Arc::new(have.clone()), pinning };
        let Attempt { result, needs, private_hosts } = attempt(&fetched);
        if let Some(result) = result {
            return result;
        }
        let needs: Vec<Need> = needs.into_iter().filter(|need| !have.contains_key(need)).collect();
        if needs.is_empty() {
            return Err(Error::bug("loading waits for nothing"));
        }
        have.extend(obtain(options, needs, &private_hosts).await?);
    }
    Err(Error::new(Code::RemoteUrl, "what is fetched always names something more")
        .help("shorten the chain of bases"))
}

type Answers = Vec<(Need, std::result::Result<Object, Refusal>)>;

async fn obtain(options: &Options, needs: Vec<Need>, private_hosts: &[String]) -> Result<Answers> {
    let cache = Arc::new(Cache::open(options.cache_dir.as_deref())?);
    let mut answers = Vec::new();
    let mut waiting = needs.into_iter();
    let mut tasks = tokio::task::JoinSet::new();
    let mut source: Option<file::Source> = None;
    loop {
        while tasks.len() < PARALLEL
            && let Some(need) = waiting.next()
        {
            let (cache, hosts, offline) = (Arc::clone(&cache), private_hosts.to_vec(), options.offline);
            let source = source.get_or_insert_with(|| file::Source::new(hosts.clone())).clone();
            tasks.spawn(async move {
                let answer = one(cache, &need, offline, source, &hosts).await;
                (need, answer)
            });
        }
        match tasks.join_next().await {
            None => return Ok(answers),
            Some(answer) => answers.push(answer.map_err(|e| Error::bug(format!("fetching: {e}")))?),
        }
    }
}

/// One thing: the verified copy of the cache, else what is behind the URL now.
async fn one(
    cache: Arc<Cache>,
    need: &Need,
    offline: bool,
    source: file::Source,
    hosts: &[String],
) -> std::result::Result<Object, Refusal> {
    let (store, asked) = (Arc::clone(&cache), need.clone());
    let cached = blocking(move || store.find(&asked)).await?;
    let damaged = match cached {
        cache::Found::Verified(object) => return Ok(object),
        cache::Found::Missing => None,
        cache::Found::Damaged { found } => Some(found),
    };
    if offline {
        return Err(match damaged {
            Some(found) => hash(need, &found, "the copy in the cache of"),
            None => Refusal {
                code: Code::RemoteOffline,
                message: format!("{} is not in the cache, and --offline forbids to fetch it", need.url),
                help: "run once without --offline to fill the cache".to_owned(),
            },
        });
    }
    if damaged.is_some() {
        tracing::warn!(url = %need.url, "the copy in the cache was changed; it is fetched again");
    }
    let object = match need.form {
        Form::File => {
            let asked = need.clone();
            blocking(move || source.fetch(&asked, &cache)).await??
        }
        Form::Tree => repository::fetch(need, cache, hosts).await?,
    };
    Ok(object)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::result::Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Refusal {
        code: Code::Bug,
        message: format!("fetching: {error}"),
        help: "report it".to_owned(),
    })
}

/// What is there is not what should be there.
fn hash(need: &Need, found: &str, what: &str) -> Refusal {
    let expected = need.sha256.as_deref().unwrap_or_default();
    Refusal {
        code: Code::RemoteHash,
        message: format!("{what} {} is not what was pinned: expected sha256 {expected}, found {found}", need.url),
        help: "look at what changed; if it is wanted, pin it with `fullsend lock --update`, or change the `#sha256=` \
               of the URL"
            .to_owned(),
    }
}

/// The file system of the cache failed.
fn disk(error: &std::io::Error) -> Refusal {
    Refusal {
        code: Code::Io,
        message: format!("the cache cannot be used: {error}"),
        help: "free space there, or choose another directory with --cache-dir".to_owned(),
    }
}
