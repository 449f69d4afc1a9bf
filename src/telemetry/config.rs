//! What the standard variables ask for
//! ([OpenTelemetry environment variables](https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/),
//! [OTLP exporter](https://opentelemetry.io/docs/specs/otel/protocol/exporter/)). An empty variable counts as not set.

use std::time::Duration;

use super::span::Resource;
use crate::secrets::Secret;

/// The time for sending when `OTEL_EXPORTER_OTLP_TIMEOUT` does not say; the specification's.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A run is never held up for longer at its end, whatever the variable says.
const LONGEST: Duration = Duration::from_secs(30);
/// Variables that hold headers; those of traces come later and win.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// Where spans are sent.
#[derive(Debug, Clone)]
pub(crate) struct Export {
    /// The URL.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// The time for everything.
    pub timeout: Duration,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Where spans are sent; nothing when they are only written.
    pub export: Option<Export>,
    /// Whose spans they are.
    pub resource: Resource,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Looks variables up.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

fn get(env: Env<'_>, name: &str) -> Option<String> {
    env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Of two variables the one for traces wins.
fn traces(env: Env<'_>, name: &str) -> Option<String> {
    get(env, &format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
        .or_else(|| get(env, &format!("OTEL_EXPORTER_OTLP_{name}")))
}

/// Reads the variables.
pub(crate) fn read(env: Env<'_>) -> Config {
    let mut notes = Vec::new();
    let resource = resource(env, &mut notes);
    let export = export(env, &mut notes);
    Config { export, resource, notes }
}

fn resource(env: Env<'_>, notes: &mut Vec<String>) -> Resource {
    let (mut list, bad) = pairs(&get(env, "OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
    if bad {
        notes.push("OTEL_RESOURCE_ATTRIBUTES has parts that are not name=value; they are passed over".into());
    }
    let mut set = |key: &str, value: Option<String>, wins: bool| {
        let at = list.iter().position(|(k, _)| k == key);
        match (at, value) {
            (Some(at), Some(value)) if wins => list[at].1 = value,
            (None, Some(value)) => list.push((key.to_owned(), value)),
            _ => {}
        }
    };
    set("service.name", get(env, "OTEL_SERVICE_NAME"), true);
    set("service.name", Some("fullsend".into()), false);
    set("service.version", Some(env!("CARGO_PKG_VERSION").into()), false);
    Resource(list)
}

fn export(env: Env<'_>, notes: &mut Vec<String>) -> Option<Export> {
    if get(env, "OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
        return None;
    }
    let base =
        || get(env, "OTEL_EXPORTER_OTLP_ENDPOINT").map(|e| format!("{}/v1/traces", e.trim_end_matches('/')));
    let url = get(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(base)?;
    match get(env, "OTEL_TRACES_EXPORTER").as_deref() {
        None | Some("otlp") => {}
        Some("none") => return None,
        Some(other) => {
            notes
                .push(format!("OTEL_TRACES_EXPORTER={other} is not supported; spans are only in otel.jsonl"));
            return None;
        }
    }
    match traces(env, "PROTOCOL").as_deref() {
        None | Some("http/json") => {}
        Some("http/protobuf") => notes.push(
            "spans are sent as http/json, which OTLP receivers read at the same URL; OTEL_EXPORTER_OTLP_PROTOCOL=\
             http/protobuf is not supported"
                .into(),
        ),
        Some(other) => {
            notes.push(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL={other} is not supported, only http/json; spans are only in otel.jsonl"
            ));
            return None;
        }
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        notes
            .push("the OTLP endpoint is not an http:// or https:// URL; spans are only in otel.jsonl".into());
        return None;
    }
    let headers = headers(env, notes);
    let timeout = match traces(env, "TIMEOUT") {
        None => TIMEOUT,
        Some(text) => match text.parse::<u64>() {
            Ok(ms) if ms > 0 => Duration::from_millis(ms).min(LONGEST),
            _ => {
                notes.push(
                    "OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds; 10000 is taken".into(),
                );
                TIMEOUT
            }
        },
    };
    Some(Export { url, headers, timeout })
}

fn headers(env: Env<'_>, notes: &mut Vec<String>) -> Vec<(String, Secret)> {
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for name in HEADERS {
        let (list, bad) = pairs(&get(env, name).unwrap_or_default());
        if bad {
            // Not quoted: it may be a credential.
            notes.push(format!("{name} has parts that are not name=value; they are passed over"));
        }
        for (key, value) in list {
            headers.retain(|(k, _)| !k.eq_ignore_ascii_case(&key));
            headers.push((key, Secret::new(value)));
        }
    }
    headers
}

/// The credentials among the variables: values of headers, whole and without their scheme.
pub(crate) fn secrets(env: Env<'_>) -> Vec<Secret> {
    let mut found = Vec::new();
    for (_, value) in headers(env, &mut Vec::new()) {
        if let Some((scheme, rest)) = value.expose().split_once(' ')
            && ["bearer", "basic", "token"].iter().any(|s| scheme.eq_ignore_ascii_case(s))
        {
            found.push(Secret::new(rest.trim()));
        }
        found.push(value);
    }
    found
}

/// `name=value,name=value` with values percent-encoded, as in W3C Baggage. And whether a part was none.
fn pairs(text: &str) -> (Vec<(String, String)>, bool) {
    let mut list = Vec::new();
    let mut bad = false;
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                list.push((decode(name.trim()), decode(value.trim())));
            }
            _ => bad = true,
        }
    }
    (list, bad)
}

/// Percent-decoding; what is no such sequence stays.
fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok()).filter(|_| bytes[at] == b'%');
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(vars: &[(&str, &str)]) -> Config {
        read(&|name| vars.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");

    #[test]
    fn nothing_is_sent_unless_asked_for() {
        for vars in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            let config = config(vars);
            assert!(config.export.is_none() && config.notes.is_empty(), "{vars:?}");
        }
        for vars in [
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")][..],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "console")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317")],
        ] {
            let config = config(vars);
            assert!(config.export.is_none() && config.notes.len() == 1, "{vars:?}");
        }
    }

    #[test]
    fn the_variables_of_traces_win() {
        let export = config(&[ENDPOINT]).export.unwrap();
        assert_eq!((export.url.as_str(), export.timeout), ("http://c:4318/v1/traces", TIMEOUT));
        let config = config(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "nonsense"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=old, x=1%202%"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "authorization=Bearer%20abc"),
        ]);
        let export = config.export.unwrap();
        assert!(config.notes.is_empty());
        assert_eq!((export.url.as_str(), export.timeout.as_millis()), ("https://t/x", 2500));
        let headers: Vec<_> = export.headers.iter().map(|(k, v)| (k.as_str(), v.expose())).collect();
        assert_eq!(headers, [("x", "1 2%"), ("authorization", "Bearer abc")]);
    }

    #[test]
    fn no_run_is_held_up_for_long() {
        let export = config(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")]).export.unwrap();
        assert_eq!(export.timeout, LONGEST);
    }

    #[test]
    fn whose_spans_they_are() {
        let resource = |vars: &[(&str, &str)]| config(vars).resource.0;
        assert_eq!(resource(&[])[0], ("service.name".into(), "fullsend".into()));
        let given =
            [("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,team=b%2Cc,,x"), ("OTEL_SERVICE_NAME", "s")];
        assert_eq!(
            resource(&given)[..2],
            [("service.name".into(), "s".into()), ("team".into(), "b,c".into())]
        );
        assert_eq!(config(&given).notes.len(), 1);
    }

    #[test]
    fn values_of_headers_are_secrets() {
        let env = |name: &str| (name == HEADERS[0]).then(|| "a=Bearer%20tok-123,b=val".to_owned());
        let found = secrets(&env);
        let found: Vec<_> = found.iter().map(Secret::expose).collect();
        assert_eq!(found, ["tok-123", "Bearer tok-123", "val"]);
    }
}
