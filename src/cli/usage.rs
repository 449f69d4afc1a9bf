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
    let known = super::command();
    let command = words.iter().find_map(|w| known.find_subcommand(w));
    let more =
        format!("`fullsend{} --help`", command.map(|c| format!(" {}", c.get_name())).unwrap_or_default());
    if error.kind() == ErrorKind::UnknownArgument
        && let Some((option, value)) = negative(words)
    {
        return Error::new(Code::Usage, format!("{option} takes no negative value, and {value:?} is one"))
            .help(format!("leave the `-` before the number out; see {more}"));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some((option, value)) = unjoined(words)
    {
        return Error::new(Code::Usage, format!("unexpected argument {value:?} found"))
            .help(format!("write `{option}={value}` if it is the value of {option}; see {more}"));
    }
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
    tips.push("see");
    Error::new(Code::Usage, plain(&message.join(" "))).help(format!("{} {more}", tips.join("; ")))
}

/// The option that was given a number below nothing: to the parser that is an option of its own.
fn negative(words: &[String]) -> Option<(&str, &str)> {
    let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
    words[..end].windows(2).find_map(|pair| {
        let [option, value] = pair else { return None };
        let number =
            value.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let named = option.strip_prefix("--").is_some_and(|name| !name.is_empty() && !name.contains('='));
        (number && named).then_some((option.as_str(), value.as_str()))
    })
}

/// The option whose value needs a `=`, with the word that follows it: without the `=` it has its default.
fn unjoined(words: &[String]) -> Option<(&str, &str)> {
    let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
    words[..end].windows(2).find_map(|pair| match pair {
        [option, value] if option == "--keep-sandbox" && value.starts_with(|c: char| c.is_ascii_digit()) => {
            Some((option.as_str(), value.as_str()))
        }
        _ => None,
    })
}

/// A message without the words of the library that reads numbers.
fn plain(message: &str) -> String {
    for (from, to) in [
        ("number too large to fit in target type", "the number is too large"),
        ("number would be zero for non-zero type", "0 is not allowed"),
        ("invalid digit found in string", "it is not a whole number"),
        ("cannot parse integer from empty string", "it is empty"),
    ] {
        if let Some(before) = message.strip_suffix(from) {
            return format!("{before}{to}");
        }
    }
    let Some((before, range)) = message.rsplit_once(" is not in ") else { return message.to_owned() };
    let Some((from, to)) = range.split_once("..") else { return message.to_owned() };
    let to = to.trim_start_matches('=');
    // The end of a range that has none is the largest number of its type.
    match to.parse::<u64>() {
        Ok(to) if to < u64::from(u32::MAX) => format!("{before} is not from {from} to {to}"),
        _ => format!("{before} is less than {from}"),
    }
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
        for (line, message) in [
            (&["run", "a", "--timeout", "-5m"][..], "--timeout takes no negative value, and \"-5m\" is one"),
            (&["run", "a", "--max-turns", "-1"], "--max-turns takes no negative value, and \"-1\" is one"),
            (&["logs", "--limit", "-3"], "--limit takes no negative value, and \"-3\" is one"),
            (
                &["run", "a", "--max-turns", "1.5"],
                "invalid value '1.5' for '--max-turns <N>': it is not a whole number",
            ),
            (
                &["logs", "--agent", "a", "--limit", "0"],
                "invalid value '0' for '--limit <N>': 0 is less than 1",
            ),
            (
                &["run", "a", "--api-retries", "11"],
                "invalid value '11' for '--api-retries <N>': 11 is not from 0 to 10",
            ),
            (&["run", "a", "-5"], "unexpected argument '-5' found"),
            (&["run", "a", "--dry-run", "--", "--ttl", "-5"], "unexpected argument '--ttl' found"),
        ] {
            assert_eq!(report(line).message(), message);
        }
        let e = report(&["run"]);
        assert_eq!(e.message(), "the following required arguments were not provided: <AGENT>");
        assert_eq!(e.exit_code(), 2);
    }
}
