//! Stands in for a program on PATH, passes its calls on, and breaks one of them.
//!
//! It is reached by links: `DIR/bin/git`, `DIR/bin/ssh` … (first on PATH, or by `FULLSEND_OPENSHELL`), and by scripts
//! that execute it under a name of theirs. Everything it knows stands in `DIR`, because some of its callers hand
//! down no environment:
//!
//! | file | meaning |
//! |---|---|
//! | `real.json` | name of the link to the argument list of the real program |
//! | `fault.json` | `{"kind": …, "nth": K, "what": …}`, see [`strike`]; absent: nothing is broken |
//! | `calls` | one line per call: its kind (see [`kind`]) |
//! | `struck` | is made when the fault happened |
//! | `runner.pid` | the process that the fault `runner=SIGNAL` signals |

#[path = "fault/kind.rs"]
mod kind;
#[path = "fault/strike.rs"]
mod strike;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fault-wrapper: {error}");
            ExitCode::from(99)
        }
    }
}

fn run() -> std::io::Result<u8> {
    let mut args = std::env::args_os();
    let link = find_link(args.next().unwrap_or_default())?;
    let args: Vec<OsString> = args.collect();
    let name = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let dir = link.parent().and_then(Path::parent).ok_or(ErrorKind::NotFound)?.to_owned();
    let kind = kind::kind(&name, &args);
    let nth = record(&dir, &kind)?;
    let real = real(&dir, &name)?;
    let call = strike::Call { dir: &dir, real: &real, args: &args, kind: &kind };
    match fault(&dir, &kind, nth)? {
        None => call.pass(),
        Some(what) => {
            std::fs::write(dir.join("struck"), &kind)?;
            strike::strike(&call, &what)
        }
    }
}

/// The link by which this was called. A caller that found it on PATH may give its bare name.
fn find_link(arg0: OsString) -> std::io::Result<PathBuf> {
    let path = PathBuf::from(arg0);
    if path.components().count() > 1 {
        return std::path::absolute(path);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|dir| dir.join(&path)).find(|p| p.exists());
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, "the link is not on PATH"))
}

/// Writes the call down. Returns which one of its kind it is; 1 is the first.
fn record(dir: &Path, kind: &str) -> std::io::Result<usize> {
    let mut file = File::options().create(true).read(true).append(true).open(dir.join("calls"))?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    file.write_all(format!("{kind}\n").as_bytes())?;
    Ok(text.lines().filter(|line| *line == kind).count() + 1)
}

fn read(path: &Path) -> std::io::Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn real(dir: &Path, name: &str) -> std::io::Result<Vec<String>> {
    let all = read(&dir.join("real.json"))?;
    let argv =
        all[name].as_array().ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no real {name}")))?;
    Ok(argv.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
}

/// What is to happen to this call.
fn fault(dir: &Path, kind: &str, nth: usize) -> std::io::Result<Option<String>> {
    let path = dir.join("fault.json");
    if !path.exists() {
        return Ok(None);
    }
    let fault = read(&path)?;
    let due = fault["kind"] == kind && fault["nth"].as_u64() == u64::try_from(nth).ok();
    Ok(due.then(|| fault["what"].as_str().unwrap_or_default().to_owned()))
}
