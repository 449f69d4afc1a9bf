//! One line at the bottom of a terminal that is drawn anew in place, below whatever else is printed. Never in a pipe, a
//! file or the log of a CI system.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// What stands at the bottom now.
#[derive(Debug)]
struct State {
    /// The line; empty for none.
    text: String,
    /// How many columns of it are on the terminal.
    drawn: usize,
    color: bool,
}

static STATE: Mutex<State> = Mutex::new(State { text: String::new(), drawn: 0, color: false });

/// The right to draw the line, which goes away with it.
#[derive(Debug)]
pub struct Live {
    color: bool,
}

impl Live {
    pub(super) fn new(color: bool) -> Self {
        Self { color }
    }

    /// Shows a line without control characters in place of the one before.
    pub fn show(&self, text: &str) {
        set(text, self.color);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        set("", self.color);
    }
}

fn set(text: &str, color: bool) {
    {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone_into(&mut state.text);
        state.color = color;
    }
    super::printer::redraw();
}

/// What is to be printed, with the line taken away before it and drawn again after it.
pub(super) fn around(text: &str) -> Cow<'_, str> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if state.text.is_empty() && state.drawn == 0 {
        return Cow::Borrowed(text);
    }
    let columns = columns();
    let mut out = erased(state.drawn, columns);
    out.push_str(text);
    let line = fitting(&state.text, columns);
    let drawn = line.chars().count();
    if state.color && drawn > 0 {
        let _ = write!(out, "\x1b[2m{line}\x1b[0m");
    } else {
        out.push_str(line);
    }
    state.drawn = drawn;
    Cow::Owned(out)
}

/// The width of the terminal; 0 when it is not known.
fn columns() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col))
}

/// As much of a line as stays on one row. The last column stays free: some terminals go on to the next row there.
fn fitting(line: &str, columns: usize) -> &str {
    let end = line.char_indices().nth(columns.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    &line[..end]
}

/// Takes away a line of so many columns. A terminal that became narrower has broken it into several rows.
fn erased(drawn: usize, columns: usize) -> String {
    let rows = drawn.saturating_sub(1).checked_div(columns).unwrap_or(0);
    let up = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
    if drawn > 0 { format!("\r{up}\x1b[J") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_fills_its_row() {
        assert_eq!(fitting("four", 5), "four");
        assert_eq!(fitting("four", 4), "fou");
        assert_eq!(fitting("ééé", 3), "éé");
        assert_eq!(fitting("four", 1), "");
        assert_eq!(fitting("four", 0), "");
    }

    #[test]
    fn a_narrower_terminal_has_more_rows_to_take_away() {
        assert_eq!(erased(0, 80), "");
        assert_eq!(erased(60, 80), "\r\x1b[J");
        assert_eq!(erased(60, 60), "\r\x1b[J");
        assert_eq!(erased(61, 30), "\r\x1b[2A\x1b[J");
        assert_eq!(erased(9, 0), "\r\x1b[J");
    }
}
