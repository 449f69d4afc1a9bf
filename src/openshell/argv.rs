//! The arguments of every call, after the program. Pure: a run and a dry run use the same functions.

use std::ffi::OsString;
use std::path::Path;

use super::dialect::{Dialect, Paging};
use super::spec::{CreateSpec, ProviderSpec};

/// Rows asked for per page; the CLI's own default, which every release takes.
pub const PAGE: usize = 100;

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn option(args: &mut Vec<OsString>, name: &str, value: impl Into<OsString>) {
    args.push(name.into());
    args.push(value.into());
}

/// `--version`.
pub fn version() -> Vec<OsString> {
    words(&["--version"])
}

/// The help text of a subcommand.
pub fn help(command: &[&str]) -> Vec<OsString> {
    let mut args = words(command);
    args.push("--help".into());
    args
}

/// `sandbox create`: the sandbox stays, with no terminal and no guessed providers.
pub fn create(d: &Dialect, spec: &CreateSpec) -> Vec<OsString> {
    let mut args = words(&["sandbox", "create"]);
    option(&mut args, "--name", &spec.name);
    if d.facts.keep {
        args.push("--keep".into());
    }
    args.extend(words(&["--no-auto-providers", "--no-tty"]));
    if let Some(image) = &spec.image {
        option(&mut args, "--from", image);
    }
    if let Some(policy) = &spec.policy {
        option(&mut args, "--policy", policy);
    }
    for provider in &spec.providers {
        option(&mut args, "--provider", provider);
    }
    for (flag, map) in [("--label", &spec.labels), ("--env", &spec.env)] {
        for (key, value) in map {
            option(&mut args, flag, format!("{key}={value}"));
        }
    }
    for (flag, value) in [("--cpu", &spec.cpu), ("--memory", &spec.memory), ("--disk", &spec.disk)] {
        if let Some(value) = value {
            option(&mut args, flag, value);
        }
    }
    // Its value is optional, so that it has to be one word with the flag.
    if let Some(count) = &spec.gpu {
        args.push(if count.is_empty() { "--gpu".into() } else { format!("--gpu={count}").into() });
    }
    args.extend(if d.facts.detach {
        words(&["--detach", "--", "sleep", "infinity"])
    } else {
        words(&["--", "true"])
    });
    args
}

/// `sandbox list -o json`: the first page.
pub fn sandbox_list() -> Vec<OsString> {
    words(&["sandbox", "list", "-o", "json"])
}

/// `sandbox list -o json` of the sandboxes with a label.
pub fn sandbox_list_with(label: &str, value: &str) -> Vec<OsString> {
    let mut args = sandbox_list();
    option(&mut args, "--selector", format!("{label}={value}"));
    args
}

/// `sandbox get`.
pub fn sandbox_get(d: &Dialect, name: &str) -> Vec<OsString> {
    let mut args = words(&["sandbox", "get", name]);
    if d.facts.get_json {
        option(&mut args, "-o", "json");
    }
    args
}

/// `sandbox ssh-config`.
pub fn ssh_config(name: &str) -> Vec<OsString> {
    words(&["sandbox", "ssh-config", name])
}

/// `sandbox delete` of one sandbox; several at once end differently by release.
pub fn sandbox_delete(name: &str) -> Vec<OsString> {
    words(&["sandbox", "delete", name])
}

/// `logs`.
pub fn logs(name: &str, lines: usize) -> Vec<OsString> {
    words(&["logs", name, "-n", &lines.to_string()])
}

/// A further page of a list, appended to the arguments of the first one.
pub fn next_page(d: &Dialect, first: &[OsString], seen: usize, token: Option<&str>) -> Vec<OsString> {
    let mut args = first.to_vec();
    match d.facts.paging {
        Paging::Offset => {
            option(&mut args, "--limit", PAGE.to_string());
            option(&mut args, "--offset", seen.to_string());
        }
        Paging::Token => {
            option(&mut args, "--page-size", PAGE.to_string());
            option(&mut args, "--page-token", token.unwrap_or_default());
        }
    }
    args
}

/// `provider list -o json`: the first page.
pub fn provider_list() -> Vec<OsString> {
    words(&["provider", "list", "-o", "json"])
}

/// `provider create`. Values come from the child's environment: see [`credential_env`].
pub fn provider_create(d: &Dialect, spec: &ProviderSpec) -> Vec<OsString> {
    let mut args = words(&["provider", "create", "--name", &spec.name, "--type", &spec.kind]);
    for (key, value) in &spec.credentials {
        if !value.is_empty() {
            option(&mut args, "--credential", key);
        } else if d.facts.empty_credentials_sent {
            option(&mut args, "--credential", format!("{key}="));
        }
    }
    provider_config(&mut args, spec);
    args
}

/// `provider update`. An empty credential is left out, as an empty value deletes the stored one.
pub fn provider_update(spec: &ProviderSpec) -> Vec<OsString> {
    let mut args = words(&["provider", "update", &spec.name]);
    for (key, _) in spec.credentials.iter().filter(|(_, v)| !v.is_empty()) {
        option(&mut args, "--credential", key);
    }
    provider_config(&mut args, spec);
    provider_expiry_options(&mut args, spec);
    args
}

/// The update that sets the expiry of a provider just created (no release takes it on create); `None` when
/// there is nothing to set.
pub fn provider_expiry(spec: &ProviderSpec) -> Option<Vec<OsString>> {
    let mut args = words(&["provider", "update", &spec.name]);
    let bare = args.len();
    provider_expiry_options(&mut args, spec);
    (args.len() > bare).then_some(args)
}

fn provider_config(args: &mut Vec<OsString>, spec: &ProviderSpec) {
    for (key, value) in &spec.config {
        option(args, "--config", format!("{key}={value}"));
    }
}

fn provider_expiry_options(args: &mut Vec<OsString>, spec: &ProviderSpec) {
    if let Some(expires) = spec.expires {
        // Whole seconds in RFC 3339, which every release reads.
        let stamp = expires.strftime("%Y-%m-%dT%H:%M:%SZ");
        for (key, _) in spec.credentials.iter().filter(|(_, v)| !v.is_empty()) {
            option(args, "--credential-expires-at", format!("{key}={stamp}"));
        }
    }
}

/// The variables that carry the credentials of [`provider_create`] and [`provider_update`].
pub fn credential_env(spec: &ProviderSpec) -> impl Iterator<Item = (&str, &str)> {
    spec.credentials.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k.as_str(), v.expose()))
}

/// `provider delete` of one provider.
pub fn provider_delete(name: &str) -> Vec<OsString> {
    words(&["provider", "delete", name])
}

/// `profile export -o json`.
pub fn profile_export(d: &Dialect, id: &str) -> Vec<OsString> {
    let mut args = words(d.facts.profile_words);
    args.extend(words(&["export", id, "-o", "json"]));
    args
}

/// `profile import --file`.
pub fn profile_import(d: &Dialect, file: &Path) -> Vec<OsString> {
    let mut args = words(d.facts.profile_words);
    args.push("import".into());
    option(&mut args, "--file", file);
    args
}

/// `profile update ID --file`; the file carries the `resource_version` that it replaces.
pub fn profile_update(d: &Dialect, id: &str, file: &Path) -> Vec<OsString> {
    let mut args = words(d.facts.profile_words);
    args.extend(words(&["update", id]));
    option(&mut args, "--file", file);
    args
}

/// The gateway-wide switch that makes profiles take effect before 0.1.
pub fn enable_providers_v2() -> Vec<OsString> {
    words(&["settings", "set", "--key", "providers_v2_enabled", "--value", "true", "--global", "--yes"])
}

#[cfg(test)]
mod tests {
    use super::super::dialect::{Dialect, GENERATIONS};
    use super::*;
    use crate::secrets::Secret;
    use std::collections::BTreeMap;

    fn text(args: &[OsString]) -> String {
        args.iter().map(|a| a.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn dialect(version: &str) -> Dialect {
        Dialect::of_version(version).unwrap()
    }

    fn spec() -> CreateSpec {
        CreateSpec {
            name: "fs-a-000000000000".into(),
            image: Some("example.com/base:1".into()),
            policy: Some("/h/policy.yaml".into()),
            providers: vec!["p2".into(), "p1".into()],
            labels: BTreeMap::from([("managed-by".into(), "fullsend".into())]),
            cpu: Some("2".into()),
            ..CreateSpec::default()
        }
    }

    #[test]
    fn create_speaks_each_generation() {
        let middle = "--no-auto-providers --no-tty --from example.com/base:1 --policy /h/policy.yaml --provider p2 \
                      --provider p1 --label managed-by=fullsend --cpu 2";
        let name = "sandbox create --name fs-a-000000000000";
        let create = |version| text(&create(&dialect(version), &spec()));
        assert_eq!(create("0.0.83"), format!("{name} --keep {middle} -- true"));
        assert_eq!(create("0.0.110"), format!("{name} --keep {middle} -- true"));
        assert_eq!(create("0.0.116"), format!("{name} --keep {middle} --detach -- sleep infinity"));
        assert_eq!(create("0.1.10"), format!("{name} {middle} --detach -- sleep infinity"));
    }

    fn provider() -> ProviderSpec {
        ProviderSpec {
            name: "gh-0123".into(),
            kind: "github".into(),
            credentials: BTreeMap::from([
                ("EMPTY".into(), Secret::default()),
                ("TOKEN".into(), Secret::new("hunter2-value")),
            ]),
            config: BTreeMap::from([("region".into(), "eu".into())]),
            expires: Some("2027-01-01T00:00:00.5Z".parse().unwrap()),
        }
    }

    #[test]
    fn an_empty_credential_is_sent_on_create_only_and_only_where_wanted() {
        assert_eq!(
            text(&provider_create(&dialect("0.0.110"), &provider())),
            "provider create --name gh-0123 --type github --credential EMPTY= --credential TOKEN --config region=eu"
        );
        assert_eq!(
            text(&provider_create(&dialect("0.1.4"), &provider())),
            "provider create --name gh-0123 --type github --credential TOKEN --config region=eu"
        );
        assert_eq!(
            text(&provider_update(&provider())),
            "provider update gh-0123 --credential TOKEN --config region=eu \
             --credential-expires-at TOKEN=2027-01-01T00:00:00Z"
        );
        assert_eq!(
            provider_expiry(&provider()).map(|a| text(&a)).as_deref(),
            Some("provider update gh-0123 --credential-expires-at TOKEN=2027-01-01T00:00:00Z")
        );
        assert_eq!(provider_expiry(&ProviderSpec { expires: None, ..provider() }), None);
    }

    #[test]
    fn no_argv_of_any_generation_holds_a_value() {
        for (first, facts) in GENERATIONS {
            let d = Dialect { version: format!("{first:?}"), assumed: false, facts: *facts };
            for args in [provider_create(&d, &provider()), provider_update(&provider())] {
                assert!(!text(&args).contains("hunter2"), "{args:?}");
            }
        }
        assert_eq!(credential_env(&provider()).collect::<Vec<_>>(), [("TOKEN", "hunter2-value")]);
    }

    #[test]
    fn further_pages_are_asked_for_as_each_generation_wants() {
        let next = |v, token| text(&next_page(&dialect(v), &sandbox_list(), 100, token));
        assert_eq!(next("0.0.83", None), "sandbox list -o json --limit 100 --offset 100");
        assert_eq!(next("0.1.0", Some("t1")), "sandbox list -o json --page-size 100 --page-token t1");
    }

    #[test]
    fn profile_commands_follow_the_dialect() {
        let file = Path::new("/p.json");
        assert_eq!(text(&profile_export(&dialect("0.0.83"), "x")), "provider profile export x -o json");
        assert_eq!(text(&profile_update(&dialect("0.1.1"), "x", file)), "profile update x --file /p.json");
        assert_eq!(
            text(&profile_import(&dialect("0.0.110"), file)),
            "provider profile import --file /p.json"
        );
    }
}
