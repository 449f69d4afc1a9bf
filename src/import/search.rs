//! Secrets of this run in what came back: in files, names and link targets of the working tree, in names of
//! refs, and in every new object of git, decompressed. What the host has already does not count.

use std::path::Path;

use super::git;
use super::limits::{Limits, Refusals};
use super::refs::RefUpdate;
use crate::error::{Code, Error, Result};
use crate::plan::repo::{HostRepo, names};
use crate::process::{Stdin, Stream};
use crate::secrets::{Registry, Searcher};

/// What has been found, in words.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    fn finish(self) -> Result<()> {
        let Some(first) = self.0.first() else { return Ok(()) };
        Err(Error::new(Code::SecretFound, format!("a secret of this run is in {first}"))
            .detail(self.0.iter().take(100).map(String::as_str).collect::<Vec<_>>().join("\n"))
            .help("nothing was taken over; revoke the credential if the sandbox could send it elsewhere"))
    }
}

/// Searches what is new in the working tree: contents of `files`, and every name and link target.
///
/// # Errors
/// [`Code::SecretFound`].
pub(super) fn working_tree<'a>(
    incoming: &Path,
    host: &Path,
    files: impl IntoIterator<Item = &'a [u8]>,
    texts: impl IntoIterator<Item = &'a [u8]>,
    secrets: &Registry,
) -> Result<()> {
    let mut findings = Findings::default();
    if secrets.values().is_empty() {
        return Ok(());
    }
    for path in files {
        let file = incoming.join(names::as_path(path));
        if in_file(&file, secrets)? && !in_file(&host.join(names::as_path(path)), secrets).unwrap_or(false) {
            findings.0.push(format!("the file {}", names::shown(path)));
        }
    }
    for text in texts {
        if secrets.is_in(text) {
            findings.0.push(format!("the name or link {}", names::shown(text)));
        }
    }
    findings.finish()
}

/// The secrets without those that stand in files which git tracks in the host's checkout: whoever may read the
/// repository knows them. A file that git ignores says nothing of the kind.
pub(super) async fn untracked(repo: &HostRepo, secrets: &Registry) -> Result<Registry> {
    let command = git::neutral("git ls-files", &repo.git_dir, &repo.top).args(["ls-files", "-z"]);
    let list = git::run(command).await?;
    let mut left: Vec<_> = secrets.values().iter().map(|v| (v.clone(), Registry::new([v]))).collect();
    for path in list.split(|b| *b == 0).filter(|p| !p.is_empty()) {
        let file = repo.top.join(names::as_path(path));
        if !std::fs::symlink_metadata(&file).is_ok_and(|m| m.is_file()) {
            continue;
        }
        if !in_file(&file, secrets).unwrap_or(false) {
            continue;
        }
        left.retain(|(_, alone)| !in_file(&file, alone).unwrap_or(false));
    }
    Ok(Registry::new(left.iter().map(|(value, _)| value)))
}

/// Whether a file holds a secret; one that is not there does not.
fn in_file(path: &Path, secrets: &Registry) -> Result<bool> {
    use std::io::Read as _;
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(Error::io("cannot read what the sandbox returned", &e)),
    };
    let mut searcher = Searcher::new(secrets);
    let mut buf = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buf) {
            Ok(0) => return Ok(false),
            Ok(n) if searcher.push(&buf[..n]) => return Ok(true),
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("cannot read what the sandbox returned", &e)),
        }
    }
}

/// Searches the names of refs and the objects that `tips` reach and no ref of the host does. The objects are
/// in `git_dir` by now, so git has hashed them: what is searched is what would enter.
///
/// # Errors
/// [`Code::SecretFound`]; [`Code::ImportBlocked`] when they unpack to more than a budget.
pub(super) async fn objects(
    git_dir: &Path,
    top: &Path,
    repo: &HostRepo,
    tips: impl IntoIterator<Item = &crate::plan::repo::Oid>,
    refs: &RefUpdate,
    limits: &Limits,
    secrets: &Registry,
) -> Result<()> {
    let mut findings = Findings::default();
    if secrets.values().is_empty() {
        return Ok(());
    }
    for change in refs.refs.iter().filter(|c| secrets.is_in(&c.name)) {
        findings.0.push(format!("the name of {}", names::shown(&change.name)));
    }
    let new = new_objects(git_dir, top, repo, tips).await?;
    let oids: Vec<u8> = new.iter().flat_map(|(oid, _)| [oid.as_slice(), b"\n"].concat()).collect();
    within_budget(git_dir, top, &oids, limits).await?;
    let mut reader = BatchReader::new(secrets);
    let command = git::neutral("git cat-file", git_dir, top)
        .args(["cat-file", "--batch", "--buffer"])
        .deadline(git::LONG)
        .keep_stdout(0)
        .stdin(Stdin::Bytes(oids));
    let output = command
        .stream(|stream, chunk| {
            if stream == Stream::Stdout {
                reader.push(chunk);
            }
        })
        .await?;
    if !output.status.success() || reader.broken || reader.seen != new.len() {
        return Err(git::failed("git cat-file", &output));
    }
    if reader.found.is_empty() {
        return findings.finish();
    }
    let known = known_objects(repo, &reader.found).await?;
    for (oid, kind) in reader.found.iter().filter(|(oid, _)| !known.contains(oid)) {
        let path = new.iter().find(|(o, _)| o == oid).map_or(&b""[..], |(_, path)| path);
        let old = repo.top.join(names::as_path(path));
        // An edit of a file in which the host has it already.
        if kind == "blob" && !path.is_empty() && in_file(&old, secrets).unwrap_or(false) {
            continue;
        }
        let place = if path.is_empty() { String::new() } else { format!(" ({})", names::shown(path)) };
        findings.0.push(format!("the {kind} {}{place}", String::from_utf8_lossy(oid)));
    }
    findings.finish()
}

/// Names of objects, each with the path that led to it.
type Named = Vec<(Vec<u8>, Vec<u8>)>;

async fn new_objects(
    git_dir: &Path,
    top: &Path,
    repo: &HostRepo,
    tips: impl IntoIterator<Item = &crate::plan::repo::Oid>,
) -> Result<Named> {
    let new = tips.into_iter().map(|oid| format!("{oid}\n"));
    let old = repo.refs.refs.values().chain(repo.head.oid()).map(|oid| format!("^{oid}\n"));
    let input: String = new.chain(old).collect();
    let command = git::neutral("git rev-list", git_dir, top)
        .args(["rev-list", "--objects", "--ignore-missing", "--stdin"])
        .deadline(git::LONG)
        .stdin(Stdin::Bytes(input.into_bytes()));
    let list = git::run(command).await?;
    let lines = list.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    Ok(lines
        .map(|line| {
            let end = memchr::memchr(b' ', line).unwrap_or(line.len());
            (line[..end].to_vec(), line.get(end + 1..).unwrap_or_default().to_vec())
        })
        .collect())
}

/// A few kilobytes can unpack to a full disk's worth: nothing is read before the sizes are known.
async fn within_budget(git_dir: &Path, top: &Path, oids: &[u8], limits: &Limits) -> Result<()> {
    let command = git::neutral("git cat-file", git_dir, top)
        .args(["cat-file", "--batch-check=%(objectsize)", "--buffer"])
        .deadline(git::LONG)
        .stdin(Stdin::Bytes(oids.to_vec()));
    let sizes = git::run(command).await?;
    let sizes = sizes.split(|b| *b == b'\n').filter_map(|l| std::str::from_utf8(l).ok()?.parse::<u64>().ok());
    let total = sizes.fold(0_u64, u64::saturating_add);
    let mut refusals = Refusals::default();
    if total > limits.bytes {
        refusals.say(format!("its git objects unpack to {total} bytes, more than {}", limits.bytes));
    }
    refusals.finish()
}

/// Which of the objects the host's repository has.
async fn known_objects(repo: &HostRepo, found: &[(Vec<u8>, String)]) -> Result<Vec<Vec<u8>>> {
    let input = found.iter().flat_map(|(oid, _)| [oid.as_slice(), b"\n"].concat()).collect();
    let command = git::neutral("git cat-file", &repo.git_dir, &repo.top)
        .args(["cat-file", "--batch-check=%(objectname)", "--buffer"])
        .stdin(Stdin::Bytes(input));
    let answer = git::run(command).await?;
    // `<oid> missing` is the answer for one that is not there.
    Ok(answer.split(|b| *b == b'\n').filter(|l| !l.contains(&b' ')).map(<[u8]>::to_vec).collect())
}

/// Reads what `git cat-file --batch` prints: `<oid> <type> <size>`, the content, a newline; again and again.
#[derive(Debug)]
struct BatchReader<'a> {
    secrets: &'a Registry,
    head: Vec<u8>,
    /// Bytes of the current object and its newline that are still to come.
    left: u64,
    searcher: Searcher,
    hit: bool,
    current: (Vec<u8>, String),
    found: Vec<(Vec<u8>, String)>,
    seen: usize,
    broken: bool,
}

impl<'a> BatchReader<'a> {
    fn new(secrets: &'a Registry) -> Self {
        let searcher = Searcher::new(secrets);
        let current = Default::default();
        Self {
            secrets,
            head: vec![],
            left: 0,
            searcher,
            hit: false,
            current,
            found: vec![],
            seen: 0,
            broken: false,
        }
    }

    fn push(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() && !self.broken {
            if self.left > 0 {
                let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(chunk.len());
                self.hit |= self.searcher.push(&chunk[..n]);
                self.left -= n as u64;
                chunk = &chunk[n..];
                if self.left == 0 {
                    self.seen += 1;
                    if self.hit {
                        self.found.push(std::mem::take(&mut self.current));
                    }
                }
                continue;
            }
            let end = memchr::memchr(b'\n', chunk);
            self.head.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            chunk = end.map_or(&[][..], |end| &chunk[end + 1..]);
            if end.is_some() {
                self.begin();
            }
        }
    }

    fn begin(&mut self) {
        let head = String::from_utf8_lossy(&std::mem::take(&mut self.head)).into_owned();
        let mut words = head.split(' ');
        let parts = (words.next(), words.next(), words.next().and_then(|s| s.parse::<u64>().ok()));
        let (Some(oid), Some(kind), Some(size)) = parts else {
            self.broken = true;
            return;
        };
        self.current = (oid.as_bytes().to_vec(), kind.to_owned());
        self.left = size.saturating_add(1);
        self.searcher = Searcher::new(self.secrets);
        self.hit = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secrets::Secret;

    proptest! {
        #[test]
        fn a_batch_is_read_however_it_is_cut(cuts in prop::collection::vec(1..20_usize, 1..40)) {
            let secrets = Registry::new([&Secret::new("hunter2-hunter2")]);
            let text = b"aa blob 0\n\nbb blob 21\nxx\nhunter2-hunter2\nyy\ncc tree 3\n\n\n\n\ndd commit 16\nhunter2-hunter2\n\n";
            let mut reader = BatchReader::new(&secrets);
            let mut rest = &text[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let n = (*cut).min(rest.len());
                reader.push(&rest[..n]);
                rest = &rest[n..];
            }
            prop_assert!(!reader.broken);
            prop_assert_eq!(reader.seen, 4);
            let found: Vec<_> = reader.found.iter().map(|(o, k)| (o.as_slice(), k.as_str())).collect();
            prop_assert_eq!(found, [(&b"bb"[..], "blob"), (&b"dd"[..], "commit")]);
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_noticed() {
        let secrets = Registry::new([&Secret::new("hunter2-hunter2")]);
        let mut reader = BatchReader::new(&secrets);
        reader.push(b"aa missing\n");
        assert!(reader.broken);
    }
}
