//! Expansion of harness values, with the places of what cannot be expanded.

use std::collections::HashMap;
use std::ops::Range;

use super::environment::{DENIED, Environment};
use super::expand::{Expanded, Issue, expand, is_name};
use super::problem::{Place, Problem, Problems, Severity};
use super::reader::Text;
use super::source::Source;
use crate::error::Code;

/// The variables of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'e> {
    env: &'e Environment,
    /// Whether a variable that is not set is somebody else's business: a directory is checked where it is
    /// written, not where it runs.
    lenient: bool,
}

/// An expanded value.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// The text with the values in place.
    pub(crate) text: String,
    /// The names that were substituted or that are not set.
    pub(crate) names: Vec<String>,
    /// What could not be carried out.
    pub(crate) problems: Vec<Problem>,
    /// Whether a variable is not set and nobody is told.
    pub(crate) open: bool,
}

impl Value {
    /// The text, its problems handed over; `None` when one of them is an error.
    pub(crate) fn accept(self, problems: &mut Problems) -> Option<String> {
        let good = !self.has_errors();
        self.problems.into_iter().for_each(|p| problems.push(p));
        good.then_some(self.text)
    }

    /// Whether the text is not what the author meant.
    pub(crate) fn has_errors(&self) -> bool {
        self.open || self.problems.iter().any(|p| p.severity == Severity::Error)
    }
}

impl<'e> Values<'e> {
    /// Values from `env`.
    pub(crate) fn new(env: &'e Environment) -> Self {
        Self { env, lenient: false }
    }

    /// The same, but variables that are not set are no problem. A text that needs one has no value.
    pub(crate) fn lenient(env: &'e Environment) -> Self {
        Self { env, lenient: true }
    }

    /// Whether variables may be missing.
    pub(crate) fn is_lenient(self) -> bool {
        self.lenient
    }

    /// Looks a variable up.
    pub(crate) fn lookup(self, name: &str) -> Option<String> {
        self.env.lookup(name).map(str::to_owned)
    }

    /// Why a variable cannot be used, when it must have a value.
    pub(crate) fn missing(self, name: &str) -> Option<&'static str> {
        match self.env.lookup(name) {
            _ if self.lenient => None,
            None => Some("not set"),
            Some("") => Some("empty"),
            Some(_) => None,
        }
    }

    /// Expands a scalar of `source`.
    pub(crate) fn expand(self, text: &Text, source: &Source) -> Value {
        self.place(expand(&text.text, &|name| self.lookup(name)), text, source)
    }

    /// Gives the issues of an expansion their places in `source`.
    pub(crate) fn place(self, expanded: Expanded, text: &Text, source: &Source) -> Value {
        let written = source.text.get(text.span.clone()).unwrap_or_default();
        // The same reference may stand there often: each is the one of its number.
        let mut numbers: HashMap<&str, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (range, _) in &expanded.issues {
            let fragment = &text.text[range.clone()];
            numbers.entry(fragment).or_insert_with(|| {
                let places = |text: &str| text.match_indices(fragment).map(|(at, _)| at).collect();
                (places(&text.text), places(written))
            });
        }
        let place = |range: &Range<usize>| {
            let fragment = &text.text[range.clone()];
            let found = numbers.get(fragment).and_then(|(inside, outside)| {
                let earlier = inside.partition_point(|at| *at < range.start);
                outside.get(earlier).map(|at| *at..*at + fragment.len())
            });
            found.map_or(text.span.clone(), |r| text.span.start + r.start..text.span.start + r.end)
        };
        self.value(expanded, |range| source.place(place(range)))
    }

    /// Problems of a whole file that was expanded: the ranges are ranges of its text.
    pub(crate) fn place_in_file(self, expanded: Expanded, source: &Source) -> Value {
        self.value(expanded, |range| source.place(range.clone()))
    }

    fn value(self, expanded: Expanded, place: impl Fn(&Range<usize>) -> Place) -> Value {
        let unset = |issue: &Issue| match issue {
            Issue::Unset(name) => self.lenient && !DENIED.contains(&name.as_str()),
            Issue::Nothing(text) => self.lenient && is_name(text.trim_start_matches('$')),
            Issue::Syntax(_) | Issue::Unquotable(_) => false,
        };
        let open = expanded.issues.iter().any(|(_, issue)| unset(issue));
        let problems = expanded
            .issues
            .iter()
            .filter(|(_, issue)| !unset(issue))
            .map(|(range, issue)| describe(issue).at(Some(place(range))))
            .collect();
        Value { names: names(&expanded), text: expanded.text, problems, open }
    }
}

fn names(expanded: &Expanded) -> Vec<String> {
    let unset = expanded.issues.iter().filter_map(|(_, issue)| match issue {
        Issue::Unset(name) => Some(name.clone()),
        Issue::Nothing(text) => Some(text.trim_start_matches('$').to_owned()),
        Issue::Syntax(_) | Issue::Unquotable(_) => None,
    });
    let mut names: Vec<_> = expanded.used.iter().cloned().chain(unset).collect();
    names.sort();
    names.dedup();
    names
}

fn describe(issue: &Issue) -> Problem {
    match issue {
        Issue::Unset(name) if DENIED.contains(&name.as_str()) => Problem::error(
            Code::EnvUnset,
            format!("`{name}` never expands: it could be used to ask for tokens of the whole workflow"),
        )
        .help("remove it; obtain the token in a step before the run and pass only that"),
        Issue::Unset(name) => Problem::error(Code::EnvUnset, format!("the variable `{name}` is not set"))
            .help(format!("export {name}, or set it in a file given with --env-file")),
        Issue::Nothing(text) => {
            Problem::warning(Code::EnvUnset, format!("`{text}` is not set and expands to nothing"))
                .help("write `$$` for a literal dollar, or `${NAME}` to require the variable")
        }
        Issue::Syntax(text) if text == "${" => {
            Problem::error(Code::Value, "`${` without a `}`").help("write `${NAME}`, or `$$` for a literal dollar")
        }
        Issue::Syntax(text) => Problem::error(Code::Value, format!("`{text}` is not a plain `${{NAME}}`"))
            .help("defaults and other shell forms do not exist here; set the variable, or write `$$` for a literal dollar"),
        Issue::Unquotable(where_) => {
            Problem::error(Code::Value, format!("no quoting is safe for a value in {where_}"))
                .help("assign it on a line of its own before (`COPY=${NAME}`) and use `$COPY` here")
        }
    }
}
