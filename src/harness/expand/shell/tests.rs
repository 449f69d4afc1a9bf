//! The real shells say whether a value arrives.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

fn env(name: &str) -> Option<String> {
    match name {
        "V" => Some("it's \"$x\" `y` \\".into()),
        "EVIL" => Some("'; touch /tmp/pwned; echo \"$(id)\" `id` #".into()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn shells() -> Vec<&'static str> {
    ["dash", "bash"]
        .into_iter()
        .filter(|s| Command::new(s).args(["-c", ":"]).stdin(Stdio::null()).status().is_ok())
        .collect()
}

/// Sources `file` with `shell` and returns the values of `names`.
fn sourced(shell: &str, file: &str, names: &[&str]) -> Vec<Vec<u8>> {
    let mut temp = tempfile::NamedTempFile::new().unwrap();
    temp.write_all(file.as_bytes()).unwrap();
    let prints: Vec<_> = names.iter().map(|n| format!("printf '%s\\0' \"${n}\"")).collect();
    let prints = prints.join("; ");
    let out = Command::new(shell)
        .args(["-c", &format!(". \"$1\"; {prints}"), "sh"])
        .arg(temp.path())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(out.stderr.is_empty(), "{shell}: {}\n{file}", String::from_utf8_lossy(&out.stderr));
    let mut values: Vec<_> = out.stdout.split(|b| *b == 0).map(<[u8]>::to_vec).collect();
    values.pop();
    values
}

const FORMS: &str = "# a comment with ' and \" and ${V}\n\
    export A=${V} B=x${V}y # it's ${V}\n\
    C=\"${V}\"; D=\"say \\\"${V}\\\"\" E='${V}'\n\
    F='<'\"${V}\"'>'$V \\\nG=\"$(printf '%s' \"$V\")\"\nH=$(printf %s ${V}; printf %s '$V')_\n\
    I=a\\'${V}\nexport J=\"a'${V}'\" K=b#${V}\n";

fn check_forms(value: &str) {
    let lookup = |name: &str| (name == "V").then(|| value.to_owned());
    let out = expand_shell(FORMS, &lookup);
    assert_eq!(out.issues, []);
    let trimmed = value.trim_end_matches('\n');
    let want = [
        value.to_owned(),
        format!("x{value}y"),
        value.to_owned(),
        format!("say \"{value}\""),
        value.to_owned(),
        format!("<{value}>{value}"),
        trimmed.to_owned(),
        format!("{value}{value}").trim_end_matches('\n').to_owned() + "_",
        format!("a'{value}"),
        format!("a'{value}'"),
        format!("b#{value}"),
    ];
    for shell in shells() {
        let got = sourced(shell, &out.text, &["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"]);
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(
                got.as_slice(),
                want.as_bytes(),
                "{shell}, form {i}: {:?}\n{}",
                String::from_utf8_lossy(got),
                out.text
            );
        }
        assert_eq!(got.len(), want.len(), "{shell}");
    }
}

#[test]
fn shells_are_there() {
    assert!(shells().contains(&"bash"), "these tests need bash; they use dash as well when it is there");
}

#[test]
fn awkward_values_arrive_unchanged() {
    for value in [
        "",
        " ",
        "a b",
        "\"",
        "'",
        "''",
        "`id`",
        "$(id)",
        "$HOME",
        "${HOME}",
        "\\",
        "\\\\n",
        "#x",
        " # x",
        "!x",
        "  lead and trail  ",
        ";",
        "&",
        "*",
        "~",
        "\n",
        "line\nline\n",
        "\r\n",
        "\t",
        "\u{1}",
        "\u{7f}",
        "export X=1",
        "\\'",
        "'\\''",
        "$'x'",
        "é\u{301}🦀",
        "\u{81}\u{88}",
        "-n",
        "%s\\0",
        "=",
        "${V}",
        "$V",
        "-----BEGIN KEY-----\nabc/+=\n-----END KEY-----\n",
    ] {
        check_forms(value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_value_arrives_unchanged(value in "[^\u{0}]{0,24}") {
        check_forms(&value);
    }

    #[test]
    fn any_nasty_value_arrives_unchanged(value in r#"[$`'"\\ {}()#!;&|<>\n\r\ta-c=*~-]{0,24}"#) {
        check_forms(&value);
    }

    #[test]
    fn never_panics(file in r#"[$`'"\\ {}()#<V\ncase]{0,60}"#) {
        expand_shell(&file, &env);
    }

    /// Whatever the file, text without a reference stays as it is.
    #[test]
    fn text_without_references_is_kept(file in r#"[`'"\\ ()#<V\né]{0,60}"#) {
        prop_assert_eq!(expand_shell(&file, &env).text, file);
    }
}

#[test]
fn left_alone() {
    for text in [
        "A=$PATH:/x",
        "B=\"$1 $? $@ $# $!\"",
        "# ${NOPE}",
        "A=\\${NOPE}",
        "A=\"\\${V}\"",
        "A=a # $V ${NO}",
        "A=\"$\"",
        "A=`date`",
        "A=$(( 1 << 2 )) B=$((x+(1)))",
        "C=$'a b' D=$'x\\n'",
    ] {
        let out = expand_shell(text, &env);
        assert_eq!((out.text.as_str(), out.issues), (text, vec![]), "{text}");
    }
}

#[test]
fn doubled_dollars_are_a_dollar() {
    let out = expand_shell("A=$$ B=\"$$x\" C='$$y'\n", &env);
    for shell in shells() {
        assert_eq!(sourced(shell, &out.text, &["A", "B", "C"]), [&b"$"[..], b"$x", b"$y"]);
    }
}

#[test]
fn issues() {
    let unquotable = |file: &str| {
        let out = expand_shell(file, &env);
        out.issues.iter().any(|(_, i)| matches!(i, Issue::Unquotable(_)))
    };
    for file in [
        "A=`echo ${EVIL}`",
        "A=\"`echo ${EVIL}`\"",
        "A=$((${EVIL}+1))",
        "((x = ${EVIL}))",
        "cat <<X\n${EVIL}\nX\n",
        "A=$(case x in x) echo;; esac) B=${EVIL}",
        "A=\"$(case x in x) echo;; esac)\" B=${EVIL}",
        "A=$'it\\'s' B=${EVIL}",
        "A=$'\\t${EVIL}'",
        "A=\"$((echo ')'); echo ${EVIL})\"",
        "A=\"$((echo a); echo ${EVIL})\"",
        "A=${EVIL} B='open",
        "A=${EVIL} B=\"open",
        "A=${EVIL} B=`open",
    ] {
        assert!(unquotable(file), "{file}: {:?}", expand_shell(file, &env));
    }
    assert_eq!(
        expand_shell("A=${NOPE} B=${V:-x}", &env).issues,
        [(2..9, Issue::Unset("NOPE".into())), (12..19, Issue::Syntax("${V:-x}".into()))]
    );
}
