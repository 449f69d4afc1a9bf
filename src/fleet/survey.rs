//! What there is: the journal of this user on this host, and the sandboxes of the gateways.

use std::path::PathBuf;

use jiff::Timestamp;

use super::standing::Standing;
use crate::error::{Code, Error, Result};
use crate::openshell::names::label;
use crate::openshell::{Dialect, Openshell, SandboxRow, Target, Where};
use crate::run::journal::{self, Entry};
use crate::run::owner::{Liveness, Owner};

/// The gateway that the command line and the environment name.
#[derive(Debug, Clone, Default)]
pub(crate) struct AtHand {
    /// The openshell executable, or `local`.
    pub openshell: Option<PathBuf>,
    /// The gateway's name.
    pub gateway: Option<String>,
    /// Whether the embedded backend was asked for.
    pub local: bool,
}

impl AtHand {
    /// The client; nothing where no OpenShell is installed and none was asked for.
    fn locate(&self) -> Result<Option<Openshell>> {
        let place = match (&self.openshell, self.local) {
            (_, true) => Where::Local,
            (Some(path), _) if path.as_os_str() == "local" => Where::Local,
            (Some(path), _) => Where::Explicit(path.clone()),
            (None, _) => Where::Search,
        };
        match Openshell::locate(&place, self.gateway.as_deref(), Vec::new()) {
            Ok(openshell) => Ok(Some(openshell)),
            Err(error)
                if error.code() == Code::OpenshellMissing
                    && place == Where::Search
                    && self.gateway.is_none() =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// A run of the journal.
#[derive(Debug)]
pub(super) struct Known {
    /// Its file.
    pub path: PathBuf,
    /// What the file says.
    pub entry: Entry,
    /// Its owner.
    pub liveness: Liveness,
    /// How things are with it.
    pub standing: Standing,
    /// Its gateway, an index of [`Survey::places`].
    pub place: Option<usize>,
}

/// A gateway.
#[derive(Debug)]
pub(super) struct Place {
    /// Which one.
    pub target: Target,
    /// How to call it.
    pub openshell: Openshell,
    /// What it has, or why that is not known.
    pub view: Result<View>,
}

/// What a gateway has.
#[derive(Debug)]
pub(super) struct View {
    /// How to speak to it.
    pub dialect: Dialect,
    /// The sandboxes of ours.
    pub sandboxes: Vec<SandboxRow>,
}

/// Everything that was found.
#[derive(Debug)]
pub(super) struct Survey {
    /// Who looks.
    pub here: Owner,
    /// When.
    pub now: Timestamp,
    /// The runs of the journal, by start.
    pub known: Vec<Known>,
    /// Files of the journal that are left alone, and why.
    pub strange: Vec<(PathBuf, String)>,
    /// The gateways: the one at hand first, then those of the journal.
    pub places: Vec<Place>,
}

impl Survey {
    /// Looks at the journal and at every gateway.
    pub(super) async fn take(at_hand: &AtHand) -> Result<Self> {
        // The journal comes first: a run that begins meanwhile is then at most in the lists, where its labels
        // speak for it.
        let contents = journal::read_all()?;
        let (here, now) = (Owner::this(), Timestamp::now());
        let mut targets: Vec<(Target, Openshell)> = Vec::new();
        if let Some(openshell) = at_hand.locate()? {
            targets.push((openshell.target(), openshell));
        }
        let mut known = Vec::new();
        for (path, entry) in contents.entries {
            let mut place = targets.iter().position(|(target, _)| *target == entry.target);
            if place.is_none()
                && let Some(openshell) = Openshell::of_target(&entry.target)
            {
                targets.push((entry.target.clone(), openshell));
                place = Some(targets.len() - 1);
            }
            let liveness = entry.owner.liveness(&here);
            let standing = Standing::of_entry(&entry, liveness, now);
            known.push(Known { path, entry, liveness, standing, place });
        }
        Ok(Self { here, now, known, strange: contents.strange, places: ask_all(targets).await? })
    }

    /// The entry of a run.
    pub(super) fn entry_of(&self, run: &str) -> Option<&Known> {
        self.known.iter().find(|k| k.entry.run == run)
    }

    /// What could not be asked, as errors.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let failed = self.places.iter().filter_map(|p| p.view.as_ref().err().map(|e| (p, e)));
        failed.map(|(place, error)| Problem::new(&place.target.name(), error)).collect()
    }
}

/// A gateway that could not be asked, or a deletion that did not work.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Problem {
    /// The gateway, or the run.
    pub about: String,
    /// The code.
    pub code: Code,
    /// What happened.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Problem {
    pub(crate) fn new(about: &str, error: &Error) -> Self {
        Self {
            about: about.to_owned(),
            code: error.code(),
            message: error.message().to_owned(),
            help: error.help_text(),
        }
    }

    /// The same as an error that names what it is about.
    pub(crate) fn error(&self) -> Error {
        Error::new(self.code, format!("{}: {}", self.about, self.message)).help(&self.help)
    }
}

/// Asks every gateway at the same time, so that one which does not answer costs its time once.
async fn ask_all(targets: Vec<(Target, Openshell)>) -> Result<Vec<Place>> {
    let mut asking = tokio::task::JoinSet::new();
    for (at, (_, openshell)) in targets.iter().enumerate() {
        let openshell = openshell.clone();
        asking.spawn(async move { (at, ask(&openshell).await) });
    }
    let mut views: Vec<Option<Result<View>>> = targets.iter().map(|_| None).collect();
    while let Some(done) = asking.join_next().await {
        let (at, view) = done.map_err(|e| Error::bug(e.to_string()))?;
        views[at] = Some(view);
    }
    let places = targets.into_iter().zip(views).map(|((target, openshell), view)| Place {
        target,
        openshell,
        view: view.unwrap_or_else(|| Err(Error::bug("a gateway was not asked"))),
    });
    Ok(places.collect())
}

async fn ask(openshell: &Openshell) -> Result<View> {
    let (dialect, alive) = tokio::join!(openshell.probe(), openshell.check_gateway());
    alive?;
    let dialect = dialect?;
    let sandboxes = openshell.sandboxes_with(&dialect, label::MANAGED_BY, label::FULLSEND).await?;
    Ok(View { dialect, sandboxes })
}
