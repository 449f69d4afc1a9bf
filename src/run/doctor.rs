//! `fullsend doctor`: what a run needs of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Code, Error, Result};
use crate::openshell::{Openshell, Where};
use crate::process::{Command, locate};
use crate::report::bytes;

/// One line of the doctor's report.
#[derive(Debug)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found, or what is wrong.
    pub found: std::result::Result<String, Error>,
    /// Whether a run can do without it.
    pub optional: bool,
}

/// Free space below this is worth a warning, in bytes.
const LOW_DISK: u64 = 1_000_000_000;
const CALL: Duration = Duration::from_secs(10);

/// Looks at everything; nothing is changed.
pub async fn doctor(openshell: Option<PathBuf>, gateway: Option<String>, local: bool) -> Vec<Check> {
    let place = match (local, openshell) {
        (true, _) => Where::Local,
        (false, Some(path)) if path.as_os_str() == "local" => Where::Local,
        (false, Some(path)) => Where::Explicit(path),
        (false, None) => Where::Search,
    };
    let local = matches!(place, Where::Local);
    let required = |name, found| Check { name, found, optional: false };
    let mut checks = openshell_checks(&place, gateway.as_deref()).await;
    checks.push(required("ssh", version("ssh", &["-V"], "openssh-client").await));
    let rsync = crate::remote::Rsync::find().await;
    let told = rsync.map(|r| match r.warning() {
        Some(warning) => format!("{r}: {warning}"),
        None => r.to_string(),
    });
    checks.push(required("rsync", told));
    checks.push(required("git", version("git", &["--version"], "git").await));
    if let Err(error) = crate::remote::check_account().await {
        checks.push(required("account", Err(error)));
    }
    let scp = locate("scp", "install it, e.g. `apt-get install openssh-client`");
    checks.push(required("scp", scp.map(|p| p.display().to_string())));
    let embedded = crate::local::preflight().map(|()| "the embedded backend works".to_owned());
    checks.push(Check { name: "bubblewrap", found: embedded, optional: !local });
    checks.push(required("disk", disk(&std::env::temp_dir())));
    checks
}

async fn openshell_checks(place: &Where, gateway: Option<&str>) -> Vec<Check> {
    let check = |name, found| Check { name, found, optional: false };
    let openshell = match Openshell::locate(place, gateway, Vec::new()) {
        Ok(found) => found,
        Err(error) => return vec![check("openshell", Err(error))],
    };
    let (dialect, rows) = tokio::join!(openshell.probe(), openshell.check_gateway());
    let version = dialect.map(|d| {
        format!("{} ({}), spoken to as {}", d.version, openshell.argv().join(" "), d.facts.generation)
    });
    let gateway = rows.map(|rows| format!("answers; {} sandbox(es)", rows.len()));
    vec![check("openshell", version), check("gateway", gateway)]
}

/// The first line that a program says about its version.
async fn version(program: &str, args: &[&str], package: &str) -> Result<String> {
    let path = locate(program, &format!("install it, e.g. `apt-get install {package}`"))?;
    let output = Command::new(program, path).args(args).deadline(CALL).output().await?;
    let text = format!("{}{}", output.stdout_text(), output.stderr_text());
    if !output.status.success() {
        return Err(Error::new(
            Code::Process,
            format!("{program} {} ended with {}", args.join(" "), output.status),
        )
        .detail(text)
        .help("it is installed and does not work; start it by hand to see why"));
    }
    Ok(text.lines().next().unwrap_or("").trim().to_owned())
}

fn disk(dir: &Path) -> Result<String> {
    let stat = rustix::fs::statvfs(dir).map_err(|e| {
        Error::io(&format!("cannot read the free space of {}", dir.display()), &e.into())
            .help("set TMPDIR to a directory that exists and can be written")
    })?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free < LOW_DISK {
        return Err(Error::io(
            &format!("only {} are free in {}", bytes(free), dir.display()),
            &std::io::ErrorKind::StorageFull.into(),
        ));
    }
    Ok(format!("{} free in {}", bytes(free), dir.display()))
}
