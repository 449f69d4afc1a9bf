//! Symbolic links of one import: which of the working tree come back, and which of the staged ones may enter the
//! host's index. Git would make a link of the index on the next checkout, so the same rules hold for both.

use std::collections::{BTreeMap, BTreeSet};

use super::git;
use super::index::{IndexUpdate, Mode};
use super::links;
use super::quarantine::Quarantine;
use super::staged::StageInput;
use crate::error::{Error, Result};
use crate::plan::repo::{Kind, names};
use crate::process::Stdin;

/// The longest target of a link, in bytes (`PATH_MAX` of Linux).
const MAX_TARGET: u64 = 4096;
/// How many refused links are told one by one.
const SHOWN: usize = 10;

/// The links of the tree that results, and what is refused of them.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: links::Links,
    /// Refused paths, with a line each.
    refused: BTreeMap<Vec<u8>, String>,
}

impl Links {
    /// Every link of the working tree that results.
    pub(super) fn of(input: StageInput<'_>) -> Self {
        let delta = input.delta;
        let kept = input.manifest.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::Link(target) if !delta.deleted.contains(&entry.path) => {
                Some((entry.path.clone(), target.clone()))
            }
            _ => None,
        });
        let all = kept.chain(delta.links.clone()).collect();
        Self { all, refused: BTreeMap::new() }
    }

    /// Of the changed links of the working tree those that come back.
    pub(super) fn plan(&mut self, changed: &links::Links) -> links::Links {
        let (good, refused) = links::decide(changed, &self.all);
        for (path, why) in refused {
            self.refuse(&path, &changed[&path], &why.to_string());
        }
        good
    }

    fn refuse(&mut self, path: &[u8], target: &[u8], why: &str) {
        let line = format!(
            "the link `{}` -> `{}` is not taken over: {why}",
            names::shown(path),
            names::shown(target)
        );
        self.refused.insert(path.to_vec(), line);
    }

    /// Takes out of an update of the index the links that may not come in; the host's entry for them stays.
    pub(super) async fn keep_out(&mut self, quarantine: &Quarantine, update: &mut IndexUpdate) -> Result<()> {
        let staged: BTreeMap<Vec<u8>, String> = update
            .set
            .iter()
            .filter(|(_, (mode, _))| *mode == Mode::Link)
            .map(|(path, (_, oid))| (path.clone(), oid.to_string()))
            .collect();
        if staged.is_empty() {
            return Ok(());
        }
        let targets = targets(quarantine, staged.values().map(String::as_str).collect()).await?;
        let mut found = links::Links::new();
        for (path, oid) in &staged {
            match targets.get(oid) {
                Some(target) => drop(found.insert(path.clone(), target.clone())),
                None => self.refuse(path, b"", "its target is no path"),
            }
        }
        // What is staged may lead elsewhere than what lies in the working tree.
        let mut all = self.all.clone();
        all.extend(found.clone());
        let (_, refused) = links::decide(&found, &all);
        for (path, why) in refused {
            self.refuse(&path, &found[&path], &why.to_string());
        }
        update.set.retain(|path, _| !staged.contains_key(path) || !self.refused.contains_key(path));
        Ok(())
    }

    /// What the user should hear.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.refused.values().take(SHOWN).cloned().collect();
        if self.refused.len() > SHOWN {
            lines.push(format!("{} more links are not taken over", self.refused.len() - SHOWN));
        }
        lines
    }
}

/// The content of these blobs, by name; what is too long for a target is missing.
async fn targets(quarantine: &Quarantine, oids: BTreeSet<&str>) -> Result<BTreeMap<String, Vec<u8>>> {
    let call = |flag: &str, oids: &mut dyn Iterator<Item = &str>| {
        let input = oids.flat_map(|oid| format!("{oid}\n").into_bytes()).collect();
        git::run(
            git::neutral("git cat-file", quarantine.dir(), quarantine.dir())
                .args(["cat-file", flag])
                .stdin(Stdin::Bytes(input)),
        )
    };
    let sizes = call("--batch-check=%(objectname) %(objectsize)", &mut oids.iter().copied()).await?;
    let sizes = String::from_utf8_lossy(&sizes).into_owned();
    let small = sizes.lines().filter_map(|line| {
        let (oid, size) = line.split_once(' ')?;
        size.parse::<u64>().ok().filter(|size| (1..=MAX_TARGET).contains(size)).map(|_| oid)
    });
    let text = call("--batch", &mut small.into_iter()).await?;
    let mut out = BTreeMap::new();
    let mut rest = text.as_slice();
    let cut = || Error::bug("git cat-file printed something else than was asked for");
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).ok_or_else(cut)?;
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        let mut fields = head.split(' ');
        let (Some(oid), Some(_kind), Some(size)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(cut());
        };
        let size: usize = size.parse().map_err(|_| cut())?;
        let content = rest.get(end + 1..end + 1 + size).ok_or_else(cut)?;
        out.insert(oid.to_owned(), content.to_vec());
        rest = &rest[(end + 2 + size).min(rest.len())..];
    }
    Ok(out)
}
