//! The keys of each level of the formats, and what to say about one that is not among them.

/// A mapping with a closed set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The harness file itself.
    Harness,
    /// `env:`
    Env,
    /// `openshell:`
    Openshell,
    /// `validation_loop:`
    Validation,
    /// An entry of `host_files:`
    HostFile,
    /// `upload:`
    Upload,
    /// `deadlines:`
    Deadlines,
    /// A block of `forge:`
    Forge,
    /// An entry of `overlays:`
    Overlay,
    /// An entry of `plugins:`
    Plugin,
    /// A file of `providers/`
    Provider,
    /// `config.yaml`
    Config,
    /// An entry of `agents:` in `config.yaml`
    ConfigAgent,
    /// `defaults:` in `config.yaml`
    ConfigDefaults,
}

/// Files of one format: a key of the one is not looked for in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Harness,
    Provider,
    Config,
}

/// Keys of the wider harness format that would change what a run means; refused unless empty.
pub(crate) const UNSUPPORTED: &[(&str, &str)] =
    &[("api_servers", "start the server in the pre-script, or in the image")];

/// The type of a key that is accepted without an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Any text.
    Text,
    /// A list of texts.
    Texts,
    /// A boolean.
    Bool,
    /// A whole number.
    Int,
    /// A mapping.
    Map,
}

/// Keys of the wider harness format that change nothing about what this version does.
pub(crate) const NOT_APPLIED: &[(&str, Shape)] = &[
    ("security", Shape::Map),
    ("trigger", Shape::Text),
    ("allowed_remote_resources", Shape::Texts),
    ("allow_runtime_fetch", Shape::Bool),
    ("max_runtime_fetches", Shape::Int),
    ("privilege_levels", Shape::Map),
    ("workflow", Shape::Map),
    ("feedback_mode", Shape::Text),
];

/// What a forge may say for itself.
const BLOCK: &[&str] = &[
    "env",
    "host_files",
    "openshell",
    "policy",
    "post_script",
    "pre_script",
    "providers",
    "remove",
    "required_env",
    "runner_env",
    "skills",
    "validation_loop",
];

/// The same under a guard.
const OVERLAY: &[&str] = &[
    "when",
    "env",
    "host_files",
    "openshell",
    "policy",
    "post_script",
    "pre_script",
    "providers",
    "remove",
    "required_env",
    "runner_env",
    "skills",
    "validation_loop",
];

impl Level {
    const ALL: [Level; 14] = [
        Level::Harness,
        Level::Env,
        Level::Openshell,
        Level::Validation,
        Level::HostFile,
        Level::Upload,
        Level::Deadlines,
        Level::Plugin,
        Level::Forge,
        Level::Overlay,
        Level::Provider,
        Level::Config,
        Level::ConfigAgent,
        Level::ConfigDefaults,
    ];

    const fn format(self) -> Format {
        match self {
            Level::Provider => Format::Provider,
            Level::Config | Level::ConfigAgent | Level::ConfigDefaults => Format::Config,
            _ => Format::Harness,
        }
    }

    /// The keys that are carried out.
    pub(crate) const fn keys(self) -> &'static [&'static str] {
        match self {
            Level::Harness => &[
                "agent",
                "agent_input",
                "base",
                "deadlines",
                "description",
                "doc",
                "effort",
                "env",
                "forge",
                "host_files",
                "idle_timeout",
                "image",
                "model",
                "openshell",
                "overlays",
                "plugins",
                "policy",
                "post_script",
                "pre_script",
                "providers",
                "readonly_repo",
                "remove",
                "required_env",
                "role",
                "runner_env",
                "runtime",
                "sandbox_timeout_seconds",
                "skills",
                "slug",
                "timeout_minutes",
                "upload",
                "validation_loop",
            ],
            Level::Env => &["runner", "sandbox"],
            Level::Openshell => &["profiles"],
            Level::Validation => &["script", "schema", "max_iterations", "preflight_check"],
            Level::HostFile => &["src", "dest", "expand", "optional"],
            Level::Upload => &["ignored", "exclude"],
            Level::Deadlines => crate::plan::deadlines::NAMES,
            Level::Plugin => &["path", "env", "pi"],
            Level::Forge => BLOCK,
            Level::Overlay => OVERLAY,
            Level::Provider => &["name", "type", "scope", "credentials", "config"],
            Level::Config => &["version", "agents", "defaults", "forge", "images", "runtime"],
            Level::ConfigAgent => &["name", "source", "enabled"],
            Level::ConfigDefaults => &["forge", "runtime"],
        }
    }

    /// How messages name the level.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Level::Harness => "the top level",
            Level::Env => "`env`",
            Level::Openshell => "`openshell`",
            Level::Validation => "`validation_loop`",
            Level::HostFile => "an entry of `host_files`",
            Level::Upload => "`upload`",
            Level::Deadlines => "`deadlines`",
            Level::Plugin => "an entry of `plugins`",
            Level::Forge => "a block of `forge`",
            Level::Overlay => "an entry of `overlays`",
            Level::Provider => "a provider file",
            Level::Config => "config.yaml",
            Level::ConfigAgent => "an entry of `agents`",
            Level::ConfigDefaults => "`defaults`",
        }
    }

    /// What an unknown key of this level most likely should have been.
    pub(crate) fn advice(self, key: &str) -> Option<String> {
        let others = Level::ALL
            .into_iter()
            .filter(|l| *l != self && l.format() == self.format() && l.keys().contains(&key));
        if let Some(home) = others.into_iter().next() {
            return Some(format!("it belongs in {}", home.name()));
        }
        nearest(key, self.keys().iter().copied()).map(|near| format!("did you mean `{near}`?"))
    }
}

/// The candidate that `word` is most likely a misspelling of.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let folded = fold(word);
    let limit = (folded.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|c| (distance(&folded, &fold(c)), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// `timeoutMinutes`, `Timeout-Minutes` and `timeout_minutes` are the same to a reader.
fn fold(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_find_their_key() {
        for (word, want) in [
            ("timout_minutes", Some("did you mean `timeout_minutes`?")),
            ("validation-loop", Some("did you mean `validation_loop`?")),
            ("timeoutMinutes", Some("did you mean `timeout_minutes`?")),
            ("skill", Some("did you mean `skills`?")),
            ("polciy", Some("did you mean `policy`?")),
            ("max_iterations", Some("it belongs in `validation_loop`")),
            ("sandbox", Some("it belongs in `env`")),
            ("credentials", None),
            ("totally_else", None),
            ("zz", None),
        ] {
            assert_eq!(Level::Harness.advice(word).as_deref(), want, "{word}");
        }
        assert_eq!(Level::HostFile.advice("destination"), None);
        assert_eq!(Level::Env.advice("model").as_deref(), Some("it belongs in the top level"));
    }
}
