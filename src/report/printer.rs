//! The only thing that prints.
//!
//! A run writes one stream, standard output, so that no two pipes can be shuffled against each other in a CI log.
//! Errors go to standard error after that stream was flushed. Whatever comes from outside (agent text, child
//! stderr, file names) passes [`sanitize`](super::sanitize) and the redactor before it is written.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use owo_colors::{OwoColorize as _, Style};

use super::ci::Ci;
use super::github::{annotate, escape_data};
use super::live::{self, Live};
use super::sanitize;
use super::text::{duration, reflow, wrap};
use crate::secrets::{MIN_LEN, Redactor, Registry};

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, and in GitLab, whose log viewer shows colours; never when `NO_COLOR` is set.
    #[default]
    Auto,
    /// Into files and pipes as well.
    Always,
    /// No colours.
    Never,
}

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The verdict and errors.
    Quiet,
    /// Phases and the agent's output.
    Normal,
    /// Every external call as well.
    Verbose,
}

/// How one line of a checklist turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As it should be.
    Good,
    /// Not there, and not needed.
    Neutral,
    /// To be repaired.
    Bad,
}

/// The printer; cheap to clone.
#[derive(Clone)]
pub struct Printer {
    shared: Arc<Mutex<Shared>>,
    verbosity: Verbosity,
    color: bool,
    unicode: bool,
    terminal: bool,
    ci: Ci,
}

struct Shared {
    secrets: Registry,
    open_section: Option<String>,
    sections: u32,
}

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printer")
            .field("verbosity", &self.verbosity)
            .field("ci", &self.ci)
            .finish_non_exhaustive()
    }
}

impl Printer {
    /// A printer for this process's standard output.
    pub fn new(color: ColorChoice, verbosity: Verbosity) -> Self {
        let ci = Ci::detect(|name| std::env::var(name).ok());
        let terminal = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let color = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !no_color && (terminal || ci == Ci::GitLab),
        };
        Self {
            shared: Arc::new(Mutex::new(Shared {
                secrets: Registry::default(),
                open_section: None,
                sections: 0,
            })),
            verbosity,
            color,
            unicode: utf8_locale() || ci != Ci::None,
            terminal: terminal && ci == Ci::None,
            ci,
        }
    }

    /// How many columns the reader's terminal has now; nothing where the output is read elsewhere.
    fn width(&self) -> Option<usize> {
        if self.terminal { columns(std::io::stdout()) } else { None }
    }

    /// The same of standard error.
    pub(super) fn error_width(&self) -> Option<usize> {
        let terminal = self.ci == Ci::None && std::io::stderr().is_terminal();
        if terminal { columns(std::io::stderr()) } else { None }
    }

    /// How wide an excerpt with its advice may be.
    pub(super) fn report_width(&self) -> usize {
        self.width().unwrap_or(UNBROKEN)
    }

    /// Breaks a line for the reader's terminal.
    fn fit(&self, text: String, first: usize, indent: usize) -> String {
        match self.width() {
            Some(width) => wrap(&text, first, indent, width),
            None => text,
        }
    }

    /// The printer of a run whose output another run shows as its own: what steers the log of a CI system is left to
    /// that one.
    #[must_use]
    pub fn within_another(mut self) -> Self {
        self.ci = Ci::None;
        self.terminal = false;
        self
    }

    /// Which CI system reads the log.
    pub fn ci(&self) -> Ci {
        self.ci
    }

    /// Whether to colour.
    pub fn color(&self) -> bool {
        self.color
    }

    /// Whether the reader can show more than ASCII.
    pub fn unicode(&self) -> bool {
        self.unicode
    }

    /// How much is said.
    pub fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// From now on these values never appear in what is printed.
    pub fn hide(&self, secrets: &Registry) {
        if self.ci == Ci::GitHub {
            // GitHub masks line by line. GitLab has no such command.
            let lines = secrets.values().iter().flat_map(|v| v.expose().lines().map(str::trim));
            let telling = lines.filter(|l| l.len() >= MIN_LEN && !l.starts_with("-----"));
            for line in telling.collect::<std::collections::BTreeSet<_>>() {
                Self::raw(&format!("::add-mask::{}\n", escape_data(line)));
            }
        }
        self.lock().secrets = secrets.clone();
    }

    /// The secrets of this run.
    pub fn secrets(&self) -> Registry {
        self.lock().secrets.clone()
    }

    /// Writes text as it stands (data that a command was asked for).
    pub fn data(&self, text: &str) {
        Self::raw(text);
    }

    /// The first line of a run.
    pub fn title(&self, text: &str) {
        if self.verbosity >= Verbosity::Normal {
            let text = self.clean(text);
            Self::line(&self.paint(&text, Style::new().bold()));
        }
    }

    /// Opens a foldable section in CI; a bold line on a terminal.
    pub fn section(&self, title: &str) {
        if self.verbosity < Verbosity::Normal {
            return;
        }
        self.end_section();
        let title = self.clean(title);
        match self.ci {
            Ci::GitHub => Self::raw(&format!("::group::{title}\n")),
            Ci::GitLab => {
                let id = {
                    let mut shared = self.lock();
                    shared.sections += 1;
                    format!("fullsend_{}", shared.sections)
                };
                Self::raw(&format!("\x1b[0Ksection_start:{}:{id}\r\x1b[0K{title}\n", unix_seconds()));
                self.lock().open_section = Some(id);
                return;
            }
            Ci::None => Self::line(&self.paint(&title, Style::new().bold())),
        }
        self.lock().open_section = Some(String::new());
    }

    /// Opens a foldable section in CI only: for a step whose own line is heading enough elsewhere.
    pub fn group(&self, title: &str) {
        if self.ci != Ci::None {
            self.section(title);
        }
    }

    /// Closes the open section, if any.
    pub fn end_section(&self) {
        let open = self.lock().open_section.take();
        match (self.ci, open) {
            (Ci::GitHub, Some(_)) => Self::raw("::endgroup::\n"),
            (Ci::GitLab, Some(id)) => {
                Self::raw(&format!("\x1b[0Ksection_end:{}:{id}\r\x1b[0K\n", unix_seconds()));
            }
            _ => {}
        }
    }

    /// A step that went well.
    pub fn done(&self, what: &str, took: Duration, note: &str) {
        self.step(if self.unicode { "✓" } else { "ok" }, Style::new().green(), what, Some(took), note);
    }

    /// A step that did not.
    pub fn failed(&self, what: &str, took: Duration, note: &str) {
        self.step(if self.unicode { "✗" } else { "x" }, Style::new().red(), what, Some(took), note);
    }

    /// One line of a checklist. What is bad is shown with `-q` as well.
    pub fn check(&self, mark: Mark, what: &str, note: &str) {
        let (sign, style) = match (mark, self.unicode) {
            (Mark::Good, true) => ("✓", Style::new().green()),
            (Mark::Good, false) => ("ok", Style::new().green()),
            (Mark::Neutral, true) => ("·", Style::new().dimmed()),
            (Mark::Neutral, false) => ("-", Style::new().dimmed()),
            (Mark::Bad, true) => ("✗", Style::new().red()),
            (Mark::Bad, false) => ("x", Style::new().red()),
        };
        if self.verbosity >= Verbosity::Normal || mark == Mark::Bad {
            let mark_width = sign.chars().count();
            // What has no name goes on with the line above.
            let sign = if what.is_empty() { " ".repeat(mark_width) } else { self.paint(sign, style) };
            let what = format!("{:<10}", self.clean(what));
            let column = 4 + mark_width + what.chars().count() + 1;
            let note = self.fit(self.clean(note), column, column);
            Self::line(format!("  {sign} {what}  {note}").trim_end());
        }
    }

    /// A fact.
    pub fn info(&self, what: &str, note: &str) {
        self.step(if self.unicode { "·" } else { "-" }, Style::new().dimmed(), what, None, note);
    }

    /// A line that only `-v` shows.
    pub fn verbose(&self, note: &str) {
        if self.verbosity >= Verbosity::Verbose {
            let text = self.clean(note);
            Self::line(&format!("    {}", self.paint(&text, Style::new().dimmed())));
        }
    }

    /// Something the user should know; the run goes on.
    pub fn warn(&self, text: &str) {
        let text = self.clean(text);
        if self.ci == Ci::GitHub {
            Self::raw(&format!("::warning::{}\n", escape_data(&text)));
        } else {
            let text = self.fit(text, 4, 4);
            Self::line(&format!("  {} {text}", self.paint("!", Style::new().yellow().bold())));
        }
    }

    /// A finding in a file of the repository, as [`Printer::warn`]; GitHub shows it beside the line.
    pub fn warn_at(&self, file: &str, line: usize, title: &str, text: &str) {
        if self.ci == Ci::GitHub {
            let (file, title, text) = (self.clean(file), self.clean(title), self.clean(text));
            Self::raw(&annotate("warning", Some((&file, line, 0)), &title, &text));
        } else {
            self.warn(text);
        }
    }

    /// A line of text that comes from the agent or a script.
    pub fn foreign(&self, line: &str) {
        if self.verbosity >= Verbosity::Normal {
            let bar = if self.unicode { "│" } else { "|" };
            let text = self.clean(line);
            Self::line(&format!("  {} {text}", self.paint(bar, Style::new().dimmed())));
        }
    }

    /// A line at the bottom that can be drawn anew, where somebody looks at a terminal.
    pub fn live(&self) -> Option<Live> {
        let seen = std::io::stdout().is_terminal() && std::env::var_os("TERM").is_some_and(|t| t != "dumb");
        // What is logged goes to the same terminal and would be written into the line.
        let logged =
            tracing::level_filters::LevelFilter::current() != tracing::level_filters::LevelFilter::OFF;
        (seen && !logged && self.ci == Ci::None && self.verbosity >= Verbosity::Normal)
            .then(|| Live::new(self.color))
    }

    /// One line of the closing block; printed also with `-q`.
    pub fn closing(&self, key: &str, value: &str) {
        let value = self.fit(self.clean(value), 9, 9);
        Self::line(&format!("{} {value}", self.paint(&format!("{key:<8}"), Style::new().bold())));
    }

    /// A page of documentation: its paragraphs are broken anew for a terminal.
    pub fn page(&self, text: &str) {
        match self.width() {
            Some(width) => Self::raw(&reflow(text, width)),
            None => Self::raw(text),
        }
    }

    /// Plain text, line by line, sanitised.
    pub fn plain(&self, text: &str) {
        for line in text.lines() {
            let line = self.clean(line);
            Self::line(&line);
        }
    }

    /// A line of an agent's text that a command was asked for; printed also with `-q`.
    pub fn quote(&self, line: &str) {
        let text = self.clean(line);
        Self::line(format!("  {text}").trim_end());
    }

    /// The report of an error, on standard error.
    pub fn error(&self, error: &crate::Error) {
        self.end_section();
        let _ = std::io::stdout().flush();
        let text = super::error_report::render(error, self);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Removes what must not be shown from one line of foreign text.
    pub fn clean(&self, text: &str) -> String {
        let secrets = self.lock().secrets.clone();
        let shown = sanitize::line(&secrets.redact_text(text), self.ci);
        // What was taken out may have stood in the middle of a value, which is whole only now.
        secrets.redact_text(&shown).into_owned()
    }

    /// One line of foreign text for a file that another program reads: as [`Printer::clean`], but not made for a log.
    pub fn inert(&self, text: &str) -> String {
        let secrets = self.lock().secrets.clone();
        let shown = sanitize::line(&secrets.redact_text(text), Ci::None);
        secrets.redact_text(&shown).into_owned()
    }

    /// Replaces the known secrets in text that is written elsewhere.
    pub fn redact(&self, text: &str) -> String {
        self.lock().secrets.redact_text(text).into_owned()
    }

    /// Lines that we laid out ourselves around foreign text (an excerpt of a file), fit to be shown.
    pub(super) fn frame(&self, text: &str) -> String {
        let text = self.redact(text);
        text.split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some(line) => sanitize::disarm(line, self.ci) + "\n",
                None => sanitize::disarm(line, self.ci),
            })
            .collect()
    }

    /// A redactor of a stream that knows the secrets of this run.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.lock().secrets)
    }

    /// `text`, of which parts were cut for display, without the beginnings of secrets that the cuts left.
    pub fn hide_cuts(&self, text: &str) -> String {
        self.lock().secrets.hide_cuts(text).into_owned()
    }

    pub(super) fn paint(&self, text: &str, style: Style) -> String {
        if self.color { text.style(style).to_string() } else { text.to_owned() }
    }

    fn step(&self, mark: &str, style: Style, what: &str, took: Option<Duration>, note: &str) {
        if self.verbosity < Verbosity::Normal {
            return;
        }
        let took = took.map_or_else(String::new, duration);
        let head = format!(" {:<12} {took:>6}  ", self.clean(what));
        let column = 2 + mark.chars().count() + head.chars().count();
        let note = self.fit(self.clean(note), column, column);
        let line = format!("  {}{head}{note}", self.paint(mark, style));
        Self::line(line.trim_end());
    }

    fn line(text: &str) {
        Self::raw(&format!("{text}\n"));
    }

    /// A reader that went away (`| head`) must not end the run: the sandbox still has to be deleted. What else went
    /// wrong is kept for [`written`].
    fn raw(text: &str) {
        let mut out = std::io::stdout().lock();
        let text = live::around(text);
        let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        drop(out);
        note(done);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Draws the line at the bottom anew.
pub(super) fn redraw() {
    Printer::raw("");
}

/// The width of what no terminal breaks: programs and CI systems get lines as they are.
pub(super) const UNBROKEN: usize = 4096;

/// The columns of a terminal; nothing where it does not say, or has no room for text.
fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 20)
}

/// The first thing that went wrong in writing to standard output.
static FAILED: OnceLock<std::io::Error> = OnceLock::new();

/// Keeps a failure of standard output, unless it is that nobody reads any more.
pub fn note(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = FAILED.set(error);
    }
}

/// Whether everything that was printed so far arrived, or nobody wanted it. For commands whose output is what they
/// are called for.
///
/// # Errors
/// [`crate::Code::Io`] with the words of the system, e.g. for a full disk.
pub fn written() -> crate::Result<()> {
    let Some(error) = FAILED.get() else { return Ok(()) };
    Err(crate::Error::new(crate::Code::Io, format!("cannot write to standard output: {error}"))
        .help("the answer is not complete; free space where it goes, or send it elsewhere"))
}

fn unix_seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn utf8_locale() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()))
        .is_some_and(|v| v.to_ascii_lowercase().replace('-', "").contains("utf8"))
}
