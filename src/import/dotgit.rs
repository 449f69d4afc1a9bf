//! The `.git` of the staged repository, and what the host's configuration reads.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::git;
use super::quarantine::{alternates, format_config};
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
    /// Every setting, those of the user and of the system too, in order.
    pub(super) settings: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Reads which files the host's configuration consists of, with the conditions of its includes judged for the
/// host's own directory.
pub(super) async fn host_config(repo: &HostRepo) -> Result<HostConfig> {
    let text = origins(&repo.git_dir, &repo.top).await?;
    let mut found = HostConfig::default();
    for Setting { file, entry, of_repository } in text {
        let file = repo.top.join(file);
        if of_repository && !found.files.contains(&file) {
            found.files.push(file);
        }
        let end = entry.iter().position(|b| *b == b'\n').unwrap_or(entry.len());
        let value = entry.get(end + 1..).unwrap_or_default().to_vec();
        found.settings.push((entry[..end].to_vec(), value));
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

/// One setting and where it stands.
struct Setting {
    file: PathBuf,
    /// The key, and after a newline the value.
    entry: Vec<u8>,
    /// Whether the repository's own configuration, or a file that it includes, says it.
    of_repository: bool,
}

/// Every setting that counts in a repository, includes followed.
async fn origins(git_dir: &Path, top: &Path) -> Result<Vec<Setting>> {
    let command = git::neutral("git config --list", git_dir, top)
        .env_remove("GIT_CONFIG_GLOBAL")
        .env_remove("GIT_CONFIG_NOSYSTEM");
    let command = command.args(["config", "--includes", "--show-scope", "--show-origin", "--list", "-z"]);
    let text = git::run(command).await?;
    let mut fields = text.split(|b| *b == 0);
    let mut out = Vec::new();
    while let (Some(scope), Some(origin), Some(entry)) = (fields.next(), fields.next(), fields.next()) {
        if let Some(file) = origin.strip_prefix(b"file:") {
            let of_repository = matches!(scope, b"local" | b"worktree");
            out.push(Setting { file: names::as_path(file).to_owned(), entry: entry.to_vec(), of_repository });
        }
    }
    Ok(out)
}

/// Writes `.git` below `top`.
/// `more` is put at the end of its configuration.
pub(super) async fn write(repo: &HostRepo, host: &HostConfig, more: &[u8], top: &Path) -> Result<()> {
    let dir = top.join(".git");
    let io = |e: std::io::Error| {
        let error = Error::io("cannot make the staged repository", &e);
        if e.kind() != std::io::ErrorKind::PermissionDenied {
            return error;
        }
        error.help(
            "it is a copy of the checkout, with its rights: let its owner write all directories of the checkout \
             (`chmod -R u+w DIR`)",
        )
    };
    for sub in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
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
    put(Path::new("objects/info/alternates"), &alternates(repo))?;
    put(Path::new("config"), &config(repo, &[], more, top))?;
    copy_parts(repo, &dir).map_err(io)?;
    // An include that depends on where the repository is (credentials of a CI job, a work identity) counted
    // on the host and may not count here; one that counts in both places must not come twice.
    if host.files.len() > 1 {
        let here = origins(&dir, top).await?;
        let missing: Vec<_> =
            host.files.iter().filter(|f| !here.iter().any(|h| same_file(&top.join(&h.file), f))).collect();
        put(Path::new("config"), &config(repo, &missing, more, top))?;
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
/// credential is copied; then what must differ. Hooks are off: those that people have (linters, test runners, package
/// scripts) run what the working tree says, and that is the agent's.
fn config(repo: &HostRepo, files: &[&PathBuf], more: &[u8], top: &Path) -> Vec<u8> {
    let mut out = format_config(repo.object_format, false).into_bytes();
    let own = repo.common_dir.join("config");
    let mut include = |file: &Path| {
        out.extend_from_slice(b"[include]\n\tpath = ");
        out.extend_from_slice(&quoted(file.as_os_str().as_bytes()));
        out.push(b'\n');
    };
    include(&own);
    for file in files {
        include(file);
    }
    out.extend_from_slice(b"[core]\n\tbare = false\n\tfsmonitor = false\n\thooksPath = /dev/null\n");
    if repo.config.get("core.worktree").is_some() {
        // A submodule's says where the host's files are.
        out.extend_from_slice(b"\tworktree = ");
        out.extend_from_slice(&quoted(top.as_os_str().as_bytes()));
        out.push(b'\n');
    }
    out.extend_from_slice(more);
    out
}

fn copy_parts(repo: &HostRepo, dir: &Path) -> std::io::Result<()> {
    let (common, own) = (&repo.common_dir, &repo.git_dir);
    for (from, name) in [
        (common, "info/exclude"),
        (common, "info/attributes"),
        (common, "shallow"),
        (own, "info/sparse-checkout"),
    ] {
        match fs_err::copy(from.join(name), dir.join(name)) {
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
    Ok(())
}
