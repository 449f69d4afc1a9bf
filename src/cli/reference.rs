//! `fullsend reference`: pages of the documentation that are generated from the program itself.

use std::fmt::Write as _;

use clap::ValueEnum;

use crate::report::Printer;

/// Print a generated page of the reference in Markdown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The page.
    page: Page,
}

/// A page.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Page {
    /// Every command with its options.
    Cli,
    /// Every field of the files of a harness directory.
    Fields,
}

pub(super) fn main(args: &Args, ui: &Printer) {
    match args.page {
        Page::Cli => ui.data(&page()),
        Page::Fields => ui.data(&crate::harness::fields_page()),
    }
}

/// The page `docs/reference/cli.md` without its first line.
fn page() -> String {
    let mut root = super::visible_command();
    root.build();
    let mut out = String::from("# Command line\n");
    section(&mut out, &root, 2);
    for command in root.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        section(&mut out, command, 2);
    }
    out
}

fn section(out: &mut String, command: &clap::Command, level: usize) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let _ = writeln!(out, "\n{} {name}\n", "#".repeat(level));
    let about = command.get_long_about().or_else(|| command.get_about());
    let _ = writeln!(out, "{}", sentence(&about.map(ToString::to_string).unwrap_or_default()));
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(out, "\n```text\n{}\n```", usage.trim_start_matches("Usage: ").trim());
    let commands: Vec<_> = command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
    if !commands.is_empty() {
        out.push_str("\n| Command | |\n|---|---|\n");
        for c in commands {
            let about = c.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(out, "| `{}` | {} |", c.get_name(), cell(&sentence(&about)));
        }
    }
    let (positional, options): (Vec<_>, Vec<_>) =
        command.get_arguments().filter(|a| !a.is_hide_set()).partition(|a| a.is_positional());
    // Options of every command are described once, at the top.
    let top = command.get_subcommands().next().is_some();
    let options: Vec<_> = options
        .into_iter()
        .filter(|a| top || !(a.is_global_set() || matches!(a.get_id().as_str(), "help" | "version")))
        .collect();
    table(out, "Argument", &positional);
    table(out, if top { "Option of every command" } else { "Option" }, &options);
    if let Some(text) = command.get_after_help() {
        let _ = writeln!(out, "\n{text}");
    }
}

fn table(out: &mut String, title: &str, arguments: &[&clap::Arg]) {
    if arguments.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n| {title} | |\n|---|---|");
    for argument in arguments {
        let _ = writeln!(out, "| {} | {} |", spelling(argument), cell(&description(argument)));
    }
}

fn spelling(argument: &clap::Arg) -> String {
    let value = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    let value = value.and_then(|names| names.first()).map(|name| format!("<{name}>"));
    let names: Vec<_> =
        [argument.get_short().map(|c| format!("-{c}")), argument.get_long().map(|name| format!("--{name}"))]
            .into_iter()
            .flatten()
            .collect();
    let mut text = names.join("`, `");
    if let Some(value) = value {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&value);
    }
    format!("`{text}`")
}

fn description(argument: &clap::Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    // A default that is no value of the option stands in its text.
    let mut text = match help.strip_suffix(']').and_then(|h| h.split_once(" [default: ")) {
        Some((head, default)) => format!("{} Default: {}", sentence(head), sentence(default)),
        None => sentence(&help),
    };
    let values = argument.get_possible_values();
    let values: Vec<_> = values.iter().filter(|v| !v.is_hide_set()).collect();
    if !values.is_empty() && argument.get_action().takes_values() {
        let shown: Vec<_> = values
            .iter()
            .map(|v| match v.get_help() {
                Some(help) => format!("`{}` ({help})", v.get_name()),
                None => format!("`{}`", v.get_name()),
            })
            .collect();
        let _ = write!(text, " One of {}.", shown.join(", "));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let _ = write!(text, " Default: `{}`.", defaults.join(" "));
    }
    text
}

/// The help texts of the parser have no full stop at their end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', ':', ']']) { text.to_owned() } else { format!("{text}.") }
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
