//! The journal: one small file per run, from its start to the end of everything that it made.
//!
//! It is written before anything is made and removed after all of it is known to be gone, so that whatever is
//! found there belongs to a run that lives, died, or left a sandbox on purpose. Format version 1, one JSON object;
//! names only, never a secret. The file is replaced as a whole, so a reader never sees half of one.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use crate::error::{Error, Result};
use crate::openshell::Target;
use crate::openshell::names::{RunId, belongs_to};

/// The version of the format that this program writes.
pub(crate) const VERSION: u64 = 1;
/// An entry is never longer, in bytes.
const LIMIT: u64 = 256 * 1024;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The version of the format.
    pub version: u64,
    /// The run's id.
    pub run: String,
    /// The agent's name.
    pub agent: String,
    /// The sandbox's name.
    pub sandbox: String,
    /// Run-scoped providers.
    pub providers: Vec<String>,
    /// How to reach the gateway.
    pub target: Target,
    /// The run directory.
    pub run_dir: PathBuf,
    /// Directories on this host that belong to the run alone and go with it.
    pub dirs: Vec<PathBuf>,
    /// When the run began.
    pub started: Timestamp,
    /// When the run has ended by its own deadlines, whatever happens.
    pub expires: Timestamp,
    /// Until when the sandbox stays on purpose; nothing for a run that deletes it.
    pub keep_until: Option<Timestamp>,
    /// What the run is doing.
    pub phase: String,
    /// Since when.
    pub phase_since: Timestamp,
    /// Which process owns it.
    pub owner: Owner,
}

/// An open entry of this process.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    entry: RefCell<Entry>,
}

impl Journal {
    /// Writes a new entry.
    pub(crate) fn open(entry: Entry) -> Result<Self> {
        let dir = dir();
        let path = dir.join(format!("{}.json", entry.run));
        let failed = |e: std::io::Error| {
            Error::io(&format!("cannot write the journal entry {}", path.display()), &e)
                .help("set XDG_STATE_HOME to a directory that can be written")
        };
        private_dirs(&dir).and_then(|()| write(&path, &entry)).map_err(failed)?;
        Ok(Self { path, entry: RefCell::new(entry) })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The run goes on to another phase.
    pub(crate) fn phase(&self, name: &str) {
        self.change(|entry| {
            name.clone_into(&mut entry.phase);
            entry.phase_since = Timestamp::now();
        });
    }

    /// A further directory belongs to the run.
    pub(crate) fn owns(&self, dir: &Path) {
        self.change(|entry| entry.dirs.push(dir.to_owned()));
    }

    /// The sandbox stays until then.
    pub(crate) fn keep(&self, until: Timestamp) {
        self.change(|entry| entry.keep_until = Some(until));
    }

    /// Everything is gone.
    pub(crate) fn close(&self) {
        close(&self.path);
    }

    /// The journal only tells others about the run, so a full disk does not end the run here.
    fn change(&self, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.entry.borrow_mut();
        change(&mut entry);
        // Closed by the guard or by `reap`: it must not come back.
        if self.path.exists()
            && let Err(error) = write(&self.path, &*entry)
        {
            tracing::warn!(%error, "cannot update the journal");
        }
    }
}

/// Where entries are.
pub(crate) fn dir() -> PathBuf {
    state_dir().join("runs")
}

/// `$XDG_STATE_HOME/fullsend`, else `~/.local/state/fullsend`, else a directory of this user under the system's temp dir.
pub(crate) fn state_dir() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    // A relative one is to be ignored (XDG base directories): it would be another place in every directory.
    match (from("XDG_STATE_HOME").filter(|dir| dir.is_absolute()), from("HOME")) {
        (Some(state), _) => state.join("fullsend"),
        (None, Some(home)) => home.join(".local/state/fullsend"),
        (None, None) => std::env::temp_dir().join(format!("fullsend-state-{}", uid())),
    }
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Entries say what to execute and what to delete, so nobody else may write them.
pub(crate) fn private_dirs(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    trusted(dir)
}

/// Whether a directory is this user's, and nobody else may write it.
pub(crate) fn trusted(dir: &Path) -> std::io::Result<()> {
    let meta = std::fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != uid() || meta.permissions().mode() & 0o022 != 0 {
        return Err(std::io::Error::other(format!(
            "{} must be a directory that only its owner, this user, can write",
            dir.display()
        )));
    }
    Ok(())
}

/// Replaces the file as a whole.
pub(crate) fn write(path: &Path, entry: &impl Serialize) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(entry)?;
    let half = path.with_extension("new");
    let put = || {
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&half, path)
    };
    // A full disk leaves no half of an entry behind.
    put().inspect_err(|_| drop(std::fs::remove_file(&half)))
}

/// Closes an entry; one that is closed already is fine.
pub(crate) fn close(path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_file(path.with_extension("new"));
}

/// What was found in the journal.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The entries, by start, with their files.
    pub entries: Vec<(PathBuf, Entry)>,
    /// Files that are no entry of this version, and why. They are shown and never touched.
    pub strange: Vec<(PathBuf, String)>,
}

/// Reads every entry of this user on this host. A journal that does not exist is empty.
pub(crate) fn read_all() -> Result<Contents> {
    read_dir(&dir())
}

fn read_dir(dir: &Path) -> Result<Contents> {
    let mut contents = Contents::default();
    let failed = |e: &std::io::Error| {
        Error::io("cannot read the journal", e).help("make it yours and private: chmod 700")
    };
    match trusted(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(contents),
        Err(e) => return Err(failed(&e)),
    }
    for file in std::fs::read_dir(dir).map_err(|e| failed(&e))? {
        let path = file.map_err(|e| failed(&e))?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        match read(&path) {
            Ok(Some(entry)) => contents.entries.push((path, entry)),
            // Closed meanwhile.
            Ok(None) => {}
            Err(why) => contents.strange.push((path, why)),
        }
    }
    contents.entries.sort_by(|(_, a), (_, b)| (a.started, &a.run).cmp(&(b.started, &b.run)));
    contents.strange.sort();
    Ok(contents)
}

/// Reads one entry; nothing when it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Entry>, String> {
    let flags = i32::try_from((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits());
    let file =
        std::fs::OpenOptions::new().read(true).custom_flags(flags.map_err(|e| e.to_string())?).open(path);
    let file = match file {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) if path.is_symlink() => return Err(format!("it is a symbolic link ({e})")),
        Err(e) => return Err(e.to_string()),
    };
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("it is not a regular file".into());
    }
    if meta.uid() != uid() {
        return Err("it belongs to another user".into());
    }
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).map_err(|e| e.to_string())?;
    parse(&text, path.file_stem().and_then(|s| s.to_str()).unwrap_or_default()).map(Some)
}

/// The entry in a file of that name without its extension.
fn parse(text: &[u8], stem: &str) -> Result<Entry, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    let bad = |e: serde_json::Error| format!("it is not a journal entry: {e}");
    let version: Version = serde_json::from_slice(text).map_err(bad)?;
    if version.version != VERSION {
        return Err(format!("its version is {}, and this program knows {VERSION}", version.version));
    }
    let entry: Entry = serde_json::from_slice(text).map_err(bad)?;
    let run = RunId::parse(&entry.run).ok_or("it has no run id")?;
    if stem != entry.run {
        return Err(format!("it is the entry of run {run} under another name"));
    }
    if entry.target.argv.is_empty() {
        return Err("it does not say how to reach its gateway".into());
    }
    if !belongs_to(&entry.sandbox, &run) || !entry.providers.iter().all(|p| belongs_to(p, &run)) {
        return Err("it names a sandbox or provider that is not of its run".into());
    }
    Ok(entry)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An entry of a run of this process.
    pub(crate) fn entry(run: &str) -> Entry {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        Entry {
            version: VERSION,
            run: run.into(),
            agent: "work".into(),
            sandbox: format!("fs-wor-{run}"),
            providers: vec![format!("gh-{run}")],
            target: Target { argv: vec!["/bin/openshell".into()], ..Target::default() },
            run_dir: "/out/work".into(),
            dirs: vec!["/tmp/fullsend-x".into()],
            started: now,
            expires: "2026-03-01T14:00:00Z".parse().unwrap(),
            keep_until: None,
            phase: "agent".into(),
            phase_since: now,
            owner: Owner::this(),
        }
    }

    const RUN: &str = "0123456789ab";

    #[test]
    fn an_entry_comes_back() {
        let text = serde_json::to_vec(&entry(RUN)).unwrap();
        assert_eq!(parse(&text, RUN).unwrap(), entry(RUN));
    }

    #[test]
    fn what_is_no_entry_says_why() {
        let text = |change: fn(&mut Entry)| {
            let mut e = entry(RUN);
            change(&mut e);
            serde_json::to_string(&e).unwrap()
        };
        let whole = text(|_| {});
        for (text, why) in [
            (whole[..whole.len() / 2].to_owned(), "not a journal entry"),
            (String::new(), "not a journal entry"),
            ("[]".into(), "not a journal entry"),
            (r#"{"version":2,"something":"else"}"#.into(), "version is 2"),
            (r#"{"version":1}"#.into(), "not a journal entry"),
            (text(|e| e.run = "x".into()), "no run id"),
            (text(|e| e.run = "ffffffffffff".into()), "under another name"),
            (text(|e| e.sandbox = "production".into()), "not of its run"),
            (text(|e| e.providers = vec!["github".into()]), "not of its run"),
        ] {
            let said = parse(text.as_bytes(), RUN).unwrap_err();
            assert!(said.contains(why), "{said} for {text}");
        }
    }

    #[test]
    fn strange_files_are_listed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("runs");
        assert!(read_dir(&at).unwrap().entries.is_empty());
        private_dirs(&at).unwrap();
        write(&at.join(format!("{RUN}.json")), &entry(RUN)).unwrap();
        std::fs::write(dir.path().join("elsewhere"), serde_json::to_vec(&entry(RUN)).unwrap()).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), at.join("aaaaaaaaaaaa.json")).unwrap();
        std::fs::write(at.join("bbbbbbbbbbbb.json"), "{").unwrap();
        std::fs::create_dir(at.join("cccccccccccc.json")).unwrap();
        std::fs::write(at.join("dddddddddddd.new"), "{").unwrap();
        let found = read_dir(&at).unwrap();
        assert_eq!(found.entries.len(), 1);
        let why: Vec<_> = found.strange.iter().map(|(_, why)| why.as_str()).collect();
        assert!(why[0].contains("symbolic link"), "{why:?}");
        assert!(why[1].contains("not a journal entry") && why[2].contains("not a regular file"), "{why:?}");
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(read_dir(dir.path()).is_err());
        assert!(private_dirs(dir.path()).is_err());
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text, RUN);
        }
    }
}
