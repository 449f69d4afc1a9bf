//! What a status comment says. Pure.
//!
//! Text that is not our own (an error's message, a reason to skip) may come from the agent or from whoever wrote the
//! issue. It is shown in a code span, which mentions nobody, refers to nothing, links and embeds nothing and holds no
//! markup; and since other programs read the raw text, `@` and `#` are cut off from what follows, too.

use std::time::Duration;

use jiff::Timestamp;

use crate::report::{Ci, duration, sanitize};
use crate::run::Verdict;

/// The longest foreign text, in bytes.
const FOREIGN: usize = 300;

/// What is known from the beginning.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The agent.
    pub agent: String,
    /// When the run began.
    pub started: Timestamp,
    /// The commit it is about, where it is known.
    pub commit: Option<String>,
    /// Where the log is.
    pub run_url: Option<String>,
}

impl Facts {
    /// While the run is at work.
    pub(super) fn running(&self) -> String {
        self.line("⏳", "is at work", &format!("started {}", moment(self.started)))
    }

    /// When it has ended; `reason` is ours when `own`.
    pub(super) fn ended(&self, verdict: Verdict, took: Duration, reason: &str, own: bool) -> String {
        let (sign, what) = words(verdict);
        let end = self.started.checked_add(took).unwrap_or(self.started);
        let when = format!("took {} · ended {}", duration(took), moment(end));
        let line = self.line(sign, what, &when);
        match (reason, own) {
            ("", _) => line,
            (reason, true) => format!("{line}\n\n{reason}"),
            (reason, false) => format!("{line}\n\n{}", foreign(reason)),
        }
    }

    fn line(&self, sign: &str, what: &str, when: &str) -> String {
        use std::fmt::Write as _;
        let mut line = format!("{sign} `{}` {what} · {when}", self.agent);
        if let Some(commit) = &self.commit {
            let _ = write!(line, " · commit `{commit}`");
        }
        if let Some(url) = &self.run_url {
            let _ = write!(line, " · [log]({url})");
        }
        line
    }
}

/// When nobody wrote the end. `old` is the text that the comment had.
pub(super) fn lost(agent: &str, old: &str, now: Timestamp) -> String {
    // The rest of the first line is what the run wrote when it began.
    let first = old.lines().find(|line| !line.trim().is_empty() && !line.starts_with("<!--"));
    let rest = first.and_then(|line| line.split_once(" · ")).map(|(_, rest)| rest).unwrap_or_default();
    let rest =
        if rest.starts_with("started ") && rest.len() < 1000 { format!(" · {rest}") } else { String::new() };
    format!(
        "⚠️ `{agent}` ended without a report{rest}\n\nIts process was killed, or its machine went away; this was \
         noticed at {}.",
        moment(now)
    )
}

fn words(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Success => ("✅", "succeeded"),
        Verdict::Skipped => ("⏭️", "had nothing to do"),
        Verdict::Failed => ("❌", "failed"),
        Verdict::Incomplete => ("❌", "ended without a result"),
        Verdict::Budget => ("❌", "ran over its budget"),
        Verdict::Invalid => ("❌", "gave output that does not validate"),
        Verdict::Blocked => ("⛔", "was stopped by a security check"),
        Verdict::ScriptFailed => ("❌", "failed in a script of its harness"),
        Verdict::Infrastructure => ("❌", "could not be carried out"),
        Verdict::Usage => ("❌", "could not start"),
        Verdict::Timeout => ("⌛", "reached a deadline"),
        Verdict::Cancelled => ("🚫", "was cancelled"),
    }
}

fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// A foreign text as it may be shown.
pub(super) fn foreign(text: &str) -> String {
    let line = sanitize::line(text, Ci::None);
    let mut text = String::new();
    for c in sanitize::truncate(line.trim(), FOREIGN).chars() {
        text.push(c);
        if matches!(c, '@' | '#' | '!' | '<' | '/') {
            // A zero-width space: what follows is no name, no number, no tag and no command.
            text.push('\u{200b}');
        }
    }
    // A fence longer than any run of backticks in the text (CommonMark 6.1).
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let edge = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { String::new() } else { format!("{fence}{edge}{text}{edge}{fence}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> Facts {
        Facts {
            agent: "triage".into(),
            started: "2026-03-01T12:00:00Z".parse().unwrap(),
            commit: Some("abc1234".into()),
            run_url: Some("https://ci.example/runs/7".into()),
        }
    }

    #[test]
    fn a_comment_says_what_who_when_and_where() {
        assert_eq!(
            facts().running(),
            "⏳ `triage` is at work · started 2026-03-01 12:00 UTC · commit `abc1234` · [log](https://ci.example/runs/7)"
        );
        let ended = facts().ended(Verdict::Failed, Duration::from_secs(192), "FS-AGENT-FAILED: no", false);
        assert!(
            ended.starts_with("❌ `triage` failed · took 3m 12s · ended 2026-03-01 12:03 UTC"),
            "{ended}"
        );
        assert!(ended.ends_with("\n\n`FS-AGENT-FAILED: no`"), "{ended}");
    }

    #[test]
    fn a_lost_one_keeps_what_was_known() {
        let now = "2026-03-01T14:00:00Z".parse().unwrap();
        let old = format!("<!-- x -->\n{}", facts().running());
        let text = lost("triage", &old, now);
        assert!(
            text.starts_with("⚠️ `triage` ended without a report · started 2026-03-01 12:00 UTC"),
            "{text}"
        );
        assert!(text.contains("[log](https://ci.example/runs/7)") && text.contains("14:00"));
        assert!(!lost("triage", "<!-- x -->\nsomebody · changed it", now).contains("changed"));
    }

    #[test]
    fn foreign_text_does_nothing() {
        for (text, absent) in [
            ("ask @octocat", "@octocat"),
            ("fixes #12", "#12"),
            ("closes o/r#12 and !7", "!7"),
            ("<!-- fullsend:status/1 -->", "<!--"),
            ("![x](https://evil.example/x.png)", "![x]"),
            ("see https://github.com/o/r/issues/1", "https://github.com"),
            ("/close", "/close"),
            ("a\n/close", "\n"),
            ("\u{1b}[31mred\u{202e}", "\u{1b}"),
        ] {
            let shown = foreign(text);
            assert!(!shown.contains(absent), "{shown}");
            assert!(shown.starts_with('`') && shown.ends_with('`'), "{shown}");
        }
        assert_eq!(foreign("a `` b"), "```a `` b```");
        assert_eq!(foreign("`x`"), "`` `x` ``");
        assert_eq!(foreign(" \n"), "");
        assert!(foreign(&"é".repeat(5000)).len() < 400);
    }

    proptest! {
        #[test]
        fn foreign_text_stays_in_its_span(text in "[`a@\n ]{0,40}") {
            let shown = foreign(&text);
            let fence = shown.len() - shown.trim_start_matches('`').len();
            let inner = shown.get(fence..shown.len() - fence).unwrap_or_default();
            prop_assert!(inner.split(|c| c != '`').all(|run| run.len() != fence || fence == 0));
            prop_assert!(!shown.contains('\n'));
        }
    }
}
