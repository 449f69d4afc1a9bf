//! Providers: named credentials that the gateway puts into a sandbox's traffic.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::argv;
use super::client::{Answer, Openshell, not_run};
use super::dialect::Dialect;
use super::sandbox::{Pauses, left};
use super::spec::{ProviderSpec, credential_key_problem};
use super::text::{Trouble, has_any, trouble};
use crate::error::{Code, Error, Result};
use crate::process::scale;

/// Attempts of a change that somebody else's change, or a profile not yet seen, may defeat.
const ATTEMPTS: u32 = 4;
/// The first pause between two attempts; it doubles.
const PAUSE: Duration = Duration::from_millis(250);

/// What became of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The provider is new.
    New,
    /// One of that name existed and was left as it is.
    Existed,
}

impl Openshell {
    /// Creates a provider, with its expiry. The values travel in the child's environment, never in argv.
    ///
    /// # Errors
    /// [`Code::Value`] for an unusable credential key, [`Code::ProviderRefused`] when OpenShell refuses.
    pub async fn create_provider(&self, d: &Dialect, spec: &ProviderSpec) -> Result<Created> {
        check_keys(spec)?;
        let answer = self.change(spec, &argv::provider_create(d, spec)).await?;
        if !answer.success() {
            return match trouble(&answer.text) {
                Some(Trouble::AlreadyExists) => Ok(Created::Existed),
                _ => Err(refused(spec, &answer)),
            };
        }
        if let Some(args) = argv::provider_expiry(spec) {
            let answer = self.change(spec, &args).await?;
            if !answer.success() {
                // One that does not know the option still lends the credential; the run deletes it at its end.
                if trouble(&answer.text) == Some(Trouble::Usage) {
                    tracing::warn!(provider = spec.name, "this openshell knows no expiry of credentials");
                    return Ok(Created::New);
                }
                return Err(refused(spec, &answer));
            }
        }
        Ok(Created::New)
    }

    /// Updates a provider: what it holds is added or replaced, other keys stay.
    pub async fn update_provider(&self, spec: &ProviderSpec) -> Result<()> {
        check_keys(spec)?;
        let answer = self.change(spec, &argv::provider_update(spec)).await?;
        if answer.success() { Ok(()) } else { Err(refused(spec, &answer)) }
    }

    /// Creates a shared provider, or updates the one that exists. The stored type is not compared: the CLI
    /// normalises names of types (`claude` becomes `claude-code`).
    pub async fn ensure_provider(&self, d: &Dialect, spec: &ProviderSpec) -> Result<Created> {
        let created = self.create_provider(d, spec).await?;
        if created == Created::Existed {
            self.update_provider(spec).await?;
        }
        Ok(created)
    }

    /// Deletes a provider. A missing one is a success; one still attached is retried until `deadline`, as its
    /// sandbox may be going away.
    pub async fn delete_provider(&self, name: &str, deadline: Duration) -> Result<()> {
        let end = Instant::now() + scale::limit(deadline);
        let mut pauses = Pauses::new();
        loop {
            let limit = self.deadlines.change.min(left(end));
            let label = "openshell provider delete";
            let failure = match self.run(label, argv::provider_delete(name), limit).await {
                Ok(answer) if answer.success() || is_missing(&answer) => return Ok(()),
                Ok(answer) => answer.error(Code::ProviderRefused),
                Err(failure) => not_run(failure),
            };
            if Instant::now() >= end {
                let fix = format!("delete it by hand: openshell provider delete {name}");
                return Err(failure.help(fix));
            }
            sleep(pauses.next(end)).await;
        }
    }

    /// Confirms that providers are gone, and deletes again what is still listed.
    ///
    /// # Errors
    /// [`Code::ProviderRefused`] when one stays until `deadline`, or the failure of the list.
    pub async fn confirm_providers_gone(
        &self,
        d: &Dialect,
        names: &[String],
        deadline: Duration,
    ) -> Result<()> {
        let end = Instant::now() + scale::limit(deadline);
        let mut pauses = Pauses::new();
        loop {
            let failure = match self.providers(d).await {
                Err(failure) => failure,
                Ok(rows) => {
                    let Some(row) = rows.iter().find(|row| names.contains(&row.name)) else { return Ok(()) };
                    self.delete_provider(&row.name, left(end)).await?;
                    let what = format!("`openshell provider delete` left {} behind", row.name);
                    let fix = format!("delete it by hand: openshell provider delete {}", row.name);
                    Error::new(Code::ProviderRefused, what).help(fix)
                }
            };
            if Instant::now() >= end {
                return Err(failure);
            }
            sleep(pauses.next(end)).await;
        }
    }

    /// Runs a create or update, again where a repetition may help.
    async fn change(&self, spec: &ProviderSpec, args: &[std::ffi::OsString]) -> Result<Answer> {
        let label =
            format!("openshell provider {}", args.get(1).map_or("", |a| a.to_str().unwrap_or_default()));
        let mut pause = PAUSE;
        for attempt in 1.. {
            let mut command = self.command(&label, args.to_vec(), self.deadlines.change);
            for (key, value) in argv::credential_env(spec) {
                command = command.env(key, value);
            }
            let answer = self.run_command(&label, command).await.map_err(not_run)?;
            if attempt == ATTEMPTS || !passing(&answer) {
                return Ok(answer);
            }
            sleep(pause).await;
            pause *= 2;
        }
        Err(Error::bug("an endless loop ended"))
    }
}

/// Whether a failure may pass by itself: a concurrent change, or a profile that was imported a moment ago.
fn passing(answer: &Answer) -> bool {
    let text = answer.text.to_ascii_lowercase();
    !answer.success()
        && (matches!(trouble(&text), Some(Trouble::Conflict | Trouble::Unreachable | Trouble::Exhausted))
            || is_profile_missing(&text))
}

/// The wordings of 0.0.x, 0.1.0 and 0.1.2 for a type without a profile.
fn is_profile_missing(text: &str) -> bool {
    text.contains("unsupported provider type or profile")
        || text.contains("provider profile '")
            && has_any(text, &["' not found", "' was not found", "no provider profile named"])
}

fn is_missing(answer: &Answer) -> bool {
    let text = answer.text.to_ascii_lowercase();
    text.contains("provider")
        && has_any(&text, &["not found", "does not exist"])
        && !matches!(trouble(&text), Some(Trouble::NoGateway | Trouble::UnknownGateway))
}

fn check_keys(spec: &ProviderSpec) -> Result<()> {
    for key in spec.credentials.keys() {
        if let Some(problem) = credential_key_problem(key) {
            let what = format!("provider {}: credential `{key}` cannot be used", spec.name);
            return Err(Error::new(Code::Value, what).help(problem));
        }
    }
    Ok(())
}

fn refused(spec: &ProviderSpec, answer: &Answer) -> Error {
    if is_profile_missing(&answer.text.to_ascii_lowercase()) {
        let what = format!("provider {}: the gateway has no profile `{}`", spec.name, spec.kind);
        return Error::new(Code::ProfileMissing, what)
            .help("add the profile to the harness (`openshell.profiles`), or import it on the gateway")
            .detail(&answer.text);
    }
    let error = answer.error(Code::ProviderRefused);
    match trouble(&answer.text) {
        Some(Trouble::NoGateway | Trouble::UnknownGateway | Trouble::Unreachable) => {
            super::gateway::gateway_error(&answer.text, answer.reason())
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::scripted;
    use super::*;
    use crate::secrets::Secret;
    use std::collections::BTreeMap;

    fn spec() -> ProviderSpec {
        ProviderSpec {
            name: "gh-1".into(),
            kind: "github".into(),
            credentials: BTreeMap::from([("TOKEN".into(), Secret::new("hunter2-value"))]),
            config: BTreeMap::new(),
            expires: Some("2027-01-01T00:00:00Z".parse().unwrap()),
        }
    }

    #[tokio::test]
    async fn values_travel_in_the_environment_only() {
        let dir = tempfile::tempdir().unwrap();
        let body = format!("echo \"$* [$TOKEN]\" >>'{}/calls'", dir.path().display());
        let openshell = scripted(dir.path(), &body);
        assert_eq!(openshell.create_provider(&Dialect::newest(), &spec()).await.unwrap(), Created::New);
        let calls = fs_err::read_to_string(dir.path().join("calls")).unwrap();
        assert_eq!(
            calls,
            "provider create --name gh-1 --type github --credential TOKEN [hunter2-value]\n\
             provider update gh-1 --credential-expires-at TOKEN=2027-01-01T00:00:00Z [hunter2-value]\n"
        );
    }

    #[tokio::test]
    async fn an_existing_shared_provider_is_updated() {
        let dir = tempfile::tempdir().unwrap();
        let body = "[ $2 = update ] && exit 0; printf \"Error:   × code: 'Some entity that we attempted to create already \
                    exists', message:\\n  │ \\\"provider already exists\\\"\\n\" >&2; exit 1";
        let openshell = scripted(dir.path(), body);
        assert_eq!(openshell.ensure_provider(&Dialect::newest(), &spec()).await.unwrap(), Created::Existed);
    }

    #[tokio::test]
    async fn a_type_without_a_profile_has_its_own_code() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "unsupported provider type or profile: github",
            "provider profile 'github' not found; import a matching profile",
            "provider profile 'github' was not found in the requested scope; import a\\n  │ matching profile",
        ] {
            let openshell = scripted(dir.path(), &format!("printf \"Error:   × {text}\\n\" >&2; exit 1"));
            let error = openshell.create_provider(&Dialect::newest(), &spec()).await.unwrap_err();
            assert_eq!(error.code(), Code::ProfileMissing, "{text}");
        }
    }

    #[tokio::test]
    async fn a_concurrent_change_is_retried() {
        let dir = tempfile::tempdir().unwrap();
        let body = format!(
            "if [ -e '{0}/again' ]; then exit 0; fi; touch '{0}/again'; echo 'Error:   × provider was modified \
             concurrently (current resource_version: 3)' >&2; exit 1",
            dir.path().display()
        );
        scripted(dir.path(), &body).update_provider(&spec()).await.unwrap();
    }

    #[tokio::test]
    async fn a_missing_provider_is_deleted_already() {
        let dir = tempfile::tempdir().unwrap();
        let limit = Duration::from_secs(20);
        scripted(dir.path(), "echo '! Provider nope not found'")
            .delete_provider("nope", limit)
            .await
            .unwrap();
        let gone = scripted(dir.path(), "echo 'Error:   × \"provider not found\"' >&2; exit 1");
        gone.delete_provider("nope", limit).await.unwrap();
        let held = scripted(
            dir.path(),
            "echo \"Error:   × provider 'p1' is attached to sandbox(es): x2\" >&2; exit 1",
        );
        let error = held.delete_provider("p1", Duration::from_millis(100)).await.unwrap_err();
        assert!(error.message().contains("attached"), "{}", error.message());
    }

    #[tokio::test]
    async fn a_key_that_steers_openshell_is_refused_before_any_call() {
        let dir = tempfile::tempdir().unwrap();
        let openshell = scripted(dir.path(), &format!("touch '{}/called'", dir.path().display()));
        let mut spec = spec();
        spec.credentials.insert("LD_PRELOAD".into(), Secret::new("/tmp/x.so"));
        let error = openshell.create_provider(&Dialect::newest(), &spec).await.unwrap_err();
        assert_eq!(error.code(), Code::Value);
        assert!(!dir.path().join("called").exists());
    }
}
