//! The security checks of a run: the scan of what goes in, the hooks' program, and what the hooks report.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::context::Cx;
use super::inputs;
use super::prepare::{EVENT_FILES, EVENT_TEXT, Prepared};
use crate::error::{Code, Error, Result};
use crate::harness::model::{FailMode, Harness, HostFile};
use crate::plan::Plan;
use crate::plan::files::Bytes;
use crate::plan::layout::RUNNER_DIR;
use crate::scan::allow::AllowFile;
use crate::scan::chain::{Action, Chain, Counts, Origin};
use crate::scan::elf::{self, Elf};
use crate::scan::hook::report::Report;
use crate::scan::sweep::Sweep;
use crate::scan::{Finding, Scanner, Scanners, Severity, payload};

/// How many findings the console shows.
const SHOWN: usize = 12;

/// What `run.json` says of it.
#[derive(Debug, Serialize)]
pub(super) struct SecurityRecord {
    enabled: bool,
    fail_mode: FailMode,
    findings: Counts,
    /// The digest of the last line of the record of findings.
    head: Option<String>,
    hooks: Option<HookCounts>,
}

/// What the hooks did, by their own word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct HookCounts {
    /// How often one ran before a tool call.
    pub before: u64,
    /// How often one ran after a tool call.
    pub after: u64,
    /// How many calls were denied.
    pub denied: u64,
}

impl SecurityRecord {
    pub(super) fn new(cx: &Cx, harness: &Harness, hooks: Option<HookCounts>) -> Self {
        let chain = cx.findings.borrow();
        Self {
            enabled: harness.security.enabled,
            fail_mode: harness.security.fail_mode,
            findings: chain.counts().clone(),
            head: chain.head().map(str::to_owned),
            hooks,
        }
    }
}

/// Scans everything that goes into the sandbox, before there is one.
pub(super) async fn scan(cx: &Cx, prepared: &Prepared) -> Result<()> {
    let harness = &prepared.plan.harness;
    if !harness.security.enabled {
        return Ok(());
    }
    cx.ui.group("scan");
    cx.phase("scan", async {
        let plan = prepared.plan.clone();
        let top = prepared.world.repo.top.clone();
        let run_dir = std::path::absolute(&cx.id.dir)?;
        let work = tokio::task::spawn_blocking(move || sweep(&plan, &run_dir, &top));
        let sweep = work.await.map_err(|e| Error::bug(format!("scanning: {e}")))??;
        let allow = harness
            .security
            .allow_file
            .as_ref()
            .map_or_else(|| Ok(AllowFile::default()), |p| AllowFile::read(p))?;
        let (known, findings): (Vec<_>, Vec<_>) =
            sweep.findings.iter().map(|f| redacted(cx, f)).partition(|f| allow.has(f));
        let worst = tell(cx, harness, &prepared.world.repo.top, &findings)?;
        let mut note = format!("{} text(s), {} finding(s)", sweep.texts, findings.len());
        if !known.is_empty() {
            let _ = write!(note, ", {} allowed", known.len());
        }
        match worst {
            Some(error) => Err(error),
            None => Ok(((), note)),
        }
    })
    .await
}

fn sweep(plan: &Plan, run_dir: &Path, top: &Path) -> Result<Sweep> {
    let on = plan.harness.security.scanners;
    let mut sweep = Sweep::default();
    for upload in inputs::uploads(plan, run_dir)?.iter().filter(|u| !u.dest.starts_with(RUNNER_DIR)) {
        for file in upload.expand()? {
            match &file.bytes {
                // Made by us, or expanded with secrets by the author's wish.
                Bytes::Text(_) => {}
                Bytes::Content(bytes) => sweep.bytes(&shown(plan, plan.harness.agent.as_str()), bytes, on),
                Bytes::Host(path) => {
                    let delivered = plan.harness.host_files.iter().any(|f: &HostFile| f.src == *path);
                    // A file that is delivered may well be a credential.
                    let on = Scanners { secrets: on.secrets && !delivered, ..on };
                    let made = path.as_std_path().strip_prefix(run_dir).ok();
                    let name = made.map_or_else(|| shown(plan, path.as_str()), |p| p.display().to_string());
                    sweep.file(&name, path.as_std_path(), on);
                }
            }
        }
    }
    sweep.repo(top, on);
    event(&mut sweep, on);
    Ok(sweep)
}

/// The event that started the job: what strangers wrote in it reaches the agent through scripts and variables.
fn event(sweep: &mut Sweep, on: Scanners) {
    let mut texts = Vec::new();
    for name in EVENT_FILES {
        let path = std::env::var_os(name).filter(|path| !path.is_empty());
        if let Some(text) = path.and_then(|path| std::fs::read_to_string(path).ok()) {
            texts.push((name, text));
        }
    }
    texts.extend(std::env::var(EVENT_TEXT).ok().filter(|t| !t.is_empty()).map(|t| (EVENT_TEXT, t)));
    for (name, text) in texts {
        for (field, text) in payload::texts(&text) {
            sweep.text(&format!("{name}#{field}"), &text, on);
        }
    }
}

fn shown(plan: &Plan, path: &str) -> String {
    path.strip_prefix(plan.harness.dir.as_str())
        .map_or(path, |below| below.trim_start_matches('/'))
        .to_owned()
}

/// Records and shows findings; the error when one stops the run.
fn tell(cx: &Cx, harness: &Harness, top: &Path, findings: &[Finding]) -> Result<Option<Error>> {
    let closed = harness.security.fail_mode == FailMode::Closed;
    let critical: Vec<&Finding> = findings.iter().filter(|f| f.hit.severity == Severity::Critical).collect();
    for finding in findings {
        let stops = closed && finding.hit.severity == Severity::Critical;
        let action = if stops { Action::Blocked } else { Action::Warned };
        cx.findings.borrow_mut().add(finding, Origin::Host, "scan", action)?;
    }
    let mut by_weight: Vec<&Finding> =
        findings.iter().filter(|f| f.hit.severity >= Severity::Medium).collect();
    by_weight.sort_by_key(|f| std::cmp::Reverse(f.hit.severity));
    for finding in by_weight.iter().take(SHOWN) {
        // GitHub shows it beside the line when the file is one of the repository.
        let placed = finding.hit.line > 0 && is_file_of(top, &finding.file);
        if placed {
            cx.ui.warn_at(&finding.file, finding.hit.line, &finding.rule(), &line(finding));
        } else {
            cx.ui.warn(&line(finding));
        }
    }
    if by_weight.len() > SHOWN {
        cx.ui.warn(&format!("{} more finding(s) in {}", by_weight.len() - SHOWN, crate::scan::chain::FILE));
    }
    if !closed || critical.is_empty() {
        return Ok(None);
    }
    let listed: Vec<String> = critical.iter().take(SHOWN).map(|f| line(f)).collect();
    let first = critical[0];
    let message = match critical.len() {
        1 => format!("{}: {}", first.place(), first.hit.message),
        more => format!("{more} critical findings, the first in {}: {}", first.place(), first.hit.message),
    };
    let allow = harness.dir.join(crate::scan::allow::DEFAULT);
    Ok(Some(Error::new(Code::ScanBlocked, message).detail(listed.join("\n")).help(format!(
        "remove what is named; what is harmless can be allowed by a line in {allow}, for example `{}`",
        first.fingerprint()
    ))))
}

/// Whether a name is that of a file in the repository.
fn is_file_of(top: &Path, name: &str) -> bool {
    top.join(name).symlink_metadata().is_ok_and(|m| m.is_file())
}

/// Without the known secrets of the run: a line of a file, or of a command, may hold one.
fn redacted(cx: &Cx, finding: &Finding) -> Finding {
    let mut finding = finding.clone();
    for text in [&mut finding.file, &mut finding.hit.message, &mut finding.hit.excerpt] {
        *text = cx.ui.redact(text);
    }
    finding
}

/// One finding in one line.
fn line(finding: &Finding) -> String {
    let excerpt = match finding.hit.excerpt.as_str() {
        "" => String::new(),
        text => format!(": {text}"),
    };
    format!(
        "{} {} [{} {}] {}{excerpt}",
        finding.place(),
        finding.hit.severity.as_str(),
        finding.rule(),
        finding.fingerprint(),
        finding.hit.message
    )
}

/// What a hook's program needs, read from its first bytes; an error where it cannot be used, unless hooks may fail.
pub(super) fn hook_program(plan: &Plan) -> Result<Option<Elf>> {
    let Some(hooks) = &plan.hooks else { return Ok(None) };
    let refuse = |why: String| match plan.harness.security.fail_mode {
        FailMode::Open => Ok(None),
        FailMode::Closed => Err(Error::new(Code::HooksFailed, why).help(HELP)),
    };
    let Some(binary) = &hooks.binary else {
        return refuse("there is no fullsend executable that could run in the sandbox".to_owned());
    };
    match head(binary.as_std_path()).map_err(|e| e.to_string()).and_then(|bytes| elf::parse(&bytes)) {
        Ok(elf) => Ok(Some(elf)),
        Err(why) => refuse(format!("{binary} cannot run in the sandbox: {why}")),
    }
}

const HELP: &str = "name a Linux executable of fullsend for the sandbox with --fullsend-binary (a static musl build \
                    runs in every image); `security: {fail_mode: open}` goes on without hooks, \
                    `security: {enabled: false}` switches them off";

fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(4 * 1024 * 1024).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What marks the lines of [`probe`] in the answer to the bootstrap.
pub(super) const MARK: &str = "hooks:";

/// The part of the bootstrap that plants the token and tries the hooks. `canary` is a plain word.
pub(super) fn probe(plan: &Plan, elf: Option<&Elf>, canary: &str) -> Vec<String> {
    use crate::plan::env::quote;
    use crate::plan::layout::{ENV_DIR, ENV_FILE, HOOKS_DIR};
    let Some(hooks) = &plan.hooks else { return Vec::new() };
    let loader = elf.and_then(|elf| elf.loader.as_deref()).unwrap_or("/");
    vec![
        format!("mkdir -p {HOOKS_DIR}"),
        format!(
            "printf 'export {}=%s\\n' {canary} > {ENV_DIR}/00-fullsend-canary.env",
            crate::scan::hook::CANARY_ENV
        ),
        format!("echo {MARK}machine=$(uname -m)"),
        format!("if [ -e {} ]; then echo {MARK}loader=yes; fi", quote(loader)),
        format!("echo {MARK}libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || true)"),
        // As the agent's CLI will start them: by a shell, in the agent's environment.
        format!(
            "if said=$( ( set +eu; . {ENV_FILE} >/dev/null; {} ) 2>&1 </dev/null ); then echo {MARK}work=yes; \
             else echo {MARK}said=$(printf %s \"$said\" | tail -n 1 | cut -c1-300); fi",
            hooks.self_test
        ),
    ]
}

/// Judges the answer: whether the hooks work in this sandbox.
pub(super) fn judge(plan: &Plan, elf: Option<&Elf>, answers: &[String]) -> Result<Option<String>> {
    let get = |key: &str| answers.iter().find_map(|a| a.strip_prefix(key)?.strip_prefix('='));
    if plan.hooks.is_none() || get("work") == Some("yes") {
        return Ok(None);
    }
    let libc = get("libc").and_then(|text| text.strip_prefix("glibc "));
    let misfit = elf.and_then(|elf| {
        elf::misfit(elf, get("machine").unwrap_or_default(), libc, get("loader") == Some("yes"))
    });
    let said = get("said").filter(|said| !said.is_empty()).unwrap_or("its self-test failed");
    let why = format!("fullsend's hooks cannot run in the sandbox: {}", misfit.as_deref().unwrap_or(said));
    match plan.harness.security.fail_mode {
        FailMode::Open => Ok(Some(why)),
        FailMode::Closed => Err(Error::new(Code::HooksFailed, why).detail(said).help(HELP)),
    }
}

/// Takes what the hooks report into the record, and says what of it counts against the run.
pub(super) fn take_report(
    cx: &Cx,
    plan: &Plan,
    report: &Report,
    calls: u64,
    counts: &mut HookCounts,
) -> Result<Vec<Error>> {
    counts.before += report.before;
    counts.after += report.after;
    counts.denied += report.denied;
    let findings: Vec<_> = report.findings.iter().map(|(f, action)| (redacted(cx, f), *action)).collect();
    for (finding, action) in &findings {
        cx.findings.borrow_mut().add(finding, Origin::Sandbox, "agent", *action)?;
    }
    for (finding, action) in findings.iter().filter(|(f, _)| f.hit.severity >= Severity::High).take(SHOWN) {
        let did = match action {
            Action::Denied => "denied",
            Action::Masked => "masked",
            Action::Blocked | Action::Warned => "seen",
        };
        cx.ui.warn(&format!("{did} by a hook: {}", line(finding)));
    }
    let mut failures = Vec::new();
    let ended =
        |(f, action): &(Finding, Action)| f.hit.scanner == Scanner::Secret && *action == Action::Denied;
    if findings.iter().any(ended) {
        let why = "a failed tool call showed a secret, and a hook ended the agent before the model saw it";
        failures.push(Error::new(Code::ToolBlocked, why).help(
            "give the secret to a provider, so that the sandbox has a placeholder; `fail_mode: open` lets the agent go on",
        ));
    }
    let closed = plan.harness.security.fail_mode == FailMode::Closed;
    if report.findings.iter().any(|(f, _)| f.hit.severity == Severity::Critical) {
        let error = Error::new(
            Code::ToolBlocked,
            "the agent tried to use the planted token; the call was denied",
        )
        .help("something that it read told it to collect credentials; iteration-N/stream.jsonl shows what");
        if closed {
            failures.push(error);
        } else {
            cx.ui.warn(error.message());
        }
    }
    if plan.hooks.is_some() && calls > 0 && report.before == 0 {
        let error = Error::new(Code::HooksFailed, "the agent used tools, but no hook ran").help(
            "its CLI may have ignored the settings; `iteration-N/stream.jsonl` has the calls and its version",
        );
        if closed {
            failures.push(error);
        } else {
            cx.ui.warn(error.message());
        }
    }
    Ok(failures)
}

/// A token that nobody has a use for.
pub(super) fn canary() -> Result<String> {
    use crate::openshell::names::RunId;
    Ok(format!("fsc-{}{}", RunId::random()?, RunId::random()?))
}

/// The record of a run.
pub(super) fn chain(dir: &Path) -> Chain {
    Chain::new(dir)
}
