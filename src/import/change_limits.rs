//! The harness's own limits on a change: how many files, how large, and which paths never.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use super::git;
use super::limits::Refusals;
use super::quarantine;
use super::report::private_dir;
use crate::error::{Error, Result};
use crate::harness::ChangeLimits;
use crate::plan::repo::{HostRepo, names};
use crate::process::Stdin;

/// What is measured.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    /// Every path that the working tree, the index or a new commit changes.
    pub(super) touched: &'a BTreeSet<Vec<u8>>,
    /// Those of them that the working tree changes, which is what the patch has.
    pub(super) patched: &'a BTreeSet<Vec<u8>>,
    /// Those of them that a new commit changes, which is what the bundle has.
    pub(super) committed: &'a BTreeSet<Vec<u8>>,
    /// New and changed files with their sizes in bytes.
    pub(super) sizes: &'a BTreeMap<Vec<u8>, u64>,
    /// The size of the patch in bytes.
    pub(super) patch: u64,
}

/// Judges a change.
///
/// # Errors
/// [`crate::Code::ImportBlocked`] with everything that is past a limit.
pub(super) async fn check(
    limits: &ChangeLimits,
    measured: &Measured<'_>,
    repo: &HostRepo,
    work_dir: &Path,
) -> Result<()> {
    let mut refusals = Refusals::default();
    let count = measured.touched.len() as u64;
    if let Some(most) = limits.max_changed_files.filter(|most| count > *most) {
        refusals.say(format!("{count} files changed, and limits.max_changed_files is {most}"));
    }
    if let Some(most) = limits.max_patch_bytes.filter(|most| measured.patch > *most) {
        refusals.say(format!("the patch has {} bytes, and limits.max_patch_bytes is {most}", measured.patch));
    }
    if let Some(most) = limits.max_file_bytes {
        for (path, size) in measured.sizes.iter().filter(|(_, size)| **size > most) {
            refusals.add(path, format!("{size} bytes, and limits.max_file_bytes is {most}"));
        }
    }
    let mut outside = None;
    for (path, pattern) in protected(&limits.protected_paths, measured.touched, repo, work_dir).await? {
        refusals.add(&path, format!("limits.protected_paths has `{pattern}`"));
        if !measured.patched.contains(&path) {
            outside.get_or_insert(path);
        }
    }
    refusals.finish().map_err(|e| e.help(where_to_look(outside.as_deref(), measured)))
}

/// Which file of the run directory has what was refused; `outside` is a path of it that the working tree has not.
fn where_to_look(outside: Option<&[u8]>, measured: &Measured<'_>) -> String {
    let Some(path) = outside else {
        return "nothing was taken over; changes.patch and changes.json in the run directory have the whole change"
            .to_owned();
    };
    let shown = names::shown(path);
    if measured.committed.contains(path) {
        format!(
            "nothing was taken over; `{shown}` is changed in commits and not in the working tree: changes.bundle in the \
             run directory has them (`git fetch RUN_DIR/changes.bundle 'refs/heads/*:refs/agent/*'`), changes.patch \
             does not"
        )
    } else {
        format!(
            "nothing was taken over; `{shown}` is staged and neither committed nor in the working tree, so that \
             changes.patch does not have it: let the agent unstage it"
        )
    }
}

/// Paths that a pattern matches, with the pattern. Git itself matches, in an empty directory, so that no `.gitignore`
/// has a say; case does not count, since on some hosts it makes no difference.
async fn protected(
    patterns: &[String],
    paths: &BTreeSet<Vec<u8>>,
    repo: &HostRepo,
    work_dir: &Path,
) -> Result<Vec<(Vec<u8>, String)>> {
    if patterns.is_empty() || paths.is_empty() {
        return Ok(Vec::new());
    }
    let io = |e: std::io::Error| Error::io("cannot write the protected paths", &e);
    let dir = work_dir.join("protected");
    private_dir(&dir)?;
    let (scratch, empty, file) = (dir.join("git"), dir.join("empty"), dir.join("patterns"));
    quarantine::init(&scratch, repo.object_format)?;
    fs_err::create_dir_all(&empty).map_err(io)?;
    fs_err::write(&file, patterns.join("\n") + "\n").map_err(io)?;
    let mut excludes = OsString::from("core.excludesFile=");
    excludes.push(&file);
    // With this before it, no path is taken for a pathspec with magic.
    let input = paths.iter().flat_map(|p| [b"./", p.as_slice(), b"\0"].concat()).collect();
    let output = git::neutral("git check-ignore", &scratch, &empty)
        .args(["--work-tree=.", "-c", "core.ignoreCase=true", "-c"])
        .arg(excludes)
        .args(["check-ignore", "--no-index", "--verbose", "-z", "--stdin"])
        .stdin(Stdin::Bytes(input))
        .output()
        .await?;
    let _ = fs_err::remove_dir_all(&dir);
    // 1 says that no path matches.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(git::failed("git check-ignore", &output));
    }
    let fields: Vec<&[u8]> = output.stdout.split(|b| *b == 0).collect();
    let matched = fields.chunks_exact(4).filter(|f| !f[2].starts_with(b"!"));
    Ok(matched.map(|f| (f[3].strip_prefix(b"./").unwrap_or(f[3]).to_vec(), names::shown(f[2]))).collect())
}
