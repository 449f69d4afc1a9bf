//! `fullsend scan`.

use std::io::{Read as _, Write as _};
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::error::{Code, Error, Result};
use crate::report::{Mark, Printer};
use crate::scan::allow::AllowFile;
use crate::scan::ssrf::{Allowed, check_url, judge};
use crate::scan::sweep::Sweep;
use crate::scan::{Finding, Scanners, Severity, chain, payload, tokens, unicode};

/// Look for hidden text, injected orders, inner addresses and credentials.
///
/// What should not reach an agent, in files that it reads, in the event of a job, in addresses.
///
/// Exit status: 0 nothing critical, 4 something critical, 2 usage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The event that started a CI job: the texts of strangers in it.
    ///
    /// Reads FILE, else the variable `EVENT_PAYLOAD`. In GitHub Actions the payload without hidden characters is
    /// written to the step's output `sanitized_payload`.
    Input {
        /// The event as JSON; `-` for standard input.
        file: Option<PathBuf>,
        #[command(flatten)]
        how: How,
    },
    /// Pass a text through, without hidden characters and with credentials masked.
    ///
    /// From standard input to standard output. Exit status 0.
    Output,
    /// Files that agents read by themselves, such as CLAUDE.md; all of a directory's with --dir.
    Context {
        /// The files.
        #[arg(required_unless_present = "dir")]
        files: Vec<Utf8PathBuf>,
        /// A repository.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        how: How,
    },
    /// Whether addresses lead inside: private, link-local, metadata services, in any spelling.
    Url {
        /// The addresses.
        #[arg(required = true)]
        urls: Vec<String>,
        /// Do not look names up.
        #[arg(long)]
        no_dns: bool,
    },
    /// Whether the record of findings of a run is as it was written.
    Verify {
        /// A run directory, or `security/findings.jsonl` in it.
        path: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct How {
    /// Findings that are known and harmless.
    #[arg(long, value_name = "FILE")]
    allow_file: Option<Utf8PathBuf>,
    /// The form of the report.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

pub(super) fn main(args: &Args, ui: &Printer) -> Result<()> {
    match &args.what {
        What::Input { file, how } => input(file.as_deref(), how, ui),
        What::Output => output(ui),
        What::Context { files, dir, how } => context(files, dir.as_deref(), how, ui),
        What::Url { urls, no_dns } => urls_main(urls, *no_dns, ui),
        What::Verify { path } => verify(path, ui),
    }
}

fn input(file: Option<&std::path::Path>, how: &How, ui: &Printer) -> Result<()> {
    let text = match file {
        Some(path) if path.as_os_str() == "-" => stdin()?,
        Some(path) => fs_err::read_to_string(path)
            .map_err(|e| Error::new(Code::FileMissing, format!("the event cannot be read: {e}")))?,
        None => std::env::var("EVENT_PAYLOAD").unwrap_or_default(),
    };
    let mut sweep = Sweep::default();
    if !matches!(text.trim(), "" | "{}") {
        for (field, text) in payload::texts(&text) {
            sweep.text(&field, &text, Scanners::default());
        }
        hand_over(&unicode::sanitize(&text))?;
    }
    report(sweep, how, ui)
}

/// Appends the cleaned payload to the step's outputs, behind a delimiter that no text can know.
fn hand_over(text: &str) -> Result<()> {
    let Some(path) = std::env::var_os("GITHUB_OUTPUT").filter(|p| !p.is_empty()) else { return Ok(()) };
    let end = format!("fullsend_{}", crate::openshell::names::RunId::random()?);
    let mut file = fs_err::OpenOptions::new().append(true).create(true).open(PathBuf::from(path))?;
    file.write_all(format!("sanitized_payload<<{end}\n{text}\n{end}\n").as_bytes())?;
    Ok(())
}

fn output(ui: &Printer) -> Result<()> {
    let text = stdin()?;
    ui.data(&tokens::mask(&unicode::sanitize(&text)));
    Ok(())
}

fn stdin() -> Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|e| Error::io("cannot read standard input", &e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn context(files: &[Utf8PathBuf], dir: Option<&std::path::Path>, how: &How, ui: &Printer) -> Result<()> {
    let on = Scanners::default();
    let mut sweep = Sweep::default();
    if let Some(dir) = dir {
        if !dir.is_dir() {
            let what = format!("{} is no directory", dir.display());
            return Err(Error::new(Code::FileType, what).help("name the top of a repository"));
        }
        sweep.repo(dir, on);
    }
    for file in files {
        if !file.is_file() {
            return Err(
                Error::new(Code::FileMissing, format!("{file} is no file")).help("name files, or use --dir")
            );
        }
        sweep.file(file.as_str(), file.as_std_path(), on);
    }
    report(sweep, how, ui)
}

fn report(sweep: Sweep, how: &How, ui: &Printer) -> Result<()> {
    let allow = how
        .allow_file
        .as_deref()
        .map_or_else(|| Ok(AllowFile::default()), |path: &Utf8Path| AllowFile::read(path))?;
    let findings: Vec<Finding> = sweep.findings.into_iter().filter(|f| !allow.has(f)).collect();
    match how.format {
        Format::Json => ui.data(&super::json(&json!({
            "schema": "fullsend.scan/1",
            "texts": sweep.texts,
            "findings": findings.iter().map(value).collect::<Vec<_>>(),
        }))?),
        Format::Sarif => ui.data(&super::json(&sarif(&findings))?),
        Format::Text => text(&findings, sweep.texts, ui),
    }
    let critical: Vec<&Finding> = findings.iter().filter(|f| f.hit.severity == Severity::Critical).collect();
    match critical.first() {
        None => Ok(()),
        Some(first) => Err(Error::new(
            Code::ScanBlocked,
            format!(
                "{} critical finding(s), the first in {}: {}",
                critical.len(),
                first.place(),
                first.hit.message
            ),
        )
        .help(format!(
            "remove what is named, or allow it by the line `{}` in an --allow-file",
            first.fingerprint()
        ))),
    }
}

fn text(findings: &[Finding], texts: usize, ui: &Printer) {
    for finding in findings {
        let mark = if finding.hit.severity == Severity::Critical { Mark::Bad } else { Mark::Neutral };
        let severity = finding.hit.severity.as_str();
        ui.check(
            mark,
            severity,
            &format!(
                "{}  {} [{} {}]",
                finding.place(),
                finding.hit.message,
                finding.rule(),
                finding.fingerprint()
            ),
        );
        if !finding.hit.excerpt.is_empty() {
            ui.check(mark, "", &finding.hit.excerpt);
        }
    }
    ui.plain(&format!("{texts} text(s), {} finding(s)", findings.len()));
}

fn value(finding: &Finding) -> serde_json::Value {
    json!({
        "file": finding.file,
        "line": Some(finding.hit.line).filter(|line| *line > 0),
        "scanner": finding.hit.scanner,
        "rule": finding.hit.rule,
        "severity": finding.hit.severity,
        "message": finding.hit.message,
        "excerpt": finding.hit.excerpt,
        "fingerprint": finding.fingerprint(),
    })
}

fn sarif(findings: &[Finding]) -> serde_json::Value {
    let mut rules: Vec<String> = findings.iter().map(Finding::rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let result = |finding: &Finding| {
        let level = match finding.hit.severity {
            Severity::Critical => "error",
            Severity::High | Severity::Medium => "warning",
            Severity::Low => "note",
        };
        json!({
            "ruleId": finding.rule(),
            "level": level,
            "message": {"text": finding.hit.message},
            "partialFingerprints": {"fullsend/1": finding.fingerprint()},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": finding.file},
                "region": {"startLine": finding.hit.line.max(1)},
            }}],
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "fullsend",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(),
            }},
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn urls_main(urls: &[String], no_dns: bool, ui: &Printer) -> Result<()> {
    let mut blocked = Vec::new();
    for url in urls {
        let refusal = check_url(url, &Allowed::default()).map(|r| r.why);
        let refusal = refusal.or_else(|| if no_dns { None } else { resolved(url) });
        match &refusal {
            Some(why) => {
                ui.check(Mark::Bad, "blocked", &format!("{url}  {why}"));
                blocked.push(format!("{url}: {why}"));
            }
            None => ui.check(Mark::Good, "fine", url),
        }
    }
    match blocked.first() {
        None => Ok(()),
        Some(first) => Err(Error::new(Code::ScanBlocked, first.clone()).help("do not fetch it")),
    }
}

/// What is wrong with the addresses that a name stands for. A name that cannot be looked up is refused.
fn resolved(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = if host.starts_with('[') {
        host.split(']').next().unwrap_or_default().trim_start_matches('[')
    } else {
        host.split(':').next().unwrap_or_default()
    };
    match (host, 80).to_socket_addrs() {
        Ok(addresses) => addresses.into_iter().find_map(|address| {
            let (_, why) = judge(address.ip())?;
            Some(format!("{host} stands for {}, which is {why}", address.ip()))
        }),
        Err(error) => Some(format!("{host} cannot be looked up: {error}")),
    }
}

fn verify(path: &std::path::Path, ui: &Printer) -> Result<()> {
    let (file, dir) = if path.is_dir() {
        (path.join(chain::FILE), Some(path))
    } else {
        (path.to_owned(), path.parent().and_then(std::path::Path::parent))
    };
    let recorded = dir.and_then(|dir| {
        let run: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.join("run.json")).ok()?).ok()?;
        Some(run["security"]["head"].clone())
    });
    if recorded == Some(serde_json::Value::Null) && !file.exists() {
        ui.plain("the run has no findings");
        return Ok(());
    }
    let verified = chain::verify(&file)?;
    if let Some(head) = recorded
        && head != verified.head.as_str()
    {
        return Err(Error::new(
            Code::RecordBroken,
            format!("{} does not end where run.json says", file.display()),
        )
        .help("lines were added or removed at its end after the run"));
    }
    ui.plain(&format!("{} finding(s), as they were written", verified.count));
    Ok(())
}
