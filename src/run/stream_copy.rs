//! The copy of a stream on this host. It is bounded: what does not fit is left out before the end, as the end says how
//! it went.

use std::collections::VecDeque;
use std::io::{Error, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde_json::json;

use crate::error::Result;
use crate::process::scale;
use crate::report::bytes;

/// The most that the copy holds before something is left out.
const CAP: u64 = 250_000_000;
/// How much of the end is kept then.
const TAIL: u64 = 1_000_000;

/// The type of the line that stands in place of what was left out.
const TRUNCATED: &str = "fullsend.truncated";

/// Writes the copy. Never fails before its end: whoever reads a stream must keep draining.
#[derive(Debug)]
pub(super) struct StreamCopy {
    file: fs_err::File,
    failed: Option<Error>,
    cap: u64,
    /// How much of the end is kept.
    most: usize,
    written: u64,
    /// Where the last whole line ends.
    whole: u64,
    full: bool,
    /// The newest bytes, once it is full.
    tail: VecDeque<u8>,
    /// The next bytes belong to a line whose beginning is missing.
    cut: bool,
    left_out: u64,
}

impl StreamCopy {
    /// Begins the copy. It is not buffered: what was heard of an agent must outlive a run that is killed.
    pub(super) fn create(path: &Path) -> Result<Self> {
        Ok(Self::new(fs_err::File::create(path)?, scale::size(CAP), scale::size(TAIL)))
    }

    fn new(file: fs_err::File, cap: u64, tail: u64) -> Self {
        Self {
            file,
            failed: None,
            cap,
            most: usize::try_from(tail).unwrap_or(usize::MAX),
            written: 0,
            whole: 0,
            full: false,
            tail: VecDeque::new(),
            cut: false,
            left_out: 0,
        }
    }

    /// Takes the next bytes. True when something has to be left out from now on.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> bool {
        if self.full {
            self.keep_end(bytes);
            return false;
        }
        if self.cut {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            self.cut = end == bytes.len() && !bytes.ends_with(b"\n");
            self.left_out += end as u64;
            bytes = &bytes[end..];
        }
        let room = usize::try_from(self.cap.saturating_sub(self.written)).unwrap_or(usize::MAX);
        if bytes.len() <= room {
            self.write(bytes);
            return false;
        }
        self.fill(&bytes[..room], &bytes[room..]);
        true
    }

    /// Writes the lines that still fit.
    fn fill(&mut self, fits: &[u8], rest: &[u8]) {
        let lines = memchr::memrchr(b'\n', fits).map_or(0, |at| at + 1);
        let begun = self.written != self.whole;
        // A line without end is kept as far as it fits: there is nothing else.
        let endless = lines == 0 && self.whole == 0;
        let (now, later) = fits.split_at(if endless { fits.len() } else { lines });
        self.write(now);
        if endless {
            self.write(b"\n");
        } else {
            self.drop_unfinished();
        }
        self.cut = lines == 0 && begun || endless;
        self.full = true;
        self.record(&format!(
            "the first {} are above; of the rest only the end is kept, below",
            bytes(self.written)
        ));
        self.keep_end(later);
        self.keep_end(rest);
    }

    /// Takes back the beginning of a line whose end does not fit.
    fn drop_unfinished(&mut self) {
        let length = self.written - self.whole;
        if length == 0 || self.whole == 0 {
            return;
        }
        let back =
            self.file.file().set_len(self.whole).and_then(|()| self.file.seek(SeekFrom::Start(self.whole)));
        match back {
            Ok(_) => {
                self.left_out += length;
                self.written = self.whole;
            }
            Err(error) => drop(self.failed.get_or_insert(error)),
        }
    }

    /// So many bytes are missing before the next ones.
    pub(super) fn gap(&mut self, missing: u64) {
        self.left_out += missing + self.tail.len() as u64;
        self.tail.clear();
        self.cut = true;
        if !self.full {
            self.drop_unfinished();
            if self.written != self.whole {
                self.write(b"\n");
            }
            self.record(&format!("{} are left out here", bytes(missing)));
        }
    }

    /// Writes the end. Returns how many bytes are left out in all.
    pub(super) fn finish(mut self) -> std::result::Result<u64, Error> {
        if self.cut && self.full {
            let start =
                memchr::memchr(b'\n', self.tail.make_contiguous()).map_or(self.tail.len(), |at| at + 1);
            self.left_out += start as u64;
            self.tail.drain(..start);
        }
        let tail = std::mem::take(&mut self.tail);
        let (first, second) = tail.as_slices();
        self.write(first);
        self.write(second);
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.left_out),
        }
    }

    fn keep_end(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(self.most)..];
        let drop = (self.tail.len() + kept.len()).saturating_sub(self.most);
        let lost = drop + (bytes.len() - kept.len());
        self.cut |= lost > 0;
        self.left_out += lost as u64;
        self.tail.drain(..drop);
        self.tail.extend(kept);
    }

    fn record(&mut self, message: &str) {
        let record = json!({"type": TRUNCATED, "message": message});
        self.write(format!("{record}\n").as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(at) = memchr::memrchr(b'\n', bytes) {
            self.whole = self.written + at as u64 + 1;
        }
        self.written += bytes.len() as u64;
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            self.failed = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The copy, and what it left out.
    fn copy(pieces: &[Option<&[u8]>], cap: u64, tail: u64) -> (String, u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stream.jsonl");
        let mut kept = StreamCopy::new(fs_err::File::create(&path).unwrap(), cap, tail);
        for piece in pieces {
            match piece {
                Some(bytes) => drop(kept.push(bytes)),
                None => kept.gap(1000),
            }
        }
        let left_out = kept.finish().unwrap();
        (std::fs::read_to_string(path).unwrap(), left_out)
    }

    /// The lines, without those of ours.
    fn split(text: &str) -> (Vec<&str>, usize) {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            text.split_inclusive('\n').partition(|l| l.contains(TRUNCATED));
        (theirs, ours.len())
    }

    #[test]
    fn what_fits_is_copied_as_it_is() {
        let text = b"one\ntwo\nunfinished";
        assert_eq!(copy(&[Some(&text[..5]), Some(&text[5..])], 18, 5), ("one\ntwo\nunfinished".into(), 0));
    }

    #[test]
    fn first_lines_and_last_lines_are_kept_whole() {
        let text: String = (10..100).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        for width in [1, 7, 8, 1000] {
            let chunks: Vec<_> = text.as_bytes().chunks(width).map(Some).collect();
            let (out, left_out) = copy(&chunks, 30, 20);
            assert_eq!(
                split(&out),
                (vec!["line 10\n", "line 11\n", "line 12\n", "line 98\n", "line 99\n"], 1)
            );
            assert_eq!(left_out, 85 * 8, "{width}");
        }
    }

    #[test]
    fn a_gap_is_told_and_the_lines_that_it_cut_are_left_out() {
        let (out, left_out) = copy(&[Some(b"one\nhal"), None, Some(b"f\ntw"), Some(b"o\n")], 1000, 10);
        assert_eq!(split(&out), (vec!["one\n", "two\n"], 1), "{out}");
        assert_eq!(left_out, 1005);
        let (out, _) = copy(&[Some(b"one\ntwo\nthree\n"), None, Some(b"f\nend\n")], 5, 8);
        assert_eq!(split(&out), (vec!["one\n", "end\n"], 1), "{out}");
    }

    #[test]
    fn a_line_without_end_is_kept_as_far_as_it_fits() {
        let (out, left_out) = copy(&[Some(&[b'x'; 500])], 30, 10);
        assert_eq!(split(&out), (vec![&*format!("{}\n", "x".repeat(30))], 1));
        assert_eq!(left_out, 470);
    }

    proptest! {
        #[test]
        fn nothing_is_invented(
            lines in prop::collection::vec("[a-c]{0,9}", 0..40),
            width in 1..50_usize,
            cap in 1..200_u64,
            tail in 0..60_u64,
        ) {
            let text: String = lines.iter().map(|l| format!("{l}\n")).collect::<Vec<_>>().concat();
            let chunks: Vec<_> = text.as_bytes().chunks(width).map(Some).collect();
            let (out, left_out) = copy(&chunks, cap, tail);
            let (theirs, ours) = split(&out);
            if text.len() as u64 <= cap {
                prop_assert_eq!((theirs.concat(), left_out, ours), (text, 0, 0));
            } else if theirs.first().is_some_and(|l| text.starts_with(l)) {
                let kept: u64 = theirs.iter().map(|l| l.len() as u64).sum();
                prop_assert!(kept + left_out == text.len() as u64 || kept + left_out == text.len() as u64 + 1);
                prop_assert_eq!(ours, 1);
            }
        }
    }
}
