//! What the sandbox says that it has: the index of its repository and the listing of its files, in one answer.

use std::ffi::OsStr;

use super::bootstrap::Bootstrapped;
use super::collect::{debug_log, transcripts};
use super::prepare::Prepared;
use crate::error::{Code, Error, Result};
use crate::import::{self, Limits};
use crate::plan::env::quote;
use crate::plan::layout::{HOME, Layout, OUTPUT_DIR, RUNNER_DIR, SUPERVISOR, WORKSPACE};

/// The status of the listing where a link stands in place of the repository: what lies behind it was never uploaded.
const REPLACED: i32 = 71;

/// The index as text, then the listing. Once more after every directory and file was made readable, when an agent
/// took that right away from itself.
pub(super) async fn list(prepared: &Prepared, sandbox: &Bootstrapped, n: u32) -> Result<Vec<u8>> {
    match list_once(prepared, sandbox, n).await {
        Err(error) if error.code() == Code::ImportFailed => {
            open_up(prepared, sandbox).await?;
            list_once(prepared, sandbox, n).await
        }
        done => done,
    }
}

/// Makes what the agent leaves readable to itself. Whoever owns a file can do that, so only what is not the agent's
/// stays closed.
pub(super) async fn open_up(prepared: &Prepared, sandbox: &Bootstrapped) -> Result<()> {
    let plan = &prepared.plan;
    let transcripts = transcripts(plan).map_or("", |t| t.dir);
    let script = format!(
        "chmod u+rwx {HOME} {WORKSPACE} {RUNNER_DIR} 2>/dev/null; \
         find {repo} {OUTPUT_DIR} {transcripts} -type d ! -perm -500 -exec chmod u+rx {{}} \\; -o -type f ! -perm -400 \
         -exec chmod u+r {{}} \\; 2>/dev/null; true",
        repo = quote(&plan.layout.repo),
    );
    sandbox.session.exec("open up", &script, plan.deadlines.collect).await.map(drop)
}

/// How much of the log of the agent program is kept, in bytes; the end of it.
const DEBUG_BYTES: u64 = 16 << 20;

/// Shell text that shortens a log, and makes one where there is none: whatever is fetched has to be there.
fn cut(log: &str) -> String {
    format!(
        "[ -e {log} ] || [ -L {log} ] || : >{log}; if [ -f {log} ] && [ ! -L {log} ] && [ $(wc -c <{log}) -gt {DEBUG_BYTES} ]; then \
         tail -c {DEBUG_BYTES} {log} >{log}.end && mv -f {log}.end {log}; fi </dev/null; "
    )
}

/// The index goes to a file first, so that its length is known.
async fn list_once(prepared: &Prepared, sandbox: &Bootstrapped, n: u32) -> Result<Vec<u8>> {
    let plan = &prepared.plan;
    let limits = Limits::default();
    let script = format!(
        "sh {SUPERVISOR} settle {iteration} >/dev/null 2>&1; {cut}[ ! -L {repo} ] || exit {REPLACED}; cd {repo} || exit 70; x=$(mktemp) || exit 70; \
         if {ls} > \"$x\" 2>/dev/null; then printf 'index %d\\n' \"$(wc -c < \"$x\")\"; cat \"$x\"; else echo none; fi; \
         rm -f \"$x\"; {listing}",
        iteration = Layout::iteration(n),
        cut = debug_log(plan, n).map(|path| cut(&path)).unwrap_or_default(),
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
pub(super) fn split(answer: &[u8]) -> Result<(Option<&[u8]>, &[u8])> {
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
