//! The rules for paths, field by field.

use super::*;

/// A field that names a path: `@` is the path, `D` a directory and `F` a file that it may name.
const FIELDS: &[(&str, char)] = &[
    ("agent: @", 'F'),
    ("policy: @", 'P'),
    ("pre_script: @", 'F'),
    ("post_script: @", 'F'),
    ("validation_loop: {script: @}", 'F'),
    ("validation_loop: {schema: @}", 'S'),
    ("host_files: [{src: @, dest: /tmp/x}]", 'F'),
    ("providers: [@]", 'R'),
    ("openshell: {profiles: [@]}", 'O'),
    ("skills: [{skills/one: {a.md: @}}]", 'F'),
    ("agent_input: @", 'D'),
    ("skills: [@]", 'D'),
    ("plugins: [@]", 'D'),
];

/// What is there for each kind, and what is of the wrong kind.
fn named(kind: char) -> (&'static str, &'static str) {
    match kind {
        'D' => ("things/dir", "things/file"),
        'P' => ("things/policy.yaml", "things/dir.yaml"),
        'S' => ("things/schema.json", "things/dir"),
        'R' => ("things/provider.yaml", "things/dir.yaml"),
        'O' => ("things/profile.yaml", "things/dir.yaml"),
        _ => ("things/file", "things/dir"),
    }
}

fn fixture() -> Fixture {
    let f = Fixture { forge: Some(Forge::Github), ..Fixture::new() };
    for (path, text) in [
        ("things/file", "#!/bin/sh\n"),
        ("things/policy.yaml", "version: 1\n"),
        ("things/schema.json", "{}\n"),
        ("things/provider.yaml", "name: q\ntype: t\n"),
        ("things/profile.yaml", "id: u\n"),
        ("things/dir/SKILL.md", "x\n"),
        ("things/dir/plugin.json", "{}\n"),
        ("things/dir.yaml/x", ""),
        ("../outside/dir/SKILL.md", ""),
        ("../outside/dir/plugin.json", "{}\n"),
        ("../outside/file.yaml", "version: 1\nid: u\nname: q\ntype: t\n"),
        ("../outside/file", "{}\n"),
    ] {
        f.write(path, text);
    }
    for link in ["out-dir", "out.yaml", "out"] {
        let target = link.replace("out-dir", "dir").replace("out", "file");
        symlink(format!("../../outside/{target}"), f.dir.join("things").join(link)).unwrap();
    }
    f
}

/// The field where it stands: at the top, in a block, in an overlay, in a base that lies elsewhere.
fn places(f: &Fixture, line: &str) -> Vec<(&'static str, String)> {
    let top = if line.starts_with("agent: ") { String::new() } else { "agent: agents/run.sh\n".to_owned() };
    let mut all = vec![("top", format!("{top}{line}\n"))];
    let key = line.split(':').next().unwrap();
    if crate::harness::keys::Level::Forge.has(key) {
        all.push(("block", format!("agent: agents/run.sh\nforge: {{github: {{{line}}}}}\n")));
        all.push(("overlay", format!("agent: agents/run.sh\noverlays: [{{when: 'true', {line}}}]\n")));
    }
    f.write("shared/deep/base.yaml", &all[0].1);
    all.push(("base", "base: ../shared/deep/base.yaml\n".to_owned()));
    all
}

fn each(check: impl Fn(&Fixture, &str, char, &str, &dyn Fn(&str) -> String)) {
    let f = fixture();
    for (field, kind) in FIELDS {
        let names: Vec<&'static str> =
            places(&f, &field.replace('@', "x")).into_iter().map(|(name, _)| name).collect();
        for place in names {
            let text = |path: &str| {
                let all = places(&f, &field.replace('@', path));
                all.into_iter().find(|(name, _)| *name == place).unwrap().1
            };
            check(&f, field, *kind, place, &text);
        }
    }
}

#[test]
fn paths_start_at_the_harness_directory_wherever_they_are_written() {
    each(|f, field, kind, place, text| {
        let (good, _) = named(kind);
        for path in [good.to_owned(), format!("./things/../{good}"), f.dir.join(good).to_string()] {
            let loaded = f.load(text(&path));
            assert!(loaded.is_ok(), "{field} in {place}: {path}: {:?}", loaded.err().unwrap().problem_list());
        }
    });
}

#[test]
fn paths_that_lead_nowhere_outside_or_to_something_else_are_errors() {
    each(|f, field, kind, place, text| {
        let (_, other) = named(kind);
        let yaml = matches!(kind, 'P' | 'R' | 'O');
        let outside = match kind {
            'D' => ("../outside/dir", "things/out-dir"),
            _ if yaml => ("../outside/file.yaml", "things/out.yaml"),
            _ => ("../outside/file", "things/out"),
        };
        let missing = if yaml { "things/none.yaml" } else { "things/none" };
        for (path, code) in [
            (missing, Code::FileMissing),
            (other, Code::FileType),
            (outside.0, Code::PathEscape),
            (outside.1, Code::PathEscape),
            ("things/../../outside/dir", if kind == 'O' { Code::Value } else { Code::PathEscape }),
        ] {
            // The gateway may have a profile that is not here.
            if kind == 'O' && code == Code::FileMissing {
                let loaded = f.good(&text(path));
                assert!(loaded.warnings.iter().any(|w| w.code == code), "{field} in {place}: {path}");
                continue;
            }
            let problems = f.bad(text(path));
            assert!(
                problems.iter().any(|(found, at, problem)| *found == code
                    && at.contains(".yaml:")
                    && problem.help.is_some()),
                "{field} in {place}: {path}: {code:?}: {problems:?}"
            );
        }
    });
}

/// Of a path that a variable begins, the variable says where it leads; for an optional file it need not be there.
#[test]
fn variables_in_sources_of_host_files() {
    let mut f = fixture();
    f.env.insert("OUT".into(), f.dir.parent().unwrap().join("outside/secret").to_string());
    f.env.insert("NAME".into(), "secret".into());
    let text = |src: &str, more: &str| format!("{GOOD}host_files: [{{src: '{src}', dest: /tmp/x{more}}}]\n");
    assert_eq!(f.good(&text("${OUT}", "")).harness.host_files.len(), 1);
    assert_eq!(f.bad(text("things/../../outside/${NAME}", ""))[0].0, Code::PathEscape);
    assert_eq!(f.bad(text("${NOPE}", ""))[0].0, Code::EnvUnset);
    assert_eq!(f.good(&text("${NOPE}", ", optional: true")).harness.host_files.len(), 0);
    assert_eq!(f.good(&text("things/none", ", optional: true")).harness.host_files.len(), 0);
    assert_eq!(f.good(&text("${FULLSEND_DIR}/things/file", "")).harness.host_files.len(), 1);
}
