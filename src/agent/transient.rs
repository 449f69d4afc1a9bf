//! Whether a run died because the model API let it down for a moment.

use super::judge::Evidence;
use super::summary::one_line;

/// What the agent CLIs and the APIs behind them say when it is worth trying again, in lower case. The numbers are HTTP
/// statuses as Claude Code 2.1 (`API Error: 529 …`) and Codex (`unexpected status 529 …`) write them, or as the decoder of
/// OpenCode's stream puts them behind the words of the API; 529 is Anthropic's word for overloaded.
const PASSING: &[&str] = &[
    "api error: 408",
    "api error: 429",
    "api error: 500",
    "api error: 502",
    "api error: 503",
    "api error: 504",
    "api error: 529",
    "(http 408)",
    "(http 429)",
    "(http 500)",
    "(http 502)",
    "(http 503)",
    "(http 504)",
    "(http 529)",
    "status 408",
    "status 429",
    "status 500",
    "status 502",
    "status 503",
    "status 504",
    "status 529",
    "overloaded",
    "rate_limit_error",
    "rate limit",
    "too many requests",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway timeout",
    "server_error",
    "unable to connect",
    "connection error",
    "connection failed",
    "connection refused",
    "connectionrefused",
    "connection reset",
    "connection closed",
    "connection lost",
    "econnrefused",
    "econnreset",
    "etimedout",
    "enotfound",
    "eai_again",
    "epipe",
    "socket hang up",
    "fetch failed",
    "timed out",
    "terminated unexpectedly",
    "connection was closed",
    "cannot connect to api",
    "stream disconnected",
    "server error",
];
/// What stays as it is, whatever else the text says.
const LASTING: &[&str] = &[
    "api error: 400",
    "api error: 401",
    "api error: 403",
    "api error: 404",
    "api error: 413",
    "status 400",
    "status 401",
    "status 403",
    "status 404",
    "authentication",
    "permission_error",
    "invalid_request",
    "credit balance",
    "usage limit",
    "quota",
    "billing",
    "policy_denied",
    "prompt is too long",
    "context window",
    "context length",
];
/// The longest reason, in characters.
const REASON: usize = 200;

/// What the API said, when the run ended by it and another try may go well. What the agent itself says of its work is
/// not looked at: its tools meet refused connections too.
pub fn transient(evidence: &Evidence) -> Option<String> {
    let said = match &evidence.result {
        Some(result) if !result.is_error => return None,
        Some(result) => {
            let by_api = result.terminal_reason.as_deref() == Some("api_error");
            let texts = std::iter::once(&result.text).chain(&result.errors);
            let text = texts.map(String::as_str).find(|t| by_api && !t.is_empty() || is_api_error(t));
            text.or(evidence.last_error.as_deref())?
        }
        // Cut off between two tries, or right after the last one.
        None => evidence.last_error.as_deref()?,
    };
    let lower = said.to_lowercase();
    let lasting = LASTING.iter().any(|word| lower.contains(word));
    let passing = PASSING.iter().any(|word| lower.contains(word));
    (passing && !lasting).then(|| one_line(said, REASON))
}

fn is_api_error(text: &str) -> bool {
    text.trim_start().to_lowercase().starts_with("api error")
}

#[cfg(test)]
mod tests {
    use super::super::event::ResultEvent;
    use super::*;

    fn ended(text: &str, last_error: Option<&str>, is_error: bool) -> Evidence {
        Evidence {
            result: Some(ResultEvent { text: text.into(), is_error, ..ResultEvent::default() }),
            last_error: last_error.map(Into::into),
            ..Evidence::new()
        }
    }

    #[test]
    fn what_passes_is_tried_again_and_what_stays_is_not() {
        for text in [
            "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            "API Error: Repeated 529 Overloaded errors",
            "API Error: 429 Too many requests",
            "API Error: 500 Internal server error",
            "API Error: Connection error.",
            "API Error: Unable to connect to API (ConnectionRefused)",
        ] {
            assert!(transient(&ended(text, None, true)).is_some(), "{text}");
        }
        for (text, passing) in [("closed today (HTTP 503)", true), ("this key was revoked (HTTP 401)", false)]
        {
            assert_eq!(transient(&ended(text, Some(text), true)).is_some(), passing, "{text}");
        }
        for text in [
            "API Error: 401 invalid x-api-key",
            "API Error: 400 prompt is too long: 210000 tokens > 200000 maximum",
            "API Error: 429 {\"error\":{\"message\":\"You have hit your usage limit\"}}",
            "Credit balance is too low",
        ] {
            assert_eq!(transient(&ended(text, None, true)), None, "{text}");
        }
    }

    #[test]
    fn the_words_of_codex() {
        let url = "url: http://127.0.0.1/v1/responses";
        for (text, passes) in [
            ("exceeded retry limit, last status: 429 Too Many Requests".to_owned(), true),
            (format!("unexpected status 529 <unknown status code>: try later, {url}"), true),
            (format!("unexpected status 401 Unauthorized: this key was revoked, {url}"), false),
            (format!("unexpected status 403 Forbidden: connection failed, {url}"), false),
            ("Connection failed: error sending request".to_owned(), true),
            ("Codex ran out of room in the model's context window.".to_owned(), false),
        ] {
            assert_eq!(transient(&ended(&text, Some(&text), true)).is_some(), passes, "{text}");
        }
    }

    #[test]
    fn what_the_agent_says_of_its_work_is_no_api_error() {
        assert_eq!(transient(&ended("the test says: connection refused", None, true)), None);
        assert_eq!(transient(&ended("API Error: 529 overloaded", None, false)), None);
        let e = ended("I give up", Some("model API: overloaded_error"), true);
        assert_eq!(transient(&e).as_deref(), Some("model API: overloaded_error"));
        let cut = Evidence { last_error: Some("model API: rate_limit".into()), ..Evidence::new() };
        assert_eq!(transient(&cut), None, "the word is not one that is known");
        let cut = Evidence { last_error: Some("overloaded".into()), ..Evidence::new() };
        assert!(transient(&cut).is_some());
    }
}
