//! The first line of a status comment, which does not show: how a comment is known again. Pure.
//!
//! `<!-- fullsend:status/1 key=… run=… attempt=… agent=… at=… until=… state=running -->`

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::forge::Platform;
use crate::openshell::names::{RunId, parse_stamp, stamp};
use crate::report::hex;

const OPEN: &str = "<!-- fullsend:status/1 ";
const CLOSE: &str = " -->";

/// Whether a comment still waits for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The run is at work, or was killed.
    Running,
    /// The comment says how it ended.
    Ended,
}

/// What the line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    /// What the comment is about: see [`key`].
    pub key: String,
    /// The run that wrote it last.
    pub run: RunId,
    /// Which attempt at the same job that was; larger numbers came later.
    pub attempt: u64,
    /// The agent.
    pub agent: String,
    /// A digest of the URL of the CI run: see [`place`].
    pub at: Option<String>,
    /// When that run has ended whatever happens.
    pub until: Timestamp,
    /// Whether it has ended.
    pub state: State,
}

impl Marker {
    /// The line, without a line break.
    pub(super) fn line(&self) -> String {
        let state = match self.state {
            State::Running => "running",
            State::Ended => "ended",
        };
        format!(
            "{OPEN}key={} run={} attempt={} agent={} at={} until={} state={state}{CLOSE}",
            self.key,
            self.run,
            self.attempt,
            // Two hyphens would end the comment for some readers; `~` is in no agent's name.
            self.agent.replace('-', "~"),
            self.at.as_deref().unwrap_or("-"),
            stamp(self.until),
        )
    }

    /// The marker at the very beginning of a comment.
    pub(super) fn of(body: &str) -> Option<Self> {
        let line = body.lines().next()?.strip_prefix(OPEN)?.trim_end().strip_suffix(CLOSE)?;
        let mut fields = line.split(' ');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let marker = Self {
            key: digest_text(field("key")?)?,
            run: RunId::parse(field("run")?)?,
            attempt: field("attempt")?.parse().ok()?,
            agent: field("agent").filter(|a| is_agent(a))?.replace('~', "-"),
            at: match field("at")? {
                "-" => None,
                text => Some(digest_text(text)?),
            },
            until: parse_stamp(field("until")?)?,
            state: match field("state")? {
                "running" => State::Running,
                "ended" => State::Ended,
                _ => return None,
            },
        };
        fields.next().is_none().then_some(marker)
    }
}

fn is_agent(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_~.".contains(&b))
}

fn digest_text(text: &str) -> Option<String> {
    let hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (text.len() == 32 && hex).then(|| text.to_owned())
}

/// What a comment is about: one agent in one job of one CI run. Attempts at the same job share it, everything else
/// does not.
pub(super) fn key(platform: Platform, ci_run: &str, job: &str, agent: &str) -> String {
    digest(&[&format!("{platform:?}"), ci_run, job, &agent.to_ascii_lowercase()])
}

/// The digest of the URL of a CI run.
pub(super) fn place(url: &str) -> String {
    digest(&[url])
}

fn digest(parts: &[&str]) -> String {
    hex(&Sha256::digest(parts.join("\0"))[..16])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn marker() -> Marker {
        Marker {
            key: key(Platform::GitHub, "77", "build", "code-fix"),
            run: RunId::from_bytes([1, 2, 3, 4, 5, 6]),
            attempt: 2,
            agent: "code--fix.v2".into(),
            at: Some(place("https://ci.example/runs/77")),
            until: "2026-03-01T12:00:00Z".parse().unwrap(),
            state: State::Running,
        }
    }

    #[test]
    fn a_marker_comes_back_from_the_first_line_only() {
        let line = marker().line();
        assert_eq!(line.matches("--").count(), 2, "nothing ends the comment early: {line}");
        assert_eq!(Marker::of(&format!("{line}\nwords")), Some(marker()));
        assert_eq!(Marker::of(&format!("{line}\r\nwords")), Some(marker()), "some forges store CRLF");
        let without = Marker { at: None, state: State::Ended, ..marker() };
        assert_eq!(Marker::of(&without.line()), Some(without));
        for odd in [
            format!("x {line}"),
            format!("words\n{line}"),
            line.replace("state=running", "state=done"),
            line.replace(" -->", " more=1 -->"),
            line.replace("agent=code", "agent=<b>"),
            line.replace("key=", "key=0"),
            line.replace(" -->", ""),
            String::new(),
        ] {
            assert_eq!(Marker::of(&odd), None, "{odd}");
        }
    }

    #[test]
    fn agents_jobs_and_runs_have_keys_of_their_own() {
        let one = key(Platform::GitHub, "77", "build", "code");
        assert_eq!(one, key(Platform::GitHub, "77", "build", "Code"));
        for other in [
            key(Platform::GitLab, "77", "build", "code"),
            key(Platform::GitHub, "78", "build", "code"),
            key(Platform::GitHub, "77", "other", "code"),
            key(Platform::GitHub, "77", "build", "review"),
        ] {
            assert_ne!(one, other);
        }
    }

    proptest! {
        #[test]
        fn no_comment_makes_it_panic(text in "(<!-- fullsend:status/1 )?.{0,80}( -->)?") {
            let _ = Marker::of(&text);
        }
    }
}
