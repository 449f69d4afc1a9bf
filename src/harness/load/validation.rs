//! `validation_loop`: the script, the schema, the iterations, the check before everything.

use camino::{Utf8Path, Utf8PathBuf};

use super::super::check::{Kind, Named};
use super::super::expand::expand_shell;
use super::super::host_files;
use super::super::model::Validation;
use super::super::problem::{Problem, Problems};
use super::super::raw::RawValidation;
use super::super::reader::{At, Text};
use super::super::source::Source;
use super::Loader;
use crate::error::Code;
use crate::secrets::Secret;

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
        Validation { script, schema, max_iterations, preflight_check }
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
        let key = "validation_loop.schema";
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
        check_schema(&path, self.problems);
        Some(path)
    }
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
