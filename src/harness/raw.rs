//! A harness file as it is written: types checked, nothing resolved or expanded.

use super::compose::{forge, guard};
use super::fields::conform;
use super::keys::{Level, nearest};
use super::model::Forge;
use super::problem::{Problem, Problems};
use super::reader::{At, Fields, Reader, Text};
use super::security::{self, RawSecurity};
use super::services::RawServices;
use super::source::Source;
use super::yaml::{self, Key, Node, Scalar, ScalarKind, Value};
use crate::error::Code;

/// The keys of a harness file.
#[derive(Debug, Default)]
pub(crate) struct RawHarness {
    pub(crate) description: Option<Text>,
    pub(crate) agent: Option<Text>,
    pub(crate) role: Option<Text>,
    pub(crate) slug: Option<Text>,
    pub(crate) runtime: Option<Text>,
    pub(crate) model: Option<Text>,
    pub(crate) effort: Option<Text>,
    pub(crate) image: Option<Text>,
    pub(crate) policy: Option<Text>,
    pub(crate) skills: Vec<RawSkill>,
    pub(crate) plugins: Vec<RawPlugin>,
    pub(crate) host_files: Vec<RawHostFile>,
    pub(crate) providers: Vec<Text>,
    pub(crate) required_env: Vec<Text>,
    pub(crate) allowed_remote_resources: Vec<Text>,
    pub(crate) profiles: Vec<Text>,
    pub(crate) agent_input: Option<Text>,
    pub(crate) pre_script: Option<Text>,
    pub(crate) post_script: Option<Text>,
    pub(crate) validation: Option<RawValidation>,
    pub(crate) runner_env: Vec<(Text, Text)>,
    pub(crate) env_runner: Vec<(Text, Text)>,
    pub(crate) env_sandbox: Vec<(Text, Text)>,
    pub(crate) timeout_minutes: Option<At<i64>>,
    pub(crate) sandbox_timeout_seconds: Option<At<i64>>,
    pub(crate) deadlines: Vec<(&'static str, Text)>,
    pub(crate) idle_timeout: Option<Text>,
    pub(crate) prompt: Option<Text>,
    pub(crate) debug: Option<Text>,
    pub(crate) max_turns: Option<At<i64>>,
    pub(crate) max_cost_usd: Option<Text>,
    pub(crate) max_tokens: Option<At<i64>>,
    pub(crate) api_retries: Option<At<i64>>,
    pub(crate) readonly_repo: Option<bool>,
    pub(crate) trust_repo_config: Option<bool>,
    pub(crate) upload_ignored: Option<bool>,
    pub(crate) upload_exclude: Vec<Text>,
    pub(crate) services: RawServices,
    pub(crate) security: Option<RawSecurity>,
    pub(crate) limits: RawLimits,
}

/// `limits`.
#[derive(Debug, Default)]
pub(crate) struct RawLimits {
    pub(crate) max_changed_files: Option<At<i64>>,
    pub(crate) max_patch_bytes: Option<At<i64>>,
    pub(crate) max_file_bytes: Option<At<i64>>,
    pub(crate) protected_paths: Vec<Text>,
}

/// An entry of `skills`.
#[derive(Debug)]
pub(crate) struct RawSkill {
    pub(crate) path: Text,
    /// Files of the skill and what takes their place.
    pub(crate) overrides: Vec<(Text, Option<Text>)>,
}

/// An entry of `plugins`.
#[derive(Debug)]
pub(crate) struct RawPlugin {
    pub(crate) path: Text,
    pub(crate) env: Vec<(Text, Text)>,
}

/// An entry of `host_files`.
#[derive(Debug)]
pub(crate) struct RawHostFile {
    pub(crate) src: Text,
    pub(crate) dest: Text,
    pub(crate) expand: bool,
    pub(crate) optional: bool,
}

/// `validation_loop`.
#[derive(Debug)]
pub(crate) struct RawValidation {
    pub(crate) script: Option<Text>,
    pub(crate) schema: Option<Text>,
    /// Schemas by the output file that each is for.
    pub(crate) schemas: Vec<(Text, Text)>,
    pub(crate) max_iterations: Option<At<i64>>,
    pub(crate) preflight_check: Option<Text>,
    pub(crate) feedback_mode: Option<Text>,
    pub(crate) on_retry: Option<Text>,
    pub(crate) escalate: Option<Text>,
}

/// How much of a harness a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it: what is required must be there.
    Whole,
    /// One of several files or blocks that are merged later: only its own mistakes are reported.
    Layer(Level),
}

/// Reads a merged harness.
pub(crate) fn read(node: Node, source: &Source, problems: &mut Problems) -> Option<RawHarness> {
    let mut reader = Reader::new(source, problems);
    let top = reader.document(node, "the harness file")?;
    Some(fields(&mut reader, top, Part::Whole))
}

/// Reports the mistakes of one file, or of one block, before it is merged with others.
pub(crate) fn check_layer(node: &Node, source: &Source, problems: &mut Problems) {
    let mut reader = Reader::new(source, problems);
    let Some(mut top) = reader.document(node.clone(), "the harness file") else { return };
    removals(&mut reader, &mut top);
    for (key, block) in blocks(&mut reader, &mut top) {
        if Forge::from_name(&key.text).is_none() {
            let message = format!("`{}` is not a forge", key.text);
            reader.error(Code::YamlKey, &key.span, message, forge::unknown(&key.text));
        }
        layer(&mut reader, block, &format!("forge.{}", key.text), Level::Forge);
    }
    for entry in reader.list(&mut top, "overlays") {
        overlay(&mut reader, entry);
    }
    reader.text(&mut top, "base");
    fields(&mut reader, top, Part::Layer(Level::Harness));
}

fn blocks(reader: &mut Reader<'_>, top: &mut Fields) -> Vec<(Key, Node)> {
    match top.take("forge") {
        None => Vec::new(),
        Some((_, Node { value: Value::Map(entries), .. })) => entries,
        Some((_, node)) => {
            reader.wrong_type("forge", "a mapping", &node);
            Vec::new()
        }
    }
}

fn overlay(reader: &mut Reader<'_>, entry: Node) {
    let span = match &entry.value {
        Value::Map(entries) => entries.first().map_or(entry.span.clone(), |(key, _)| key.span.clone()),
        _ => return reader.wrong_type("an entry of `overlays`", "a mapping", &entry),
    };
    match entry.get("when").map(|when| (when, &when.value)) {
        Some((when, Value::Scalar(scalar))) if !scalar.text.is_empty() => {
            if let Err(why) = guard::parse(&scalar.text) {
                let help = "write an expression such as `runtime.forge == \"github\"`";
                reader.error(
                    Code::Value,
                    &when.span,
                    format!("`when` cannot be read as a condition: {why}"),
                    help,
                );
            }
        }
        Some((when, Value::List(_) | Value::Map(_))) => reader.wrong_type("when", "text", when),
        _ => reader.required(&span, "when", "an entry of `overlays`"),
    }
    layer(reader, entry, "an entry of `overlays`", Level::Overlay);
}

fn layer(reader: &mut Reader<'_>, node: Node, name: &str, level: Level) {
    match node.value {
        Value::Null => {}
        Value::Map(_) => {
            if let Some(mut block) = reader.document(node, name) {
                removals(reader, &mut block);
                fields(reader, block, Part::Layer(level));
            }
        }
        _ => reader.wrong_type(name, "a mapping", &node),
    }
}

/// The form of `remove`; what it means is the merge's business.
fn removals(reader: &mut Reader<'_>, top: &mut Fields) {
    let Some((_, node)) = top.take("remove") else { return };
    let Value::Map(entries) = node.value else {
        return reader.wrong_type("remove", "a mapping", &node);
    };
    for (key, node) in entries {
        let first = key.text.split('.').next().unwrap_or_default();
        if !Level::Harness.has(first) {
            let help = match nearest(first, Level::Harness.keys()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a key of the harness, such as `skills` or `env.sandbox`".to_owned(),
            };
            let message = format!("`remove` names `{}`, which is not a key of a harness", key.text);
            reader.error(Code::YamlKey, &key.span, message, help);
        }
        let whole = matches!(&node.value, Value::Scalar(Scalar { kind: ScalarKind::Bool(true), .. }));
        match node.value {
            Value::List(items) => {
                for item in items {
                    reader.item_text("remove", item);
                }
            }
            _ if whole => {}
            _ => reader.wrong_type(&key.text, "a list of names, or `true` for the whole key", &node),
        }
    }
}

fn fields(reader: &mut Reader<'_>, mut top: Fields, part: Part) -> RawHarness {
    if let Part::Layer(level) = part
        && level != Level::Harness
    {
        // A key that only the top level has must not be read here.
        let others = top.without(level);
        reader.finish(others, level);
    }
    let mut not_applied = Vec::new();
    let level = match part {
        Part::Whole => Level::Harness,
        Part::Layer(level) => level,
    };
    take_not_applied(reader, &mut top, level, &mut not_applied);
    // Where people read more about the agent; nothing else is done with it.
    reader.text(&mut top, "doc");
    let agent = reader.text_not_empty(&mut top, "agent");
    if agent.is_none() && part == Part::Whole && !reader.problems.has_errors() {
        let place = Some(reader.source.whole());
        reader.problems.push(
            Problem::error(Code::Required, "`agent` is missing in the harness file")
                .help("add `agent: agents/NAME.md`, or the path of a script")
                .at(place),
        );
    }
    let mut raw = RawHarness {
        agent,
        description: reader.text_not_empty(&mut top, "description"),
        role: reader.text_not_empty(&mut top, "role"),
        slug: reader.text_not_empty(&mut top, "slug"),
        runtime: reader.text_not_empty(&mut top, "runtime"),
        model: reader.text_not_empty(&mut top, "model"),
        effort: reader.text_not_empty(&mut top, "effort"),
        image: reader.text_not_empty(&mut top, "image"),
        policy: reader.text_not_empty(&mut top, "policy"),
        skills: skills(reader, &mut top),
        plugins: plugins(reader, &mut top, &mut not_applied),
        host_files: host_files(reader, &mut top),
        providers: reader.texts(&mut top, "providers"),
        required_env: reader.texts(&mut top, "required_env"),
        allowed_remote_resources: reader.texts(&mut top, "allowed_remote_resources"),
        agent_input: reader.text_not_empty(&mut top, "agent_input"),
        pre_script: reader.text_not_empty(&mut top, "pre_script"),
        post_script: reader.text_not_empty(&mut top, "post_script"),
        validation: validation(reader, &mut top, part),
        runner_env: reader.text_map(&mut top, "runner_env"),
        timeout_minutes: reader.integer(&mut top, "timeout_minutes"),
        sandbox_timeout_seconds: reader.integer(&mut top, "sandbox_timeout_seconds"),
        idle_timeout: reader.text_not_empty(&mut top, "idle_timeout"),
        prompt: reader.text_not_empty(&mut top, "prompt"),
        debug: reader.text_not_empty(&mut top, "debug"),
        max_turns: reader.integer(&mut top, "max_turns"),
        max_cost_usd: reader.text_not_empty(&mut top, "max_cost_usd"),
        max_tokens: reader.integer(&mut top, "max_tokens"),
        api_retries: reader.integer(&mut top, "api_retries"),
        readonly_repo: reader.boolean(&mut top, "readonly_repo"),
        services: RawServices::read(reader, &mut top),
        trust_repo_config: reader.boolean(&mut top, "trust_repo_config"),
        security: security::read(reader, &mut top, &mut not_applied),
        ..RawHarness::default()
    };
    if let Some(mut env) = reader.section(&mut top, "env") {
        raw.env_runner = reader.text_map(&mut env, "runner");
        raw.env_sandbox = reader.text_map(&mut env, "sandbox");
        reader.finish(env, Level::Env);
    }
    if let Some(mut openshell) = reader.section(&mut top, "openshell") {
        raw.profiles = reader.texts(&mut openshell, "profiles");
        reader.finish(openshell, Level::Openshell);
    }
    if let Some(mut upload) = reader.section(&mut top, "upload") {
        raw.upload_ignored = reader.boolean(&mut upload, "ignored");
        raw.upload_exclude = reader.texts(&mut upload, "exclude");
        reader.finish(upload, Level::Upload);
    }
    if let Some(mut limits) = reader.section(&mut top, "limits") {
        raw.limits.max_changed_files = reader.integer(&mut limits, "max_changed_files");
        raw.limits.max_patch_bytes = reader.integer(&mut limits, "max_patch_bytes");
        raw.limits.max_file_bytes = reader.integer(&mut limits, "max_file_bytes");
        raw.limits.protected_paths = reader.texts(&mut limits, "protected_paths");
        reader.finish(limits, Level::Limits);
    }
    if let Some(mut deadlines) = reader.section(&mut top, "deadlines") {
        for name in Level::Deadlines.keys() {
            raw.deadlines.extend(reader.text_not_empty(&mut deadlines, name).map(|text| (name, text)));
        }
        reader.finish(deadlines, Level::Deadlines);
    }
    match part {
        Part::Whole => {
            reader.finish(top, Level::Harness);
            warn_not_applied(reader, &not_applied);
        }
        Part::Layer(level) => reader.finish(top, level),
    }
    raw
}

/// Only the description, for listing agents; every other problem is left to a run.
pub(crate) fn description(source: &Source) -> Result<Option<String>, Problem> {
    let mut ignored = Problems::default();
    let node = yaml::parse(source, &mut ignored)?;
    let mut problems = Problems::default();
    let mut reader = Reader::new(source, &mut problems);
    let description =
        reader.document(node, "the harness file").and_then(|mut top| reader.text(&mut top, "description"));
    match problems.0.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(description.map(|text| text.text.trim().to_owned()).filter(|text| !text.is_empty())),
    }
}

fn take_not_applied(reader: &mut Reader<'_>, fields: &mut Fields, level: Level, found: &mut Vec<Text>) {
    for field in level.unapplied() {
        if let Some((key, node)) = fields.take(field.name)
            && !node.is_empty()
        {
            conform(reader, field.name, &node, &field.ty);
            found.push(Text { text: key.text, span: key.span });
        }
    }
}

/// One warning for all keys that are accepted without an effect.
fn warn_not_applied(reader: &mut Reader<'_>, found: &[Text]) {
    let Some(first) = found.iter().min_by_key(|t| t.span.start) else { return };
    let names = found.iter().map(|t| format!("`{}`", t.text)).collect::<Vec<_>>().join(", ");
    let message = match found.len() {
        1 => format!("{names} is accepted but not applied by this version"),
        _ => format!("{names} are accepted but not applied by this version"),
    };
    let help = "the run goes on without them; remove them to silence this";
    reader.warn(Code::Unsupported, &first.span, message, help);
}

/// A skill is a path, or `path: {file: replacement}`.
fn skills(reader: &mut Reader<'_>, top: &mut Fields) -> Vec<RawSkill> {
    let mut out = Vec::new();
    for item in reader.list(top, "skills") {
        let Value::Map(mut entries) = item.value else {
            let path = reader.item_text("skills", item);
            out.extend(path.map(|path| RawSkill { path, overrides: Vec::new() }));
            continue;
        };
        match entries.pop() {
            Some((key, overrides)) if entries.is_empty() => {
                let path = Text { text: key.text, span: key.span };
                out.push(RawSkill { path, overrides: self::overrides(reader, overrides) });
            }
            _ => reader.error(
                Code::YamlType,
                &item.span,
                "an entry of `skills` is not a path",
                "write one path per line: `- skills/NAME`",
            ),
        }
    }
    out
}

/// `null` leaves the file out.
fn overrides(reader: &mut Reader<'_>, node: Node) -> Vec<(Text, Option<Text>)> {
    let entries = match node.value {
        Value::Map(entries) => entries,
        Value::Null => return Vec::new(),
        _ => {
            reader.wrong_type("overrides of a skill", "a mapping", &node);
            return Vec::new();
        }
    };
    let mut out = Vec::new();
    for (key, node) in entries {
        let replacement = match node.value {
            Value::Null => None,
            Value::Scalar(scalar) if !scalar.text.is_empty() => {
                Some(Text { text: scalar.text, span: node.span })
            }
            _ => {
                reader.wrong_type(&key.text, "the path of a file, or null to leave the file out", &node);
                continue;
            }
        };
        out.push((Text { text: key.text, span: key.span }, replacement));
    }
    out
}

/// A plugin is a path, or `{path, env}`.
fn plugins(reader: &mut Reader<'_>, top: &mut Fields, not_applied: &mut Vec<Text>) -> Vec<RawPlugin> {
    let mut out = Vec::new();
    for item in reader.list(top, "plugins") {
        if !matches!(item.value, Value::Map(_)) {
            let path = reader.item_text("plugins", item);
            out.extend(path.map(|path| RawPlugin { path, env: Vec::new() }));
            continue;
        }
        let Some(mut fields) = reader.item_fields("plugins", item) else { continue };
        let before = reader.problems.0.len();
        let path = reader.text_not_empty(&mut fields, "path");
        let env = reader.text_map(&mut fields, "env");
        take_not_applied(reader, &mut fields, Level::Plugin, not_applied);
        let typed = reader.problems.0.len() == before;
        if path.is_none() && typed {
            reader.required(&fields.span.clone(), "path", "an entry of `plugins`");
        }
        reader.finish(fields, Level::Plugin);
        out.extend(path.map(|path| RawPlugin { path, env }));
    }
    out
}

fn host_files(reader: &mut Reader<'_>, top: &mut Fields) -> Vec<RawHostFile> {
    let mut out = Vec::new();
    for item in reader.list(top, "host_files") {
        let Some(mut fields) = reader.item_fields("host_files", item) else { continue };
        let before = reader.problems.0.len();
        let src = reader.text_not_empty(&mut fields, "src");
        let dest = reader.text_not_empty(&mut fields, "dest");
        let expand = reader.boolean(&mut fields, "expand").unwrap_or(false);
        let optional = reader.boolean(&mut fields, "optional").unwrap_or(false);
        let typed = reader.problems.0.len() == before;
        let span = fields.span.clone();
        for (name, value) in [("src", &src), ("dest", &dest)] {
            if value.is_none() && typed {
                reader.required(&span, name, "an entry of `host_files`");
            }
        }
        reader.finish(fields, Level::HostFile);
        if let (Some(src), Some(dest)) = (src, dest) {
            out.push(RawHostFile { src, dest, expand, optional });
        }
    }
    out
}

fn validation(reader: &mut Reader<'_>, top: &mut Fields, part: Part) -> Option<RawValidation> {
    let mut fields = reader.section(top, "validation_loop")?;
    let before = reader.problems.0.len();
    let raw = RawValidation {
        script: reader.text_not_empty(&mut fields, "script"),
        schema: reader.text_not_empty(&mut fields, "schema"),
        schemas: reader.text_map(&mut fields, "schemas"),
        max_iterations: reader.integer(&mut fields, "max_iterations"),
        preflight_check: reader.text_not_empty(&mut fields, "preflight_check"),
        feedback_mode: reader.text_not_empty(&mut fields, "feedback_mode"),
        on_retry: reader.text_not_empty(&mut fields, "on_retry"),
        escalate: reader.text_not_empty(&mut fields, "escalate"),
    };
    let typed = reader.problems.0.len() == before;
    let span = fields.span.clone();
    reader.finish(fields, Level::Validation);
    if raw.script.is_none() && raw.schema.is_none() && raw.schemas.is_empty() && raw.escalate.is_none() {
        if typed && part == Part::Whole {
            let message = "`validation_loop` has nothing that checks";
            let help = "add `script:`, `schema:`, `schemas:` or `escalate:`";
            reader.error(Code::Required, &span, message, help);
        }
        return None;
    }
    Some(raw)
}
