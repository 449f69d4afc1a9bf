//! `sandbox create`, `delete` and `exec`: the life of a sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::bubble::{self, Spec};
use super::etc;
use super::fail::{Fail, Outcome, Rpc};
use super::identity::Identity;
use super::join::{Door, Inside};
use super::launch::{Tools, launch};
use super::policy::Policy;
use super::procs::Proc;
use super::provider;
use super::record::{Record, check_name};
use super::remove::remove_tree;
use super::state::{self, State};

/// How long the processes of a sandbox may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What `sandbox create` was asked for.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) policy: Option<PathBuf>,
    pub(super) providers: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) command: Vec<OsString>,
    pub(super) binds: String,
    pub(super) links: String,
}

/// Creates a sandbox. When this returns, commands can be run in it. The returned notes are for standard error.
pub(super) fn create(state: &State, request: Request) -> Outcome<(Record, Vec<String>)> {
    check_name(&request.name)?;
    check_env(&request.env)?;
    let policy = request.policy.as_deref().map_or_else(|| Ok(Policy::built_in()), Policy::load)?;
    let refuse = |cause: String| Fail::new(format!("{} is not usable", super::BINDS_ENV)).cause(cause);
    let binds = binds(&request.binds).map_err(refuse)?;
    let links = bubble::parse_links(&request.links)
        .map_err(|cause| Fail::new(format!("{} is not usable", super::PROGRAMS_ENV)).cause(cause))?;
    let identity = Identity::detect()?;
    let tools = Tools::find()?;
    let command = if request.command.is_empty() {
        ["sleep", "infinity"].map(OsString::from).into()
    } else {
        request.command
    };

    let path = etc::search_path(&binds, !links.is_empty(), Path::is_dir);
    let generated = etc::files(&request.name, &path);
    let (record, notes) = {
        let _lock = state.lock()?;
        let attached = provider::attach(state, &request.providers)?;
        let mut env = etc::base_env(&path);
        etc::merge(&mut env, attached.credentials);
        etc::merge(&mut env, request.env);
        let network = policy.wants_network() || attached.network;
        let record = Record {
            id: new_id()?,
            name: request.name,
            created: jiff::Timestamp::now().as_second(),
            labels: request.labels,
            providers: request.providers,
            network,
            policy: policy.document().clone(),
            identity,
            env,
            creator: Proc::own(),
            monitor: None,
            init: None,
            started: false,
        };
        reserve(state, &record)?;
        let note = "! Network rules are not enforced locally: the sandbox uses the network of this machine";
        (record, network.then(|| note.to_owned()).into_iter().collect())
    };
    let spec = Spec {
        dir: state.sandbox(&record.name),
        name: record.name.clone(),
        identity,
        network: record.network,
        binds,
        links,
        generated: generated.iter().map(|(name, _)| *name).collect(),
    };
    furnish(&spec, &generated)?;
    let record = start(state, &tools, record, &spec, &command)?;
    Ok((record, notes))
}

/// Takes the name, unless it is taken.
fn reserve(state: &State, record: &Record) -> Outcome {
    if Record::find(state, &record.name)?.is_some() {
        return Err(Fail::new(format!("sandbox '{}' already exists", record.name))
            .hint("hint: delete it first with: openshell sandbox delete <name>"));
    }
    // What a removal that was interrupted has left.
    remove_tree(&state.sandbox(&record.name))?;
    state::private_dirs(&state.sandbox(&record.name))?;
    // A directory without a record is no sandbox, so nobody would ever delete it.
    record.save(state).inspect_err(|_| drop(remove_tree(&state.sandbox(&record.name))))
}

/// Makes the directories and files that the sandbox sees.
fn furnish(spec: &Spec, generated: &[(&'static str, String)]) -> Outcome {
    for part in ["home", "tmp", "etc"] {
        state::private_dirs(&spec.dir.join(part))?;
    }
    for (name, text) in generated {
        fs_err::write(spec.dir.join("etc").join(name), text)?;
    }
    if let Some((uid, gid)) = spec.identity.owner() {
        for part in ["home", "tmp"] {
            chown(spec.dir.join(part), Some(uid.as_raw()), Some(gid.as_raw()))?;
        }
    }
    Ok(())
}

/// Starts it, and writes down the processes before the main process is let go: whoever deletes the sandbox, or
/// finds it after this call was killed, can end what runs.
fn start(
    state: &State,
    tools: &Tools,
    mut record: Record,
    spec: &Spec,
    command: &[OsString],
) -> Outcome<Record> {
    let launched = launch(tools, spec, &record.env, command)?;
    record.init = Some(launched.init);
    record.monitor = Some(launched.monitor);
    if let Err(e) = update(state, &record) {
        launched.abandon();
        return Err(e);
    }
    launched.go()?;
    record.started = true;
    record.creator = None;
    update(state, &record)?;
    Ok(record)
}

/// Saves the record, unless the sandbox was deleted meanwhile.
fn update(state: &State, record: &Record) -> Outcome {
    let _lock = state.lock()?;
    match Record::find(state, &record.name)? {
        Some(found) if found.id == record.id => record.save(state),
        _ => Err(Fail::rpc(Rpc::NotFound, "sandbox not found")),
    }
}

/// Deletes a sandbox: every process in it ends, then its files go. `false` when there is none.
///
/// What a delete that was killed has left goes as well: the guard of a killed run gets here again.
pub(super) fn delete(state: &State, name: &str) -> Outcome<bool> {
    let done = delete_one(state, name);
    for entry in fs_err::read_dir(state.sandboxes())?.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            // Another delete may be at work on it, which is as good.
            let _ = remove_tree(&entry.path());
        }
    }
    done
}

fn delete_one(state: &State, name: &str) -> Outcome<bool> {
    let dir = state.sandbox(name);
    let doomed = {
        let _lock = state.lock()?;
        let Some(record) = Record::find(state, name)? else {
            // A create that was killed before it wrote its record has left the directory alone.
            if check_name(name).is_ok() {
                remove_tree(&dir)?;
            }
            return Ok(false);
        };
        kill(&record)?;
        // Out of sight at once, so that the name is free and a second call finds nothing.
        let doomed = state.sandboxes().join(format!(".{}", record.id));
        fs_err::rename(&dir, &doomed)?;
        doomed
    };
    remove_tree(&doomed)
        .map_err(|e| Fail::new(format!("failed to remove the files of sandbox '{name}'")).cause(e))?;
    Ok(true)
}

/// Ends every process of the sandbox and waits for that.
fn kill(record: &Record) -> Outcome {
    let gone = [record.init, record.monitor].into_iter().flatten().all(|p| p.kill(KILL_LIMIT));
    if gone {
        Ok(())
    } else {
        Err(Fail::new(format!("the processes of sandbox '{}' do not end", record.name)))
    }
}

/// Ends what is left of a sandbox whose main process has gone, as the end of a container would.
pub(super) fn settle(record: &Record) {
    if record.started
        && !record.monitor.is_some_and(Proc::alive)
        && let Some(init) = record.init
    {
        init.kill(KILL_LIMIT);
    }
}

/// What `sandbox exec` was asked for.
#[derive(Debug)]
pub(super) struct Exec {
    pub(super) workdir: Option<String>,
    pub(super) env: Vec<(String, String)>,
    /// Zero is no limit.
    pub(super) timeout: Duration,
    pub(super) command: Vec<OsString>,
}

/// Runs a command with the caller's standard streams. Returns its exit status; 124 after the time limit, when
/// the command goes on, as in the reference.
pub(super) fn exec(state: &State, name: &str, exec: Exec) -> Outcome<u8> {
    let record = Record::get(state, name)?;
    check_env(&exec.env)?;
    let door = Door::open(state, &record)?.with_env(exec.env);
    let mut words = exec.command;
    if let Some(dir) = exec.workdir {
        let enter = ["/bin/sh", "-c", r#"cd -- "$1" && shift && exec "$@""#, "exec", &dir];
        words = enter.map(OsString::from).into_iter().chain(words).collect();
    }
    let mut child = door
        .command(&Inside::Argv(words))
        .stdin(Stdio::inherit())
        .spawn()
        .map_err(|e| Fail::new("cannot run nsenter").cause(e))?;
    if exec.timeout.is_zero() {
        return Ok(exit_status(child.wait()?));
    }
    let deadline = Instant::now() + exec.timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(exit_status(status));
        }
        if Instant::now() >= deadline {
            return Ok(124);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn exit_status(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// Copies what bubblewrap and the main process wrote.
pub(super) fn logs(state: &State, name: &str, lines: usize, out: &mut impl std::io::Write) -> Outcome {
    Record::get(state, name)?;
    let text = fs_err::read(state.sandbox(name).join("log")).unwrap_or_default();
    let all: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    let skip = if lines == 0 { 0 } else { all.len().saturating_sub(lines) };
    for line in &all[skip..] {
        out.write_all(line)?;
    }
    Ok(())
}

/// Notes a connection, so that they can be counted.
pub(super) fn note_connection(state: &State, name: &str) -> Outcome {
    let path = state.sandbox(name).join("connections");
    let mut file = std::fs::File::options().create(true).append(true).open(path)?;
    let line = format!("{} {}\n", jiff::Timestamp::now(), std::process::id());
    file.write_all(line.as_bytes())?;
    Ok(())
}

/// The paths of a list that a sandbox can show, or why not.
pub(in crate::local) fn binds(list: &str) -> Result<Vec<PathBuf>, String> {
    let binds = bubble::parse_binds(list)?;
    match binds.iter().find(|p| !p.exists()) {
        Some(missing) => Err(format!("'{}' does not exist", missing.display())),
        None => Ok(binds),
    }
}

/// The labels of `--label key=value`; for the same key the last one counts.
pub(super) fn labels(given: &[String]) -> Outcome<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for item in given {
        let (key, value) = item
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| Fail::new(format!("invalid label format '{item}', expected key=value")))?;
        let refuse = |text: String| Err(Fail::rpc(Rpc::InvalidArgument, text));
        if value.len() > 63 {
            return refuse(format!("label value exceeds 63 characters: '{value}'"));
        }
        if !value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
            return refuse(format!(
                "label value contains invalid characters (must be alphanumeric, '-', '_', or '.'): '{value}'"
            ));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

/// The rules for `--env` (OpenShell 0.1.x).
fn check_env(env: &[(String, String)]) -> Outcome {
    for (key, _) in env {
        let mut bytes = key.bytes();
        let starts = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !starts || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(Fail::rpc(
                Rpc::InvalidArgument,
                format!("invalid environment variable name '{key}'"),
            ));
        }
        if key.starts_with("OPENSHELL_") {
            return Err(Fail::rpc(Rpc::InvalidArgument, format!("environment variable '{key}' is reserved")));
        }
    }
    Ok(())
}

/// A random identifier in the shape of a UUID.
pub(super) fn new_id() -> Outcome<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| Fail::new(e.to_string()))?;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_names_are_checked() {
        let env = |k: &str| [(k.to_owned(), String::new())];
        assert!(check_env(&env("_A1")).is_ok());
        for bad in ["", "1A", "A-B", "A B", "OPENSHELL_X"] {
            assert!(check_env(&env(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_are_checked_and_the_last_one_counts() {
        let given = |items: &[&str]| labels(&items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        let found = given(&["fullsend.dev/run=a", "b=", "b=2"]).unwrap();
        assert_eq!((found["fullsend.dev/run"].as_str(), found["b"].as_str()), ("a", "2"));
        for bad in ["novalue", "=v", "k=a b", &format!("k={}", "v".repeat(64))] {
            assert!(given(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn identifiers_have_the_shape_of_a_uuid() {
        let id = new_id().unwrap();
        assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }
}
