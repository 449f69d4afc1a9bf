//! Any bytes as a harness file, its base, `config.yaml` and an env file: the loader answers, and never panics.

#![no_main]

use std::cell::OnceCell;

use camino::{Utf8Path, Utf8PathBuf};
use fullsend::harness::{Environment, Forge, Forges, Overrides, Request, ValidateScope, load, validate};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static DIR: OnceCell<(tempfile::TempDir, Utf8PathBuf)> = const { OnceCell::new() };
}

fn make() -> (tempfile::TempDir, Utf8PathBuf) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = Utf8Path::from_path(temp.path()).expect("a path of UTF-8").to_owned();
    for (path, text) in [
        ("agents/a.md", "---\nname: a\ndescription: b\n---\n"),
        ("skills/s/SKILL.md", "x\n"),
        ("scripts/s.sh", "#!/bin/sh\n"),
        ("policies/p.yaml", "version: 1\n"),
        ("providers/p.yaml", "name: p\ntype: t\n"),
        ("profiles/t.yaml", "id: t\n"),
    ] {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        std::fs::write(path, text).expect("written");
    }
    std::fs::create_dir_all(dir.join("harness")).expect("created");
    std::fs::create_dir_all(dir.join("env")).expect("created");
    (temp, dir)
}

fuzz_target!(|data: &[u8]| {
    DIR.with(|cell| {
        let (_, dir) = cell.get_or_init(make);
        // `%` ends one file and begins the next.
        let mut files = data.split(|byte| *byte == b'%').filter(|part| !part.is_empty());
        for path in ["harness/h.yaml", "harness/base.yaml", "config.yaml", "env/e.env"] {
            std::fs::write(dir.join(path), files.next().unwrap_or_default()).expect("written");
        }
        let env = Environment([("SET".to_owned(), "value".to_owned())].into());
        for forge in [None, Some(Forge::Github)] {
            let request = Request {
                dir: dir.clone(),
                agent: "h".to_owned(),
                forge,
                env: env.clone(),
                overrides: Overrides::default(),
            };
            let _ = load(&request);
        }
        let scope = ValidateScope { dir: dir.clone(), agents: Vec::new(), forges: Forges::All, env };
        let _ = validate(&scope);
    });
});
