//! Whether output files match their JSON Schemas: the same answer on the host, in the sandbox, and on a laptop.
//!
//! JSON Schema 2020-12 and the drafts before it, by `$schema`; 2020-12 without one. Nothing is ever fetched.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::harness::nearest;
use crate::report::truncate;

/// The file that an agent writes unless the harness names another.
pub const DEFAULT_OUTPUT: &str = "agent-result.json";
/// The largest file that is checked, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;
/// How many problems of one file are named.
const SHOWN: usize = 20;
/// The longest description of one problem, in bytes: it may quote the whole value.
const LINE: usize = 400;
/// How many files of the output are looked at for a name that is nearly right.
const LOOKED_AT: usize = 1000;

/// One file and what it has to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its path in the output directory.
    pub file: String,
    /// The schema's file.
    pub schema: PathBuf,
}

/// Why a file is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, in one line, without the places.
    pub message: String,
    /// Each place of the file with what is wrong there: `/a/0: …`.
    pub places: Vec<String>,
    /// What to do about it.
    pub help: String,
}

/// Why an output is refused, for people. Nothing is said twice: the first place is in the message, the others are the
/// detail.
pub fn refusal(faults: &[Fault]) -> Error {
    let Some((first, others)) = faults.split_first() else {
        return Error::new(Code::ValidationFailed, "the output is not accepted");
    };
    let mut message = match others {
        [] => first.message.clone(),
        _ => format!("{} files are not accepted: {}", faults.len(), first.message),
    };
    let mut detail = String::new();
    if let Some((place, more)) = first.places.split_first() {
        _ = write!(message, ": {place}");
        if !more.is_empty() {
            _ = write!(message, " (and {} more)", more.len());
        }
        detail = lines(more);
    }
    detail.push_str(&all(others));
    Error::new(Code::ValidationFailed, message).detail(detail).help(first.help.clone())
}

/// Every fault with its places, one per line, for whoever has to mend them.
pub fn all(faults: &[Fault]) -> String {
    let mut text = String::new();
    for fault in faults {
        _ = writeln!(text, "{} ({})", fault.message, fault.help);
        text.push_str(&lines(&fault.places));
    }
    text
}

fn lines(places: &[String]) -> String {
    places.iter().flat_map(|place| [place.as_str(), "\n"]).collect()
}

/// Checks all files of an output directory; nothing for an output that is good.
///
/// # Errors
/// [`Code::Value`] for a schema that cannot be used.
pub fn check_all(checks: &[Check], output: &Path) -> Result<Vec<Fault>> {
    let faults = checks.iter().map(|check| {
        let schema = read_schema(&check.schema)?;
        Ok(check_file(&schema, output, &check.file).err())
    });
    Ok(faults.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn read_schema(path: &Path) -> Result<jsonschema::Validator> {
    let unusable = |why: String| {
        Error::new(Code::Value, format!("the schema {} cannot be used: {why}", path.display()))
            .help("it must be a JSON Schema of one file; references to other files or URLs are not followed")
    };
    let text = fs_err::read(path).map_err(|e| unusable(e.to_string()))?;
    let schema: Value = serde_json::from_slice(&text).map_err(|e| unusable(e.to_string()))?;
    jsonschema::validator_for(&schema).map_err(|e| unusable(e.to_string()))
}

fn check_file(schema: &jsonschema::Validator, output: &Path, file: &str) -> Result<(), Fault> {
    let path = output.join(file);
    let meta = match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() => meta,
        Ok(_) => return Err(fault(format!("{file} is not a file"), "write one JSON value to it")),
        Err(_) => return Err(missing(output, file)),
    };
    if meta.len() > MAX_FILE {
        return Err(fault(format!("{file} is larger than 64 MiB"), "write only what the schema asks for"));
    }
    let text = std::fs::read(&path).map_err(|e| {
        fault(format!("{file} cannot be read: {e}"), "the file must be readable for its owner")
    })?;
    let value = parse(&text, file)?;
    let places: Vec<_> = schema.iter_errors(&value).take(SHOWN).map(|e| place(&e)).collect();
    if places.is_empty() {
        return Ok(());
    }
    Err(Fault {
        message: format!("{file} does not match the schema"),
        places,
        help: "each place in the file stands with what the schema wants there".into(),
    })
}

fn place(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let text = format!("{}: {error}", if path.is_empty() { "/" } else { &path });
    truncate(&text.replace(['\n', '\r'], " "), LINE).into_owned()
}

fn fault(message: String, help: &str) -> Fault {
    Fault { message, places: Vec::new(), help: help.to_owned() }
}

const ALONE: &str = "the file must hold one JSON value and nothing else";

/// Reads JSON; what is wrong most often is called by its name.
fn parse(text: &[u8], file: &str) -> Result<Value, Fault> {
    if text.starts_with(b"\xef\xbb\xbf") {
        let help = "write the file as UTF-8 without a byte order mark";
        return Err(fault(format!("{file} starts with a byte order mark"), help));
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(fault(format!("{file} is UTF-16"), "write the file as UTF-8"));
    }
    if text.trim_ascii().is_empty() {
        return Err(fault(format!("{file} is empty"), ALONE));
    }
    let error = match serde_json::from_slice(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if text.trim_ascii_start().starts_with(b"```") || text.trim_ascii_start().starts_with(b"~~~") {
        let help = "remove the lines with the fence; the file must hold the JSON alone";
        return Err(fault(format!("{file} has a Markdown code fence around its JSON"), help));
    }
    if std::str::from_utf8(text).is_err() {
        return Err(fault(format!("{file} is not UTF-8"), "write the file as UTF-8"));
    }
    if !text.trim_ascii_start().starts_with(b"{") && memchr::memchr2(b'{', b'[', text).is_some() {
        let help = "remove what stands before the JSON";
        return Err(fault(format!("{file} has text before its JSON: {error}"), help));
    }
    Err(fault(format!("{file} is not JSON: {error}"), ALONE))
}

/// A file that is not there: perhaps it has nearly that name, or lies elsewhere.
fn missing(output: &Path, file: &str) -> Fault {
    let below = |entry: walkdir::DirEntry| Some(entry.path().strip_prefix(output).ok()?.to_str()?.to_owned());
    let walk = walkdir::WalkDir::new(output).max_depth(4).sort_by_file_name().into_iter().flatten();
    let names: Vec<String> =
        walk.filter(|e| e.file_type().is_file()).take(LOOKED_AT).filter_map(below).collect();
    let base = file.rsplit('/').next().unwrap_or(file);
    let same = names.iter().find(|n| n.rsplit('/').next() == Some(base)).map(String::as_str);
    let near = same.or_else(|| nearest(file, names.iter().map(String::as_str)));
    let message = match (near, names.as_slice()) {
        (Some(near), _) => format!("there is no {file} in the output, but there is {near}"),
        (None, []) => format!("there is no {file}: the output is empty"),
        (None, _) => format!("there is no {file} in the output"),
    };
    let listed = match (near, names.as_slice()) {
        (None, [_, ..]) => {
            let first: Vec<_> = names.iter().take(5).map(String::as_str).collect();
            format!("; it has {}", first.join(", "))
        }
        _ => String::new(),
    };
    fault(truncate(&message, LINE).into_owned(), &format!("write $FULLSEND_OUTPUT_DIR/{file}{listed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"items":{"type":"string"}}}}"#;

    fn judge(schema: &str, name: &str, text: &[u8]) -> Option<Fault> {
        let dir = tempfile::tempdir().unwrap();
        let (path, output) = (dir.path().join("s.json"), dir.path().join("output"));
        fs_err::write(&path, schema).unwrap();
        fs_err::create_dir_all(output.join(name).parent().unwrap()).unwrap();
        fs_err::write(output.join(name), text).unwrap();
        let checks = [Check { file: DEFAULT_OUTPUT.into(), schema: path }];
        check_all(&checks, &output).unwrap().pop()
    }

    #[test]
    fn valid_output_passes() {
        assert_eq!(judge(SCHEMA, DEFAULT_OUTPUT, br#"{"a":1,"b":["x"]}"#), None);
    }

    #[test]
    fn every_problem_is_named_with_its_place() {
        let fault = judge(SCHEMA, DEFAULT_OUTPUT, br#"{"a":"x","b":["y",7]}"#).unwrap();
        assert!(fault.places.iter().any(|p| p.starts_with("/a: ")), "{fault:?}");
        assert!(fault.places.iter().any(|p| p.starts_with("/b/1: ")), "{fault:?}");
    }

    #[test]
    fn what_is_wrong_most_often_has_a_name() {
        for (text, part) in [
            (&b"```json\n{\"a\":1}\n```\n"[..], "code fence"),
            (b"\xef\xbb\xbf{\"a\":1}", "byte order mark"),
            (b"\xff\xfe{\0", "UTF-16"),
            (b" \n", "is empty"),
            (b"Here it is: {\"a\":1}", "text before"),
            (b"{\"a\":1,}", "is not JSON"),
            (b"{\"a\":\"\xff\"}", "not UTF-8"),
        ] {
            let fault = judge(SCHEMA, DEFAULT_OUTPUT, text).unwrap();
            assert!(fault.message.contains(part), "{part}: {fault:?}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_right_is_found() {
        for name in ["agent_result.json", "agent-results.json", "AgentResult.json", "deep/agent-result.json"]
        {
            let fault = judge(SCHEMA, name, b"{}").unwrap();
            assert!(fault.message.contains(&format!("but there is {name}")), "{fault:?}");
        }
        let fault = judge(SCHEMA, "other.txt", b"").unwrap();
        assert!(!fault.message.contains("but") && fault.help.contains("other.txt"), "{fault:?}");
    }

    #[test]
    fn the_draft_is_that_of_the_schema() {
        // In draft-07 `items` may be a list, one schema per place; from 2020-12 on that is `prefixItems`.
        let old = r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}"#;
        let new =
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]}"#;
        for schema in [old, new] {
            assert!(judge(schema, DEFAULT_OUTPUT, b"[1]").is_some(), "{schema}");
            assert_eq!(judge(schema, DEFAULT_OUTPUT, b"[\"x\", 1]"), None, "{schema}");
        }
        let not_known_there =
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}"#;
        assert_eq!(judge(not_known_there, DEFAULT_OUTPUT, b"[1]"), None);
    }

    #[test]
    fn a_long_value_does_not_flood_the_answer() {
        let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
        let fault = judge(SCHEMA, DEFAULT_OUTPUT, text.as_bytes()).unwrap();
        assert!(fault.places[0].len() <= LINE && fault.message.len() < LINE, "{}", fault.places[0].len());
    }

    #[test]
    fn nothing_is_said_twice() {
        let fault = |file: &str, places: &[&str]| Fault {
            message: format!("{file} is wrong"),
            places: places.iter().map(|p| (*p).to_owned()).collect(),
            help: "mend it".into(),
        };
        let one = refusal(&[fault("a", &["/x: 1"])]);
        assert_eq!((one.message(), one.detail_text()), ("a is wrong: /x: 1", None));
        let more = refusal(&[fault("a", &["/x: 1", "/y: 2"]), fault("b", &["/z: 3"])]);
        assert_eq!(more.message(), "2 files are not accepted: a is wrong: /x: 1 (and 1 more)");
        assert_eq!(more.detail_text(), Some("/y: 2\nb is wrong (mend it)\n/z: 3"));
    }
}
