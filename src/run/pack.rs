//! The one archive that goes into the sandbox.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

use super::archive::append_repo;
use super::squeeze;
use crate::error::{Code, Error, Result};
use crate::plan::Plan;
use crate::plan::files::{Bytes, Delivered, Source, Upload};
use crate::plan::layout::{HOME, HOOK_PROGRAM, RUNNER_DIR, below_home};
use crate::plan::repo::{HostRepo, Manifest};

/// The archive, and what the sandbox must hold once it is unpacked.
#[derive(Debug)]
pub(super) struct Packed {
    /// The archive on the host; private, and removed with the run's temp dir.
    pub archive: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The files besides the repository.
    pub files: Vec<Delivered>,
    /// Files that are unpacked below [`HOME`] and then moved elsewhere: member and destination.
    pub moves: Vec<(String, String)>,
    /// Whether the program of the hooks travels compressed.
    pub squeezed: bool,
}

/// Builds the archive: the files, then the repository. `squeezed` is the program of the hooks, compressed.
pub(super) fn pack(
    plan: &Plan,
    uploads: &[Upload],
    repo: &HostRepo,
    manifest: &Manifest,
    squeezed: Option<Vec<u8>>,
    dir: &Path,
) -> Result<Packed> {
    let archive = dir.join("in.tar");
    let mut tar = Builder::new(BufWriter::with_capacity(256 * 1024, fs_err::File::create(&archive)?));
    let (mut files, mut moves) = (Vec::new(), Vec::new());
    let is_squeezed = squeezed.is_some();
    if let Some(bytes) = squeezed {
        let size = bytes.len() as u64;
        let file =
            Delivered { dest: squeeze::ARRIVES.to_owned(), mode: 0o755, size, bytes: Bytes::Content(bytes) };
        append(&mut tar, &member(squeeze::ARRIVES)?, &file)?;
    }
    for upload in uploads {
        if matches!(upload.source, Source::Empty) {
            append_dir(&mut tar, &member(&upload.dest)?)?;
        }
        for file in upload.expand()? {
            if is_squeezed && file.dest == HOOK_PROGRAM {
                files.push(file);
                continue;
            }
            let name = if let Some(name) = below_home(&file.dest) {
                name.to_owned()
            } else {
                let name = format!("{}/outside-{}", member(RUNNER_DIR)?, moves.len());
                moves.push((name.clone(), file.dest.clone()));
                name
            };
            append(&mut tar, &name, &file)?;
            files.push(file);
        }
    }
    append_repo(&mut tar, &member(&plan.layout.repo)?, repo, manifest)?;
    let mut out = tar.into_inner()?;
    out.flush()?;
    let size = fs_err::metadata(&archive)?.len();
    Ok(Packed { archive, size, files, moves, squeezed: is_squeezed })
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0));
    header
}

fn append_dir<W: Write>(tar: &mut Builder<W>, name: &str) -> Result<()> {
    let mut header = header(EntryType::Directory, 0o755);
    header.set_size(0);
    tar.append_data(&mut header, format!("{name}/"), std::io::empty())?;
    Ok(())
}

fn append<W: Write>(tar: &mut Builder<W>, name: &str, file: &Delivered) -> Result<()> {
    let mut header = header(EntryType::Regular, file.mode);
    match &file.bytes {
        Bytes::Text(text) => {
            header.set_size(file.size);
            tar.append_data(&mut header, name, text.expose().as_bytes())?;
        }
        Bytes::Content(bytes) => {
            header.set_size(file.size);
            tar.append_data(&mut header, name, bytes.as_slice())?;
        }
        Bytes::Host(source) => {
            // The size is read again through the open file, so that header and content agree.
            let open = fs_err::File::open(source).map_err(|e| {
                Error::new(Code::FileMissing, format!("{source} cannot be read: {e}"))
                    .help("the harness delivers this file; it must stay readable until the run has started")
            })?;
            let size = open.metadata()?.len();
            header.set_size(size);
            tar.append_data(&mut header, name, std::io::Read::take(open, size))?;
        }
    }
    Ok(())
}

/// The name in the archive of a path below [`HOME`], where it is unpacked.
fn member(path: &str) -> Result<String> {
    let name = below_home(path).ok_or_else(|| Error::bug(format!("{path} is not below {HOME}")))?;
    Ok(name.to_owned())
}
