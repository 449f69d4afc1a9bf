//! Which gateway a client talks to, in a form that another process can use later.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::client::{ChildEnv, Openshell};
use super::dialect::{BINARY, ENV_PREFIX};
use crate::local::STATE_ENV;
use crate::process::own_executable;

/// A program and the variables that decide which gateway it reaches. Credentials are not in it: the CLI keeps its
/// own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// The program and the arguments before every subcommand.
    pub argv: Vec<String>,
    /// The variables. A known variable that is not here is not set.
    pub env: BTreeMap<String, String>,
}

/// The variables that decide: the gateway's name or address, and where registrations and the state of the embedded
/// backend are.
fn keys() -> Vec<String> {
    let own = ["GATEWAY", "GATEWAY_ENDPOINT", "WORKSPACE"].map(|k| format!("{ENV_PREFIX}{k}"));
    own.into_iter()
        .chain(["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", STATE_ENV].map(String::from))
        .collect()
}

impl Target {
    /// Whether it is the embedded backend.
    pub fn is_local(&self) -> bool {
        self.argv.len() == 2 && self.argv[1] == BINARY
    }

    /// What to call the gateway in messages.
    pub fn name(&self) -> String {
        if self.is_local() {
            return "local".into();
        }
        let of = |key: &str| self.env.get(&format!("{ENV_PREFIX}{key}")).cloned();
        of("GATEWAY_ENDPOINT").or_else(|| of("GATEWAY")).unwrap_or_else(|| "default".into())
    }
}

impl Openshell {
    /// Which gateway this client talks to. The active gateway is written down by its name, so that another choice
    /// made later does not lead elsewhere.
    pub fn target(&self) -> Target {
        let seen = |key: &str| self.child_env().seen(key).and_then(|v| v.into_string().ok());
        let mut env: BTreeMap<String, String> = keys()
            .into_iter()
            .filter_map(|key| seen(&key).filter(|v| !v.is_empty()).map(|value| (key, value)))
            .collect();
        // An address may carry a password, and the journal holds no secrets.
        env.retain(|key, value| !key.ends_with("ENDPOINT") || !value.contains('@'));
        let (name, endpoint) = (format!("{ENV_PREFIX}GATEWAY"), format!("{ENV_PREFIX}GATEWAY_ENDPOINT"));
        if !self.is_local()
            && !env.contains_key(&name)
            && !env.contains_key(&endpoint)
            && let Some(active) = active(&env)
        {
            env.insert(name, active);
        }
        Target { argv: self.argv(), env }
    }

    /// The client of a target.
    pub fn of_target(target: &Target) -> Option<Self> {
        let mut argv = target.argv.clone();
        if target.is_local() {
            // The embedded backend is this very program, wherever it was when the target was written down.
            own_executable().ok()?.to_str()?.clone_into(&mut argv[0]);
        }
        let mut env = ChildEnv::default().set("NO_COLOR", "1");
        for key in keys() {
            env = match target.env.get(&key) {
                Some(value) => env.set(key, value),
                None => env.remove(key),
            };
        }
        Some(Self::from_argv(&argv)?.with_env(env))
    }
}

/// The active gateway's name, as the CLI keeps it (`active_gateway` in its configuration directory; seen on 0.0.83
/// to 0.0.112).
fn active(env: &BTreeMap<String, String>) -> Option<String> {
    let config = env.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| env.get("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    let text = std::fs::read_to_string(config.join(BINARY).join("active_gateway")).ok()?;
    let name = text.trim();
    let fine =
        !name.is_empty() && name.len() < 254 && !name.chars().any(|c| c.is_control() || c.is_whitespace());
    fine.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::client::Where;
    use super::*;

    fn locate(gateway: Option<&str>, env: &[(&str, &str)]) -> Openshell {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Openshell::locate(&Where::Explicit("/bin/sh".into()), gateway, env).unwrap()
    }

    #[test]
    fn a_target_leads_back_to_the_same_gateway() {
        let openshell = locate(Some("gw1"), &[("XDG_CONFIG_HOME", "/c"), ("SECRET", "s")]);
        let target = openshell.target();
        assert_eq!(target.name(), "gw1");
        assert!(!target.env.contains_key("SECRET"));
        let again = Openshell::of_target(&target).unwrap();
        assert_eq!(again.target(), target);
        assert_eq!(again.program(), openshell.program());
    }

    #[test]
    fn the_active_gateway_is_written_down() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(dir.path().join("openshell")).unwrap();
        fs_err::write(dir.path().join("openshell/active_gateway"), "mine\n").unwrap();
        let target = locate(None, &[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]).target();
        assert_eq!(target.name(), "mine");
        assert_eq!(Openshell::of_target(&target).unwrap().target(), target);
    }

    #[test]
    fn an_address_with_a_password_is_not_written_down() {
        let target = locate(None, &[("OPENSHELL_GATEWAY_ENDPOINT", "http://u:pw@h")]).target();
        assert!(!serde_json::to_string(&target).unwrap().contains("pw"));
    }

    #[test]
    fn the_embedded_backend_is_found_where_this_program_is_now() {
        let target = Target { argv: vec!["/old/fullsend".into(), "openshell".into()], env: BTreeMap::new() };
        let openshell = Openshell::of_target(&target).unwrap();
        assert!(openshell.is_local() && openshell.exe() != std::path::Path::new("/old/fullsend"));
    }
}
