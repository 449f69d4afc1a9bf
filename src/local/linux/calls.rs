//! What each call does and prints.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use super::args::{
    Cli, Command, Create, Format, GatewayCommand, ProfileCommand, ProviderCommand, SandboxCommand,
    SettingsCommand, ValueArgs,
};
use super::fail::{Fail, Outcome, Rpc};
use super::forward;
use super::join::Door;
use super::provider::{self, Provider, Values};
use super::record::{Phase, Record};
use super::state::State;
use super::{profile, sandbox, show, ssh};

/// Runs the command line.
pub(in crate::local) fn main(args: Vec<OsString>) -> ExitCode {
    let words = std::iter::once(OsString::from("openshell")).chain(args);
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut out = io::stdout().lock();
    match dispatch(cli.command, &mut out) {
        Ok(status) => ExitCode::from(status),
        Err(fail) => {
            let _ = io::stderr().write_all(fail.render().as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command, out: &mut impl io::Write) -> Outcome<u8> {
    if let Command::Sandbox(SandboxCommand::SshConfig { name }) = &command {
        ssh_config(name, out)?;
        return Ok(0);
    }
    if let Command::Listen { port } = command {
        forward::helper(port)?;
        return Ok(0);
    }
    let state = State::open()?;
    match command {
        Command::Listen { .. } => {}
        Command::Sandbox(command) => return sandboxes(&state, command, out),
        Command::SshProxy { name, .. } => {
            let record = Record::get(&state, &name)?;
            sandbox::settle(&record);
            let door = Door::open(&state, &record)
                .map_err(|_| Fail::rpc(Rpc::FailedPrecondition, "sandbox is not ready"))?;
            sandbox::note_connection(&state, &name)?;
            ssh::serve(door)?;
        }
        Command::Logs { name, lines, source } => {
            // Another source is no error in the reference; it has no lines.
            let lines = if source == "all" || source == "sandbox" { lines } else { return Ok(0) };
            sandbox::logs(&state, &name, lines, out)?;
        }
        Command::Provider(command) => providers(&state, command, out)?,
        Command::Profile(command) => profiles(&state, command, out)?,
        Command::Settings(SettingsCommand::Set { key, .. }) => {
            return Err(Fail::rpc(Rpc::InvalidArgument, format!("unknown setting key '{key}'")));
        }
        Command::Status { output: Some(Format::Json) } => json(
            out,
            &serde_json::json!({
                "gateway": "local", "server": "local", "status": "connected", "version": super::VERSION,
                "authentication": { "mode": "gateway", "status": "not_required" },
            }),
        )?,
        Command::Status { output: None } => {
            writeln!(out, "Server Status\n\n  Gateway: local\n  Server: local\n  Status: Connected")?;
            writeln!(out, "  Authentication: Not required (gateway)\n  Version: {}", super::VERSION)?;
        }
        Command::Gateway(GatewayCommand::List { output: Some(Format::Json) }) => json(
            out,
            &serde_json::json!([{
                "active": true, "auth": "none", "endpoint": "local", "name": "local", "source": "user",
                "type": "local", "is_remote": false,
            }]),
        )?,
        Command::Gateway(GatewayCommand::List { output: None }) => writeln!(out, "* local")?,
    }
    Ok(0)
}

fn sandboxes(state: &State, command: SandboxCommand, out: &mut impl io::Write) -> Outcome<u8> {
    match command {
        SandboxCommand::Create(args) => create(state, args, out)?,
        SandboxCommand::List { output, selector, names, ids, .. } => {
            let rows = show::select(state, selector.as_deref())?;
            if names || ids {
                for (record, _) in &rows {
                    writeln!(out, "{}", if names { &record.name } else { &record.id })?;
                }
            } else if output.is_some() {
                let items: Vec<_> = rows.iter().map(|(r, c)| show::sandbox(r, *c)).collect();
                json(out, &show::page("sandboxes", &items))?;
            } else {
                write!(out, "{}", show::sandbox_table(&rows))?;
            }
        }
        SandboxCommand::Get { name, output, policy_only } => {
            let record = Record::get(state, &name)?;
            sandbox::settle(&record);
            let condition = record.condition(state);
            if policy_only {
                json(out, &record.policy)?;
            } else if output.is_some() {
                json(out, &show::sandbox_details(&record, condition))?;
            } else {
                write!(out, "{}", show::sandbox_text(&record, condition)?)?;
            }
        }
        SandboxCommand::Delete { names } => {
            let mut failed = Vec::new();
            for name in &names {
                match sandbox::delete(state, name) {
                    Ok(true) => writeln!(out, "✓ Deleted sandbox {name}")?,
                    Ok(false) => writeln!(out, "! Sandbox {name} not found")?,
                    Err(fail) => failed.push(format!("{name}: {fail}")),
                }
            }
            if !failed.is_empty() {
                let text = format!("failed to delete {} sandboxes: {}", failed.len(), failed.join("; "));
                return Err(Fail::new(text));
            }
        }
        SandboxCommand::SshConfig { name } => ssh_config(&name, out)?,
        SandboxCommand::Exec(args) => {
            let name = args.name.or(args.positional).unwrap_or_default();
            let exec = sandbox::Exec {
                workdir: args.workdir,
                env: args.env,
                timeout: Duration::from_secs(args.timeout),
                command: args.command,
            };
            return sandbox::exec(state, &name, exec);
        }
    }
    Ok(0)
}

fn create(state: &State, args: Create, out: &mut impl io::Write) -> Outcome {
    if let Some(from) = args.from.as_deref().filter(|f| f.starts_with(['.', '/', '~'])) {
        let text = format!("'--from' no longer builds local Dockerfiles or directories: {from}");
        return Err(Fail::new(text));
    }
    let name = match args.name.filter(|n| !n.is_empty()) {
        Some(name) => name,
        None => format!("local-{}", &sandbox::new_id()?[..8]),
    };
    let request = sandbox::Request {
        name,
        policy: args.policy,
        providers: args.providers,
        labels: sandbox::labels(&args.labels)?,
        env: args.env,
        command: args.command,
        binds: std::env::var(super::BINDS_ENV).unwrap_or_default(),
        links: std::env::var(super::PROGRAMS_ENV).unwrap_or_default(),
    };
    let (record, notes) = sandbox::create(state, request)?;
    if args.output.is_none() {
        writeln!(out, "\nCreated sandbox: {}\n", record.name)?;
    }
    for note in notes {
        writeln!(io::stderr(), "{note}")?;
    }
    let condition = record.condition(state);
    if condition.phase == Phase::Provisioning {
        return Err(Fail::new("sandbox did not become ready"));
    }
    if args.output.is_some() {
        let mut value = show::sandbox(&record, condition);
        if let Some(map) = value.as_object_mut() {
            map.insert("service_urls".to_owned(), serde_json::json!({}));
        }
        json(out, &value)?;
    }
    Ok(())
}

/// The `ProxyCommand` runs this program again. Purely local: the sandbox need not exist.
fn ssh_config(name: &str, out: &mut impl io::Write) -> Outcome {
    let exe = std::env::current_exe().map_err(|e| Fail::new("cannot find this program").cause(e))?;
    write!(out, "{}", ssh_config_text(&exe, name))?;
    Ok(())
}

fn ssh_config_text(exe: &Path, name: &str) -> String {
    let exe = exe.display().to_string().replace('\'', r"'\''").replace('%', "%%");
    let quoted = shell_words::quote(name);
    let lines = [
        format!("Host openshell-{name}.default"),
        "User sandbox".to_owned(),
        "StrictHostKeyChecking no".to_owned(),
        "UserKnownHostsFile /dev/null".to_owned(),
        "GlobalKnownHostsFile /dev/null".to_owned(),
        "LogLevel ERROR".to_owned(),
        "ServerAliveInterval 15".to_owned(),
        "ServerAliveCountMax 3".to_owned(),
        format!(
            "ProxyCommand '{exe}' openshell ssh-proxy --gateway-name local --name {quoted} --workspace default"
        ),
    ];
    lines.join("\n    ") + "\n"
}

fn providers(state: &State, command: ProviderCommand, out: &mut impl io::Write) -> Outcome {
    match command {
        ProviderCommand::Create { name, kind, values } => {
            provider::create(state, &name, &kind, values.read()?)?;
            writeln!(out, "✓ Created provider {name}")?;
        }
        ProviderCommand::Update { name, values, expires } => {
            let expires = provider::expirations(&expires)?;
            provider::update(state, &name, Values { expires, ..values.read()? })?;
            writeln!(out, "✓ Updated provider {name}")?;
        }
        ProviderCommand::Get { name } => {
            write!(out, "{}", show::provider_text(&Provider::get(state, &name)?))?;
        }
        ProviderCommand::List { output, names } => {
            let all = Provider::all(state)?;
            if names {
                for provider in &all {
                    writeln!(out, "{}", provider.name)?;
                }
            } else if output.is_some() {
                let items: Vec<_> = all.iter().map(show::provider).collect();
                json(out, &show::page("providers", &items))?;
            } else {
                write!(out, "{}", show::provider_table(&all))?;
            }
        }
        ProviderCommand::Delete { names } => {
            let mut failed = Vec::new();
            for name in &names {
                match provider::delete(state, name) {
                    Ok(true) => writeln!(out, "✓ Deleted provider {name}")?,
                    Ok(false) => writeln!(out, "! Provider {name} not found")?,
                    Err(fail) => failed.push(fail),
                }
            }
            if let Some(first) = failed.into_iter().next() {
                return Err(first);
            }
        }
        ProviderCommand::Profile(command) => profiles(state, command, out)?,
        ProviderCommand::ListProfiles { output } => profiles(state, ProfileCommand::List { output }, out)?,
    }
    Ok(())
}

impl ValueArgs {
    fn read(self) -> Outcome<Values> {
        let credentials = provider::credentials(&self.credentials, |key| std::env::var(key).ok())?;
        Ok(Values { credentials, config: self.config.into_iter().collect(), expires: BTreeMap::new() })
    }
}

fn profiles(state: &State, command: ProfileCommand, out: &mut impl io::Write) -> Outcome {
    let told = |(diagnostics, fail): (String, Fail)| {
        let _ = io::stderr().write_all(diagnostics.as_bytes());
        fail
    };
    match command {
        ProfileCommand::List { output } => {
            let all = profile::Profile::all(state)?;
            if output.is_some() {
                json(out, &serde_json::Value::Array(all.iter().map(show::profile).collect()))?;
            } else if all.is_empty() {
                writeln!(out, "No provider profiles found.")?;
            } else {
                for profile in &all {
                    writeln!(out, "{}", profile.id)?;
                }
            }
        }
        ProfileCommand::Export { id, output: _ } => json(out, &profile::get(state, &id)?.export())?,
        ProfileCommand::Import { file, from } => {
            let count = profile::import(state, &profile::sources(file, from)?).map_err(told)?;
            writeln!(out, "Imported {count} provider profile{}.", if count == 1 { "" } else { "s" })?;
        }
        ProfileCommand::Update { id, file } => {
            profile::update(state, &id, &file).map_err(told)?;
            writeln!(out, "Updated provider profile '{id}'.")?;
        }
        ProfileCommand::Delete { id } => {
            profile::delete(state, &id)?;
            writeln!(out, "Deleted provider profile '{id}'.")?;
        }
    }
    Ok(())
}

fn json(out: &mut impl io::Write, value: &serde_json::Value) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(|e| Fail::new(e.to_string()))?;
    writeln!(out, "{text}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_command_survives_ssh_and_the_shell() {
        let text = ssh_config_text(Path::new("/a b/50%/it's/fullsend"), "x1");
        assert!(text.starts_with("Host openshell-x1.default\n    User sandbox\n"));
        assert!(text.contains(
            r"ProxyCommand '/a b/50%%/it'\''s/fullsend' openshell ssh-proxy --gateway-name local --name x1"
        ));
    }
}
