//! Telling the journal and the guard what the run may leave, before it makes any of it.

use std::path::Path;

use jiff::Timestamp;

use super::context::Cx;
use super::guard::protocol::Message;
use super::identity::after;
use super::journal::{Entry, Journal, VERSION};
use super::owner::Owner;
use super::prepare::Prepared;
use crate::error::{Error, Result};
use crate::harness::model::Scope;
use crate::import;

/// Opens the journal entry. From here on the run may own something on the gateway and on this host.
pub(super) fn open(cx: &Cx, prepared: &Prepared, tmp: &Path) -> Result<()> {
    let (plan, world) = (&prepared.plan, &prepared.world);
    let specs = plan.provider_specs(&cx.id);
    let providers = specs.iter().filter(|(_, s)| *s == Scope::Run).map(|(p, _)| p.name.clone()).collect();
    let mut dirs = vec![tmp.to_owned()];
    // An iteration that the model API failed in is followed by a further one.
    let most = plan.iterations.saturating_add(plan.harness.api_retries);
    let staged = (1..=most).map(|n| import::place(&world.repo, tmp, &format!("{}-{n}", cx.id.id)));
    dirs.extend(staged.filter(|dir| !dir.starts_with(tmp)));
    let now = Timestamp::now();
    let journal = Journal::open(Entry {
        version: VERSION,
        run: cx.id.id.to_string(),
        agent: plan.harness.name.clone(),
        sandbox: cx.id.sandbox.clone(),
        providers,
        target: world.openshell.target(),
        run_dir: std::path::absolute(&cx.id.dir).unwrap_or_else(|_| cx.id.dir.clone()),
        dirs,
        started: cx.id.started,
        expires: cx.id.expires,
        keep_until: None,
        phase: "start".into(),
        phase_since: now,
        owner: Owner::this(),
    })?;
    cx.guard.tell(&Message::Openshell(world.openshell.argv()));
    cx.guard.tell(&Message::Journal(journal.path().to_owned()));
    cx.journal.set(journal).map_err(|_| Error::bug("the journal was opened twice"))
}

/// The run made a directory on this host besides those that its entry names.
pub(super) fn dir(cx: &Cx, dir: &Path) {
    cx.guard.tell(&Message::Tmp(dir.to_owned()));
    if let Some(journal) = cx.journal.get() {
        journal.owns(dir);
    }
}

/// The sandbox is ready and stays from now on, also when the run dies: until its labels say.
pub(super) fn keep(cx: &Cx) {
    if let Some(journal) = cx.journal.get() {
        journal.keep(after(cx.id.expires, cx.id.keep));
    }
    cx.guard.tell(&Message::Keep);
}

/// The run is done with the sandbox, which stays for the time that was asked for.
pub(super) fn kept(cx: &Cx) -> Timestamp {
    let until = after(Timestamp::now(), cx.id.keep);
    if let Some(journal) = cx.journal.get() {
        journal.keep(until);
    }
    until
}

/// Nothing is left of the run, except a sandbox that is kept.
pub(super) fn settle(cx: &Cx, kept: bool) {
    match cx.journal.get() {
        Some(journal) if kept => journal.phase("kept"),
        Some(journal) => journal.close(),
        None => {}
    }
}
