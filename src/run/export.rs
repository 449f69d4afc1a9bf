//! Sessions that a CLI keeps elsewhere come to its transcripts.

use super::context::Cx;
use super::iterate::is_session;
use super::prepare::Prepared;
use crate::remote::Session;

/// Has the CLI export the session of the agent that has ended. A cancel leaves no time for it; a failure costs the
/// transcript and nothing else.
pub(super) async fn export(cx: &Cx, prepared: &Prepared, sandbox: &Session, session: Option<&str>) {
    let plan = &prepared.plan;
    let command = session
        .filter(|session| is_session(session))
        .and_then(|session| plan.harness.runtime.runtime().export(session));
    let Some(command) = command else { return };
    let work = sandbox.exec("export the session", &command, plan.deadlines.collect);
    if let Err(error) = cx.signals.guard(work).await {
        tracing::debug!(%error, "the session was not exported");
    }
}
