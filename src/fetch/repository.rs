//! Directories, from git repositories: only the wanted path of one revision is fetched and checked out.
//!
//! git makes the connection itself, so it is held to the same rules: https only, no redirects, no configuration of
//! the user or of the system, and the addresses that were checked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;

use super::cache::Cache;
use crate::error::Code;
use crate::harness::remote::{Need, Object, Refusal, Tree};
use crate::http;
use crate::process::{Command, Output};

/// How long one git command may take.
const DEADLINE: Duration = Duration::from_mins(2);
/// The most text of a listing.
const LISTING: usize = 4 * 1024 * 1024;

/// Fetches a directory into the cache. What has another digest is not kept.
pub(super) async fn fetch(need: &Need, cache: Arc<Cache>, hosts: &[String]) -> Result<Object, Refusal> {
    let tree = need.tree().ok_or_else(|| fail(need, "it is no directory of a repository"))?;
    let scratch = cache.scratch().map_err(|error| super::disk(&error))?;
    let git = Git {
        need,
        tree: &tree,
        dir: scratch.path(),
        options: options(need, &tree, hosts).await?,
        token: None,
    };
    git.run("init", &["init", "-q", "--template="]).await?;
    git.run("remote", &["remote", "add", "origin", tree.repository.as_str()]).await?;
    let pattern = format!("/{}/", tree.path);
    git.run("sparse-checkout", &["sparse-checkout", "set", "--no-cone", &pattern]).await?;
    let git = git.download().await?;
    git.look().await?;
    git.run("checkout", &["checkout", "-q", "--detach", "FETCH_HEAD"]).await?;
    let dir = scratch.path().join(&tree.path);
    if !dir.is_dir() {
        return Err(fail(need, &format!("the revision {} has no directory `{}`", tree.revision, tree.path)));
    }
    let asked = need.clone();
    super::blocking(move || {
        // It lives until the directory has been moved out of it.
        let _scratch = scratch;
        let files = super::cache::list(&dir).map_err(|error| fail(&asked, &error.to_string()))?;
        let found = super::cache::tree_digest(&files);
        if asked.sha256.as_ref().is_some_and(|expected| *expected != found) {
            return Err(super::hash(&asked, &found, "the directory"));
        }
        cache.store_tree(&asked, &dir).map_err(|error| super::disk(&error))
    })
    .await?
}

fn fail(need: &Need, why: &str) -> Refusal {
    Refusal {
        code: Code::RemoteFetch,
        message: format!("{} cannot be fetched: {why}", need.url),
        help: "check the URL, the revision and the connection, then try again".to_owned(),
    }
}

/// The settings of every call: those that hold git to the rules.
async fn options(need: &Need, tree: &Tree, hosts: &[String]) -> Result<Vec<String>, Refusal> {
    let (host, port) = (tree.repository.host().to_owned(), tree.repository.port());
    let (name, own) = (host.clone(), hosts.to_vec());
    let found = super::blocking(move || http::resolve(&name, port, &own)).await?;
    let mut options: Vec<String> = [
        "protocol.allow=never",
        "protocol.https.allow=always",
        "http.followRedirects=false",
        "http.lowSpeedLimit=1000",
        "http.lowSpeedTime=30",
        "credential.helper=",
        "core.hooksPath=/dev/null",
        "core.symlinks=false",
        "core.autocrlf=false",
        "core.fsmonitor=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "advice.detachedHead=false",
    ]
    .map(str::to_owned)
    .into();
    match found {
        // An address is where it is.
        Ok(_) if host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok() => {}
        Ok(addresses) => {
            let list: Vec<String> = addresses.iter().map(|address| curl_address(address.ip())).collect();
            options.push(format!("http.curloptResolve={host}:{port}:{}", list.join(",")));
        }
        // Where names are resolved by a proxy, there is no address to check.
        Err(http::Failure::Network(_)) if proxied() => {}
        Err(failure) => return Err(super::file::refusal(need, &failure)),
    }
    Ok(options)
}

/// curl wants brackets around IPv6 addresses.
fn curl_address(ip: std::net::IpAddr) -> String {
    if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }
}

fn proxied() -> bool {
    ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// git in a repository of its own.
struct Git<'g> {
    need: &'g Need,
    tree: &'g Tree,
    dir: &'g Path,
    options: Vec<String>,
    token: Option<String>,
}

impl Git<'_> {
    fn command(&self, what: &str, args: &[&str]) -> Command {
        let mut command = Command::new(format!("git {what}"), "git").env_clear();
        for key in [
            "PATH",
            "HOME",
            "TMPDIR",
            "https_proxy",
            "HTTPS_PROXY",
            "all_proxy",
            "ALL_PROXY",
            "no_proxy",
            "NO_PROXY",
        ] {
            if let Some(value) = std::env::var_os(key) {
                command = command.env(key, value);
            }
        }
        if let Some(file) = http::custom_authorities() {
            command = command.env("GIT_SSL_CAINFO", file);
        }
        if let Some(token) = &self.token {
            // In the environment, not in the arguments, which everybody on the machine can read.
            let basic = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{token}"));
            command = command
                .env("GIT_CONFIG_COUNT", "1")
                .env("GIT_CONFIG_KEY_0", "http.https://github.com/.extraHeader")
                .env("GIT_CONFIG_VALUE_0", format!("Authorization: Basic {basic}"));
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "/bin/false")
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            .args(self.options.iter().flat_map(|option| ["-c", option]))
            .args(args)
            .current_dir(self.dir)
            .deadline(DEADLINE)
            .keep_stdout(LISTING)
    }

    async fn output(&self, what: &str, args: &[&str]) -> Result<Output, Refusal> {
        self.command(what, args).output().await.map_err(|failure| fail(self.need, &failure.to_string()))
    }

    async fn run(&self, what: &str, args: &[&str]) -> Result<Vec<u8>, Refusal> {
        let output = self.output(what, args).await?;
        if output.status.success() { Ok(output.stdout) } else { Err(fail(self.need, &reason(&output))) }
    }

    /// Fetches the revision. A token of the environment is tried at github.com when it is asked for.
    async fn download(mut self) -> Result<Self, Refusal> {
        let args = [
            "fetch",
            "-q",
            "--depth",
            "1",
            "--filter=blob:none",
            "--no-tags",
            "origin",
            self.tree.revision.as_str(),
        ];
        let output = self.output("fetch", &args).await?;
        if output.status.success() {
            return Ok(self);
        }
        let token = ["GH_TOKEN", "GITHUB_TOKEN"].into_iter().find_map(|name| std::env::var(name).ok());
        let token = token.filter(|token| !token.is_empty() && self.tree.repository.host() == "github.com");
        if token.is_none() || !asks_for_credentials(&output.stderr_text()) {
            return Err(fail(self.need, &reason(&output)));
        }
        self.token = token;
        self.run("fetch", &args).await?;
        Ok(self)
    }

    /// Looks at what is in the directory before it is checked out: nothing but files.
    async fn look(&self) -> Result<(), Refusal> {
        let listing =
            self.run("ls-tree", &["ls-tree", "-r", "-z", "FETCH_HEAD", "--", &self.tree.path]).await?;
        let entries: Vec<&[u8]> = listing.split(|b| *b == 0).filter(|entry| !entry.is_empty()).collect();
        if entries.len() > super::cache::MAX_FILES {
            return Err(fail(self.need, &format!("it has more than {} files", super::cache::MAX_FILES)));
        }
        let odd = entries.iter().find(|entry| !entry.starts_with(b"100"));
        match odd {
            None => Ok(()),
            Some(entry) => {
                let name = entry.split(|b| *b == b'\t').next_back().unwrap_or_default();
                let name = String::from_utf8_lossy(name).escape_debug().to_string();
                Err(fail(self.need, &format!("`{name}` is a symbolic link or a submodule")))
            }
        }
    }
}

fn asks_for_credentials(stderr: &str) -> bool {
    [
        "could not read Username",
        "Authentication failed",
        "Repository not found",
        "terminal prompts disabled",
        "403",
    ]
    .iter()
    .any(|sign| stderr.contains(sign))
}

/// The line with which git says why.
fn reason(output: &Output) -> String {
    let text = output.stderr_text();
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.starts_with("fatal:")).or_else(|| lines().next_back());
    let line: String =
        line.unwrap_or("git said nothing").chars().filter(|c| !c.is_control()).take(300).collect();
    format!("git: {}", line.trim_start_matches("fatal: "))
}
