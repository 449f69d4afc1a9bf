//! What the agent said, line by line, and what its program wrote to standard error.

use std::fmt::Write as _;
use std::io::Read as _;

use super::escape;
use crate::agent::render::{Kind, Line, Renderer};
use crate::agent::{Decoder, Format};
use crate::report::run_dir::{self, RunDir};

/// So many lines are kept from the beginning and from the end of each iteration.
const FIRST: usize = 1000;
const LAST: usize = 3000;
/// Longer lines are cut, in bytes.
const LINE: usize = 2000;
/// So much of a stream is read, in bytes.
const STREAM: u64 = 256_000_000;
/// So much of standard error is shown, in bytes from each end.
const STDERR: u64 = 32 * 1024;

/// The section.
pub(super) fn section(run: &RunDir, out: &mut String) {
    let iterations = run.iterations();
    out.push_str("<section id=\"log\"><h2>Log</h2>");
    if iterations.is_empty() {
        out.push_str("<p class=\"none\">The agent was not started.</p></section>");
        return;
    }
    out.push_str(
        "<p class=\"search\" hidden><label>Search <input id=\"q\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\"></label> \
         <output id=\"found\"></output></p>",
    );
    for n in &iterations {
        if iterations.len() > 1 {
            let _ = write!(out, "<h3>Iteration {n}</h3>");
        }
        let mut lines = Kept::default();
        stream(run, *n, &mut lines);
        if lines.total == 0 {
            out.push_str("<p class=\"none\">The agent said nothing.</p>");
        } else {
            lines.write(out);
        }
        if let Some((head, tail, skipped)) = run.text(&format!("iteration-{n}/stderr.log"), STDERR, STDERR)
            && !head.trim().is_empty()
        {
            stderr(&head, &tail, skipped, out);
        }
    }
    out.push_str("</section>");
}

fn stderr(head: &str, tail: &str, skipped: u64, out: &mut String) {
    out.push_str("<details class=\"file\"><summary>standard error</summary><ol class=\"lines\">");
    for text in head.lines() {
        let _ = write!(out, "<li>{}</li>", escape::line(text, LINE));
    }
    if skipped > 0 {
        let _ = write!(out, "<li class=\"gap\">… {} left out …</li>", crate::report::bytes(skipped));
    }
    for text in tail.lines() {
        let _ = write!(out, "<li>{}</li>", escape::line(text, LINE));
    }
    out.push_str("</ol></details>");
}

/// The first and the last lines.
#[derive(Default)]
struct Kept {
    first: Vec<Line>,
    last: std::collections::VecDeque<Line>,
    total: usize,
}

impl Kept {
    fn push(&mut self, mut line: Line) {
        self.total += 1;
        // An agent may write lines of megabytes.
        line.text.truncate(line.text.floor_char_boundary(LINE * 2));
        if self.first.len() < FIRST {
            self.first.push(line);
            return;
        }
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn write(&self, out: &mut String) {
        out.push_str("<ol class=\"lines agent\">");
        self.first.iter().for_each(|line| one(line, out));
        let missing = self.total - self.first.len() - self.last.len();
        if missing > 0 {
            let _ = write!(out, "<li class=\"gap\">… {missing} lines left out; stream.jsonl has them …</li>");
        }
        self.last.iter().for_each(|line| one(line, out));
        out.push_str("</ol>");
    }
}

fn one(line: &Line, out: &mut String) {
    let class = match line.kind {
        Kind::Header => "header",
        Kind::Text => "text",
        Kind::Thinking => "thinking",
        Kind::Tool => "toolline",
        Kind::Note => "noteline",
        Kind::Warning => "warning",
        Kind::Error => "error",
    };
    let _ = write!(out, "<li class=\"{class}\">{}</li>", escape::line(&line.text, LINE));
}

fn stream(run: &RunDir, n: u32, lines: &mut Kept) {
    let path = run.path.join(format!("iteration-{n}/stream.jsonl"));
    let Ok(mut file) = run_dir::open(&path).map(|file| file.take(STREAM)) else { return };
    let mut decoder = Decoder::new(Format::Auto);
    let mut renderer = Renderer::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut chunk).unwrap_or(0);
        let mut show = |event| renderer.event(&event).into_iter().for_each(|line| lines.push(line));
        if read == 0 {
            decoder.finish(&mut show);
            break;
        }
        decoder.push(&chunk[..read], &mut show);
    }
    renderer.finish().into_iter().for_each(|line| lines.push(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_both_ends() {
        let mut kept = Kept::default();
        for n in 0..10_000 {
            kept.push(Line { kind: Kind::Text, text: format!("line {n}") });
        }
        let mut out = String::new();
        kept.write(&mut out);
        assert!(out.contains(">line 0<") && out.contains(">line 9999<") && !out.contains(">line 1000<"));
        assert!(out.contains("6000 lines left out"));
        assert_eq!(out.matches("<li").count(), FIRST + LAST + 1);
    }
}
