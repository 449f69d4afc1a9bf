//! What GitLab CI takes as reports: a dotenv file for later jobs, a code-quality report, JUnit. The formats are those
//! of GitLab's documentation and of its parsers.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::closing::Closing;
use super::github::within;
use super::printer::Printer;
use super::sanitize::truncate;
use super::text::hex;
use crate::harness::problem::{Problems, Severity};

/// The name of the dotenv file.
pub const DOTENV: &str = "fullsend.env";
/// The name of the code-quality report.
pub const CODE_QUALITY: &str = "fullsend-code-quality.json";
/// The name of the JUnit report.
pub const JUNIT: &str = "fullsend-junit.xml";

/// Every file that a run writes for GitLab.
pub const FILES: [&str; 3] = [DOTENV, CODE_QUALITY, JUNIT];

/// The longest value of a dotenv variable, in bytes; GitLab refuses a file of more than 5 KiB.
const VALUE: usize = 300;

/// What GitLab takes at most: more, and it refuses the whole file.
const VARIABLES: usize = 20;
const FILE: usize = 5 * 1024;
/// What the names of a pre-script's outputs begin with here. A later job has no namespaces: without it a pre-script could
/// set `PATH` there.
const PREFIX: &str = "FULLSEND_PRE_";

/// Variables for later jobs, and what could not be one of them. No line but `KEY=value` is allowed, there is no quoting, and GitLab expands `$NAME` in
/// values, so that only harmless characters are kept. Empty values are left out.
pub fn dotenv(closing: &Closing<'_>, ui: &Printer) -> (String, Vec<String>) {
    let cost = closing.totals.as_ref().and_then(|m| m.cost_usd);
    let values = [
        ("FULLSEND_VERDICT", closing.verdict.to_owned()),
        ("FULLSEND_EXIT_CODE", closing.exit_code.to_string()),
        ("FULLSEND_ERROR_CODE", closing.error.map_or_else(String::new, |e| e.code().to_string())),
        ("FULLSEND_SKIPPED", (closing.verdict == "skipped").to_string()),
        ("FULLSEND_SKIP_REASON", closing.skip_reason.unwrap_or_default().to_owned()),
        ("FULLSEND_RUN", closing.run.clone().unwrap_or_default()),
        ("FULLSEND_RESULTS_DIR", closing.dir.map_or_else(String::new, |d| d.display().to_string())),
        ("FULLSEND_CHANGED", (closing.changed > 0).to_string()),
        ("FULLSEND_CHANGED_PATHS", closing.changed.to_string()),
        ("FULLSEND_COST_USD", cost.map_or_else(String::new, |usd| format!("{usd:.6}"))),
    ];
    let mut text = String::new();
    for (key, value) in values {
        let value = plain(&ui.inert(&value));
        if !value.is_empty() {
            let _ = writeln!(text, "{key}={value}");
        }
    }
    let left_out = outputs(closing, ui, &mut text);
    (text, left_out)
}

/// Adds the pre-script's outputs as they are. One that would arrive as something else is left out and told: whoever reads
/// it decides by it.
fn outputs(closing: &Closing<'_>, ui: &Printer, text: &mut String) -> Vec<String> {
    let mut left_out = Vec::new();
    for (name, value) in closing.outputs.into_iter().flatten() {
        let key = format!("{PREFIX}{}", name.to_ascii_uppercase().replace('-', "_"));
        let line = format!("{key}={value}\n");
        let mut no =
            |why: &str| left_out.push(format!("the pre-script's output `{name}` is left out: {why}"));
        if value.is_empty() {
            // Like every empty one.
        } else if text.lines().any(|line| line.split_once('=').is_some_and(|(have, _)| have == key)) {
            no(&format!("there is another {key}; names differ in more than `-`, `_` and case"));
        } else if !value.chars().all(harmless) || value.trim() != value || ui.inert(value) != *value {
            no(
                "its value has a character that GitLab would change or that ends a value, such as `$`, `=` or a quote",
            );
        } else if value.len() > VALUE {
            no(&format!("its value is longer than {VALUE} bytes"));
        } else if text.lines().count() >= VARIABLES || text.len() + line.len() > FILE {
            no(&format!("GitLab takes no more than {VARIABLES} variables and {FILE} bytes"));
        } else {
            text.push_str(&line);
        }
    }
    left_out
}

/// Whether a character means nothing to any parser of a dotenv file.
fn harmless(c: char) -> bool {
    c.is_alphanumeric() || " .,:;/_+-()@".contains(c)
}

fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if harmless(c) { c } else { '_' }).collect();
    truncate(text.trim(), VALUE).trim().to_owned()
}

/// The code-quality report of a run: what the scanners found, and the problems of the harness.
pub fn code_quality(closing: &Closing<'_>, top: Option<&Path>, ui: &Printer) -> String {
    let mut list: Vec<Value> = Vec::new();
    for f in &closing.findings {
        let severity = match f.severity.as_str() {
            "critical" => "blocker",
            "high" => "critical",
            "medium" => "major",
            _ => "minor",
        };
        list.push(entry(&ui.inert(&f.message), &f.check(), severity, &ui.inert(&f.file), f.line));
    }
    if let Some(problems) = closing.error.and_then(|e| e.problem_list()) {
        list.extend(entries(problems, top, ui));
    }
    format!("{:#}\n", Value::Array(list))
}

/// The code-quality report of the problems of input files.
pub fn problems(problems: &Problems, top: Option<&Path>, ui: &Printer) -> String {
    format!("{:#}\n", Value::Array(entries(problems, top, ui)))
}

fn entries(problems: &Problems, top: Option<&Path>, ui: &Printer) -> Vec<Value> {
    // An entry needs a place.
    let placed = problems.0.iter().filter_map(|p| Some((p, p.place.as_ref()?)));
    placed
        .map(|(p, place)| {
            let severity = match p.severity {
                Severity::Error => "critical",
                Severity::Warning => "minor",
            };
            let file = within(top, place.file.as_str());
            let line = u64::try_from(place.line).unwrap_or(0);
            entry(&ui.inert(&p.message), p.code.as_str(), severity, &ui.inert(file), line)
        })
        .collect()
}

fn entry(description: &str, check: &str, severity: &str, file: &str, line: u64) -> Value {
    let mut hash = Sha256::new();
    for part in [check, file, &line.to_string(), description] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    json!({
        "description": description,
        "check_name": check,
        "fingerprint": hex(&hash.finalize()[..16]),
        "severity": severity,
        "location": { "path": file, "lines": { "begin": line.max(1) } },
    })
}

/// JUnit: one test for the run, one for each judgement of an iteration. An iteration that another one followed counts
/// as skipped, so that the report says what the run came to.
pub fn junit(closing: &Closing<'_>, ui: &Printer) -> String {
    let agent = xml(&ui.inert(closing.agent));
    let mut cases = vec![run_case(closing, &agent, ui)];
    let last = closing.attempts.last().map(|a| a.number);
    for attempt in closing.attempts.iter().filter(|a| a.valid.is_some()) {
        let outcome = match (attempt.valid, Some(attempt.number) == last) {
            (Some(true), _) => Outcome::Passed,
            (_, true) => {
                Outcome::Failed("the output did not validate", closing.error.and_then(|e| e.detail_text()))
            }
            _ => Outcome::Skipped("the output did not validate; another iteration followed"),
        };
        let name = format!("iteration {}: the output is valid", attempt.number);
        cases.push(case(&name, &agent, attempt.duration_ms.unwrap_or(0), &outcome, ui));
    }
    let count = |sign: &str| cases.iter().filter(|c| c.contains(sign)).count();
    let (failed, skipped) = (count("<failure "), count("<skipped "));
    let time = seconds(closing.duration_ms);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"fullsend {agent}\" \
         tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{time}\">\n{}  \
         </testsuite>\n</testsuites>\n",
        cases.len(),
        cases.concat(),
    )
}

enum Outcome<'a> {
    Passed,
    Failed(&'a str, Option<&'a str>),
    Skipped(&'a str),
}

fn run_case(closing: &Closing<'_>, agent: &str, ui: &Printer) -> String {
    let outcome = match (closing.error, closing.skip_reason) {
        (Some(_), _) => Outcome::Failed(&closing.reason, closing.next.as_deref()),
        (None, Some(reason)) => Outcome::Skipped(reason),
        (None, None) => Outcome::Passed,
    };
    case("the run succeeds", agent, closing.duration_ms, &outcome, ui)
}

fn case(name: &str, agent: &str, ms: u64, outcome: &Outcome<'_>, ui: &Printer) -> String {
    let head = format!(
        "    <testcase classname=\"fullsend.{agent}\" name=\"{}\" time=\"{}\"",
        xml(name),
        seconds(ms)
    );
    match outcome {
        Outcome::Passed => format!("{head}/>\n"),
        Outcome::Skipped(why) => {
            format!("{head}>\n      <skipped message=\"{}\"/>\n    </testcase>\n", xml(&ui.inert(why)))
        }
        Outcome::Failed(why, detail) => {
            let lines: Vec<_> = detail.unwrap_or_default().lines().map(|l| xml(&ui.inert(l))).collect();
            format!(
                "{head}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                xml(&ui.inert(why)),
                lines.join("\n")
            )
        }
    }
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Text of an attribute or element; what XML 1.0 has no form for is left out.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push(' '),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::error::{Code, Error};
    use crate::report::closing::{Attempt, Found};
    use crate::report::{ColorChoice, Verbosity};

    fn ui() -> Printer {
        Printer::new(ColorChoice::Never, Verbosity::Quiet)
    }

    #[test]
    fn a_dotenv_file_has_what_is_known() {
        let closing = Closing {
            verdict: "skipped",
            skip_reason: Some("a=b $CI_JOB_TOKEN \"x\""),
            ..Closing::default()
        };
        assert_eq!(
            dotenv(&closing, &ui()).0,
            "FULLSEND_VERDICT=skipped\nFULLSEND_EXIT_CODE=0\nFULLSEND_SKIPPED=true\n\
             FULLSEND_SKIP_REASON=a_b _CI_JOB_TOKEN _x_\nFULLSEND_CHANGED=false\nFULLSEND_CHANGED_PATHS=0\n"
        );
    }

    #[test]
    fn outputs_of_the_pre_script_arrive_unchanged_or_not_at_all() {
        let many: Vec<_> = (0..20).map(|n| (format!("n{n}"), "1".to_owned())).collect();
        let odd = [
            ("label", "bug"),
            ("PATH", "/x"),
            ("a-b", "1"),
            ("a_b", "2"),
            ("eq", "x=y"),
            ("var", "$HOME"),
            ("no", ""),
        ];
        let odd: Vec<_> = odd.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let of = |list: &[(String, String)]| {
            let outputs = list.iter().cloned().collect();
            dotenv(&Closing { verdict: "success", outputs: Some(&outputs), ..Closing::default() }, &ui())
        };
        let (text, left_out) = of(&odd);
        let lines: Vec<_> = text.lines().filter(|l| l.starts_with(PREFIX)).collect();
        assert_eq!(lines, ["FULLSEND_PRE_PATH=/x", "FULLSEND_PRE_A_B=1", "FULLSEND_PRE_LABEL=bug"]);
        assert_eq!(left_out.len(), 3, "{left_out:?}");
        assert!(left_out.iter().zip(["`a_b`", "`eq`", "`var`"]).all(|(l, n)| l.contains(n)), "{left_out:?}");
        let (text, left_out) = of(&many);
        assert_eq!(text.lines().count(), VARIABLES);
        assert!(!left_out.is_empty() && left_out[0].contains("20 variables"), "{left_out:?}");
    }

    #[test]
    fn junit_tells_the_run_and_each_judgement() {
        let error = Error::new(Code::ValidationFailed, "no").detail("a <b>\nc");
        let attempt = |number, valid| Attempt { number, valid, duration_ms: Some(1500) };
        let closing = Closing {
            agent: "a&b",
            verdict: "invalid",
            reason: "it \"failed\"".into(),
            error: Some(&error),
            attempts: vec![attempt(1, Some(false)), attempt(2, Some(false))],
            ..Closing::default()
        };
        insta::assert_snapshot!(junit(&closing, &ui()));
    }

    #[test]
    fn code_quality_has_every_field_and_distinct_fingerprints() {
        let found = |line, severity: &str| Found {
            scanner: "unicode".into(),
            rule: "bidi".into(),
            severity: severity.into(),
            file: "a/b".into(),
            line,
            message: "hidden".into(),
            ..Found::default()
        };
        let closing = Closing { findings: vec![found(0, "critical"), found(3, "low")], ..Closing::default() };
        let list: Vec<Value> = serde_json::from_str(&code_quality(&closing, None, &ui())).unwrap();
        assert_eq!(list[0]["location"], json!({"path": "a/b", "lines": {"begin": 1}}));
        assert_eq!((&list[0]["severity"], &list[1]["severity"]), (&json!("blocker"), &json!("minor")));
        assert_eq!(
            (&list[0]["check_name"], &list[1]["description"]),
            (&json!("unicode/bidi"), &json!("hidden"))
        );
        assert_eq!(list.iter().map(|e| e["fingerprint"].as_str()).collect::<BTreeSet<_>>().len(), 2);
    }

    proptest! {
        /// GitLab reads each line as `KEY=value`; anything else refuses the whole file.
        #[test]
        fn no_text_breaks_a_dotenv_file(reason in any::<String>(), agent in any::<String>()) {
            let closing = Closing {
                verdict: "skipped",
                skip_reason: Some(&reason),
                run: Some(agent),
                ..Closing::default()
            };
            let (text, _) = dotenv(&closing, &ui());
            prop_assert!(text.len() < 5 * 1024);
            for line in text.lines() {
                let (key, value) = line.split_once('=').unwrap();
                prop_assert!(key.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
                prop_assert!(!value.contains(['=', '$', '"', '\'', '`', '\\']) && !value.is_empty());
            }
        }

        #[test]
        fn no_text_breaks_the_xml(text in any::<String>()) {
            let closing = Closing { agent: &text, skip_reason: Some(&text), ..Closing::default() };
            let out = junit(&closing, &ui());
            prop_assert_eq!(out.matches('<').count(), out.matches('>').count());
            prop_assert_eq!(out.matches("<testcase").count(), 1);
        }
    }
}
