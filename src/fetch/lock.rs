//! `fullsend lock`: writes down what is behind every URL.

use camino::{Utf8Path, Utf8PathBuf};

use super::{Options, settle};
use crate::error::{Code, Error, Result};
use crate::harness::problem::{Problem, Problems};
use crate::harness::remote::Pinning;
use crate::harness::remote::lock::{FILE, Lock};
use crate::harness::{Locked, ValidateScope, attempt_lock};

/// What was written.
#[derive(Debug)]
pub struct Outcome {
    /// The lock file.
    pub file: Utf8PathBuf,
    /// Whether it is another than before.
    pub changed: bool,
    /// Each agent that was looked at, with how many URLs it has.
    pub agents: Vec<(String, usize)>,
    /// What the user should know.
    pub warnings: Vec<Problem>,
}

/// Locks the agents of `scope`; no agents are all of them. With `update` also what is locked already is looked at
/// anew. Nothing is written unless everything could be had.
pub async fn lock(scope: &ValidateScope, update: bool, options: &Options) -> Result<Outcome> {
    let pinning = if update { Pinning::Renew } else { Pinning::Add };
    let Locked { agents, problems } = settle(options, pinning, |fetched| {
        attempt_lock(&ValidateScope { fetched: fetched.clone(), ..scope.clone() })
    })
    .await?;
    if problems.has_errors() {
        return Err(Error::problems(problems));
    }
    let mut old = Problems::default();
    let before = Lock::read(&scope.dir, &mut old);
    // Of all agents, those that are no more go too.
    let mut lock = if scope.agents.is_empty() { Lock::default() } else { before.clone() };
    let mut counts = Vec::new();
    for (name, entry) in agents {
        counts.push((name.clone(), entry.as_ref().map_or(0, |entry| entry.dependencies.len())));
        match entry {
            Some(entry) => lock.agents.insert(name, entry),
            None => lock.agents.remove(&name),
        };
    }
    let file = scope.dir.join(FILE);
    let changed = lock != before;
    if changed {
        write(&file, &lock.render())?;
    }
    Ok(Outcome { file, changed, agents: counts, warnings: problems.0 })
}

/// All of it or nothing.
fn write(file: &Utf8Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error: &std::io::Error| {
        Error::new(Code::Io, format!("{file} cannot be written: {error}")).help("make the directory writable")
    };
    let dir = file.parent().unwrap_or(Utf8Path::new("."));
    let mut temp = tempfile::NamedTempFile::new_in(dir).map_err(|e| failed(&e))?;
    temp.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
    temp.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(|e| failed(&e))?;
    temp.as_file().sync_all().map_err(|e| failed(&e))?;
    temp.persist(file).map_err(|e| failed(&e.error))?;
    Ok(())
}
