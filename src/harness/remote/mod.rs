//! What a harness takes from elsewhere: which URLs it may name, which content each must have, and what has been
//! fetched.
//!
//! Loading stays pure: it looks a URL up in what is at hand ([`Fetched`]), and what is not there it notes as a
//! [`Need`]. Whoever loads fetches the needs and loads again, until there are none (`crate::fetch`).

mod allow;
pub(crate) mod lock;
mod rewrite;
mod url;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

pub(crate) use allow::{Allowed, prefix};
use lock::Lock;
pub(crate) use rewrite::absolute;
use url::Reference;
pub use url::{Tree, Url};
pub(crate) use url::{is_url, tree, without_fragment};

use super::check::{Kind, Named};
use super::problem::{Problem, Problems};
use super::reader::Text;
use super::source::Source;
use crate::error::Code;

/// What lies behind a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// One file.
    File,
    /// A directory of a git repository.
    Tree,
}

/// Something that must be at hand before a harness can be loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// Where it is.
    pub url: Url,
    /// What it is.
    pub form: Form,
    /// The SHA-256 that it must have; `None` only where a lock is being written.
    pub sha256: Option<String>,
}

impl Need {
    /// The directory of a repository that a [`Form::Tree`] is.
    pub fn tree(&self) -> Option<Tree> {
        tree(&self.url)
    }
}

/// Something at hand, its content verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The file or directory.
    pub path: Utf8PathBuf,
    /// The SHA-256 of the file, or of the directory's list of files.
    pub sha256: String,
    /// The files of a directory with their digests, sorted.
    pub files: Vec<(String, String)>,
}

/// Why something could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// What is wrong, with the URL.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// What to do about a URL whose content is not pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// Refuse it.
    #[default]
    Refuse,
    /// Take what is there, for a lock; what the lock has stays.
    Add,
    /// Take what is there, for a lock, also where the lock has something.
    Renew,
}

/// What is at hand.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    /// The answers to the needs so far.
    pub have: Arc<BTreeMap<Need, Result<Object, Refusal>>>,
    /// What to do about unpinned content.
    pub pinning: Pinning,
}

/// One try to load something.
#[derive(Debug)]
pub struct Attempt<T> {
    /// What came out; `None` when the needs have to be met first.
    pub result: Option<crate::Result<T>>,
    /// What is missing.
    pub needs: Vec<Need>,
    /// The hosts of `config.yaml` that may have private addresses.
    pub private_hosts: Vec<String>,
}

impl<T> Attempt<T> {
    /// What came out, where nothing may be fetched.
    pub(crate) fn offline(self) -> crate::Result<T> {
        let Self { result, needs, .. } = self;
        result.unwrap_or_else(|| {
            let mut problems = Problems::default();
            for need in needs {
                let message = format!("{} has not been fetched", need.url);
                problems
                    .push(Problem::error(Code::RemoteOffline, message).help("load it with a cache at hand"));
            }
            Err(crate::Error::problems(problems))
        })
    }
}

/// A URL that a harness uses, for its lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Used {
    pub(crate) url: String,
    pub(crate) form: Form,
    /// The key that names it.
    pub(crate) field: String,
    pub(crate) sha256: String,
    pub(crate) files: Vec<(String, String)>,
}

/// Who says that a URL is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    /// `config.yaml` alone: bases and harness files.
    Config,
    /// The harness too.
    Harness,
}

/// What loading one agent notes down.
#[derive(Debug, Default)]
struct Notes {
    needs: BTreeSet<Need>,
    used: BTreeSet<Used>,
    /// Where files of the cache came from.
    origins: BTreeMap<Utf8PathBuf, Url>,
    /// URLs that paths of a base became; the base's place vouches for them.
    inherited: BTreeSet<String>,
}

/// The view of one agent on what is elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remote {
    fetched: Fetched,
    lock: Rc<Lock>,
    org: Rc<Allowed>,
    agent: String,
    list: Rc<RefCell<Allowed>>,
    notes: Rc<RefCell<Notes>>,
}

impl Remote {
    pub(crate) fn new(fetched: &Fetched, lock: Lock, org: Allowed) -> Self {
        Self { fetched: fetched.clone(), lock: Rc::new(lock), org: Rc::new(org), ..Self::default() }
    }

    /// The view of another agent: its part of the lock, its list, its notes; needs are common.
    pub(crate) fn for_agent(&self, agent: &str) -> Self {
        let list = Rc::new(RefCell::new(Allowed::default()));
        Self { agent: agent.to_owned(), list, ..self.clone() }
    }

    /// Reads `allowed_remote_resources` of the agent's harness.
    pub(crate) fn allow(&self, entries: &[Text], source: &Source, problems: &mut Problems) {
        *self.list.borrow_mut() = Allowed::of_harness(entries, &self.org, source, problems);
    }

    /// What is missing.
    pub(crate) fn needs(&self) -> Vec<Need> {
        self.notes.borrow().needs.iter().cloned().collect()
    }

    /// What is used; empties the list.
    pub(crate) fn take_used(&self) -> Vec<Used> {
        std::mem::take(&mut self.notes.borrow_mut().used).into_iter().collect()
    }

    /// Where a file at hand came from.
    pub(crate) fn origin(&self, path: &Utf8Path) -> Option<Url> {
        self.notes.borrow().origins.get(path).cloned()
    }

    /// Says of a URL that it was a path of a harness that came from elsewhere.
    pub(crate) fn inherit(&self, url: String) {
        self.notes.borrow_mut().inherited.insert(url);
    }

    /// Names files of the cache in problems by where they came from.
    pub(crate) fn name_places(&self, problems: &mut Problems) {
        let notes = self.notes.borrow();
        if notes.origins.is_empty() {
            return;
        }
        for place in problems.0.iter_mut().filter_map(|problem| problem.place.as_mut()) {
            if let Some(url) = notes.origins.get(&place.file) {
                place.file = Utf8PathBuf::from(url.as_str());
            }
        }
    }

    /// The file or directory that a URL names. `None` without a new problem: it is noted as a need.
    pub(crate) fn check(
        &self,
        named: &Named<'_>,
        kind: Kind,
        authority: Authority,
        source: &Source,
        problems: &mut Problems,
    ) -> Option<Utf8PathBuf> {
        match self.find(named, kind, authority) {
            Ok(path) => path,
            Err(problem) => {
                problems.push(problem.at(Some(source.place(named.span.clone()))));
                None
            }
        }
    }

    fn find(
        &self,
        named: &Named<'_>,
        kind: Kind,
        authority: Authority,
    ) -> Result<Option<Utf8PathBuf>, Problem> {
        let Named { key, path: text, shown, free, .. } = named;
        if *free || text != shown && !self.notes.borrow().inherited.contains(*text) {
            return Err(Problem::error(Code::RemoteUrl, format!("`{key}` makes a URL of a variable"))
                .help("write the URL out: what is read must not depend on the environment"));
        }
        let Reference { url, sha256 } = Reference::parse(text).map_err(|(why, help)| {
            Problem::error(Code::RemoteUrl, format!("the URL of `{key}` cannot be used: {why}")).help(help)
        })?;
        self.authorise(&url, key, authority)?;
        // A script of a base finds the files beside it, so its directory comes along.
        let home = url.parent().filter(|home| {
            SCRIPTS.contains(key) && tree(home).is_some() && self.notes.borrow().inherited.contains(*text)
        });
        let (url, kind, inside) = match home {
            Some(home) => (home, Kind::Dir, Some(url.name().to_owned())),
            None => (url, kind, None),
        };
        let form = form_of(&url, kind, key)?;
        let need = Need { sha256: self.pin(&url, sha256, key)?, url, form };
        match self.fetched.have.get(&need) {
            None => {
                self.notes.borrow_mut().needs.insert(need);
                Ok(None)
            }
            Some(Err(Refusal { code, message, help })) => {
                Err(Problem::error(*code, message.clone()).help(help.clone()))
            }
            Some(Ok(object)) => {
                let path = inside.map_or_else(|| object.path.clone(), |name| object.path.join(name));
                if !path.exists() {
                    let message = format!("`{key}` names {text}, but {} has no such file", need.url);
                    return Err(
                        Problem::error(Code::FileMissing, message).help("correct the base, or the path")
                    );
                }
                let mut notes = self.notes.borrow_mut();
                notes.used.insert(Used {
                    url: need.url.as_str().to_owned(),
                    form,
                    field: (*key).to_owned(),
                    sha256: object.sha256.clone(),
                    files: object.files.clone(),
                });
                notes.origins.insert(object.path.clone(), need.url);
                Ok(Some(path))
            }
        }
    }

    /// The list of `config.yaml` allows it, and that of the harness where the harness itself names it.
    fn authorise(&self, url: &Url, key: &str, authority: Authority) -> Result<(), Problem> {
        let directory = url.as_str().rsplit_once('/').map_or(url.as_str(), |(directory, _)| directory);
        let denied = |whose: &str| {
            Problem::error(Code::RemoteDenied, format!("`{key}` names {url}, which {whose} does not allow"))
                .help(format!(
                    "add `{directory}/` or a shorter prefix to `allowed_remote_resources` of {whose}"
                ))
        };
        if !self.org.allows(url) {
            return Err(denied("config.yaml"));
        }
        let vouched = authority == Authority::Config || self.notes.borrow().inherited.contains(url.as_str());
        if vouched || self.list.borrow().allows(url) { Ok(()) } else { Err(denied("the harness")) }
    }

    /// The digest of the text, else of the lock.
    fn pin(&self, url: &Url, said: Option<String>, key: &str) -> Result<Option<String>, Problem> {
        if said.is_some() {
            return Ok(said);
        }
        let locked = self.lock.pin(&self.agent, url.as_str());
        match (self.fetched.pinning, locked) {
            (Pinning::Refuse, None) => {
                let agent = if self.agent.is_empty() { "AGENT" } else { &self.agent };
                Err(Problem::error(Code::RemoteUnpinned, format!("`{key}` names {url}, and nothing says what must be there"))
                    .help(format!("write its digest to lock.yaml with `fullsend lock {agent}`, or add `#sha256=…` to the URL")))
            }
            (Pinning::Renew, _) => Ok(None),
            (_, locked) => Ok(locked.map(str::to_owned)),
        }
    }
}

/// Keys that name scripts which run on the host.
const SCRIPTS: [&str; 3] = ["pre_script", "post_script", "validation_loop.script"];

/// A URL must be able to name what is looked for.
fn form_of(url: &Url, kind: Kind, key: &str) -> Result<Form, Problem> {
    let fail = |why: String, help: &str| Err(Problem::error(Code::RemoteUrl, why).help(help));
    match kind {
        Kind::Dir if tree(url).is_some() => Ok(Form::Tree),
        Kind::Dir => fail(
            format!("`{key}` names {url}, which is no directory of a repository"),
            "write https://HOST/OWNER/REPOSITORY/tree/COMMIT/PATH, or https://HOST/PROJECT/-/tree/COMMIT/PATH",
        ),
        Kind::File if url.name().is_empty() || url.path().ends_with('/') => {
            fail(format!("`{key}` names {url}, which is no file"), "add the name of the file")
        }
        Kind::File if url.host() == "github.com" && url.path().contains("/blob/") => fail(
            format!("`{key}` names {url}, which is a page about a file"),
            "give the file itself: https://raw.githubusercontent.com/OWNER/REPOSITORY/COMMIT/PATH",
        ),
        Kind::File => Ok(Form::File),
    }
}
