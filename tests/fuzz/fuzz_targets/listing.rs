//! The listing of a sandbox: what is accepted holds only plain relative paths below listed directories.

#![no_main]

use fullsend::import::{Limits, Listing, check_names, diff};
use fullsend::plan::repo::Manifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { listing_entries: 10_000, listing_bytes: 1 << 20, ..Limits::default() };
    let Ok(listing) = Listing::parse(bytes, &limits) else { return };
    for path in listing.0.keys() {
        assert!(!path.is_empty() && path[0] != b'/' && !path.contains(&0));
        assert!(path.split(|b| *b == b'/').all(|name| !matches!(name, b"" | b"." | b"..")));
    }
    let manifest =
        Manifest { entries: vec![], git: vec![], left_out: vec![], warnings: vec![], bytes: 0, index: None };
    let delta = diff(&Listing::default(), &listing, &manifest);
    if check_names(&delta, &listing, &manifest, &limits).is_ok() {
        let dot_git = |path: &[u8]| path.split(|b| *b == b'/').any(|name| name.eq_ignore_ascii_case(b".git"));
        assert!(!delta.files.keys().any(|path| dot_git(path)));
    }
});
