//! The validation loop's judgement of one iteration: the JSON Schema, then the harness's script.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::context::Cx;
use super::prepare::Prepared;
use super::script::Script;
use crate::error::{Code, Error, Result};
use crate::harness::model::Validation;
use crate::report::last_lines;
use crate::secrets::Secret;

/// The file that is checked against the schema unless `FULLSEND_OUTPUT_FILE` names another.
const DEFAULT_OUTPUT: &str = "agent-result.json";
/// How many problems of one file are shown.
const SHOWN: usize = 20;

/// What one iteration left on the host.
#[derive(Debug)]
pub(super) struct Iteration<'a> {
    /// `iteration-N` in the run directory.
    pub dir: &'a Path,
    /// The staged repository, when there is one.
    pub repo: Option<&'a Path>,
}

/// Whether the iteration's output is valid; `Ok(Err(…))` says why not.
pub(super) async fn validate(
    cx: &Cx,
    prepared: &Prepared,
    validation: &Validation,
    iteration: &Iteration<'_>,
) -> Result<std::result::Result<(), Error>> {
    let mut verdict = Ok(());
    cx.phase("validate", async {
        verdict = check(cx, prepared, validation, iteration).await?;
        let note = verdict.as_ref().err().map_or_else(|| "valid".to_owned(), |e| e.message().to_owned());
        Ok(((), note))
    })
    .await?;
    Ok(verdict)
}

async fn check(
    cx: &Cx,
    prepared: &Prepared,
    validation: &Validation,
    iteration: &Iteration<'_>,
) -> Result<std::result::Result<(), Error>> {
    if let Some(schema) = &validation.schema {
        let name = prepared.plan.harness.runner_env.get("FULLSEND_OUTPUT_FILE");
        let name = name.map(Secret::expose).filter(|v| !v.is_empty()).unwrap_or(DEFAULT_OUTPUT);
        if let Err(error) = against_schema(schema.as_std_path(), &iteration.dir.join("output"), name) {
            return Ok(Err(error));
        }
    }
    let Some(path) = &validation.script else { return Ok(Ok(())) };
    let mut extra = vec![
        ("TARGET_REPO_DIR", iteration.repo.map(PathBuf::from).unwrap_or_default().into_os_string()),
        ("FULLSEND_RUN_DIR", OsString::from(&cx.id.dir)),
    ];
    extra.extend(validation.schema.iter().map(|s| ("FULLSEND_OUTPUT_SCHEMA", OsString::from(s.as_str()))));
    let script = Script {
        label: "validation script",
        path,
        cwd: iteration.dir,
        deadline: prepared.plan.deadlines.script,
        late: Code::ValidationFailed,
    };
    let output = script.run(&prepared.script_env(), &extra, &cx.ui).await?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let said = format!("{}{}", output.stdout_text(), output.stderr_text());
    Ok(Err(Error::new(Code::ValidationFailed, format!("the validation script ended with {}", output.status))
        .detail(last_lines(&said, SHOWN))
        .help("its output says what is wrong; the agent's output is in iteration-N/output")))
}

/// Checks one output file against a JSON Schema. Remote references are never fetched.
fn against_schema(schema: &Path, output: &Path, name: &str) -> std::result::Result<(), Error> {
    let invalid = |what: String| Error::new(Code::ValidationFailed, what);
    let schema_text = fs_err::read(schema).map_err(|e| invalid(format!("the schema cannot be read: {e}")))?;
    let schema = serde_json::from_slice(&schema_text)
        .map_err(|e| invalid(format!("the schema {} is not JSON: {e}", schema.display())))?;
    let validator = jsonschema::validator_for(&schema)
        .map_err(|e| invalid(format!("the schema is not a usable JSON Schema: {e}")))?;
    let text = fs_err::read(output.join(name)).map_err(|_| {
        invalid(format!("the agent did not write {name}"))
            .help(format!("the agent has to write $FULLSEND_OUTPUT_DIR/{name}{}", beside(output)))
    })?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|e| {
        invalid(format!("{name} is not JSON: {e}")).help(
            "the file must hold one JSON value and nothing else, without a code fence or a byte order mark",
        )
    })?;
    let problems: Vec<_> = validator
        .iter_errors(&value)
        .take(SHOWN)
        .map(|e| {
            let place = e.instance_path().to_string();
            format!("{}: {e}", if place.is_empty() { "/" } else { &place })
        })
        .collect();
    match problems.first() {
        None => Ok(()),
        Some(first) => Err(invalid(format!("{name} does not match the schema: {first}"))
            .detail(problems.join("\n"))
            .help(
                "each line names the place in the file; the schema is the harness's `validation_loop.schema`",
            )),
    }
}

/// What lies there instead, for the eye.
fn beside(output: &Path) -> String {
    let names: Vec<_> = std::fs::read_dir(output)
        .into_iter()
        .flatten()
        .flatten()
        .take(5)
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    if names.is_empty() { String::new() } else { format!("; it wrote {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: Option<&str>) -> std::result::Result<(), Error> {
        let dir = tempfile::tempdir().unwrap();
        let schema = dir.path().join("s.json");
        fs_err::write(
            &schema,
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"items":{"type":"string"}}}}"#,
        )
        .unwrap();
        let out = dir.path().join("output");
        fs_err::create_dir(&out).unwrap();
        fs_err::write(out.join("agent_result.json"), "{}").unwrap();
        if let Some(text) = text {
            fs_err::write(out.join(DEFAULT_OUTPUT), text).unwrap();
        }
        against_schema(&schema, &out, DEFAULT_OUTPUT)
    }

    #[test]
    fn valid_output_passes() {
        judge(Some(r#"{"a":1,"b":["x"]}"#)).unwrap();
    }

    #[test]
    fn every_problem_is_named_with_its_place() {
        let error = judge(Some(r#"{"a":"x","b":["y",7]}"#)).unwrap_err();
        let detail = error.detail_text().unwrap();
        assert!(detail.contains("/a: ") && detail.contains("/b/1: "), "{detail}");
    }

    #[test]
    fn a_missing_file_names_what_is_there() {
        let error = judge(None).unwrap_err();
        assert!(error.help_text().contains("agent_result.json"), "{}", error.help_text());
    }

    #[test]
    fn a_fence_is_not_json() {
        assert!(judge(Some("```json\n{}\n```")).unwrap_err().message().contains("not JSON"));
    }
}
