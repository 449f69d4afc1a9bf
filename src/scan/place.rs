//! Lines of a text.

use crate::report::sanitize;

/// How much of a line is shown, in bytes.
const EXCERPT: usize = 160;

/// Where the lines of a text begin.
#[derive(Debug)]
pub struct Place<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Place<'t> {
    /// Finds the lines.
    pub fn new(text: &'t str) -> Self {
        let starts = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self { text, starts: std::iter::once(0).chain(starts).collect() }
    }

    /// The 1-based line of a byte offset.
    pub fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The text of a 1-based line, without its end.
    pub fn text(&self, line: usize) -> &'t str {
        let start = self.starts.get(line.wrapping_sub(1)).copied().unwrap_or(self.text.len());
        let end = self.starts.get(line).map_or(self.text.len(), |next| next - 1);
        self.text.get(start..end.max(start)).unwrap_or_default()
    }

    /// Where a 1-based line begins.
    pub fn start(&self, line: usize) -> usize {
        self.starts.get(line.wrapping_sub(1)).copied().unwrap_or(self.text.len())
    }

    /// What is shown of a place: the line around it, cut, without anything that acts or hides, and without
    /// credentials.
    pub fn excerpt(&self, at: usize) -> String {
        let line = self.line(at);
        self.excerpt_in(line, at.saturating_sub(self.start(line)))
    }

    /// The same for a byte offset within a line.
    pub fn excerpt_in(&self, line: usize, at: usize) -> String {
        let line = self.text(line);
        // In a long line the place matters, not the beginning.
        let from = line.floor_char_boundary(at.saturating_sub(EXCERPT / 2).min(line.len()));
        let near = &line[from..line.ceil_char_boundary((from + 4 * EXCERPT).min(line.len()))];
        let clean = sanitize::line(&super::tokens::mask(near), crate::report::Ci::None);
        sanitize::truncate(clean.trim(), EXCERPT).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_excerpts() {
        let text = "one\ntwo\r\n\nfour \u{202e}x\u{1b}[31m";
        let place = Place::new(text);
        assert_eq!([0, 3, 4, 9, 10].map(|at| place.line(at)), [1, 1, 2, 3, 4]);
        assert_eq!(place.text(2), "two\r");
        assert_eq!(place.text(9), "");
        assert_eq!(place.excerpt(text.len()), "four x");
        assert!(Place::new(&"é".repeat(5000)).excerpt(3001).len() <= EXCERPT);
    }
}
