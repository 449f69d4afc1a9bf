//! `allowed_remote_resources`: the prefixes of URLs that may be read.

use super::super::problem::{Problem, Problems};
use super::super::reader::Text;
use super::super::source::Source;
use super::url::Url;
use crate::error::Code;

/// What the format's first implementation allows when `config.yaml` has no list, and adds to one that is not empty.
const DEFAULT: [&str; 2] = [
    "https://raw.githubusercontent.com/fullsend-ai/agents/",
    "https://raw.githubusercontent.com/fullsend-ai/fullsend/",
];

/// A list of prefixes. Upper and lower case are the same, as hosts of repositories have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowed(Vec<String>);

impl Allowed {
    /// The list of `config.yaml`; `None` when the key is absent.
    pub(crate) fn of_config(entries: Option<Vec<String>>) -> Self {
        let mut all = entries.unwrap_or_else(|| DEFAULT.map(str::to_owned).to_vec());
        if !all.is_empty() {
            all.extend(DEFAULT.map(str::to_owned));
        }
        all.dedup();
        Self(all)
    }

    /// The list of a harness, each entry of which the list of `config.yaml` must cover.
    pub(crate) fn of_harness(
        entries: &[Text],
        org: &Allowed,
        source: &Source,
        problems: &mut Problems,
    ) -> Self {
        let mut out = Vec::new();
        for entry in entries {
            let (code, message, help) = match prefix(&entry.text) {
                Ok(prefix) if org.covers(&prefix) => {
                    out.push(prefix);
                    continue;
                }
                Ok(_) => (
                    Code::RemoteDenied,
                    format!("`{}` is not allowed by config.yaml", entry.text),
                    "add it to `allowed_remote_resources` of config.yaml, or remove it here",
                ),
                Err((message, help)) => (Code::RemoteUrl, message, help),
            };
            let place = source.place(entry.span.clone());
            problems.push(Problem::error(code, message).help(help).at(Some(place)));
        }
        Self(out)
    }

    /// Whether the list allows a URL.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        self.covers(url.as_str())
    }

    fn covers(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.0.iter().any(|prefix| text.starts_with(&prefix.to_ascii_lowercase()))
    }
}

/// An entry in its one form.
pub(crate) fn prefix(text: &str) -> Result<String, (String, &'static str)> {
    const HELP: &str = "write https://HOST/PATH/ with a slash at the end";
    if !text.ends_with('/') {
        return Err((format!("`{text}` is no prefix: it does not end in `/`"), HELP));
    }
    match Url::parse(text) {
        Ok(url) => Ok(url.as_str().to_owned()),
        Err((why, _)) => Err((format!("`{text}` is no prefix of URLs: {why}"), HELP)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_prefix_ends_where_a_part_ends() {
        let list = Allowed::of_config(Some(vec!["https://h/org/".into()]));
        assert!(list.allows(&url("https://h/org/x")) && list.allows(&url("https://H/Org/x")));
        for other in
            ["https://h/organisation/x", "https://h.evil/org/x", "https://h:8443/org/x", "https://h/or"]
        {
            assert!(!list.allows(&url(other)), "{other}");
        }
        assert!(
            prefix("https://h/org").is_err()
                && prefix("http://h/").is_err()
                && prefix("https://h/../").is_err()
        );
    }

    #[test]
    fn no_list_is_the_default_and_an_empty_one_allows_nothing() {
        let known = url("https://raw.githubusercontent.com/fullsend-ai/agents/main/harness/code.yaml");
        assert!(Allowed::of_config(None).allows(&known));
        assert!(Allowed::of_config(Some(vec!["https://h/".into()])).allows(&known));
        assert!(!Allowed::of_config(Some(Vec::new())).allows(&known));
    }
}
