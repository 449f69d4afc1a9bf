//! The last bytes of a stream, in bounded memory.

/// Keeps the last `limit` bytes that were pushed.
#[derive(Debug, Clone)]
pub struct Ring {
    bytes: Vec<u8>,
    limit: usize,
    total: u64,
}

impl Ring {
    /// What is kept of a stream unless a caller asks for more, in bytes.
    pub const DEFAULT: usize = 64 * 1024;

    /// A ring that keeps `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, total: 0 }
    }

    /// Adds bytes; the oldest beyond the limit are forgotten.
    pub fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let chunk = &chunk[chunk.len().saturating_sub(self.limit)..];
        self.bytes.extend_from_slice(chunk);
        // Trim in large steps, so that the cost per byte stays constant.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    /// Bytes seen in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The kept bytes, and whether older ones were forgotten.
    pub fn finish(mut self) -> (Vec<u8>, bool) {
        if self.bytes.len() > self.limit {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
        let truncated = self.total > self.bytes.len() as u64;
        (self.bytes, truncated)
    }

    /// A copy of the kept bytes as text.
    pub fn text(&self) -> String {
        let (bytes, _) = self.clone().finish();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_tail_and_counts_everything() {
        let mut ring = Ring::new(8);
        for chunk in [&b"0123456789"[..], b"abc", b"", b"defghijklmnop"] {
            ring.push(chunk);
        }
        assert_eq!(ring.total(), 26);
        assert_eq!(ring.finish(), (b"ijklmnop".to_vec(), true));
    }

    #[test]
    fn a_short_stream_is_whole() {
        let mut ring = Ring::new(8);
        ring.push(b"ab");
        ring.push(b"cd");
        assert_eq!(ring.finish(), (b"abcd".to_vec(), false));
    }
}
