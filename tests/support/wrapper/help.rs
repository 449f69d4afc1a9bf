//! `--version` and the help texts by which a runner tells the releases apart.

use crate::personality::Personality;

/// The help of `sandbox create`, shortened to its options.
pub(crate) fn create(personality: Personality) -> String {
    let mut options = vec![
        "--name <NAME>",
        "--from <IMAGE>",
        "--upload <LOCAL[:REMOTE]>",
        "--no-keep",
        "--cpu <CPU>",
        "--memory <MEMORY>",
        "--provider <PROVIDERS>",
        "--policy <POLICY>",
        "--tty",
        "--no-tty",
        "--auto-providers",
        "--no-auto-providers",
        "--label <LABELS>",
        "--env <ENV>",
    ];
    if personality >= Personality::V0_0_110 {
        options.push("-o, --output <OUTPUT>");
    }
    if personality >= Personality::V0_0_116 {
        options.push("--detach");
    }
    if personality >= Personality::V0_1_10 {
        options.extend(["--restart-policy <POLICY>", "--template <NAME>"]);
    }
    let list = options.join("\n      ");
    format!(
        "Create a sandbox\n\nUsage: openshell sandbox create [OPTIONS] [COMMAND]...\n\nOptions:\n      {list}\n"
    )
}

/// The help of `sandbox list` before 0.1.0, shortened to its options.
pub(crate) const LIST: &str = "List sandboxes\n\nUsage: openshell sandbox list [OPTIONS]\n\nOptions:\n      --limit \
                               <LIMIT>\n      --offset <OFFSET>\n      --ids\n      --names\n      --selector \
                               <SELECTOR>\n  -o, --output <OUTPUT>\n";

/// What clap prints for an option that a release does not know.
pub(crate) fn unexpected(argument: &str) -> String {
    format!(
        "error: unexpected argument '{argument}' found\n\nUsage: openshell [OPTIONS] <COMMAND>\n\nFor more \
         information, try '--help'.\n"
    )
}

/// What clap prints for a subcommand that a release does not have.
pub(crate) fn unrecognized(subcommand: &str) -> String {
    format!(
        "error: unrecognized subcommand '{subcommand}'\n\nUsage: openshell [OPTIONS] <COMMAND>\n\nFor more \
         information, try '--help'.\n"
    )
}
