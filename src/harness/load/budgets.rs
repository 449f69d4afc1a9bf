//! What the agent may use up, what it is asked, and how often it is started again.

use super::super::model::Budgets;
use super::super::raw::RawHarness;
use super::super::reader::{At, Text};
use super::Loader;

/// How often the agent is started again after a failure of the model API when nothing says otherwise.
const DEFAULT_API_RETRIES: u32 = 2;
/// The most.
const MAX_API_RETRIES: u32 = 10;
/// The longest prompt, in bytes.
pub(crate) const MAX_PROMPT: u64 = 4 * 1024 * 1024;
/// The largest budget of dollars.
const MAX_USD: f64 = 1_000_000.0;

impl Loader<'_> {
    /// The prompt of the command line, else that of the harness.
    pub(super) fn prompt(&mut self, key: Option<&Text>) -> Option<String> {
        if let Some(prompt) = &self.request.overrides.prompt {
            if prompt.trim().is_empty() || prompt.contains('\0') || too_long(prompt) {
                self.option(
                    "the prompt of the command line is empty, has a NUL byte, or is above 4 MiB".into(),
                    PROMPT,
                );
            }
            return Some(prompt.clone());
        }
        let text = key?;
        if text.text.trim().is_empty() || text.text.contains('\0') || too_long(&text.text) {
            self.error(&text.span, "`prompt` is blank, has a NUL byte, or is above 4 MiB", PROMPT);
        }
        Some(text.text.clone())
    }

    /// The budgets of the command line over those of the harness; 0 is no limit. A reviewer has at most what is left to
    /// the run whose work it reviews.
    pub(super) fn budgets(&mut self, raw: &RawHarness) -> Budgets {
        let over = self.request.overrides.budgets;
        let own = Budgets {
            max_turns: self.count("max_turns", raw.max_turns.as_ref()),
            max_tokens: self.count("max_tokens", raw.max_tokens.as_ref()),
            max_cost_usd: self.usd(raw.max_cost_usd.as_ref()),
        };
        let reviewer = self.request.overrides.reviewer;
        let count = |over: Option<u64>, own: Option<u64>| match (over, own) {
            (Some(over), Some(own)) if reviewer => Some(over.min(own)),
            (over, own) => over.or(own).filter(|n| *n > 0),
        };
        Budgets {
            max_turns: count(over.max_turns, own.max_turns),
            max_tokens: count(over.max_tokens, own.max_tokens),
            max_cost_usd: match (over.max_cost_usd, own.max_cost_usd) {
                (Some(over), Some(own)) if reviewer => Some(over.min(own)),
                (over, own) => over.or(own).filter(|usd| *usd > 0.0),
            },
        }
    }

    fn count(&mut self, key: &str, value: Option<&At<i64>>) -> Option<u64> {
        let At { value, span } = value?;
        if *value < 0 {
            self.error(span, format!("`{key}` is below 0"), "write a whole number; 0 is no limit");
        }
        u64::try_from(*value).ok().filter(|v| *v > 0)
    }

    fn usd(&mut self, key: Option<&Text>) -> Option<f64> {
        let text = key?;
        match usd(&text.text) {
            Ok(usd) => Some(usd).filter(|usd| *usd > 0.0),
            Err(why) => {
                self.error(
                    &text.span,
                    format!("`max_cost_usd` is not usable: {why}"),
                    "write dollars, such as 2.50; 0 is no limit",
                );
                None
            }
        }
    }

    pub(super) fn debug(&mut self, key: Option<&Text>) -> Option<String> {
        let unfit = |filter: &str| {
            filter.trim().is_empty() || filter.chars().any(char::is_control) || filter.len() > MAX_FILTER
        };
        if let Some(filter) = &self.request.overrides.debug {
            if unfit(filter) {
                self.option("the filter of --debug is empty, too long, or not in one line".into(), FILTER);
            }
            return Some(filter.clone());
        }
        let text = key?;
        if unfit(&text.text) {
            self.error(&text.span, "`debug` is empty, too long, or not in one line", FILTER);
        }
        Some(text.text.clone())
    }

    pub(super) fn api_retries(&mut self, key: Option<&At<i64>>) -> u32 {
        if let Some(retries) = self.request.overrides.api_retries {
            return retries;
        }
        let Some(At { value, span }) = key else { return DEFAULT_API_RETRIES };
        match u32::try_from(*value) {
            Ok(retries) if retries <= MAX_API_RETRIES => retries,
            _ => {
                self.error(span, "`api_retries` is out of range", format!("use 0 to {MAX_API_RETRIES}"));
                0
            }
        }
    }
}

fn too_long(prompt: &str) -> bool {
    prompt.len() as u64 > MAX_PROMPT
}

/// The longest filter of the agent program's log, in bytes.
const MAX_FILTER: usize = 1000;
const FILTER: &str = "write what the agent program is to log in its own words, or `*` for everything";

const PROMPT: &str = "write what the agent is to do; larger inputs belong in `agent_input`";

/// US dollars.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub(crate) fn usd(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_prefix('$').unwrap_or(text.trim()).parse::<f64>();
    match number {
        Ok(usd) if usd.is_finite() && (0.0..=MAX_USD).contains(&usd) => Ok(usd),
        _ => Err(format!("{text:?} is not an amount of dollars")),
    }
}

#[cfg(test)]
mod tests {
    use super::usd;

    #[test]
    fn dollars_are_read() {
        assert_eq!(usd("2.50"), Ok(2.5));
        assert_eq!(usd("$3"), Ok(3.0));
        for bad in ["", "-1", "NaN", "inf", "two", "1e12"] {
            assert!(usd(bad).is_err(), "{bad}");
        }
    }
}
