//! `fullsend doctor`.

use std::process::ExitCode;

use crate::error::Error;
use crate::report::{Mark, Printer};
use crate::run;

/// Check this machine: programs, gateway, disk. Each failed line says what to do.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    backend: super::backend::Backend,
}

pub(super) fn main(args: &Args, ui: &Printer) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::finish(Err(Error::io("cannot start", &error)), ui),
    };
    let backend = match args.backend.choice() {
        Ok(backend) => backend,
        Err(error) => return super::finish(Err(error), ui),
    };
    let checks = runtime.block_on(run::doctor(backend.openshell, backend.gateway, backend.local));
    let mut failed = false;
    for check in checks {
        match check.found {
            Ok(note) => ui.check(Mark::Good, check.name, &note),
            Err(error) if check.optional => {
                ui.check(Mark::Neutral, check.name, &format!("{} (only --local needs it)", error.message()));
            }
            Err(error) => {
                failed = true;
                ui.check(Mark::Bad, check.name, error.message());
                for line in error.detail_text().into_iter().flat_map(str::lines) {
                    ui.foreign(line);
                }
                ui.check(Mark::Bad, "", &format!("fix: {}", error.help_text()));
            }
        }
    }
    if failed { ExitCode::from(3) } else { ExitCode::SUCCESS }
}
