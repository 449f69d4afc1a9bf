//! `config.yaml` of a harness directory: which agents there are, defaults, names of images.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::check::is_plain_name;
use super::compose::guard;
use super::keys::{Level, Shape, nearest};
use super::model::Forge;
use super::problem::{Problem, Problems};
use super::raw::check_shape;
use super::reader::{Fields, Reader, Text};
use super::source::Source;
use super::yaml::{self, Node, Value};
use crate::error::Code;

/// Keys of the wider format that steer other programs.
const ELSEWHERE: &[(&str, Shape)] =
    &[("allowed_remote_resources", Shape::Texts), ("status_notifications", Shape::Map)];

/// The file, read. A directory without one has the default.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The registered agents in the order of the file: of two with one name the last counts.
    pub(crate) agents: Vec<Agent>,
    /// The forge when neither the command line nor the CI environment says one.
    pub(crate) forge: Option<Forge>,
    /// The runtime when the harness says none.
    pub(crate) runtime: Option<Text>,
    /// Images by the short names that harnesses use.
    pub(crate) images: BTreeMap<String, String>,
    /// The whole file as a tree.
    tree: Option<Node>,
    /// The text; `None` without a file.
    pub(crate) source: Option<Source>,
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
                config.fields(&mut reader, top);
            }
        }
        config.source = Some(source);
        config
    }

    fn fields(&mut self, reader: &mut Reader<'_>, mut top: Fields) {
        for (name, shape) in ELSEWHERE {
            if let Some((_, node)) = top.take(name) {
                check_shape(reader, name, *shape, &node);
            }
        }
        reader.text(&mut top, "version");
        self.agents = agents(reader, &mut top);
        let mut forge = reader.text_not_empty(&mut top, "forge");
        self.runtime = reader.text_not_empty(&mut top, "runtime");
        if let Some(mut defaults) = reader.section(&mut top, "defaults") {
            forge = forge.or_else(|| reader.text_not_empty(&mut defaults, "forge"));
            let runtime = reader.text_not_empty(&mut defaults, "runtime");
            self.runtime = self.runtime.take().or(runtime);
            reader.finish(defaults, Level::ConfigDefaults);
        }
        if let Some(text) = forge {
            self.forge = Forge::from_name(&text.text);
            if self.forge.is_none() {
                let message = format!("`{}` is not a forge", text.text);
                reader.error(Code::Value, &text.span, message, super::compose::forge::unknown(&text.text));
            }
        }
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
    let old = fields.take("role").is_some() | fields.take("slug").is_some();
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

/// Short names of the images that come with this program.
const BUILT_IN: [&str; 4] = ["golang", "java", "node", "python"];

/// The image that `name` stands for. What has a `/` or a `:` is a reference already.
pub(crate) fn image(name: &str, config: &Config) -> Result<String, Problem> {
    if name.contains(['/', ':']) {
        return Ok(name.to_owned());
    }
    if let Some(image) = config.images.get(name) {
        return Ok(image.clone());
    }
    if BUILT_IN.contains(&name) {
        return Err(Problem::error(
            Code::Unsupported,
            format!("the image `{name}` is not published with this version"),
        )
        .help(format!("say what it stands for: `images: {{{name}: REGISTRY/IMAGE}}` in config.yaml")));
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
