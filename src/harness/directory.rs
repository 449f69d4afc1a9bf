//! The harness directory: where it is, and which agents it has.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::check::{Files, Kind, Named, is_agent_name};
use super::config::Config;
use super::keys::nearest;
use super::load::files;
use super::problem::{Problem, Problems};
use super::provider::yaml_files;
use super::raw;
use super::remote::{Authority, Fetched, is_url};
use super::source::{Source, io_text, shown, whole_file};
use crate::error::{Code, Error, Result};

/// One agent of a directory, for listing.
#[derive(Debug, Clone, Serialize)]
pub struct AgentSummary {
    /// The name that `fullsend run` takes.
    pub name: String,
    /// What the agent is for.
    pub description: Option<String>,
    /// The harness file.
    pub file: Utf8PathBuf,
    /// Why the file cannot be used, when that shows at first sight.
    #[serde(skip)]
    pub problem: Option<Problem>,
}

/// Finds the harness directory: the explicit one, else the nearest `.fullsend/` upwards from `cwd` that has a
/// `harness/` directory, else `cwd` itself when it has one. The result is absolute.
pub fn find_dir(explicit: Option<&Utf8Path>, cwd: &Utf8Path) -> Result<Utf8PathBuf> {
    if let Some(dir) = explicit {
        return explicit_dir(&cwd.join(dir), dir);
    }
    let mut empty = None;
    for up in cwd.ancestors() {
        let dir = up.join(".fullsend");
        if dir.join("harness").is_dir() {
            return Ok(dir);
        }
        if dir.is_dir() {
            empty.get_or_insert(dir);
        }
    }
    if cwd.join("harness").is_dir() {
        return Ok(cwd.to_owned());
    }
    Err(match empty {
        Some(dir) => Error::new(Code::DirMissing, format!("{} has no `harness` directory", shown(&dir)))
            .help("add harness/NAME.yaml there, or give another directory with --fullsend-dir"),
        None => Error::new(Code::DirMissing, format!("no harness directory was found from {cwd} upwards"))
            .help("give one with --fullsend-dir, or create .fullsend/harness/NAME.yaml in your repository"),
    })
}

fn explicit_dir(dir: &Utf8Path, given: &Utf8Path) -> Result<Utf8PathBuf> {
    let (why, help) = match std::fs::metadata(dir) {
        Err(error) => {
            (format!("`{given}` cannot be used: {}", io_text(&error)), "correct --fullsend-dir".to_owned())
        }
        Ok(meta) if !meta.is_dir() => {
            (format!("`{given}` is not a directory"), "give the directory that holds `harness/`".to_owned())
        }
        Ok(_) if dir.join("harness").is_dir() => return Ok(tidy(dir)),
        Ok(_) if dir.join(".fullsend/harness").is_dir() => (
            format!("`{given}` has no `harness` directory"),
            format!("did you mean --fullsend-dir {}?", given.join(".fullsend")),
        ),
        Ok(_) => (
            format!("`{given}` has no `harness` directory"),
            "give the directory that holds `harness/`".to_owned(),
        ),
    };
    Err(Error::new(Code::DirMissing, why).help(help))
}

/// Drops `.` parts and trailing slashes, so that messages read well; `..` stays, it may follow a link.
fn tidy(dir: &Utf8Path) -> Utf8PathBuf {
    dir.components().collect()
}

/// The agents of a directory, by name: those of `harness/` and those of the registry. One that is broken or
/// switched off is listed with its problem.
pub fn list_agents(dir: &Utf8Path) -> Result<Vec<AgentSummary>> {
    can_be_listed(dir)?;
    let mut problems = Problems::default();
    let config = Config::read(dir, &mut problems);
    if problems.has_errors() {
        return Err(Error::problems(problems));
    }
    let files = files(dir, &config, &Fetched::default(), &mut problems);
    let mut out: Vec<AgentSummary> = Vec::new();
    for (name, file) in names(dir, &config) {
        let found = match registered(&name, &files, &config) {
            // What is elsewhere is not fetched for a list.
            Some(Err(problem)) if is_remote(&name, &config) && problem.code == Code::RemoteUnpinned => {
                Ok(None)
            }
            Some(found) => found,
            None if is_agent_name(&name) => Ok(Some(file.clone())),
            None => Err(bad_name(&name).at(Some(whole_file(&shown(&file))))),
        };
        let read = found.and_then(|found| {
            let Some(file) = found else { return Ok((None, file.clone())) };
            let source = Source::read(&file, Code::FileMissing)?;
            Ok((raw::description(&source)?, file))
        });
        out.push(match read {
            Ok((description, file)) => AgentSummary { name, description, file, problem: None },
            Err(problem) => AgentSummary { name, description: None, file, problem: Some(problem) },
        });
    }
    Ok(out)
}

/// Whether the directory has harnesses to list.
pub(crate) fn can_be_listed(dir: &Utf8Path) -> Result<()> {
    let harness = dir.join("harness");
    std::fs::read_dir(&harness).map(drop).map_err(|error| {
        Error::new(Code::DirMissing, format!("{} cannot be listed: {}", shown(&harness), io_text(&error)))
            .help("make it readable, or give another directory that holds `harness/` with --fullsend-dir")
    })
}

/// Names of agents with the file that each would have by its name, sorted.
pub(crate) fn names(dir: &Utf8Path, config: &Config) -> BTreeMap<String, Utf8PathBuf> {
    let mut out = BTreeMap::new();
    for agent in &config.agents {
        let name = &agent.name.text;
        if !out.keys().any(|known: &String| known.eq_ignore_ascii_case(name)) {
            out.insert(name.clone(), dir.join(&agent.source.text));
        }
    }
    // A file that the registry knows under another name is no second agent.
    let taken: Vec<_> = config.agents.iter().map(|agent| dir.join(&agent.source.text)).collect();
    for file in yaml_files(&dir.join("harness")).into_iter().filter(|file| !taken.contains(file)) {
        let name = file.file_stem().unwrap_or_default().to_owned();
        // `.yaml` sorts before `.yml` and is the one that a run uses.
        if !out.keys().any(|known| known.eq_ignore_ascii_case(&name)) {
            out.insert(name, file);
        }
    }
    out
}

fn is_remote(name: &str, config: &Config) -> bool {
    config.agent(name).is_some_and(|agent| is_url(&agent.source.text))
}

/// The file of an agent that the registry has; `Ok(None)` when it has to be fetched first.
pub(crate) fn registered(
    name: &str,
    files: &Files,
    config: &Config,
) -> Option<Result<Option<Utf8PathBuf>, Problem>> {
    let agent = config.agent(name)?;
    let source = config.source.as_ref()?;
    if !agent.enabled {
        let problem = Problem::error(Code::AgentUnknown, format!("the agent `{name}` is switched off"))
            .help("config.yaml says `enabled: false`")
            .at(Some(source.place(agent.name.span.clone())));
        return Some(Err(problem));
    }
    let named = Named {
        key: "source",
        path: &agent.source.text,
        shown: &agent.source.text,
        span: agent.source.span.clone(),
        free: false,
    };
    let mut problems = Problems::default();
    if is_url(&agent.source.text) {
        let remote = files.remote.for_agent(name);
        let file = remote.check(&named, Kind::File, Authority::Config, source, &mut problems);
        return Some(problems.0.pop().map_or(Ok(file), Err));
    }
    let inside = Utf8Path::new(&agent.source.text).is_relative();
    let file = files.check(&named, Kind::File, source, &mut problems);
    Some(match (file, problems.0.pop()) {
        (Some(file), _) if inside || file.starts_with(&files.dir) => Ok(Some(file)),
        (_, Some(problem)) => Err(problem),
        (_, None) => Err(Problem::error(
            Code::PathEscape,
            format!("`source` names `{}`, which leads outside the harness directory", agent.source.text),
        )
        .help("give a path below the harness directory")
        .at(Some(source.place(agent.source.span.clone())))),
    })
}

/// What to say about a file whose name cannot be an agent's.
pub(crate) fn bad_name(name: &str) -> Problem {
    Problem::error(Code::AgentUnknown, format!("`{}` is not an agent name", name.escape_default()))
        .help("a name has letters, digits, `_`, `-` and inner dots")
}

/// The harness file of an agent: that of the registry, else `harness/NAME.yaml`, else `harness/NAME.yml`. `None`
/// when it has to be fetched first.
pub(crate) fn harness_file(
    files: &Files,
    agent: &str,
    config: &Config,
    problems: &mut Problems,
) -> Result<Option<Utf8PathBuf>> {
    let dir = files.dir.as_path();
    if !dir.join("harness").is_dir() {
        return Err(Error::new(Code::DirMissing, format!("`{}` has no `harness` directory", shown(dir)))
            .help("give the directory that holds `harness/` with --fullsend-dir"));
    }
    if !is_agent_name(agent) {
        let stem = Utf8Path::new(agent).file_stem().unwrap_or_default();
        let error =
            Error::new(Code::AgentUnknown, format!("`{}` is not an agent name", agent.escape_default()));
        let meant = is_agent_name(stem) && dir.join("harness").join(format!("{stem}.yaml")).is_file();
        return Err(error.help(if meant {
            format!("give the name alone: fullsend run {stem}")
        } else {
            "a name has letters, digits, `_`, `-` and inner dots; `fullsend list` shows them".to_owned()
        }));
    }
    if let Some(found) = registered(agent, files, config) {
        return found.map_err(|problem| Error::problems(Problems(vec![problem])));
    }
    let [file, short] = ["yaml", "yml"].map(|ext| dir.join("harness").join(format!("{agent}.{ext}")));
    match (exists(&file), exists(&short)) {
        (true, true) => {
            problems.push(
                Problem::warning(Code::Value, format!("{agent}.yaml and {agent}.yml both exist"))
                    .help("the .yaml file is used; remove the other")
                    .at(Some(whole_file(&shown(&short)))),
            );
            Ok(Some(file))
        }
        (true, false) => Ok(Some(file)),
        (false, true) => Ok(Some(short)),
        (false, false) => {
            can_be_listed(dir)?;
            Err(unknown_agent(dir, agent, config))
        }
    }
}

fn exists(path: &Utf8Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn unknown_agent(dir: &Utf8Path, agent: &str, config: &Config) -> Error {
    let error = Error::new(Code::AgentUnknown, format!("{} has no agent `{agent}`", shown(dir)));
    let names: Vec<String> = names(dir, config).into_keys().filter(|name| is_agent_name(name)).collect();
    error.help(match nearest(agent, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => format!("it has no agents yet; add harness/{agent}.yaml"),
        None => format!("it has: {}", names.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Utf8PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(temp.path().canonicalize().unwrap()).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (temp, root)
    }

    #[test]
    fn the_nearest_directory_with_a_harness_wins() {
        let (_t, root) = tree(&[
            (".fullsend/harness/a.yaml", ""),
            ("r/.fullsend/harness/a.yaml", ""),
            ("r/empty/.fullsend/cache", ""),
            ("r/plain/harness/a.yaml", ""),
        ]);
        let find = |cwd: &str| find_dir(None, &root.join(cwd)).unwrap();
        assert_eq!(find("r/empty"), root.join("r/.fullsend"));
        assert_eq!(find("r/plain"), root.join("r/.fullsend"));
        assert_eq!(find(""), root.join(".fullsend"));
        assert_eq!(find_dir(Some(Utf8Path::new("./plain/")), &root.join("r")).unwrap(), root.join("r/plain"));
    }

    #[test]
    fn without_dot_fullsend_the_working_directory_counts() {
        let (_t, root) = tree(&[("harness/a.yaml", ""), ("sub/x", "")]);
        assert_eq!(find_dir(None, &root).unwrap(), root);
        assert_eq!(find_dir(None, &root.join("sub")).unwrap_err().code(), Code::DirMissing);
    }

    #[test]
    fn a_wrong_explicit_directory_says_why() {
        let (_t, root) = tree(&[("file", ""), ("repo/.fullsend/harness/a.yaml", ""), ("none/x", "")]);
        for (dir, part) in [
            ("missing", "does not exist"),
            ("file", "not a directory"),
            ("none", "no `harness`"),
            ("repo", "no `harness`"),
        ] {
            let error = find_dir(Some(Utf8Path::new(dir)), &root).unwrap_err();
            assert_eq!(error.code(), Code::DirMissing);
            assert!(error.message().contains(part), "{error}");
        }
        let error = find_dir(Some(Utf8Path::new("repo")), &root).unwrap_err();
        assert!(error.help_text().contains("repo/.fullsend"), "{}", error.help_text());
    }

    #[test]
    fn broken_files_are_listed_too() {
        let (_t, root) = tree(&[
            ("harness/b.yaml", "description: ' two '\nagent: x\n"),
            ("harness/b.yml", "description: other\n"),
            ("harness/a.yml", "agent: [\n"),
            ("harness/c d.yaml", "agent: x\n"),
            ("harness/e.yaml", "- list\n"),
            ("harness/f.yaml", "agent: x\nwhatever: 1\n"),
            ("harness/README.md", ""),
            ("harness/.hidden.yaml", ""),
        ]);
        let agents = list_agents(&root).unwrap();
        let names: Vec<_> = agents.iter().map(|a| (a.name.as_str(), a.problem.is_some())).collect();
        assert_eq!(names, [("a", true), ("b", false), ("c d", true), ("e", true), ("f", false)]);
        assert_eq!(agents[1].description.as_deref(), Some("two"));
        assert_eq!(list_agents(&root.join("none")).unwrap_err().code(), Code::DirMissing);
    }

    #[test]
    fn an_unknown_agent_gets_advice() {
        let (_t, root) = tree(&[("harness/triage.yaml", ""), ("harness/old.yml", "")]);
        let files = Files::new(&root, super::super::remote::Remote::default());
        let ask = |name: &str| harness_file(&files, name, &Config::default(), &mut Problems::default());
        assert_eq!(ask("triage").unwrap().unwrap(), root.join("harness/triage.yaml"));
        assert_eq!(ask("old").unwrap().unwrap(), root.join("harness/old.yml"));
        for (name, help) in [
            ("traige", "did you mean `triage`?"),
            ("zebra", "it has: old, triage"),
            ("harness/triage.yaml", "give the name alone: fullsend run triage"),
            ("../x", "`fullsend list`"),
            ("", "`fullsend list`"),
        ] {
            let error = ask(name).unwrap_err();
            assert_eq!(error.code(), Code::AgentUnknown);
            assert!(error.help_text().contains(help), "{name}: {}", error.help_text());
        }
    }
}
