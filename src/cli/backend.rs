//! Which OpenShell is meant: options of every command that speaks to one.

use std::path::PathBuf;

use crate::error::{Code, Error, Result};
use crate::fleet::AtHand;

/// The variable that names the executable where `--openshell` does not.
const VARIABLE: &str = "FULLSEND_OPENSHELL";

/// The options.
#[derive(Debug, clap::Args)]
pub(super) struct Backend {
    /// The OpenShell gateway to use [default: OpenShell's active one].
    #[arg(long, value_name = "NAME", conflicts_with = "local")]
    gateway: Option<String>,
    /// The openshell executable, or `local` for the embedded backend [default: `$FULLSEND_OPENSHELL`, else `openshell` on PATH].
    #[arg(long, value_name = "PATH", conflicts_with = "local")]
    openshell: Option<PathBuf>,
    /// Use the embedded backend: no OpenShell needed, weaker isolation, Linux only.
    #[arg(long)]
    local: bool,
}

/// What was chosen.
pub(super) struct Choice {
    pub(super) gateway: Option<String>,
    pub(super) openshell: Option<PathBuf>,
    pub(super) local: bool,
}

impl Backend {
    /// The options with the environment behind them. The variable is not left to the parser: set but empty
    /// means that it is not set (a CI job cannot unset one), and `--local` may stand beside it.
    ///
    /// # Errors
    /// [`Code::Usage`] for a gateway of the embedded backend, which has none.
    pub(super) fn choice(&self) -> Result<Choice> {
        let named = || std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let openshell = self.openshell.clone().or_else(|| if self.local { None } else { named() });
        let embedded = self.local || openshell.as_deref().is_some_and(|p| p.as_os_str() == "local");
        if embedded && self.gateway.is_some() {
            return Err(Error::new(Code::Usage, "--gateway means nothing to the embedded backend")
                .help("leave --gateway out, or use an openshell of its own"));
        }
        Ok(Choice { gateway: self.gateway.clone(), openshell, local: self.local })
    }

    /// For the commands that look at what exists.
    pub(super) fn at_hand(&self) -> Result<AtHand> {
        let Choice { gateway, openshell, local } = self.choice()?;
        Ok(AtHand { openshell, gateway, local })
    }
}

/// A runtime for a few calls of openshell.
pub(super) fn runtime() -> crate::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::io("cannot start", &e))
}
