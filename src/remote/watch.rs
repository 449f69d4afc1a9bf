//! How much a directory holds, watched while it grows.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::sleep;

/// The shortest pause between two counts; a count may use a tenth of the time at most.
const PAUSE: Duration = Duration::from_millis(100);

/// What a tree holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Size {
    /// The sum of the sizes of its files, in bytes.
    pub bytes: u64,
    /// Files, directories and everything else below it.
    pub inodes: u64,
}

impl Size {
    pub(super) fn exceeds(self, limit: Size) -> bool {
        self.bytes > limit.bytes || self.inodes > limit.inodes
    }
}

/// Counts a tree, at most until it exceeds `limit`. What vanishes meanwhile does not count.
pub(super) fn count(dir: &Path, limit: Size) -> Size {
    let mut size = Size::default();
    for entry in walkdir::WalkDir::new(dir).min_depth(1).into_iter().flatten() {
        size.inodes += 1;
        if entry.file_type().is_file() {
            size.bytes += entry.metadata().map_or(0, |m| m.len());
        }
        if size.exceeds(limit) {
            break;
        }
    }
    size
}

/// Returns when the tree exceeds `limit`, with what was counted.
pub(super) async fn exceeded(dir: PathBuf, limit: Size) -> Size {
    let mut pause = PAUSE;
    loop {
        sleep(pause).await;
        let (dir, started) = (dir.clone(), Instant::now());
        let size = tokio::task::spawn_blocking(move || count(&dir, limit)).await.unwrap_or_default();
        if size.exceeds(limit) {
            return size;
        }
        pause = PAUSE.max(started.elapsed() * 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("a")).unwrap();
        fs_err::write(dir.path().join("a/f"), [0; 100]).unwrap();
        fs_err::write(dir.path().join("g"), [0; 50]).unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("l")).unwrap();
        dir
    }

    #[test]
    fn a_tree_is_counted_without_following_links() {
        let dir = tree();
        let limit = Size { bytes: 1000, inodes: 1000 };
        assert_eq!(count(dir.path(), limit), Size { bytes: 150, inodes: 4 });
        assert!(count(dir.path(), Size { bytes: 149, inodes: 9 }).exceeds(Size { bytes: 149, inodes: 9 }));
        assert!(count(dir.path(), Size { bytes: 999, inodes: 3 }).exceeds(Size { bytes: 999, inodes: 3 }));
    }

    #[tokio::test]
    async fn growth_beyond_the_limit_is_seen() {
        let dir = tree();
        let limit = Size { bytes: 1000, inodes: 100 };
        let watched = exceeded(dir.path().to_owned(), limit);
        let grow = async {
            sleep(Duration::from_millis(150)).await;
            fs_err::write(dir.path().join("h"), [0; 2000]).unwrap();
        };
        let (size, ()) = tokio::join!(watched, grow);
        assert!(size.bytes >= 2000);
    }
}
