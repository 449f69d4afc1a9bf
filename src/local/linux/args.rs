//! The command line of the stand-in: clap types, no logic.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(name = "openshell", version = super::VERSION, about = "The embedded OpenShell-compatible backend")]
pub(super) struct Cli {
    /// Accepted for compatibility; there is one gateway, `local`
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(super) gateway: Option<String>,
    /// Accepted for compatibility; there is one workspace, `default`
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) workspace: Option<String>,
    /// Accepted for compatibility; nothing is coloured
    #[arg(long, global = true, value_name = "WHEN")]
    pub(super) color: Option<String>,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create, inspect and delete sandboxes
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Speak SSH on standard input and output
    SshProxy {
        #[arg(long)]
        gateway_name: Option<String>,
        #[arg(long)]
        name: String,
    },
    /// Make a socket and pass it over standard input
    #[command(hide = true)]
    Listen {
        #[arg(long)]
        port: u16,
    },
    /// Show what the sandbox process wrote
    Logs {
        name: String,
        /// Lines from the end; 0 is all
        #[arg(short = 'n', default_value_t = 200)]
        lines: usize,
        #[arg(long, default_value = "all")]
        source: String,
    },
    /// Manage providers
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Manage provider profiles
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Change settings
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Show whether the gateway answers
    Status {
        #[arg(short, long)]
        output: Option<Format>,
    },
    /// Show gateways
    #[command(subcommand)]
    Gateway(GatewayCommand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum SandboxCommand {
    /// Create a sandbox and wait until it is ready
    Create(Create),
    /// List sandboxes
    List {
        #[arg(short, long)]
        output: Option<Format>,
        /// `key=value`, comma separated; all must match
        #[arg(long)]
        selector: Option<String>,
        #[arg(long)]
        names: bool,
        #[arg(long)]
        ids: bool,
        #[arg(long)]
        page_size: Option<u32>,
        #[arg(long)]
        page_token: Option<String>,
    },
    /// Show one sandbox
    Get {
        name: String,
        #[arg(short, long)]
        output: Option<Format>,
        #[arg(long)]
        policy_only: bool,
    },
    /// Delete sandboxes; one that does not exist is fine
    Delete {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Print an ssh configuration for a sandbox
    SshConfig { name: String },
    /// Run a command in a sandbox
    Exec(Exec),
}

#[expect(clippy::struct_excessive_bools, reason = "one per flag of the reference")]
#[derive(Debug, Args)]
pub(super) struct Create {
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Accepted for compatibility; the image is not used
    #[arg(long, value_name = "IMAGE")]
    pub(super) from: Option<String>,
    #[arg(long, value_name = "FILE")]
    pub(super) policy: Option<PathBuf>,
    #[arg(long = "provider", value_name = "NAME")]
    pub(super) providers: Vec<String>,
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(super) labels: Vec<String>,
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) env: Vec<(String, String)>,
    /// Accepted for compatibility; not enforced
    #[arg(long)]
    pub(super) cpu: Option<String>,
    /// Accepted for compatibility; not enforced
    #[arg(long)]
    pub(super) memory: Option<String>,
    /// Return when the sandbox is ready; the command is its main process
    #[arg(long)]
    pub(super) detach: bool,
    #[arg(long)]
    pub(super) no_auto_providers: bool,
    #[arg(long)]
    pub(super) no_tty: bool,
    #[arg(long, hide = true)]
    pub(super) keep: bool,
    #[arg(short, long)]
    pub(super) output: Option<Format>,
    /// The main process; only together with --detach
    #[arg(last = true, requires = "detach", value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct Exec {
    #[arg(value_name = "NAME", conflicts_with = "name")]
    pub(super) positional: Option<String>,
    #[arg(short, long, required_unless_present = "positional")]
    pub(super) name: Option<String>,
    #[arg(long)]
    pub(super) workdir: Option<String>,
    /// Seconds; 0 is no limit
    #[arg(long, default_value_t = 0)]
    pub(super) timeout: u64,
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) env: Vec<(String, String)>,
    #[arg(long)]
    pub(super) no_tty: bool,
    #[arg(last = true, required = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ProviderCommand {
    /// Create a provider
    Create {
        #[arg(long)]
        name: String,
        /// The id of its profile
        #[arg(long = "type")]
        kind: String,
        #[command(flatten)]
        values: ValueArgs,
    },
    /// Change values of a provider
    Update {
        name: String,
        #[command(flatten)]
        values: ValueArgs,
        /// When a value ends: RFC 3339 or milliseconds since the epoch; 0 is never
        #[arg(long = "credential-expires-at", value_name = "KEY=TIME", value_parser = pair)]
        expires: Vec<(String, String)>,
    },
    /// Show one provider; never a value
    Get { name: String },
    /// List providers
    List {
        #[arg(short, long)]
        output: Option<Format>,
        #[arg(long)]
        names: bool,
    },
    /// Delete providers; one that does not exist is fine
    Delete {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// The older spelling of `profile`
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// The older spelling of `profile list`
    ListProfiles {
        #[arg(short, long)]
        output: Option<Format>,
    },
}

#[derive(Debug, Args)]
pub(super) struct ValueArgs {
    /// `KEY` takes the value from the environment
    #[arg(long = "credential", value_name = "KEY[=VALUE]")]
    pub(super) credentials: Vec<String>,
    #[arg(long = "config", value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) config: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// List profiles
    List {
        #[arg(short, long)]
        output: Option<Format>,
    },
    /// Print a profile
    Export {
        id: String,
        /// Accepted for compatibility: JSON, which is YAML too
        #[arg(short, long, value_name = "FORMAT")]
        output: Option<String>,
    },
    /// Add profiles; an existing id is an error
    Import {
        #[arg(short, long, required_unless_present = "from", conflicts_with = "from")]
        file: Option<PathBuf>,
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// Replace a profile; the file names the version that it replaces
    Update {
        id: String,
        #[arg(short, long)]
        file: PathBuf,
    },
    /// Delete a profile
    Delete { id: String },
}

#[derive(Debug, Subcommand)]
pub(super) enum SettingsCommand {
    /// Set a setting; there are none
    Set {
        #[arg(long)]
        key: String,
        #[arg(long)]
        value: String,
        #[arg(long)]
        global: bool,
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum GatewayCommand {
    /// List gateways
    List {
        #[arg(short, long)]
        output: Option<Format>,
    },
}

/// `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is not KEY=VALUE"))?;
    if key.is_empty() { Err("the key is empty".to_owned()) } else { Ok((key.to_owned(), value.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_needs_detach() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("openshell sandbox create --name a --detach -- sleep infinity").is_ok());
        assert!(parse("openshell sandbox create --name a --keep --no-tty").is_ok());
        assert_eq!(parse("openshell sandbox create --name a -- true").unwrap_err().exit_code(), 2);
        assert_eq!(parse("openshell sandbox list --limit 5").unwrap_err().exit_code(), 2);
    }
}
