//! Command lines that cannot be parsed, in the form of every other error.

use clap::error::ErrorKind;

use crate::error::{Code, Error};

/// What the parser has to say when it is not an error: help and version texts. They go where the parser wants
/// them to.
pub(super) fn answer(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The parser's message as one of our errors: its first paragraph is what happened, its tips are what to do.
pub(super) fn error(error: &clap::Error, words: &[String]) -> Error {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (mut message, mut tips): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        match line.strip_prefix("tip: ") {
            Some(tip) => tips.push(tip),
            None => message.push(line),
        }
    }
    let known = super::command();
    let command = words.iter().find_map(|w| known.find_subcommand(w)).map(|c| format!(" {}", c.get_name()));
    tips.push("see");
    let more = format!("`fullsend{} --help`", command.unwrap_or_default());
    Error::new(Code::Usage, message.join(" ")).help(format!("{} {more}", tips.join("; ")))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn report(line: &[&str]) -> Error {
        let words: Vec<_> = line.iter().map(|w| (*w).to_owned()).collect();
        error(&super::super::Cli::try_parse_from([&["fullsend"], line].concat()).unwrap_err(), &words)
    }

    #[test]
    fn message_and_tips_are_told_apart() {
        let e = report(&["run", "a", "--tmeout", "5m"]);
        assert_eq!(e.message(), "unexpected argument '--tmeout' found");
        assert_eq!(e.help_text(), "a similar argument exists: '--timeout'; see `fullsend run --help`");
        let e = report(&["nosuch"]);
        assert_eq!(e.message(), "unrecognized subcommand 'nosuch'");
        assert_eq!(e.help_text(), "see `fullsend --help`");
        let e = report(&["run"]);
        assert_eq!(e.message(), "the following required arguments were not provided: <AGENT>");
        assert_eq!(e.exit_code(), 2);
    }
}
