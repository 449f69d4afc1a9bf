//! What a process in the sandbox sees of the environment equals what the harness said, for any text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use crate::support::World;

/// Values that broke env files somewhere, and values that nobody thought of.
fn values() -> Vec<String> {
    let known = [
        "\"",
        "'",
        "`",
        "$(id)",
        "$(x)",
        "$HOME",
        "${HOME}",
        "\\",
        "\\\\n",
        "#",
        "a #b",
        "!",
        "!!",
        "  both  ",
        ";",
        "&",
        "|",
        "*",
        "?",
        "[a]",
        "~",
        "\n",
        "a\nb\n",
        "\n\n",
        "\r",
        "\r\n",
        "\t",
        "\u{1}",
        "\u{7f}",
        "\u{85}",
        "export X=1",
        "A=b c",
        "-n",
        "%s",
        "`id -u`",
        "'; exit 3; '",
        "\"; exit 3; \"",
        "\\'",
        "$'a'",
        "{a,b}",
        "é\u{301}🦀",
        "\u{feff}",
        "",
        " ",
        "=",
        "==",
        "no",
        "1.10",
        "0123",
        "~",
        "null",
        "0x1F",
        "-----BEGIN KEY-----\nabc/+=\n-----END KEY-----\n",
        "last\\",
        "$$",
        "$",
        "${",
        "<(x)",
        ">&2",
        "\u{2028}",
    ];
    let mut all: Vec<String> = known.iter().map(|text| (*text).to_owned()).collect();
    let mut runner = TestRunner::deterministic();
    let any = proptest::string::string_regex("[^\u{0}]{0,40}").unwrap();
    let nasty = proptest::string::string_regex(r#"[$`'"\\ {}()#!;&|<>\n\r\ta-c=*~-]{0,40}"#).unwrap();
    for _ in 0..40 {
        all.push(any.new_tree(&mut runner).unwrap().current());
        all.push(nasty.new_tree(&mut runner).unwrap().current());
    }
    all
}

/// A text as a double-quoted scalar of YAML; dollars are doubled, since they begin variables.
fn scalar(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '$' => out.push_str("$$"),
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => _ = write!(out, "\\U{:08X}", u32::from(c)),
        }
    }
    out + "\""
}

#[test]
fn every_value_arrives_as_the_harness_says_it() {
    let mut world = World::new();
    world.agent("env -0 > \"$FULLSEND_OUTPUT_DIR/env\"");
    let mut want: BTreeMap<String, String> = BTreeMap::new();
    let (mut sandbox, mut file) = (String::new(), String::new());
    for (n, value) in values().into_iter().enumerate() {
        world.env(&format!("HOST_{n}"), &value);
        // Written out, through a variable, and in an env file: bare, in double and in single quotes.
        let _ = writeln!(sandbox, "    W{n}: {}\n    V{n}: ${{HOST_{n}}}", scalar(&value));
        let _ = writeln!(file, "export B{n}=${{HOST_{n}}} D{n}=\"${{HOST_{n}}}\" S{n}='${{HOST_{n}}}'");
        for form in ["W", "V", "B", "D", "S"] {
            want.insert(format!("{form}{n}"), value.clone());
        }
    }
    world.write("h/env/values.env", file);
    world.harness(&format!(
        "agent: agents/work\nruntime: script\nhost_files:\n  - src: env/values.env\n    \
         dest: /sandbox/workspace/.env.d/values.env\n    expand: true\nenv:\n  sandbox:\n{sandbox}"
    ));
    let run = world.run(&[]).success();
    let seen = std::fs::read(run.dir.as_ref().unwrap().join("iteration-1/output/env")).unwrap();
    let seen: BTreeMap<String, Vec<u8>> = seen
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let at = entry.iter().position(|byte| *byte == b'=')?;
            Some((String::from_utf8(entry[..at].to_vec()).ok()?, entry[at + 1..].to_vec()))
        })
        .collect();
    let wrong: Vec<_> = want
        .iter()
        .filter(|(name, value)| seen.get(*name).map(Vec::as_slice) != Some(value.as_bytes()))
        .map(|(name, value)| {
            let got = seen.get(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            format!("{name}: {value:?} arrived as {got:?}")
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), want.len());
    assert!(want.len() > 600);
    world.assert_clean();
}
