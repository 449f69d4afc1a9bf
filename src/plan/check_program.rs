//! `fullsend-check-output` in the sandbox: the check of the output, for the agent to call before it ends.

use camino::Utf8PathBuf;

use super::env::quote;
use super::files::{Bytes, Upload};
use super::hooks::HookPlan;
use super::layout;
use crate::harness::model::Harness;

/// What an agent is told to call.
const NAME: &[u8] = b"fullsend-check-output";
/// Longer files are no instructions, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// The program, for a harness with schemas, and the executable behind it: that of the hooks where there are any, else
/// one that the embedded backend shows, else an upload. That is some ten megabytes, so it is made only where something
/// of `given` (agent, prompt, skills, files) names the program.
pub(super) fn uploads(
    harness: &Harness,
    hooks: Option<&HookPlan>,
    binary: Option<&Utf8PathBuf>,
    local: bool,
    given: &[Upload],
) -> Vec<Upload> {
    if !harness.has_schemas() {
        return Vec::new();
    }
    let mut uploads = Vec::new();
    let program = match (hooks, binary) {
        (Some(HookPlan { program, binary: Some(_), .. }), _) => program.clone(),
        (None, Some(binary)) if local => binary.to_string(),
        (None, Some(binary)) if given.iter().any(names_it) => {
            uploads.push(Upload::file(layout::HOOK_PROGRAM, binary.clone()).executable());
            layout::HOOK_PROGRAM.to_owned()
        }
        // Nobody would call it, or no executable of this machine could run in a sandbox.
        _ => return uploads,
    };
    let text = format!("#!/bin/sh\nexec {} check-output \"$@\"\n", quote(&program));
    uploads.push(Upload::content(layout::CHECK_PROGRAM, text.into_bytes(), "fullsend").executable());
    uploads
}

/// Whether a text that is delivered names the program. What cannot be read yet is told of when it is delivered.
fn names_it(upload: &Upload) -> bool {
    let holds = |bytes: &[u8]| memchr::memmem::find(bytes, NAME).is_some();
    upload.expand().unwrap_or_default().iter().any(|file| match &file.bytes {
        Bytes::Host(path) => file.size <= LONGEST && std::fs::read(path).is_ok_and(|bytes| holds(&bytes)),
        Bytes::Text(text) => holds(text.expose().as_bytes()),
        Bytes::Content(bytes) => holds(bytes),
    })
}
