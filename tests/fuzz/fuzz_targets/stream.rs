//! The decoder of an agent's stream: what comes out does not depend on how the stream was cut, and the lines made of
//! it hold nothing that acts on a CI log.

#![no_main]

use fullsend::agent::{Decoder, Format};
use fullsend::report::sanitize;
use fullsend::report::Ci;
use libfuzzer_sys::fuzz_target;

fn decode(format: Format, pieces: &[&[u8]]) -> (Vec<String>, String) {
    let mut decoder = Decoder::new(format);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut |event| events.push(format!("{event:?}")));
    }
    decoder.finish(&mut |event| events.push(format!("{event:?}")));
    (events, format!("{:?}", decoder.stats()))
}

fuzz_target!(|input: (bool, usize, Vec<u8>)| {
    let (json, cut, bytes) = input;
    let format = if json { Format::StreamJson } else { Format::Auto };
    let cut = cut.checked_rem(bytes.len() + 1).unwrap_or(0);
    let (head, tail) = bytes.split_at(cut);
    assert_eq!(decode(format, &[&bytes]), decode(format, &[head, tail]));
    for line in String::from_utf8_lossy(&bytes).lines() {
        let shown = sanitize::line(line, Ci::GitHub);
        assert!(!shown.contains("::") && !shown.contains("##["), "{shown:?}");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\t'), "{shown:?}");
    }
});
