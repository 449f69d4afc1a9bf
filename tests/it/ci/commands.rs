//! Readers of what a job prints and writes, after the sources of GitHub's runner (`ActionCommand.cs`,
//! `FileCommandManager.cs`) and GitLab's parsers (`Gitlab::Ci::Trace`, `Ci::ParseDotenvArtifactService`).

use std::collections::BTreeMap;

/// The workflow commands that the runner knows.
const KNOWN: [&str; 17] = [
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "internal-set-repo-path",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
    "section",
];

/// A workflow command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub name: String,
    pub properties: BTreeMap<String, String>,
    pub data: String,
}

/// The commands in a log, in order. Both forms count, as they do for the runner: `::name …::data` at the start of a
/// line, `##[name …]data` anywhere in it.
pub fn parse(log: &str) -> Vec<Command> {
    // The runner reads lines as .NET does: a lone carriage return ends one too.
    log.split(['\n', '\r']).filter_map(|line| second_form(line).or_else(|| first_form(line))).collect()
}

fn second_form(line: &str) -> Option<Command> {
    let rest = line.trim_start().strip_prefix("::")?;
    let (info, data) = rest.split_once("::")?;
    let data = data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    command(info, ',', data, |v| {
        let v = v.replace("%0D", "\r").replace("%0A", "\n");
        v.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
    })
}

fn first_form(line: &str) -> Option<Command> {
    let (_, rest) = line.split_once("##[")?;
    let (info, data) = rest.split_once(']')?;
    command(info, ';', data.to_owned(), str::to_owned)
}

fn command(info: &str, between: char, data: String, unescape: impl Fn(&str) -> String) -> Option<Command> {
    let (name, properties) = info.split_once(' ').unwrap_or((info, ""));
    KNOWN.contains(&name.to_lowercase().as_str()).then_some(())?;
    let pairs = properties.trim().split(between).filter_map(|p| p.split_once('='));
    let properties = pairs.map(|(k, v)| (k.to_lowercase(), unescape(v))).collect();
    Some(Command { name: name.to_lowercase(), properties, data })
}

/// The values in a file of `name=value` and `name<<delimiter` entries; later ones win. Panics where the runner fails.
pub fn values(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut lines = text.split_terminator('\n');
    while let Some(line) = lines.next().filter(|l| !l.is_empty()) {
        let (equals, heredoc) = (line.find('='), line.find("<<"));
        if equals.is_some() && (heredoc.is_none() || equals < heredoc) {
            let (name, value) = line.split_once('=').unwrap();
            values.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let (name, delimiter) = line.split_once("<<").unwrap_or_else(|| panic!("no entry: {line:?}"));
        assert!(!name.is_empty() && !delimiter.is_empty(), "{line:?}");
        let mut value = Vec::new();
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("the delimiter of {name} is missing"));
            if line == delimiter {
                break;
            }
            value.push(line);
        }
        values.insert(name.to_owned(), value.join("\n"));
    }
    values
}

/// Groups open and close one after the other, and none is left open.
#[track_caller]
pub fn assert_groups(commands: &[Command]) {
    let mut open = false;
    for command in commands.iter().filter(|c| c.name.contains("group")) {
        assert_eq!(open, command.name == "endgroup", "{commands:?}");
        open = !open;
    }
    assert!(!open, "a group is left open: {commands:?}");
}

/// GitLab's sections in a log as (name, seconds from its start to its end): each is closed before the one around it.
#[track_caller]
pub fn sections(log: &str) -> Vec<(String, i64)> {
    let marker =
        regex::Regex::new(r"section_(start|end):(\d+):([a-zA-Z0-9_.-]+)(?:\[[^\]]*\])?\r\x1b\[0K").unwrap();
    let mut open: Vec<(String, i64)> = Vec::new();
    let mut closed: Vec<(String, i64)> = Vec::new();
    for found in marker.captures_iter(log) {
        let (time, name) = (found[2].parse::<i64>().unwrap(), found[3].to_owned());
        if &found[1] == "start" {
            assert!(!open.iter().chain(&closed).any(|(n, _)| *n == name), "the section {name} comes twice");
            open.push((name, time));
        } else {
            let (last, start) = open.pop().unwrap_or_else(|| panic!("the section {name} was not open"));
            assert_eq!(last, name, "sections cross");
            assert!(time >= start);
            closed.push((name, time - start));
        }
    }
    assert!(open.is_empty(), "sections are left open: {open:?}");
    closed
}

/// The variables of a dotenv report. Panics where GitLab refuses the file.
pub fn dotenv(text: &str) -> BTreeMap<String, String> {
    assert!(text.len() <= 5 * 1024, "the file is larger than 5 KiB");
    let mut variables = BTreeMap::new();
    for line in text.lines() {
        // Older parsers take the last sign, newer ones the first: there must be one.
        assert_eq!(line.matches('=').count(), 1, "{line:?}");
        let (key, value) = line.split_once('=').unwrap();
        assert!(!key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line:?}");
        assert!(variables.insert(key.to_owned(), value.to_owned()).is_none(), "{key} comes twice");
    }
    assert!(variables.len() <= 20, "more than 20 variables");
    variables
}

#[test]
fn the_reader_of_commands_is_as_strict_as_the_runner() {
    let names = |log: &str| parse(log).iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    assert_eq!(names("  ::error::x\n x ::error::y\n::nothing::z\n::error\n"), ["error"]);
    assert_eq!(names("text ##[error]x\n##[nothing]\n\r::warning::z"), ["error", "warning"]);
    let all = parse("::error file=a%2Cb,line=3,title=T%3A::x%0Ay%2525\n");
    assert_eq!(all[0].properties["file"], "a,b");
    assert_eq!((all[0].properties["title"].as_str(), all[0].data.as_str()), ("T:", "x\ny%25"));
}
