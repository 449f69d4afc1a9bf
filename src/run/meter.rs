//! What an agent has used of its budgets, while its stream comes in. Pure.

use crate::agent::{Metrics, Usage};
use crate::harness::model::Budgets;

/// What can be used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Answers of the model.
    Turns,
    /// US dollars.
    Cost,
    /// Tokens.
    Tokens,
}

impl Kind {
    /// Every kind.
    pub(super) const ALL: [Kind; 3] = [Kind::Turns, Kind::Cost, Kind::Tokens];

    /// The key in the harness.
    pub(super) fn key(self) -> &'static str {
        match self {
            Kind::Turns => "max_turns",
            Kind::Cost => "max_cost_usd",
            Kind::Tokens => "max_tokens",
        }
    }

    /// The option of the command line.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Kind::Turns => "--max-turns",
            Kind::Cost => "--max-cost-usd",
            Kind::Tokens => "--max-tokens",
        }
    }
}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Over {
    /// Which.
    pub kind: Kind,
    /// What was used of it: `7 turns of 6`.
    pub text: String,
}

/// The budgets of a run, and what earlier starts of the agent used of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    /// The budgets.
    pub budgets: Budgets,
    /// What was used before this start.
    pub before: Metrics,
    /// What the session that goes on had used.
    pub session: Usage,
}

impl Meter {
    /// Whether this start has used more than there is.
    pub(super) fn over(&self, now: &Metrics) -> Option<Over> {
        let used = self.used(now);
        Kind::ALL
            .into_iter()
            .find(|kind| self.beyond(*kind, &used, 1, false))
            .map(|kind| self.named(kind, &used))
    }

    /// Whether nothing is left for a further start.
    pub(super) fn exhausted(&self) -> Option<Over> {
        let used = &self.before;
        Kind::ALL
            .into_iter()
            .find(|kind| self.beyond(*kind, used, 1, true))
            .map(|kind| self.named(kind, used))
    }

    /// The budgets that there are, by name.
    pub(super) fn named_budgets(&self) -> String {
        let Budgets { max_turns, max_cost_usd, max_tokens } = self.budgets;
        let set = [max_turns.is_some(), max_cost_usd.is_some(), max_tokens.is_some()];
        let names =
            Kind::ALL.iter().zip(set).filter(|(_, set)| *set).map(|(kind, _)| format!("`{}`", kind.key()));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The same, once a start has used this.
    pub(super) fn after(&self, start: &Metrics) -> Self {
        Self { before: self.used(start), ..self.clone() }
    }

    /// Whether nothing is left for a reviewer, who takes turns of its own.
    pub(super) fn exhausted_for_review(&self) -> Option<Over> {
        let budgets = Budgets { max_turns: None, ..self.budgets };
        Self { budgets, ..self.clone() }.exhausted()
    }

    /// The first budget of which four fifths are used.
    pub(super) fn nearly(&self, now: &Metrics) -> Option<Kind> {
        let used = self.used(now);
        Kind::ALL.into_iter().find(|kind| self.beyond(*kind, &used, 5, true))
    }

    /// What is left, for an agent program with limits of its own.
    pub(super) fn left(&self) -> Budgets {
        let used = &self.before;
        Budgets {
            max_turns: self.budgets.max_turns.map(|max| max.saturating_sub(used.turns)),
            max_cost_usd: self.budgets.max_cost_usd.map(|max| (max - used.cost_usd.unwrap_or(0.0)).max(0.0)),
            max_tokens: self.budgets.max_tokens.map(|max| max.saturating_sub(used.tokens.total())),
        }
    }

    fn used(&self, now: &Metrics) -> Metrics {
        let mut used = self.before.clone();
        used.add(now);
        used
    }

    /// Whether more than `fifths - 1` of `fifths` parts are used (all of them for 1); with `reached` as much.
    fn beyond(&self, kind: Kind, used: &Metrics, fifths: u64, reached: bool) -> bool {
        let parts = fifths.saturating_sub(1).max(1);
        let count = |used: u64, max: Option<u64>| {
            let Some(max) = max else { return false };
            let (used, max) = (u128::from(used) * u128::from(fifths), u128::from(max) * u128::from(parts));
            used > max || reached && used == max
        };
        match kind {
            Kind::Turns => count(used.turns, self.budgets.max_turns),
            Kind::Tokens => count(used.tokens.total(), self.budgets.max_tokens),
            Kind::Cost => match (used.cost_usd, self.budgets.max_cost_usd) {
                (Some(used), Some(max)) => {
                    let share = if fifths > 1 { 0.8 } else { 1.0 };
                    used > max * share || reached && used >= max * share
                }
                _ => false,
            },
        }
    }

    fn named(&self, kind: Kind, used: &Metrics) -> Over {
        let Budgets { max_turns, max_cost_usd, max_tokens } = self.budgets;
        let text = match kind {
            Kind::Turns => format!("{} turns of {}", used.turns, max_turns.unwrap_or(0)),
            Kind::Tokens => format!("{} tokens of {}", used.tokens.total(), max_tokens.unwrap_or(0)),
            Kind::Cost => {
                format!("${:.4} of ${:.2}", used.cost_usd.unwrap_or(0.0), max_cost_usd.unwrap_or(0.0))
            }
        };
        Over { kind, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(turns: u64, tokens: u64, cost: Option<f64>) -> Metrics {
        let tokens = Usage { input: tokens, ..Usage::default() };
        Metrics { turns, tokens, cost_usd: cost, ..Metrics::default() }
    }

    fn meter(before: Metrics) -> Meter {
        let budgets = Budgets { max_turns: Some(10), max_cost_usd: Some(1.0), max_tokens: Some(1000) };
        Meter { budgets, before, session: Usage::default() }
    }

    #[test]
    fn a_budget_may_be_used_up_but_not_exceeded() {
        let m = meter(used(4, 400, Some(0.4)));
        assert_eq!(m.over(&used(6, 600, Some(0.6))), None);
        let kind = |now: &Metrics| m.over(now).map(|o| o.kind);
        assert_eq!(kind(&used(7, 0, None)), Some(Kind::Turns));
        assert_eq!(kind(&used(0, 601, None)), Some(Kind::Tokens));
        assert_eq!(kind(&used(0, 0, Some(0.7))), Some(Kind::Cost));
        assert_eq!(m.over(&used(7, 0, None)).unwrap().text, "11 turns of 10");
    }

    #[test]
    fn at_four_fifths_there_is_a_notice() {
        let m = meter(Metrics::default());
        assert_eq!(m.nearly(&used(7, 799, Some(0.79))), None);
        assert_eq!(m.nearly(&used(8, 0, None)), Some(Kind::Turns));
        assert_eq!(m.nearly(&used(0, 800, None)), Some(Kind::Tokens));
        assert_eq!(m.nearly(&used(0, 0, Some(0.8))), Some(Kind::Cost));
    }

    #[test]
    fn what_is_left_goes_to_the_next_start() {
        let m = meter(used(4, 400, Some(0.25)));
        let left = m.left();
        assert_eq!((left.max_turns, left.max_tokens, left.max_cost_usd), (Some(6), Some(600), Some(0.75)));
        assert_eq!(m.exhausted(), None);
        assert_eq!(meter(used(10, 0, None)).exhausted().unwrap().kind, Kind::Turns);
        assert_eq!(Meter::default().exhausted(), None);
        assert_eq!(Meter::default().over(&used(u64::MAX, u64::MAX, Some(1e9))), None);
    }
}
