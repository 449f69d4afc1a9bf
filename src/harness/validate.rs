//! All problems of a harness directory at once, whatever is used of it where.

use camino::{Utf8Path, Utf8PathBuf};

use super::check::Files;
use super::compose::overlay::Pick;
use super::compose::{Choice, offer};
use super::config::Config;
use super::directory::{harness_file, names, registered};
use super::environment::Environment;
use super::load::validation::check_schema;
use super::load::{Overrides, Request, check_policy, chosen_forge, files, resolve};
use super::model::{Forge, Harness, Runtime};
use super::problem::{Problem, Problems, Severity};
use super::provider::yaml_files;
use super::remote::lock::Entry;
use super::remote::{Attempt, Fetched};
use super::source::Source;
use super::{lint, profile, provider};
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
    /// What of elsewhere is at hand.
    pub fetched: Fetched,
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

/// Looks at a directory with what is at hand. The error is that there is nothing to look at.
pub fn validate(scope: &Scope) -> Result<Report> {
    attempt(scope).offline()
}

/// Looks at a directory, or says what has to be fetched first.
pub fn attempt(scope: &Scope) -> Attempt<Report> {
    let mut problems = Problems::default();
    let config = Config::read(&scope.dir, &mut problems);
    let files = files(&scope.dir, &config, &scope.fetched, &mut problems);
    let report = report(scope, &config, &files, problems);
    let needs = files.remote.needs();
    let result = (needs.is_empty() || report.is_err()).then_some(report);
    Attempt { result, needs, private_hosts: config.private_hosts }
}

/// What belongs in a lock, for each agent that was looked at.
#[derive(Debug)]
pub(crate) struct Locked {
    /// The agents, each with its entry; one that takes nothing from elsewhere has none.
    pub(crate) agents: Vec<(String, Option<Entry>)>,
    /// What is wrong; nothing may be locked then.
    pub(crate) problems: Problems,
}

/// Collects what the agents of a scope take from elsewhere, for every forge and overlay.
pub(crate) fn attempt_lock(scope: &Scope) -> Attempt<Locked> {
    let mut problems = Problems::default();
    let config = Config::read(&scope.dir, &mut problems);
    let files = files(&scope.dir, &config, &scope.fetched, &mut problems);
    let result = locked(scope, &config, &files, &mut problems);
    let needs = files.remote.needs();
    let result = match result {
        Err(error) => Some(Err(error)),
        Ok(_) if !needs.is_empty() => None,
        Ok(agents) => {
            tidy(&mut problems);
            Some(Ok(Locked { agents, problems }))
        }
    };
    Attempt { result, needs, private_hosts: config.private_hosts }
}

fn locked(
    scope: &Scope,
    config: &Config,
    files: &Files,
    problems: &mut Problems,
) -> Result<Vec<(String, Option<Entry>)>> {
    let all: Vec<String> = if scope.agents.is_empty() {
        let enabled = |name: &String| config.agent(name).is_none_or(|agent| agent.enabled);
        names(&scope.dir, config).into_keys().filter(enabled).collect()
    } else {
        scope.agents.clone()
    };
    let mut out = Vec::new();
    for name in all {
        let files = files.for_agent(&name);
        let Some(file) = harness_file(&files, &name, config, problems)? else { continue };
        let digest = Source::read(&file, Code::FileMissing).map(|source| source.digest).unwrap_or_default();
        let source = match files.remote.origin(&file) {
            Some(url) => url.as_str().to_owned(),
            None => file.strip_prefix(&files.dir).unwrap_or(&file).to_string(),
        };
        agent(scope, config, &files, &name, &file, problems);
        let mut dependencies = files.remote.take_used();
        // One content per URL is what a lock is for; the key is only said for people.
        dependencies.dedup_by(|a, b| a.url == b.url && a.form == b.form);
        let entry = Entry { source, sha256: digest, dependencies };
        out.push((name, Some(entry).filter(|entry| !entry.dependencies.is_empty())));
    }
    Ok(out)
}

fn report(scope: &Scope, config: &Config, files: &Files, mut problems: Problems) -> Result<Report> {
    let mut agents = Vec::new();
    if scope.agents.is_empty() {
        super::directory::can_be_listed(&scope.dir)?;
        for (name, file) in names(&scope.dir, config) {
            match registered(&name, files, config) {
                // What is switched off, or not here yet, is told and does not fail the rest.
                Some(Err(problem)) if problem.code == Code::AgentUnknown => {}
                Some(Err(problem)) if problem.code == Code::FileMissing => {
                    problems.push(Problem { severity: Severity::Warning, ..problem });
                }
                Some(Err(problem)) => problems.push(problem),
                Some(Ok(None)) => {}
                Some(Ok(Some(file))) => {
                    agent(scope, config, &files.for_agent(&name), &name, &file, &mut problems);
                    agents.push(name);
                }
                None if super::check::is_plain_name(&name) => {
                    agent(scope, config, &files.for_agent(&name), &name, &file, &mut problems);
                    agents.push(name);
                }
                None => problems.push(super::directory::bad_name(&name)),
            }
        }
        others(files, &mut problems);
    } else {
        for name in &scope.agents {
            match harness_file(files, name, config, &mut problems) {
                Ok(None) => {}
                Ok(Some(file)) => {
                    agent(scope, config, &files.for_agent(name), name, &file, &mut problems);
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
        fetched: scope.fetched.clone(),
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
                uses(&harness, files, problems);
            }
        }
    }
}

/// What a run would only meet when it starts something, or not at all.
fn uses(harness: &Harness, files: &Files, problems: &mut Problems) {
    let mut look = |path: &Utf8Path, lint: fn(&Utf8Path, &mut Problems)| {
        if files.read.is_new(path) {
            lint(path, problems);
        }
    };
    let validation = harness.validation.as_ref().and_then(|v| v.script.as_ref());
    for script in
        [harness.pre_script.as_ref(), harness.post_script.as_ref(), validation].into_iter().flatten()
    {
        look(script, lint::shebang);
    }
    if harness.runtime != Runtime::Script {
        look(&harness.agent, lint::front_matter);
    }
    for skill in &harness.skills {
        let file = match skill.overrides.get("SKILL.md") {
            Some(replacement) => replacement.clone(),
            None => Some(skill.dir.join("SKILL.md")),
        };
        if let Some(file) = file.filter(|file| file.is_file()) {
            look(&file, lint::front_matter);
        }
    }
    if let Some(policy) = &harness.policy {
        look(policy, lint::policy);
    }
    for profile in &harness.profiles {
        look(&profile.file, lint::profile);
    }
}

/// Files of the directory that no agent need use.
fn others(files: &Files, problems: &mut Problems) {
    for place in ["harness", "providers", "profiles"] {
        no_files(&files.dir.join(place), problems);
    }
    for file in yaml_files(&files.dir.join("providers")) {
        problems.0.extend(provider::check(&file).0);
    }
    for file in yaml_files(&files.dir.join("profiles")) {
        if std::fs::metadata(&file).is_ok_and(|meta| meta.len() > 0)
            && let Err(found) = profile::read(&file)
        {
            problems.0.extend(found.0);
        }
        if files.read.is_new(&file) {
            lint::profile(&file, problems);
        }
    }
    for file in below(&files.dir.join("policies"), &["yaml", "yml"]) {
        files.read.judged(&file, problems, check_policy);
        if files.read.is_new(&file) {
            lint::policy(&file, problems);
        }
    }
    for file in below(&files.dir.join("env"), &["env"]) {
        lint::env_file(&file, problems);
    }
    for file in below(&files.dir.join("schemas"), &["json"]) {
        files.read.judged(&file, problems, check_schema);
    }
}

/// What has the name of a file of the directory and is none: it would be passed over in silence.
fn no_files(dir: &Utf8Path, problems: &mut Problems) {
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    for path in entries.map(camino::Utf8DirEntry::into_path) {
        let hidden = path.file_name().is_some_and(|name| name.starts_with('.'));
        if matches!(path.extension(), Some("yaml" | "yml"))
            && !hidden
            && !path.is_file()
            && let Err(problem) = Source::read(&path, Code::FileType)
        {
            problems.push(problem);
        }
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
