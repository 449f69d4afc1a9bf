//! Whether `fullsend-check-output` works in the sandbox: tried at the bootstrap, and taken away where it does not, so that
//! an agent is not led astray by a check that can only fail.

use super::security::MARK;
use crate::plan::Plan;
use crate::plan::env::quote;
use crate::plan::layout::{CHECK_PROGRAM, HOOK_PROGRAM};

/// What the answer says of it begins with this.
const KEY: &str = "check=";

/// The part of the bootstrap that tries it; nothing where it is not delivered.
pub(super) fn probe(plan: &Plan) -> Option<String> {
    plan.uploads.iter().find(|upload| upload.dest == CHECK_PROGRAM)?;
    let program = quote(CHECK_PROGRAM);
    // The hooks have a test, and a say, of their own.
    let files =
        if plan.hooks.is_none() { format!("{program} {}", quote(HOOK_PROGRAM)) } else { program.clone() };
    Some(format!(
        "if ! said=$({program} --help 2>&1 </dev/null); then \
         echo {MARK}{KEY}$(printf %s \"$said\" | tail -n 1 | cut -c1-300); rm -f {files}; fi"
    ))
}

/// What to tell of a program that does not work.
pub(super) fn warning(answers: &[String]) -> Option<String> {
    let said = answers.iter().find_map(|answer| answer.strip_prefix(KEY))?;
    Some(format!(
        "fullsend-check-output cannot run in the sandbox ({said}); the output is checked on the host all the same. Name a \
         Linux executable of fullsend for the sandbox with --fullsend-binary: a static musl build runs in every image"
    ))
}
