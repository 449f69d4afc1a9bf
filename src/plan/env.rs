//! The `.env` file that is sourced in the sandbox before the agent.

use std::fmt::Write as _;

use std::collections::BTreeMap;

use serde::Serialize;

use super::layout::{CHECKS_FILE, CONFIG_DIR, ENV_DIR, EVENT_FILE, OUTPUT_DIR, SCHEMA_FILE, WORKSPACE};
use crate::secrets::Secret;

/// Names that a harness's `env.sandbox` may not set: the runner owns them, or they would change which programs
/// run before the agent does.
pub const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "SHELL",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "BASH_ENV",
    "ENV",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "OPENCODE_CONFIG_DIR",
    "FULLSEND_OUTPUT_DIR",
    "FULLSEND_OUTPUT_SCHEMA",
    "FULLSEND_OUTPUT_FILE",
    "FULLSEND_TARGET_REPO_DIR",
    "FULLSEND_CANARY_TOKEN",
    "FULLSEND_NOTICE_FILE",
    "FULLSEND_ROLE",
    "FULLSEND_SLUG",
    "FULLSEND_RUN_MARKER",
    "FULLSEND_DEADLINE",
    "FULLSEND_EVENT_FILE",
    "FULLSEND_FEEDBACK_FILE",
    "FULLSEND_ITERATION",
    "FULLSEND_OUTPUT_CHECKS",
    "FULLSEND_PROMPT_FILE",
];

/// One line of the file.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvLine {
    /// `export NAME=<text as it stands>`: written by us, the shell expands it.
    Raw {
        /// The variable.
        name: String,
        /// Shell text.
        text: String,
    },
    /// `export NAME='value'`.
    Value {
        /// The variable.
        name: String,
        /// Its value; masked wherever the plan is shown.
        value: Secret,
    },
    /// Sources the files of `.env.d`.
    Loader,
}

/// What the file is made from.
#[derive(Debug)]
pub struct EnvInput<'a> {
    /// The repository in the sandbox.
    pub repo: &'a str,
    /// The harness's role.
    pub role: Option<&'a str>,
    /// The harness's slug.
    pub slug: Option<&'a str>,
    /// Whether a schema is delivered.
    pub schema: bool,
    /// Whether the list of checks is delivered.
    pub checks: bool,
    /// Whether the event is delivered.
    pub event: bool,
    /// `FULLSEND_OUTPUT_FILE` of the runner's environment.
    pub output_file: Option<&'a str>,
    /// The harness's `env.sandbox`.
    pub sandbox_env: &'a BTreeMap<String, Secret>,
    /// The runtime's own variables.
    pub runtime: &'a [(&'static str, &'static str)],
}

/// The lines, in the order that harness directories rely on: own values, then `.env.d`, then `env.sandbox`, which wins.
pub fn lines(input: &EnvInput<'_>) -> Vec<EnvLine> {
    let raw = |name: &str, text: &str| EnvLine::Raw { name: name.into(), text: text.into() };
    let value = |name: &str, value: &str| EnvLine::Value { name: name.into(), value: value.into() };
    let mut lines = vec![
        EnvLine::Raw {
            name: "PATH".into(),
            text: format!("{WORKSPACE}/bin:/usr/local/go/bin:\"$HOME\"/go/bin:\"$PATH\""),
        },
        raw("CLAUDE_CONFIG_DIR", CONFIG_DIR),
        raw("FULLSEND_OUTPUT_DIR", OUTPUT_DIR),
        value("FULLSEND_TARGET_REPO_DIR", input.repo),
    ];
    let own = input.runtime.iter().filter(|(name, _)| *name != "CLAUDE_CONFIG_DIR");
    lines.extend(own.map(|(name, text)| raw(name, text)));
    lines.extend(input.role.map(|v| value("FULLSEND_ROLE", v)));
    lines.extend(input.slug.map(|v| value("FULLSEND_SLUG", v)));
    if input.schema {
        lines.push(raw("FULLSEND_OUTPUT_SCHEMA", SCHEMA_FILE));
    }
    if input.checks {
        lines.push(raw("FULLSEND_OUTPUT_CHECKS", CHECKS_FILE));
    }
    if input.event {
        lines.push(raw("FULLSEND_EVENT_FILE", EVENT_FILE));
    }
    lines.extend(input.output_file.map(|v| value("FULLSEND_OUTPUT_FILE", v)));
    lines.push(EnvLine::Loader);
    lines.extend(input.sandbox_env.iter().map(|(k, v)| EnvLine::Value { name: k.clone(), value: v.clone() }));
    lines
}

/// The text of the file. Sourcing it cannot execute a value: every value is single-quoted.
pub fn render(lines: &[EnvLine]) -> Secret {
    let mut out = String::from("# Written by fullsend; sourced before the agent.\n");
    for line in lines {
        match line {
            EnvLine::Raw { name, text } => _ = writeln!(out, "export {name}={text}"),
            EnvLine::Value { name, value } => {
                _ = writeln!(out, "export {name}={}", quote(value.expose()));
            }
            EnvLine::Loader => {
                _ = writeln!(
                    out,
                    "for f in {ENV_DIR}/*.env; do if [ -f \"$f\" ]; then . \"$f\"; fi; done; unset f"
                );
            }
        }
    }
    Secret::new(out)
}

/// POSIX single quotes; byte-exact for any text without NUL.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file_for(value: &str) -> String {
        let env = BTreeMap::from([("V".to_owned(), Secret::new(value))]);
        let lines = lines(&EnvInput {
            repo: "/sandbox/workspace/my 'repo'",
            role: Some("coder"),
            slug: None,
            schema: true,
            checks: true,
            event: false,
            output_file: None,
            sandbox_env: &env,
            runtime: &[],
        });
        render(&lines).expose().to_owned()
    }

    fn sourced(shell: &str, file: &str, name: &str) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("env");
        std::fs::write(&path, file).unwrap();
        std::process::Command::new(shell)
            .args(["-c", &format!(". \"$1\" && printf %s \"${name}\""), "sh"])
            .arg(&path)
            .output()
            .unwrap()
            .stdout
    }

    #[test]
    fn the_repository_name_survives_sourcing() {
        for shell in ["dash", "bash"] {
            let got = sourced(shell, &file_for(""), "FULLSEND_TARGET_REPO_DIR");
            assert_eq!(got, b"/sandbox/workspace/my 'repo'");
        }
    }

    #[test]
    fn the_shown_form_masks_values() {
        let env = BTreeMap::from([("TOKEN".to_owned(), Secret::new("s3cr3t-value"))]);
        let input = EnvInput {
            repo: "/r",
            role: None,
            slug: None,
            schema: false,
            checks: false,
            event: false,
            output_file: None,
            sandbox_env: &env,
            runtime: &[],
        };
        let shown = serde_json::to_string(&lines(&input)).unwrap();
        assert!(shown.contains("TOKEN") && !shown.contains("s3cr3t"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_value_survives_sourcing(value in "[^\0]{0,40}") {
            let file = file_for(&value);
            for shell in ["dash", "bash"] {
                prop_assert_eq!(sourced(shell, &file, "V"), value.as_bytes());
            }
        }
    }
}
