//! Proving a live gateway, and saying what to do where there is none.

use std::ffi::OsString;

use serde_json::Value;

use super::argv::{self, PAGE};
use super::client::{Openshell, not_run};
use super::dialect::{Dialect, Paging};
use super::rows::{self, Page, ProviderRow, SandboxRow};
use super::text::{Trouble, trouble};
use crate::error::{Code, Error, Result};
use crate::process::Failure;

/// Pages of one list that are read at most; a gateway that always names another page cannot keep us.
const PAGES_MAX: usize = 1000;

impl Openshell {
    /// Proves that a live gateway answers, with the first page of its sandboxes. `status` proves nothing: it
    /// exits 0 without a gateway (seen on 0.0.83 to 0.0.112).
    ///
    /// # Errors
    /// [`Code::GatewayDown`] with the fix for what was met.
    pub async fn check_gateway(&self) -> Result<Vec<SandboxRow>> {
        let label = "openshell sandbox list";
        let answer = match self.run(label, argv::sandbox_list(), self.deadlines.gateway).await {
            Ok(answer) => answer,
            Err(Failure::Deadline { after, .. }) => {
                let after = crate::report::duration(after);
                return Err(Error::new(
                    Code::GatewayDown,
                    format!("the OpenShell gateway did not answer `{label}` within {after}"),
                )
                .help(
                    "restart the gateway, or look into its log; `openshell status` shows which one is used",
                ));
            }
            Err(failure) => return Err(not_run(failure)),
        };
        if !answer.success() {
            return Err(gateway_error(&answer.text, answer.reason()));
        }
        let page = rows::page(&answer.output.stdout, "sandboxes", rows::sandbox_row);
        page.map(|page| page.rows).map_err(|why| {
            Error::new(Code::GatewayDown, format!("`{label} -o json` printed something else: {why}")).help(
                "check that --openshell names an OpenShell CLI and that the port belongs to its gateway",
            )
        })
    }

    /// Every sandbox of the gateway.
    pub async fn sandboxes(&self, d: &Dialect) -> Result<Vec<SandboxRow>> {
        self.list(d, "openshell sandbox list", argv::sandbox_list(), "sandboxes", rows::sandbox_row).await
    }

    /// Every sandbox with a label. The gateway selects, and what it answers is checked.
    pub async fn sandboxes_with(&self, d: &Dialect, label: &str, value: &str) -> Result<Vec<SandboxRow>> {
        let args = argv::sandbox_list_with(label, value);
        let mut rows = self.list(d, "openshell sandbox list", args, "sandboxes", rows::sandbox_row).await?;
        rows.retain(|row| row.labels.get(label).is_some_and(|have| have == value));
        Ok(rows)
    }

    /// Every provider of the gateway.
    pub async fn providers(&self, d: &Dialect) -> Result<Vec<ProviderRow>> {
        self.list(d, "openshell provider list", argv::provider_list(), "providers", rows::provider_row).await
    }

    async fn list<T>(
        &self,
        d: &Dialect,
        label: &str,
        first: Vec<OsString>,
        key: &str,
        row: fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        let mut args = first.clone();
        for _ in 0..PAGES_MAX {
            let answer = self.ok(label, args, self.deadlines.read).await?;
            let Page { rows, next } = rows::page(&answer.output.stdout, key, row).map_err(|why| {
                Error::new(Code::OpenshellCall, format!("`{label} -o json` printed something else: {why}"))
            })?;
            let full = rows.len() >= PAGE;
            all.extend(rows);
            let more = match d.facts.paging {
                Paging::Offset => full,
                Paging::Token => next.is_some(),
            };
            if !more {
                return Ok(all);
            }
            args = argv::next_page(d, &first, all.len(), next.as_deref());
        }
        Err(Error::new(Code::OpenshellCall, format!("`{label}` has no end")))
    }
}

/// The error of a call that met no usable gateway.
pub(super) fn gateway_error(text: &str, reason: String) -> Error {
    let (message, help) = match trouble(text) {
        Some(Trouble::NoGateway) => (
            "no OpenShell gateway is registered".to_owned(),
            "register one with `openshell gateway add URL --local --name NAME`, name one with --gateway, or use \
             --local",
        ),
        Some(Trouble::UnknownGateway) => (
            reason,
            "`openshell gateway list` shows the registered gateways; name one of them with --gateway",
        ),
        Some(Trouble::Unreachable) => (
            format!("the OpenShell gateway does not answer: {reason}"),
            "start the gateway; `openshell gateway list` shows the address that was tried",
        ),
        Some(Trouble::Unauthenticated) => (
            format!("the OpenShell gateway refused the credentials: {reason}"),
            "log in again with `openshell gateway login`; `openshell status` shows the state",
        ),
        _ if reason.is_empty() => {
            ("`openshell sandbox list` failed without a word".to_owned(), "`openshell status` may say more")
        }
        _ => (format!("`openshell sandbox list` failed: {reason}"), "`openshell status` may say more"),
    };
    Error::new(Code::GatewayDown, message).help(help)
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;
    use std::time::Duration;

    async fn error_of(body: &str) -> Error {
        let dir = tempfile::tempdir().unwrap();
        let mut openshell = scripted(dir.path(), body);
        openshell.deadlines.gateway = Duration::from_secs(20);
        let error = openshell.check_gateway().await.unwrap_err();
        assert_eq!(error.code(), Code::GatewayDown);
        error
    }

    #[tokio::test]
    async fn each_kind_of_dead_gateway_has_its_fix() {
        let error = error_of("printf 'Error:   × No active gateway.\\n' >&2; exit 1").await;
        assert!(error.help_text().contains("gateway add"), "{}", error.help_text());
        let error = error_of("printf \"Error:   × Unknown gateway 'nosuch'.\\n\" >&2; exit 1").await;
        assert!(error.help_text().contains("gateway list"), "{}", error.help_text());
        assert!(error.message().contains("nosuch"));
        let refused = "printf 'Error:   × transport error\\n  ├─▶ tcp connect error\\n  ╰─▶ Connection refused (os \
                       error 111)\\n' >&2; exit 1";
        assert!(error_of(refused).await.help_text().contains("start the gateway"));
        assert!(error_of("echo 'Status: No gateway configured.'").await.message().contains("something else"));
    }

    #[tokio::test]
    async fn a_gateway_that_hangs_is_dead() {
        let dir = tempfile::tempdir().unwrap();
        let mut openshell = scripted(dir.path(), "sleep 600");
        openshell.deadlines.gateway = Duration::from_millis(100);
        let error = openshell.check_gateway().await.unwrap_err();
        assert_eq!(error.code(), Code::GatewayDown);
        assert!(error.message().contains("did not answer"), "{}", error.message());
    }

    #[tokio::test]
    async fn lists_are_read_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let new = "case \"$*\" in *--page-token\\ t1) echo '{\"providers\":[{\"name\":\"b\"}],\"next_page_token\":\"\"}';;\n\
                   *) echo '{\"providers\":[{\"name\":\"a\"}],\"next_page_token\":\"t1\"}';; esac";
        let openshell = scripted(dir.path(), new);
        let rows = openshell.providers(&Dialect::newest()).await.unwrap();
        assert_eq!(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let row = "{\\\"name\\\":\\\"x\\\"}";
        let old = format!(
            "case \"$*\" in *--offset*) echo '[]';; *) printf '['; i=1; while [ $i -lt 100 ]; do printf \"{row},\"; \
             i=$((i+1)); done; echo \"{row}]\";; esac"
        );
        let openshell = scripted(dir.path(), &old);
        let d = Dialect::of_version("openshell 0.0.83").unwrap();
        assert_eq!(openshell.sandboxes(&d).await.unwrap().len(), 100);
    }
}
