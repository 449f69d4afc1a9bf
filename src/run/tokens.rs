//! What a start used that its stream did not tell.

use std::path::Path;

use crate::agent::runtime::Runtime;
use crate::agent::{Metrics, Usage};

/// The largest transcript that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// Completes the tokens of a start from the transcript of its session, where its stream tells none. `before` is what
/// the session had used when it began.
pub(super) fn complete(runtime: &dyn Runtime, dir: &Path, metrics: &mut Metrics, before: Usage) {
    let Some(session) = metrics.session.as_deref().filter(|_| metrics.tokens.is_zero()) else { return };
    let files = walkdir::WalkDir::new(dir.join("transcripts")).sort_by_file_name().into_iter().flatten();
    let of_session = |name: &str| name.strip_suffix(".jsonl").is_some_and(|stem| stem.ends_with(session));
    let mut found = files.filter(|e| {
        e.file_type().is_file()
            && e.file_name().to_str().is_some_and(of_session)
            && e.metadata().is_ok_and(|m| m.len() <= LARGEST)
    });
    let text = found.next().and_then(|e| fs_err::read(e.path()).ok());
    if let Some(usage) = text.and_then(|text| runtime.tokens(&text)) {
        metrics.tokens = usage.since(&before);
    }
}
