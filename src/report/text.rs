//! Small texts that several reports share.

use std::time::Duration;

/// A duration as people write it: `0.4s`, `12s`, `3m 05s`, `1h 02m`.
pub fn duration(d: Duration) -> String {
    let secs = d.as_secs();
    match secs {
        0..10 => format!("{:.1}s", d.as_secs_f64()),
        10..60 => format!("{secs}s"),
        60..3600 => format!("{}m {:02}s", secs / 60, secs % 60),
        _ => format!("{}h {:02}m", secs / 3600, secs % 3600 / 60),
    }
}

/// Bytes in hexadecimal, e.g. a digest.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    use std::fmt::Write as _;
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// The last `n` lines of a text.
pub fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

/// A size as people write it: `812 B`, `4.0 KB`, `82.1 MB` (powers of 1000).
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let texts: Vec<_> =
            [0.04, 9.94, 12.9, 65.0, 3600.0].map(|s| duration(Duration::from_secs_f64(s))).into();
        assert_eq!(texts, ["0.0s", "9.9s", "12s", "1m 05s", "1h 00m"]);
    }

    #[test]
    fn sizes_read_well() {
        let texts: Vec<_> = [0, 999, 1000, 999_949, 999_950, 82_100_000].map(bytes).into();
        assert_eq!(texts, ["0 B", "999 B", "1.0 KB", "999.9 KB", "1.0 MB", "82.1 MB"]);
    }
}
