//! What is asked of OpenShell, free of how a release wants it said.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::secrets::Secret;

/// A sandbox to create.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CreateSpec {
    /// Its name; see [`super::names::sandbox_name`].
    pub name: String,
    /// The image reference.
    pub image: Option<String>,
    /// The policy file.
    pub policy: Option<PathBuf>,
    /// The names of providers to attach, in order.
    pub providers: Vec<String>,
    /// Labels; values as [`super::names::label_value`] makes them.
    pub labels: BTreeMap<String, String>,
    /// Variables of every command in the sandbox. They show in argv and in the gateway: never secrets.
    pub env: BTreeMap<String, String>,
    /// CPU limit, e.g. `2` or `500m`.
    pub cpu: Option<String>,
    /// Memory limit, e.g. `4Gi`.
    pub memory: Option<String>,
    /// Disk limit, e.g. `20Gi`.
    pub disk: Option<String>,
    /// Graphics processors: an empty text for as many as the driver gives, else their number.
    pub gpu: Option<String>,
}

/// A provider to create or update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderSpec {
    /// Its name on the gateway; see [`super::names::provider_instance`].
    pub name: String,
    /// Its type, which is the id of its profile.
    pub kind: String,
    /// Credentials by environment variable. A value never enters argv.
    pub credentials: BTreeMap<String, Secret>,
    /// Settings that are not secret.
    pub config: BTreeMap<String, String>,
    /// When the gateway is to forget the credentials.
    pub expires: Option<jiff::Timestamp>,
}

/// Variables that would change how the `openshell` child itself runs.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "SHELL",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "IFS",
    "ENV",
    "BASH_ENV",
    "NO_COLOR",
    "LANG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
const RESERVED_PREFIXES: &[&str] =
    &["LD_", "DYLD_", "XDG_", "RUST_", "GIT_", "SSH_", super::dialect::ENV_PREFIX];

/// Why a credential may not have this key; `None` when it may.
///
/// The value reaches OpenShell as a variable of that name in the child's environment, so a key that the child
/// acts on (`PATH`, `LD_PRELOAD`, `OPENSHELL_GATEWAY`) would change the call instead.
pub fn credential_key_problem(key: &str) -> Option<&'static str> {
    let mut bytes = key.bytes();
    let start = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !start || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Some(
            "a credential key is a variable name: letters, digits and `_`, not starting with a digit",
        );
    }
    let upper = key.to_ascii_uppercase();
    if RESERVED.contains(&upper.as_str()) || RESERVED_PREFIXES.iter().any(|p| upper.starts_with(p)) {
        return Some("this variable changes how openshell itself runs; a credential cannot have its name");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_steer_the_child_are_refused() {
        for key in ["PATH", "LD_PRELOAD", "OPENSHELL_GATEWAY", "https_proxy", "HOME", "XDG_CONFIG_HOME"] {
            assert!(credential_key_problem(key).is_some(), "{key}");
        }
        for key in ["", "1A", "A-B", "A B", "é", "A=B"] {
            assert!(credential_key_problem(key).is_some(), "{key}");
        }
        for key in ["GITHUB_TOKEN", "ANTHROPIC_API_KEY", "_x9", "PATHS"] {
            assert_eq!(credential_key_problem(key), None, "{key}");
        }
    }

    #[test]
    fn a_provider_never_shows_its_values() {
        let spec = ProviderSpec {
            name: "p".into(),
            kind: "t".into(),
            credentials: BTreeMap::from([("K".into(), Secret::new("s3cr3t"))]),
            config: BTreeMap::new(),
            expires: None,
        };
        assert!(!format!("{spec:?}").contains("s3cr3t"));
        assert!(!serde_json::to_string(&spec).unwrap().contains("s3cr3t"));
    }
}
