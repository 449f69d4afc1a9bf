//! `config.yaml` of a harness directory: which agents there are, defaults, names of images.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::check::is_plain_name;
use super::compose::guard;
use super::image_policy::{self, ImagePolicy};
use super::keys::{Level, nearest};
use super::model::{Forge, Resources};
use super::notifications::{self, Notifications};
use super::problem::{Problem, Problems};
use super::reader::{Fields, Reader, Text};
use super::remote::{Allowed, prefix};
use super::services::{label_problem, resources};
use super::source::Source;
use super::yaml::{self, Node, Value};
use crate::error::Code;
use crate::openshell::names::label_value;
use crate::plan::deadlines;

/// The file, read. A directory without one has the default.
#[derive(Debug)]
pub(crate) struct Config {
    /// The registered agents in the order of the file: of two with one name the last counts.
    pub(crate) agents: Vec<Agent>,
    /// The forge when neither the command line nor the CI environment says one.
    pub(crate) forge: Option<Forge>,
    /// The runtime when the harness says none.
    pub(crate) runtime: Option<Text>,
    /// The prefixes of URLs that may be read.
    pub(crate) allowed: Allowed,
    /// Hosts that may have private addresses.
    pub(crate) private_hosts: Vec<String>,
    /// Images by the short names that harnesses use.
    pub(crate) images: BTreeMap<String, String>,
    /// Where the images that come with this program are.
    pub(crate) image_registry: Option<String>,
    /// Their tag, when it is not this program's version.
    pub(crate) image_tag: Option<String>,
    /// What every sandbox gets of the machine, when its harness says nothing else.
    pub(crate) resources: Resources,
    /// Labels of every sandbox.
    pub(crate) labels: BTreeMap<String, String>,
    /// After how long a run ends, when its harness says nothing else.
    pub(crate) ttl: Option<Duration>,
    /// What an image has to show.
    pub(crate) image_policy: ImagePolicy,
    /// When there are status comments.
    pub(crate) notifications: Notifications,
    /// The whole file as a tree.
    tree: Option<Node>,
    /// The text; `None` without a file.
    pub(crate) source: Option<Source>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            forge: None,
            runtime: None,
            allowed: Allowed::of_config(None),
            private_hosts: Vec::new(),
            images: BTreeMap::new(),
            image_registry: None,
            image_tag: None,
            resources: Resources::default(),
            labels: BTreeMap::new(),
            ttl: None,
            image_policy: ImagePolicy::default(),
            notifications: Notifications::default(),
            tree: None,
            source: None,
        }
    }
}

/// A registered agent.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    /// Its name.
    pub(crate) name: Text,
    /// Its harness file, relative to the directory, or a URL.
    pub(crate) source: Text,
    /// Whether it may be run.
    pub(crate) enabled: bool,
}

impl Config {
    /// Reads `config.yaml` of `dir`.
    pub(crate) fn read(dir: &Utf8Path, problems: &mut Problems) -> Self {
        let path = file(dir);
        if std::fs::symlink_metadata(&path).is_err() {
            return Self::default();
        }
        let parsed = Source::read(&path, Code::FileMissing)
            .and_then(|source| Ok((yaml::parse(&source, problems)?, source)));
        let (node, source) = match parsed {
            Ok(parsed) => parsed,
            Err(problem) => {
                problems.push(problem);
                return Self::default();
            }
        };
        let mut config = Self { tree: Some(node.clone()), ..Self::default() };
        if !matches!(node.value, Value::Null) {
            let mut reader = Reader::new(&source, problems);
            if let Some(top) = reader.document(node, "config.yaml") {
                config.fields(&mut reader, top, dir);
            }
        }
        config.source = Some(source);
        config
    }

    fn fields(&mut self, reader: &mut Reader<'_>, mut top: Fields, dir: &Utf8Path) {
        self.notifications = notifications::read(reader, &mut top);
        self.remote(reader, &mut top);
        self.image_policy = image_policy::read(reader, &mut top, dir);
        reader.text(&mut top, "version");
        self.agents = agents(reader, &mut top);
        let mut forge = reader.text_not_empty(&mut top, "forge");
        self.runtime = reader.text_not_empty(&mut top, "runtime");
        if let Some(mut defaults) = reader.section(&mut top, "defaults") {
            forge = forge.or_else(|| reader.text_not_empty(&mut defaults, "forge"));
            let runtime = reader.text_not_empty(&mut defaults, "runtime");
            self.runtime = self.runtime.take().or(runtime);
            self.limits(reader, &mut defaults);
            reader.finish(defaults, Level::ConfigDefaults);
        }
        if let Some(text) = forge {
            self.forge = Forge::from_name(&text.text);
            if self.forge.is_none() {
                let message = format!("`{}` is not a forge", text.text);
                reader.error(Code::Value, &text.span, message, super::compose::forge::unknown(&text.text));
            }
        }
        self.built_in(reader, &mut top);
        for (name, image) in reader.text_map(&mut top, "images") {
            if !is_plain_name(&name.text) {
                let message = format!("`{}` is not a short name for an image", name.text.escape_debug());
                reader.error(Code::Value, &name.span, message, "use letters, digits, `_` and `-`");
            } else if !super::check::is_image(&image.text) || !image.text.contains(['/', ':']) {
                let message = format!("`images.{}` is not a full image reference", name.text);
                reader.error(Code::Value, &image.span, message, "write it with its registry or tag");
            }
            self.images.insert(name.text, image.text);
        }
        reader.finish(top, Level::Config);
    }

    fn remote(&mut self, reader: &mut Reader<'_>, top: &mut Fields) {
        let said = top.has("allowed_remote_resources");
        let mut prefixes = Vec::new();
        for entry in reader.texts(top, "allowed_remote_resources") {
            match prefix(&entry.text) {
                Ok(prefix) => prefixes.push(prefix),
                Err((message, help)) => reader.error(Code::RemoteUrl, &entry.span, message, help),
            }
        }
        self.allowed = Allowed::of_config(said.then_some(prefixes));
        for host in reader.texts(top, "private_hosts") {
            let plain = host.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b));
            if !plain {
                let message = format!("`{}` is not a host", host.text.escape_debug());
                reader.error(Code::Value, &host.span, message, "write its name or address, without port");
            }
            self.private_hosts.push(host.text);
        }
    }

    /// Defaults of what a sandbox may use.
    fn limits(&mut self, reader: &mut Reader<'_>, defaults: &mut Fields) {
        for (key, value) in resources(reader, defaults) {
            if let Err(wanted) = self.resources.set(key, &value.text) {
                let message = format!("`resources.{key}` is {:?}", value.text);
                reader.error(Code::Value, &value.span, message, format!("write {wanted}"));
            }
        }
        for (key, value) in reader.text_map(defaults, "labels") {
            match label_problem(&key.text) {
                Some(why) => {
                    let message = format!("the label `{}` cannot be set", key.text.escape_debug());
                    reader.error(Code::Value, &key.span, message, why);
                }
                None => {
                    self.labels.insert(key.text, label_value(&value.text));
                }
            }
        }
        if let Some(text) = reader.text_not_empty(defaults, "ttl") {
            match deadlines::parse(&text.text) {
                Ok(ttl) => self.ttl = Some(ttl),
                Err(why) => {
                    let help = "write seconds, or a duration such as 90s, 15m or 1h30m";
                    reader.error(Code::Value, &text.span, format!("`ttl` is not usable: {why}"), help);
                }
            }
        }
    }

    /// Where the images that come with this program are.
    fn built_in(&mut self, reader: &mut Reader<'_>, top: &mut Fields) {
        if let Some(text) = reader.text_not_empty(top, "image_registry") {
            let registry = text.text.trim_end_matches('/').to_owned();
            if super::check::is_image(&registry) && !registry.contains('@') {
                self.image_registry = Some(registry);
            } else {
                let message = format!("`image_registry` is not a registry: {:?}", text.text);
                reader.error(Code::Value, &text.span, message, "write it as in `registry.example.com/team`");
            }
        }
        if let Some(text) = reader.text_not_empty(top, "image_tag") {
            let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if text.text.len() <= 128 && text.text.chars().all(fine) && !text.text.starts_with(['.', '-']) {
                self.image_tag = Some(text.text);
            } else {
                let message = format!("`image_tag` is not a tag: {:?}", text.text);
                reader.error(Code::Value, &text.span, message, "use letters, digits, `_`, `.` and `-`");
            }
        }
    }

    /// The whole file, for guards; empty without one.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self.tree.as_ref().map(guard::json_of) {
            Some(json @ serde_json::Value::Object(_)) => json,
            _ => serde_json::Value::Object(serde_json::Map::new()),
        }
    }

    /// The entry that counts for a name; upper and lower case are the same.
    pub(crate) fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().rev().find(|agent| agent.name.text.eq_ignore_ascii_case(name))
    }
}

/// The path of the file.
pub(crate) fn file(dir: &Utf8Path) -> Utf8PathBuf {
    dir.join("config.yaml")
}

fn agents(reader: &mut Reader<'_>, top: &mut Fields) -> Vec<Agent> {
    let mut out = Vec::new();
    for item in reader.list(top, "agents") {
        let found = if matches!(item.value, Value::Map(_)) {
            reader.item_fields("agents", item).and_then(|fields| agent(reader, fields))
        } else {
            reader.item_text("agents", item).map(|source| (None, source, true))
        };
        let Some((name, source, enabled)) = found else { continue };
        let name = name.unwrap_or_else(|| Text { text: stem(&source.text), span: source.span.clone() });
        if is_plain_name(&name.text) {
            out.push(Agent { name, source, enabled });
        } else {
            let message = format!("`{}` is not an agent name", name.text.escape_debug());
            let help = "give the entry a `name` of letters, digits, `_` and `-`";
            reader.error(Code::Value, &name.span, message, help);
        }
    }
    out
}

fn agent(reader: &mut Reader<'_>, mut fields: Fields) -> Option<(Option<Text>, Text, bool)> {
    let before = reader.problems.0.len();
    let name = reader.text_not_empty(&mut fields, "name");
    let source = reader.text_not_empty(&mut fields, "source");
    let enabled = reader.boolean(&mut fields, "enabled").unwrap_or(true);
    let typed = reader.problems.0.len() == before;
    let span = fields.span.clone();
    // The oldest form of the file told roles from one another here.
    let old = fields.drop("role") | fields.drop("slug");
    reader.finish(fields, Level::ConfigAgent);
    if source.is_none() && typed {
        let help = if old {
            "entries with `role` and `slug` are an older form; write `source: harness/NAME.yaml`"
        } else {
            "add `source: harness/NAME.yaml`"
        };
        reader.error(Code::Required, &span, "`source` is missing in an entry of `agents`", help);
    }
    Some((name, source?, enabled))
}

/// The file name of a source without its extension and fragment.
fn stem(source: &str) -> String {
    let path = source.split('#').next().unwrap_or_default();
    Utf8Path::new(path).file_stem().unwrap_or_default().to_owned()
}

/// Short names of the images that come with this program, each built as `fullsend-<name>`.
const BUILT_IN: [&str; 5] = ["golang", "java", "node", "python", "sandbox"];

/// The image that `name` stands for. What has a `/` or a `:` is a reference already.
pub(crate) fn image(name: &str, config: &Config) -> Result<String, Problem> {
    if name.contains(['/', ':']) {
        return Ok(name.to_owned());
    }
    if let Some(image) = config.images.get(name) {
        return Ok(image.clone());
    }
    if BUILT_IN.contains(&name) {
        let Some(registry) = &config.image_registry else {
            return Err(Problem::error(
                Code::Value,
                format!("nothing says in which registry the image `{name}` is"),
            )
            .help(format!(
                "set `image_registry: REGISTRY/OWNER` in config.yaml to use REGISTRY/OWNER/fullsend-{name}, or say what \
                 the name stands for: `images: {{{name}: REGISTRY/IMAGE}}`"
            )));
        };
        let tag = config.image_tag.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        return Ok(format!("{registry}/fullsend-{name}:{tag}"));
    }
    let known: Vec<_> = config.images.keys().map(String::as_str).chain(BUILT_IN).collect();
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "the short names are {}; write any other image with its registry or tag, or add it under `images` in config.yaml",
            known.join(", ")
        ),
    };
    Err(Problem::error(Code::Value, format!("`{name}` is not a known image")).help(help))
}
