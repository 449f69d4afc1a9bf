//! Leaving nothing on the gateway: connection, sandbox, providers.

use std::time::Duration;

use super::context::Cx;
use super::guard::protocol::Message;
use super::prepare::Prepared;
use crate::error::Result;
use crate::remote::Session;

/// After a cancel the delete has to fit into seven seconds with everything before it.
const CANCELLED_LIMIT: Duration = Duration::from_secs(10);

/// How much of OpenShell's log is kept.
const LOG_LINES: usize = 2000;

/// What the run may own on the gateway; filled before each thing is made.
#[derive(Debug, Default)]
pub(super) struct Owned {
    /// The sandbox.
    pub sandbox: Option<String>,
    /// Whether a call that makes something was cut off: the gateway may still carry it out.
    pub in_flight: bool,
    /// Run-scoped providers.
    pub providers: Vec<String>,
    /// Whether the sandbox became ready: one that did not is never kept.
    pub ready: bool,
}

/// Deletes what the run made, or leaves it where it was asked to. Whether nothing can be left: after a call that
/// was cut off only time tells, and the guard waits that out when this process has ended.
pub(super) async fn cleanup(
    cx: &Cx,
    prepared: &Prepared,
    session: Option<Session>,
    owned: Owned,
) -> Result<bool> {
    let closing = async {
        if let Some(mut session) = session {
            session.close().await;
        }
    };
    tokio::join!(closing, logs(cx, prepared, &owned));
    let kept = prepared.plan.keep_sandbox && owned.ready;
    if kept || owned.sandbox.is_none() && owned.providers.is_empty() {
        cx.guard.tell(&Message::Gone);
        return Ok(true);
    }
    cx.ui.group("delete");
    cx.recorded("delete", async {
        let (openshell, plan) = (&prepared.world.openshell, &prepared.plan);
        let limit = if cx.signals.first().is_some() { CANCELLED_LIMIT } else { plan.deadlines.delete };
        if let Some(name) = &owned.sandbox {
            openshell.delete(&plan.dialect, name, limit).await?;
        }
        let deleting = owned.providers.iter().map(|name| openshell.delete_provider(name, limit));
        super::join_all(deleting).await?;
        if !owned.providers.is_empty() {
            // They hold credentials; that they are gone is worth a look.
            openshell.confirm_providers_gone(&plan.dialect, &owned.providers, limit).await?;
        }
        Ok(((), String::new()))
    })
    .await?;
    if owned.in_flight {
        return Ok(false);
    }
    cx.guard.tell(&Message::Gone);
    Ok(true)
}

/// Keeps what OpenShell logged about the sandbox; only a help for later, so a failure is no more than a warning.
async fn logs(cx: &Cx, prepared: &Prepared, owned: &Owned) {
    let Some(name) = owned.sandbox.as_ref().filter(|_| cx.signals.first().is_none()) else { return };
    let kept = async {
        let text = prepared.world.openshell.logs(name, LOG_LINES).await?;
        let dir = cx.id.dir.join("logs");
        fs_err::create_dir_all(&dir)?;
        fs_err::write(dir.join("openshell.log"), cx.ui.redact(&text))?;
        Ok::<(), crate::Error>(())
    };
    if let Err(error) = kept.await {
        cx.ui.verbose(&format!("OpenShell's log could not be kept: {}", error.message()));
    }
}
