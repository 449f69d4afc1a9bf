//! The redactor: what comes out does not depend on how the stream was cut, and no value is in it.

#![no_main]

use fullsend::secrets::{Redactor, Registry, Secret};
use libfuzzer_sys::fuzz_target;

fn redact(secrets: &Registry, pieces: &[&[u8]]) -> (Vec<u8>, u64) {
    let mut redactor = Redactor::new(secrets);
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&redactor.push(piece));
    }
    out.extend_from_slice(&redactor.flush());
    (out, redactor.replaced())
}

fuzz_target!(|input: (Vec<String>, Vec<u8>, usize, usize)| {
    let (values, bytes, one, two) = input;
    let secrets: Vec<Secret> = values.iter().take(4).map(|v| Secret::new(v.as_str())).collect();
    let secrets = Registry::new(&secrets);
    let place = |n: usize| n.checked_rem(bytes.len() + 1).unwrap_or(0);
    let (one, two) = (place(one).min(place(two)), place(one).max(place(two)));
    let whole = redact(&secrets, &[&bytes]);
    assert_eq!(whole, redact(&secrets, &[&bytes[..one], &bytes[one..two], &bytes[two..]]));
    assert_eq!(whole.1 > 0, secrets.is_in(&bytes));
});
