//! A queue between a client that sends and a command that may not read.
//!
//! russh widens a channel's window as data arrives, not as it is used, and one full channel stops the whole
//! connection. So what comes in is taken at once; beyond a limit it waits in an unnamed file, not in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// What is kept in memory, in bytes.
const MEMORY: usize = 8 * 1024 * 1024;
/// The size of a piece that is read back from the file, in bytes.
const PIECE: usize = 256 * 1024;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Spool {
    memory: VecDeque<Vec<u8>>,
    held: usize,
    file: Option<File>,
    written: u64,
    read: u64,
}

impl Spool {
    /// Adds bytes at the end.
    pub(super) fn push(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if self.written == self.read && self.held + bytes.len() <= MEMORY {
            self.held += bytes.len();
            self.memory.push_back(bytes);
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &self.file {
            file.write_all_at(&bytes, self.written)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    /// Takes bytes from the front; `None` when it is empty.
    pub(super) fn pop(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.memory.pop_front() {
            self.held -= bytes.len();
            return Ok(Some(bytes));
        }
        let left = self.written - self.read;
        let Some(file) = self.file.as_ref().filter(|_| left > 0) else { return Ok(None) };
        let mut piece = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
        file.read_exact_at(&mut piece, self.read)?;
        self.read += piece.len() as u64;
        if self.read == self.written {
            (self.read, self.written) = (0, 0);
            file.set_len(0)?;
        }
        Ok(Some(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_across_memory_and_file() {
        let mut spool = Spool::default();
        let mut sent = Vec::new();
        let mut got = Vec::new();
        for round in 0_u8..50 {
            let chunk = vec![round; 300_000];
            sent.extend_from_slice(&chunk);
            spool.push(chunk).unwrap();
            if round % 3 == 0 {
                got.extend_from_slice(&spool.pop().unwrap().unwrap());
            }
            assert!(spool.held <= MEMORY);
        }
        assert!(spool.written > 0, "the file must have been used");
        while let Some(bytes) = spool.pop().unwrap() {
            got.extend_from_slice(&bytes);
        }
        assert_eq!(got, sent);
        spool.push(b"again".to_vec()).unwrap();
        assert_eq!(spool.pop().unwrap().unwrap(), b"again");
        assert!(spool.pop().unwrap().is_none());
    }
}
