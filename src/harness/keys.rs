//! The levels of the formats, and what to say about a key that one of them does not have.

use super::fields::Field;

/// A mapping with a closed set of keys; [`super::fields`] has the keys.
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
    /// An entry of `plugins:`
    Plugin,
    /// `pi:` of an entry of `plugins:`
    PluginPi,
    /// `forge:`
    Forges,
    /// A block of `forge:`
    Forge,
    /// An entry of `overlays:`
    Overlay,
    /// An entry of `api_servers:`
    ApiServer,
    /// `resources:`
    Resources,
    /// `limits:`
    Limits,
    /// `workflow:`
    Workflow,
    /// `security:`
    Security,
    /// `security.host_scanners:`
    HostScanners,
    /// `security.host_scanners.llm_guard:`
    LlmGuard,
    /// `security.sandbox_hooks:`
    SandboxHooks,
    /// `security.sandbox_hooks.tirith:`
    Tirith,
    /// `security.sandbox_hooks.tool_allowlist_pretool:`
    ToolAllowlist,
    /// `security.escalation:`
    Escalation,
    /// `security.trace:`
    Trace,
    /// A file of `providers/`
    Provider,
    /// A file of `profiles/`
    Profile,
    /// An entry of `credentials:` of a profile
    ProfileCredential,
    /// A file of `policies/`
    Policy,
    /// `filesystem_policy:` of a policy
    Filesystem,
    /// `landlock:` of a policy
    Landlock,
    /// `process:` of a policy
    Identity,
    /// A rule of `network_policies:` of a policy
    NetworkRule,
    /// An entry of `endpoints:` of a rule or a profile
    Endpoint,
    /// An entry of `binaries:` of a rule
    Binary,
    /// `config.yaml`
    Config,
    /// An entry of `agents:` in `config.yaml`
    ConfigAgent,
    /// `defaults:` in `config.yaml`
    ConfigDefaults,
    /// `status_notifications:` in `config.yaml`
    StatusNotifications,
    /// `status_notifications.comment:` in `config.yaml`
    StatusComment,
    /// `image_policy:` in `config.yaml`
    ImagePolicy,
    /// An entry of `signers:` in it
    ImageSigner,
}

/// Files of one format: a key of the one is not looked for in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// `harness/NAME.yaml`
    Harness,
    /// `config.yaml`
    Config,
    /// `providers/NAME.yaml`
    Provider,
    /// `profiles/NAME.yaml`; OpenShell owns the format.
    Profile,
    /// `policies/NAME.yaml`; OpenShell owns the format.
    Policy,
}

impl Level {
    /// Every level, in the order of the reference.
    pub(crate) const ALL: [Level; 41] = [
        Level::Harness,
        Level::Env,
        Level::Openshell,
        Level::Validation,
        Level::HostFile,
        Level::Upload,
        Level::Deadlines,
        Level::Plugin,
        Level::PluginPi,
        Level::Forges,
        Level::Forge,
        Level::Overlay,
        Level::ApiServer,
        Level::Resources,
        Level::Limits,
        Level::Workflow,
        Level::Security,
        Level::HostScanners,
        Level::LlmGuard,
        Level::SandboxHooks,
        Level::Tirith,
        Level::ToolAllowlist,
        Level::Escalation,
        Level::Trace,
        Level::Config,
        Level::ConfigAgent,
        Level::ConfigDefaults,
        Level::ImagePolicy,
        Level::ImageSigner,
        Level::StatusNotifications,
        Level::StatusComment,
        Level::Provider,
        Level::Profile,
        Level::ProfileCredential,
        Level::Policy,
        Level::Filesystem,
        Level::Landlock,
        Level::Identity,
        Level::NetworkRule,
        Level::Endpoint,
        Level::Binary,
    ];

    /// The format that the level is a part of.
    pub(crate) const fn format(self) -> Format {
        match self {
            Level::Provider => Format::Provider,
            Level::Profile | Level::ProfileCredential => Format::Profile,
            Level::Policy
            | Level::Filesystem
            | Level::Landlock
            | Level::Identity
            | Level::NetworkRule
            | Level::Endpoint
            | Level::Binary => Format::Policy,
            Level::Config
            | Level::ConfigAgent
            | Level::ConfigDefaults
            | Level::ImagePolicy
            | Level::ImageSigner
            | Level::StatusNotifications
            | Level::StatusComment => Format::Config,
            _ => Format::Harness,
        }
    }

    /// Whether there may be more keys than are known here: OpenShell has more in a profile.
    pub(crate) const fn is_open(self) -> bool {
        matches!(self, Level::Profile | Level::ProfileCredential)
    }

    /// Whether a key that stands elsewhere is looked for here. The keys of the others say too little: many things
    /// are `enabled` or have a `name`.
    const fn is_home(self) -> bool {
        matches!(
            self,
            Level::Harness
                | Level::Env
                | Level::Openshell
                | Level::Validation
                | Level::HostFile
                | Level::Upload
                | Level::Deadlines
                | Level::Plugin
                | Level::Forges
                | Level::Forge
                | Level::Overlay
                | Level::Config
                | Level::ConfigAgent
                | Level::ConfigDefaults
                | Level::Policy
                | Level::Filesystem
                | Level::Endpoint
        )
    }

    /// How messages and the reference name the level.
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
            Level::PluginPi => "`pi` of a plugin",
            Level::Forges => "`forge`",
            Level::Forge => "a block of `forge`",
            Level::Overlay => "an entry of `overlays`",
            Level::ApiServer => "an entry of `api_servers`",
            Level::Resources => "`resources`",
            Level::Limits => "`limits`",
            Level::Workflow => "`workflow`",
            Level::Security => "`security`",
            Level::HostScanners => "`security.host_scanners`",
            Level::LlmGuard => "`security.host_scanners.llm_guard`",
            Level::SandboxHooks => "`security.sandbox_hooks`",
            Level::Tirith => "`security.sandbox_hooks.tirith`",
            Level::ToolAllowlist => "`security.sandbox_hooks.tool_allowlist_pretool`",
            Level::Escalation => "`security.escalation`",
            Level::Trace => "`security.trace`",
            Level::Provider => "a provider file",
            Level::Profile => "a profile",
            Level::ProfileCredential => "an entry of `credentials`",
            Level::Policy => "a policy",
            Level::Filesystem => "`filesystem_policy`",
            Level::Landlock => "`landlock`",
            Level::Identity => "`process`",
            Level::NetworkRule => "a rule of `network_policies`",
            Level::Endpoint => "an entry of `endpoints`",
            Level::Binary => "an entry of `binaries`",
            Level::Config => "config.yaml",
            Level::ConfigAgent => "an entry of `agents`",
            Level::ConfigDefaults => "`defaults`",
            Level::StatusNotifications => "`status_notifications`",
            Level::StatusComment => "`status_notifications.comment`",
            Level::ImagePolicy => "`image_policy`",
            Level::ImageSigner => "an entry of `signers`",
        }
    }

    /// What an unknown key of this level most likely should have been.
    pub(crate) fn advice(self, key: &str) -> Option<String> {
        let near = nearest(key, self.fields().map(|field: &Field| field.name));
        let mut homes = Level::ALL
            .into_iter()
            .filter(|level| *level != self && level.format() == self.format() && level.is_home())
            .filter(|level| level.has(key));
        if let Some(home) = homes.next() {
            return Some(format!("it belongs in {}", home.name()));
        }
        near.map(|near| format!("did you mean `{near}`?"))
    }
}

/// The candidate that `word` is most likely a misspelling of.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let folded = fold(word);
    let len = folded.chars().count();
    let limit = (len / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|c| (fold(c), c))
        .filter(|(other, _)| other.chars().count().abs_diff(len) <= limit)
        .map(|(other, c)| (distance(&folded, &other), c))
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
