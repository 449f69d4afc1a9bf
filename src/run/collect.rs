//! Taking the results out: one command that lists, one rsync, then everything is judged on the host.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;

use super::agent_phase::Ran;
use super::artefacts::{self, Room};
use super::bootstrap::Bootstrapped;
use super::context::Cx;
use super::export::export;
use super::keep;
use super::listing::{list, open_up, split};
use super::prepare::Prepared;
use crate::agent::runtime::Transcripts;
use crate::error::{Code, Error, Family, Result};
use crate::import::{self, Delta, Import, Limits, Listing, Nested, StageInput};
use crate::plan::layout::{HOME, HOOKS_DIR, Layout, OUTPUT_DIR, WORKSPACE, below_home};
use crate::plan::{Plan, Start};
use crate::remote::{Budget, FetchSpec};
use crate::report::bytes;
use crate::scan::hook::notes_file;
use crate::scan::hook::report::{self, Report};
use crate::secrets::Registry;

/// How long results are still fetched after a cancel. GitHub kills a cancelled job 10 seconds after its INT.
const SALVAGE: Duration = Duration::from_secs(4);

/// How much of output and transcripts is looked through for secrets after a cancel: about a second's worth.
const SALVAGE_BYTES: u64 = 128 << 20;

/// How often collecting is tried while the connection, or a transfer over it, fails.
const ATTEMPTS: u32 = 2;

/// What an iteration brought to the host.
#[derive(Debug)]
pub(super) struct Collected {
    /// Changes of a read-only repository, which are only reported.
    pub left_alone: usize,
    /// Links and special files of output and transcripts, which stay in the sandbox.
    pub left_out: Vec<String>,
    /// The repository's part.
    pub import: Option<Import>,
    /// What the hooks noted.
    pub hooks: Option<Report>,
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
    let taken = Cell::new(false);
    let work = async {
        loop {
            let once = Once {
                cx,
                prepared,
                sandbox,
                n,
                dir,
                tmp,
                ran,
                secrets,
                incoming: &incoming(attempt),
                taken: &taken,
            };
            match once.collect().await {
                Err(error) if attempt < ATTEMPTS && may_pass(&error) => {
                    cx.ui.warn(&format!("{}; trying again over a new connection", error.message()));
                    attempt += 1;
                    if let Err(again) = sandbox.session.reopen().await {
                        let why = [error.detail_text(), Some(again.message()), again.detail_text()];
                        let why = why.into_iter().flatten().collect::<Vec<_>>().join("\n");
                        return Err(error.detail(why));
                    }
                }
                // A connection that failed twice fails a third time.
                Err(error) if !taken.get() && error.code() != Code::SshFailed => {
                    let alone = incoming(ATTEMPTS + 1);
                    Once { incoming: &alone, ..once }.artefacts_alone(&error).await;
                    return Err(error);
                }
                done => return done,
            }
        }
    };
    let collected = cx.recorded("collect", salvaged(cx, work)).await;
    if collected.is_err() && !taken.get() && !cx.signals.urgent() {
        // There was no time for everything; what had arrived by then is worth more than nothing. A file that was
        // under way has the name that rsync gave it.
        let _ = take_artefacts(cx, &prepared.plan, n, &incoming(attempt), dir, secrets);
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
    /// Whether the artefacts are in the run directory.
    taken: &'a Cell<bool>,
}

impl Once<'_> {
    async fn collect(&self) -> Result<(Collected, String)> {
        let Self { cx, prepared, sandbox, n, dir, ran, secrets, incoming, taken, .. } = *self;
        fs_err::create_dir(incoming)?;
        export(cx, prepared, &sandbox.session, ran.watched.metrics.session.as_deref()).await;
        let answer = list(prepared, sandbox, n).await?;
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
        let mut nested = Nested::default();
        if refused.is_some() {
            nested = Nested::find(&delta, &after);
            let rest = nested.without(&delta);
            let good = import::check_names(&rest, &after, &sandbox.manifest, &limits).is_ok();
            delta = if good { rest } else { Delta::default() };
        }
        let fetched = fetch(prepared, sandbox, n, incoming, &delta, &limits).await?;
        taken.set(true);
        let hooks = hooks_report(&prepared.plan, incoming);
        take_artefacts(cx, &prepared.plan, n, incoming, dir, secrets)?;
        if let Some(missing) = &fetched.missing {
            return Err(Error::new(Code::TransferFailed, "some results could not be read in the sandbox")
                .detail(missing.as_str())
                .help("the agent left files that it cannot read itself; nothing of the repository was taken over"));
        }
        let left_out = self.left_out(&fetched);
        let fetched = bytes(fetched.bytes);
        if ran.tampered {
            // The artefacts are evidence; the repository of an agent that tampers is not taken over.
            return Ok((Collected { left_alone, left_out, import: None, hooks }, fetched));
        }
        let repo = incoming.join(below(&prepared.plan.layout.repo));
        fs_err::create_dir_all(&repo)?;
        if let Some(error) = refused {
            if delta.is_empty() {
                return Err(error);
            }
            let rest = self.stage(&delta, &after, index, &repo, false).await;
            return Err(keep::rest(cx, prepared, &nested, error, rest).await);
        }
        let import = self
            .stage(&delta, &after, index, &repo, needs_tree(&prepared.plan))
            .await
            .map_err(|error| self.keep_changed(&repo, error))?;
        for note in import.notes() {
            cx.ui.warn(note);
        }
        let note = format!("{changed} changed path(s), {fetched}");
        Ok((Collected { left_alone, left_out, import: Some(import), hooks }, note))
    }

    /// Builds the staged repository from what was fetched into `incoming`.
    async fn stage(
        &self,
        delta: &Delta,
        after: &Listing,
        index: Option<&[u8]>,
        incoming: &Path,
        need_tree: bool,
    ) -> Result<Import> {
        let Self { cx, prepared, sandbox, n, tmp, secrets, .. } = *self;
        let staged = import::stage(StageInput {
            repo: &prepared.world.repo,
            manifest: &sandbox.manifest,
            delta,
            after,
            incoming,
            index,
            work_dir: tmp,
            run_id: &format!("{}-{n}", cx.id.id),
            limits: &Limits::default(),
            secrets,
            need_tree,
        })
        .await?;
        Ok(Import::new(staged, Rc::clone(&sandbox.manifest)))
    }

    /// Says what of output and transcripts does not come: what a link shows is not the agent's to hand over.
    fn left_out(&self, arrived: &Arrived) -> Vec<String> {
        let workspace = format!("{}/", below(WORKSPACE));
        let names: Vec<String> =
            arrived.skipped.iter().map(|p| p.strip_prefix(&workspace).unwrap_or(p).to_owned()).collect();
        if let Some(first) = names.first() {
            let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
            self.cx.ui.warn(&format!(
                "links and special files are not handed over: {first}{more}; let the agent copy what a link shows"
            ));
        }
        names
    }

    /// The files that the agent changed, as they are, where this host (not what they are) kept them from being taken
    /// over: nobody has them any more once the sandbox is gone.
    fn keep_changed(&self, incoming: &Path, error: Error) -> Error {
        let to = self.dir.join("changed-files");
        if error.code().family() != Family::Infrastructure
            || incoming.read_dir().is_ok_and(|mut d| d.next().is_none())
        {
            return error;
        }
        let kept = artefacts::take(incoming, &to, self.secrets, &mut Room::unlimited());
        let help = error.help_text();
        match kept {
            Ok(()) => error.help(format!("{help}; the files that the agent changed are in {}", to.display())),
            Err(_) => error,
        }
    }

    /// Output, transcripts and stderr without the repository, whose part failed with `error`: what the agent made
    /// besides is not lost with it.
    async fn artefacts_alone(&self, error: &Error) {
        let Self { cx, prepared, sandbox, n, dir, secrets, incoming, .. } = *self;
        let work = async {
            fs_err::create_dir(incoming)?;
            fetch(prepared, sandbox, n, incoming, &Delta::default(), &Limits::default()).await
        };
        let fetched = work.await;
        // Also what a transfer left that did not come to its end.
        let taken = take_artefacts(cx, &prepared.plan, n, incoming, dir, secrets);
        self.taken.set(taken.is_ok() && fetched.is_ok());
        if let Err(other) = fetched.and(taken) {
            cx.ui.warn(&format!("after `{}`: output and transcripts: {}", error.code(), other.message()));
        }
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
    plan.post_script
        || plan.harness.validation.as_ref().is_some_and(|v| v.script.is_some() || v.escalate.is_some())
}

/// One rsync for everything: changed files of the repository, the output directory, transcripts, stderr.
async fn fetch(
    prepared: &Prepared,
    sandbox: &Bootstrapped,
    n: u32,
    incoming: &Path,
    delta: &Delta,
    limits: &Limits,
) -> Result<Arrived> {
    let plan = &prepared.plan;
    let mut list: Vec<Vec<u8>> = vec![below(OUTPUT_DIR).into(), stderr_log(n).into()];
    list.extend(transcripts(plan).map(|t| below(t.dir).into()));
    list.extend(debug_log(plan, n).map(|path| below(&path).into()));
    list.extend(plan.hooks.iter().map(|_| below(HOOKS_DIR).into()));
    let repo = below(&plan.layout.repo).as_bytes();
    list.extend(delta.files.keys().map(|path| [repo, b"/", path].concat()));
    list.extend(delta.git.fetch.iter().map(|path| [repo, b"/.git/", path].concat()));
    let spec = FetchSpec {
        remote_dir: Path::new(HOME),
        local_dir: incoming,
        files: Some(&list),
        excludes: &[],
        budget: Budget { bytes: limits.bytes, inodes: limits.files as u64, time: plan.deadlines.collect },
    };
    let mut fetched = sandbox.session.fetch(&spec).await?;
    if fetched.partial {
        open_up(prepared, sandbox).await?;
        fetched = sandbox.session.fetch(&spec).await?;
    }
    let missing = fetched.partial.then(|| fetched.missing.join("\n"));
    Ok(Arrived { bytes: fetched.bytes, skipped: fetched.skipped, missing })
}

/// What a transfer brought.
#[derive(Debug)]
struct Arrived {
    /// In all.
    bytes: u64,
    /// What is neither a file nor a directory.
    skipped: Vec<String>,
    /// What rsync said of the things that could not be read, where there are some.
    missing: Option<String>,
}

/// The largest notes of hooks that are read, in bytes.
const NOTES: u64 = 64 * 1024 * 1024;

/// What the hooks noted; nothing where there are none.
fn hooks_report(plan: &Plan, incoming: &Path) -> Option<Report> {
    plan.hooks.as_ref()?;
    let path = notes_file(&incoming.join(below(HOOKS_DIR)));
    let small = path.metadata().is_ok_and(|m| m.len() <= NOTES);
    Some(fs_err::read(path).ok().filter(|_| small).map(|text| report::read(&text)).unwrap_or_default())
}

pub(super) fn transcripts(plan: &Plan) -> Option<Transcripts> {
    plan.harness.runtime.runtime().transcripts()
}

/// The log of the agent program about itself, where it was asked for.
pub(super) fn debug_log(plan: &Plan, n: u32) -> Option<String> {
    let wanted = plan.harness.debug.is_some() && plan.harness.runtime.runtime().logs();
    wanted.then(|| Start::debug_log(n))
}

fn stderr_log(n: u32) -> String {
    format!("{}/stderr.log", below(&Layout::iteration(n)))
}

/// Takes all of them, also when one is refused.
fn take_artefacts(
    cx: &Cx,
    plan: &Plan,
    n: u32,
    incoming: &Path,
    dir: &Path,
    secrets: &Registry,
) -> Result<()> {
    let mut room = if cx.signals.first().is_some() { Room::of(SALVAGE_BYTES) } else { Room::unlimited() };
    let at = |path: &str| incoming.join(OsStr::from_bytes(path.as_bytes()));
    fs_err::create_dir_all(dir.join("output"))?;
    let mut parts = vec![(at(&stderr_log(n)), "stderr.log"), (at(below(OUTPUT_DIR)), "output")];
    parts.extend(transcripts(plan).map(|t| (at(below(t.dir)), "transcripts")));
    parts.extend(debug_log(plan, n).map(|path| (at(below(&path)), "agent-debug.log")));
    let mut taken = Ok(());
    for (from, name) in parts {
        let this = artefacts::take(&from, &dir.join(name), secrets, &mut room);
        taken = taken.and(this);
    }
    if let Some(first) = room.left_out.first() {
        let more = match room.left_out.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        cx.ui.warn(&format!(
            "after the cancel there was no time to look for secrets in {}{more}, so it was left out",
            first.display()
        ));
    }
    taken
}

/// The path in what was fetched.
fn below(path: &str) -> &str {
    below_home(path).unwrap_or(path)
}
