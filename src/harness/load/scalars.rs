//! Single values: names, patterns, limits, and what the command line says instead.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;

use super::super::check;
use super::super::config;
use super::super::environment::FULLSEND_SANDBOX_IMAGE;
use super::super::keys::nearest;
use super::super::model::{Effort, Runtime};
use super::super::problem::{Place, Problem};
use super::super::reader::{At, Text};
use super::{DEFAULT_SANDBOX_TIMEOUT, DEFAULT_TIMEOUT, Loader};
use crate::error::Code;
use crate::plan::deadlines;

/// The longest agent run: a week, in minutes.
const MAX_TIMEOUT_MINUTES: i64 = 7 * 24 * 60;
/// The longest wait for a sandbox, in seconds.
const MAX_SANDBOX_TIMEOUT: i64 = 3600;

impl Loader<'_> {
    /// The harness key, else what the agent file is: `.md` is a definition, an executable file or one with a
    /// shebang is a script. A definition is for the runtime of `config.yaml`, else for claude.
    pub(super) fn runtime(&mut self, key: Option<&Text>, agent: Option<&Utf8Path>) -> Runtime {
        if let Some(runtime) = self.request.overrides.runtime {
            return runtime;
        }
        if let Some(text) = key {
            return self.runtime_named(text, self.source.place(text.span.clone()));
        }
        match (agent.map_or(Runtime::Claude, runtime_of), self.config.runtime.as_ref()) {
            (Runtime::Claude, Some(text)) => {
                let place = self.config.source.as_ref().map(|source| source.place(text.span.clone()));
                let text = text.clone();
                place.map_or(Runtime::Claude, |place| self.runtime_named(&text, place))
            }
            (runtime, _) => runtime,
        }
    }

    fn runtime_named(&mut self, text: &Text, place: Place) -> Runtime {
        if let Some(runtime) = Runtime::from_name(&text.text) {
            return runtime;
        }
        let names = Runtime::ALL.map(Runtime::name);
        let help = match nearest(&text.text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write `{}`", names.join("` or `")),
        };
        let message = format!("`{}` is not a runtime of this version", text.text);
        self.problems.push(Problem::error(Code::Value, message).help(help).at(Some(place)));
        Runtime::Claude
    }

    pub(super) fn agent_name(&mut self, text: &Text, file: &Utf8Path) -> Option<String> {
        let name = file.file_stem().unwrap_or_default();
        if check::is_plain_name(name) {
            return Some(name.to_owned());
        }
        let message = format!("`{}` is not a usable name for an agent", name.escape_debug());
        self.error(&text.span, message, "name the file with letters, digits, `_` and `-`");
        None
    }

    pub(super) fn pattern(
        &mut self,
        key: &str,
        text: Option<&Text>,
        good: fn(&str) -> bool,
        rule: &str,
    ) -> Option<String> {
        let text = text?;
        if !good(&text.text) {
            self.error(
                &text.span,
                format!("`{key}` has characters that it must not have"),
                format!("use {rule}"),
            );
        }
        Some(text.text.clone())
    }

    pub(super) fn option(&mut self, message: String, help: &str) {
        self.problems.push(Problem::error(Code::Value, message).help(help));
    }

    pub(super) fn model(&mut self, key: Option<&Text>, runtime: Runtime) -> Option<String> {
        let (fits, rule): (fn(&str) -> bool, _) = match runtime {
            Runtime::Opencode => (
                check::is_model_of_provider,
                "`<provider>/<model>` for opencode, of letters, digits, `_`, `.`, `@` and `-`",
            ),
            _ => (check::is_model, "letters, digits, `_`, `.`, `@` and `-`"),
        };
        let Some(model) = &self.request.overrides.model else {
            return self.pattern("model", key, fits, rule);
        };
        if !fits(model) {
            self.option("the value of --model is not a model name".into(), &format!("use {rule}"));
        }
        Some(model.clone())
    }

    pub(super) fn effort(&mut self, key: Option<&Text>) -> Option<Effort> {
        let text = key?;
        let found = Effort::NAMES.iter().find(|(name, _)| *name == text.text);
        if found.is_none() {
            let help = match nearest(&text.text, Effort::NAMES.map(|(name, _)| name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write low, medium, high, xhigh or max".to_owned(),
            };
            self.error(&text.span, format!("`{}` is not an effort level", text.text), help);
        }
        found.map(|(_, effort)| *effort)
    }

    pub(super) fn image(&mut self, key: Option<&Text>) -> Option<String> {
        let rule = "an image is one word without quotes or variables, such as `registry/name:tag`";
        let flag = self.request.overrides.image.clone().map(|image| ("--image", image));
        let var = || Some((FULLSEND_SANDBOX_IMAGE, self.values.lookup(FULLSEND_SANDBOX_IMAGE)?));
        if let Some((name, image)) = flag.or_else(var).filter(|(_, image)| !image.is_empty()) {
            if !check::is_image(&image) {
                self.option(format!("the value of {name} is not an image"), rule);
                return Some(image);
            }
            return match config::image(&image, self.config) {
                Ok(image) => Some(image),
                Err(problem) => {
                    self.problems.push(problem);
                    None
                }
            };
        }
        let text = key?;
        if !check::is_image(&text.text) {
            self.error(&text.span, "`image` is not an image", rule);
            return None;
        }
        match config::image(&text.text, self.config) {
            Ok(image) => Some(image),
            Err(problem) => {
                self.problems.push(problem.at(Some(self.source.place(text.span.clone()))));
                None
            }
        }
    }

    pub(super) fn timeout(&mut self, key: Option<&At<i64>>) -> Duration {
        let minutes = match key {
            Some(At { value, span }) if !(0..=MAX_TIMEOUT_MINUTES).contains(value) => {
                let help = format!("use 1 to {MAX_TIMEOUT_MINUTES} minutes, or 0 for the default of 30");
                self.error(span, "`timeout_minutes` is out of range", help);
                0
            }
            Some(At { value, .. }) => u64::try_from(*value).unwrap_or(0),
            None => 0,
        };
        match self.request.overrides.timeout {
            Some(timeout) if timeout.is_zero() => {
                self.option("--timeout is zero".into(), "give a positive duration");
                timeout
            }
            Some(timeout) => timeout,
            None if minutes == 0 => DEFAULT_TIMEOUT,
            None => Duration::from_mins(minutes),
        }
    }

    pub(super) fn duration(&mut self, key: &str, text: &Text) -> Option<Duration> {
        match deadlines::parse(&text.text) {
            Ok(duration) => Some(duration),
            Err(why) => {
                let help = "write seconds, or a duration such as 90s, 15m or 1h30m";
                self.error(&text.span, format!("`{key}` is not usable: {why}"), help);
                None
            }
        }
    }

    /// The deadlines of the harness, those of the command line over them.
    pub(super) fn deadlines(&mut self, raw: &[(&'static str, Text)]) -> BTreeMap<String, Duration> {
        let mut all = BTreeMap::new();
        for (name, text) in raw {
            all.extend(self.duration(name, text).map(|d| ((*name).to_owned(), d)));
        }
        all.extend(self.request.overrides.deadlines.clone());
        all
    }

    pub(super) fn sandbox_timeout(&mut self, key: Option<&At<i64>>) -> Duration {
        let seconds = match key {
            Some(At { value, span }) if !(0..=MAX_SANDBOX_TIMEOUT).contains(value) => {
                let help = format!("use 1 to {MAX_SANDBOX_TIMEOUT} seconds, or 0 for the default of 300");
                self.error(span, "`sandbox_timeout_seconds` is out of range", help);
                0
            }
            Some(At { value, .. }) => u64::try_from(*value).unwrap_or(0),
            None => 0,
        };
        let limits = Duration::from_secs(1)..=Duration::from_hours(1);
        match self.request.overrides.ready_timeout {
            Some(timeout) if !limits.contains(&timeout) => {
                self.option("--ready-timeout is out of range".into(), "use 1 to 3600 seconds");
                timeout
            }
            Some(timeout) => timeout,
            None if seconds == 0 => DEFAULT_SANDBOX_TIMEOUT,
            None => Duration::from_secs(seconds),
        }
    }
}

fn runtime_of(agent: &Utf8Path) -> Runtime {
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;
    if agent.extension().is_some_and(|ext| ext.eq_ignore_ascii_case("md")) {
        return Runtime::Claude;
    }
    let executable = std::fs::metadata(agent).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
    let mut start = [0_u8; 2];
    let shebang = std::fs::File::open(agent).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == *b"#!";
    if executable || shebang { Runtime::Script } else { Runtime::Claude }
}
