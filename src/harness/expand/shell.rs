//! Substitution into text that a shell will source: the value is quoted for the place where it lands.
//!
//! The text is followed as POSIX sh reads it: single and double quotes, backslashes, comments, and command
//! substitutions, which start quoting anew. At places where no quoting holds for every value (backquotes,
//! arithmetic, here-documents, `case` inside `$(…)`, bash's `$'…'` with escapes) a substitution is an issue,
//! never a guess: a value may come from anyone who can open a ticket.
//!
//! Left alone for the shell: `$1`, `$?` and their like, a bare `$NAME` that is not set here, everything in
//! comments, and what a backslash protects.

use super::{Expanded, Issue, Lookup, Reference, reference};

/// Substitutes values into shell text.
pub(crate) fn expand_shell(input: &str, lookup: Lookup<'_>) -> Expanded {
    let mut scan = Scan {
        input,
        at: 0,
        out: Expanded::default(),
        frames: Vec::new(),
        unclear: None,
        word_start: true,
        lookup,
    };
    while scan.at < input.len() {
        scan.step();
    }
    scan.finish()
}

/// What surrounds the current place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// Unquoted words of the file.
    Words,
    /// Between double quotes.
    Double,
    /// Unquoted words of a `$(…)`, with the number of open parentheses in it.
    Command(usize),
    /// `$((…))` or `((…))`, with the number of open parentheses in it.
    Arithmetic(usize),
}

/// How a value is written.
#[derive(Debug, Clone, Copy)]
enum Quoting {
    Bare,
    Double,
    Single,
    None(&'static str),
}

struct Scan<'i, 'l> {
    input: &'i str,
    at: usize,
    out: Expanded,
    /// What is open around the current place, and where each was opened.
    frames: Vec<(Frame, usize)>,
    /// From here on the quoting state is not certain, and why.
    unclear: Option<&'static str>,
    /// Whether a word may begin here, so that `#` begins a comment.
    word_start: bool,
    lookup: Lookup<'l>,
}

impl Scan<'_, '_> {
    fn rest(&self) -> &str {
        &self.input[self.at..]
    }

    fn frame(&self) -> Frame {
        self.frames.last().map_or(Frame::Words, |(frame, _)| *frame)
    }

    /// Copies `len` bytes as they are.
    fn copy(&mut self, len: usize) {
        let end = (self.at + len).min(self.input.len());
        self.out.text.push_str(&self.input[self.at..end]);
        self.at = end;
    }

    fn open(&mut self, frame: Frame, len: usize) {
        self.frames.push((frame, self.at));
        self.copy(len);
        self.word_start = true;
    }

    fn step(&mut self) {
        let frame = self.frame();
        let Some(c) = self.rest().chars().next() else { return };
        let was_word_start = std::mem::replace(&mut self.word_start, false);
        match (frame, c) {
            (_, '\\') => {
                let escaped = self.rest()[1..].chars().next().map_or(0, char::len_utf8);
                self.copy(1 + escaped);
            }
            (_, '`') => self.backquotes(),
            (_, '$') => self.dollar(frame),
            (Frame::Double, '"') => {
                self.frames.pop();
                self.copy(1);
            }
            (Frame::Words | Frame::Command(_) | Frame::Arithmetic(_), '"') => self.open(Frame::Double, 1),
            (Frame::Words | Frame::Command(_), '\'') => self.single(0),
            (Frame::Words | Frame::Command(_), '#') if was_word_start => {
                let end = self.rest().find('\n').unwrap_or(self.rest().len());
                self.copy(end);
                self.word_start = true;
            }
            (Frame::Words | Frame::Command(_), '<') if self.rest().starts_with("<<") => self.here(),
            (Frame::Words | Frame::Command(_), '(') if self.rest().starts_with("((") => {
                self.open(Frame::Arithmetic(2), 2);
            }
            (Frame::Command(depth) | Frame::Arithmetic(depth), '(' | ')') => {
                self.parenthesis(c, frame, depth);
            }
            (Frame::Arithmetic(_), '\'') => {
                self.unclear.get_or_insert("the text after arithmetic with quotes");
                self.copy(1);
            }
            (Frame::Command(_), 'c') if was_word_start && is_case(self.rest()) => {
                self.unclear.get_or_insert("`case` inside `$(…)`");
                self.copy(4);
            }
            (Frame::Words | Frame::Command(_), _) => {
                self.word_start = c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')');
                self.copy(c.len_utf8());
            }
            (Frame::Double | Frame::Arithmetic(_), _) => self.copy(c.len_utf8()),
        }
    }

    fn parenthesis(&mut self, c: char, frame: Frame, depth: usize) {
        let depth = if c == '(' { depth + 1 } else { depth - 1 };
        let arithmetic = matches!(frame, Frame::Arithmetic(_));
        self.copy(1);
        if let Some((frame, _)) = self.frames.last_mut() {
            *frame = if arithmetic { Frame::Arithmetic(depth) } else { Frame::Command(depth) };
        }
        if depth == 0 {
            self.frames.pop();
        }
        // Arithmetic ends in `))`; otherwise it was a subshell at the start of a command substitution.
        if arithmetic && depth == 1 && !self.rest().starts_with(')') {
            self.unclear.get_or_insert("the text after `((`");
        }
        self.word_start = depth > 0;
    }

    fn dollar(&mut self, frame: Frame) {
        let rest = self.rest();
        if rest.starts_with("$((") {
            return self.open(Frame::Arithmetic(2), 3);
        }
        if rest.starts_with("$(") {
            return self.open(Frame::Command(1), 2);
        }
        if frame != Frame::Double && rest.starts_with("$'") {
            return self.ansi_quotes();
        }
        let quoting = match frame {
            Frame::Words | Frame::Command(_) => Quoting::Bare,
            Frame::Double if self.frames.iter().any(|(f, _)| matches!(f, Frame::Arithmetic(_))) => {
                Quoting::None("arithmetic")
            }
            Frame::Double => Quoting::Double,
            Frame::Arithmetic(_) => Quoting::None("arithmetic"),
        };
        self.substitute(quoting);
    }

    /// Handles the `$` at the current place.
    fn substitute(&mut self, quoting: Quoting) {
        let input = self.input;
        let (reference, len) = reference(&input[self.at..]);
        let range = self.at..self.at + len;
        let value = match reference {
            Reference::Dollar => "$".to_owned(),
            // Parameter expansions may hold quotes of their own, so the state after one is not certain.
            Reference::Syntax(text) => {
                self.out.issues.push((range, Issue::Syntax(text.to_owned())));
                self.unclear.get_or_insert("the text after a `${…}` that is no plain name");
                return self.copy(len);
            }
            Reference::Special(_) | Reference::Lone => return self.copy(len),
            Reference::Variable { name, braced } => match (self.lookup)(name) {
                Some(value) => {
                    self.out.used.push(name.to_owned());
                    value
                }
                None if braced => {
                    self.out.issues.push((range, Issue::Unset(name.to_owned())));
                    return self.copy(len);
                }
                None => return self.copy(len),
            },
        };
        let quoting = self.unclear.map_or(quoting, Quoting::None);
        match quoting {
            Quoting::Bare => {
                self.out.text.push('\'');
                self.out.text.push_str(&value.replace('\'', r"'\''"));
                self.out.text.push('\'');
            }
            Quoting::Single => self.out.text.push_str(&value.replace('\'', r"'\''")),
            Quoting::Double => {
                for c in value.chars() {
                    if matches!(c, '\\' | '"' | '$' | '`') {
                        self.out.text.push('\\');
                    }
                    self.out.text.push(c);
                }
            }
            Quoting::None(where_) => self.out.issues.push((range, Issue::Unquotable(where_))),
        }
        self.at += len;
    }

    /// From an opening single quote (after `prefix` bytes) to its end.
    fn single(&mut self, prefix: usize) {
        let opened = self.at;
        self.copy(prefix + 1);
        while let Some(next) = self.rest().find(['\'', '$']) {
            self.copy(next);
            if self.rest().starts_with('\'') {
                return self.copy(1);
            }
            self.substitute(Quoting::Single);
        }
        self.copy(self.rest().len());
        self.unfinished(opened);
    }

    /// `$'…'`: bash reads escapes in it, dash does not know it.
    fn ansi_quotes(&mut self) {
        let body = &self.rest()[2..];
        let end = body.find('\'').unwrap_or(body.len());
        if !body[..end].contains('\\') {
            return self.single(1);
        }
        if body[..end].ends_with('\\') {
            self.unclear.get_or_insert("the text after a `$'…'` with escapes");
        }
        let before = self.unclear;
        self.unclear.get_or_insert("a `$'…'` with escapes");
        self.single(1);
        if self.unclear == Some("a `$'…'` with escapes") {
            self.unclear = before;
        }
    }

    /// From a backquote to its end.
    fn backquotes(&mut self) {
        let opened = self.at;
        self.copy(1);
        while let Some(next) = self.rest().find(['`', '\\', '$']) {
            self.copy(next);
            match self.rest().as_bytes()[0] {
                b'`' => return self.copy(1),
                b'\\' => {
                    let escaped = self.rest()[1..].chars().next().map_or(0, char::len_utf8);
                    self.copy(1 + escaped);
                }
                _ => self.substitute(Quoting::None("backquotes; write `$(…)` instead")),
            }
        }
        self.copy(self.rest().len());
        self.unfinished(opened);
    }

    fn here(&mut self) {
        if self.rest().starts_with("<<<") {
            return self.copy(3);
        }
        self.unclear.get_or_insert("the text after a here-document");
        self.copy(2);
    }

    /// A quote without an end means that the places before it were misread.
    fn unfinished(&mut self, opened: usize) {
        if !self.out.used.is_empty() {
            let range = opened..opened + 1;
            self.out.issues.push((range, Issue::Unquotable("a file with a quote that never ends")));
        }
    }

    fn finish(mut self) -> Expanded {
        if let Some((_, opened)) = self.frames.first() {
            self.unfinished(*opened);
        }
        self.out
    }
}

fn is_case(rest: &str) -> bool {
    rest.strip_prefix("case").is_some_and(|after| after.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests;
