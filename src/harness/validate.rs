//! All problems of a harness directory at once, whatever is used of it where.

use camino::{Utf8Path, Utf8PathBuf};

use super::check::Files;
use super::compose::overlay::Pick;
use super::compose::{Choice, offer};
use super::config::Config;
use super::directory::{harness_file, names, registered};
use super::environment::Environment;
use super::load::validation::check_schema;
use super::load::{Overrides, Request, check_policy, chosen_forge, resolve};
use super::model::{Forge, Harness, Runtime};
use super::problem::{Problem, Problems, Severity};
use super::provider::yaml_files;
use super::source::Source;
use super::{profile, provider, yaml};
use crate::error::{Code, Result};

/// Whose blocks of a harness are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forges {
    /// The forge that a run here would choose, else all.
    Here,
    /// Every one that a harness has a block for.
    All,
    /// This one.
    One(Forge),
}

/// What to look at.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The absolute harness directory.
    pub dir: Utf8PathBuf,
    /// The agents; none is the whole directory.
    pub agents: Vec<String>,
    /// Whose blocks.
    pub forges: Forges,
    /// The variables; that one is not set is no problem of a directory.
    pub env: Environment,
}

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// The agents that were looked at.
    pub agents: Vec<String>,
    /// The problems, by file and line.
    pub problems: Problems,
}

impl Report {
    /// Makes warnings errors.
    pub fn strict(&mut self) {
        self.problems.0.iter_mut().for_each(|problem| problem.severity = Severity::Error);
    }
}

/// Looks at a directory. The error is that there is nothing to look at.
pub fn validate(scope: &Scope) -> Result<Report> {
    let mut problems = Problems::default();
    let config = Config::read(&scope.dir, &mut problems);
    let files = Files::new(&scope.dir);
    let mut agents = Vec::new();
    if scope.agents.is_empty() {
        super::directory::list_agents(&scope.dir).map(drop).or_else(|error| {
            // A broken configuration is one of the problems, not the end.
            if error.problem_list().is_some() { Ok(()) } else { Err(error) }
        })?;
        for (name, file) in names(&scope.dir, &config) {
            match registered(&name, &files, &config) {
                // What is switched off, or not here yet, is told and does not fail the rest.
                Some(Err(problem)) if problem.code == Code::AgentUnknown => {}
                Some(Err(problem)) if problem.code == Code::FileMissing => {
                    problems.push(Problem { severity: Severity::Warning, ..problem });
                }
                Some(Err(problem)) => problems.push(problem),
                Some(Ok(file)) => {
                    agent(scope, &config, &files, &name, &file, &mut problems);
                    agents.push(name);
                }
                None if super::check::is_plain_name(&name) => {
                    agent(scope, &config, &files, &name, &file, &mut problems);
                    agents.push(name);
                }
                None => problems.push(super::directory::bad_name(&name)),
            }
        }
        others(&files, &mut problems);
    } else {
        for name in &scope.agents {
            match harness_file(&files, name, &config, &mut problems) {
                Ok(file) => {
                    agent(scope, &config, &files, name, &file, &mut problems);
                    agents.push(name.clone());
                }
                Err(error) => match error.problem_list() {
                    Some(found) => problems.0.extend(found.0.iter().cloned()),
                    None => {
                        problems.push(Problem::error(error.code(), error.message()).help(error.help_text()));
                    }
                },
            }
        }
    }
    tidy(&mut problems);
    Ok(Report { agents, problems })
}

/// One agent with every combination of forge and overlay that is asked for.
fn agent(
    scope: &Scope,
    config: &Config,
    files: &Files,
    name: &str,
    file: &Utf8Path,
    problems: &mut Problems,
) {
    let request = Request {
        dir: scope.dir.clone(),
        agent: name.to_owned(),
        forge: match scope.forges {
            Forges::One(forge) => Some(forge),
            Forges::Here | Forges::All => None,
        },
        env: scope.env.clone(),
        overrides: Overrides::default(),
    };
    let offer = offer(file, files);
    let here = chosen_forge(&request, config);
    let forges: Vec<Option<Forge>> = match scope.forges {
        Forges::One(forge) => vec![Some(forge)],
        Forges::Here if here.is_some_and(|forge| offer.forges.contains(&forge)) => vec![here],
        _ if offer.forges.is_empty() => vec![here],
        Forges::All | Forges::Here => offer.forges.into_iter().map(Some).collect(),
    };
    for forge in forges {
        for overlay in std::iter::once(None).chain((0..offer.overlays).map(Some)) {
            let choice = Choice { forge, overlay: Pick::Fixed(overlay) };
            if let Some(harness) = resolve(&request, config, files, file, &choice, true, problems) {
                uses(&harness, problems);
            }
        }
    }
}

/// What a run would only meet when it starts something.
fn uses(harness: &Harness, problems: &mut Problems) {
    let validation = harness.validation.as_ref().and_then(|v| v.script.as_ref());
    for script in
        [harness.pre_script.as_ref(), harness.post_script.as_ref(), validation].into_iter().flatten()
    {
        let start = std::fs::read(script).unwrap_or_default();
        if !start.starts_with(b"#!") && !start.starts_with(b"\x7fELF") {
            let shown = super::source::shown(script);
            problems.push(
                Problem::warning(Code::FileType, format!("{shown} does not say what runs it"))
                    .help("begin it with a line such as `#!/bin/sh`")
                    .at(Some(super::source::whole_file(&shown))),
            );
        }
    }
    if harness.runtime == Runtime::Claude {
        front_matter(&harness.agent, problems);
    }
}

/// The front matter of a definition is YAML; what it means is the agent program's to say.
fn front_matter(path: &Utf8Path, problems: &mut Problems) {
    let source = match Source::read(path, Code::FileMissing) {
        Ok(source) => source,
        Err(problem) => return problems.push(problem),
    };
    let Some(rest) = source.text.strip_prefix("---\n") else { return };
    let Some(end) = rest.find("\n---") else {
        problems.push(
            Problem::warning(Code::YamlSyntax, "the front matter has no end")
                .help("close it with a line `---`")
                .at(Some(source.place(0..3))),
        );
        return;
    };
    // The line before makes up for the opening `---`, so that the lines are those of the file.
    let front = Source::new(source.shown.clone(), format!("\n{}\n", &rest[..end]));
    let mut found = Problems::default();
    match yaml::parse(&front, &mut found) {
        Err(problem) => found.push(problem),
        Ok(node) => {
            if !matches!(node.value, yaml::Value::Map(_) | yaml::Value::Null) {
                found.push(
                    Problem::error(Code::YamlType, "the front matter is not a mapping")
                        .help("write `key: value` lines")
                        .at(Some(front.place(node.span))),
                );
            }
        }
    }
    // Agent programs read front matter more loosely than this.
    problems.0.extend(found.0.into_iter().map(|p| Problem { severity: Severity::Warning, ..p }));
}

/// Files of the directory that no agent need use.
fn others(files: &Files, problems: &mut Problems) {
    for file in yaml_files(&files.dir.join("providers")) {
        problems.0.extend(provider::check(&file).0);
    }
    for file in yaml_files(&files.dir.join("profiles")) {
        if std::fs::metadata(&file).is_ok_and(|meta| meta.len() > 0)
            && let Err(found) = profile::read(&file)
        {
            problems.0.extend(found.0);
        }
    }
    for file in below(&files.dir.join("policies"), &["yaml", "yml"]) {
        check_policy(&file, problems);
    }
    for file in below(&files.dir.join("schemas"), &["json"]) {
        check_schema(&file, problems);
    }
}

fn below(dir: &Utf8Path, extensions: &[&str]) -> Vec<Utf8PathBuf> {
    walkdir::WalkDir::new(dir)
        .max_depth(6)
        .sort_by_file_name()
        .into_iter()
        .filter_map(std::result::Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok())
        .filter(|path| path.extension().is_some_and(|ext| extensions.contains(&ext)))
        .collect()
}

/// By file and line, each once; of an error and a warning that say the same the error stays.
fn tidy(problems: &mut Problems) {
    problems.0.sort_by_key(|problem| {
        let place = problem.place.as_ref().map(|place| (place.file.clone(), place.line, place.column));
        (place, problem.severity == Severity::Warning)
    });
    let mut seen = std::collections::HashSet::new();
    problems.0.retain(|problem| {
        let place = problem.place.as_ref().map(ToString::to_string);
        seen.insert((place, problem.message.clone()))
    });
}
