//! Reads a CI log as strictly as the CI systems do, and more so: what would act on them or on a terminal.

use super::secret::{in_bytes, key};
use super::stage::Ci;

/// A word that every injected command of the suite carries.
pub(super) const INJECTED: &str = "INJECTED";

/// The workflow commands that a run itself gives.
const OURS: [&str; 6] = ["group", "endgroup", "add-mask", "warning", "error", "notice"];

/// What in a log acts and should not.
pub(super) fn wrong(text: &str, ci: Ci) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rest = text.to_owned();
    if ci == Ci::GitLab {
        rest = without_our_sections(text, &mut wrong);
    }
    for c in rest.chars().filter(|c| acts(*c)) {
        wrong.push(format!("the log holds U+{:04X}", u32::from(c)));
    }
    if ci == Ci::GitHub {
        // .NET's ReadLine, which the GitHub runner uses, ends a line at CR as well.
        wrong.extend(text.split(['\n', '\r']).filter_map(command));
    }
    wrong.sort();
    wrong.dedup();
    wrong
}

/// Characters that move a cursor, hide or reorder text.
fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A line that the GitHub runner takes for a command (`ActionCommand.TryParse` and `TryParseV2` of actions/runner).
fn command(line: &str) -> Option<String> {
    if line.contains("##[") {
        return Some(format!("an old workflow command: {line}"));
    }
    let inner = line.trim_start().strip_prefix("::")?;
    let Some((head, data)) = inner.split_once("::") else { return Some(format!("half a command: {line}")) };
    let name = head.split(' ').next().unwrap_or_default();
    let injected = head.contains(INJECTED) || (name != "add-mask" && data.trim_start().starts_with(INJECTED));
    let ours = in_bytes(unescape(data).as_bytes()).is_some() || key().lines().any(|l| l == data);
    let mask = name == "add-mask" && !ours;
    (!OURS.contains(&name) || injected || mask).then(|| format!("a workflow command: {line}"))
}

fn unescape(data: &str) -> String {
    data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
}

/// Removes the marks of our own sections; any other mark is wrong.
fn without_our_sections(text: &str, wrong: &mut Vec<String>) -> String {
    let mut out = String::new();
    for line in text.split('\n') {
        let title = our_section(line);
        if title.is_none() && (line.contains("section_start:") || line.contains("section_end:")) {
            wrong.push(format!("a section of GitLab: {line:?}"));
        }
        out.push_str(title.unwrap_or(line));
        out.push('\n');
    }
    out
}

/// `ESC[0Ksection_start:<seconds>:fullsend_<n>CR ESC[0K<title>`, or the end of one.
fn our_section(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("\u{1b}[0Ksection_")?;
    let rest = rest.strip_prefix("start:").or_else(|| rest.strip_prefix("end:"))?;
    let (seconds, rest) = rest.split_once(':')?;
    let (id, title) = rest.split_once("\r\u{1b}[0K")?;
    let number = id.strip_prefix("fullsend_")?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(seconds) && digits(number) && !title.contains("section_")).then_some(title)
}

/// The parser finds what it is for.
pub(super) fn prove() {
    for line in [
        "::error::INJECTED",
        "  ::set-output name=INJECTED::x",
        "x\r::stop-commands::INJECTED",
        "text ##[error]INJECTED",
        "::add-mask::INJECTED",
        "::group::INJECTED",
        "::error title=INJECTED::x",
        "\u{1b}[31mred",
        "\u{9b}31m",
        "a\u{202e}b",
    ] {
        assert!(!wrong(line, Ci::GitHub).is_empty(), "{line:?}");
    }
    for line in ["\u{1b}[0Ksection_start:1:x\r\u{1b}[0KINJECTED", "section_end:1:x", "\u{1b}[0K"] {
        assert!(!wrong(line, Ci::GitLab).is_empty(), "{line:?}");
    }
    let fine = "::group::run\n::endgroup::\n  | : :error: :INJECTED\n::warning::agent said INJECTED\n";
    assert_eq!(wrong(fine, Ci::GitHub), Vec::<String>::new());
    let fine =
        "\u{1b}[0Ksection_start:17:fullsend_1\r\u{1b}[0Krun\n\u{1b}[0Ksection_end:18:fullsend_1\r\u{1b}[0K\n";
    assert_eq!(wrong(fine, Ci::GitLab), Vec::<String>::new());
}
