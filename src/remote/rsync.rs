//! What is known about the rsync of this machine. It reads what a sandbox sends, so faults of its receiving side
//! matter; a version alone does not say whether a distribution has repaired them.

use std::fmt;
use std::time::Duration;

use crate::error::Result;
use crate::process::{Command, locate};

const CALL: Duration = Duration::from_secs(10);

/// The release that repaired CVE-2024-12084 to 12088 and CVE-2024-12747 (14 January 2025). A receiver is open to 12086
/// (files of the host leak to the sender) and 12087 (a sender writes beside the destination).
const JANUARY_2025: [u32; 3] = [3, 4, 0];
/// The release that repaired CVE-2026-43620: a sender can crash the receiver (20 May 2026).
const MAY_2026: [u32; 3] = [3, 4, 3];

/// The rsync of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rsync {
    /// What it says its version is; nothing for another program of that name.
    version: Option<[u32; 3]>,
    /// The first line of `rsync --version`.
    line: String,
    /// The version of the Debian package that it came with.
    package: Option<String>,
}

impl Rsync {
    /// Asks rsync, and dpkg where there is one.
    ///
    /// # Errors
    /// [`crate::Code::ToolMissing`] when there is none.
    pub async fn find() -> Result<Self> {
        let rsync = locate("rsync", "install it, e.g. `apt-get install rsync`")?;
        let ours = rsync.starts_with("/usr/bin") || rsync.starts_with("/bin");
        let output = Command::new("rsync --version", rsync).arg("--version").deadline(CALL).output().await?;
        let text = format!("{}{}", output.stdout_text(), output.stderr_text());
        let mut found = Self::parse(&text);
        // Only an old one needs the second question.
        if ours
            && found.version.is_some_and(|v| v < JANUARY_2025)
            && let Ok(dpkg) = locate("dpkg-query", "")
        {
            let command = Command::new("dpkg-query", dpkg).args(["-W", "-f", "${Version}", "rsync"]);
            let output = command.deadline(CALL).output().await?;
            found.package = output.status.success().then(|| output.stdout_text().trim().to_owned());
        }
        Ok(found)
    }

    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default().trim().to_owned();
        // `rsync  version 3.2.7  protocol version 31`; that of recent macOS is `openrsync: protocol version 29`.
        let number = line.strip_prefix("rsync").and_then(|rest| rest.trim_start().strip_prefix("version "));
        let version = number.and_then(|rest| {
            let word = rest.trim_start_matches('v').split([' ', '-', 'p']).next()?;
            let mut parts = word.split('.').map(|part| part.parse().ok());
            Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or_default()])
        });
        Self { version, line, package: None }
    }

    /// Whether the package is one that Debian repaired: 3.2.7-1+deb12u1 and later in Debian 12.
    fn is_repaired(&self) -> bool {
        let update = self.package.as_deref().and_then(|p| p.strip_prefix("3.2.7-1+deb12u"));
        update.and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n >= 1)
    }

    /// What to do about it: faults that a hostile sandbox could use.
    pub fn warning(&self) -> Option<String> {
        let Some(version) = self.version else {
            return Some(format!(
                "`{}` is another program than rsync, and has not been tried; install rsync 3.4.3 or newer (macOS: \
                 `brew install rsync`) and put it first on PATH",
                self.line
            ));
        };
        if version >= JANUARY_2025 || self.is_repaired() {
            return None;
        }
        let package = self.package.as_ref().map_or_else(String::new, |p| format!(" (package {p})"));
        Some(format!(
            "this rsync{package} is older than 3.4.0: unless its distribution has repaired CVE-2024-12086 and \
             CVE-2024-12087, a hostile sandbox can read files of this machine or write beside the run directory; \
             update the package (Debian 12: 3.2.7-1+deb12u1 or later), or install rsync 3.4.3"
        ))
    }
}

impl fmt::Display for Rsync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)?;
        if let Some(package) = &self.package {
            write!(f, ", package {package}")?;
        }
        if self.is_repaired() {
            f.write_str(", with the repairs of rsync 3.4.0")?;
        }
        if self.version.is_some_and(|v| v < MAY_2026) {
            f.write_str(
                "; a sandbox can crash one before 3.4.3 (CVE-2026-43620), which ends as a failed transfer",
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(line: &str, package: Option<&str>) -> Rsync {
        Rsync { package: package.map(str::to_owned), ..Rsync::parse(line) }
    }

    #[test]
    fn what_is_known_is_said_and_no_more() {
        let of = |v: &str| format!("rsync  version {v}  protocol version 31");
        let cases = [
            (of("3.2.7"), None, true),
            (of("3.2.7"), Some("3.2.7-1"), true),
            (of("3.2.7"), Some("3.2.7-1+deb12u1"), false),
            (of("3.2.7"), Some("3.2.7-1+deb12u10"), false),
            // A package that nothing is known about.
            (of("3.2.7"), Some("3.2.7-1ubuntu1"), true),
            (of("v3.4.0pre1"), None, false),
            (of("3.4.1"), None, false),
            (of("3.10.0"), None, false),
            ("openrsync: protocol version 29".to_owned(), None, true),
            (String::new(), None, true),
        ];
        for (line, package, warns) in cases {
            let rsync = with(&line, package);
            assert_eq!(rsync.warning().is_some(), warns, "{rsync}");
        }
        assert!(with(&of("3.2.7"), Some("3.2.7-1")).warning().unwrap().contains("package 3.2.7-1"));
        assert!(with(&of("3.4.1"), None).to_string().contains("CVE-2026-43620"));
        assert!(!with(&of("3.4.3"), None).to_string().contains("CVE"));
    }
}
