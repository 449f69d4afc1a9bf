//! The variables that a harness may refer to: a map, never the environment of this process.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Variables that grant an identity token. They never expand, wherever a harness names them: a script or an agent
/// that holds them could ask for tokens of the whole workflow.
pub const DENIED: [&str; 4] = [
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "FULLSEND_GCP_OIDC_URL",
    "FULLSEND_GCP_OIDC_AUTH_FILE",
];

/// The pseudo-variable that holds the absolute harness directory.
pub const FULLSEND_DIR: &str = "FULLSEND_DIR";

/// The variable that names another image than the harness does.
pub const FULLSEND_SANDBOX_IMAGE: &str = "FULLSEND_SANDBOX_IMAGE";

/// The process environment and the files of `--env-file`, the later over the earlier.
#[derive(Clone, Default)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// `vars` (usually [`std::env::vars_os`]) with `files` over them. A variable that is not UTF-8 is left out.
    pub fn new(
        vars: impl IntoIterator<Item = (OsString, OsString)>,
        files: BTreeMap<String, String>,
    ) -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let mut map: BTreeMap<_, _> = vars.into_iter().filter_map(text).collect();
        map.extend(files);
        Self(map)
    }

    /// The value of a variable; the four of [`DENIED`] count as unset.
    pub fn lookup(&self, name: &str) -> Option<&str> {
        if DENIED.contains(&name) {
            return None;
        }
        self.0.get(name).map(String::as_str)
    }
}

impl std::fmt::Debug for Environment {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_win_and_denied_names_are_unset() {
        let vars = [("A", "1"), ("B", "2"), (DENIED[1], "token")].map(|(n, v)| (n.into(), v.into()));
        let env = Environment::new(
            vars,
            BTreeMap::from([("B".into(), "3".into()), (DENIED[0].into(), "u".into())]),
        );
        assert_eq!(env.lookup("A"), Some("1"));
        assert_eq!(env.lookup("B"), Some("3"));
        assert_eq!(DENIED.map(|name| env.lookup(name)), [None; 4]);
        assert!(!format!("{env:?}").contains("token"));
    }
}
