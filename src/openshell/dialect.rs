//! The differences between OpenShell releases, as data.
//!
//! Four generations are known: 0.0.83, 0.0.110, 0.0.111–0.0.116 and 0.1.x. A newer release is assumed to be
//! like the newest known one. `--detach` is taken from the help text; the version decides the rest, and where
//! it says nothing (`0.0.0` of a source build) more help texts do.

use serde::Serialize;

/// The name of the executable.
pub const BINARY: &str = "openshell";
/// What the names of its environment variables start with.
pub const ENV_PREFIX: &str = "OPENSHELL_";
/// The name by which a sandbox reaches the machine of its gateway (Docker, Podman and VM drivers of 0.0.83 and later).
pub const HOST_ALIAS: &str = "host.openshell.internal";
/// What a credential's placeholder in the sandbox starts with; the rest has no stable form.
pub const PLACEHOLDER_PREFIX: &str = "openshell:resolve:env:";

/// How further pages of a list are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paging {
    /// `--limit N --offset M`.
    Offset,
    /// `--page-size N --page-token T`; the offset form is a usage error.
    Token,
}

/// What one generation does and wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a foreign program")]
pub struct Facts {
    /// What the generation is called in messages and tests.
    pub generation: &'static str,
    /// `sandbox create --detach -- sleep infinity`; without it the command is a job run once over ssh, and
    /// `-- true` leaves the sandbox Ready. From 0.0.111 the command is the main process of the sandbox.
    pub detach: bool,
    /// `sandbox create --keep`: a hidden no-op on all of them, left out where the default is known to be the same.
    pub keep: bool,
    /// `sandbox get -o json`, from 0.0.92; before, the `Phase:` field of the text is read.
    pub get_json: bool,
    /// The shape of further pages.
    pub paging: Paging,
    /// The words of the provider profile commands.
    pub profile_words: &'static [&'static str],
    /// A provider whose type has no profile loses every static credential of the sandbox (from 0.0.103), or
    /// cannot be created at all (0.1.x).
    pub provider_needs_profile: bool,
    /// `settings set providers_v2_enabled` exists and is needed for profiles to take effect.
    pub providers_v2_setting: bool,
    /// `provider create` wants a `--credential`, so that an intentionally empty one is sent as `KEY=`.
    pub empty_credentials_sent: bool,
    /// `provider create --type` takes other names for the built-in types; the provider then has the type itself.
    pub type_aliases: bool,
    /// `sandbox create --cpu`; the help text decides.
    pub cpu: bool,
    /// `sandbox create --memory`; the help text decides.
    pub memory: bool,
    /// `sandbox create --gpu [COUNT]`; the help text decides.
    pub gpu: bool,
    /// `sandbox create --disk`; no release up to 0.1.10 has it. The help text decides.
    pub disk: bool,
    /// A credential goes into another header than Authorization only with placement in its profile (0.1.8;
    /// claimed for all of 0.1.x, as placement does no harm before).
    pub header_needs_placement: bool,
}

/// The other names of built-in provider types, and the type that a provider gets (0.0.83 and 0.0.112-dev).
const TYPE_ALIASES: &[(&str, &str)] = &[
    ("claude", "claude-code"),
    ("claude_code", "claude-code"),
    ("gcp", "google-cloud"),
    ("gcp-vertex", "google-vertex-ai"),
    ("gh", "github"),
    ("glab", "gitlab"),
    ("google-vertex", "google-vertex-ai"),
    ("vertex", "google-vertex-ai"),
    ("vertex-ai", "google-vertex-ai"),
];

const PROVIDER_PROFILE: &[&str] = &["provider", "profile"];
const PROFILE: &[&str] = &["profile"];

/// 0.0.83 and its neighbours up to 0.0.91.
pub const G83: Facts = Facts {
    generation: "0.0.83",
    detach: false,
    keep: true,
    get_json: false,
    paging: Paging::Offset,
    profile_words: PROVIDER_PROFILE,
    provider_needs_profile: false,
    providers_v2_setting: true,
    empty_credentials_sent: true,
    type_aliases: true,
    cpu: true,
    memory: true,
    gpu: true,
    disk: false,
    header_needs_placement: false,
};

/// 0.0.92 to 0.0.110.
pub const G110: Facts = Facts { generation: "0.0.110", get_json: true, provider_needs_profile: true, ..G83 };

/// 0.0.111 to 0.0.116: the command given to create is the main process.
pub const G111: Facts = Facts { generation: "0.0.111", detach: true, ..G110 };

/// 0.1.x: lists are objects, profiles have a command of their own and always apply.
pub const G1: Facts = Facts {
    generation: "0.1",
    keep: false,
    paging: Paging::Token,
    profile_words: PROFILE,
    providers_v2_setting: false,
    empty_credentials_sent: false,
    type_aliases: false,
    header_needs_placement: true,
    ..G111
};

/// Every generation, oldest first, with the first version that belongs to it.
pub const GENERATIONS: &[([u64; 3], Facts)] =
    &[([0, 0, 0], G83), ([0, 0, 92], G110), ([0, 0, 111], G111), ([0, 1, 0], G1)];

/// What the `openshell` at hand can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dialect {
    /// The version as it was printed.
    pub version: String,
    /// Whether this was assumed, because no `openshell` was asked or its version said nothing.
    pub assumed: bool,
    /// The facts.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Dialect {
    /// The newest known generation: what a dry run without `openshell` assumes.
    pub fn newest() -> Self {
        Self { version: G1.generation.to_owned(), assumed: true, facts: G1 }
    }

    /// The dialect of a printed version; `None` when it says nothing.
    pub fn of_version(printed: &str) -> Option<Self> {
        let version = parse_version(printed).filter(|v| *v != [0, 0, 0])?;
        let (_, facts) = GENERATIONS.iter().rev().find(|(first, _)| *first <= version)?;
        Some(Self { version: version_text(printed), assumed: false, facts: *facts })
    }

    /// The id of the profile that a provider of type `kind` needs.
    pub fn profile_of<'a>(&self, kind: &'a str) -> &'a str {
        if !self.facts.type_aliases {
            return kind;
        }
        TYPE_ALIASES.iter().find(|(alias, _)| kind.eq_ignore_ascii_case(alias)).map_or(kind, |(_, id)| id)
    }

    /// The dialect that help texts speak for, where the version says nothing: whether create knows
    /// `--detach`, get knows `-o`, and there is a `profile` command.
    pub fn of_helps(printed: &str, detach: bool, get_output: bool, profile: bool) -> Self {
        let facts = match (profile, detach, get_output) {
            (true, _, _) => G1,
            (false, true, _) => G111,
            (false, false, true) => G110,
            (false, false, false) => G83,
        };
        Self { version: version_text(printed), assumed: true, facts }
    }
}

/// The three numbers of a version, from text such as `openshell 0.0.112-dev.7+g2f7fb6559`.
pub fn parse_version(printed: &str) -> Option<[u64; 3]> {
    let word = version_text(printed);
    let core = word.split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|n| n.parse::<u64>().ok());
    let version = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(version)
}

/// The word of `printed` that is the version, else its first line.
fn version_text(printed: &str) -> String {
    let printed = super::text::strip_escapes(printed);
    let is_version = |w: &&str| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.');
    let word = printed.split_whitespace().find(is_version);
    word.or(printed.lines().next()).unwrap_or_default().trim().chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fall_into_their_generation() {
        let cases = [
            ("openshell 0.0.83\n", "0.0.83"),
            ("openshell 0.0.91", "0.0.83"),
            ("openshell 0.0.92", "0.0.110"),
            ("openshell 0.0.110", "0.0.110"),
            ("openshell 0.0.111", "0.0.111"),
            ("openshell 0.0.112-dev.7+g2f7fb6559", "0.0.111"),
            ("openshell 0.0.116", "0.0.111"),
            ("openshell 0.1.0", "0.1"),
            ("\u{1b}[1mopenshell\u{1b}[0m 0.1.10", "0.1"),
            ("openshell 0.2.0", "0.1"),
            ("ryno 7.3.1", "0.1"),
        ];
        for (printed, generation) in cases {
            let dialect = Dialect::of_version(printed).unwrap();
            assert_eq!(dialect.facts.generation, generation, "{printed}");
            assert!(!dialect.assumed);
        }
        assert_eq!(Dialect::of_version("openshell 0.0.112-dev.7+g2f").unwrap().version, "0.0.112-dev.7+g2f");
    }

    #[test]
    fn versions_that_say_nothing_are_left_to_the_help_texts() {
        for printed in ["openshell 0.0.0", "openshell", "", "0.1", "openshell 1.2.3.4", "v1.2.3"] {
            assert_eq!(Dialect::of_version(printed), None, "{printed}");
        }
        let generation = |d, g, p| Dialect::of_helps("openshell 0.0.0", d, g, p).facts.generation;
        assert_eq!(generation(false, false, false), "0.0.83");
        assert_eq!(generation(false, true, false), "0.0.110");
        assert_eq!(generation(true, true, false), "0.0.111");
        assert_eq!(generation(true, true, true), "0.1");
    }

    #[test]
    fn an_alias_stands_for_its_profile_where_the_release_knows_aliases() {
        let of = |version, kind| Dialect::of_version(version).unwrap().profile_of(kind).to_owned();
        assert_eq!(of("0.0.83", "gh"), "github");
        assert_eq!(of("0.0.112-dev.7", "Claude"), "claude-code");
        assert_eq!(of("0.0.112-dev.7", "my-own"), "my-own");
        assert_eq!(of("0.1.4", "gh"), "gh");
    }

    #[test]
    fn the_newest_is_the_last_of_the_table() {
        assert_eq!(Dialect::newest().facts, GENERATIONS.last().unwrap().1);
        assert!(GENERATIONS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
