//! One factor on every deadline, for tests only: with it, a test can wait for a call that hangs.
//!
//! `FULLSEND_TEST_DEADLINE_SCALE=0.01` makes an hour 36 seconds. A deadline never gets shorter than
//! `FLOOR`, because a healthy call needs its time on a busy machine. What a run promises to a user who
//! cancels (seven seconds in all) is not scaled.
//! `FULLSEND_TEST_SIZE_SCALE` does the same to how much of an agent's output is taken.

use std::sync::OnceLock;
use std::time::Duration;

/// The variable.
const VARIABLE: &str = "FULLSEND_TEST_DEADLINE_SCALE";
/// The same for sizes.
const SIZE_VARIABLE: &str = "FULLSEND_TEST_SIZE_SCALE";
/// The shortest that a deadline gets by the factor.
const FLOOR: Duration = Duration::from_secs(5);

fn factor() -> f64 {
    static FACTOR: OnceLock<f64> = OnceLock::new();
    *FACTOR.get_or_init(|| parse(std::env::var(VARIABLE).ok().as_deref()))
}

/// Anything but a number above 0 and up to 1 counts as 1.
fn parse(text: Option<&str>) -> f64 {
    text.and_then(|t| t.parse::<f64>().ok()).filter(|f| *f > 0.0 && *f <= 1.0).unwrap_or(1.0)
}

/// A deadline.
pub fn limit(full: Duration) -> Duration {
    limit_by(factor(), full)
}

fn limit_by(factor: f64, full: Duration) -> Duration {
    full.mul_f64(factor).max(full.min(FLOOR))
}

/// How much is taken of what an agent writes, in bytes.
pub fn size(full: u64) -> u64 {
    static FACTOR: OnceLock<f64> = OnceLock::new();
    let factor = *FACTOR.get_or_init(|| parse(std::env::var(SIZE_VARIABLE).ok().as_deref()));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "exact up to petabytes, and at most what it was"
    )]
    if factor < 1.0 { (full as f64 * factor) as u64 } else { full }
}

/// A grace or a pause, which may become very short.
pub fn pause(full: Duration) -> Duration {
    full.mul_f64(factor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fraction_is_a_factor() {
        for (text, want) in [(None, 1.0), (Some("0.5"), 0.5), (Some("1"), 1.0), (Some("0"), 1.0)] {
            assert!((parse(text) - want).abs() < f64::EPSILON, "{text:?}");
        }
        for text in ["", "x", "-1", "2", "NaN", "inf"] {
            assert!((parse(Some(text)) - 1.0).abs() < f64::EPSILON, "{text}");
        }
    }

    #[test]
    fn a_deadline_keeps_the_time_that_a_healthy_call_needs() {
        let s = Duration::from_secs;
        assert_eq!(limit_by(0.01, s(3600)), s(36));
        assert_eq!(limit_by(0.01, s(60)), FLOOR);
        assert_eq!(limit_by(0.01, s(2)), s(2));
        assert_eq!(limit_by(1.0, s(7)), s(7));
    }
}
