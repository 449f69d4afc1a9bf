//! Taking the results out: one command that lists, one rsync, then everything is judged on the host.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;

use super::agent_phase::Ran;
use super::artefacts;
use super::bootstrap::Bootstrapped;
use super::context::Cx;
use super::prepare::Prepared;
use crate::agent::runtime::Transcripts;
use crate::error::{Code, Error, Result};
use crate::import::{self, Delta, Import, Limits, Listing, StageInput};
use crate::plan::Plan;
use crate::plan::env::quote;
use crate::plan::layout::{HOME, Layout, OUTPUT_DIR, below_home};
use crate::remote::{Budget, FetchSpec};
use crate::report::bytes;
use crate::secrets::Registry;

/// How long results are still fetched after a cancel. GitHub kills a cancelled job 10 seconds after its INT.
const SALVAGE: Duration = Duration::from_secs(4);

/// How often collecting is tried while the connection, or a transfer over it, fails.
const ATTEMPTS: u32 = 2;

/// The status of the listing where a link stands in place of the repository: what lies behind it was never uploaded.
const REPLACED: i32 = 71;

/// What an iteration brought to the host.
#[derive(Debug)]
pub(super) struct Collected {
    /// Changes of a read-only repository, which are only reported.
    pub left_alone: usize,
    /// The repository's part.
    pub import: Option<Import>,
}

impl Collected {
    /// The staged repository, when there is one.
    pub(super) fn staged_dir(&self) -> Option<&Path> {
        self.import.as_ref().and_then(Import::dir)
    }
}

/// Collects one iteration; again when the connection failed. A cancel leaves it a few seconds, a second signal none.
#[expect(clippy::too_many_arguments, reason = "each is one thing that the phase reads")]
pub(super) async fn collect(
    cx: &Cx,
    prepared: &Prepared,
    sandbox: &mut Bootstrapped,
    n: u32,
    dir: &Path,
    tmp: &Path,
    ran: &Ran,
    secrets: &Registry,
) -> Result<Collected> {
    let incoming = |attempt: u32| tmp.join(format!("incoming-{n}-{attempt}"));
    let mut attempt = 1;
    let work = async {
        loop {
            let once =
                Once { cx, prepared, sandbox, n, dir, tmp, ran, secrets, incoming: &incoming(attempt) };
            match once.collect().await {
                Err(error) if attempt < ATTEMPTS && may_pass(&error) => {
                    cx.ui.warn(&format!("{}; trying again over a new connection", error.message()));
                    attempt += 1;
                    sandbox.session.reopen().await.map_err(|again| error.and(again))?;
                }
                done => return done,
            }
        }
    };
    let collected = cx.recorded("collect", salvaged(cx, work)).await;
    if collected.is_err() && cx.signals.first().is_some() && !cx.signals.urgent() {
        // There was no time for everything; what had arrived by then is worth more than nothing. A file that was
        // under way has the name that rsync gave it.
        let _ = take_artefacts(&prepared.plan, n, &incoming(attempt), dir, secrets);
    }
    collected
}

/// Whether the sandbox may still hold the results behind a connection that broke. A client that died can look like
/// a listing that failed: both end with status 1.
fn may_pass(error: &Error) -> bool {
    matches!(error.code(), Code::SshFailed | Code::TransferFailed | Code::ImportFailed)
}

/// One attempt.
struct Once<'a> {
    cx: &'a Cx,
    prepared: &'a Prepared,
    sandbox: &'a Bootstrapped,
    n: u32,
    dir: &'a Path,
    tmp: &'a Path,
    ran: &'a Ran,
    secrets: &'a Registry,
    /// A new directory for what arrives.
    incoming: &'a Path,
}

impl Once<'_> {
    async fn collect(&self) -> Result<(Collected, String)> {
        let Self { cx, prepared, sandbox, n, dir, tmp, ran, secrets, incoming } = *self;
        fs_err::create_dir(incoming)?;
        let answer = list(prepared, sandbox).await?;
        let (index, listing) = split(&answer)?;
        let limits = Limits::default();
        let after = Listing::parse(listing, &limits)?;
        let mut delta = import::diff(&sandbox.baseline, &after, &sandbox.manifest);
        let changed = delta.file_count() + delta.deleted.len() + delta.links.len();
        let mut left_alone = 0;
        if prepared.plan.harness.readonly_repo {
            left_alone = changed;
            delta = Delta::default();
        }
        // What is refused by name or size does not travel; the artefacts do.
        let refused = import::check_names(&delta, &after, &sandbox.manifest, &limits).err();
        if refused.is_some() {
            delta = Delta::default();
        }
        let fetched = fetch(prepared, sandbox, n, incoming, &delta, &limits).await?;
        take_artefacts(&prepared.plan, n, incoming, dir, secrets)?;
        if ran.tampered {
            // The artefacts are evidence; the repository of an agent that tampers is not taken over.
            return Ok((Collected { left_alone, import: None }, fetched));
        }
        if let Some(error) = refused {
            return Err(error);
        }
        let repo = incoming.join(below(&prepared.plan.layout.repo));
        fs_err::create_dir_all(&repo)?;
        let staged = import::stage(StageInput {
            repo: &prepared.world.repo,
            manifest: &sandbox.manifest,
            delta: &delta,
            after: &after,
            incoming: &repo,
            index,
            work_dir: tmp,
            run_id: &format!("{}-{n}", cx.id.id),
            limits: &limits,
            secrets,
            need_tree: needs_tree(&prepared.plan),
        })
        .await?;
        let import = Import::new(staged, Rc::clone(&sandbox.manifest));
        for note in import.notes() {
            cx.ui.warn(note);
        }
        Ok((Collected { left_alone, import: Some(import) }, format!("{changed} changed path(s), {fetched}")))
    }
}

/// Runs `work` to its end, but after a signal only for as long as the salvage may take.
async fn salvaged<T>(cx: &Cx, work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = async {
        let signal = cx.signals.wait(1).await;
        sleep(SALVAGE).await;
        signal
    };
    tokio::select! {
        biased;
        signal = cx.signals.wait(2) => Err(Error::cancelled(signal)),
        done = work => done,
        signal = late => Err(Error::cancelled(signal).help("the results could not be fetched in time")),
    }
}

/// Who reads the staged tree: the validation script and the post-script expect one even without a change.
fn needs_tree(plan: &Plan) -> bool {
    plan.post_script || plan.harness.validation.as_ref().is_some_and(|v| v.script.is_some())
}

/// The index as text, then the listing. The index goes to a file first, so that its length is known.
async fn list(prepared: &Prepared, sandbox: &Bootstrapped) -> Result<Vec<u8>> {
    let plan = &prepared.plan;
    let limits = Limits::default();
    let script = format!(
        "[ ! -L {repo} ] || exit {REPLACED}; cd {repo} || exit 70; x=$(mktemp) || exit 70; \
         if {ls} > \"$x\" 2>/dev/null; then printf 'index %d\\n' \"$(wc -c < \"$x\")\"; cat \"$x\"; else echo none; fi; \
         rm -f \"$x\"; {listing}",
        repo = quote(&plan.layout.repo),
        ls = import::index::LS_FILES,
        listing = import::listing::script(OsStr::new(&plan.layout.repo)).to_string_lossy(),
    );
    let output =
        sandbox.session.answer("collect", &script, plan.deadlines.collect, limits.listing_bytes).await?;
    if output.status.code() == Some(REPLACED) {
        return Err(Error::new(Code::ImportBlocked, "the agent replaced its repository by a link")
            .help("nothing was taken over; iteration-N/stream.jsonl has what the agent did"));
    }
    if !output.status.success() {
        return Err(Error::new(
            Code::ImportFailed,
            format!("the sandbox gave no listing: {}", output.status),
        )
        .detail(output.stderr_text())
        .help(
            "was the repository or its directory removed? iteration-N/stream.jsonl has what the agent did",
        ));
    }
    if output.stdout_truncated {
        return Err(Error::new(Code::ImportBlocked, "the sandbox has more files than can be listed")
            .help("nothing was taken over; see what the agent wrote in iteration-N/stream.jsonl"));
    }
    Ok(output.stdout)
}

/// Splits the answer of [`list`].
fn split(answer: &[u8]) -> Result<(Option<&[u8]>, &[u8])> {
    let bad = || {
        Error::new(Code::ImportBlocked, "the listing from the sandbox is malformed")
            .help("nothing was taken over; the image's find and git must be the ordinary ones")
    };
    let end = memchr::memchr(b'\n', answer).ok_or_else(bad)?;
    let (head, rest) = (&answer[..end], &answer[end + 1..]);
    if head == b"none" {
        return Ok((None, rest));
    }
    let length =
        head.strip_prefix(b"index ").and_then(|n| std::str::from_utf8(n).ok()?.parse::<usize>().ok());
    let length = length.ok_or_else(bad)?;
    if length > rest.len() {
        return Err(bad());
    }
    Ok((Some(&rest[..length]), &rest[length..]))
}

/// One rsync for everything: changed files of the repository, the output directory, transcripts, stderr.
async fn fetch(
    prepared: &Prepared,
    sandbox: &Bootstrapped,
    n: u32,
    incoming: &Path,
    delta: &Delta,
    limits: &Limits,
) -> Result<String> {
    let plan = &prepared.plan;
    let mut list: Vec<Vec<u8>> = vec![below(OUTPUT_DIR).into(), stderr_log(n).into()];
    list.extend(transcripts(plan).map(|t| below(t.dir).into()));
    let repo = below(&plan.layout.repo).as_bytes();
    list.extend(delta.files.keys().map(|path| [repo, b"/", path].concat()));
    list.extend(delta.git.fetch.iter().map(|path| [repo, b"/.git/", path].concat()));
    let fetched = sandbox
        .session
        .fetch(&FetchSpec {
            remote_dir: Path::new(HOME),
            local_dir: incoming,
            files: Some(&list),
            excludes: &[],
            budget: Budget { bytes: limits.bytes, inodes: limits.files as u64, time: plan.deadlines.collect },
        })
        .await?;
    if fetched.partial {
        return Err(Error::new(Code::TransferFailed, "some results could not be read in the sandbox")
            .detail(fetched.missing.join("\n"))
            .help(
                "the agent left files that it cannot read itself; nothing of the repository was taken over",
            ));
    }
    Ok(bytes(fetched.bytes))
}

fn transcripts(plan: &Plan) -> Option<Transcripts> {
    plan.harness.runtime.runtime().transcripts()
}

fn stderr_log(n: u32) -> String {
    format!("{}/stderr.log", below(&Layout::iteration(n)))
}

/// Takes all of them, also when one is refused.
fn take_artefacts(plan: &Plan, n: u32, incoming: &Path, dir: &Path, secrets: &Registry) -> Result<()> {
    let at = |path: &str| incoming.join(OsStr::from_bytes(path.as_bytes()));
    fs_err::create_dir_all(dir.join("output"))?;
    let mut parts = vec![(at(&stderr_log(n)), "stderr.log"), (at(below(OUTPUT_DIR)), "output")];
    parts.extend(transcripts(plan).map(|t| (at(below(t.dir)), "transcripts")));
    let mut taken = Ok(());
    for (from, name) in parts {
        let this = artefacts::take(&from, &dir.join(name), secrets);
        taken = taken.and(this);
    }
    taken
}

/// The path in what was fetched.
fn below(path: &str) -> &str {
    below_home(path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_split_by_its_length() {
        assert_eq!(split(b"index 3\na\nb\0rest").unwrap(), (Some(&b"a\nb"[..]), &b"\0rest"[..]));
        assert_eq!(split(b"none\n\0x").unwrap(), (None, &b"\0x"[..]));
        for bad in [&b"index 9\nabc"[..], b"index -1\n", b"index\n", b"", b"else\n"] {
            assert_eq!(split(bad).unwrap_err().code(), Code::ImportBlocked);
        }
    }
}
