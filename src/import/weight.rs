//! How many files a new commit stands for. A tree can name another one many times, that one a third, and so on: a few
//! small objects, and a checkout of the branch never ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::git;
use super::limits::{Limits, Refusals};
use crate::error::Result;
use crate::plan::repo::{HostRepo, Oid, names};
use crate::process::{Stdin, Stream};

/// What `git cat-file` calls a tree.
const TREE: &str = "tree";
/// The mode of a tree in a tree.
const TREE_MODE: &[u8] = b"40000";

/// Checks every tree that `tips` reach and no ref of the host does. The objects are in `git_dir` by now, hashed and
/// checked. `host_files` is about how many files a tree of the host has: where that many in each of the host's own trees
/// are still few, these need not be read.
///
/// # Errors
/// [`crate::Code::ImportBlocked`] for a tree that stands for more entries than the limit.
pub(super) async fn check(
    git_dir: &Path,
    top: &Path,
    repo: &HostRepo,
    tips: impl Iterator<Item = &Oid>,
    host_files: usize,
    limits: &Limits,
) -> Result<()> {
    let tips: Vec<String> = tips.map(|oid| format!("{oid}\n")).collect();
    if tips.is_empty() {
        return Ok(());
    }
    let old = repo.refs.refs.values().chain(repo.head.oid()).map(|oid| format!("^{oid}\n"));
    let most = limits.tree_entries;
    let mut forest = Forest::new(repo.object_format.empty_tree().as_str().len() / 2, most);
    let named = trees(git_dir, top, tips.into_iter().chain(old).collect()).await?;
    forest.read(git_dir, top, &named).await?;
    let mut weights = forest.weights();
    let host_files = host_files.max(1) as u64;
    let maybe = |w: &Weight| w.entries.saturating_add(w.unknown.saturating_mul(host_files)) > most;
    if weights.values().any(maybe) && weights.values().all(|w| w.entries <= most) {
        let input = lines(forest.unknown());
        let more = trees(git_dir, top, input).await?;
        forest.read(git_dir, top, &more).await?;
        weights = forest.weights();
    }
    let mut refusals = Refusals::default();
    let heavy = named.iter().find(|(oid, _)| weights.get(oid).is_some_and(|w| w.entries > most));
    if let Some((_, path)) = heavy {
        let place = if path.is_empty() { "the top".to_owned() } else { format!("`{}`", names::shown(path)) };
        refusals.say(format!(
            "a commit has more than {most} files at {place}: a few trees that name each other again and again"
        ));
    }
    refusals.finish().map_err(|e| {
        e.help(
            "nothing was taken over; iteration-N/stream.jsonl shows how the commit came about: let the agent take it out \
             of its branches and tags, and leave what it generates uncommitted",
        )
    })
}

/// An object name, and a path that leads to it.
type Named = Vec<(Vec<u8>, Vec<u8>)>;

/// The trees among what the lines of `input` reach.
async fn trees(git_dir: &Path, top: &Path, input: String) -> Result<Named> {
    let command = git::neutral("git rev-list", git_dir, top)
        .args(["rev-list", "--objects", "--filter=blob:none", "--ignore-missing", "--stdin"])
        .deadline(git::LONG)
        .stdin(Stdin::Bytes(input.into_bytes()));
    let list = git::run(command).await?;
    // A commit stands alone on its line, whatever else has its path behind it.
    let lines = list.split(|b| *b == b'\n').filter_map(|line| {
        let end = memchr::memchr(b' ', line)?;
        Some((unhex(&line[..end])?, line[end + 1..].to_vec()))
    });
    Ok(lines.collect())
}

/// A line for each name.
fn lines<'a>(oids: impl Iterator<Item = &'a Vec<u8>>) -> String {
    let mut text = String::new();
    for oid in oids {
        text.push_str(&crate::report::hex(oid));
        text.push('\n');
    }
    text
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    text.chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// What one tree has.
#[derive(Debug, Default)]
struct Tree {
    /// Entries, directories among them.
    entries: u64,
    /// Its directories, each as often as it is named.
    dirs: Vec<Vec<u8>>,
}

/// What one tree stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Weight {
    /// Entries, those of all trees below among them.
    entries: u64,
    /// How often trees below are named that were not read.
    unknown: u64,
}

/// Trees by their names.
#[derive(Debug)]
struct Forest {
    trees: BTreeMap<Vec<u8>, Tree>,
    /// The length of a name in bytes.
    width: usize,
    /// What a tree with more entries has below it makes no difference any more.
    most: u64,
}

impl Forest {
    fn new(width: usize, most: u64) -> Self {
        Self { trees: BTreeMap::new(), width, most }
    }

    /// Reads trees; what is no tree is passed over.
    async fn read(&mut self, git_dir: &Path, top: &Path, named: &Named) -> Result<()> {
        if named.is_empty() {
            return Ok(());
        }
        let input = lines(named.iter().map(|(oid, _)| oid));
        let mut reader =
            Reader { forest: self, head: Vec::new(), left: None, oid: Vec::new(), rest: Vec::new() };
        let command = git::neutral("git cat-file", git_dir, top)
            .args(["cat-file", "--batch", "--buffer"])
            .deadline(git::LONG)
            .keep_stdout(0)
            .stdin(Stdin::Bytes(input.into_bytes()));
        let output = command
            .stream(|stream, chunk| {
                if stream == Stream::Stdout {
                    reader.push(chunk);
                }
            })
            .await?;
        if output.status.success() { Ok(()) } else { Err(git::failed("git cat-file", &output)) }
    }

    /// Trees that are named and were not read.
    fn unknown(&self) -> impl Iterator<Item = &Vec<u8>> {
        let dirs: BTreeSet<&Vec<u8>> = self.trees.values().flat_map(|t| &t.dirs).collect();
        dirs.into_iter().filter(|oid| !self.trees.contains_key(*oid))
    }

    /// The weight of each, the lower ones first: without recursion, since their depth is the sandbox's.
    fn weights(&self) -> BTreeMap<Vec<u8>, Weight> {
        let mut done: BTreeMap<Vec<u8>, Weight> = BTreeMap::new();
        let mut pending: Vec<&Vec<u8>> = self.trees.keys().collect();
        while let Some(oid) = pending.last().copied() {
            let Some(tree) = self.trees.get(oid).filter(|_| !done.contains_key(oid)) else {
                pending.pop();
                continue;
            };
            let before = pending.len();
            pending
                .extend(tree.dirs.iter().filter(|d| self.trees.contains_key(*d) && !done.contains_key(*d)));
            if pending.len() > before {
                continue;
            }
            let mut sum = Weight { entries: tree.entries, unknown: 0 };
            for dir in &tree.dirs {
                let below = done.get(dir).copied().unwrap_or(Weight { entries: 0, unknown: 1 });
                sum.entries = sum.entries.saturating_add(below.entries);
                sum.unknown = sum.unknown.saturating_add(below.unknown);
            }
            done.insert(oid.clone(), sum);
            pending.pop();
        }
        done
    }
}

/// Reads what `git cat-file --batch` prints, however it is cut; of an entry that is cut only the beginning is kept.
struct Reader<'a> {
    forest: &'a mut Forest,
    head: Vec<u8>,
    /// How many bytes of the current object are to come, the newline behind it not counted, and whether it is a tree.
    left: Option<(u64, bool)>,
    oid: Vec<u8>,
    rest: Vec<u8>,
}

impl Reader<'_> {
    fn push(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            match self.left {
                None => {
                    let end = memchr::memchr(b'\n', chunk);
                    self.head.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
                    chunk = end.map_or(&[][..], |end| &chunk[end + 1..]);
                    if end.is_some() {
                        self.begin();
                    }
                }
                Some((0, _)) => {
                    self.left = None;
                    chunk = &chunk[1..];
                }
                Some((left, is_tree)) => {
                    let n = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                    if is_tree {
                        self.entries(&chunk[..n]);
                    }
                    self.left = Some((left - n as u64, is_tree));
                    chunk = &chunk[n..];
                }
            }
        }
    }

    /// A head: `<name> <type> <size>`, or `<name> missing` with nothing behind it.
    fn begin(&mut self) {
        let head = std::mem::take(&mut self.head);
        let head = String::from_utf8_lossy(&head);
        let words: Vec<&str> = head.split(' ').collect();
        let [oid, kind, size] = words.as_slice() else { return };
        let (Some(oid), Ok(size)) = (unhex(oid.as_bytes()), size.parse()) else { return };
        self.rest.clear();
        self.left = Some((size, *kind == TREE));
        if *kind == TREE {
            self.forest.trees.insert(oid.clone(), Tree::default());
        }
        self.oid = oid;
    }

    /// Entries of the current tree: a mode, a blank, a name, NUL, an object name in bytes.
    fn entries(&mut self, bytes: &[u8]) {
        let (width, most) = (self.forest.width, self.forest.most);
        let Some(tree) = self.forest.trees.get_mut(&self.oid) else { return };
        self.rest.extend_from_slice(bytes);
        let mut from = 0;
        while let Some(nul) = memchr::memchr(0, &self.rest[from..]).map(|at| from + at) {
            let end = nul + 1 + width;
            let Some(oid) = self.rest.get(nul + 1..end) else { break };
            tree.entries = tree.entries.saturating_add(1);
            if tree.entries <= most && self.rest[from..nul].split(|b| *b == b' ').next() == Some(TREE_MODE) {
                tree.dirs.push(oid.to_vec());
            }
            from = end;
        }
        self.rest.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(mode: &str, oid: u8) -> Vec<u8> {
        [format!("{mode} n").as_bytes(), &[0], &[oid; 4]].concat()
    }

    fn batch() -> Vec<u8> {
        let object = |oid: u8, kind: &str, text: &[u8]| {
            let head = format!("{} {kind} {}\n", format!("{oid:02x}").repeat(4), text.len());
            [head.as_bytes(), text, b"\n"].concat()
        };
        let leaf = [entry("100644", 9), entry("120000", 0)].concat();
        let twice = [entry("40000", 1), entry("40000", 1), entry("40000", 7)].concat();
        [
            object(2, "tree", &twice),
            object(5, "blob", b"40000 n\0\x01\x01\x01\x01\n"),
            object(1, "tree", &leaf),
            b"08080808 missing\n".to_vec(),
            object(3, "tree", &[entry("40000", 2), entry("100755", 9)].concat()),
            object(4, "tree", b""),
        ]
        .concat()
    }

    proptest! {
        #[test]
        fn weights_are_those_of_the_trees_however_the_batch_is_cut(width in 1..80_usize) {
            let mut forest = Forest::new(4, 1 << 40);
            let mut reader =
                Reader { forest: &mut forest, head: vec![], left: None, oid: vec![], rest: vec![] };
            for piece in batch().chunks(width) {
                reader.push(piece);
            }
            let weights: Vec<_> =
                forest.weights().into_iter().map(|(oid, w)| (oid[0], w.entries, w.unknown)).collect();
            prop_assert_eq!(weights, [(1, 2, 0), (2, 7, 1), (3, 9, 1), (4, 0, 0)]);
            prop_assert_eq!(forest.unknown().collect::<Vec<_>>(), [&vec![7; 4]]);
        }
    }

    #[test]
    fn a_bomb_weighs_what_it_stands_for_and_depth_is_no_matter() {
        let mut forest = Forest::new(4, 1 << 40);
        forest.trees.insert(vec![0; 4], Tree { entries: 10, dirs: vec![] });
        for n in 1..=100_u32 {
            let below = if n == 1 { vec![0; 4] } else { (n - 1).to_be_bytes().to_vec() };
            forest.trees.insert(n.to_be_bytes().to_vec(), Tree { entries: 10, dirs: vec![below; 10] });
        }
        assert_eq!(forest.weights()[&100_u32.to_be_bytes().to_vec()].entries, u64::MAX);
        let mut deep = Forest::new(4, 1 << 40);
        for n in 0..200_000_u32 {
            let dirs = if n == 0 { vec![] } else { vec![(n - 1).to_be_bytes().to_vec()] };
            deep.trees.insert(n.to_be_bytes().to_vec(), Tree { entries: 1, dirs });
        }
        assert_eq!(deep.weights()[&199_999_u32.to_be_bytes().to_vec()].entries, 200_000);
    }
}
