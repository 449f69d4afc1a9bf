//! What the command line asks of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;

use crate::agent::render::ShowAgent;
use crate::agent::runtime::Kind as Runtime;
use crate::harness::Forge;
use crate::plan::Apply;

/// The options of `fullsend run`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "one per switch of the command line")]
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
    /// The executable of the hooks, instead of this program.
    pub hook_binary: Option<Utf8PathBuf>,
    /// The forge whose part of the harness applies, when it was given.
    pub forge: Option<Forge>,
    /// Where what the harness takes from URLs comes from.
    pub fetching: crate::fetch::Options,
    /// The image, instead of the harness's.
    pub image: Option<String>,
    /// Whether the image has to be pinned and signed, whatever the configuration says.
    pub verify_image: bool,
    /// The runtime, instead of the harness's.
    pub runtime: Option<Runtime>,
    /// How much of what the agent says and does is shown.
    pub show_agent: Option<ShowAgent>,
    /// The model, instead of the harness's.
    pub model: Option<String>,
    /// The agent's budget per iteration, instead of the harness's.
    pub timeout: Option<Duration>,
    /// The limit until the sandbox is ready, instead of the harness's.
    pub ready_timeout: Option<Duration>,
    /// For how long the sandbox stays at the end, when it does.
    pub keep_sandbox: Option<Duration>,
    /// After how long the run ends, instead of the harness's.
    pub ttl: Option<Duration>,
    /// Other deadlines by name, instead of the harness's.
    pub deadlines: BTreeMap<String, Duration>,
    /// How long the agent may be silent, instead of the harness's.
    pub idle_timeout: Option<Duration>,
    /// The prompt, instead of the harness's.
    pub prompt: Option<String>,
    /// What the agent program logs of itself, instead of the harness's.
    pub debug: Option<String>,
    /// What the agent may use up, instead of the harness's.
    pub budgets: crate::harness::model::Budgets,
    /// How often the agent is started again after a failure of the model API, instead of the harness's.
    pub api_retries: Option<u32>,
    /// The work to review, when that is what the agent is for.
    pub review: Option<Utf8PathBuf>,
    /// Whether the post-script is switched off.
    pub no_post_script: bool,
    /// Whether the result is applied.
    pub apply: Apply,
    /// What status comments there are to be.
    pub status: crate::status::Asked,
    /// The file of metrics that the run is added to.
    pub metrics_file: Option<PathBuf>,
    /// Whether a job may run on GitLab's shell executor.
    pub shared_executor: bool,
    /// Where reports for GitLab are written, when it was given.
    pub report_dir: Option<PathBuf>,
    /// The working directory.
    pub working_dir: Utf8PathBuf,
}

impl Options {
    /// Where run directories are made, absolute: programs of a run work in other directories.
    pub fn output_dir(&self) -> PathBuf {
        let dir = self.output_dir.clone().unwrap_or_else(|| std::env::temp_dir().join("fullsend"));
        std::path::absolute(&dir).unwrap_or(dir)
    }

    /// The executable of the hooks: what was named, else this program where it is one for Linux.
    pub fn hook_binary(&self) -> Option<Utf8PathBuf> {
        let own = || {
            let path = std::env::current_exe().ok().filter(|_| cfg!(target_os = "linux"))?;
            Utf8PathBuf::from_path_buf(path).ok()
        };
        match &self.hook_binary {
            Some(path) => Some(self.working_dir.join(path)),
            None => own(),
        }
    }

    /// Whether the embedded backend is used.
    pub fn is_local(&self) -> bool {
        self.local || self.openshell.as_deref().is_some_and(|p| p.as_os_str() == "local")
    }
}
