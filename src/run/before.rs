//! The pre-script: it may write inputs, and it may ask for a neutral end.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use camino::Utf8Path;

use super::context::Cx;
use super::inputs;
use super::prepare::Prepared;
use super::script::{self, Script, ScriptEnv};
use super::skip::{self, Answer};
use crate::error::{Code, Error, Result};
use crate::openshell::names::RunId;
use crate::report::Ci;

/// The validation loop's own check of the host, before anything costs time.
pub(super) async fn preflight_check(cx: &Cx, prepared: &Prepared) -> Result<()> {
    let Some(check) = prepared.plan.harness.validation.as_ref().and_then(|v| v.preflight_check.as_ref())
    else {
        return Ok(());
    };
    let limit = prepared.plan.deadlines.preflight_check;
    cx.phase("check", async {
        let output =
            script::shell("preflight_check", check.expose(), limit, &prepared.script_env(), &cx.ui).await?;
        if output.status.success() {
            return Ok(((), String::new()));
        }
        Err(Error::new(
            Code::PreScript,
            format!("the harness's preflight_check ended with {}", output.status),
        )
        .detail(output.stderr_text())
        .help("install what the check asks for; it is the `preflight_check` of the validation loop"))
    })
    .await
}

/// Runs the pre-script, if there is one, reads its answer, and hands it to the CI system. A job's later steps read
/// `skipped` whether there is a pre-script or not.
pub(super) async fn pre_script(cx: &Cx, prepared: &Prepared) -> Result<Answer> {
    let answer = match &prepared.plan.harness.pre_script {
        Some(path) => ask(cx, prepared, path).await?,
        None => Answer::default(),
    };
    if cx.ui.ci() == Ci::GitHub {
        hand_over(&answer)?;
    }
    Ok(answer)
}

async fn ask(cx: &Cx, prepared: &Prepared, path: &Utf8Path) -> Result<Answer> {
    let answer_file = cx.id.dir.join("prescript.out");
    fs_err::write(&answer_file, "")?;
    let inputs = inputs::dir(&cx.id.dir);
    fs_err::create_dir(&inputs)?;
    cx.ui.section("pre-script");
    let answer = cx
        .phase("pre-script", async {
            let script = Script {
                label: "pre-script",
                path,
                cwd: Path::new("."),
                deadline: prepared.plan.deadlines.script,
                late: Code::PreScript,
            };
            let extra = [
                ("FULLSEND_PRESCRIPT_OUTPUT", OsString::from(&answer_file)),
                (inputs::VARIABLE, OsString::from(std::path::absolute(&inputs)?)),
                ("FULLSEND_TARGET_REPO_DIR", OsString::from(&prepared.world.repo.top)),
            ];
            let output = script.run(&prepared.script_env(), &extra, &cx.ui).await?;
            match output.status.code() {
                Some(code @ (0 | skip::EXIT_SKIP)) => {
                    let file = fs_err::read(&answer_file).ok();
                    let answer = skip::answer(file.as_deref(), code, &output.stdout_text())?;
                    let said = |(k, v): (&String, &String)| format!("{k}={v}");
                    let outputs: Vec<_> = answer.outputs.iter().map(said).collect();
                    if !outputs.is_empty() {
                        cx.ui.info("pre-script", &outputs.join(" "));
                    }
                    let note =
                        answer.skip.as_ref().map_or_else(String::new, |r| format!("asked to skip: {r}"));
                    Ok((answer, note))
                }
                _ => Err(Error::new(Code::PreScript, format!("the pre-script ended with {}", output.status))
                    .help("its output stands above; exit 78 asks for a neutral end")),
            }
        })
        .await;
    let _ = std::fs::remove_file(&answer_file);
    // Only an empty one goes.
    let _ = std::fs::remove_dir(&inputs);
    answer
}

/// Appends the answer to the job's outputs, behind a delimiter that no value can know.
fn hand_over(answer: &Answer) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_OUTPUT").filter(|p| !p.is_empty()) else { return Ok(()) };
    let text = skip::github_output(answer, &format!("fullsend_{}", RunId::random()?));
    let mut file = fs_err::OpenOptions::new().append(true).create(true).open(Path::new(&path))?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

impl Prepared {
    /// What host scripts see.
    pub(super) fn script_env(&self) -> ScriptEnv<'_> {
        ScriptEnv { file_env: &self.world.file_env, runner_env: &self.plan.harness.runner_env }
    }
}
