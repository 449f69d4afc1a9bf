//! What the command line asks of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;

use crate::harness::Forge;
use crate::plan::Apply;

/// The options of `fullsend run`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The agent's name.
    pub agent: String,
    /// The harness directory, when it was given.
    pub fullsend_dir: Option<Utf8PathBuf>,
    /// The target repository, when it was given.
    pub target_repo: Option<PathBuf>,
    /// Where run directories are made, when it was given.
    pub output_dir: Option<PathBuf>,
    /// Files that add to the environment.
    pub env_files: Vec<Utf8PathBuf>,
    /// The gateway's name, when it was given.
    pub gateway: Option<String>,
    /// The openshell executable, or `local`.
    pub openshell: Option<PathBuf>,
    /// Whether the embedded backend was asked for.
    pub local: bool,
    /// Host directories that the embedded backend shows besides.
    pub local_binds: Vec<Utf8PathBuf>,
    /// The forge whose part of the harness applies, when it was given.
    pub forge: Option<Forge>,
    /// The image, instead of the harness's.
    pub image: Option<String>,
    /// The model, instead of the harness's.
    pub model: Option<String>,
    /// The agent's budget per iteration, instead of the harness's.
    pub timeout: Option<Duration>,
    /// The limit until the sandbox is ready, instead of the harness's.
    pub ready_timeout: Option<Duration>,
    /// For how long the sandbox stays at the end, when it does.
    pub keep_sandbox: Option<Duration>,
    /// Other deadlines by name, instead of the harness's.
    pub deadlines: BTreeMap<String, Duration>,
    /// Whether the post-script is switched off.
    pub no_post_script: bool,
    /// Whether the result is applied.
    pub apply: Apply,
    /// The working directory.
    pub working_dir: Utf8PathBuf,
}

impl Options {
    /// Where run directories are made.
    pub fn output_dir(&self) -> PathBuf {
        self.output_dir.clone().unwrap_or_else(|| std::env::temp_dir().join("fullsend"))
    }

    /// Whether the embedded backend is used.
    pub fn is_local(&self) -> bool {
        self.local || self.openshell.as_deref().is_some_and(|p| p.as_os_str() == "local")
    }
}
