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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let texts: Vec<_> =
            [0.04, 9.94, 12.9, 65.0, 3600.0].map(|s| duration(Duration::from_secs_f64(s))).into();
        assert_eq!(texts, ["0.0s", "9.9s", "12s", "1m 05s", "1h 00m"]);
    }
}
