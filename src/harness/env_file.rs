//! `--env-file`: lines of `KEY=value`.
//!
//! The grammar is that of the format's first implementation: `\r` and surrounding blanks are stripped, blank
//! lines and `#` lines skipped, a leading `export ` dropped, the line split at the first `=`. A value that begins
//! with a quote ends at the next quote of that kind, and the rest of the line is dropped; without one the text is
//! literal. An unquoted value ends at ` #`. No escapes, no expansion, one line per value. Unlike there, a line
//! without `=` is a problem: it is usually the second line of a key that was pasted without care.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::expand::is_name;
use super::problem::{Problem, Problems};
use super::source::{Source, stars};
use crate::error::{Code, Error, Result};

/// So many problems are reported; more would say that the file is no env file at all.
const MAX_PROBLEMS: usize = 20;

/// Reads env files; a later file wins over an earlier one, a later line over an earlier line.
pub fn read_env_files<P: AsRef<Utf8Path>>(paths: &[P]) -> Result<BTreeMap<String, String>> {
    let mut problems = Problems::default();
    let mut vars = BTreeMap::new();
    for path in paths {
        match Source::read(&absolute(path.as_ref()), Code::EnvFile) {
            Ok(source) => parse(&source.masked(|text| Some(mask(text))), &mut vars, &mut problems),
            Err(problem) => problems.push(problem.help("give a readable text file to --env-file")),
        }
    }
    if problems.has_errors() { Err(Error::problems(problems)) } else { Ok(vars) }
}

fn absolute(path: &Utf8Path) -> Utf8PathBuf {
    camino::absolute_utf8(path).unwrap_or_else(|_| path.to_owned())
}

fn parse(source: &Source, vars: &mut BTreeMap<String, String>, problems: &mut Problems) {
    let mut start = 0;
    for full in source.text.split_inclusive('\n') {
        let begin = start;
        start += full.len();
        let line = full.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = begin + (full.len() - full.trim_start().len());
        if problems.0.len() >= MAX_PROBLEMS {
            return;
        }
        let mut fail = |message: &str, help: &str, len: usize| {
            let place = source.place(at..at + len);
            problems.push(Problem::error(Code::EnvFile, message).help(help).at(Some(place)));
        };
        let assignment = line.strip_prefix("export ").map_or(line, str::trim_start);
        let Some((key, value)) = assignment.split_once('=') else {
            fail(
                "a line without `=`",
                "write KEY=value; a value is one line, so keep longer ones in a file of their own",
                line.len(),
            );
            continue;
        };
        if !is_name(key) {
            let help = "a name has letters, digits and `_`, does not begin with a digit, and touches the `=`";
            fail("the text before `=` is not a variable name", help, line.len() - value.len() - 1);
            continue;
        }
        if value.contains('\0') {
            fail("the value holds a NUL byte", "no environment variable can hold one", line.len());
            continue;
        }
        vars.insert(key.to_owned(), value_of(value).to_owned());
    }
}

fn value_of(raw: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some((inside, _)) = raw.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return inside;
        }
    }
    if raw.starts_with(['"', '\'']) {
        return raw;
    }
    raw.split_once(" #").map_or(raw, |(value, _)| value).trim_end()
}

/// Shows comments and what stands before `=`; a line without `=` may be part of a secret.
fn mask(text: &str) -> String {
    let mut shown = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let key = line.split('=').next().unwrap_or_default();
        let name = key.trim().trim_start_matches("export ").trim();
        let len = match line.trim_start().starts_with('#') {
            true => line.len(),
            false if key.len() < line.len() && is_name(name) => key.len() + 1,
            false => 0,
        };
        shown.push(at..at + len);
        at += line.len();
    }
    stars(text, &shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> (BTreeMap<String, String>, Vec<String>) {
        let mut vars = BTreeMap::new();
        let mut problems = Problems::default();
        parse(&Source::new("e.env", text).masked(|t| Some(mask(t))), &mut vars, &mut problems);
        let places = problems.0.iter().map(|p| p.place.as_ref().unwrap().to_string()).collect();
        (vars, places)
    }

    #[test]
    fn grammar() {
        for (line, want) in [
            ("K=v", "v"),
            ("  K=v  ", "v"),
            ("export K=v", "v"),
            ("K=v\r", "v"),
            ("K=", ""),
            ("K= v", " v"),
            ("K=a=b", "a=b"),
            ("K=\"a b\" rest", "a b"),
            ("K='a # b'", "a # b"),
            ("K=\"open", "\"open"),
            ("K='it", "'it"),
            ("K=a # comment", "a"),
            ("K=a#b", "a#b"),
            ("K=\"\"", ""),
            ("K=$HOME ${X}", "$HOME ${X}"),
            ("K=a\\nb", "a\\nb"),
        ] {
            let (vars, places) = read(line);
            assert!(places.is_empty(), "{line}");
            assert_eq!(vars.get("K").map(String::as_str), Some(want), "{line}");
        }
    }

    #[test]
    fn every_bad_line_is_reported() {
        let (vars, places) = read("# c\nA=1\nno equals\n1X=2\n\nB =3\nA=4\n=x\n");
        assert_eq!(places, ["e.env:3:1", "e.env:4:1", "e.env:6:1", "e.env:8:1"]);
        assert_eq!(vars, BTreeMap::from([("A".into(), "4".into())]));
    }

    #[test]
    fn later_files_win_and_missing_ones_are_problems() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| Utf8PathBuf::from_path_buf(dir.path().join(name)).unwrap();
        std::fs::write(path("a"), "A=1\nB=1\n").unwrap();
        std::fs::write(path("b"), "\u{feff}B=2\n").unwrap();
        std::fs::write(path("bad"), b"A=\xff\n").unwrap();
        std::fs::write(path("big"), vec![b'#'; 1024 * 1024 + 1]).unwrap();
        let vars = read_env_files(&[path("a"), path("b")]).unwrap();
        assert_eq!(vars, BTreeMap::from([("A".into(), "1".into()), ("B".into(), "2".into())]));
        let error =
            read_env_files(&[path("none"), path("bad"), path("a"), path("big"), path("")]).unwrap_err();
        assert_eq!(error.code(), Code::EnvFile);
        assert_eq!(error.problem_list().unwrap().0.len(), 4);
    }

    #[test]
    fn a_file_that_is_no_env_file_does_not_flood() {
        assert_eq!(read(&"no equals\n".repeat(50_000)).1.len(), MAX_PROBLEMS);
    }

    #[test]
    fn excerpts_hide_values() {
        let text = "# note\nexport TOKEN=s3cr3t\nMIIEvQIBADAN+/==\nA B=s3cr3t\n";
        let masked = mask(text);
        assert_eq!(masked, "# note\nexport TOKEN=******\n****************\n**********\n");
        assert_eq!(masked.len(), text.len());
    }

    proptest! {
        #[test]
        fn never_panics_and_masks_keep_length(text in any::<String>()) {
            read(&text);
            prop_assert_eq!(mask(&text).len(), text.len());
        }

        #[test]
        fn double_quoted_values_are_literal(value in "[^\"\n\r\u{0}]{0,20}") {
            prop_assert_eq!(read(&format!("K=\"{value}\"\n")).0["K"].clone(), value);
        }
    }
}
