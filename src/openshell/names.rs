//! Names that OpenShell accepts everywhere.
//!
//! From 0.0.88 a sandbox name has at most 19 characters of `[a-z0-9-]`; the gateway answers `name exceeds
//! maximum length (20 > 19)`. Older releases accept more, so the narrow rule serves all of them.

use sha2::{Digest as _, Sha256};

/// The longest sandbox name, in characters (`MAX_ROUTABLE_NAME_LEN` of the gateway from 0.0.88 on).
pub const SANDBOX_NAME_MAX: usize = 19;
/// The longest label value, in characters (the Kubernetes rule, which a driver of OpenShell applies).
pub const LABEL_VALUE_MAX: usize = 63;
/// What every sandbox name of ours starts with.
pub const SANDBOX_PREFIX: &str = "fs-";

/// The labels of a sandbox of ours. They are set at create and never change.
pub mod label {
    /// Says that a sandbox is ours; its value is [`FULLSEND`].
    pub const MANAGED_BY: &str = "managed-by";
    /// The value of [`MANAGED_BY`].
    pub const FULLSEND: &str = "fullsend";
    /// The run's identity.
    pub const RUN: &str = "fullsend-run";
    /// The agent's name, shortened where it has to be.
    pub const AGENT: &str = "fullsend-agent";
    /// A digest of the host that the run's process is on.
    pub const OWNER: &str = "fullsend-owner";
    /// When the run has ended whatever happens; see [`super::stamp`].
    pub const EXPIRES: &str = "fullsend-expires";
    /// Until when a sandbox is kept on purpose; see [`super::stamp`].
    pub const KEEP: &str = "keep";
}

/// A moment as a label value: RFC 3339 in its basic form, as `:` is not allowed in a label.
pub fn stamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The moment that a label value says: [`stamp`], or seconds since 1970.
pub fn parse_stamp(text: &str) -> Option<jiff::Timestamp> {
    if text.len() == 16 && text.ends_with('Z') {
        let civil = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?;
        return jiff::tz::TimeZone::UTC.to_timestamp(civil).ok();
    }
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    jiff::Timestamp::from_second(text.parse().ok().filter(|_| digits)?).ok()
}

/// The identity of one run: twelve hexadecimal digits from the system's random source. Names made from it are
/// unique whatever the clock and the process number are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A new identity.
    ///
    /// # Errors
    /// [`crate::Code::Io`] when the system has no random numbers.
    pub fn random() -> crate::Result<Self> {
        let mut bytes = [0_u8; 6];
        getrandom::fill(&mut bytes).map_err(|e| {
            crate::Error::new(crate::Code::Io, format!("the system's random source failed: {e}"))
        })?;
        Ok(Self::from_bytes(bytes))
    }

    /// The identity that these bytes stand for; a dry run and tests pass their own.
    pub fn from_bytes(bytes: [u8; 6]) -> Self {
        Self(hex(&bytes))
    }

    /// An identity in its text form, if it has one.
    pub fn parse(text: &str) -> Option<Self> {
        let ok = text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        ok.then(|| Self(text.to_owned()))
    }

    /// The twelve digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a run's sandbox: `fs-`, up to three characters of the agent's name, the run's identity. At most
/// 19 characters of `[a-z0-9-]`, alphanumeric at both ends.
pub fn sandbox_name(agent: &str, run: &RunId) -> String {
    let slug: String =
        agent.chars().filter(char::is_ascii_alphanumeric).take(3).map(|c| c.to_ascii_lowercase()).collect();
    if slug.is_empty() { format!("{SANDBOX_PREFIX}{run}") } else { format!("{SANDBOX_PREFIX}{slug}-{run}") }
}

/// The name of the instance that one run makes of a provider, so that two runs on one gateway never swap each
/// other's credentials. Provider names are not restricted by the gateway.
pub fn provider_instance(name: &str, run: &RunId) -> String {
    format!("{name}-{run}")
}

/// Whether a sandbox or provider of that name belongs to the run alone: it ends with the run's identity as a part of
/// its own. Names that merely share a beginning with one of ours never do.
pub fn belongs_to(name: &str, run: &RunId) -> bool {
    name.strip_suffix(run.as_str())
        .and_then(|rest| rest.strip_suffix('-'))
        .is_some_and(|rest| !rest.is_empty())
}

/// The identity that the end of a name says, when it says one.
pub fn run_of(name: &str) -> Option<RunId> {
    let (rest, id) = name.rsplit_once('-')?;
    if rest.is_empty() { None } else { RunId::parse(id) }
}

/// A value that every driver accepts as a label: at most 63 characters of `[A-Za-z0-9._-]`, alphanumeric at
/// both ends. A value that is not one already is replaced by a readable start and the start of its SHA-256.
pub fn label_value(value: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let ends = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphanumeric()) && s.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    if value.is_empty() || (value.len() <= LABEL_VALUE_MAX && value.chars().all(fine) && ends(value)) {
        return value.to_owned();
    }
    let digest = hex(&Sha256::digest(value.as_bytes())[..8]);
    let start: String = value.chars().filter(|c| fine(*c)).take(LABEL_VALUE_MAX - 17).collect();
    let start = start.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if start.is_empty() { digest } else { format!("{start}-{digest}") }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn valid(name: &str) -> bool {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !name.is_empty()
            && name.len() <= SANDBOX_NAME_MAX
            && name.chars().all(inner)
            && !name.starts_with('-')
            && !name.ends_with('-')
    }

    #[test]
    fn awkward_agent_names_give_valid_names() {
        let run = RunId::from_bytes([0, 1, 2, 0xab, 0xcd, 0xff]);
        let name = |agent| sandbox_name(agent, &run);
        assert_eq!(name("Code_Review.Agent-With-A-Very-Long-Name"), "fs-cod-000102abcdff");
        assert_eq!(name("é"), "fs-000102abcdff");
        assert_eq!(name("-x-"), "fs-x-000102abcdff");
    }

    #[test]
    fn names_of_one_moment_differ() {
        let names: BTreeSet<_> = (0..50).map(|_| sandbox_name("review", &RunId::random().unwrap())).collect();
        assert_eq!(names.len(), 50);
    }

    #[test]
    fn a_run_id_reads_back() {
        let run = RunId::random().unwrap();
        assert_eq!(RunId::parse(run.as_str()), Some(run));
        for bad in ["", "0123456789a", "0123456789AB", "0123456789ag", "0123456789abc"] {
            assert_eq!(RunId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_belong_to_one_run() {
        let run = RunId::from_bytes([0, 1, 2, 0xab, 0xcd, 0xff]);
        for name in [sandbox_name("work", &run), sandbox_name("", &run), provider_instance("gh", &run)] {
            assert!(belongs_to(&name, &run), "{name}");
            assert_eq!(run_of(&name), Some(run.clone()), "{name}");
        }
        for name in [
            "fs-wor-000102abcdf",
            "fs-wor-000102abcdff0",
            "fs-wor000102abcdff",
            "000102abcdff",
            "-000102abcdff",
        ] {
            assert!(!belongs_to(name, &run), "{name}");
            assert_eq!(run_of(name), None, "{name}");
        }
    }

    #[test]
    fn long_label_values_are_shortened_and_stay_apart() {
        let (a, b) = ("a".repeat(64), format!("{}b", "a".repeat(63)));
        assert_eq!(label_value("plain-1.0"), "plain-1.0");
        assert_eq!(label_value(&"a".repeat(63)), "a".repeat(63));
        assert_ne!(label_value(&a), label_value(&b));
    }

    #[test]
    fn moments_are_label_values_and_come_back() {
        let at: jiff::Timestamp = "2026-03-01T09:05:07Z".parse().unwrap();
        assert_eq!(stamp(at), "20260301T090507Z");
        assert_eq!(label_value(&stamp(at)), stamp(at));
        assert_eq!(parse_stamp(&stamp(at)), Some(at));
        assert_eq!(parse_stamp(&at.as_second().to_string()), Some(at));
        for bad in ["", "soon", "-5", "20261301T090507Z", "2026030109050", "99999999999999999999"] {
            assert!(parse_stamp(bad).is_none_or(|t| t != at), "{bad}");
        }
        assert_eq!(parse_stamp("20261301T090507Z"), None);
        assert_eq!(parse_stamp("-5"), None);
    }

    proptest! {
        #[test]
        fn any_agent_gives_a_valid_name(agent in ".*", bytes in any::<[u8; 6]>()) {
            prop_assert!(valid(&sandbox_name(&agent, &RunId::from_bytes(bytes))));
        }

        #[test]
        fn any_label_value_is_acceptable(value in ".{1,200}") {
            let label = label_value(&value);
            prop_assert!(!label.is_empty() && label.len() <= LABEL_VALUE_MAX, "{label}");
            prop_assert!(label.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{label}");
            prop_assert!(label.starts_with(|c: char| c.is_ascii_alphanumeric()), "{label}");
            prop_assert!(label.ends_with(|c: char| c.is_ascii_alphanumeric()), "{label}");
        }
    }
}
