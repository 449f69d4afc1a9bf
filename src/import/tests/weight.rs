//! Commits of a few objects that stand for many files.

use super::super::weight::check;
use super::*;
use crate::plan::repo::Oid;

/// Makes a commit whose tree names `tree` so many times, and gives its name.
fn multiplied(trip: &Trip<'_>, tree: &str, times: usize) -> String {
    let lines: Vec<String> = (0..times).map(|n| format!("040000 tree {tree}\td{n}\n")).collect();
    let file = trip.top.join("../lines");
    std::fs::write(&file, lines.concat()).unwrap();
    let mut command = command("git", &trip.top);
    let made = command.arg("mktree").stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    let tree = String::from_utf8(made.stdout).unwrap();
    trip.git(&["commit-tree", "-m", "x", tree.trim()]).trim().to_owned()
}

async fn weighed(trip: &Trip<'_>, commit: &str, host_files: usize, most: u64) -> bool {
    let limits = Limits { tree_entries: most, ..Limits::default() };
    let oid = Oid::parse(commit.as_bytes(), trip.repo.object_format).unwrap();
    let done =
        check(&trip.top.join(".git"), &trip.top, &trip.repo, std::iter::once(&oid), host_files, &limits)
            .await;
    if let Err(error) = &done {
        assert_eq!(error.code(), crate::Code::ImportBlocked, "{error}");
    }
    done.is_ok()
}

#[tokio::test]
async fn a_tree_counts_as_often_as_it_is_named_also_one_of_the_host() {
    let host = Host::new();
    let trip = host.upload().await;
    // `a`, `b`, `dir`, `dir/c`: four entries.
    let root = trip.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let five = multiplied(&trip, &root, 5);
    for host_files in [1, 4, 1000] {
        assert!(weighed(&trip, &five, host_files, 25).await, "{host_files}");
    }
    for host_files in [4, 1000] {
        assert!(!weighed(&trip, &five, host_files, 24).await, "{host_files}");
    }
    let tree = trip.git(&["rev-parse", &format!("{five}^{{tree}}")]).trim().to_owned();
    let fifty = multiplied(&trip, &tree, 10);
    assert!(weighed(&trip, &fifty, 4, 260).await);
    assert!(!weighed(&trip, &fifty, 4, 259).await);
    // What the host has is its own, however much it is.
    let head = trip.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert!(weighed(&trip, &head, 4, 1).await);
}
