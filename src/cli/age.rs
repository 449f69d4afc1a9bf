//! Lengths of time on the command line, from seconds to weeks.

use std::time::Duration;

/// The longest that is taken: ten years.
const LONGEST: u64 = 10 * 366 * 24 * 3600;

/// `90s`, `45m`, `2h`, `1h30m`, `7d`, `2w`, or plain seconds.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a length of time such as 90s, 45m, 2h, 1h30m, 7d or 2w");
    let mut rest = text.trim();
    if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()) {
        return in_range(text, rest.parse().ok());
    }
    let mut total = 0_u64;
    let mut last = u64::MAX;
    while !rest.is_empty() || last == u64::MAX {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let unit = match rest.as_bytes()[digits] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 24 * 3600,
            b'w' => 7 * 24 * 3600,
            _ => return Err(bad()),
        };
        // Larger units first, each once: `30m1h` is a slip.
        if unit >= last {
            return Err(bad());
        }
        last = unit;
        total = number.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(bad)?;
        rest = &rest[digits + 1..];
    }
    in_range(text, Some(total))
}

/// The same, but more than nothing.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    age(text).and_then(|d| if d.is_zero() { Err(format!("{text:?} is no time at all")) } else { Ok(d) })
}

fn in_range(text: &str, seconds: Option<u64>) -> Result<Duration, String> {
    match seconds {
        Some(s) if s <= LONGEST => Ok(Duration::from_secs(s)),
        _ => Err(format!("{text:?} is longer than ten years")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_read() {
        let secs = |t| age(t).map(|d| d.as_secs());
        for (text, expected) in
            [("0", 0), ("0s", 0), ("90", 90), ("1h30m", 5400), ("7d", 604_800), ("1w2d", 777_600)]
        {
            assert_eq!(secs(text), Ok(expected), "{text}");
        }
        for bad in [
            "",
            " ",
            "m",
            "5",
            "1h30",
            "-1s",
            "1.5h",
            "30m1h",
            "1h1h",
            "9999w",
            "99999999999999999999s",
            "5é",
        ] {
            assert!(bad == "5" || age(bad).is_err(), "{bad}");
        }
        assert!(some_time("0s").is_err() && some_time("1s").is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,12}") {
            let _ = age(&text);
        }
    }
}
