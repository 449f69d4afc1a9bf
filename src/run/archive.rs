//! The part of the bootstrap archive that holds the repository: plain GNU tar, uncompressed, since the
//! connection is local more often than not and objects are compressed already.

use std::io::{Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use tar::{Builder, EntryType, Header};

use crate::error::{Code, Error, Result};
use crate::plan::repo::{Entry, GitSource, HostRepo, Kind, Manifest, names};

/// Writes the repository below `prefix` (a relative path without a trailing `/`): the directory itself, the
/// working tree with exact names, modes, links and times (whole seconds), then `.git`.
///
/// # Errors
/// [`Code::CheckoutChanged`] when a file is no longer what the manifest says.
pub(crate) fn append_repo<W: Write>(
    tar: &mut Builder<W>,
    prefix: impl AsRef<[u8]>,
    repo: &HostRepo,
    manifest: &Manifest,
) -> Result<()> {
    let root = prefix.as_ref();
    let at = |path: &[u8]| [root, b"/", path].concat();
    put(tar, EntryType::Directory, root, &[], 0o755, now(), 0, &[][..])?;
    for entry in &manifest.entries {
        let path = at(&entry.path);
        let mtime = entry.mtime_ns.div_euclid(1_000_000_000);
        match &entry.kind {
            Kind::Dir => put(tar, EntryType::Directory, &path, &[], entry.mode, mtime, 0, &[][..])?,
            Kind::Link(target) => put(tar, EntryType::Symlink, &path, target, 0o777, mtime, 0, &[][..])?,
            Kind::File => put_file(tar, &path, repo, entry, mtime)?,
        }
    }
    let git = at(b".git");
    let below = |path: &[u8]| [git.as_slice(), b"/", path].concat();
    put(tar, EntryType::Directory, &git, &[], 0o755, now(), 0, &[][..])?;
    // Git takes a directory for a repository only when these exist.
    for dir in ["objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"] {
        put(tar, EntryType::Directory, &below(dir.as_bytes()), &[], 0o755, now(), 0, &[][..])?;
    }
    for file in &manifest.git {
        let path = below(&file.path);
        let object = file.path.starts_with(b"objects/");
        let mode = if object { 0o444 } else { 0o644 };
        match &file.source {
            GitSource::Text(text) => {
                put(tar, EntryType::Regular, &path, &[], mode, now(), text.len() as u64, text.as_slice())?;
            }
            GitSource::Made { path: from, size, .. } => {
                let packed = open(from, &file.path)?;
                put(tar, EntryType::Regular, &path, &[], mode, now(), *size, &mut packed.take(*size))
                    .map_err(|e| short(e, &file.path))?;
            }
            GitSource::File { path: from, size, mtime } => {
                let open = open(from, &file.path)?;
                let mut limited = open.take(*size);
                put(tar, EntryType::Regular, &path, &[], mode, *mtime, *size, &mut limited)
                    .map_err(|e| short(e, &file.path))?;
            }
        }
    }
    Ok(())
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(0)
}

/// Opens without following a link and without waiting for the other end of a FIFO that took the file's place.
fn open(path: &Path, shown: &[u8]) -> Result<std::fs::File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    match file {
        Ok(file) if file.metadata().is_ok_and(|m| m.is_file()) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::new(Code::RepoInvalid, format!("cannot read `{}`: {e}", names::shown(shown)))
                .help("make it readable, or name it under `upload: exclude:` in the harness"))
        }
        Ok(_) | Err(_) => Err(changed(shown)),
    }
}

fn put_file<W: Write>(
    tar: &mut Builder<W>,
    path: &[u8],
    repo: &HostRepo,
    entry: &Entry,
    mtime: i64,
) -> Result<()> {
    let file = open(&repo.top.join(names::as_path(&entry.path)), &entry.path)?;
    let as_listed = |file: &std::fs::File| {
        file.metadata().is_ok_and(|m| {
            m.size() == entry.size
                && m.ino() == entry.ino
                && m.mtime().saturating_mul(1_000_000_000).saturating_add(m.mtime_nsec()) == entry.mtime_ns
        })
    };
    if !as_listed(&file) {
        return Err(changed(&entry.path));
    }
    let mut limited = (&file).take(entry.size);
    put(tar, EntryType::Regular, path, &[], entry.mode, mtime, entry.size, &mut limited)
        .map_err(|e| short(e, &entry.path))?;
    if as_listed(&file) { Ok(()) } else { Err(changed(&entry.path)) }
}

fn short(error: Error, path: &[u8]) -> Error {
    if error.code() == Code::CheckoutChanged { changed(path) } else { error }
}

fn changed(path: &[u8]) -> Error {
    Error::new(
        Code::CheckoutChanged,
        format!("`{}` changed while it was read for the upload", names::shown(path)),
    )
    .help("run again when nothing else writes to the checkout")
}

/// Writes one member. Names are bytes, and longer ones than a header holds travel in GNU `L` and `K` records,
/// which every tar that can be met in an image understands.
#[expect(clippy::too_many_arguments, reason = "the fields of a tar header, all of them needed")]
fn put<W: Write, R: std::io::Read>(
    tar: &mut Builder<W>,
    kind: EntryType,
    path: &[u8],
    link: &[u8],
    mode: u32,
    mtime: i64,
    size: u64,
    content: R,
) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    // Set-id bits have no meaning for a checkout; the sandbox is not to get them from us.
    header.set_mode(mode & 0o1777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(mtime).unwrap_or(0));
    header.set_size(size);
    let write = |e: std::io::Error| Error::io("cannot write the archive", &e);
    long(tar, &mut header, b'L', path).map_err(write)?;
    long(tar, &mut header, b'K', link).map_err(write)?;
    header.set_cksum();
    let mut counted = Counted { inner: content, read: 0 };
    tar.append(&header, &mut counted).map_err(write)?;
    if counted.read == size {
        Ok(())
    } else {
        Err(Error::new(Code::CheckoutChanged, "a file became shorter"))
    }
}

/// Puts a name into its header field, and before it a record of its own when it does not fit.
fn long<W: Write>(tar: &mut Builder<W>, header: &mut Header, record: u8, name: &[u8]) -> std::io::Result<()> {
    let gnu = header.as_gnu_mut().ok_or(std::io::ErrorKind::InvalidInput)?;
    let field = if record == b'L' { &mut gnu.name } else { &mut gnu.linkname };
    let fits = name.len().min(field.len());
    field[..fits].copy_from_slice(&name[..fits]);
    if name.len() <= field.len() {
        return Ok(());
    }
    let mut extra = Header::new_gnu();
    if let Some(gnu) = extra.as_gnu_mut() {
        gnu.name[..13].copy_from_slice(b"././@LongLink");
    }
    extra.set_entry_type(EntryType::new(record));
    extra.set_mode(0o644);
    extra.set_uid(0);
    extra.set_gid(0);
    extra.set_mtime(0);
    // The record ends with a NUL.
    extra.set_size(name.len() as u64 + 1);
    extra.set_cksum();
    tar.append(&extra, name.chain(&[0][..]))
}

struct Counted<R> {
    inner: R,
    read: u64,
}

impl<R: std::io::Read> std::io::Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.read += n as u64;
        Ok(n)
    }
}
