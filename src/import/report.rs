//! The change as files for people and tools: a patch and a bundle. They are what a run leaves that did not
//! succeed, and they are made in a scratch repository, so that no configuration has a say in them.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tokio::io::AsyncWriteExt as _;

use super::git;
use super::ops::Ops;
use super::quarantine;
use crate::error::{Code, Error, Result};
use crate::plan::repo::{HostRepo, Kind, Manifest, names};
use crate::process::{Stdin, scale};

/// `bytes` in the C quotes that git reads and writes.
pub(super) fn c_quoted(bytes: &[u8]) -> Vec<u8> {
    let mut out = String::from("\"");
    for b in bytes {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*b));
            }
            0x20..=0x7e => out.push(char::from(*b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out.into_bytes()
}

/// Writes `path`: `git diff --binary` from the host's files to the sandbox's, of the changed paths only.
pub(super) async fn patch(
    path: &Path,
    scratch: &Path,
    repo: &HostRepo,
    manifest: &Manifest,
    ops: &Ops,
    incoming: &Path,
) -> Result<()> {
    let _ = fs_err::remove_dir_all(scratch);
    quarantine::init(scratch, repo.object_format)?;
    feed(scratch, repo, manifest, ops, incoming).await?;
    let mut output = std::ffi::OsString::from("--output=");
    output.push(std::path::absolute(path).map_err(|e| Error::io("cannot write the patch", &e))?);
    let command = git::neutral("git diff", scratch, scratch)
        .args([
            "diff",
            "--binary",
            "--full-index",
            "--find-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        ])
        .args(["--src-prefix=a/", "--dst-prefix=b/"])
        .arg(output)
        .args(["refs/heads/old", "refs/heads/new"])
        .deadline(git::LONG);
    git::run(command).await?;
    if !path.is_file() {
        return Err(Error::new(Code::GitFailed, "git diff ended well and wrote no patch")
            .help("look at the git of this machine: another program of that name may be first on PATH"));
    }
    let _ = fs_err::remove_dir_all(scratch);
    Ok(())
}

/// Two commits by `git fast-import`, which takes any path and any bytes through its standard input.
async fn feed(
    scratch: &Path,
    repo: &HostRepo,
    manifest: &Manifest,
    ops: &Ops,
    incoming: &Path,
) -> Result<()> {
    let command = git::neutral("git fast-import", scratch, scratch)
        .args(["fast-import", "--quiet", "--done", "--date-format=raw"])
        .stdin(Stdin::Piped);
    let mut child = command.spawn()?;
    let failed = |e: &std::io::Error| Error::io("cannot hand the change to git", e);
    let Some(mut pipe) = child.stdin.take() else { return Err(Error::bug("a piped child has no stdin")) };
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let drain = tokio::spawn(async move {
        let mut text = Vec::new();
        if let Some(err) = err.as_mut() {
            let _ = tokio::io::AsyncReadExt::read_to_end(err, &mut text).await;
        }
        if let Some(out) = out.as_mut() {
            let _ = tokio::io::copy(out, &mut tokio::io::sink()).await;
        }
        text
    });
    let work = async move {
        pipe.write_all(&commit("old", None)).await?;
        let before = ops.writes.keys().chain(ops.links.keys()).map(Vec::as_slice);
        for path in before.chain(ops.removed()).chain(ops.modes().map(|(p, _)| p)) {
            match manifest.get(path).map(|e| (&e.kind, e.executable())) {
                Some((Kind::File, x)) => send_file(&mut pipe, path, &repo.top, x).await?,
                Some((Kind::Link(target), _)) => send(&mut pipe, "120000", path, target).await?,
                _ => {}
            }
        }
        pipe.write_all(&commit("new", Some("old"))).await?;
        for path in ops.removed() {
            pipe.write_all(&[b"D ", c_quoted(path).as_slice(), b"\n"].concat()).await?;
        }
        for (path, executable) in &ops.writes {
            send_file(&mut pipe, path, incoming, *executable).await?;
        }
        for (path, target) in &ops.links {
            send(&mut pipe, "120000", path, target).await?;
        }
        for (path, executable) in ops.modes() {
            send_file(&mut pipe, path, &repo.top, executable).await?;
        }
        pipe.write_all(b"done\n").await?;
        pipe.shutdown().await
    };
    // Both under one deadline: a git that does not read blocks the writing.
    let all = async {
        let written: std::io::Result<()> = work.await;
        (written, child.wait().await)
    };
    let (written, status) = tokio::time::timeout(scale::limit(git::LONG), all)
        .await
        .map_err(|_| Error::new(Code::GitFailed, "git fast-import did not end"))?;
    let status = status.map_err(|e| failed(&e))?;
    let stderr = drain.await.unwrap_or_default();
    if !status.success() {
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        return Err(
            Error::new(Code::GitFailed, format!("git fast-import ended with {status}")).detail(stderr)
        );
    }
    written.map_err(|e| failed(&e))
}

fn commit(branch: &str, from: Option<&str>) -> Vec<u8> {
    let from = from.map(|f| format!("from refs/heads/{f}\n")).unwrap_or_default();
    format!("commit refs/heads/{branch}\ncommitter fullsend <fullsend@localhost> 0 +0000\ndata 0\n{from}")
        .into_bytes()
}

type Pipe = tokio::process::ChildStdin;

async fn send(pipe: &mut Pipe, mode: &str, path: &[u8], content: &[u8]) -> std::io::Result<()> {
    head(pipe, mode, path, content.len() as u64).await?;
    pipe.write_all(content).await?;
    pipe.write_all(b"\n").await
}

async fn head(pipe: &mut Pipe, mode: &str, path: &[u8], size: u64) -> std::io::Result<()> {
    let mut line = format!("M {mode} inline ").into_bytes();
    line.extend(c_quoted(path));
    line.extend(format!("\ndata {size}\n").bytes());
    pipe.write_all(&line).await
}

async fn send_file(pipe: &mut Pipe, path: &[u8], top: &Path, executable: bool) -> std::io::Result<()> {
    let mode = if executable { "100755" } else { "100644" };
    let file = tokio::fs::File::open(top.join(names::as_path(path))).await?;
    let size = file.metadata().await?.len();
    head(pipe, mode, path, size).await?;
    let copied = tokio::io::copy(&mut tokio::io::AsyncReadExt::take(file, size), pipe).await?;
    if copied != size {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    pipe.write_all(b"\n").await
}

/// A directory that only its owner may enter.
pub(super) fn private_dir(path: &Path) -> Result<()> {
    fs_err::create_dir_all(path).map_err(|e| Error::io("cannot make a directory", &e))?;
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o700))
        .map_err(|e| Error::io("cannot make a directory private", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_those_of_git() {
        assert_eq!(c_quoted(b"a b\"\\\n\xff"), b"\"a b\\\"\\\\\\012\\377\"");
    }
}
