//! Whether ssh works at all for the user of this process.

use std::path::Path;
use std::time::Duration;

use crate::error::{Code, Error, Result};
use crate::process::{Command, locate};

/// How long ssh may take to say its version.
const LIMIT: Duration = Duration::from_secs(10);

/// ssh looks its user up before it reads its options, and ends when there is none: usual for a container that runs
/// under a number of its own. Costs a call of `ssh -V`, and only where `/etc/passwd` does not have the user.
///
/// # Errors
/// [`Code::NoAccount`] when ssh says so.
pub async fn check_account() -> Result<()> {
    let uid = rustix::process::getuid().as_raw();
    let known = fs_err::read(Path::new("/etc/passwd")).is_ok_and(|text| has_account(&text, uid));
    if known {
        return Ok(());
    }
    // An account may come from elsewhere (LDAP, nss_wrapper): only ssh knows whether it finds one.
    let Ok(ssh) = locate("ssh", "") else { return Ok(()) };
    let output = Command::new("ssh -V", ssh).arg("-V").deadline(LIMIT).output().await?;
    let said = output.stderr_text();
    if output.status.success() || !said.contains("No user exists for uid") {
        return Ok(());
    }
    Err(Error::new(
        Code::NoAccount,
        format!("user {uid} has no account on this machine, so ssh does not work"),
    )
    .detail(said)
    .help("run as a user that the image has, or add a line for this number to /etc/passwd"))
}

/// Whether a passwd(5) has an account of that number.
fn has_account(passwd: &[u8], uid: u32) -> bool {
    let uid = uid.to_string();
    passwd.split(|b| *b == b'\n').any(|line| line.split(|b| *b == b':').nth(2) == Some(uid.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::has_account;

    #[test]
    fn an_account_is_found_by_its_number() {
        let passwd = b"root:x:0:0:root:/root:/bin/bash\nodd\n+::::::\nci:x:1001:0::/home/ci:/bin/sh\n";
        assert!(has_account(passwd, 0) && has_account(passwd, 1001));
        assert!(!has_account(passwd, 1) && !has_account(passwd, 100) && !has_account(b"", 0));
    }
}
