//! Every field of every format, described once.
//!
//! From these tables come the keys that each [`Level`] knows, the merge of bases and blocks, the check of what is
//! accepted without an effect, the JSON Schemas and the tables of the reference. To add a field: add one line to
//! its table, then read it in `raw` (or where its file is read). A line that is never read, and a read without a
//! line, both stop every debug build in [`Reader::finish`](super::reader::Reader::finish).

mod conform;
mod files;
mod harness;
mod limits;
mod policy;
pub(crate) mod reference;
pub(crate) mod schema;
mod sections;
mod security;
#[cfg(test)]
mod tests;

pub(crate) use conform::{conform, conform_document};

use super::keys::Level;

/// One field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Its key.
    pub(crate) name: &'static str,
    /// What its value is.
    pub(crate) ty: Type,
    /// What it means, in Markdown.
    pub(crate) doc: &'static str,
    /// What an absent one means, in Markdown; empty when it means nothing.
    pub(crate) default: &'static str,
    /// A value, as YAML in one line.
    pub(crate) example: &'static str,
    /// Whether it must be there in what results from the merge.
    pub(crate) required: bool,
    /// Where it may stand.
    pub(crate) home: Home,
    /// How it combines with the same field of a base.
    pub(crate) merge: Merge,
    /// What this version does with it.
    pub(crate) effect: Effect,
}

/// Where a field of the top level may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a harness file and in its bases.
    File,
    /// There, and in blocks of `forge` and entries of `overlays`.
    Block,
    /// In entries of `overlays` only.
    Overlay,
}

/// What a version does with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is carried out.
    Applied,
    /// It is checked, and a warning says that it is not carried out.
    NotApplied,
    /// It is checked; that it steers another program is no news.
    Elsewhere,
}

/// How one field combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// The child's value, unless it is null.
    Present,
    /// The child's value, unless it is null, empty or 0.
    Filled,
    /// The base's entries, then the child's that are not among them.
    Append,
    /// As `Append`, but an entry of the child takes the place of the one with the same name.
    Skills,
    /// As `Append`, but an entry of the child takes the place of the one with the same destination.
    HostFiles,
    /// Both mappings; the child's value wins.
    Map,
    /// Field by field, each as its own table says.
    Section,
    /// Block by block, each like a harness; a null block of the child removes the base's.
    Forge,
    /// The child's entries, then the base's: the child is asked first.
    Overlays,
    /// Carried out by the merge and not a part of its result; what blocks of one forge remove adds up.
    Steers,
}

/// The type of a value. Null is absent for all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type {
    /// Any scalar, as the literal text.
    Text,
    /// A text of this form: a regular expression of ECMA-262 for the whole text, and the word for it.
    Form(&'static str, &'static str),
    /// One of these words.
    Words(fn() -> Vec<&'static str>),
    /// The path of a file.
    Path,
    /// The path of a directory.
    Dir,
    /// Seconds, or a text such as `90s` or `1h30m`.
    Duration,
    /// A whole number from and to.
    Int(i64, i64),
    /// A number from and to.
    Number(f64, f64),
    /// `true` or `false`.
    Bool,
    /// A list of these.
    List(&'static Type),
    /// A mapping of free keys to these.
    Map(&'static Type),
    /// A mapping with the keys of this level.
    Section(Level),
    /// One of these.
    Either(&'static [Type]),
    /// Anything: another program owns it.
    Any,
}

const fn field(name: &'static str, ty: Type, doc: &'static str) -> Field {
    Field {
        name,
        ty,
        doc,
        default: "",
        example: "",
        required: false,
        home: Home::File,
        merge: Merge::Present,
        effect: Effect::Applied,
    }
}

impl Field {
    const fn default(mut self, text: &'static str) -> Self {
        self.default = text;
        self
    }

    const fn example(mut self, yaml: &'static str) -> Self {
        self.example = yaml;
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn home(mut self, home: Home) -> Self {
        self.home = home;
        self
    }

    const fn merge(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }
}

impl Level {
    /// The table that the level takes its fields from.
    const fn table(self) -> &'static [Field] {
        match self {
            Level::Harness | Level::Forge | Level::Overlay => harness::TOP,
            Level::Env => sections::ENV,
            Level::Openshell => sections::OPENSHELL,
            Level::Validation => sections::VALIDATION,
            Level::HostFile => sections::HOST_FILE,
            Level::Upload => sections::UPLOAD,
            Level::Deadlines => sections::DEADLINES,
            Level::Plugin => sections::PLUGIN,
            Level::PluginPi => sections::PLUGIN_PI,
            Level::ApiServer => sections::API_SERVER,
            Level::Resources => limits::RESOURCES,
            Level::Limits => limits::LIMITS,
            Level::Workflow => sections::WORKFLOW,
            Level::Forges => sections::FORGES,
            Level::Security => security::SECURITY,
            Level::HostScanners => security::HOST_SCANNERS,
            Level::LlmGuard => security::LLM_GUARD,
            Level::SandboxHooks => security::SANDBOX_HOOKS,
            Level::Tirith => security::TIRITH,
            Level::ToolAllowlist => security::TOOL_ALLOWLIST,
            Level::Escalation => security::ESCALATION,
            Level::Trace => security::TRACE,
            Level::Provider => files::PROVIDER,
            Level::Profile => policy::PROFILE,
            Level::ProfileCredential => policy::PROFILE_CREDENTIAL,
            Level::Policy => policy::POLICY,
            Level::Filesystem => policy::FILESYSTEM,
            Level::Landlock => policy::LANDLOCK,
            Level::Identity => policy::IDENTITY_FIELDS,
            Level::NetworkRule => policy::NETWORK_RULE,
            Level::Endpoint => policy::ENDPOINT,
            Level::Binary => policy::BINARY,
            Level::Config => files::CONFIG,
            Level::ConfigAgent => files::CONFIG_AGENT,
            Level::ConfigDefaults => files::CONFIG_DEFAULTS,
            Level::ImagePolicy => files::IMAGE_POLICY,
            Level::ImageSigner => files::IMAGE_SIGNER,
            Level::StatusNotifications => files::STATUS_NOTIFICATIONS,
            Level::StatusComment => files::STATUS_COMMENT,
        }
    }

    /// The fields of the level, in the order of the reference.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'static Field> {
        self.table().iter().filter(move |field| match self {
            Level::Harness => field.home != Home::Overlay,
            Level::Forge => field.home == Home::Block,
            Level::Overlay => field.home != Home::File,
            _ => true,
        })
    }

    /// The field of that name.
    pub(crate) fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.name == name)
    }

    /// Whether the level knows the key.
    pub(crate) fn has(self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// The names of the fields.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static str> {
        self.fields().map(|field| field.name)
    }

    /// The fields that are checked and not carried out.
    pub(crate) fn unapplied(self) -> impl Iterator<Item = &'static Field> {
        self.fields().filter(|field| matches!(field.effect, Effect::NotApplied | Effect::Elsewhere))
    }

    /// Whether a reader of the level may ask for the key: one reader serves a harness and its blocks.
    pub(crate) fn may_ask(self, name: &str) -> bool {
        self.table().iter().any(|field| field.name == name)
    }
}
