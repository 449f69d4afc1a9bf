//! Servers on the host, resources, labels, limits of the whole.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::super::check::Kind;
use super::super::model::{ApiServer, Resources};
use super::super::reader::{At, Text};
use super::super::services::{RawServer, is_server_name, label_problem};
use super::Loader;
use crate::openshell::names::label_value;

impl Loader<'_> {
    pub(super) fn api_servers(&mut self, raw: &[RawServer]) -> Vec<ApiServer> {
        let mut out: Vec<ApiServer> = Vec::new();
        for server in raw {
            let name = &server.name.text;
            if !is_server_name(name) {
                let message = format!("`{}` is not a name for a server", name.escape_debug());
                self.error(&server.name.span, message, "use letters, digits, `-` and `_`, a letter first");
                continue;
            }
            let script = self.path("script", Some(&server.script), Kind::File);
            let port = self.port(server.port.as_ref());
            let bind_address = server.bind_address.as_ref().and_then(|text| self.address(text));
            let env = self.env_map(&server.env);
            let Some(script) = script else { continue };
            let server_ = ApiServer { name: name.clone(), script, port, bind_address, env };
            if out.iter().any(|other| other.variable() == server_.variable()) {
                let message = format!("the server `{name}` is listed twice");
                self.error(
                    &server.name.span,
                    message,
                    "names that differ only in case, `-` and `_` are the same",
                );
                continue;
            }
            if port.is_some() && out.iter().any(|other| other.port == port) {
                let message = format!("the server `{name}` has the port of another one");
                self.error(&server.name.span, message, "choose another port, or leave `port` out");
                continue;
            }
            out.push(server_);
        }
        out
    }

    fn port(&mut self, key: Option<&At<i64>>) -> Option<u16> {
        let At { value, span } = key?;
        if *value == 0 {
            return None;
        }
        let port = u16::try_from(*value).ok().filter(|port| *port >= 1024);
        if port.is_none() {
            let help = "use 1024 to 65535; without `port` a free one is chosen";
            self.error(span, format!("`port` is {value}"), help);
        }
        port
    }

    fn address(&mut self, text: &Text) -> Option<IpAddr> {
        let address = text.text.parse().ok();
        if address.is_none() {
            let message = format!("`bind_address` is not an address: {:?}", text.text);
            self.error(&text.span, message, "write an IP address such as 127.0.0.1 or 0.0.0.0");
        }
        address
    }

    /// The resources of the harness over those of `config.yaml`.
    pub(super) fn resources(&mut self, raw: &[(&'static str, Text)]) -> Resources {
        let mut out = self.config.resources.clone();
        for (key, value) in raw {
            if let Err(wanted) = out.set(key, &value.text) {
                let message = format!("`resources.{key}` is {:?}", value.text);
                self.error(&value.span, message, format!("write {wanted}"));
            }
        }
        out
    }

    /// The labels of `config.yaml` and of the harness. A value that a driver would refuse is made one that it takes.
    pub(super) fn labels(&mut self, raw: &[(Text, Text)]) -> BTreeMap<String, String> {
        let mut out = self.config.labels.clone();
        for (key, value) in raw {
            match label_problem(&key.text) {
                Some(why) => {
                    self.error(
                        &key.span,
                        format!("the label `{}` cannot be set", key.text.escape_debug()),
                        why,
                    );
                }
                None => {
                    out.insert(key.text.clone(), label_value(&value.text));
                }
            }
        }
        out
    }

    pub(super) fn ttl(&mut self, raw: Option<&Text>) -> Option<Duration> {
        let own = raw.and_then(|text| self.duration("ttl", text));
        self.request.overrides.ttl.or(own).or(self.config.ttl)
    }

    pub(super) fn max_concurrent(&mut self, raw: Option<&At<i64>>) -> Option<u32> {
        let At { value, span } = raw?;
        let limit = u32::try_from(*value).ok().filter(|n| *n <= 1000);
        if limit.is_none() {
            self.error(span, "`max_concurrent` is out of range", "use 1 to 1000, or 0 for no limit");
        }
        limit.filter(|n| *n > 0)
    }
}
