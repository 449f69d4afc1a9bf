//! `status_notifications` of `config.yaml`: when there are status comments.

use camino::Utf8Path;

use super::config::Config;
use super::keys::{Level, nearest};
use super::problem::Problems;
use super::reader::{Fields, Reader};
use crate::error::Code;

/// When there are status comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notifications {
    /// Whether one is written when a run begins.
    pub start: bool,
    /// Whether one is written, or the one of the beginning edited, when it ends.
    pub completion: Completion,
}

/// When the end of a run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Always.
    Enabled,
    /// When it neither succeeded nor was skipped; then there is no comment at the beginning either.
    OnFailure,
    /// Never; the comment of the beginning is deleted.
    Disabled,
}

impl Default for Notifications {
    fn default() -> Self {
        Self { start: true, completion: Completion::Enabled }
    }
}

/// What the `config.yaml` of a harness directory says; its problems are reported where the harness is loaded.
pub fn notifications(dir: &Utf8Path) -> Notifications {
    Config::read(dir, &mut Problems::default()).notifications
}

/// Takes the section.
pub(super) fn read(reader: &mut Reader<'_>, top: &mut Fields) -> Notifications {
    let mut out = Notifications::default();
    let Some(mut section) = reader.section(top, "status_notifications") else { return out };
    if let Some(mut comment) = reader.section(&mut section, "comment") {
        if let Some(word) = word(reader, &mut comment, "start", &["enabled", "disabled"]) {
            out.start = word == "enabled";
        }
        let words = ["enabled", "on_failure", "disabled"];
        if let Some(word) = word(reader, &mut comment, "completion", &words) {
            out.completion = match word {
                "on_failure" => Completion::OnFailure,
                "disabled" => Completion::Disabled,
                _ => Completion::Enabled,
            };
        }
        reader.finish(comment, Level::StatusComment);
    }
    reader.finish(section, Level::StatusNotifications);
    out
}

fn word<'w>(
    reader: &mut Reader<'_>,
    fields: &mut Fields,
    key: &'static str,
    words: &[&'w str],
) -> Option<&'w str> {
    let text = reader.text_not_empty(fields, key)?;
    let known = words.iter().copied().find(|word| *word == text.text);
    if known.is_none() {
        let message = format!("`{key}` is {:?}", text.text);
        let help = match nearest(&text.text, words.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write {}", words.join(" or ")),
        };
        reader.error(Code::Value, &text.span, message, help);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_config(text: &str) -> (Notifications, usize) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap();
        std::fs::write(path.join("config.yaml"), text).unwrap();
        let mut problems = Problems::default();
        let config = Config::read(path, &mut problems);
        (config.notifications, problems.0.len())
    }

    #[test]
    fn the_words_are_read_and_others_refused() {
        let said = |text: &str| read_config(&format!("status_notifications: {text}\n"));
        let given = |start, completion| Notifications { start, completion };
        assert_eq!(said("{}"), (Notifications::default(), 0));
        assert_eq!(said("{comment: {start: disabled}}"), (given(false, Completion::Enabled), 0));
        assert_eq!(said("{comment: {completion: on_failure}}"), (given(true, Completion::OnFailure), 0));
        assert_eq!(
            said("{comment: {start: disabled, completion: disabled}}"),
            (given(false, Completion::Disabled), 0)
        );
        for bad in
            ["{comment: {start: on_failure}}", "{comment: {completion: yes}}", "{comment: {stat: x}}", "[]"]
        {
            assert_eq!(said(bad).1, 1, "{bad}");
        }
    }
}
