//! Provider profiles: the files that `openshell.profiles` names, and those of `profiles/` whose id is the type of
//! a provider in use. OpenShell owns the format; only `id` is read here.

use camino::{Utf8Path, Utf8PathBuf};

use super::check::{Files, Kind, Named, is_id};
use super::model::{Profile, ProviderUse};
use super::problem::{Problem, Problems, Severity};
use super::provider::yaml_files;
use super::reader::{Reader, Text};
use super::remote::is_url;
use super::source::Source;
use super::yaml;
use crate::error::Code;

/// Resolves the profiles of a run.
pub(crate) fn resolve(
    paths: &[Text],
    providers: &[ProviderUse],
    files: &Files,
    source: &Source,
    problems: &mut Problems,
) -> Vec<Profile> {
    let mut out: Vec<Profile> = Vec::new();
    for entry in paths {
        let place = Some(source.place(entry.span.clone()));
        if !is_url(&entry.text) && !matches!(Utf8Path::new(&entry.text).extension(), Some("yaml" | "yml")) {
            let message = format!("the profile `{}` is not a .yaml file", entry.text);
            problems.push(Problem::error(Code::Value, message).help("name a .yaml or .yml file").at(place));
            continue;
        }
        let named = Named {
            key: "openshell.profiles",
            path: &entry.text,
            shown: &entry.text,
            span: entry.span.clone(),
            free: false,
        };
        // The gateway may have it already; a provider whose profile is nowhere stops a run before its sandbox.
        if let Ok(path) = files.resolve(&named)
            && let Some(why) = absent(&path)
        {
            let message = format!("`openshell.profiles` names `{}`: {why}", entry.text);
            let help = "it is not imported, so the gateway must have it; add the file, or remove the entry";
            problems.push(Problem::warning(Code::FileMissing, message).help(help).at(place));
            continue;
        }
        let Some(file) = files.check(&named, Kind::File, source, problems) else { continue };
        match read_once(&file, files) {
            Ok(profile) => add(&mut out, profile, problems, entry, source),
            Err(found) => found.0.into_iter().for_each(|p| problems.push(p)),
        }
    }
    from_directory(&mut out, providers, files, problems);
    out
}

/// Why there is nothing to import.
fn absent(path: &Utf8Path) -> Option<&'static str> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("it does not exist"),
        Ok(meta) if meta.is_file() && meta.len() == 0 => Some("it is empty"),
        _ => None,
    }
}

fn add(out: &mut Vec<Profile>, profile: Profile, problems: &mut Problems, entry: &Text, source: &Source) {
    match out.iter().find(|other| other.id == profile.id) {
        None => out.push(profile),
        Some(other) if other.file == profile.file => {}
        Some(other) => problems.push(
            Problem::error(Code::Value, format!("two profiles have the id `{}`", profile.id))
                .help(format!("the other is {}; keep one", super::source::shown(&other.file)))
                .at(Some(source.place(entry.span.clone()))),
        ),
    }
}

fn from_directory(out: &mut Vec<Profile>, providers: &[ProviderUse], files: &Files, problems: &mut Problems) {
    let mut wanted: Vec<&str> = Vec::new();
    for used in providers {
        if let ProviderUse::Defined(def) = used
            && !out.iter().any(|p| p.id == def.kind)
            && !wanted.contains(&def.kind.as_str())
        {
            wanted.push(&def.kind);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let mut broken = Vec::new();
    let mut found: Vec<Profile> = Vec::new();
    for file in yaml_files(&files.dir.join("profiles")) {
        match read_once(&file, files) {
            Ok(profile) if !wanted.contains(&profile.id.as_str()) => {}
            Ok(profile) => match found.iter().find(|other| other.id == profile.id) {
                None => found.push(profile),
                Some(other) => broken.push(
                    Problem::error(Code::Value, format!("two profiles have the id `{}`", profile.id))
                        .help(format!("the other is {}; keep one", super::source::shown(&other.file)))
                        .at(Some(super::source::whole_file(&super::source::shown(&profile.file)))),
                ),
            },
            Err(problems) => broken.extend(problems.0),
        }
    }
    // A file that cannot be read may be the one that is looked for; otherwise it must not stop the run.
    let complete = wanted.iter().all(|id| found.iter().any(|p| p.id == *id));
    for mut problem in broken {
        if complete && problem.code != Code::Value {
            problem.severity = Severity::Warning;
        }
        problems.push(problem);
    }
    out.extend(found);
}

fn read_once(file: &Utf8Path, files: &Files) -> Result<Profile, Problems> {
    files.read.profiles.borrow_mut().entry(file.to_owned()).or_insert_with(|| read(file)).clone()
}

/// Reads one profile.
pub(crate) fn read(file: &Utf8Path) -> Result<Profile, Problems> {
    let source = Source::read(file, Code::FileMissing).map_err(|p| Problems(vec![p]))?;
    let mut problems = Problems::default();
    let node = yaml::parse(&source, &mut problems).map_err(|p| Problems(vec![p]))?;
    let mut reader = Reader::new(&source, &mut problems);
    let Some(mut fields) = reader.document(node, "the profile") else { return Err(problems) };
    match reader.text_not_empty(&mut fields, "id") {
        Some(id) if is_id(&id.text) => {
            if problems.has_errors() {
                return Err(problems);
            }
            return Ok(Profile { id: id.text, file: Utf8PathBuf::from(file) });
        }
        Some(id) => {
            let help = "use letters, digits, `_` and `-`; begin with a letter or digit";
            reader.error(Code::Value, &id.span, format!("`{}` is not a profile id", id.text), help);
        }
        None if !reader.problems.has_errors() => {
            let place = Some(reader.source.whole());
            let help = "add `id:`; it is the `type` of the providers that use the profile";
            reader
                .problems
                .push(Problem::error(Code::Required, "`id` is missing in the profile").help(help).at(place));
        }
        None => {}
    }
    Err(problems)
}
