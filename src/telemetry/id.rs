//! Which trace, and which span of it: W3C Trace Context.

use crate::error::{Error, Result};
use crate::report::hex;

/// The id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceId([u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanId([u8; 8]);

/// Where a trace is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span above; nothing in a trace that begins here.
    pub parent: Option<SpanId>,
    /// Whether whoever began the trace records it.
    pub sampled: bool,
}

impl SpanId {
    /// A new one.
    pub(crate) fn random() -> Result<Self> {
        random().map(Self)
    }

    /// Another one, made from this. `n` is not 0.
    pub(crate) fn derived(self, n: u64) -> Self {
        // The multiplier is odd, so that different numbers give different ids.
        let bits = u64::from_be_bytes(self.0) ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(bits.max(1).to_be_bytes())
    }
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::bug(format!("no random bytes: {e}")))?;
    // All zeros are not an id.
    bytes[N - 1] |= 1;
    Ok(bytes)
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(self.0))
    }
}

impl std::fmt::Display for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(self.0))
    }
}

impl Context {
    /// A trace that begins here.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { trace: TraceId(random()?), parent: None, sampled: true })
    }

    /// Reads a `traceparent`. A later version than 0 may have more fields, which say nothing here.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = bytes::<1>(fields.next()?)?[0];
        let trace = bytes::<16>(fields.next()?).filter(|b| *b != [0; 16])?;
        let parent = bytes::<8>(fields.next()?).filter(|b| *b != [0; 8])?;
        let flags = bytes::<1>(fields.next()?)?[0];
        let valid = version != 0xff && (version != 0 || fields.next().is_none());
        valid.then_some(Self { trace: TraceId(trace), parent: Some(SpanId(parent)), sampled: flags & 1 == 1 })
    }

    /// The `traceparent` of what is called by `span`.
    pub(crate) fn header(&self, span: SpanId) -> String {
        format!("00-{}-{span}-{:02x}", self.trace, u8::from(self.sampled))
    }
}

/// Lower case hexadecimal, exactly so many bytes.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut out = [0; N];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of the specification.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context = Context::parse(EXAMPLE).unwrap();
        assert_eq!(context.header(context.parent.unwrap()), EXAMPLE);
        assert!(!Context::parse(&EXAMPLE.replace("-01", "-00")).unwrap().sampled);
        let later = format!("{}-more", EXAMPLE.replacen("00", "01", 1));
        assert_eq!(Context::parse(&later), Some(context));
    }

    #[test]
    fn what_is_no_context_is_passed_over() {
        for bad in [
            String::new(),
            EXAMPLE.to_uppercase(),
            format!("{EXAMPLE}-more"),
            EXAMPLE.replacen("00", "ff", 1),
            EXAMPLE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            EXAMPLE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            EXAMPLE.replace("-01", ""),
            EXAMPLE.replace("-01", "-0"),
        ] {
            assert_eq!(Context::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn derived_ids_differ() {
        let id = SpanId::random().unwrap();
        let ids: std::collections::BTreeSet<_> = (1..2000).map(|n| id.derived(n).to_string()).collect();
        assert_eq!(ids.len(), 1999);
        assert!(!ids.contains(&id.to_string()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,80}") {
            let _ = Context::parse(&text);
        }
    }
}
