//! Addresses that only somebody inside a network may reach, in all the spellings that clients understand.
//!
//! Facts: RFC 1918, 3927, 4193, 4291, 5737, 6052, 6598, 6890; `inet_aton(3)` for the forms of IPv4 addresses; the
//! cloud vendors' documentation for metadata services. A name is judged by what it says; what it resolves to is
//! judged where it is resolved.

mod allowed;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) use allowed::Allowed;

use super::fold::latin;

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// A stable name in kebab case.
    pub(crate) rule: &'static str,
    /// One line.
    pub(crate) why: String,
    /// The host as it was understood.
    pub(crate) host: String,
    /// Whether it is this machine, spelled as everybody does.
    pub(crate) plain_loopback: bool,
    /// Whether it is written in a way that only serves to hide what it is.
    pub(crate) disguised: bool,
}

/// Hosts of metadata services by name.
const METADATA: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
];

/// The same by address: link-local, Alibaba, Azure's wire server, Oracle, EC2 over IPv6.
const METADATA_V4: &[[u8; 4]] =
    &[[169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]];

/// Names that end so are only known inside.
const INSIDE: &[&str] = &[".internal", ".local", ".localdomain", ".svc", ".lan", ".home.arpa", ".intranet"];
/// Except the name under which OpenShell offers a model.
const NOT_INSIDE: &[&str] = &["inference.local"];
/// Domains whose names all mean this machine.
const LOOPBACK_DOMAINS: &[&str] =
    &["localhost", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "localho.st", "fbi.com.localhost"];
/// Services that answer with the address that stands in the name.
const ADDRESS_DOMAINS: &[&str] =
    &["nip.io", "sslip.io", "xip.io", "ip6.name", "traefik.me", "rbndr.us", "1u.ms", "nip.direct"];

/// Judges a URL. `allowed` names hosts that are fine whatever they are.
pub(crate) fn check_url(url: &str, allowed: &Allowed) -> Option<Refusal> {
    let url: String = url.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let (scheme, rest) = match url.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with(['/', '\\']) => (scheme, rest),
        Some((scheme, rest)) if matches!(scheme.to_ascii_lowercase().as_str(), "file" | "data" | "dict") => {
            (scheme, rest)
        }
        _ => ("http", url.as_str()),
    };
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss" | "git" | "ssh" | "git+ssh" | "git+https") {
        return Some(Refusal {
            rule: "scheme",
            why: format!("the scheme {scheme} reaches more than web servers"),
            host: scheme,
            plain_loopback: false,
            disguised: false,
        });
    }
    let port = match scheme.as_str() {
        "https" | "wss" | "git+https" => 443,
        "ssh" | "git+ssh" => 22,
        "git" => 9418,
        _ => 80,
    };
    let authority = rest.trim_start_matches(['/', '\\']);
    // A browser ends the authority at a backslash, RFC 3986 does not: both readings are judged.
    let strict = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let lax = strict.split('\\').next().unwrap_or_default();
    let mut refusal = None;
    for part in [strict, lax] {
        let host = part.rsplit('@').next().unwrap_or_default();
        refusal = refusal.or_else(|| check_authority(host, port, allowed));
    }
    // In `http://good.example@evil/` the first is no host at all.
    if refusal.is_none()
        && let Some((user, _)) = strict.rsplit_once('@')
        && let Some(inner) = check_authority(user, port, allowed)
    {
        return Some(Refusal { disguised: true, ..inner });
    }
    refusal
}

fn check_authority(text: &str, default: u16, allowed: &Allowed) -> Option<Refusal> {
    let numeric = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let (host, port) = match text.strip_prefix('[') {
        Some(v6) => {
            let (host, rest) = v6.split_once(']').unwrap_or((v6, ""));
            (host, rest.strip_prefix(':').filter(|port| numeric(port)))
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) if numeric(port) && !host.contains(':') => (host, Some(port)),
            _ => (text, None),
        },
    };
    // A port that is no number of 16 bits is nobody's.
    let port = match port {
        Some("") | None => Some(default),
        Some(port) => port.parse().ok(),
    };
    judge_host(host, port, allowed)
}

/// Judges a host: a name, or an address in any spelling.
pub(crate) fn check_host(host: &str, allowed: &Allowed) -> Option<Refusal> {
    judge_host(host, None, allowed)
}

fn judge_host(host: &str, port: Option<u16>, allowed: &Allowed) -> Option<Refusal> {
    let plain = normal(host);
    if plain.is_empty() || allowed.has(&plain, port) {
        return None;
    }
    let odd = plain != host.trim_end_matches('.').to_ascii_lowercase();
    if let Some((address, canonical)) = address(&plain) {
        if allowed.has_address(address, port) {
            return None;
        }
        let (rule, why) = judge(address)?;
        let disguised = odd || !canonical;
        let how = if disguised { format!(" (it means {address})") } else { String::new() };
        return Some(Refusal {
            rule,
            why: format!("{plain} is {why}{how}"),
            plain_loopback: rule == "loopback" && !disguised,
            host: plain,
            disguised,
        });
    }
    let refuse = |rule, why: String, disguised| {
        Some(Refusal { rule, why, host: plain.clone(), plain_loopback: false, disguised })
    };
    if METADATA.contains(&plain.as_str()) {
        return refuse("metadata", format!("{plain} is a metadata service"), odd);
    }
    if plain == "localhost" || plain.ends_with(".localhost") {
        let why = format!("{plain} is this machine");
        return Some(Refusal { rule: "loopback", why, host: plain, plain_loopback: !odd, disguised: odd });
    }
    if LOOPBACK_DOMAINS.iter().any(|d| below(&plain, d)) {
        return refuse("loopback", format!("{plain} is this machine under another name"), true);
    }
    if let Some(inner) = within(&plain)
        && let Some((_, why)) = judge(IpAddr::V4(inner))
    {
        return refuse("name-with-address", format!("the name {plain} holds {inner}, which is {why}"), true);
    }
    if NOT_INSIDE.contains(&plain.as_str()) {
        return None;
    }
    let kubernetes = plain == "kubernetes.default" || plain.starts_with("kubernetes.default.");
    if kubernetes || INSIDE.iter().any(|end| plain.ends_with(end)) {
        return refuse("inside-name", format!("{plain} is a name of an internal network"), odd);
    }
    None
}

/// Lower case, decoded, without a final dot, in ASCII where a look-alike stands for it.
fn normal(host: &str) -> String {
    let mut bytes = Vec::with_capacity(host.len());
    let raw = host.trim().as_bytes();
    let mut at = 0;
    while at < raw.len() {
        let hex = raw.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        let byte = hex.filter(|_| raw[at] == b'%').and_then(|h| u8::from_str_radix(h, 16).ok());
        bytes.push(byte.unwrap_or(raw[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    let text = String::from_utf8_lossy(&bytes);
    let visible = text.chars().filter(|c| !super::unicode::is_invisible(*c));
    let host: String = visible.map(|c| latin(c).unwrap_or(c)).flat_map(char::to_lowercase).collect();
    host.trim_end_matches('.').to_owned()
}

fn below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// An address, and whether it is written as everybody does.
fn address(host: &str) -> Option<(IpAddr, bool)> {
    if host.contains(':') {
        let host = host.split('%').next().unwrap_or_default();
        let v6: Ipv6Addr = host.parse().ok()?;
        return Some((IpAddr::V6(v6), embedded(v6).is_none()));
    }
    let v4 = inet_aton(host)?;
    Some((IpAddr::V4(v4), v4.to_string() == host))
}

/// The forms of IPv4 addresses that `inet_aton` takes: one to four parts, decimal, octal or hexadecimal, the last
/// of which fills what is left.
pub(crate) fn inet_aton(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 {
        return None;
    }
    let mut value: u64 = 0;
    for (at, part) in parts.iter().enumerate() {
        let number = number(part)?;
        let left = 4 - at;
        if at + 1 == parts.len() {
            let limit = 1_u64 << (8 * left);
            if number >= limit {
                return None;
            }
            value = (value << (8 * left)) | number;
        } else {
            if number > 255 {
                return None;
            }
            value = (value << 8) | number;
        }
    }
    Some(Ipv4Addr::from(u32::try_from(value).ok()?))
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() && radix != 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) || digits.len() > 24
    {
        return None;
    }
    // Leading zeros are endless in some clients; the value counts.
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, radix).ok() }
}

/// The IPv4 address within an IPv6 address: mapped, compatible, NAT64, 6to4, Teredo.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = v6.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, _, _, _, _, a, b]
        | [0x2002, a, b, ..] => Some(pair(a, b)),
        [0x2001, 0, _, _, _, _, a, b] => Some(pair(!a, !b)),
        _ => None,
    }
}

/// What an address is that it should not be reached.
pub(crate) fn judge(address: IpAddr) -> Option<(&'static str, &'static str)> {
    match address {
        IpAddr::V4(v4) => judge_v4(v4),
        IpAddr::V6(v6) => embedded(v6).and_then(judge_v4).or_else(|| judge_v6(v6)),
    }
}

fn judge_v4(v4: Ipv4Addr) -> Option<(&'static str, &'static str)> {
    let o = v4.octets();
    if METADATA_V4.contains(&o) {
        return Some(("metadata", "a metadata service"));
    }
    Some(match o {
        [127, ..] => ("loopback", "this machine"),
        [0, ..] => ("loopback", "this machine or network"),
        [169, 254, ..] => ("link-local", "a link-local address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => ("private", "a private address"),
        [100, 64..=127, ..] => ("private", "an address of a carrier's network"),
        [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            ("reserved", "a reserved address")
        }
        [224..=255, ..] => ("reserved", "a multicast or reserved address"),
        _ => return None,
    })
}

fn judge_v6(v6: Ipv6Addr) -> Option<(&'static str, &'static str)> {
    Some(match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => ("loopback", "this machine"),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            ("metadata", "a metadata service")
        }
        [0xfe80..=0xfebf, ..] => ("link-local", "a link-local address"),
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => ("private", "a private address"),
        [0xff00..=0xffff, ..] => ("reserved", "a multicast address"),
        [0x2001, 0xdb8, ..] | [0x100, 0, 0, 0, ..] => ("reserved", "a reserved address"),
        _ => return None,
    })
}

/// An IPv4 address that stands in a name: `10.0.0.1.nip.io`, `app-10-0-0-1.example`, `7f000001.nip.io`.
fn within(name: &str) -> Option<Ipv4Addr> {
    let answers = ADDRESS_DOMAINS.iter().any(|d| below(name, d));
    let labels: Vec<&str> = name.split('.').collect();
    if answers {
        let hex = labels.iter().flat_map(|l| l.split('-')).filter(|l| l.len() == 8);
        let hex = hex.filter_map(|l| u32::from_str_radix(l, 16).ok()).map(Ipv4Addr::from);
        if let Some(found) = hex.into_iter().find(|v4| judge_v4(*v4).is_some()) {
            return Some(found);
        }
    }
    let four = |parts: &[&str]| -> Option<Ipv4Addr> { parts.join(".").parse().ok() };
    let dotted = labels.windows(4).filter_map(four);
    let dashed = labels.iter().flat_map(|label| {
        let parts: Vec<&str> = label.split('-').collect();
        parts.windows(4).filter_map(four).collect::<Vec<_>>()
    });
    dotted.chain(dashed).find(|v4| judge_v4(*v4).is_some())
}

fn is_scheme(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(url: &str) -> Option<&'static str> {
        check_url(url, &Allowed::default()).map(|r| r.rule)
    }

    #[test]
    fn every_spelling_of_the_metadata_service_is_known() {
        for url in [
            "http://169.254.169.254/latest/meta-data/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0xA9.0xFE.0xA9.0xFE/",
            "http://0251.0376.0251.0376/",
            "http://0251.254.0xa9.254/",
            "http://169.254.43518/",
            "http://[::ffff:169.254.169.254]/",
            "http://[::ffff:a9fe:a9fe]:80/",
            "http://[::169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::1]/",
            "http://[fd00:ec2::254]/",
            "http://169.254.169.254./",
            "http://１６９.２５４.１６９.２５４/",
            "http://169。254。169。254/",
            "http://①⑥⑨.254.169.254/",
            "http://%31%36%39.254.169.254/",
            "http://user:pw@169.254.169.254/",
            "http://example.com@169.254.169.254/",
            "http://169.254.169.254\\@example.com/",
            "http://example.com\\@169.254.169.254/",
            "http:\\\\169.254.169.254\\",
            "https:///169.254.169.254/",
            "169.254.169.254/latest",
            "http://metadata.google.internal/computeMetadata/v1/",
            "http://METADATA.goog./",
            "http://100.100.100.200/",
            "http://168.63.129.16/",
            "ht\ntp://169.254.\n169.254/",
        ] {
            assert_eq!(rule(url), Some("metadata"), "{url}");
        }
    }

    #[test]
    fn inner_addresses_are_refused_and_outer_ones_are_not() {
        for (url, want) in [
            ("http://127.0.0.1:8080/", Some("loopback")),
            ("http://127.1/", Some("loopback")),
            ("http://0/", Some("loopback")),
            ("http://[::1]/", Some("loopback")),
            ("http://localhost/", Some("loopback")),
            ("http://app.localhost:3000", Some("loopback")),
            ("http://x.localtest.me/", Some("loopback")),
            ("http://10.0.0.1/", Some("private")),
            ("http://172.31.1.1/", Some("private")),
            ("http://192.168.1.1/", Some("private")),
            ("http://[fe80::1%25eth0]/", Some("link-local")),
            ("http://[fd12::1]/", Some("private")),
            ("http://10.0.0.1.nip.io/", Some("name-with-address")),
            ("http://app-192-168-1-1.sslip.io/", Some("name-with-address")),
            ("http://7f000001.nip.io/", Some("name-with-address")),
            ("http://169.254.169.254.evil.example/", Some("name-with-address")),
            ("http://vault.corp.internal/", Some("inside-name")),
            ("http://kubernetes.default.svc/", Some("inside-name")),
            ("file:///etc/passwd", Some("scheme")),
            ("gopher://example.com/", Some("scheme")),
            ("dict://localhost:11211/", Some("scheme")),
            ("https://example.com/a?u=http://127.0.0.1", None),
            ("https://8.8.8.8/", None),
            ("https://172.32.0.1/", None),
            ("https://[2606:4700::1111]/", None),
            ("https://user@example.com/", None),
            ("https://inference.local/v1", None),
            ("https://1.2.3.4.nip.io/", None),
            ("https://version-1-2-3-4.example.com/", None),
            ("https://deadbeef.example.com/", None),
            ("", None),
        ] {
            assert_eq!(rule(url), want, "{url}");
        }
    }

    #[test]
    fn the_allow_list_opens_what_it_names() {
        let allowed = Allowed::new(["10.1.0.0/16", "*.corp.internal", "localhost", "fd12::1"]).unwrap();
        for (url, fine) in [
            ("http://10.1.2.3/", true),
            ("http://10.2.2.3/", false),
            ("http://git.corp.internal/", true),
            ("http://corp.internal/", false),
            ("http://localhost:1/", true),
            ("http://127.0.0.1/", false),
            ("http://[fd12::1]/", true),
            ("http://0x0a010203/", true),
        ] {
            assert_eq!(check_url(url, &allowed).is_none(), fine, "{url}");
        }
        for bad in ["10.0.0.0/33", "a b", "a:x", "a:70000", "[::1", "[::1]x", ""] {
            assert!(Allowed::new([bad]).is_err(), "{bad}");
        }
        let allowed =
            Allowed::new(["inner.corp:8443", "10.1.0.0/16:80", "[fd12::1]:443", "localhost:443"]).unwrap();
        for fine in ["http://10.1.2.3/", "http://10.1.2.3:80/x", "https://[fd12::1]/", "https://localhost/"] {
            assert!(check_url(fine, &allowed).is_none(), "{fine}");
        }
        for bad in [
            "http://10.1.2.3:81/",
            "https://10.1.2.3/",
            "http://[fd12::1]/",
            "http://localhost:80/",
            "http://10.1.2.3:65616/",
        ] {
            assert!(check_url(bad, &allowed).is_some(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_spelling_means_the_same(octets in any::<[u8; 4]>(), form in 0_usize..6) {
            let [a, b, c, d] = octets;
            let v4 = Ipv4Addr::from(octets);
            let n = u32::from(v4);
            let host = match form {
                0 => format!("{n}"),
                1 => format!("0x{n:x}"),
                2 => format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
                3 => format!("{a}.{b}.{}", u32::from(c) * 256 + u32::from(d)),
                4 => format!("[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]"),
                _ => v4.to_string(),
            };
            prop_assert_eq!(rule(&format!("http://{host}/")), judge_v4(v4).map(|j| j.0), "{}", host);
        }

        #[test]
        fn any_text_can_be_judged(text in any::<String>()) {
            let _ = rule(&text);
        }
    }
}
