//! The program of the hooks on its way into the sandbox. It is most of what a small run uploads, so it travels
//! compressed, by the gzip of this machine, while the sandbox is being created.

use std::time::Duration;

use crate::plan::files::{Source, Upload};
use crate::plan::layout::HOOK_PROGRAM;
use crate::process::{Command, locate};

/// The name under which it arrives.
pub(super) const ARRIVES: &str = "/sandbox/workspace/bin/fullsend.gz";

/// The quickest level: it leaves 46 % of a release build; the usual one 42 %, in three times the time.
const LEVEL: &str = "-1";
/// How long it may take; it takes a fraction of a second.
const LIMIT: Duration = Duration::from_secs(30);
/// What is kept in memory, at most.
const LARGEST: usize = 256 << 20;

/// The compressed program; nothing where none is uploaded, or where it has to travel as it is, which works as well.
pub(super) async fn program(uploads: &[Upload]) -> Option<Vec<u8>> {
    let path = uploads.iter().find_map(|upload| match &upload.source {
        Source::File(path) if upload.dest == HOOK_PROGRAM => Some(path),
        _ => None,
    })?;
    let gzip = locate("gzip", "").ok()?;
    let command = Command::new("gzip", gzip).args([LEVEL, "-n", "-c", "--"]).arg(path);
    let output = command.keep_stdout(LARGEST).deadline(LIMIT).output().await.ok()?;
    (output.status.success() && !output.stdout_truncated).then_some(output.stdout)
}

/// The line of the bootstrap that unpacks it. Its checksum shows whether it arrived whole.
pub(super) fn unpack() -> String {
    format!("if command -v gzip >/dev/null; then gzip -df {ARRIVES}; else echo gzip; fi")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::HOOK_PROGRAM;

    #[tokio::test]
    async fn only_the_program_of_the_hooks_is_compressed() {
        let tmp = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(tmp.path().join("program")).unwrap();
        std::fs::write(&path, "word ".repeat(10_000)).unwrap();
        let hooks = Upload::file(HOOK_PROGRAM, path.clone()).executable();
        let other = Upload::file("/sandbox/workspace/other", path);
        let made = program(&[other.clone(), hooks]).await.unwrap();
        assert!(made.starts_with(&[0x1f, 0x8b]) && made.len() < 1000, "{} bytes", made.len());
        assert!(program(&[other]).await.is_none());
        let missing = Upload::file(HOOK_PROGRAM, tmp.path().join("gone").to_str().unwrap());
        assert!(program(&[missing]).await.is_none());
        assert_eq!(ARRIVES, format!("{HOOK_PROGRAM}.gz"));
    }
}
