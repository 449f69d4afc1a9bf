//! The commands of a plan, in the order in which they run.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::Plan;
use super::layout::ARCHIVE;
use crate::harness::model::{ProviderUse, Scope};
use crate::openshell::argv;
use crate::openshell::names::{label, label_value};
use crate::remote::argv as ssh;
use crate::run::Identity;

/// One command that a run would execute on the host.
#[derive(Debug, Serialize)]
pub struct CommandLine {
    /// The phase it belongs to.
    pub phase: &'static str,
    /// The program and its arguments.
    #[serde(serialize_with = "lossy")]
    pub argv: Vec<OsString>,
    /// Variables that carry secrets to it, by name.
    pub secret_env: Vec<String>,
    /// How long it may take, in seconds.
    pub deadline_s: u64,
}

/// The run's id stands as zeros in these commands.
pub fn commands(plan: &Plan, openshell: &[String]) -> Vec<CommandLine> {
    let id = Identity::placeholder(&plan.harness.name);
    let d = &plan.dialect;
    let t = &plan.deadlines;
    let mut out = Vec::new();
    let call = |phase, args: Vec<OsString>, secret_env: Vec<String>, limit: Duration| CommandLine {
        phase,
        argv: openshell.iter().map(OsString::from).chain(args).collect(),
        secret_env,
        deadline_s: limit.as_secs(),
    };
    let script = |phase, path: &camino::Utf8Path, limit: Duration| CommandLine {
        phase,
        argv: vec![path.as_str().into()],
        secret_env: plan.harness.runner_env.keys().cloned().collect(),
        deadline_s: limit.as_secs(),
    };

    for args in [argv::version(), argv::help(&["sandbox", "create"]), argv::sandbox_list()] {
        out.push(call("preflight", args, vec![], t.openshell_call));
    }
    if plan.harness.validation.as_ref().is_some_and(|v| v.preflight_check.is_some()) {
        // Its text is expanded and may hold secrets.
        let argv = ["sh", "-c", "<preflight_check>"].map(OsString::from).into();
        let secret_env = plan.harness.runner_env.keys().cloned().collect();
        let deadline_s = t.preflight_check.as_secs();
        out.push(CommandLine { phase: "check", argv, secret_env, deadline_s });
    }
    out.extend(plan.harness.pre_script.as_ref().map(|p| script("pre-script", p, t.script)));
    for server in &plan.harness.api_servers {
        let port = server.port.map_or_else(|| "<free port>".to_owned(), |port| port.to_string());
        let address = server.bind_address.map(|a| a.to_string());
        let any = if plan.local { "127.0.0.1" } else { "0.0.0.0" };
        let words =
            [server.script.as_str(), "--port", &port, "--bind-address", address.as_deref().unwrap_or(any)];
        let mut secret_env: Vec<_> = server.env.keys().cloned().collect();
        secret_env.push("FULLSEND_API_TOKEN".to_owned());
        let (argv, deadline_s) = (words.map(OsString::from).into(), t.api_server.as_secs());
        out.push(CommandLine { phase: "servers", argv, secret_env, deadline_s });
    }
    if plan.harness.max_concurrent.is_some() {
        let args = argv::sandbox_list_with(label::AGENT, &label_value(&plan.harness.name));
        out.push(call("queue", args, vec![], t.queue));
    }
    let specs = plan.provider_specs(&id);
    if plan.harness.providers.iter().any(|p| matches!(p, ProviderUse::Existing(_))) {
        out.push(call("providers", argv::provider_list(), vec![], t.openshell_call));
    }
    if d.facts.providers_v2_setting && !plan.harness.profiles.is_empty() {
        out.push(call("providers", argv::enable_providers_v2(), vec![], t.openshell_call));
    }
    for profile in &plan.harness.profiles {
        out.push(call("providers", argv::profile_export(d, &profile.id), vec![], t.openshell_call));
        out.push(call(
            "providers",
            argv::profile_import(d, profile.file.as_std_path()),
            vec![],
            t.openshell_call,
        ));
    }
    for (spec, _) in &specs {
        let names = argv::credential_env(spec).map(|(k, _)| k.to_owned()).collect();
        out.push(call("providers", argv::provider_create(d, spec), names, t.openshell_call));
        // Only a run knows when its credentials expire.
        let known = argv::provider_expiry(spec).into_iter();
        out.extend(known.map(|args| call("providers", expiry_left_open(args), vec![], t.openshell_call)));
    }
    out.push(call("create", argv::create(d, &plan.create_spec(&id)), vec![], t.ready));
    out.push(call("create", argv::sandbox_get(d, &id.sandbox), vec![], t.openshell_call));
    out.push(call("connect", argv::ssh_config(&id.sandbox), vec![], t.openshell_call));
    let over = |script: &str| ssh::command(ssh::CLIENT_CONFIG, &id.sandbox, script);
    let source = format!("{}:/", id.sandbox);
    for (phase, program, args, limit) in [
        ("connect", "ssh", ssh::master(ssh::MASTER_CONFIG, &id.sandbox), t.connect),
        ("bootstrap", "scp", ssh::scp(false, "<archive>", format!("{}:{ARCHIVE}", id.sandbox)), t.bootstrap),
        ("bootstrap", "ssh", over("<unpack, check and list>"), t.bootstrap),
        ("agent", "ssh", over("<start and follow the agent>"), t.agent),
        ("collect", "ssh", over("<list what changed>"), t.collect),
        (
            "collect",
            "rsync",
            ssh::rsync(ssh::rsync_options(Path::new("ssh"), true, &[], false), source, "<incoming>"),
            t.collect,
        ),
    ] {
        let argv = std::iter::once(OsString::from(program)).chain(args).collect();
        out.push(CommandLine { phase, argv, secret_env: vec![], deadline_s: limit.as_secs() });
    }
    if let Some(path) = plan.harness.validation.as_ref().and_then(|v| v.script.as_ref()) {
        out.push(script("validate", path, t.script));
    }
    if !plan.keep_sandbox {
        out.push(call("delete", argv::sandbox_delete(&id.sandbox), vec![], t.delete));
        for (spec, _) in specs.iter().filter(|(_, scope)| *scope == Scope::Run) {
            out.push(call("delete", argv::provider_delete(&spec.name), vec![], t.openshell_call));
        }
    }
    if plan.post_script {
        out.extend(plan.harness.post_script.as_ref().map(|p| script("post-script", p, t.script)));
    }
    out
}

/// `KEY=<expires>` for `KEY=TIME`.
fn expiry_left_open(args: Vec<OsString>) -> Vec<OsString> {
    let open = |arg: OsString| match arg.to_string_lossy().split_once('=') {
        Some((key, _)) => format!("{key}=<expires>").into(),
        None => arg,
    };
    args.into_iter().map(open).collect()
}

fn lossy<S: Serializer>(argv: &[OsString], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(argv.iter().map(|a| a.to_string_lossy()))
}
