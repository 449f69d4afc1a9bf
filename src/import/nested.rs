//! Repositories that the agent made inside the repository: a clone, `git init`, `git worktree add`.
//!
//! They are refused, since a program could stand in their configuration; but honest agents make them, so each is told in
//! one line, and the rest of the change can be had without them.

use std::collections::{BTreeMap, BTreeSet};

use super::delta::Delta;
use super::listing::{Listing, Type};
use crate::plan::repo::names;

/// The name of what makes a directory a repository.
const GIT: &[u8] = b".git";

/// Repositories inside the repository, by the directory that holds `.git`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Nested(BTreeSet<Vec<u8>>);

impl Nested {
    /// Those that are new. Only a directory or a file of exactly this name makes one; another form of it is no accident.
    pub fn find(delta: &Delta, after: &Listing) -> Self {
        let made = delta.files.keys().chain(&delta.dirs);
        let plain = |git: &Vec<u8>| after.get(git).is_some_and(|e| matches!(e.kind, Type::Dir | Type::File));
        let repositories = made.filter_map(|path| git_of(path)).filter(plain);
        Self(repositories.filter_map(|git| names::parent(&git).map(<[u8]>::to_vec)).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The directories.
    pub fn dirs(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Whether a path is the `.git` of one of them or lies below it.
    pub fn holds(&self, path: &[u8]) -> bool {
        git_of(path).and_then(|git| names::parent(&git).map(|dir| self.0.contains(dir))).unwrap_or(false)
    }

    /// The change without them: their files stay, as plain ones.
    pub fn without(&self, delta: &Delta) -> Delta {
        fn keep<V: Clone>(map: &BTreeMap<Vec<u8>, V>, nested: &Nested) -> BTreeMap<Vec<u8>, V> {
            map.iter().filter(|(p, _)| !nested.holds(p)).map(|(p, v)| (p.clone(), v.clone())).collect()
        }
        let stays = |paths: &BTreeSet<Vec<u8>>| paths.iter().filter(|p| !self.holds(p)).cloned().collect();
        Delta {
            files: keep(&delta.files, self),
            dirs: stays(&delta.dirs),
            links: keep(&delta.links, self),
            specials: stays(&delta.specials),
            ..delta.clone()
        }
    }
}

/// The outermost `.git` of a path that is not at the top.
fn git_of(path: &[u8]) -> Option<Vec<u8>> {
    let mut end = 0;
    for part in path.split(|b| *b == b'/') {
        let begin = end;
        end = begin + part.len();
        if part == GIT && begin > 0 {
            return Some(path[..end].to_vec());
        }
        end += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::listing::{Entry, Time};
    use super::*;

    #[test]
    fn a_repository_is_found_by_its_git_and_taken_out_with_it() {
        let time = Time { sec: 1, nsec: 0 };
        let entry =
            |kind| Entry { kind, size: 1, mode: 0o644, mtime: time, ctime: time, target: b"x".to_vec() };
        let all = [
            ("v/foo/.git", Type::Dir),
            ("v/foo/.git/config", Type::File),
            ("v/foo/.git/modules/.git", Type::Dir),
            ("v/foo/src", Type::File),
            ("tree/.git", Type::File),
            ("link/.git", Type::Link),
            ("upper/.GIT", Type::Dir),
            ("x.git", Type::Dir),
            ("x.git/HEAD", Type::File),
        ];
        let mut delta = Delta::default();
        for (path, kind) in all {
            let path = path.as_bytes().to_vec();
            match kind {
                Type::File => drop(delta.files.insert(path, false)),
                Type::Dir => drop(delta.dirs.insert(path)),
                _ => drop(delta.links.insert(path, b"x".to_vec())),
            }
        }
        let after = Listing(all.iter().map(|(p, k)| (p.as_bytes().to_vec(), entry(*k))).collect());
        let nested = Nested::find(&delta, &after);
        assert_eq!(nested.dirs().collect::<Vec<_>>(), [&b"tree"[..], b"v/foo"]);
        let rest = nested.without(&delta);
        assert_eq!(rest.files.keys().collect::<Vec<_>>(), [&b"v/foo/src"[..], b"x.git/HEAD"]);
        assert_eq!(rest.dirs.iter().collect::<Vec<_>>(), [&b"upper/.GIT"[..], b"x.git"]);
        assert_eq!(
            rest.links.len(),
            1,
            "a link in the place of .git is no repository, and stays to be refused"
        );
    }
}
