//! Filling the sandbox: one archive, one scp, one command that unpacks, checks and lists.

use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;

use super::check_program;
use super::context::Cx;
use super::pack::Packed;
use super::prepare::Prepared;
use super::provision::Provisioned;
use super::{security, squeeze};
use crate::error::{Code, Error, Result};
use crate::import::listing;
use crate::import::{Limits, Listing, check_arrived};
use crate::plan::Plan;
use crate::plan::env::quote;

use crate::plan::layout::{
    ARCHIVE, CONFIG_DIR, ENV_DIR, ENV_FILE, HOME, HOOK_PROGRAM, OLD_WORKSPACE, OUTPUT_DIR, PRISTINE,
    RUNNER_DIR, WORKSPACE,
};
use crate::plan::repo::Manifest;
use crate::remote::Session;

/// A sandbox that is ready for the agent.
#[derive(Debug)]
pub(super) struct Bootstrapped {
    /// The connection.
    pub session: Session,
    /// The repository as it was packed.
    pub manifest: Rc<Manifest>,
    /// The version of the agent's program, where it was asked for.
    pub agent_version: Option<String>,
    /// The repository as the sandbox had it before the agent.
    pub baseline: Listing,
}

/// The largest answer that is read, in bytes: about a million files.
const ANSWER_LIMIT: usize = 256 * 1024 * 1024;

/// Moves the archive in and prepares everything.
pub(super) async fn bootstrap(
    cx: &Cx,
    prepared: &Prepared,
    provisioned: Provisioned,
) -> Result<Bootstrapped> {
    let note = provisioned.note();
    cx.phase("bootstrap", async {
        let Provisioned { mut session, packed, manifest, .. } = provisioned;
        let plan = &prepared.plan;
        session.push(&packed.archive, Path::new(ARCHIVE), plan.deadlines.bootstrap).await?;
        let _ = std::fs::remove_file(&packed.archive);
        let elf = prepared.world.hook_needs.as_ref();
        let mut probes = security::probe(plan, elf, &security::canary()?);
        probes.extend(check_program::probe(plan));
        let script = script(plan, &packed, &probes);
        let output = session.answer("bootstrap", &script, plan.deadlines.bootstrap, ANSWER_LIMIT).await?;
        if !output.status.success() {
            return Err(Error::new(Code::BootstrapFailed, format!("the sandbox could not be filled: {}", output.status))
                .detail(output.stderr_text())
                .help("the image needs bash, GNU tar and GNU find, and /sandbox must be writable with room for the repository"));
        }
        let (baseline, hooks, agent_version) = read_answer(&output.stdout, output.stdout_truncated, plan)?;
        let judged = security::judge(plan, elf, &hooks)?;
        for warning in judged.into_iter().chain(check_program::warning(&hooks)) {
            cx.ui.warn(&warning);
        }
        check_arrived(&baseline, &manifest)?;
        Ok((Bootstrapped { session, manifest: Rc::new(manifest), agent_version, baseline }, note))
    })
    .await
}

/// The name and the address of an agent's commits where nobody has said others. `.invalid` is nobody's (RFC 2606).
const COMMITTER: (&str, &str) = ("fullsend agent", "agent@fullsend.invalid");

/// What marks the line with the version of the agent's program.
const VERSION: &str = "version:";

/// The command. Its answer: a line per missing program, a blank line, the listing.
fn script(plan: &Plan, packed: &Packed, hooks: &[String]) -> String {
    let size = packed.size;
    let repo = quote(&plan.layout.repo);
    let transcripts = plan.harness.runtime.runtime().transcripts().map_or("", |t| t.dir);
    let mut lines = vec![
        "set -eu; umask 022".to_owned(),
        format!(
            "have=$(wc -c < {ARCHIVE} 2>/dev/null || echo 0); [ \"$have\" -eq {size} ] || {{ echo \"the archive arrived with $have of {size} bytes\" >&2; exit 70; }}"
        ),
        format!("mkdir -p {WORKSPACE}/bin {ENV_DIR} {OUTPUT_DIR} {RUNNER_DIR} {CONFIG_DIR} {transcripts}"),
        format!("cd {HOME}; tar -xpf {ARCHIVE} --no-same-owner; rm -f {ARCHIVE}"),
    ];
    if plan.layout.old_workspace {
        lines.insert(3, format!("[ -e {OLD_WORKSPACE} ] || ln -s {WORKSPACE} {OLD_WORKSPACE}"));
    }
    for (from, to) in &packed.moves {
        let to = quote(to);
        lines.push(format!("mkdir -p \"$(dirname {to})\"; mv -f {} {to}", quote(from)));
    }
    lines.extend(packed.squeezed.then(squeeze::unpack));
    // What is unpacked by a program of its own says itself whether that went well.
    let as_is = |dest: &str| !packed.squeezed || dest != HOOK_PROGRAM;
    let outside = packed.files.iter().filter(|f| f.size > 0 && as_is(&f.dest)).map(|f| {
        let dest = quote(&f.dest);
        format!("[ -s {dest} ] || {{ echo \"\"{dest}\" did not arrive\" >&2; exit 70; }}")
    });
    lines.extend(outside);
    if plan.harness.readonly_repo {
        lines.push(format!("find {repo} -path {repo}/.git -prune -o ! -type l -exec chmod a-w {{}} +"));
    }
    if plan.resets() {
        lines.push(format!("cp -a {repo} {PRISTINE}"));
    }
    let programs = plan.programs.iter().map(|p| quote(p)).collect::<Vec<_>>().join(" ");
    lines.push(format!(
        "( set +eu; . {ENV_FILE} >/dev/null; for p in rsync {programs}; do \
         command -v \"$p\" >/dev/null || echo \"$p\"; done )"
    ));
    lines.push(identity());
    let runtime = plan.harness.runtime.runtime();
    lines.extend(runtime.instructions(&repo));
    // A program that hangs is the agent's to show.
    lines.extend(runtime.version().map(|command| {
        format!(
            "( set +eu; . {ENV_FILE} >/dev/null; timeout 20 {command} </dev/null 2>/dev/null | head -n 1 | cut -c1-100 | \
             sed 's/^/{VERSION}/' )"
        )
    }));
    lines.extend_from_slice(hooks);
    lines.push("echo".to_owned());
    lines.push(listing::script(OsStr::new(&plan.layout.repo)).to_string_lossy().into_owned());
    lines.join("\n")
}

/// Who commits where nobody has said it. Git's own configuration of the user is read after that of the system and before
/// that of a repository, and variables beat all of them: what the repository, the image or the harness says stays. Git
/// itself is asked, so that every place counts where it may stand; outside of the checkout, since an agent also commits in
/// repositories that it clones.
fn identity() -> String {
    let default =
        |key: &str, value: &str| format!("git config {key} || git config --global {key} {}", quote(value));
    format!(
        "( set +eu; . {ENV_FILE}; cd / && {{ {}; {}; }} ) </dev/null >/dev/null 2>&1 || true",
        default("user.name", COMMITTER.0),
        default("user.email", COMMITTER.1),
    )
}

/// The listing, what the sandbox said of the hooks, and the version of the agent's program.
fn read_answer(
    answer: &[u8],
    truncated: bool,
    plan: &Plan,
) -> Result<(Listing, Vec<String>, Option<String>)> {
    if truncated {
        return Err(Error::new(Code::BootstrapFailed, "the repository has too many files to list")
            .help("leave some out with `upload.exclude` in the harness"));
    }
    let (mut missing, mut hooks, mut version) = (Vec::new(), Vec::new(), None);
    let mut rest = answer;
    loop {
        let Some(end) = memchr::memchr(b'\n', rest) else {
            return Err(Error::new(
                Code::BootstrapFailed,
                "the bootstrap command in the sandbox gave no listing",
            )
            .help("the image's login shell must run commands of ssh and pass their output on"));
        };
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        if let Some(about) = line.strip_prefix(security::MARK) {
            hooks.push(about.to_owned());
        } else if let Some(said) = line.strip_prefix(VERSION) {
            version = number(said);
        } else {
            missing.push(line);
        }
    }
    if !missing.is_empty() {
        let place = if plan.local {
            "install it on this machine; with --local, `--local-bind <install prefix>` shows a program that is \
             outside the system directories"
        } else {
            "add it to the image, or choose another with --image"
        };
        return Err(Error::new(
            Code::ImageLacks,
            format!("not found in the sandbox: {}", missing.join(", ")),
        )
        .help(place));
    }
    Ok((Listing::parse(rest, &Limits::default())?, hooks, version))
}

/// `0.171.0` of `codex-cli 0.171.0`: the first word that begins with a digit.
fn number(said: &str) -> Option<String> {
    said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}
