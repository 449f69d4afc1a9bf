//! What a server prints, without secrets and within bounds.

use std::io::Write as _;
use std::path::Path;

use crate::error::Result;
use crate::secrets::{Redactor, Registry};

/// The most that is kept, in bytes.
const LIMIT: usize = 16 * 1024 * 1024;

/// The log of one server: both of its streams, each redacted on its own.
#[derive(Debug)]
pub(super) struct Log {
    file: fs_err::File,
    out: Redactor,
    err: Redactor,
    written: usize,
}

impl Log {
    /// An empty log.
    pub(super) fn create(path: &Path, secrets: &Registry) -> Result<Self> {
        if let Some(dir) = path.parent() {
            fs_err::create_dir_all(dir)?;
        }
        let file = fs_err::File::create(path)?;
        Ok(Self { file, out: Redactor::new(secrets), err: Redactor::new(secrets), written: 0 })
    }

    /// A piece of standard output.
    pub(super) fn out(&mut self, bytes: &[u8]) {
        let decided = self.out.push(bytes);
        self.write(&decided);
    }

    /// A piece of standard error.
    pub(super) fn err(&mut self, bytes: &[u8]) {
        let decided = self.err.push(bytes);
        self.write(&decided);
    }

    /// What was held back.
    pub(super) fn end(&mut self) {
        for rest in [self.out.flush(), self.err.flush()] {
            self.write(&rest);
        }
    }

    /// A full disk costs the log, not the run.
    fn write(&mut self, bytes: &[u8]) {
        if self.written >= LIMIT {
            return;
        }
        let room = LIMIT - self.written;
        let _ = self.file.write_all(&bytes[..bytes.len().min(room)]);
        self.written += bytes.len();
        if self.written >= LIMIT {
            let _ = self.file.write_all(b"\n(the rest was left out)\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Secret;

    #[test]
    fn secrets_are_taken_out_and_the_size_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/x.log");
        let secrets = Registry::new(&[Secret::new("s3cr3t-value-1")]);
        let mut log = Log::create(&path, &secrets).unwrap();
        for piece in ["token s3cr3t-", "value-1 seen\n"] {
            log.err(piece.as_bytes());
        }
        log.end();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "token *** seen\n");
        for _ in 0..20 {
            log.out(&vec![b'x'; 1024 * 1024]);
        }
        log.end();
        let size = usize::try_from(fs_err::metadata(&path).unwrap().len()).unwrap();
        assert!((LIMIT..LIMIT + 100).contains(&size), "{size}");
    }
}
