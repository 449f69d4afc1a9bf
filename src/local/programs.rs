//! Where a program of this machine is installed: what a local sandbox has to be shown so that the program runs
//! in it.
//!
//! An agent CLI seldom lies where a sandbox sees it anyway: `~/.local/bin/claude` is a link to
//! `~/.local/share/claude/versions/…`, an npm prefix below the home directory has a link into `node_modules`, and
//! such a script needs the `node` of its own prefix. Only what is needed is shown, never a home directory.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Directories that every local sandbox sees.
const VISIBLE: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Those of them that are on its search path.
const SEARCHED: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Package stores whose programs refer to other parts of the store: they are shown whole. They hold nothing of a
/// user's.
const STORES: [&str; 3] = ["/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew"];

/// How many interpreters of interpreters are followed.
const DEPTH: u32 = 4;

/// What a sandbox is to be shown besides the system's directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Files and directories, at the same place.
    pub binds: Vec<PathBuf>,
    /// Names on the search path, and the programs that they stand for.
    pub links: Vec<(String, PathBuf)>,
    /// Programs that are nowhere.
    pub missing: Vec<String>,
}

/// This machine's search path and home directory.
#[derive(Debug, Clone, Default)]
pub struct Search {
    path: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl Search {
    /// From the values of `PATH` and `HOME`.
    pub fn new(path: Option<&OsStr>, home: Option<&Path>) -> Self {
        let path = path.map(|p| std::env::split_paths(p).filter(|d| d.is_absolute()).collect());
        Self { path: path.unwrap_or_default(), home: home.map(Path::to_owned) }
    }

    /// What a sandbox needs for the programs `names`, which are looked up as a shell would. One that a directory
    /// of `binds` (shown anyway) has adds nothing.
    pub fn installed(&self, names: &[&str], binds: &[PathBuf]) -> Installed {
        let mut found = Installed::default();
        let mut seen = BTreeSet::new();
        for name in names {
            let bound = binds.iter().any(|b| {
                let bin = if b.ends_with("bin") { b.clone() } else { b.join("bin") };
                is_program(&bin.join(name))
            });
            if !bound && !self.add(name, &mut found, &mut seen, DEPTH) {
                found.missing.push((*name).to_owned());
            }
        }
        found
    }

    /// Whether the program was found, and can be shown.
    fn add(&self, name: &str, found: &mut Installed, seen: &mut BTreeSet<String>, depth: u32) -> bool {
        let path = self.path.iter().map(|dir| dir.join(name)).find(|p| is_program(p));
        let Some((path, real)) = path.and_then(|p| Some((p.clone(), p.canonicalize().ok()?))) else {
            return false;
        };
        if depth == 0 || !seen.insert(name.to_owned()) {
            return true;
        }
        if !can_be_shown(&real) {
            return false;
        }
        self.show(&real, found);
        let on_path = SEARCHED.iter().any(|dir| path.parent() == Some(Path::new(dir)));
        if !on_path || !is_visible(&real) {
            found.links.push((name.to_owned(), real.clone()));
        }
        match interpreter(&real) {
            // A script whose interpreter is missing fails here as it does on the host.
            Some(Interpreter::Name(name)) => {
                self.add(&name, found, seen, depth - 1);
            }
            Some(Interpreter::Path(path)) => self.at_its_place(&path, found),
            None => {}
        }
        true
    }

    /// An interpreter that a script names by its path has to be found there.
    fn at_its_place(&self, path: &Path, found: &mut Installed) {
        let Ok(real) = path.canonicalize() else { return };
        if !can_be_shown(&real) || !can_be_shown(path) {
            return;
        }
        self.show(&real, found);
        if !is_visible(path) && !found.binds.iter().any(|b| path.starts_with(b)) {
            found.binds.push(path.to_owned());
        }
    }

    fn show(&self, real: &Path, found: &mut Installed) {
        let root = self.root(real);
        if !is_visible(&root) && !found.binds.iter().any(|b| root.starts_with(b)) {
            found.binds.push(root);
        }
    }

    /// The smallest part of the file system that holds a program and what belongs to it.
    fn root(&self, real: &Path) -> PathBuf {
        if let Some(store) = STORES.iter().find(|s| real.starts_with(s)) {
            return store.into();
        }
        // The outermost: packages use those that lie beside them.
        let modules = real.ancestors().filter(|a| a.ends_with("node_modules")).last();
        if let Some(modules) = modules {
            return modules.to_owned();
        }
        let prefix = real.parent().filter(|dir| dir.ends_with("bin")).and_then(Path::parent);
        match prefix.filter(|prefix| self.is_prefix(prefix)) {
            Some(prefix) => prefix.to_owned(),
            None => real.to_owned(),
        }
    }

    /// Whether a directory with a `bin` holds programs and nothing else of the user's.
    fn is_prefix(&self, dir: &Path) -> bool {
        let of_user = self.home.as_deref().is_some_and(|home| {
            let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
            home.starts_with(dir) || dir == home.join(".local")
        });
        !of_user && dir.parent().is_some() && dir != Path::new("/tmp")
    }
}

/// How a script is run.
#[derive(Debug, PartialEq, Eq)]
enum Interpreter {
    /// By a program of this path.
    Path(PathBuf),
    /// By `env`, which looks this name up.
    Name(String),
}

/// What the first line of a script says.
fn interpreter(path: &Path) -> Option<Interpreter> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(512).read_to_end(&mut head).ok()?;
    parse_shebang(&head)
}

fn parse_shebang(head: &[u8]) -> Option<Interpreter> {
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let program = words.next().filter(|p| p.starts_with('/'))?;
    if !program.ends_with("/env") {
        return Some(Interpreter::Path(program.into()));
    }
    let name = words.find(|w| !w.starts_with('-') && !w.contains('='))?;
    Some(if name.starts_with('/') {
        Interpreter::Path(name.into())
    } else {
        Interpreter::Name(name.to_owned())
    })
}

/// Whether a list separated by colons can name the path, and a sandbox has nothing of its own there.
fn can_be_shown(path: &Path) -> bool {
    const OWN: [&str; 5] = ["/dev", "/etc", "/proc", "/sandbox", "/sys"];
    path.to_str().is_some_and(|p| !p.contains(':')) && !OWN.iter().any(|dir| path.starts_with(dir))
}

fn is_visible(path: &Path) -> bool {
    VISIBLE.iter().any(|dir| path.starts_with(dir))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A home directory and places beside it.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(machine.at("home")).unwrap();
            machine
        }

        fn at(&self, below: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(below)
        }

        fn program(&self, below: &str, text: &str) {
            let path = self.at(below);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn link(&self, target: &str, below: &str) {
            let path = self.at(below);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, path).unwrap();
        }

        /// What `claude` needs, with these directories on the search path: binds, and names with their programs.
        fn needs(&self, path: &[&str]) -> (Vec<PathBuf>, Vec<(String, PathBuf)>) {
            let dirs = path.iter().map(|p| self.at(p)).chain(["/usr/bin".into()]);
            let path = std::env::join_paths(dirs).unwrap();
            let found = Search::new(Some(&path), Some(&self.at("home"))).installed(&["claude"], &[]);
            (found.binds, found.links)
        }

        fn expect(&self, path: &[&str], binds: &[&str], links: &[(&str, &str)]) {
            let links: Vec<_> = links.iter().map(|(n, p)| ((*n).to_owned(), self.at(p))).collect();
            assert_eq!(self.needs(path), (binds.iter().map(|b| self.at(b)).collect(), links));
        }
    }

    #[test]
    fn the_native_installer_shows_one_file() {
        let m = Machine::new();
        m.program("home/.local/share/claude/versions/2.1", "\x7fELF");
        m.link("../share/claude/versions/2.1", "home/.local/bin/claude");
        let file = "home/.local/share/claude/versions/2.1";
        m.expect(&["home/.local/bin"], &[file], &[("claude", file)]);
        // A program in ~/bin or ~/.local/bin does not show what lies beside it either.
        for bin in ["home/bin", "home/.local/bin2/bin"] {
            m.program(&format!("{bin}/claude"), "\x7fELF");
        }
        m.expect(&["home/bin"], &["home/bin/claude"], &[("claude", "home/bin/claude")]);
        m.expect(
            &["home/.local/bin2/bin"],
            &["home/.local/bin2"],
            &[("claude", "home/.local/bin2/bin/claude")],
        );
    }

    #[test]
    fn a_node_script_brings_the_node_of_the_search_path() {
        let m = Machine::new();
        let modules = "home/.nvm/versions/node/v22/lib/node_modules";
        let script = format!("{modules}/@anthropic-ai/claude-code/cli.js");
        m.program(&script, "#!/usr/bin/env -S node --x\n");
        m.link(
            "../lib/node_modules/@anthropic-ai/claude-code/cli.js",
            "home/.nvm/versions/node/v22/bin/claude",
        );
        let node = "home/.nvm/versions/node/v22/bin/node";
        m.program(node, "\x7fELF");
        m.expect(
            &["home/.nvm/versions/node/v22/bin"],
            &[modules, "home/.nvm/versions/node/v22"],
            &[("claude", &script), ("node", node)],
        );
        // A global prefix of its own, with the node of another.
        m.program("home/.npm/lib/node_modules/c/cli.js", "#!/usr/bin/env node\n");
        m.link("../lib/node_modules/c/cli.js", "home/.npm/bin/claude");
        m.program("opt/node/bin/node", "\x7fELF");
        m.expect(
            &["home/.npm/bin", "opt/node/bin"],
            &["home/.npm/lib/node_modules", "opt/node"],
            &[("claude", "home/.npm/lib/node_modules/c/cli.js"), ("node", "opt/node/bin/node")],
        );
    }

    #[test]
    fn an_interpreter_named_by_its_path_is_shown_there() {
        let m = Machine::new();
        m.program("opt/py/3/bin/python", "\x7fELF");
        m.link("py/3/bin/python", "opt/python");
        m.program("tools/claude", &format!("#!{} -E\n", m.at("opt/python").display()));
        m.expect(&["tools"], &["tools/claude", "opt/py/3", "opt/python"], &[("claude", "tools/claude")]);
    }

    #[test]
    fn what_is_visible_or_bound_or_not_there_adds_nothing() {
        let m = Machine::new();
        m.expect(&["nowhere"], &[], &[]);
        std::fs::create_dir_all(m.at("dir/claude")).unwrap();
        m.expect(&["dir"], &[], &[]);
        let none = Search::new(None, None).installed(&["claude"], &[]);
        assert_eq!(none, Installed { missing: vec!["claude".into()], ..Installed::default() });
        m.program("opt/claude/bin/claude", "\x7fELF");
        let path = m.at("opt/claude/bin");
        let search = Search::new(Some(path.as_os_str()), None);
        assert_eq!(search.installed(&["claude"], &[m.at("opt/claude")]), Installed::default());
        assert_eq!(search.installed(&["claude"], &[]).binds, [m.at("opt/claude")]);
        let system = Search::new(Some(OsStr::new("/usr/bin")), None);
        assert_eq!(system.installed(&["env"], &[]), Installed::default());
    }

    #[test]
    fn first_lines() {
        let path = |p: &str| Some(Interpreter::Path(p.into()));
        let name = |n: &str| Some(Interpreter::Name(n.into()));
        assert_eq!(parse_shebang(b"#!/bin/sh\nx"), path("/bin/sh"));
        assert_eq!(parse_shebang(b"#! /usr/bin/env node"), name("node"));
        assert_eq!(parse_shebang(b"#!/usr/bin/env -S A=b /opt/node -x\n"), path("/opt/node"));
        for none in [&b"\x7fELF"[..], b"#!", b"#!node\n", b"", b"#!/usr/bin/env\n"] {
            assert_eq!(parse_shebang(none), None);
        }
    }
}
