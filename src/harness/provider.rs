//! Providers: bare names from `providers/`, or paths of files.

use std::collections::BTreeMap;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};

use super::check::{Files, Kind, Named, is_id, is_plain_name};
use super::expand::{Reference, is_name, reference};
use super::keys::{Level, nearest};
use super::model::{ProviderDef, ProviderUse, Scope};
use super::problem::{Problem, Problems, Severity};
use super::reader::{Reader, Text};
use super::source::{Source, stars};
use super::values::Values;
use super::yaml;
use crate::error::Code;
use crate::secrets::Secret;

/// Keys that a credential must not have: OpenShell's client gets credentials through its environment, where these
/// would change the client itself.
const RESERVED: [&str; 12] = [
    "PATH",
    "HOME",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "IFS",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// A provider file as it is written.
#[derive(Debug, Clone)]
pub(crate) struct RawProvider {
    name: Text,
    kind: Option<Text>,
    scope: Option<Text>,
    credentials: Vec<(Text, Text)>,
    config: Vec<(Text, Text)>,
    source: Source,
    file: Utf8PathBuf,
    problems: Problems,
}

/// Everything that is needed to resolve providers.
pub(crate) struct Resolver<'r> {
    /// The harness directory.
    pub(crate) files: &'r Files,
    /// The variables.
    pub(crate) values: Values<'r>,
    /// The harness file.
    pub(crate) source: &'r Source,
    /// What was found so far.
    pub(crate) problems: &'r mut Problems,
}

impl Resolver<'_> {
    /// Resolves the entries of `providers`.
    pub(crate) fn resolve(&mut self, entries: &[Text]) -> Vec<ProviderUse> {
        if entries.is_empty() {
            return Vec::new();
        }
        let all = self.files.read.providers.get_or_init(|| read_dir(&self.files.dir.join("providers")));
        let (mut known, mut broken) = all.clone();
        let mut out: Vec<ProviderUse> = Vec::new();
        let mut unknown = false;
        for entry in entries {
            let found = if is_path(&entry.text) {
                self.by_path(entry, &mut known)
            } else {
                self.by_name(entry, &known, &mut unknown)
            };
            let Some(found) = found else { continue };
            if out.iter().any(|other| other.name() == found.name()) {
                self.problems.push(
                    Problem::warning(Code::Value, format!("the provider `{}` is listed twice", found.name()))
                        .help("remove one of the entries")
                        .at(Some(self.source.place(entry.span.clone()))),
                );
            } else {
                out.push(found);
            }
        }
        // A file that nothing uses must not stop the run, unless it may be the one that is looked for.
        for raw in known.into_iter().filter(|raw| !out.iter().any(|used| used.name() == raw.name.text)) {
            broken.extend(raw.problems.0);
        }
        for mut problem in broken {
            if !unknown {
                problem.severity = Severity::Warning;
            }
            self.problems.push(problem);
        }
        out
    }

    fn by_path(&mut self, entry: &Text, known: &mut Vec<RawProvider>) -> Option<ProviderUse> {
        let named = Named {
            key: "providers",
            path: &entry.text,
            shown: &entry.text,
            span: entry.span.clone(),
            free: false,
        };
        let file = self.files.check(&named, Kind::File, self.source, self.problems)?;
        let position = known.iter().position(|raw| raw.file == file);
        let raw = match position {
            Some(at) => known.remove(at),
            None => match read(&file) {
                Ok(raw) => raw,
                Err(problems) => {
                    problems.0.into_iter().for_each(|p| self.problems.push(p));
                    return None;
                }
            },
        };
        let def = self.define(&raw, known);
        known.push(RawProvider { problems: Problems::default(), ..raw });
        def.map(ProviderUse::Defined)
    }

    fn by_name(&mut self, entry: &Text, known: &[RawProvider], unknown: &mut bool) -> Option<ProviderUse> {
        let place = || Some(self.source.place(entry.span.clone()));
        if entry.text.contains("://") || !is_plain_name(&entry.text) {
            let message = format!("`{}` is not a provider name", entry.text);
            self.problems.push(
                Problem::error(Code::Value, message)
                    .help("a name has letters, digits, `_` and `-`; a path holds `/` or ends in .yaml")
                    .at(place()),
            );
            return None;
        }
        if let Some(raw) = known.iter().find(|raw| raw.name.text == entry.text) {
            return self.define(raw, known).map(ProviderUse::Defined);
        }
        *unknown = true;
        if let Some(raw) = known.iter().find(|raw| raw.file.file_stem() == Some(entry.text.as_str())) {
            let message = format!("{} defines `{}`, not `{}`", raw.source.shown, raw.name.text, entry.text);
            self.problems.push(
                Problem::warning(Code::ProviderUnknown, message)
                    .help("a provider goes by its `name`; without one here it must exist on the gateway")
                    .at(place()),
            );
        }
        Some(ProviderUse::Existing(entry.text.clone()))
    }

    /// Expands the values of a definition.
    fn define(&mut self, raw: &RawProvider, known: &[RawProvider]) -> Option<ProviderDef> {
        let before = error_count(self.problems);
        raw.problems.0.iter().for_each(|p| self.problems.push(p.clone()));
        for other in known.iter().filter(|o| o.name.text == raw.name.text && o.file != raw.file) {
            self.problems.push(
                Problem::error(Code::Value, format!("the provider `{}` is defined twice", raw.name.text))
                    .help(format!("it is also defined in {}; keep one", raw.source.shown))
                    .at(Some(other.source.place(other.name.span.clone()))),
            );
        }
        let scope = match raw.scope.as_ref().map(|s| s.text.as_str()) {
            Some("gateway") => Scope::Gateway,
            _ => Scope::Run,
        };
        let mut credentials = BTreeMap::new();
        for (key, value) in &raw.credentials {
            if let Some(text) = self.credential(raw, key, value) {
                credentials.insert(key.text.clone(), Secret::new(text));
            }
        }
        let mut config = BTreeMap::new();
        for (key, value) in &raw.config {
            if let Some(text) = self.values.expand(value, &raw.source).accept(self.problems) {
                config.insert(key.text.clone(), text);
            }
        }
        let kind = raw.kind.as_ref()?.text.clone();
        (error_count(self.problems) == before).then(|| ProviderDef {
            name: raw.name.text.clone(),
            kind,
            scope,
            credentials,
            config,
            file: raw.file.clone(),
        })
    }

    /// OpenShell deletes a stored credential when it is sent an empty one, so only a literally empty one may pass.
    fn credential(&mut self, raw: &RawProvider, key: &Text, value: &Text) -> Option<String> {
        let expanded = self.values.expand(value, &raw.source);
        if expanded.has_errors()
            || self.values.is_lenient()
            || value.text.is_empty()
            || !expanded.text.trim().is_empty()
        {
            return expanded.accept(self.problems);
        }
        let names = expanded.names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let message = if names.is_empty() {
            format!("the credential `{}` is blank", key.text)
        } else {
            format!("the credential `{}` expands to nothing: {names} is empty or not set", key.text)
        };
        self.problems.push(
            Problem::error(Code::CredentialEmpty, message)
                .help("set the variable; for a credential that is meant to be empty write \"\"")
                .at(Some(raw.source.place(value.span.clone()))),
        );
        None
    }
}

/// Whether an entry of `providers` names a file.
pub(crate) fn is_path(entry: &str) -> bool {
    let yaml = [".yaml", ".yml"].iter().any(|ext| entry.ends_with(ext));
    entry.contains('/') || yaml
}

fn error_count(problems: &Problems) -> usize {
    problems.0.iter().filter(|p| p.severity == Severity::Error).count()
}

/// The YAML files of a directory, sorted; none when there is no such directory.
pub(crate) fn yaml_files(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .map(camino::Utf8DirEntry::into_path)
        .filter(|path| matches!(path.extension(), Some("yaml" | "yml")) && path.is_file())
        .filter(|path| !path.file_name().is_some_and(|name| name.starts_with('.')))
        .collect();
    files.sort();
    files
}

fn read_dir(dir: &Utf8Path) -> (Vec<RawProvider>, Vec<Problem>) {
    let mut known = Vec::new();
    let mut broken = Vec::new();
    for file in yaml_files(dir) {
        match read(&file) {
            Ok(raw) => known.push(raw),
            Err(problems) => broken.extend(problems.0),
        }
    }
    (known, broken)
}

/// The mistakes of one provider file.
pub(crate) fn check(file: &Utf8Path) -> Problems {
    match read(file) {
        Ok(raw) => raw.problems,
        Err(problems) => problems,
    }
}

/// Reads one provider file. Without a usable name there is no definition.
fn read(file: &Utf8Path) -> Result<RawProvider, Problems> {
    let source = Source::read(file, Code::FileMissing).map_err(|p| Problems(vec![p]))?;
    // A file may hold a literal secret, so excerpts show keys and variable names only, until it is known better.
    let source = source.masked(|text| Some(mask(text, &[])));
    let mut problems = Problems::default();
    let node = yaml::parse(&source, &mut problems).map_err(|p| Problems(vec![p]))?;
    let mut reader = Reader::new(&source, &mut problems);
    let Some(mut fields) = reader.document(node, "the provider file") else { return Err(problems) };
    let span = fields.span.clone();
    let name = reader.text_not_empty(&mut fields, "name");
    let kind = reader.text_not_empty(&mut fields, "type");
    let scope = reader.text_not_empty(&mut fields, "scope");
    let credentials = reader.text_map(&mut fields, "credentials");
    let config = reader.text_map(&mut fields, "config");
    reader.finish(fields, Level::Provider);
    for (key, value) in [("name", &name), ("type", &kind)] {
        match value {
            None => reader.required(&(span.start..span.start), key, "the provider file"),
            Some(text) if !is_id(&text.text) => {
                let message = format!("`{key}` is not made of letters, digits, `_` and `-`");
                reader.error(Code::Value, &text.span, message, "begin with a letter or digit");
            }
            Some(_) => {}
        }
    }
    check_scope(&mut reader, scope.as_ref());
    check_keys(&mut reader, &credentials, &config);
    let Some(name) = name.filter(|n| is_id(&n.text)) else { return Err(problems) };
    let plain = [Some(&name), kind.as_ref(), scope.as_ref()];
    let keep: Vec<_> =
        plain.into_iter().flatten().chain(config.iter().map(|(_, v)| v)).map(|t| t.span.clone()).collect();
    let source = source.masked(|text| Some(mask(text, &keep)));
    Ok(RawProvider { name, kind, scope, credentials, config, source, file: file.to_owned(), problems })
}

fn check_scope(reader: &mut Reader<'_>, scope: Option<&Text>) {
    let Some(scope) = scope.filter(|s| !matches!(s.text.as_str(), "run" | "gateway")) else { return };
    let help = match nearest(&scope.text, ["run", "gateway"]) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write `run` (an instance per run) or `gateway` (one that runs share)".to_owned(),
    };
    reader.error(Code::Value, &scope.span, "`scope` is neither `run` nor `gateway`", help);
}

fn check_keys(reader: &mut Reader<'_>, credentials: &[(Text, Text)], config: &[(Text, Text)]) {
    for (key, value) in credentials {
        if !is_name(&key.text) {
            let message = format!("`{}` is not a name for a credential", key.text);
            reader.error(Code::Value, &key.span, message, "use letters, digits and `_`, no digit first");
        } else if RESERVED.contains(&key.text.to_ascii_uppercase().as_str()) {
            let message = format!("a credential cannot be called `{}`", key.text);
            reader.error(
                Code::Value,
                &key.span,
                message,
                "the name has a meaning of its own for every program",
            );
        }
        nul(reader, value);
    }
    for (key, value) in config {
        if key.text.is_empty() || key.text.starts_with('-') || key.text.contains(['=', '\0', '\n']) {
            let message = format!("`{}` is not a name for a setting", key.text.escape_default());
            reader.error(Code::Value, &key.span, message, "use letters, digits and `_`");
        }
        nul(reader, value);
    }
}

fn nul(reader: &mut Reader<'_>, value: &Text) {
    if value.text.contains('\0') {
        reader.error(Code::Value, &value.span, "the value holds a NUL byte", "no program can be given one");
    }
}

/// Masks values: keys, variable references and `keep` stay.
fn mask(text: &str, keep: &[Range<usize>]) -> String {
    let mut visible: Vec<Range<usize>> = keep.to_vec();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = line.len() - line.trim_start_matches([' ', '-']).len();
        let body = &line[start..];
        if let Some((key, rest)) = body.split_once(':')
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"'".contains(c))
            && rest.chars().next().is_none_or(char::is_whitespace)
        {
            visible.push(at..at + start + key.len() + 1);
        }
        visible.push(at..at + start);
        at += line.len();
    }
    for (dollar, _) in text.match_indices('$') {
        if let (Reference::Variable { .. }, len) = reference(&text[dollar..]) {
            visible.push(dollar..dollar + len);
        }
    }
    visible.extend(text.match_indices(' ').map(|(at, _)| at..at + 1));
    stars(text, &visible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_hide_literal_credentials() {
        let text =
            "name: p\ncredentials:\n  A: ${TOKEN}\n  B: s3cr3t # x\n  C: |\n    -----BEGIN\n    MII+a/b=\n";
        let masked = mask(text, &std::iter::once(6..7).collect::<Vec<_>>());
        assert_eq!(masked.len(), text.len());
        assert!(
            masked.starts_with("name: p\ncredentials:\n  A: ${TOKEN}\n  B: ****** * *\n  C: *\n"),
            "{masked}"
        );
        for secret in ["s3cr3t", "BEGIN", "MII"] {
            assert!(!masked.contains(secret), "{masked}");
        }
    }

    #[test]
    fn paths_and_names() {
        assert!(is_path("a/b") && is_path("x.yaml") && is_path("x.yml") && !is_path("x"));
    }
}
