//! The index as text: what `git ls-files -s -z` prints, on either side.
//!
//! The binary index of the sandbox is never read. It can mark a changed file as unchanged (assume-unchanged,
//! skip-worktree, forged times), name a program-run extension, or hide entries; the text has modes, objects
//! and paths only.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::{Limits, Refusals};
use crate::error::Result;
use crate::plan::repo::{Manifest, ObjectFormat, Oid, names};

/// The command that prints the text in the sandbox, to be run in the repository. Without the monitor, which would
/// be a program of the agent that runs after its end and may write into the tree; for the same reason nothing here
/// compares files. A pipe in place of `.git/HEAD` or the index would block git until the deadline of collecting, so it
/// has one of its own where the image has `timeout`.
///
/// An entry of `git add -N` looks like an empty file that was staged. Where there is such an entry, a second part
/// lists what is really staged, between `:` and `.`.
pub const LS_FILES: &str = "{ t=$(command -v timeout > /dev/null && echo timeout 60 || :); \
    $t git -c core.fsmonitor=false ls-files -s -z --full-name && \
    if $t git -c core.fsmonitor=false ls-files -s | grep -Eq \
    \" (e69de29bb2d1d6434b8b29ae775ad8c2e48c5391|473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813) 0\"; \
    then printf \":\\0\"; $t git -c core.fsmonitor=false diff-index -z --cached --ita-invisible-in-index \
    --diff-filter=A --no-renames --no-ext-diff \"$(git hash-object -t tree /dev/null)\" && printf \".\\0\" || :; fi; }";

/// The mode of an index entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// 100644
    File,
    /// 100755
    Executable,
    /// 120000
    Link,
    /// 160000: the commit of a repository inside the repository.
    Gitlink,
}

impl Mode {
    fn parse(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"100644" => Self::File,
            b"100755" => Self::Executable,
            b"120000" => Self::Link,
            b"160000" => Self::Gitlink,
            _ => return None,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Gitlink => "160000",
        }
    }
}

/// An index: path to mode and object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// Entries that are settled (stage 0).
    pub entries: BTreeMap<Vec<u8>, (Mode, Oid)>,
    /// Paths in conflict; they stay as they are on the host.
    pub unmerged: Vec<Vec<u8>>,
    /// Paths that are to be added and have no content yet (`git add -N`).
    pub intended: BTreeSet<Vec<u8>>,
}

impl Index {
    /// Parses the text.
    ///
    /// # Errors
    /// [`crate::Code::ImportBlocked`] with every line that git could not have printed or that must not be.
    pub fn parse(text: &[u8], format: ObjectFormat, limits: &Limits) -> Result<Self> {
        let mut index = Self::default();
        let mut refusals = Refusals::default();
        if text.len() as u64 > limits.text_bytes {
            refusals.say("the index from the sandbox is too large");
            return refusals.finish().map(|()| index);
        }
        let mut records: Vec<&[u8]> = match text.strip_suffix(b"\0") {
            Some(rest) => rest.split(|b| *b == 0).collect(),
            None if text.is_empty() => Vec::new(),
            None => {
                refusals.say("the index from the sandbox is cut off");
                Vec::new()
            }
        };
        let really = match records.iter().position(|r| *r == b":") {
            Some(at) => records.split_off(at),
            None => Vec::new(),
        };
        for record in records {
            match parse_record(record, format) {
                Ok((path, Some(entry))) => {
                    if index.entries.insert(path.to_vec(), entry).is_some() {
                        refusals.add(path, "twice in the index");
                    }
                }
                Ok((path, None)) => {
                    if index.unmerged.last().map(Vec::as_slice) != Some(path) {
                        index.unmerged.push(path.to_vec());
                    }
                }
                Err((path, why)) => refusals.add(path, why),
            }
        }
        // Without its end the second part says nothing.
        if let [_, listed @ .., b"."] = really.as_slice() {
            index.set_intended(listed, format);
        }
        refusals.finish().map(|()| index)
    }

    /// Takes the entries with no content that `listed` (`git diff-index -z`: a line, a path) lacks for intended.
    fn set_intended(&mut self, listed: &[&[u8]], format: ObjectFormat) {
        let real: BTreeSet<&[u8]> = listed.chunks_exact(2).map(|pair| pair[1]).collect();
        let empty = format.empty_blob();
        let intended = |path: &[u8], oid: &Oid| *oid == empty && !real.contains(path);
        let found = self.entries.iter().filter(|(path, (_, oid))| intended(path, oid));
        self.intended = found.map(|(path, _)| path.clone()).collect();
        self.entries.retain(|path, _| !self.intended.contains(path));
    }

    /// Whether an entry may be one of `git add -N`.
    pub(super) fn has_empty(&self, format: ObjectFormat) -> bool {
        let empty = format.empty_blob();
        self.entries.values().any(|(_, oid)| *oid == empty)
    }
}

type Parsed<'a> = Result<(&'a [u8], Option<(Mode, Oid)>), (&'a [u8], String)>;

fn parse_record(record: &[u8], format: ObjectFormat) -> Parsed<'_> {
    let Some(tab) = record.iter().position(|b| *b == b'\t') else {
        return Err((record, "not a line of an index".to_owned()));
    };
    let (head, path) = (&record[..tab], &record[tab + 1..]);
    let bad = |why: &str| Err((path, why.to_owned()));
    if let Err(why) = names::check(path) {
        return Err((path, format!("{why} in the index")));
    }
    let fields: Vec<_> = head.split(|b| *b == b' ').collect();
    let [mode, oid, stage] = fields.as_slice() else { return bad("not a line of an index") };
    let Some(mode) = Mode::parse(mode) else { return bad("a mode in the index that git does not use") };
    let Some(oid) = Oid::parse(oid, format).filter(|o| !o.is_zero()) else {
        return bad("an object name in the index that is none");
    };
    // A link by this name would be read as configuration of submodules (CVE-2018-11235 and its kin).
    if mode == Mode::Link
        && path.rsplit(|b| *b == b'/').next().is_some_and(|n| n.eq_ignore_ascii_case(b".gitmodules"))
    {
        return bad("a link in the place of .gitmodules");
    }
    match *stage {
        b"0" => Ok((path, Some((mode, oid)))),
        b"1" | b"2" | b"3" => Ok((path, None)),
        _ => bad("a stage in the index that is none"),
    }
}

/// What is to be changed in the host's index so that it says what the sandbox's does. Entries that are equal
/// are not touched, so that the host keeps its flags and its cached times for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUpdate {
    /// New and changed entries.
    pub set: BTreeMap<Vec<u8>, (Mode, Oid)>,
    /// Entries that go.
    pub remove: Vec<Vec<u8>>,
    /// Paths for `git add -N`.
    pub intend: Vec<Vec<u8>>,
}

impl IndexUpdate {
    /// The difference from `host` to `sandbox`, without conflicts and without what stayed on the host.
    pub fn between(host: &Index, sandbox: &Index, manifest: &Manifest) -> Self {
        let untouchable = |path: &[u8]| {
            let held = |list: &[Vec<u8>]| list.iter().any(|p| p == path);
            held(&host.unmerged) || held(&sandbox.unmerged) || manifest.is_left_out(path)
        };
        let changed = |(path, entry): &(&Vec<u8>, &(Mode, Oid))| {
            host.entries.get(*path) != Some(*entry) && !untouchable(path)
        };
        let gone = |path: &&Vec<u8>| !sandbox.entries.contains_key(*path) && !untouchable(path);
        let dropped = |path: &&Vec<u8>| gone(path) && !sandbox.intended.contains(*path);
        let intend = |path: &&Vec<u8>| !host.intended.contains(*path) && !untouchable(path);
        Self {
            set: sandbox.entries.iter().filter(changed).map(|(p, e)| (p.clone(), e.clone())).collect(),
            remove: host
                .entries
                .keys()
                .filter(gone)
                .chain(host.intended.iter().filter(dropped))
                .cloned()
                .collect(),
            intend: sandbox.intended.iter().filter(intend).cloned().collect(),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty() && self.intend.is_empty()
    }

    /// The input of `git update-index -z --index-info`: removals first, so that a file can make room for a
    /// directory.
    pub fn index_info(&self, format: ObjectFormat) -> Vec<u8> {
        let mut out = Vec::new();
        let zero = format.zero();
        for path in &self.remove {
            line(&mut out, "0", &zero, path);
        }
        for (path, (mode, oid)) in &self.set {
            line(&mut out, mode.as_str(), oid, path);
        }
        out
    }
}

/// The input of `git update-index -z --index-info` for a whole index.
pub(super) fn whole(index: &Index) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, (mode, oid)) in &index.entries {
        line(&mut out, mode.as_str(), oid, path);
    }
    out
}

fn line(out: &mut Vec<u8>, mode: &str, oid: &Oid, path: &[u8]) {
    out.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
    out.extend_from_slice(path);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    fn parse(lines: &[String]) -> Result<Index> {
        let text = lines.join("\0") + if lines.is_empty() { "" } else { "\0" };
        Index::parse(text.as_bytes(), ObjectFormat::Sha1, &Limits::default())
    }

    fn manifest() -> Manifest {
        Manifest { entries: vec![], git: vec![], left_out: vec![], warnings: vec![], bytes: 0, index: None }
    }

    #[test]
    fn good_lines_are_read() {
        let index = parse(&[
            format!("100644 {A} 0\ta b"),
            format!("120000 {A} 0\tl\nx"),
            format!("100755 {A} 1\tc"),
            format!("100755 {B} 2\tc"),
        ])
        .unwrap();
        assert_eq!(index.entries.len(), 2);
        assert_eq!(index.entries[&b"l\nx"[..]].0, Mode::Link);
        assert_eq!(index.unmerged, [b"c"]);
    }

    #[test]
    fn an_intention_to_add_is_told_from_an_empty_file() {
        let empty = ObjectFormat::Sha1.empty_blob();
        let line = |path: &str| format!("100644 {empty} 0\t{path}");
        let head = format!(":000000 100644 {} {empty} A", "0".repeat(40));
        let mut lines = vec![line("empty"), line("intended"), ":".to_owned(), head, "empty".to_owned()];
        assert!(parse(&lines).unwrap().intended.is_empty(), "a part that is cut off says nothing");
        lines.push(".".to_owned());
        let index = parse(&lines).unwrap();
        assert_eq!(index.intended.iter().collect::<Vec<_>>(), [b"intended"]);
        assert_eq!(index.entries.keys().collect::<Vec<_>>(), [b"empty"]);
        let host = parse(&[line("intended")]).unwrap();
        let update = IndexUpdate::between(&host, &index, &manifest());
        assert_eq!((update.remove, update.intend), (vec![b"intended".to_vec()], vec![b"intended".to_vec()]));
        assert!(IndexUpdate::between(&index, &index, &manifest()).is_empty());
        let update = IndexUpdate::between(&index, &Index::default(), &manifest());
        assert_eq!(update.remove, [b"empty".to_vec(), b"intended".to_vec()]);
    }

    #[test]
    fn hostile_lines_are_refused_together() {
        let lines = [
            format!("100644 {A} 0\t.git/config"),
            format!("100644 {A} 0\t../x"),
            format!("100664 {A} 0\tmode"),
            format!("100644 {} 0\tshort", &A[1..]),
            format!("100644 {} 0\tzero", A.replace('1', "0")),
            format!("100644 {A} 4\tstage"),
            format!("120000 {A} 0\tsub/.gitmodules"),
            format!("040000 {A} 0\ttree"),
            "nonsense".to_owned(),
        ];
        let error = parse(&lines).unwrap_err();
        assert_eq!(error.code(), crate::Code::ImportBlocked);
        assert_eq!(error.detail_text().unwrap().lines().count(), lines.len());
        assert!(Index::parse(b"100644", ObjectFormat::Sha1, &Limits::default()).is_err());
    }

    #[test]
    fn conflicts_and_left_out_paths_stay_as_the_host_has_them() {
        let host =
            parse(&[format!("100644 {A} 0\ta"), format!("100644 {A} 0\tkeep"), format!("100644 {A} 0\tm")])
                .unwrap();
        let sandbox = parse(&[format!("100644 {B} 0\ta"), format!("100644 {A} 2\tm")]).unwrap();
        let mut m = manifest();
        m.left_out.push(crate::plan::repo::LeftOut {
            path: b"keep".to_vec(),
            why: crate::plan::repo::Why::Excluded,
        });
        let update = IndexUpdate::between(&host, &sandbox, &m);
        assert_eq!(update.set.keys().collect::<Vec<_>>(), [b"a"]);
        assert!(update.remove.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Index::parse(&text, ObjectFormat::Sha1, &Limits::default());
        }

        /// Updating the host's index gives the sandbox's.
        #[test]
        fn the_update_is_complete(
            a in proptest::collection::btree_map("[a-c]{1,2}", 0u8..2, 0..6),
            b in proptest::collection::btree_map("[a-c]{1,2}", 0u8..2, 0..6),
        ) {
            let index = |m: &BTreeMap<String, u8>| parse(&m.iter()
                .map(|(p, k)| format!("100644 {} 0\t{p}", if *k == 0 { A } else { B })).collect::<Vec<_>>()).unwrap();
            let (host, sandbox) = (index(&a), index(&b));
            let update = IndexUpdate::between(&host, &sandbox, &manifest());
            let mut result = host.entries.clone();
            for p in &update.remove { result.remove(p); }
            result.extend(update.set.clone());
            prop_assert_eq!(result, sandbox.entries);
        }
    }
}
