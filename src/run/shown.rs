//! Lines on their way to the console, as one stream: a secret that a line break cuts, that an agent sends in pieces,
//! or that a long line is split within, is not shown in parts.

use crate::process::scale;
use crate::report::{Ci, Printer};
use crate::secrets::Redactor;

/// Shows lines without secrets. The end of a line that may be the beginning of a secret is held back until the next
/// one comes, [`Shown::settle`] is called, or the stream ends.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    ui: &'a Printer,
    redactor: Redactor,
    line: Vec<u8>,
    /// How many more bytes are shown.
    room: u64,
}

/// The most that is shown of one iteration. Logs of CI systems are cut (GitLab's at 4 MiB), and what is told at the
/// end of a run matters more.
const MOST: u64 = 64_000_000;
const MOST_IN_CI: u64 = 2_000_000;

impl<'a> Shown<'a> {
    /// The way to the console of `ui` for a script of the harness. All of it is shown: it is nowhere else.
    pub(super) fn of_script(ui: &'a Printer) -> Self {
        Self { ui, redactor: ui.redactor(), line: Vec::new(), room: u64::MAX }
    }

    /// The same for an agent.
    pub(super) fn of_agent(ui: &'a Printer) -> Self {
        let most = if ui.ci() == Ci::None { MOST } else { MOST_IN_CI };
        Self { room: scale::size(most), ..Self::of_script(ui) }
    }

    /// Takes a line without its end.
    pub(super) fn line(&mut self, text: &str) {
        // What was cut for display may end within a secret.
        let text = self.ui.hide_cuts(text);
        let mut decided = self.redactor.push(text.as_bytes());
        decided.extend(self.redactor.push(b"\n"));
        self.take(&decided);
    }

    /// Takes bytes as they come.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let decided = self.redactor.push(bytes);
        self.take(&decided);
    }

    /// Shows what is held back of whole lines: nothing more is expected soon.
    pub(super) fn settle(&mut self) {
        let decided = self.redactor.flush();
        self.take(&decided);
    }

    /// Shows everything.
    pub(super) fn end(&mut self) {
        self.settle();
        if !self.line.is_empty() {
            self.show();
        }
    }

    /// Longer lines are shown in pieces.
    const LIMIT: usize = 16 * 1024;

    /// Whether nothing more will be shown.
    pub(super) fn is_full(&self) -> bool {
        self.room == 0
    }

    fn take(&mut self, decided: &[u8]) {
        for piece in decided.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() > Self::LIMIT {
                self.show();
            }
        }
    }

    fn show(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.room == 0 {
            return;
        }
        self.room = self.room.saturating_sub(line.len() as u64 + 1);
        if self.room == 0 {
            self.ui.warn("more of the agent's output is not shown; stream.jsonl in the run directory has it");
            return;
        }
        self.ui.foreign(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
    }
}
