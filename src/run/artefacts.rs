//! Files of the run directory that came out of the sandbox, and the secrets that must not be in them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::prepare::Prepared;
use crate::error::{Code, Error, Result};
use crate::harness::model::ProviderUse;
use crate::secrets::{Registry, Searcher, Secret};

/// The secrets of this run: what its providers carry, and what its environments name like a secret.
pub(super) fn secrets(prepared: &Prepared) -> Vec<Secret> {
    let harness = &prepared.plan.harness;
    let credentials = harness.providers.iter().filter_map(|p| match p {
        ProviderUse::Defined(def) => Some(&def.credentials),
        ProviderUse::Existing(_) => None,
    });
    let mut secrets: Vec<Secret> = credentials.flat_map(|c| c.values().cloned()).collect();
    let named = harness.runner_env.iter().chain(&harness.sandbox_env).filter(|(name, _)| looks_secret(name));
    secrets.extend(named.map(|(_, value)| value.clone()));
    let named = prepared.world.file_env.iter().filter(|(name, _)| looks_secret(name));
    secrets.extend(named.map(|(_, value)| Secret::new(value.as_str())));
    secrets
}

/// Whether a variable's name says that its value is a secret.
fn looks_secret(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "PRIVATE_KEY"];
    // Names of files and switches beside the secret itself are ordinary values.
    const NOT: [&str; 5] = ["_FILE", "_PATH", "_SOURCE", "_URL", "_CREDENTIALS"];
    let name = name.to_ascii_uppercase();
    let named = PARTS.iter().any(|p| name.contains(p)) || name.ends_with("_KEY");
    named && !NOT.iter().any(|n| name.ends_with(n))
}

/// Moves what was fetched into the run directory and takes the known secrets out of text. A binary file is never
/// rewritten: one that holds a known secret is left out, and that is an error. So is a secret in a file's name.
pub(super) fn take(from: &Path, to: &Path, secrets: &Registry) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    let mut refused = Vec::new();
    for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
        let entry = entry
            .map_err(|e| Error::new(Code::ImportFailed, format!("cannot read what was fetched: {e}")))?;
        let below = entry.path().strip_prefix(from).unwrap_or(entry.path());
        if secrets.is_in(below.as_os_str().as_bytes()) {
            if entry.file_type().is_file() {
                refused.push(below.to_owned());
            }
            continue;
        }
        let target = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target)?;
        } else if entry.file_type().is_file() {
            if let Some(parent) = target.parent() {
                fs_err::create_dir_all(parent)?;
            }
            if !take_file(entry.path(), &target, secrets)? {
                refused.push(below.to_owned());
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(found(&refused)) }
}

/// Whether the file could be taken.
fn take_file(from: &Path, to: &Path, secrets: &Registry) -> Result<bool> {
    if secrets.is_empty() {
        return fs_err::rename(from, to)
            .or_else(|_| fs_err::copy(from, to).map(drop))
            .map(|()| true)
            .map_err(Into::into);
    }
    let bytes = fs_err::read(from)?;
    let hidden = |bytes: &[u8]| Searcher::new(secrets).push(bytes);
    if !hidden(&bytes) {
        fs_err::rename(from, to).or_else(|_| fs_err::write(to, &bytes))?;
        return Ok(true);
    }
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
    let clean = text.map(|text| secrets.redact_text(text));
    // One that line breaks cut (wrapped base64) is found, but cannot be taken out.
    match clean.filter(|clean| !hidden(clean.as_bytes())) {
        Some(clean) => fs_err::write(to, clean.as_bytes()).map(|()| true).map_err(Into::into),
        None => Ok(false),
    }
}

fn found(paths: &[PathBuf]) -> Error {
    let list: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    Error::new(Code::SecretFound, format!("a secret of this run cannot be taken out of {}", list[0]))
        .detail(list.join("\n"))
        .help("the file was left out and nothing was taken over; revoke the credential if the sandbox could send it elsewhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_secret() {
        for name in ["GH_TOKEN", "ANTHROPIC_API_KEY", "db_password", "PUSH_TOKEN"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in
            ["PUSH_TOKEN_SOURCE", "GCP_OIDC_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS", "KEYBOARD", "PATH"]
        {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
