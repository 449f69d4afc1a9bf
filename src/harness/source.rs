//! One input text: where it came from, and how a byte range of it becomes a [`Place`].

use std::fmt::Write as _;
use std::io::Read as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};

use super::problem::{Place, Problem};
use crate::error::Code;

/// The largest text file that is read as configuration: YAML, env files, files with `expand: true`.
pub(crate) const MAX_TEXT_BYTES: u64 = 1024 * 1024;

/// The text of one file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The file, as the user would name it.
    pub(crate) shown: Utf8PathBuf,
    /// The text without a byte order mark.
    pub(crate) text: Arc<str>,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub(crate) digest: String,
    /// The text for excerpts: of the same length, secret values masked. `None` when nothing may be shown.
    excerpt: Option<Arc<str>>,
    /// For a text that was joined from several files: each with where it starts in `text`.
    parts: Vec<(usize, Source)>,
    /// Where lines start and how many characters there are, so that a place costs the same wherever it is.
    index: Arc<OnceLock<Index>>,
}

/// The distance of marks in bytes.
const STEP: usize = 256;

/// Positions of a text.
#[derive(Debug, Default)]
struct Index {
    /// The byte that each line starts with.
    lines: Vec<usize>,
    /// Characters that begin before byte `STEP * n`.
    marks: Vec<usize>,
}

impl Index {
    fn new(text: &str) -> Self {
        let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        let mut marks = vec![0];
        for chunk in text.as_bytes().chunks(STEP) {
            let before = marks.last().copied().unwrap_or(0);
            marks.push(before + chunk.iter().filter(|byte| starts_character(**byte)).count());
        }
        Self { lines: lines.collect(), marks }
    }

    /// Characters that begin before byte `at`.
    fn characters(&self, text: &str, at: usize) -> usize {
        let mark = (at / STEP).min(self.marks.len() - 1);
        let rest = &text.as_bytes()[mark * STEP..at];
        self.marks[mark] + rest.iter().filter(|byte| starts_character(**byte)).count()
    }
}

fn starts_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

impl Source {
    /// A text that may be shown as it is.
    pub(crate) fn new(shown: impl Into<Utf8PathBuf>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let digest = hex_digest(text.as_bytes());
        Self {
            shown: shown.into(),
            excerpt: Some(Arc::clone(&text)),
            text,
            digest,
            parts: Vec::new(),
            index: Arc::default(),
        }
    }

    /// Several files as one text, so that a byte range stands for a place in one of them. Returns where each
    /// starts. It goes by the name and digest of the first, of which there must be one.
    pub(crate) fn join(files: Vec<Source>) -> (Self, Vec<usize>) {
        let mut text = String::new();
        let mut parts = Vec::new();
        for file in files {
            let start = text.len();
            text.push_str(&file.text);
            // The end of a file is a place too; it must not be the start of the next one.
            text.push('\n');
            parts.push((start, file));
        }
        let (shown, digest) =
            parts.first().map(|(_, file)| (file.shown.clone(), file.digest.clone())).unwrap_or_default();
        let starts = parts.iter().map(|(start, _)| *start).collect();
        (Self { shown, text: text.into(), digest, excerpt: None, parts, index: Arc::default() }, starts)
    }

    /// Reads `path` as UTF-8 text; `code` is the code of the problem when it cannot be read.
    pub(crate) fn read(path: &Utf8Path, code: Code) -> Result<Self, Problem> {
        let (shown, bytes) = read_bytes(path, code)?;
        let digest = hex_digest(&bytes);
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => rest.to_vec(),
            None => bytes,
        };
        let text = String::from_utf8(bytes).map_err(|error| not_utf8(&shown, &error, code))?;
        Ok(Self { digest, ..Self::new(shown, text) })
    }

    /// Replaces the text of the excerpts by `mask` of it; `None` removes excerpts.
    #[must_use]
    pub(crate) fn masked(mut self, mask: impl FnOnce(&str) -> Option<String>) -> Self {
        self.excerpt = mask(&self.text).filter(|m| m.len() == self.text.len()).map(Into::into);
        self
    }

    /// The place of a byte range.
    pub(crate) fn place(&self, span: Range<usize>) -> Place {
        if let Some((from, part)) = self.parts.iter().rev().find(|(from, _)| *from <= span.start) {
            return part.place(span.start - from..span.end.saturating_sub(*from));
        }
        let start = floor_char(&self.text, span.start);
        let end = floor_char(&self.text, span.end.max(start));
        let index = self.index.get_or_init(|| Index::new(&self.text));
        let line = index.lines.partition_point(|at| *at <= start);
        let line_start = index.lines[line - 1];
        Place {
            file: self.shown.clone(),
            line,
            column: index.characters(&self.text, start) - index.characters(&self.text, line_start) + 1,
            span: start..end,
            text: self.excerpt.clone(),
        }
    }

    /// The place of the file as a whole.
    pub(crate) fn whole(&self) -> Place {
        whole_file(&self.shown)
    }
}

fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The place of a file as a whole.
pub(crate) fn whole_file(shown: &Utf8Path) -> Place {
    Place { file: shown.to_owned(), line: 0, column: 0, span: 0..0, text: None }
}

/// A path as the user would name it: relative to the working directory when it is inside.
pub(crate) fn shown(path: &Utf8Path) -> Utf8PathBuf {
    let cwd = std::env::current_dir().ok().and_then(|cwd| Utf8PathBuf::from_path_buf(cwd).ok());
    match cwd.as_deref().and_then(|cwd| path.strip_prefix(cwd).ok()) {
        Some(inside) if !inside.as_str().is_empty() => inside.to_owned(),
        _ => path.to_owned(),
    }
}

/// Reads a file of at most [`MAX_TEXT_BYTES`]; a FIFO or device is refused before it is opened.
fn read_bytes(path: &Utf8Path, code: Code) -> Result<(Utf8PathBuf, Vec<u8>), Problem> {
    let shown = shown(path);
    let fail = |why: String| Problem::error(code, why).at(Some(whole_file(&shown)));
    let cannot = |error: &std::io::Error| {
        fail(format!("`{shown}` cannot be read: {}", io_text(error)))
            .help("create it, or correct its path, its link or its rights")
    };
    let meta = std::fs::metadata(path).map_err(|e| cannot(&e))?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a directory, not a file" } else { "not a regular file" };
        return Err(fail(format!("`{shown}` is {what}")).help("put a file in its place, or remove it"));
    }
    let file = std::fs::File::open(path).map_err(|e| cannot(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes).map_err(|e| cannot(&e))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(fail(format!("`{shown}` is larger than {MAX_TEXT_BYTES} bytes"))
            .help("no file of a harness needs that; is it the right one?"));
    }
    Ok((shown, bytes))
}

/// What went wrong with a file, without the "(os error N)" of the standard library.
pub(crate) fn io_text(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::NotADirectory => "a part of the path is not a directory".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}

fn not_utf8(shown: &Utf8Path, error: &std::string::FromUtf8Error, code: Code) -> Problem {
    let bytes = error.as_bytes();
    let at = error.utf8_error().valid_up_to();
    let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1;
    let utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let message =
        if utf16 { format!("`{shown}` is UTF-16 text") } else { format!("`{shown}` is not UTF-8 text") };
    let code = if code == Code::FileMissing { Code::YamlSyntax } else { code };
    let place = Place { file: shown.to_owned(), line, column: 0, span: 0..0, text: None };
    Problem::error(code, message).help("save the file as UTF-8").at(Some(place))
}

fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `*` for every byte of `text` but line ends, tabs and what is `visible`; the length in bytes stays.
pub(crate) fn stars(text: &str, visible: &[Range<usize>]) -> String {
    let mut show = vec![false; text.len()];
    for range in visible {
        let end = range.end.min(text.len());
        show[range.start.min(end)..end].fill(true);
    }
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if show[at] || matches!(c, '\n' | '\r' | '\t') {
            out.push(c);
        } else {
            out.extend(std::iter::repeat_n('*', c.len_utf8()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let source = Source::new("f", "añb\nxé$V\n");
        let at = source.text.find('$').unwrap();
        let place = source.place(at..at + 2);
        assert_eq!(place.to_string(), "f:2:3");
        assert_eq!(source.place(500..900).to_string(), "f:3:1");
    }

    #[test]
    fn a_place_deep_in_a_text_is_what_counting_says() {
        let text = "é = añb\n".repeat(500) + &"ñ".repeat(700) + "end";
        let source = Source::new("f", text.as_str());
        for (at, _) in text.char_indices().step_by(7) {
            let before = &text[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            let place = source.place(at..at);
            assert_eq!((place.line, place.column), (line, column), "{at}");
        }
    }

    #[test]
    fn joined_files_keep_their_places() {
        let (joined, starts) = Source::join(vec![Source::new("a", "x: 1"), Source::new("b", "é\ny: 2\n")]);
        assert_eq!(starts, [0, 5]);
        let at = joined.text.find('y').unwrap();
        let place = joined.place(at..at + 4);
        assert_eq!(place.to_string(), "b:2:1");
        assert_eq!(&place.text.unwrap()[place.span], "y: 2");
        assert_eq!(joined.place(0..1).to_string(), "a:1:1");
        assert_eq!(joined.place(4..4).to_string(), "a:1:5");
        assert_eq!(joined.shown, "a");
    }

    #[test]
    fn a_mask_of_another_length_is_not_shown() {
        let source = Source::new("f", "abc").masked(|_| Some("x".into()));
        assert!(source.place(0..1).text.is_none());
    }

    #[test]
    fn stars_keep_length_and_lines() {
        assert_eq!(stars("é=\nb", std::slice::from_ref(&(2..3))), "**=\n*");
    }
}
