//! Paths and files that a harness names.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::model::Profile;
use super::problem::{Problem, Problems};
use super::provider::RawProvider;
use super::remote::{Authority, Remote, is_url};
use super::source::{Source, io_text, shown};
use super::yaml::Node;
use crate::agent::runtime::WORKSPACE;
use crate::error::Code;

/// What a path must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file that can be read.
    File,
    /// A directory that can be listed.
    Dir,
}

/// Where a path came from, for its problems.
#[derive(Debug, Clone)]
pub(crate) struct Named<'a> {
    /// The key that names the path.
    pub(crate) key: &'a str,
    /// The path as it is to be resolved.
    pub(crate) path: &'a str,
    /// The path as messages show it.
    pub(crate) shown: &'a str,
    /// Its place in the source.
    pub(crate) span: Range<usize>,
    /// Whether the path may lead outside, because a variable gave its start.
    pub(crate) free: bool,
}

/// Resolves paths against the harness directory.
#[derive(Debug)]
pub(crate) struct Files {
    /// The absolute harness directory.
    pub(crate) dir: Utf8PathBuf,
    /// The same with links resolved.
    real: Utf8PathBuf,
    /// What is elsewhere.
    pub(crate) remote: Remote,
    /// What was read already: one look at a directory reads each of its files once.
    pub(crate) read: Rc<Memory>,
}

/// A file as a tree and a text, or why it is none.
pub(crate) type Parsed = Result<(Node, Source), Problem>;

/// Files that were read, and what was found in them.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Harness files and bases.
    pub(crate) layers: RefCell<HashMap<Utf8PathBuf, (Parsed, Problems)>>,
    /// The definitions of `providers/`.
    pub(crate) providers: OnceCell<(Vec<RawProvider>, Vec<Problem>)>,
    /// Profiles.
    pub(crate) profiles: RefCell<HashMap<Utf8PathBuf, Result<Profile, Problems>>>,
    /// Policies and schemas with what is wrong with them.
    judged: RefCell<HashMap<Utf8PathBuf, Problems>>,
    /// Files that were looked at besides.
    seen: RefCell<HashSet<Utf8PathBuf>>,
}

impl Memory {
    /// Whether a file was not asked about before.
    pub(crate) fn is_new(&self, path: &Utf8Path) -> bool {
        !self.seen.borrow().contains(path) && self.seen.borrow_mut().insert(path.to_owned())
    }

    /// What `judge` finds in a file, which it is asked for once.
    pub(crate) fn judged(
        &self,
        path: &Utf8Path,
        problems: &mut Problems,
        judge: fn(&Utf8Path, &mut Problems),
    ) {
        let mut judged = self.judged.borrow_mut();
        let found = judged.entry(path.to_owned()).or_insert_with(|| {
            let mut found = Problems::default();
            judge(path, &mut found);
            found
        });
        problems.0.extend(found.0.iter().cloned());
    }
}

impl Files {
    /// Files of the harness directory `dir`, and of elsewhere.
    pub(crate) fn new(dir: &Utf8Path, remote: Remote) -> Self {
        let real = dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
        Self { dir: dir.to_owned(), real, remote, read: Rc::default() }
    }

    /// The same for another agent.
    pub(crate) fn for_agent(&self, agent: &str) -> Self {
        Self {
            dir: self.dir.clone(),
            real: self.real.clone(),
            remote: self.remote.for_agent(agent),
            read: Rc::clone(&self.read),
        }
    }

    /// Resolves a path and checks that it is there, is of the right kind, can be read, and stays inside the
    /// directory. An absolute path is the author's explicit wish and may lead anywhere. A URL is looked up in what
    /// is at hand; without a new problem it has been noted as missing.
    pub(crate) fn check(
        &self,
        named: &Named<'_>,
        kind: Kind,
        source: &Source,
        problems: &mut Problems,
    ) -> Option<Utf8PathBuf> {
        if is_url(named.path) {
            return self.remote.check(named, kind, Authority::Harness, source, problems);
        }
        match self.resolve(named).and_then(|path| self.inspect(named, &path, kind).map(|()| path)) {
            Ok(path) => Some(path),
            Err(problem) => {
                problems.push(problem.at(Some(source.place(named.span.clone()))));
                None
            }
        }
    }

    /// The absolute path, by its text alone.
    pub(crate) fn resolve(&self, named: &Named<'_>) -> Result<Utf8PathBuf, Problem> {
        let Named { key, path, shown, .. } = named;
        if is_url(path) {
            return Err(Problem::error(Code::RemoteUrl, format!("`{key}` is a URL, not a path")));
        }
        if path.chars().any(char::is_control) {
            return Err(Problem::error(Code::Value, format!("`{key}` holds a control character"))
                .help("give a plain path"));
        }
        if Utf8Path::new(path).is_absolute() {
            return Ok(Utf8PathBuf::from(path));
        }
        match normal(path) {
            Some(inside) => Ok(self.dir.join(inside)),
            None if named.free => Ok(self.dir.join(path)),
            None => Err(self.escape(key, shown, "")),
        }
    }

    fn inspect(&self, named: &Named<'_>, path: &Utf8Path, kind: Kind) -> Result<(), Problem> {
        let Named { key, shown: text, .. } = named;
        let missing = |why: String| {
            let message = format!("`{key}` names `{text}`: {why}");
            let at = if named.free || Utf8Path::new(named.path).is_absolute() {
                String::new()
            } else {
                format!("; it was looked for at {}", shown(path))
            };
            Problem::error(Code::FileMissing, message)
                .help(format!("create it, or correct the path or its rights{at}"))
        };
        let real = path.canonicalize().map_err(|error| missing(io_text(&error)))?;
        if !named.free && !Utf8Path::new(named.path).is_absolute() && !real.starts_with(&self.real) {
            return Err(self.escape(key, text, " through a symbolic link"));
        }
        let meta = std::fs::metadata(&real).map_err(|error| missing(io_text(&error)))?;
        match kind {
            Kind::File if !meta.is_file() => {
                let what = if meta.is_dir() { "a directory" } else { "not a regular file" };
                Err(Problem::error(Code::FileType, format!("`{key}` names `{text}`, which is {what}"))
                    .help("name a file"))
            }
            Kind::Dir if !meta.is_dir() => Err(Problem::error(
                Code::FileType,
                format!("`{key}` names `{text}`, which is not a directory"),
            )
            .help("name a directory")),
            Kind::File => std::fs::File::open(&real)
                .map(drop)
                .map_err(|e| missing(format!("it cannot be read: {}", io_text(&e)))),
            Kind::Dir => std::fs::read_dir(&real)
                .map(drop)
                .map_err(|e| missing(format!("it cannot be listed: {}", io_text(&e)))),
        }
    }

    fn escape(&self, key: &str, text: &str, how: &str) -> Problem {
        let message = format!("`{key}` names `{text}`, which leads outside the harness directory{how}");
        let help = format!(
            "relative paths start at {} and stay inside; keep a copy there, or give an absolute path",
            shown(&self.dir)
        );
        Problem::error(Code::PathEscape, message).help(help)
    }
}

/// A relative path without `.` and `..`; `None` when it leaves its start.
pub(crate) fn normal(path: &str) -> Option<Utf8PathBuf> {
    let mut out = Utf8PathBuf::new();
    for part in Utf8Path::new(path).components() {
        match part {
            Utf8Component::Normal(part) => out.push(part),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir if out.pop() => {}
            Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Places in the sandbox that the runner writes itself; a delivered file would be lost or would break the run.
/// `(path, whole tree)`
const OWNED: [(&str, bool); 13] = [
    ("/", false),
    ("/sandbox", false),
    ("/sandbox/claude-config", false),
    ("/sandbox/claude-config/agents", false),
    ("/sandbox/claude-config/skills", false),
    ("/sandbox/workspace", false),
    ("/sandbox/workspace/.env", true),
    ("/sandbox/workspace/.env.d", false),
    ("/sandbox/workspace/.fullsend", true),
    ("/tmp", false),
    ("/dev", true),
    ("/proc", true),
    ("/sys", true),
];

/// Checks a destination in the sandbox and returns it in its shortest form: absolute, no `..`, a file name at the
/// end, nothing that the runner owns. `/tmp/workspace` is another name of the workspace.
pub(crate) fn dest(text: &str) -> Result<String, (String, &'static str)> {
    let fail = |why: &str, help| Err((format!("`dest` {why}"), help));
    if text.chars().any(char::is_control) {
        return fail("holds a control character", "give a plain path");
    }
    if text.contains("${") {
        return fail("holds a variable, but destinations are not expanded", "write the path out");
    }
    if !text.starts_with('/') {
        return fail("is not an absolute path", "begin it with `/`, for example `/sandbox/workspace/NAME`");
    }
    if text.split('/').any(|part| part == "..") {
        return fail("holds `..`", "write the path out");
    }
    if text.ends_with('/') || text.ends_with("/.") {
        return fail("names a directory", "add the file name");
    }
    let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let path = format!("/{}", parts.join("/"));
    if path.split('/').any(|part| part.len() > 255) || path.len() > 4000 {
        return fail("is too long", "shorten it");
    }
    let real = match path.strip_prefix("/tmp/workspace") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{WORKSPACE}{rest}"),
        _ => path.clone(),
    };
    let owned = OWNED.iter().find(|(owned, tree)| {
        real == *owned || (*tree && real.strip_prefix(owned).is_some_and(|rest| rest.starts_with('/')))
    });
    match owned {
        Some((owned, _)) => Err((
            format!("`dest` is `{owned}`, which belongs to the runner or the system"),
            "choose another place; files to be sourced go to `/sandbox/workspace/.env.d/NAME.env`",
        )),
        None => Ok(path),
    }
}

/// The destination with the workspace under its one name, for comparing destinations.
pub(crate) fn dest_key(path: &str) -> String {
    match path.strip_prefix("/tmp/workspace") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{WORKSPACE}{rest}"),
        _ => path.to_owned(),
    }
}

/// `[A-Za-z0-9_-]+`: names of agents and providers.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// A name of an agent: a plain name that may have dots inside.
pub(crate) fn is_agent_name(name: &str) -> bool {
    name.split('.').all(is_plain_name)
}

/// `[A-Za-z0-9][A-Za-z0-9_-]*`: slugs, names and types of providers, ids of profiles.
pub(crate) fn is_id(name: &str) -> bool {
    is_plain_name(name) && name.as_bytes()[0].is_ascii_alphanumeric()
}

/// `[a-z][a-z0-9_-]*` without `--`: roles.
pub(crate) fn is_role(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && !name.contains("--")
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// `[A-Za-z0-9_.@-]+`: models.
pub(crate) fn is_model(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.@-".contains(&b))
}

/// A model as OpenCode names it: `provider/model`, and the model may have further slashes.
pub(crate) fn is_model_of_provider(name: &str) -> bool {
    name.contains('/') && name.split('/').all(is_model)
}

/// What can stand after `--from`: one word that is no option. OpenShell decides what it names.
pub(crate) fn is_image(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && !name.contains(['$', '`', '"', '\''])
        && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn destinations() {
        for good in [
            "/tmp/x",
            "/sandbox/workspace/.env.d/a.env",
            "/tmp/workspace/.gcp.json",
            "/sandbox/.config/a b",
            "/sandbox/workspace/.envrc",
            "/sandbox/claude-config/settings.json",
        ] {
            assert_eq!(dest(good).as_deref(), Ok(good));
        }
        assert_eq!(dest("//tmp/./a//b").as_deref(), Ok("/tmp/a/b"));
        for bad in [
            "",
            "rel",
            "./x",
            "~/x",
            "/",
            "/a/../b",
            "/..",
            "/a/",
            "/a/.",
            "/a\nb",
            "/a\0b",
            "/${X}",
            "/sandbox/workspace/.env",
            "/tmp/workspace/.env",
            "/sandbox//workspace/./.env",
            "/sandbox/workspace",
            "/tmp/workspace",
            "/sandbox/workspace/.fullsend/x",
            "/tmp/workspace/.fullsend/x",
            "/proc/1/mem",
            "/dev/x",
        ] {
            assert!(dest(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn name_patterns() {
        assert!(is_id("a-b_C1") && !is_id("-a") && !is_id("") && !is_id("a.b") && !is_id("é"));
        assert!(
            is_role("code-fix_2") && !is_role("Code") && !is_role("a--b") && !is_role("2a") && !is_role("")
        );
        assert!(
            is_model("claude-opus-4@20250101.x") && !is_model("a/b") && !is_model("a b") && !is_model("")
        );
        assert!(
            is_image("quay.io/o/i:latest@sha256:00")
                && is_image("./dir")
                && !is_image("-x")
                && !is_image("a b")
        );
    }

    #[test]
    fn relative_paths_stay_inside() {
        for (path, want) in [
            ("a/b", Some("a/b")),
            ("./a/../b", Some("b")),
            ("a/..", Some("")),
            ("..", None),
            ("a/../..", None),
            ("a/../../dir/x", None),
            ("/a", None),
        ] {
            assert_eq!(normal(path).as_deref(), want.map(Utf8Path::new), "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_normal_path_never_climbs(path in "[a./]{0,20}") {
            if let Some(path) = normal(&path) {
                prop_assert!(path.components().all(|c| matches!(c, Utf8Component::Normal(_))));
            }
        }

        #[test]
        fn an_accepted_destination_is_absolute_and_plain(path in "[/.a\n-]{0,20}") {
            if let Ok(path) = dest(&path) {
                prop_assert!(path.starts_with('/') && !path.contains("//") && !path.contains('\n'));
                prop_assert!(path.split('/').all(|p| p != ".." && p != "."));
            }
        }
    }
}
