//! Problems of input files for people and for programs: text, JSON, SARIF, GitHub's annotations.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::github::annotate;
use super::printer::Printer;
use crate::error::Code;
use crate::harness::problem::{Problem, Problems, Severity};

/// How many errors and warnings there are.
pub fn count(problems: &Problems) -> (usize, usize) {
    let errors = problems.0.iter().filter(|p| p.severity == Severity::Error).count();
    (errors, problems.0.len() - errors)
}

/// For people: each with its excerpt, errors first, then the sum.
pub fn text(problems: &Problems, agents: usize, printer: &Printer) -> String {
    let mut out = printer.frame(&super::problem::render(
        problems,
        printer.color(),
        printer.unicode(),
        printer.report_width(),
    ));
    if !out.is_empty() {
        out.push('\n');
    }
    let (errors, warnings) = count(problems);
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let _ =
        writeln!(out, "{}: {}, {}", many(agents, "agent"), many(errors, "error"), many(warnings, "warning"));
    out
}

/// For programs.
pub fn json(problems: &Problems, agents: &[String]) -> String {
    let (errors, warnings) = count(problems);
    let list: Vec<_> = problems.0.iter().map(one).collect();
    pretty(&json!({
        "schema": "fullsend.validate/1",
        "agents": agents,
        "errors": errors,
        "warnings": warnings,
        "problems": list,
    }))
}

fn one(problem: &Problem) -> Value {
    let place = problem.place.as_ref();
    json!({
        "code": problem.code,
        "severity": level(problem),
        "message": problem.message,
        "help": problem.help,
        "file": place.map(|p| p.file.as_str()),
        "line": place.map(|p| p.line).filter(|line| *line > 0),
        "column": place.map(|p| p.column).filter(|column| *column > 0),
    })
}

fn level(problem: &Problem) -> &'static str {
    match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// SARIF 2.1.0 (OASIS), as code scanners are read.
pub fn sarif(problems: &Problems) -> String {
    let mut codes: Vec<Code> = problems.0.iter().map(|p| p.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<_> = codes
        .iter()
        .map(|code| json!({ "id": code, "shortDescription": { "text": code.summary() } }))
        .collect();
    let results: Vec<_> = problems.0.iter().map(result).collect();
    pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fullsend",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    }))
}

fn result(problem: &Problem) -> Value {
    let help = problem.help.as_ref().map(|help| format!(". {help}")).unwrap_or_default();
    let mut result = json!({
        "ruleId": problem.code,
        "level": level(problem),
        "message": { "text": format!("{}{help}", problem.message) },
    });
    if let Some(place) = &problem.place {
        let mut physical = json!({ "artifactLocation": { "uri": uri(place.file.as_str()) } });
        if place.line > 0 {
            physical["region"] = json!({ "startLine": place.line });
            if place.column > 0 {
                physical["region"]["startColumn"] = place.column.into();
            }
        }
        result["locations"] = json!([{ "physicalLocation": physical }]);
    }
    result
}

/// A path as a URI reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut out = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Annotations of GitHub Actions.
pub fn github(problems: &Problems) -> String {
    let one = |problem: &Problem| {
        let at = problem.place.as_ref().map(|p| (p.file.as_str(), p.line, p.column));
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        annotate(level(problem), at, problem.code.as_str(), &format!("{}{help}", problem.message))
    };
    problems.0.iter().map(one).collect()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::problem::Place;

    fn problems() -> Problems {
        let place =
            |line, column| Place { file: "harness/a b.yaml".into(), line, column, span: 0..0, text: None };
        Problems(vec![
            Problem::error(Code::YamlKey, "first\nline").help("do: this").at(Some(place(3, 7))),
            Problem::warning(Code::Value, "second").at(Some(place(0, 0))),
            Problem::error(Code::Value, "third"),
        ])
    }

    #[test]
    fn json_has_every_problem_with_its_place() {
        let value: Value = serde_json::from_str(&json(&problems(), &["a".to_owned()])).unwrap();
        assert_eq!((value["errors"].as_u64(), value["warnings"].as_u64()), (Some(2), Some(1)));
        assert_eq!(value["problems"][0]["code"], "FS-YAML-KEY");
        assert_eq!(
            (value["problems"][0]["line"].as_u64(), value["problems"][1]["line"].as_u64()),
            (Some(3), None)
        );
        assert_eq!(value["problems"][2]["file"], Value::Null);
    }

    #[test]
    fn sarif_has_rules_and_places() {
        let value: Value = serde_json::from_str(&sarif(&problems())).unwrap();
        let run = &value["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
        let place = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "harness/a%20b.yaml");
        assert_eq!((&place["region"]["startLine"], &place["region"]["startColumn"]), (&json!(3), &json!(7)));
        assert_eq!(run["results"][1]["locations"][0]["physicalLocation"]["region"], Value::Null);
        assert_eq!(run["results"][2]["locations"], Value::Null);
    }

    #[test]
    fn annotations_are_one_line_each() {
        assert_eq!(
            github(&problems()),
            "::error file=harness/a b.yaml,line=3,col=7,title=FS-YAML-KEY::first%0Aline (do: this)\n\
             ::warning file=harness/a b.yaml,line=1,title=FS-VALUE::second\n\
             ::error title=FS-VALUE::third\n"
        );
    }
}
