//! `$VAR` and `${VAR}` in harness values.
//!
//! The meaning is that of Go's `os.Expand`, which harness files are written for, with three differences: `$$`
//! is a literal dollar, `${X:-d}` and other forms that are no plain name are problems instead of a look-up of
//! the odd name, and what is missing is reported with its place. A substituted value is never looked at again.

mod shell;

use std::ops::Range;

pub(crate) use shell::expand_shell;

/// How a variable is looked up; `None` is unset.
pub(crate) type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

/// The result of an expansion.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Expanded {
    /// The text with the values in place.
    pub(crate) text: String,
    /// What could not be carried out, with byte ranges of the input.
    pub(crate) issues: Vec<(Range<usize>, Issue)>,
    /// The names that were substituted.
    pub(crate) used: Vec<String>,
}

/// Why a reference could not be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Issue {
    /// `${NAME}` of a variable that is not set.
    Unset(String),
    /// `$NAME` of a variable that is not set, or `$1` and its like: expands to nothing.
    Nothing(String),
    /// `${…}` with something that is no plain name, or without an end.
    Syntax(String),
    /// A place in shell text where no quoting is safe; the text says what it is.
    Unquotable(&'static str),
}

/// What stands at a `$`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reference<'t> {
    /// `$$`
    Dollar,
    /// `$NAME` or `${NAME}`
    Variable { name: &'t str, braced: bool },
    /// `$1`, `$?`, `$@` …
    Special(&'t str),
    /// `${…}` that is no plain name.
    Syntax(&'t str),
    /// A dollar followed by something else.
    Lone,
}

/// Reads the reference at the start of `text`, which begins with `$`. Returns it and its length in bytes.
pub(crate) fn reference(text: &str) -> (Reference<'_>, usize) {
    let rest = &text[1..];
    let Some(first) = rest.bytes().next() else { return (Reference::Lone, 1) };
    match first {
        b'$' => (Reference::Dollar, 2),
        b'{' => match rest.find('}') {
            Some(end) if is_name(&rest[1..end]) => {
                (Reference::Variable { name: &rest[1..end], braced: true }, end + 2)
            }
            Some(end) if !rest[..end].contains('\n') => (Reference::Syntax(&text[..end + 2]), end + 2),
            _ => (Reference::Syntax(&text[..2]), 2),
        },
        b'*' | b'#' | b'@' | b'!' | b'?' | b'-' | b'0'..=b'9' => (Reference::Special(&text[..2]), 2),
        _ => match rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count() {
            0 => (Reference::Lone, 1),
            len => (Reference::Variable { name: &rest[..len], braced: false }, len + 1),
        },
    }
}

/// Whether `name` is a name that a shell can assign to: `[A-Za-z_][A-Za-z0-9_]*`.
pub(crate) fn is_name(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Substitutes raw values.
pub(crate) fn expand(input: &str, lookup: Lookup<'_>) -> Expanded {
    let mut out = Expanded::default();
    let mut at = 0;
    while let Some(dollar) = input[at..].find('$') {
        out.text.push_str(&input[at..at + dollar]);
        at += dollar;
        let (reference, len) = reference(&input[at..]);
        let range = at..at + len;
        match reference {
            Reference::Dollar | Reference::Lone => out.text.push('$'),
            Reference::Special(text) => out.issues.push((range, Issue::Nothing(text.to_owned()))),
            Reference::Syntax(text) => out.issues.push((range, Issue::Syntax(text.to_owned()))),
            Reference::Variable { name, braced } => match lookup(name) {
                Some(value) => {
                    out.text.push_str(&value);
                    out.used.push(name.to_owned());
                }
                None if braced => out.issues.push((range, Issue::Unset(name.to_owned()))),
                None => out.issues.push((range, Issue::Nothing(format!("${name}")))),
            },
        }
        at += len;
    }
    out.text.push_str(&input[at..]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".into()),
            "EMPTY" => Some(String::new()),
            "LOOP" => Some("${A}$A$$".into()),
            "_x1" => Some("under".into()),
            _ => None,
        }
    }

    fn text(input: &str) -> String {
        expand(input, &env).text
    }

    /// Results of `os.Expand`, but for `$$`.
    #[test]
    fn go_meaning() {
        for (input, want) in [
            ("", ""),
            ("plain", "plain"),
            ("$A", "one"),
            ("${A}", "one"),
            ("${A}B", "oneB"),
            ("$AB", ""),
            ("$A.B", "one.B"),
            ("$A$A", "oneone"),
            ("${EMPTY}", ""),
            ("$UNSET", ""),
            ("a$", "a$"),
            ("a$ b", "a$ b"),
            ("$(A)", "$(A)"),
            ("$1", ""),
            ("$12", "2"),
            ("cost: $5.00", "cost: .00"),
            ("$?x", "x"),
            ("$_x1", "under"),
            ("$é", "$é"),
            ("$$", "$"),
            ("$$A", "$A"),
            ("$$$A", "$one"),
            ("$$$$", "$$"),
            ("$${A}", "${A}"),
            ("\\$A", "\\one"),
        ] {
            assert_eq!(text(input), want, "{input}");
        }
    }

    #[test]
    fn a_value_is_never_expanded_again() {
        assert_eq!(text("<${LOOP}>"), "<${A}$A$$>");
    }

    #[test]
    fn issues_have_ranges() {
        let input = "é ${NO} $NO ${X:-d} ${} ${A";
        let found: Vec<_> = expand(input, &env).issues.into_iter().map(|(r, i)| (&input[r], i)).collect();
        assert_eq!(
            found,
            [
                ("${NO}", Issue::Unset("NO".into())),
                ("$NO", Issue::Nothing("$NO".into())),
                ("${X:-d}", Issue::Syntax("${X:-d}".into())),
                ("${}", Issue::Syntax("${}".into())),
                ("${", Issue::Syntax("${".into())),
            ]
        );
    }

    proptest! {
        #[test]
        fn doubled_dollars_are_the_text_itself(raw in any::<String>()) {
            let out = expand(&raw.replace('$', "$$"), &|_| None);
            prop_assert_eq!(out.text, raw);
            prop_assert!(out.issues.is_empty());
        }

        #[test]
        fn any_text_and_any_value(before in "[^$]{0,9}", value in any::<String>(), after in "[^$]{0,9}") {
            let out = expand(&format!("{before}${{V}}{after}"), &|_| Some(value.clone()));
            prop_assert_eq!(out.text, format!("{before}{value}{after}"));
        }

        #[test]
        fn never_panics(raw in "[${}A-Z:é\n ]{0,40}") {
            expand(&raw, &|_| None);
        }
    }
}
