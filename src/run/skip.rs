//! The pre-script's answer: its output file, exit status 78, and what of it is handed to the CI system.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use crate::error::{Code, Error, Result};

/// The exit status with which a pre-script asks for a neutral end.
pub(super) const EXIT_SKIP: i32 = 78;
/// The largest output file that is read, in bytes.
const MAX_FILE: usize = 1024 * 1024;
/// The longest reason, in bytes.
const MAX_REASON: usize = 1024;

/// What the pre-script said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// The reason to end here, if it asked for that.
    pub skip: Option<String>,
    /// Its other outputs, by name.
    pub outputs: BTreeMap<String, String>,
}

/// Reads the answer from the output file (`None` when the script removed it), the exit status, and the tail of standard output.
pub(super) fn answer(file: Option<&[u8]>, exit: i32, stdout: &str) -> Result<Answer> {
    if exit == EXIT_SKIP {
        // The status alone decides; the file only adds to it.
        let mut outputs = file.and_then(|f| parse(f).ok()).unwrap_or_default();
        outputs.remove("skipped");
        let reason = outputs.remove("reason").unwrap_or_else(|| last_line(stdout));
        return Ok(Answer { skip: Some(bounded(&reason)), outputs });
    }
    let file = file.ok_or_else(|| {
        Error::new(Code::PreScript, "the pre-script removed its output file")
            .help("write to $FULLSEND_PRESCRIPT_OUTPUT, but leave the file in place")
    })?;
    let mut outputs = parse(file)?;
    let skipped = outputs.remove("skipped");
    let skip = match skipped.as_deref() {
        // A reason for something else is an output like any other.
        None | Some("false") => None,
        Some("true") => Some(bounded(&outputs.remove("reason").unwrap_or_default())),
        Some(other) => {
            return Err(malformed(&format!("`skipped` must be true or false, not {other:?}")));
        }
    };
    Ok(Answer { skip, outputs })
}

/// `key=value` lines; blank lines and `#` comments are ignored; the last value of a key wins.
fn parse(file: &[u8]) -> Result<BTreeMap<String, String>> {
    if file.len() > MAX_FILE {
        return Err(malformed("it is larger than 1 MiB"));
    }
    let text = std::str::from_utf8(file).map_err(|_| malformed("it is not UTF-8"))?;
    let mut outputs = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let at = |what: &str| malformed(&format!("line {}: {what}", number + 1));
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if key.contains("<<") {
            return Err(at(
                "the form `name<<EOF` is not supported: a value of several lines cannot be handed on",
            ));
        }
        if !line.contains('=') {
            return Err(at("there is no `=`"));
        }
        let mut chars = key.chars();
        let head = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !head || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(at("the key is not a name"));
        }
        for known in ["skipped", "reason"] {
            if key != known && key.eq_ignore_ascii_case(known) {
                return Err(at(&format!("write `{known}` in lower case")));
            }
        }
        let value = value.trim();
        if value.chars().any(|c| c.is_ascii_control()) {
            return Err(at("the value has control characters"));
        }
        outputs.insert(key.to_owned(), value.to_owned());
    }
    Ok(outputs)
}

fn malformed(what: &str) -> Error {
    Error::new(Code::PreScript, format!("the pre-script's output file is malformed: {what}"))
        .help("write `key=value` lines to $FULLSEND_PRESCRIPT_OUTPUT")
}

fn last_line(stdout: &str) -> String {
    let line = stdout.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("");
    line.trim().chars().filter(|c| !c.is_control()).collect()
}

/// Cuts at a character boundary.
fn bounded(reason: &str) -> String {
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_owned()
}

/// The text to append to `GITHUB_OUTPUT`: `skipped`, `reason`, and the outputs in name order.
pub(super) fn github_output(answer: &Answer, delimiter: &str) -> String {
    let mut out = format!("skipped={}\n", answer.skip.is_some());
    let reason = answer.skip.as_deref().map(|r| ("reason", r));
    let others = answer.outputs.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    for (key, value) in reason.into_iter().chain(others) {
        _ = write!(out, "{key}<<{delimiter}\n{value}\n{delimiter}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_ask_for_a_skip() {
        let a = answer(Some(b"# why\nskipped=true\r\nreason = draft\nlabel=x=y\n"), 0, "").unwrap_err();
        assert!(a.message().contains("line 3"), "{a}");
        let a = answer(Some(b"# why\nskipped=true\r\nreason= draft \nlabel=x=y\n"), 0, "").unwrap();
        assert_eq!(a.skip.as_deref(), Some("draft"));
        assert_eq!(a.outputs["label"], "x=y");
    }

    #[test]
    fn a_reason_without_a_skip_is_an_output() {
        let a = answer(Some(b"reason=new issue\n"), 0, "").unwrap();
        assert_eq!((a.skip.as_deref(), a.outputs["reason"].as_str()), (None, "new issue"));
        assert_eq!(github_output(&a, "D"), "skipped=false\nreason<<D\nnew issue\nD\n");
    }

    #[test]
    fn exit_78_skips_whatever_the_file_says() {
        let a = answer(Some(b"not a line"), 78, "checking\nnothing to do\n\n").unwrap();
        assert_eq!(a.skip.as_deref(), Some("nothing to do"));
        assert_eq!(answer(None, 78, "").unwrap().skip.as_deref(), Some(""));
    }

    #[test]
    fn malformed_files_are_refused_with_the_line() {
        for (text, part) in [
            (&b"skipped=yes"[..], "true or false"),
            (b"skipped=", "true or false"),
            (b"Skipped=true", "lower case"),
            (b"a<<EOF\nx\nEOF", "several lines"),
            (b"a<<EOF=\nx\nEOF=", "several lines"),
            (b"\na", "line 2: there is no `=`"),
            (b"1a=x", "not a name"),
            (b"a=\x01", "control"),
            (b"\xff=1", "UTF-8"),
        ] {
            let error = answer(Some(text), 0, "").unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
        assert!(answer(None, 0, "").is_err());
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let long = "é".repeat(1000);
        let a = answer(None, 78, &long).unwrap();
        assert_eq!(a.skip.unwrap().chars().count(), 512);
    }

    #[test]
    fn outputs_cannot_forge_others() {
        let answer = Answer { skip: Some("a=b".into()), outputs: BTreeMap::new() };
        assert_eq!(github_output(&answer, "D1"), "skipped=true\nreason<<D1\na=b\nD1\n");
    }
}
