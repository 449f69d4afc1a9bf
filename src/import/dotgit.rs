//! The `.git` of the staged repository, and what the host's configuration reads.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::git;
use super::quarantine::{alternate, format_config};
use crate::error::{Error, Result};
use crate::plan::repo::{HostRepo, names, packed_text, quoted};

/// What the host repository's own configuration consists of.
#[derive(Debug, Default)]
pub(super) struct HostConfig {
    /// Every file that it reads, in order, absolute.
    files: Vec<PathBuf>,
    /// Those of them that lie in the working tree, relative to the top.
    pub(super) included: Vec<Vec<u8>>,
    /// A hooks directory that is given relative to the working tree.
    pub(super) hooks_in_tree: Option<Vec<u8>>,
}

/// Reads which files the host's configuration consists of, with the conditions of its includes judged for the
/// host's own directory.
pub(super) async fn host_config(repo: &HostRepo) -> Result<HostConfig> {
    let text = origins(&repo.git_dir, &repo.top).await?;
    let mut found = HostConfig::default();
    for (file, entry) in text {
        let file = repo.top.join(file);
        if !found.files.contains(&file) {
            found.files.push(file);
        }
        if let Some(path) = entry.strip_prefix(b"core.hookspath\n".as_slice()) {
            let relative = !path.starts_with(b"/") && !path.starts_with(b"~") && !path.is_empty();
            found.hooks_in_tree = relative.then(|| path.strip_suffix(b"/").unwrap_or(path).to_vec());
        }
    }
    for file in &found.files {
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        if let Ok(inside) = real.strip_prefix(&repo.top)
            && !inside.starts_with(".git")
        {
            found.included.push(names::as_bytes(inside).to_vec());
        }
    }
    Ok(found)
}

/// `(file, key \n value)` of every local setting, includes followed.
async fn origins(git_dir: &Path, top: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let command = git::neutral("git config --list", git_dir, top);
    let command = command.args(["config", "--local", "--includes", "--show-origin", "--list", "-z"]);
    let text = git::run(command).await?;
    let mut fields = text.split(|b| *b == 0);
    let mut out = Vec::new();
    while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
        if let Some(file) = origin.strip_prefix(b"file:") {
            out.push((names::as_path(file).to_owned(), entry.to_vec()));
        }
    }
    Ok(out)
}

/// Writes `.git` below `top`.
pub(super) async fn write(repo: &HostRepo, host: &HostConfig, top: &Path) -> Result<()> {
    let dir = top.join(".git");
    let io = |e: std::io::Error| Error::io("cannot make the staged repository", &e);
    for sub in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"] {
        fs_err::create_dir_all(dir.join(sub)).map_err(io)?;
    }
    let put = |name: &Path, text: &[u8]| {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent).map_err(io)?;
        }
        fs_err::write(path, text).map_err(io)
    };
    put(Path::new("HEAD"), &repo.head.text())?;
    let refs = repo.refs.refs.iter().filter(|(name, _)| name.as_slice() != b"refs/stash");
    put(Path::new("packed-refs"), &packed_text(refs))?;
    for (name, target) in &repo.refs.symbolic {
        put(names::as_path(name), &[b"ref: ", target.as_slice(), b"\n"].concat())?;
    }
    put(Path::new("objects/info/alternates"), &alternate(&repo.git_dir.join("objects")))?;
    put(Path::new("config"), &config(repo, host, &[]))?;
    copy_parts(repo, &dir).map_err(io)?;
    // An include that depends on where the repository is (credentials of a CI job, a work identity) counted
    // on the host and may not count here; one that counts in both places must not come twice.
    if host.files.len() > 1 {
        let here = origins(&dir, top).await?;
        let missing: Vec<_> =
            host.files.iter().filter(|f| !here.iter().any(|(h, _)| same_file(&top.join(h), f))).collect();
        put(Path::new("config"), &config(repo, host, &missing))?;
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// The host's configuration by inclusion, so that relative paths in it mean what they mean on the host and no
/// credential is copied; then what must differ.
fn config(repo: &HostRepo, host: &HostConfig, more: &[&PathBuf]) -> Vec<u8> {
    let mut out = format_config(repo.object_format, false).into_bytes();
    let own = repo.git_dir.join("config");
    let mut include = |file: &Path| {
        out.extend_from_slice(b"[include]\n\tpath = ");
        out.extend_from_slice(&quoted(file.as_os_str().as_bytes()));
        out.push(b'\n');
    };
    include(&own);
    for file in more {
        include(file);
    }
    out.extend_from_slice(b"[core]\n\tbare = false\n\tfsmonitor = false\n");
    if let Some(hooks) = &host.hooks_in_tree {
        // Those of the host's working tree, not those that the agent may have written.
        let hooks = repo.top.join(names::as_path(hooks));
        out.extend_from_slice(b"\thooksPath = ");
        out.extend_from_slice(&quoted(hooks.as_os_str().as_bytes()));
        out.push(b'\n');
    }
    out
}

fn copy_parts(repo: &HostRepo, dir: &Path) -> std::io::Result<()> {
    for name in ["info/exclude", "info/attributes", "shallow"] {
        match fs_err::copy(repo.git_dir.join(name), dir.join(name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    for item in fs_err::read_dir(&repo.git_dir)?.flatten() {
        let name = item.file_name();
        if name == "index" || name.as_bytes().starts_with(b"sharedindex.") {
            let to = dir.join(&name);
            fs_err::copy(item.path(), &to)?;
            // Git compares a file's time with that of the index to find edits in the same second.
            let time = item.metadata()?.modified()?;
            std::fs::File::options().write(true).open(&to)?.set_modified(time)?;
        }
    }
    let Ok(hooks) = fs_err::read_dir(repo.git_dir.join("hooks")) else { return Ok(()) };
    for item in hooks.flatten().filter(|i| !i.file_name().as_bytes().ends_with(b".sample")) {
        if item.path().is_file() {
            fs_err::copy(item.path(), dir.join("hooks").join(item.file_name()))?;
        }
    }
    Ok(())
}
