//! Providers: named sets of credentials, `provider create|update|get|list|delete`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fail::{Fail, Outcome, Rpc};
use super::profile::Profile;
use super::record::Record;
use super::sandbox::new_id;
use super::state::{self, State};

/// The kind of entry in the state directory.
const KIND: &str = "providers";

/// The entry of a provider. The file has mode 0600 and is the only place where the values lie.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Provider {
    pub(super) id: String,
    pub(super) name: String,
    /// The id of its profile.
    pub(super) kind: String,
    pub(super) resource_version: u64,
    pub(super) credentials: BTreeMap<String, String>,
    pub(super) config: BTreeMap<String, String>,
    /// When a value ends, in milliseconds since the epoch. Only shown; there is no proxy that could refuse it.
    pub(super) expires: BTreeMap<String, i64>,
}

/// What a call of `create` or `update` brings.
#[derive(Default)]
pub(super) struct Values {
    pub(super) credentials: BTreeMap<String, String>,
    pub(super) config: BTreeMap<String, String>,
    /// Zero takes the end away.
    pub(super) expires: BTreeMap<String, i64>,
}

/// What providers add to a sandbox.
pub(super) struct Attached {
    pub(super) credentials: Vec<(String, String)>,
    /// Whether a profile opens an endpoint.
    pub(super) network: bool,
}

impl Provider {
    /// The provider of that name.
    pub(super) fn find(state: &State, name: &str) -> Outcome<Option<Self>> {
        state::read(&state.entry(KIND, name))
    }

    /// All providers, by name.
    pub(super) fn all(state: &State) -> Outcome<Vec<Self>> {
        state.all(KIND)
    }

    /// The provider, or the reference's words for its absence.
    pub(super) fn get(state: &State, name: &str) -> Outcome<Self> {
        Self::find(state, name)?.ok_or_else(|| Fail::rpc(Rpc::NotFound, "provider not found"))
    }

    fn save(&self, state: &State) -> Outcome {
        state::write(&state.entry(KIND, &self.name), self)
    }

    fn take(&mut self, values: Values) {
        self.credentials.extend(values.credentials);
        self.config.extend(values.config);
        self.expires.extend(values.expires);
        self.expires.retain(|_, at| *at != 0);
    }
}

/// Reads the value of each `--credential KEY` from the environment; `KEY=VALUE` and `KEY=` are taken as they are.
pub(super) fn credentials(
    given: &[String],
    env: impl Fn(&str) -> Option<String>,
) -> Outcome<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for item in given {
        let (key, value) = match item.split_once('=') {
            Some((key, value)) => (key, value.to_owned()),
            None => match env(item).filter(|v| !v.is_empty()) {
                Some(value) => (item.as_str(), value),
                None => {
                    return Err(Fail::new(format!(
                        "--credential {item} requires local env var '{item}' to be set to a non-empty value"
                    )));
                }
            },
        };
        found.insert(key.to_owned(), value);
    }
    Ok(found)
}

/// Reads each `--credential-expires-at KEY=TIME`.
pub(super) fn expirations(given: &[(String, String)]) -> Outcome<BTreeMap<String, i64>> {
    let read = |(key, time): &(String, String)| {
        let ms = time.parse::<i64>().ok();
        let ms = ms.or_else(|| time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond));
        ms.map(|ms| (key.clone(), ms)).ok_or_else(|| {
            Fail::new(format!(
                "--credential-expires-at value for '{key}' must be a Unix epoch millisecond timestamp or RFC3339 \
                 timestamp"
            ))
        })
    };
    given.iter().map(read).collect()
}

/// Creates a provider of a type that has a profile.
pub(super) fn create(state: &State, name: &str, kind: &str, values: Values) -> Outcome {
    let _lock = state.lock()?;
    if Profile::find(state, kind)?.is_none() {
        let text = format!(
            "provider profile '{kind}' was not found in the requested scope; import a matching profile"
        );
        return Err(Fail::rpc(Rpc::InvalidArgument, text));
    }
    if Provider::find(state, name)?.is_some() {
        return Err(Fail::rpc(Rpc::AlreadyExists, "provider already exists"));
    }
    let mut provider = Provider {
        id: new_id()?,
        name: name.to_owned(),
        kind: kind.to_owned(),
        resource_version: 1,
        credentials: BTreeMap::new(),
        config: BTreeMap::new(),
        expires: BTreeMap::new(),
    };
    provider.take(values);
    provider.save(state)
}

/// Changes the values that are given; the others stay.
pub(super) fn update(state: &State, name: &str, values: Values) -> Outcome {
    let _lock = state.lock()?;
    let mut provider = Provider::get(state, name)?;
    provider.take(values);
    provider.resource_version += 1;
    provider.save(state)
}

/// Deletes a provider. `false` when there is none.
pub(super) fn delete(state: &State, name: &str) -> Outcome<bool> {
    let _lock = state.lock()?;
    if Provider::find(state, name)?.is_none() {
        return Ok(false);
    }
    let users: Vec<String> = Record::all(state)?
        .into_iter()
        .filter(|s| s.providers.iter().any(|p| p == name))
        .map(|s| s.name)
        .collect();
    if !users.is_empty() {
        let text = format!("provider '{name}' is attached to sandbox(es): {}", users.join(", "));
        return Err(Fail::rpc(Rpc::FailedPrecondition, text));
    }
    fs_err::remove_file(state.entry(KIND, name))?;
    Ok(true)
}

/// What the named providers give to a sandbox; for the same variable the last one counts. The lock is held by
/// the caller.
pub(super) fn attach(state: &State, names: &[String]) -> Outcome<Attached> {
    let mut attached = Attached { credentials: Vec::new(), network: false };
    for name in names {
        let provider = Provider::find(state, name)?.ok_or_else(|| {
            Fail::new(format!(
                "provider '{name}' not found and no provider profile named '{name}' is available. Create or \
                 import the profile first, then create the provider"
            ))
        })?;
        let profile = Profile::find(state, &provider.kind)?;
        attached.network |= profile.is_some_and(|p| p.has_endpoints());
        attached.credentials.extend(provider.credentials);
    }
    Ok(attached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_key_takes_its_value_from_the_environment() {
        let given = ["A", "B=x=y", "C="].map(str::to_owned);
        let found = credentials(&given, |k| (k == "A").then(|| "secret".to_owned())).unwrap();
        assert_eq!(found["A"], "secret");
        assert_eq!(found["B"], "x=y");
        assert_eq!(found["C"], "");
    }

    #[test]
    fn an_empty_variable_is_refused_by_name() {
        for value in [None, Some(String::new())] {
            let fail = credentials(&["TOK".to_owned()], |_| value.clone()).err().unwrap();
            assert!(fail.to_string().contains("'TOK' to be set to a non-empty value"));
        }
    }

    #[test]
    fn an_end_is_milliseconds_or_a_time() {
        let given = |t: &str| [("K".to_owned(), t.to_owned())];
        assert_eq!(expirations(&given("1798761600000")).unwrap()["K"], 1_798_761_600_000);
        assert_eq!(expirations(&given("2027-01-01T00:00:00Z")).unwrap()["K"], 1_798_761_600_000);
        assert!(expirations(&given("tomorrow")).is_err());
    }
}
