//! From a request to a [`Harness`]: everything resolved, expanded and checked, every problem reported at once.

mod agent_skills;
pub(crate) mod budgets;
mod parts;
mod scalars;
mod services;
pub(crate) mod validation;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::check::{self, Files, Kind, Named};
use super::compose::guard::Facts;
use super::compose::overlay::Pick;
use super::compose::{Choice, Composed, compose};
use super::config::Config;
use super::directory::harness_file;
use super::environment::{DENIED, Environment, FULLSEND_DIR};
use super::expand::is_name;
use super::host_files;
use super::image_policy::ImagePolicy;
use super::model::{ChangeLimits, Forge, Harness, Runtime, Upload};
use super::problem::{Problem, Problems};
use super::profile;
use super::provider;
use super::raw::{self, RawHarness, RawLimits};
use super::reader::{At, Reader, Text};
use super::remote::lock::Lock;
use super::remote::{Attempt, Fetched, Remote};
use super::security;
use super::source::Source;
use super::values::Values;
use crate::error::{Code, Error, Result};
use crate::secrets::Secret;

/// How long an agent may run when nothing says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// How long a sandbox may take to become ready when nothing says otherwise.
pub const DEFAULT_SANDBOX_TIMEOUT: Duration = Duration::from_mins(5);
/// What to load.
#[derive(Debug, Clone)]
pub struct Request {
    /// The absolute harness directory.
    pub dir: Utf8PathBuf,
    /// The name of the agent.
    pub agent: String,
    /// The forge that was asked for.
    pub forge: Option<Forge>,
    /// The variables that the harness may refer to.
    pub env: Environment,
    /// What the command line says instead of the harness.
    pub overrides: Overrides,
    /// What of elsewhere is at hand.
    pub fetched: Fetched,
}

/// Values of the command line that win over the harness.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--image`; wins over `FULLSEND_SANDBOX_IMAGE`, which wins over the harness.
    pub image: Option<String>,
    /// `--runtime`
    pub runtime: Option<Runtime>,
    /// `--model`
    pub model: Option<String>,
    /// `--timeout`
    pub timeout: Option<Duration>,
    /// `--ready-timeout`, 1 to 3600 seconds.
    pub ready_timeout: Option<Duration>,
    /// `--ttl`
    pub ttl: Option<Duration>,
    /// `--deadline NAME=DURATION`
    pub deadlines: BTreeMap<String, Duration>,
    /// `--idle-timeout`
    pub idle_timeout: Option<Duration>,
    /// `--prompt`, or the content of `--prompt-file`
    pub prompt: Option<String>,
    /// `--debug`
    pub debug: Option<String>,
    /// `--max-turns`, `--max-cost-usd`, `--max-tokens`
    pub budgets: super::model::Budgets,
    /// `--api-retries`
    pub api_retries: Option<u32>,
    /// Whether the agent reviews another one's work: it may only read, and has no reviewer itself.
    pub reviewer: bool,
}

/// A harness that can be run.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The harness.
    pub harness: Harness,
    /// What the configuration asks of the image.
    pub image_policy: ImagePolicy,
    /// What the user should know; none of it stops the run.
    pub warnings: Vec<Problem>,
}

/// Loads an agent with what is at hand. The error holds every problem that was found (see
/// [`Error::problem_list`]).
pub fn load(request: &Request) -> Result<Loaded> {
    attempt(request).offline()
}

/// Loads an agent, or says what has to be fetched first. Whatever is wrong already is the result, and nothing need
/// be fetched then.
pub fn attempt(request: &Request) -> Attempt<Loaded> {
    let mut problems = Problems::default();
    let config = Config::read(&request.dir, &mut problems);
    let files = files(&request.dir, &config, &request.fetched, &mut problems).for_agent(&request.agent);
    let result = loaded(request, &config, &files, problems);
    Attempt { result, needs: files.remote.needs(), private_hosts: config.private_hosts }
}

/// The files of a directory and of elsewhere.
pub(crate) fn files(dir: &Utf8Path, config: &Config, fetched: &Fetched, problems: &mut Problems) -> Files {
    let lock = Lock::read(dir, problems);
    Files::new(dir, Remote::new(fetched, lock, config.allowed.clone()))
}

fn loaded(
    request: &Request,
    config: &Config,
    files: &Files,
    mut problems: Problems,
) -> Option<Result<Loaded>> {
    let file = match harness_file(files, &request.agent, config, &mut problems) {
        Ok(Some(file)) => file,
        Ok(None) => return problems.has_errors().then(|| Err(Error::problems(problems))),
        Err(error) if problems.has_errors() => return Some(Err(Error::problems(problems).and(error))),
        Err(error) => return Some(Err(error)),
    };
    let forge = chosen_forge(request, config);
    let facts = Facts { event: event_file(&request.env), forge, config: config.json() };
    let choice = Choice { forge, overlay: Pick::Guarded(facts) };
    let harness = resolve(request, config, files, &file, &choice, false, &mut problems);
    match harness {
        _ if problems.has_errors() => Some(Err(Error::problems(problems))),
        _ if !files.remote.needs().is_empty() => None,
        Some(harness) => {
            let image_policy = config.image_policy.clone();
            Some(Ok(Loaded { harness, image_policy, warnings: problems.0 }))
        }
        None => Some(Err(Error::bug("a harness was refused without a problem"))),
    }
}

/// The forge of the command line, else of the CI environment, else of the configuration.
pub(crate) fn chosen_forge(request: &Request, config: &Config) -> Option<Forge> {
    request.forge.or_else(|| ci_forge(&request.env)).or(config.forge)
}

/// Reads and resolves one harness. With `lenient` variables need not be set, and the result is only good for its
/// problems.
pub(crate) fn resolve(
    request: &Request,
    config: &Config,
    files: &Files,
    file: &Utf8Path,
    choice: &Choice,
    lenient: bool,
    problems: &mut Problems,
) -> Option<Harness> {
    let mut env = request.env.clone();
    env.0.insert(FULLSEND_DIR.to_owned(), request.dir.to_string());
    let values = if lenient { Values::lenient(&env) } else { Values::new(&env) };
    let (composed, source) = compose(file, files, choice, problems);
    let harness = composed.and_then(|Composed { node, source, bases }| {
        let raw = raw::read(node, &source, problems)?;
        files.remote.allow(&raw.allowed_remote_resources, &source, problems);
        let problems = &mut *problems;
        let harness =
            Loader { request, config, source: &source, files, values, problems }.harness(file, &raw)?;
        Some(Harness { bases, forge: choice.forge, ..harness })
    });
    files.remote.name_places(problems);
    sort(problems, source.as_ref());
    harness
}

/// The file with the event that started the CI job, behind the variable that names it.
pub(crate) fn event_file(env: &Environment) -> Option<(&'static str, Utf8PathBuf)> {
    let named = |name| env.lookup(name).map(|path| (name, path));
    let (name, path) = ["GITHUB_EVENT_PATH", "TRIGGER_PAYLOAD"].into_iter().find_map(named)?;
    (!path.is_empty()).then(|| (name, Utf8PathBuf::from(path)))
}

/// The forge whose CI this is.
fn ci_forge(env: &Environment) -> Option<Forge> {
    let is = |name: &str| env.lookup(name) == Some("true");
    match (is("GITHUB_ACTIONS"), is("GITLAB_CI")) {
        (true, false) => Some(Forge::Github),
        (false, true) => Some(Forge::Gitlab),
        _ => None,
    }
}

/// The harness file first, then other files; each from top to bottom.
fn sort(problems: &mut Problems, source: Option<&Source>) {
    let first = source.map(|source| source.shown.clone()).unwrap_or_default();
    problems.0.sort_by_key(|problem| {
        problem.place.as_ref().map(|p| (p.file != first, p.file.clone(), p.line, p.column))
    });
    let mut seen = std::collections::HashSet::new();
    problems.0.retain(|problem| {
        seen.insert((problem.place.as_ref().map(ToString::to_string), problem.message.clone()))
    });
}

struct Loader<'l> {
    request: &'l Request,
    config: &'l Config,
    source: &'l Source,
    files: &'l Files,
    values: Values<'l>,
    problems: &'l mut Problems,
}

impl Loader<'_> {
    fn reader(&mut self) -> Reader<'_> {
        Reader::new(self.source, self.problems)
    }

    fn error(&mut self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.reader().error(Code::Value, span, message, help);
    }

    fn path(&mut self, key: &str, text: Option<&Text>, kind: Kind) -> Option<Utf8PathBuf> {
        let text = text?;
        let named = Named { key, path: &text.text, shown: &text.text, span: text.span.clone(), free: false };
        self.files.check(&named, kind, self.source, self.problems)
    }

    /// Resolves everything; fields that cannot be resolved have a problem and do not stop the others.
    #[expect(clippy::too_many_lines, reason = "a flat list of keys")]
    fn harness(mut self, file: &Utf8Path, raw: &RawHarness) -> Option<Harness> {
        let agent = self.path("agent", raw.agent.as_ref(), Kind::File);
        let runtime = self.runtime(raw.runtime.as_ref(), agent.as_deref());
        let named = raw.agent.as_ref().zip(agent.as_deref());
        let agent_name = named.and_then(|(text, file)| self.agent_name(text, file));
        let role = self.pattern(
            "role",
            raw.role.as_ref(),
            check::is_role,
            "lower-case letters, digits, `_` and single `-`, a letter first",
        );
        let slug = self.pattern(
            "slug",
            raw.slug.as_ref(),
            check::is_id,
            "letters, digits, `_` and `-`, a letter or digit first",
        );
        let plugins = self.plugins(&raw.plugins);
        self.required_env(&raw.required_env);
        let model = self.model(raw.model.as_ref(), runtime);
        let effort = self.effort(raw.effort.as_ref());
        let image = self.image(raw.image.as_ref());
        let policy = self.policy(raw.policy.as_ref());
        let mut skills = self.skills(&raw.skills);
        self.skills_of_agent(agent.as_deref(), runtime, &mut skills);
        let host_files =
            host_files::resolve(&raw.host_files, self.files, self.values, self.source, self.problems);
        let providers = provider::Resolver {
            files: self.files,
            values: self.values,
            source: self.source,
            problems: self.problems,
        }
        .resolve(&raw.providers);
        let profiles = profile::resolve(&raw.profiles, &providers, self.files, self.source, self.problems);
        let agent_input = self.path("agent_input", raw.agent_input.as_ref(), Kind::Dir);
        let pre_script = self.path("pre_script", raw.pre_script.as_ref(), Kind::File);
        let post_script = self.path("post_script", raw.post_script.as_ref(), Kind::File);
        let validation = raw.validation.as_ref().map(|v| self.validation(v));
        let mut runner_env = self.env_map(&raw.runner_env);
        runner_env.extend(self.env_map(&raw.env_runner));
        let mut sandbox_env = self.plugin_env(&raw.plugins);
        sandbox_env.extend(self.env_map(&raw.env_sandbox));
        let timeout = self.timeout(raw.timeout_minutes.as_ref());
        let sandbox_timeout = self.sandbox_timeout(raw.sandbox_timeout_seconds.as_ref());
        let deadlines = self.deadlines(&raw.deadlines);
        let idle_timeout = raw.idle_timeout.as_ref().and_then(|text| self.duration("idle_timeout", text));
        let idle_timeout = self.request.overrides.idle_timeout.or(idle_timeout);
        let prompt = self.prompt(raw.prompt.as_ref());
        let debug = self.debug(raw.debug.as_ref());
        let budgets = self.budgets(raw);
        let api_retries = self.api_retries(raw.api_retries.as_ref());
        let exclude = self.patterns("exclude", &raw.upload_exclude);
        let services = &raw.services;
        let api_servers = self.api_servers(&services.servers);
        let resources = self.resources(&services.resources);
        let labels = self.labels(&services.labels);
        let ttl = self.ttl(services.ttl.as_ref());
        let max_concurrent = self.max_concurrent(services.max_concurrent.as_ref());
        let security = security::resolve(raw.security.as_ref(), self.files, self.source, self.problems);
        let limits = self.limits(&raw.limits);
        Some(Harness {
            name: self.request.agent.clone(),
            dir: self.files.dir.clone(),
            file: file.to_owned(),
            digest: self.source.digest.clone(),
            bases: Vec::new(),
            forge: None,
            description: raw.description.as_ref().map(|t| t.text.trim().to_owned()),
            role,
            slug,
            agent: agent?,
            agent_name: agent_name?,
            runtime,
            model,
            effort,
            image,
            policy,
            skills,
            plugins,
            host_files,
            providers,
            profiles,
            agent_input,
            pre_script,
            post_script,
            validation,
            runner_env,
            sandbox_env,
            timeout,
            sandbox_timeout,
            deadlines,
            idle_timeout,
            prompt,
            debug,
            budgets,
            api_retries,
            api_servers,
            resources,
            labels,
            ttl,
            max_concurrent,
            readonly_repo: raw.readonly_repo.unwrap_or(false) || self.request.overrides.reviewer,
            trust_repo_config: raw.trust_repo_config.unwrap_or(false),
            upload: Upload { ignored: raw.upload_ignored.unwrap_or(true), exclude },
            security,
            limits,
        })
    }

    fn policy(&mut self, key: Option<&Text>) -> Option<Utf8PathBuf> {
        let path = self.path("policy", key, Kind::File)?;
        self.files.read.judged(&path, self.problems, check_policy);
        Some(path)
    }

    fn env_map(&mut self, raw: &[(Text, Text)]) -> BTreeMap<String, Secret> {
        let mut out = BTreeMap::new();
        for (key, value) in raw {
            if !is_name(&key.text) {
                let message = format!("`{}` is not a variable name", key.text.escape_debug());
                self.error(&key.span, message, "use letters, digits and `_`, no digit first");
                continue;
            }
            if DENIED.contains(&key.text.as_str()) {
                let message = format!("`{}` cannot be set by a harness", key.text);
                self.error(&key.span, message, "it grants identity tokens; remove it");
                continue;
            }
            if value.text.contains('\0') {
                self.error(&value.span, format!("the value of `{}` holds a NUL byte", key.text), "remove it");
                continue;
            }
            if let Some(text) = self.values.expand(value, self.source).accept(self.problems) {
                out.insert(key.text.clone(), Secret::new(text));
            }
        }
        out
    }

    fn limits(&mut self, raw: &RawLimits) -> ChangeLimits {
        let mut at_least_0 = |name: &str, value: Option<&At<i64>>| {
            let value = value?;
            let number = u64::try_from(value.value).ok();
            if number.is_none() {
                self.error(&value.span, format!("`{name}` is negative"), "leave it out for no limit");
            }
            number
        };
        ChangeLimits {
            max_changed_files: at_least_0("max_changed_files", raw.max_changed_files.as_ref()),
            max_patch_bytes: at_least_0("max_patch_bytes", raw.max_patch_bytes.as_ref()),
            max_file_bytes: at_least_0("max_file_bytes", raw.max_file_bytes.as_ref()),
            protected_paths: self.patterns("protected_paths", &raw.protected_paths),
        }
    }

    fn patterns(&mut self, name: &str, patterns: &[Text]) -> Vec<String> {
        for text in patterns {
            let climbs = text.text.split('/').any(|part| part == "..");
            if climbs || text.text.contains(['\0', '\n']) {
                let help = "patterns are relative to the repository and stay inside it";
                self.error(
                    &text.span,
                    format!("a pattern of `{name}` holds `..` or a control character"),
                    help,
                );
            }
        }
        patterns.iter().map(|text| text.text.clone()).collect()
    }
}

/// A policy is OpenShell's to judge; what is no YAML mapping with a version is none.
pub(crate) fn check_policy(path: &Utf8Path, problems: &mut Problems) {
    let parsed = Source::read(path, Code::FileMissing)
        .and_then(|source| Ok((super::yaml::parse(&source, problems)?, source)));
    let (node, source) = match parsed {
        Ok(parsed) => parsed,
        Err(problem) => return problems.push(problem),
    };
    if matches!(node.value, super::yaml::Value::Null) {
        problems.push(
            Problem::warning(Code::Required, "the policy is empty, which OpenShell will refuse")
                .help("add `version: 1` and its rules")
                .at(Some(source.whole())),
        );
        return;
    }
    let version = Reader::new(&source, problems)
        .document(node, "the policy")
        .map(|mut top| top.take("version").is_some());
    if version == Some(false) {
        let problem = Problem::error(Code::Required, "`version` is missing in the policy")
            .help("add `version: 1`")
            .at(Some(source.whole()));
        problems.push(problem);
    }
}

#[cfg(test)]
mod tests;
