//! `validation_loop`: the script, the schema, the iterations, the check before everything.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::super::check::{Kind, Named};
use super::super::directory::harness_file;
use super::super::expand::expand_shell;
use super::super::host_files;
use super::super::keys::nearest;
use super::super::model::{FeedbackMode, OnRetry, Validation};
use super::super::problem::{Problem, Problems};
use super::super::raw::RawValidation;
use super::super::reader::{At, Text};
use super::super::source::Source;
use super::Loader;
use crate::error::Code;
use crate::secrets::Secret;

/// What may become of the repository.
const ON_RETRY: [(&str, OnRetry); 2] = [("keep", OnRetry::Keep), ("reset", OnRetry::Reset)];
/// The most iterations of a validation loop.
const MAX_ITERATIONS: i64 = 100;

impl Loader<'_> {
    pub(super) fn validation(&mut self, raw: &RawValidation) -> Validation {
        let script = self.path("validation_loop.script", raw.script.as_ref(), Kind::File);
        let schema = raw.schema.as_ref().and_then(|text| self.schema(text));
        let max_iterations = match &raw.max_iterations {
            Some(At { value, span }) if *value > MAX_ITERATIONS => {
                self.error(
                    span,
                    format!("`max_iterations` is above {MAX_ITERATIONS}"),
                    format!("use 1 to {MAX_ITERATIONS}"),
                );
                1
            }
            Some(At { value, span }) if *value < 1 => {
                let help = "write 1, or leave the key out";
                self.reader().warn(Code::Value, span, "`max_iterations` below 1 counts as 1", help);
                1
            }
            Some(At { value, .. }) => u32::try_from(*value).unwrap_or(1),
            None => 1,
        };
        let preflight_check = raw.preflight_check.as_ref().and_then(|text| self.preflight(text));
        Validation {
            script,
            schema,
            schemas: self.schemas(&raw.schemas),
            max_iterations,
            feedback_mode: self.word("feedback_mode", raw.feedback_mode.as_ref(), &FeedbackMode::NAMES),
            on_retry: self.word("on_retry", raw.on_retry.as_ref(), &ON_RETRY),
            preflight_check,
            escalate: raw.escalate.as_ref().and_then(|text| self.escalate(text)),
        }
    }

    /// One of several words.
    fn word<T: Copy + Default>(&mut self, key: &str, text: Option<&Text>, words: &[(&str, T)]) -> T {
        let Some(text) = text else { return T::default() };
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == text.text) {
            return *value;
        }
        let help = match nearest(&text.text, words.iter().map(|(name, _)| *name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write {}", words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")),
        };
        self.error(&text.span, format!("`{key}` cannot be `{}`", text.text.escape_debug()), help);
        T::default()
    }

    fn schemas(&mut self, raw: &[(Text, Text)]) -> BTreeMap<String, Utf8PathBuf> {
        let mut all = BTreeMap::new();
        for (file, schema) in raw {
            if !is_output_name(&file.text) {
                let help = "name a file by its path in the output directory, such as `report.json`";
                self.error(&file.span, format!("`{}` is not an output file", file.text.escape_debug()), help);
            }
            all.extend(
                self.schema_at("validation_loop.schemas", schema).map(|path| (file.text.clone(), path)),
            );
        }
        all
    }

    /// The reviewer has to be an agent of the directory, and another one. A reviewer has none itself.
    fn escalate(&mut self, text: &Text) -> Option<String> {
        if self.request.overrides.reviewer {
            return None;
        }
        if text.text == self.request.agent {
            self.error(
                &text.span,
                "`escalate` names this agent itself",
                "name another agent, which reviews the work",
            );
            return None;
        }
        match harness_file(self.files, &text.text, self.config, self.problems) {
            Ok(_) => Some(text.text.clone()),
            Err(error) => {
                let help = error.help_text();
                self.error(&text.span, format!("`escalate`: {}", error.message()), help);
                None
            }
        }
    }

    /// A shell snippet is expanded only when it holds `${`, so that `$?` and `$1` are the shell's; values are quoted.
    fn preflight(&mut self, text: &Text) -> Option<Secret> {
        if !text.text.contains("${") {
            return Some(Secret::new(text.text.clone()));
        }
        let values = self.values;
        let expanded = expand_shell(&text.text, &|name| values.lookup(name));
        values.place(expanded, text, self.source).accept(self.problems).map(Secret::new)
    }

    fn schema(&mut self, text: &Text) -> Option<Utf8PathBuf> {
        self.schema_at("validation_loop.schema", text)
    }

    fn schema_at(&mut self, key: &str, text: &Text) -> Option<Utf8PathBuf> {
        let path = if text.text.contains("${") {
            let expanded = self.values.expand(text, self.source).accept(self.problems)?;
            let named = Named {
                key,
                path: &expanded,
                shown: &host_files::show(&text.text, &expanded),
                span: text.span.clone(),
                free: text.text.starts_with("${"),
            };
            self.files.check(&named, Kind::File, self.source, self.problems)?
        } else {
            self.path(key, Some(text), Kind::File)?
        };
        self.files.read.judged(&path, self.problems, check_schema);
        Some(path)
    }
}

/// Whether a text is the path of a file below the output directory.
fn is_output_name(text: &str) -> bool {
    !text.is_empty()
        && !text.chars().any(char::is_control)
        && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether a file is a JSON schema that can be used.
pub(crate) fn check_schema(path: &Utf8Path, problems: &mut Problems) {
    let source = match Source::read(path, Code::FileMissing) {
        Ok(source) => source,
        Err(problem) => return problems.push(problem),
    };
    match serde_json::from_str::<serde_json::Value>(&source.text) {
        Err(error) => {
            let line_start: usize =
                source.text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            let at = line_start + error.column().saturating_sub(1);
            let text = error.to_string();
            let why = text.split(" at line ").next().unwrap_or(&text);
            let problem = Problem::error(Code::Value, format!("the schema is not JSON: {why}"))
                .help("correct the JSON text")
                .at(Some(source.place(at..at)));
            problems.push(problem);
        }
        Ok(value) => {
            if let Err(error) = jsonschema::validator_for(&value) {
                let problem = Problem::error(Code::Value, format!("the schema cannot be used: {error}"))
                    .help("correct it; references to other files or URLs are not followed")
                    .at(Some(source.whole()));
                problems.push(problem);
            }
        }
    }
}
