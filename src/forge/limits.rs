//! What the headers of an answer say about when to ask again. Pure.
//!
//! GitHub: `retry-after` (seconds) for its secondary limits, `x-ratelimit-remaining: 0` with `x-ratelimit-reset`
//! (seconds since 1970) for the primary one, both with status 403 or 429. GitLab: 429 with `Retry-After`, and
//! `RateLimit-Remaining`, `RateLimit-Reset`. RFC 9110 lets `Retry-After` be a date, too.

use std::time::Duration;

use jiff::Timestamp;

use crate::http::Response;

/// The wait that is assumed where a server limits without saying for how long.
const UNSAID: Duration = Duration::from_mins(1);

/// How long the server wants to be left alone; nothing for an answer that is not about a limit.
pub(super) fn wait(response: &Response, now: Timestamp) -> Option<Duration> {
    if !matches!(response.status, 403 | 429 | 503) {
        return None;
    }
    let header = |names: &[&str]| {
        let found = response.headers.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.trim())
    };
    if let Some(wait) = header(&["retry-after"]).and_then(|text| retry_after(text, now)) {
        return Some(wait);
    }
    let used_up = header(&["x-ratelimit-remaining", "ratelimit-remaining"]) == Some("0");
    if response.status != 429 && !used_up {
        return None;
    }
    let reset = header(&["x-ratelimit-reset", "ratelimit-reset"]).and_then(|text| text.parse().ok());
    let reset = reset.and_then(|seconds| Timestamp::from_second(seconds).ok());
    // Clocks differ; a second more costs less than a second refusal.
    Some(reset.map_or(UNSAID, |at| until(at, now) + Duration::from_secs(1)))
}

fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(until(date.timestamp(), now))
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(status: u16, headers: &[(&str, &str)]) -> Option<u64> {
        let headers = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let now = Timestamp::from_second(1_000_000).unwrap();
        wait(&Response { status, headers, body: Vec::new() }, now).map(|d| d.as_secs())
    }

    #[test]
    fn a_limit_is_told_from_a_refusal() {
        let used_up = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000030")];
        for (status, headers, expected) in [
            (403, &[][..], None),
            (403, &[("x-ratelimit-remaining", "12"), ("x-ratelimit-reset", "1000030")], None),
            (403, &used_up, Some(31)),
            (429, &used_up, Some(31)),
            (429, &[("ratelimit-reset", "999999")], Some(1)),
            (429, &[], Some(60)),
            (403, &[("retry-after", "7")], Some(7)),
            (503, &[("retry-after", "Mon, 12 Jan 1970 13:46:50 GMT")], Some(10)),
            (503, &[("retry-after", "soon")], None),
            (429, &[("retry-after", "-5")], Some(60)),
            (200, &used_up, None),
            (500, &[], None),
        ] {
            assert_eq!(seconds(status, headers), expected, "{status} {headers:?}");
        }
    }
}
