//! A file that appears under its name when all of it is on the disk. Whoever kills the run in the middle of writing, and
//! a disk that is full, leave what was there before.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// A file that is being written; one that is not finished goes.
#[derive(Debug)]
pub(super) struct Whole {
    dir: PathBuf,
    half: NamedTempFile,
}

impl Whole {
    /// Begins an empty file in a directory.
    pub(super) fn begin(dir: &Path) -> Result<Self> {
        let half = tempfile::Builder::new()
            .prefix(".changes-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(dir)
            .map_err(|e| Error::io(&format!("cannot write into {}", dir.display()), &e))?;
        Ok(Self { dir: dir.to_owned(), half })
    }

    /// Where to write.
    pub(super) fn path(&self) -> &Path {
        self.half.path()
    }

    /// Gives it its name. Returns its size in bytes.
    pub(super) fn finish(self, name: &str) -> Result<u64> {
        let to = self.dir.join(name);
        let failed = |e: &std::io::Error| Error::io(&format!("cannot write {}", to.display()), e);
        // Opened anew: git may have put another file in its place.
        let written = std::fs::File::open(self.half.path()).map_err(|e| failed(&e))?;
        written.sync_all().map_err(|e| failed(&e))?;
        let bytes = written.metadata().map_err(|e| failed(&e))?.len();
        self.half.persist(&to).map_err(|e| failed(&e.error))?;
        // The name too is to survive a machine that stops; not every file system can be asked for that.
        if let Ok(dir) = std::fs::File::open(&self.dir) {
            let _ = dir.sync_all();
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_when_it_is_whole_and_the_one_before_stays_until_then() {
        let dir = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        let to = dir.path().join("f");
        std::fs::write(&to, "before").unwrap();
        let half = Whole::begin(dir.path()).unwrap();
        std::fs::write(half.path(), "half").unwrap();
        drop(half);
        assert_eq!((std::fs::read(&to).unwrap().as_slice(), names()), (&b"before"[..], 1));
        let whole = Whole::begin(dir.path()).unwrap();
        std::fs::write(whole.path(), "whole").unwrap();
        assert_eq!(whole.finish("f").unwrap(), 5);
        assert_eq!((std::fs::read(&to).unwrap().as_slice(), names()), (&b"whole"[..], 1));
    }
}
