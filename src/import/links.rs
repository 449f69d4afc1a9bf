//! Symbolic links that come back: only those that git tracks and that stay inside the repository.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::repo::names;

/// Why a link does not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its target is absolute.
    #[error("its target is absolute")]
    Absolute,
    /// Its target, followed through other links, leaves the repository.
    #[error("its target leaves the repository")]
    Outside,
    /// Its target lies in `.git`.
    #[error("its target lies in .git")]
    Git,
    /// It is part of a loop, or the chain is too long.
    #[error("it leads in a circle")]
    Loop,
    /// Its name is one that git reads as configuration.
    #[error("git reads a file by this name")]
    Name,
}

/// Paths of links, and their targets.
pub type Links = BTreeMap<Vec<u8>, Vec<u8>>;

/// How many links one resolution may pass (Linux gives up after 40).
const MOST_HOPS: usize = 40;

/// Decides about every link of a change. `all` has every link of the resulting tree, old and new.
///
/// Returns the links that come back, and the others with the reason.
pub fn decide(changed: &Links, all: &Links) -> (Links, BTreeMap<Vec<u8>, Refused>) {
    let (mut good, mut refused) = (BTreeMap::new(), BTreeMap::new());
    for (path, target) in changed {
        match check(path, target, all) {
            Ok(()) => drop(good.insert(path.clone(), target.clone())),
            Err(why) => drop(refused.insert(path.clone(), why)),
        }
    }
    (good, refused)
}

/// Follows a link the way the system would, inside a tree in which `all` are the links. A target that does
/// not exist is fine as long as its name stays inside.
fn check(path: &[u8], target: &[u8], all: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), Refused> {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    if [".gitmodules", ".gitattributes", ".gitignore"].iter().any(|n| name.eq_ignore_ascii_case(n.as_bytes()))
    {
        return Err(Refused::Name);
    }
    let mut at: Vec<&[u8]> =
        names::parent(path).map(|p| p.split(|b| *b == b'/').collect()).unwrap_or_default();
    let mut todo: Vec<&[u8]> = Vec::new();
    push_target(target, &mut todo)?;
    let mut hops = 0;
    let mut seen: BTreeSet<Vec<u8>> = BTreeSet::from([path.to_vec()]);
    while let Some(part) = todo.pop() {
        match part {
            b"" | b"." => continue,
            b".." => {
                if at.pop().is_none() {
                    return Err(Refused::Outside);
                }
                continue;
            }
            part => at.push(part),
        }
        if names::is_dot_git(part) {
            return Err(Refused::Git);
        }
        let here = at.join(&b'/');
        if let Some(next) = all.get(&here) {
            hops += 1;
            if hops > MOST_HOPS || (todo.is_empty() && !seen.insert(here)) {
                return Err(Refused::Loop);
            }
            at.pop();
            push_target(next, &mut todo)?;
        }
    }
    Ok(())
}

fn push_target<'a>(target: &'a [u8], todo: &mut Vec<&'a [u8]>) -> Result<(), Refused> {
    if target.starts_with(b"/") {
        return Err(Refused::Absolute);
    }
    todo.extend(target.split(|b| *b == b'/').rev());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt as _;

    fn links(list: &[(&str, &str)]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        list.iter().map(|(p, t)| (p.as_bytes().to_vec(), t.as_bytes().to_vec())).collect()
    }

    #[test]
    fn links_inside_come_back() {
        let all = links(&[
            ("docs/a", "../b"),
            ("dangling", "no/such"),
            ("dir link", "docs"),
            ("top", "."),
            ("x/y/z", "../../docs/./a"),
            ("via", "dir link/a"),
            ("trail", "docs/"),
        ]);
        let (good, refused) = decide(&all, &all);
        assert_eq!((good.len(), refused.len()), (all.len(), 0), "{refused:?}");
    }

    #[test]
    fn links_that_lead_out_do_not() {
        let all = links(&[
            ("abs", "/etc/passwd"),
            ("up", "../x"),
            ("deep/up", "a/../../../x"),
            ("sub/link", "../deep"),
            // A textual reading of this one stays inside.
            ("chain", "sub/link/../../etc"),
            ("git", ".git/config"),
            ("Git", "x/../.GIT/hooks"),
            ("l1", "l2"),
            ("l2", "l1"),
            ("hop", "abs"),
            (".gitmodules", "x"),
            ("self", "self"),
        ]);
        let (good, refused) = decide(&all, &all);
        assert_eq!(good.keys().collect::<Vec<_>>(), [b"sub/link"]);
        let why = |p: &str| refused[p.as_bytes()];
        assert_eq!(why("abs"), Refused::Absolute);
        assert_eq!(why("hop"), Refused::Absolute);
        assert_eq!(why("chain"), Refused::Outside);
        assert_eq!(why("git"), Refused::Git);
        assert_eq!(why("l1"), Refused::Loop);
        assert_eq!(why(".gitmodules"), Refused::Name);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Whatever is accepted resolves, on a real file system, to a place inside the directory.
        #[test]
        fn accepted_links_stay_inside_on_a_real_file_system(
            list in proptest::collection::btree_map("[abc]", "(\\.\\./){0,2}[abc]?(/(\\.\\.|[abc])){0,3}", 1..4),
        ) {
            let outer = tempfile::tempdir().unwrap();
            let top = outer.path().canonicalize().unwrap().join("top");
            std::fs::create_dir_all(top.join("d")).unwrap();
            let all: BTreeMap<Vec<u8>, Vec<u8>> = list.iter().filter(|(_, t)| !t.is_empty())
                .map(|(p, t)| (format!("d/{p}").into_bytes(), t.clone().into_bytes())).collect();
            for (p, t) in &all {
                std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(t), top.join(names::as_path(p))).unwrap();
            }
            let (good, _) = decide(&all, &all);
            for p in good.keys() {
                if let Ok(real) = top.join(names::as_path(p)).canonicalize() {
                    prop_assert!(real.starts_with(&top), "{:?} {:?}", all, real);
                }
            }
        }
    }
}
