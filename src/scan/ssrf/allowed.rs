//! What a harness lets tools reach although it is inside.

use std::net::{IpAddr, Ipv4Addr};

/// Hosts that are fine whatever they are: names, `*.suffix`, addresses, IPv4 networks; with a port, that port only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    names: Vec<(String, Option<u16>)>,
    networks: Vec<(u32, u32, Option<u16>)>,
}

impl Allowed {
    /// Reads the entries.
    ///
    /// # Errors
    /// The first entry that is neither.
    pub(crate) fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut allowed = Self::default();
        for entry in entries {
            let text = entry.trim().to_ascii_lowercase();
            let (host, port) = with_port(&text).ok_or_else(|| entry.to_owned())?;
            if let Some((net, bits)) = host.split_once('/') {
                let parsed = net.parse::<Ipv4Addr>().ok().zip(bits.parse::<u32>().ok().filter(|b| *b <= 32));
                let (net, bits) = parsed.ok_or_else(|| entry.to_owned())?;
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                allowed.networks.push((u32::from(net) & mask, mask, port));
            } else if host.is_empty() || host.contains(['@', ' ', '\\', '"', '\'']) {
                return Err(entry.to_owned());
            } else {
                allowed.names.push((host.trim_end_matches('.').to_owned(), port));
            }
        }
        Ok(allowed)
    }

    pub(super) fn has(&self, host: &str, port: Option<u16>) -> bool {
        self.names.iter().filter(|(_, at)| fits(*at, port)).any(|(name, _)| match name.strip_prefix("*.") {
            Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
            None => name == host,
        })
    }

    pub(super) fn has_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        let named = self.names.iter().any(|(name, at)| fits(*at, port) && name.parse() == Ok(address));
        let IpAddr::V4(v4) = address else { return named };
        let inside =
            |(net, mask, at): &(u32, u32, Option<u16>)| fits(*at, port) && u32::from(v4) & mask == *net;
        named || self.networks.iter().any(inside)
    }
}

fn fits(allowed: Option<u16>, port: Option<u16>) -> bool {
    allowed.is_none() || allowed == port
}

/// A host or network and its port: `a:1`, `10.0.0.0/8:1`, `[::1]:1`; what has several colons is an IPv6 address.
fn with_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(v6) = text.strip_prefix('[') {
        let (host, rest) = v6.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host, Some(port.parse().ok()?))),
        _ => Some((text, None)),
    }
}
