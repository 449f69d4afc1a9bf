//! What the host's git would obey, or run, in a tree with the agent's files: refused, or switched off in the staged
//! repository.
//!
//! The settings are the host's, so the danger is in files that settings lead to: an included file, a program inside
//! the repository, a `.gitattributes` that routes files to a program the host has for something else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::dotgit::HostConfig;
use super::git;
use super::limits::Refusals;
use super::ops::Ops;
use crate::error::{Error, Result};
use crate::plan::repo::{HostRepo, Kind, Manifest, names, quoted};

/// More than this is no `.gitattributes` that a person wrote, in bytes. Git itself stops at 100 MB.
const MOST_ATTRIBUTES: u64 = 1 << 20;

/// Drivers that attributes name: a kind (`filter`, `diff`, `merge`) and a name.
type Drivers = BTreeSet<(&'static str, Vec<u8>)>;

/// Judges the steps of an import. Returns what the staged repository's configuration has to say beyond the host's.
///
/// # Errors
/// [`crate::Code::ImportBlocked`] with every path that would steer the host's git.
pub(super) fn judge(
    ops: &Ops,
    incoming: &Path,
    repo: &HostRepo,
    manifest: &Manifest,
    config: &HostConfig,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>> {
    let mut refusals = Refusals::default();
    let changed: BTreeSet<&[u8]> = ops.paths().collect();
    for path in &changed {
        if config.included.iter().any(|file| file == path || names::is_below(file, path)) {
            refusals.add(path, "the configuration of the host's repository includes it");
        }
        if base_name(path).eq_ignore_ascii_case(b".lfsconfig") {
            refusals.add(path, "Git LFS reads from it which server gets the files");
        }
    }
    if let Some(hooks) = &config.hooks_in_tree
        && changed.iter().any(|p| names::is_below(p, hooks) || *p == hooks.as_slice())
    {
        let hooks = names::shown(hooks);
        notes.push(format!(
            "the agent changed `{hooks}`, which holds the git hooks of this repository: review it before the next \
             commit"
        ));
    }
    programs(&changed, repo, manifest, config, &mut refusals);
    let more = attributes(ops, incoming, repo, manifest, config, notes, &mut refusals)?;
    refusals.finish().map(|()| more)
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// Refuses changes of programs inside the repository that the host's settings run, and of what lies beside them.
fn programs(
    changed: &BTreeSet<&[u8]>,
    repo: &HostRepo,
    manifest: &Manifest,
    config: &HostConfig,
    refusals: &mut Refusals,
) {
    for (key, value) in config.settings.iter().filter(|(key, _)| git::is_command(key)) {
        for program in inside(value, repo) {
            let is_there = manifest.get(&program).is_some_and(|e| e.kind == Kind::File);
            let beside = names::parent(&program).filter(|_| is_there);
            for path in changed {
                if *path == program || beside.is_some_and(|dir| names::is_below(path, dir)) {
                    refusals.add(
                        path,
                        format!("the host's git runs it or its neighbour ({})", names::shown(key)),
                    );
                }
            }
        }
    }
}

/// Paths inside the repository that a command names.
fn inside(command: &[u8], repo: &HostRepo) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(command);
    let text = text.strip_prefix('!').unwrap_or(&text);
    let words =
        shell_words::split(text).unwrap_or_else(|_| text.split_whitespace().map(str::to_owned).collect());
    let words = words.into_iter().enumerate().filter_map(|(at, word)| {
        let path = Path::new(&word);
        let relative = match path.strip_prefix(&repo.top) {
            Ok(below) => below.to_owned(),
            // The name of a program without a directory is looked for elsewhere.
            Err(_) if path.is_absolute() || (at == 0 && !word.contains('/')) => return None,
            Err(_) => path.strip_prefix(".").unwrap_or(path).to_owned(),
        };
        let plain: PathBuf = relative.components().collect();
        Some(names::as_bytes(&plain).to_vec()).filter(|p| !p.is_empty())
    });
    words.collect()
}

/// Whether git reads attributes from a file of that name.
pub(super) fn is_attributes(path: &[u8]) -> bool {
    base_name(path).eq_ignore_ascii_case(b".gitattributes")
}

/// Drivers that a text of attributes names.
fn drivers(text: &[u8]) -> Drivers {
    let words = text.split(u8::is_ascii_whitespace);
    words
        .filter_map(|word| {
            let (kind, name) = word.split_at(word.iter().position(|b| *b == b'=')?);
            let kind = ["filter", "diff", "merge"].into_iter().find(|k| k.as_bytes() == kind)?;
            Some((kind, name[1..].to_vec())).filter(|(_, name)| !name.is_empty())
        })
        .collect()
}

/// What the agent's attributes route to programs that the host's did not: filters and converters are switched off in
/// the staged repository, and what cannot be switched off there is refused.
fn attributes(
    ops: &Ops,
    incoming: &Path,
    repo: &HostRepo,
    manifest: &Manifest,
    config: &HostConfig,
    notes: &mut Vec<String>,
    refusals: &mut Refusals,
) -> Result<Vec<u8>> {
    let is_attributes = |path: &&[u8]| is_attributes(path);
    let mut new = Drivers::new();
    for path in ops.writes.keys().map(Vec::as_slice).filter(is_attributes) {
        let file = incoming.join(names::as_path(path));
        let failed = |e: std::io::Error| Error::io("cannot read what the sandbox returned", &e);
        if fs_err::metadata(&file).map_err(failed)?.len() > MOST_ATTRIBUTES {
            refusals.add(path, format!("attributes of more than {MOST_ATTRIBUTES} bytes"));
            continue;
        }
        new.extend(drivers(&fs_err::read(&file).map_err(failed)?));
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let own = manifest.entries.iter().map(|e| e.path.as_slice()).filter(is_attributes);
    let own = own.map(|path| repo.top.join(names::as_path(path)));
    for file in own.chain([repo.common_dir.join("info/attributes")]) {
        for known in drivers(&std::fs::read(file).unwrap_or_default()) {
            new.remove(&known);
        }
    }
    let set = |kind: &str, name: &[u8], variable: &str| {
        let key = [kind.as_bytes(), b".", name, b".", variable.as_bytes()].concat();
        config.settings.iter().any(|(k, value)| *k == key && !value.is_empty())
    };
    let mut out = Vec::new();
    for (kind, name) in &new {
        let shown = names::shown(name);
        match *kind {
            "filter" if ["clean", "smudge", "process"].iter().any(|v| set(kind, name, v)) => {
                out.extend(section(kind, name));
                out.extend(b"\tclean =\n\tsmudge =\n\tprocess =\n\trequired = false\n");
                notes.push(format!(
                    "the agent's .gitattributes sends files through the filter `{shown}` of this machine; it is off in \
                     the staged repository"
                ));
            }
            "diff" if set(kind, name, "command") => {
                refusals.say(format!(
                    ".gitattributes sends files to the program of this machine's diff.{shown}.command"
                ));
            }
            "diff" if set(kind, name, "textconv") => {
                out.extend(section(kind, name));
                out.extend(b"\ttextconv = cat\n");
            }
            "merge" if set(kind, name, "driver") => {
                refusals.say(format!(
                    ".gitattributes sends files to the program of this machine's merge.{shown}.driver"
                ));
            }
            _ => {}
        }
    }
    Ok(out)
}

fn section(kind: &str, name: &[u8]) -> Vec<u8> {
    // In a subsection only these two are escaped; whitespace cannot be in an attribute.
    let name = quoted(name);
    [b"[", kind.as_bytes(), b" ", name.as_slice(), b"]\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_found_wherever_attributes_name_them() {
        let text = b"*.a filter=lfs diff=lfs -text\n[attr]x merge=m\n# filter=c\n\"a b\" filter= diff=\n*.t text=auto";
        let found = drivers(text);
        let expected: Drivers = [("filter", "lfs"), ("diff", "lfs"), ("merge", "m"), ("filter", "c")]
            .map(|(k, n)| (k, n.as_bytes().to_vec()))
            .into();
        assert_eq!(found, expected);
    }
}
