//! What a harness says of its surroundings: servers on the host, and limits of the sandbox.

use super::keys::Level;
use super::model::{ApiServer, Resources};
use super::reader::{At, Fields, Reader, Text};
use super::yaml::Value;
use crate::openshell::names::label;

/// An entry of `api_servers`, as it is written.
#[derive(Debug)]
pub(crate) struct RawServer {
    pub(crate) name: Text,
    pub(crate) script: Text,
    pub(crate) port: Option<At<i64>>,
    pub(crate) bind_address: Option<Text>,
    pub(crate) env: Vec<(Text, Text)>,
}

/// The keys of this part, as they are written.
#[derive(Debug, Default)]
pub(crate) struct RawServices {
    pub(crate) servers: Vec<RawServer>,
    pub(crate) resources: Vec<(&'static str, Text)>,
    pub(crate) labels: Vec<(Text, Text)>,
    pub(crate) ttl: Option<Text>,
    pub(crate) max_concurrent: Option<At<i64>>,
}

impl RawServices {
    /// Takes the keys.
    pub(crate) fn read(reader: &mut Reader<'_>, top: &mut Fields) -> Self {
        Self {
            servers: servers(reader, top),
            resources: resources(reader, top),
            labels: reader.text_map(top, "labels"),
            ttl: reader.text_not_empty(top, "ttl"),
            max_concurrent: reader.integer(top, "max_concurrent"),
        }
    }
}

fn servers(reader: &mut Reader<'_>, top: &mut Fields) -> Vec<RawServer> {
    let mut out = Vec::new();
    for item in reader.list(top, "api_servers") {
        if !matches!(item.value, Value::Map(_)) {
            reader.item_fields("api_servers", item);
            continue;
        }
        let Some(mut fields) = reader.item_fields("api_servers", item) else { continue };
        let before = reader.problems.0.len();
        let name = reader.text_not_empty(&mut fields, "name");
        let script = reader.text_not_empty(&mut fields, "script");
        let port = reader.integer(&mut fields, "port");
        let bind_address = reader.text_not_empty(&mut fields, "bind_address");
        let env = reader.text_map(&mut fields, "env");
        let typed = reader.problems.0.len() == before;
        let span = fields.span.clone();
        for (key, value) in [("name", &name), ("script", &script)] {
            if value.is_none() && typed {
                reader.required(&span, key, "an entry of `api_servers`");
            }
        }
        reader.finish(fields, Level::ApiServer);
        if let (Some(name), Some(script)) = (name, script) {
            out.push(RawServer { name, script, port, bind_address, env });
        }
    }
    out
}

/// `resources`, of the harness or of the defaults in `config.yaml`: text by key.
pub(crate) fn resources(reader: &mut Reader<'_>, top: &mut Fields) -> Vec<(&'static str, Text)> {
    let mut out = Vec::new();
    if let Some(mut fields) = reader.section(top, "resources") {
        for name in Level::Resources.keys() {
            out.extend(reader.text(&mut fields, name).map(|text| (name, text)));
        }
        reader.finish(fields, Level::Resources);
    }
    out
}

impl Resources {
    /// Sets a value by its key in a harness.
    ///
    /// # Errors
    /// What the value has to be.
    pub(crate) fn set(&mut self, key: &str, text: &str) -> Result<(), &'static str> {
        let value = Some(text.to_owned()).filter(|t| !t.is_empty());
        match key {
            "cpu" if value.as_deref().is_none_or(is_cpu) => self.cpu = value,
            "cpu" => return Err("a number of processors such as 2, 0.5 or 500m"),
            "memory" if value.as_deref().is_none_or(is_size) => self.memory = value,
            "disk" if value.as_deref().is_none_or(is_size) => self.disk = value,
            "memory" | "disk" => return Err("a size such as 512Mi, 4Gi or 2G"),
            _ => {
                self.gpu = match text {
                    "" | "false" | "0" => None,
                    "true" => Some(Gpu::Any),
                    n => Some(Gpu::Count(n.parse().map_err(|_| "`true`, or a number of devices")?)),
                }
            }
        }
        Ok(())
    }
}

use super::model::Gpu;

/// A quantity of processors as Kubernetes writes it.
fn is_cpu(text: &str) -> bool {
    let number = text.strip_suffix('m').unwrap_or(text);
    let whole = text.ends_with('m');
    let fine = number.bytes().all(|b| b.is_ascii_digit() || (b == b'.' && !whole));
    fine && number.parse::<f64>().is_ok_and(|n| n > 0.0)
}

/// A quantity of bytes as Kubernetes writes it, with a unit or without.
fn is_size(text: &str) -> bool {
    let units = ["Ki", "Mi", "Gi", "Ti", "k", "K", "M", "G", "T"];
    let number = units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    number.bytes().all(|b| b.is_ascii_digit()) && number.parse::<u64>().is_ok_and(|n| n > 0)
}

/// What is wrong with a label of a harness; `None` when it is fine. The rule for keys is that of Kubernetes, which a
/// driver of OpenShell applies.
pub(crate) fn label_problem(key: &str) -> Option<&'static str> {
    let word = |text: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
        let bytes = text.as_bytes();
        bytes.len() <= 63
            && bytes.iter().copied().all(inner)
            && ends(bytes.first().copied())
            && ends(bytes.last().copied())
    };
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !word(name) || prefix.is_some_and(|p| p.len() > 253 || !p.split('.').all(word)) {
        return Some(
            "a label's key has up to 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends",
        );
    }
    if key == label::MANAGED_BY || key == label::KEEP || key.starts_with("fullsend") {
        return Some("this label is fullsend's own; choose another key");
    }
    None
}

/// Whether a server may have this name: it becomes a part of names of variables and files.
pub(crate) fn is_server_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 40
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

impl ApiServer {
    /// What the names of its variables in the sandbox start with.
    pub fn variable(&self) -> String {
        let name: String = self
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        format!("{VARIABLES}{name}")
    }
}

/// What the variables of every server start with.
pub(crate) const VARIABLES: &str = "FULLSEND_API_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_told_from_nonsense() {
        for good in ["1", "2.5", "500m", "0.1"] {
            assert!(is_cpu(good), "{good}");
        }
        for bad in ["", "0", "-1", "two", "1.5m", "1e3", "inf", "NaN", "1 "] {
            assert!(!is_cpu(bad), "{bad}");
        }
        for good in ["1", "512Mi", "4Gi", "2G", "1048576"] {
            assert!(is_size(good), "{good}");
        }
        for bad in ["", "0", "4GB", "1.5Gi", "Gi", "-1Gi", "4 Gi"] {
            assert!(!is_size(bad), "{bad}");
        }
        let mut resources = Resources::default();
        assert!(resources.set("gpu", "true").is_ok() && resources.gpu == Some(Gpu::Any));
        assert!(resources.set("gpu", "2").is_ok() && resources.gpu == Some(Gpu::Count(2)));
        assert!(resources.set("gpu", "all").is_err());
    }

    #[test]
    fn labels_are_legal_and_not_ours() {
        for good in ["team", "a", "example.com/cost-centre", "A_b.c-9"] {
            assert_eq!(label_problem(good), None, "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "é", "a/b/c", "/a", "a=b", "managed-by", "keep", "fullsend-run"] {
            assert!(label_problem(bad).is_some(), "{bad}");
        }
        assert!(label_problem(&"x".repeat(64)).is_some());
    }
}
