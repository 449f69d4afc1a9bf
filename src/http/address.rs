//! Which addresses may be reached: a URL in a harness must not become a way to services of the machine or of its
//! network (server-side request forgery).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::failure::Failure;

/// Whether an address is one of the public internet. The ranges are those of the IANA special-purpose registries
/// (RFC 6890 and its updates); an IPv4 address inside an IPv6 one counts as itself.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => public_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => public_v4(v4),
            None => public_v6(v6),
        },
    }
}

fn public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b); // RFC 6598; cloud metadata of one provider is in it
    let protocol = a == 192 && b == 0 && c == 0; // RFC 6890
    let relay = a == 192 && b == 88 && c == 99; // RFC 7526
    let benchmark = a == 198 && (18..20).contains(&b); // RFC 2544
    !(a == 0
        || a >= 224
        || shared
        || protocol
        || relay
        || benchmark
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation())
}

fn public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    let global = s[0] & 0xe000 == 0x2000; // 2000::/3 is all that was ever given out
    let documentation = (s[0] == 0x2001 && s[1] == 0xdb8) || (s[0] == 0x3fff && s[1] < 0x1000);
    let protocol = s[0] == 0x2001 && s[1] < 0x200; // RFC 2928: Teredo, benchmarking, ORCHID
    global && !documentation && !protocol
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64 (RFC 6052), 6to4 (RFC 3056).
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

/// Whether an address may not even be reached by a host that is named as private: instance metadata lives at
/// link-local addresses, and nobody keeps files there.
fn never(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => embedded(v6).map_or(v6.segments()[0] & 0xffc0 == 0xfe80, |v4| v4.is_link_local()),
    };
    let metadata = matches!(address, IpAddr::V6(v6) if v6.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254])
        || address == IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200));
    link_local || metadata || address.is_multicast() || address.is_unspecified()
}

/// Checks a host before its name is looked up: an address must be public, and a number that only some programs
/// take for an address (`2130706433`, `0x7f.1`, `127.1`) is none.
pub fn check_host(host: &str, private_hosts: &[String]) -> Result<(), Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return check_address(host, address, private_hosts);
    }
    let last = bare.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    let plain = bare.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if number || !plain { Err(Failure::Host(host.to_owned())) } else { Ok(()) }
}

fn check_address(host: &str, address: IpAddr, private_hosts: &[String]) -> Result<(), Failure> {
    let own = private_hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    if is_public(address) || (own && !never(address)) {
        return Ok(());
    }
    Err(Failure::Address { host: host.to_owned(), address })
}

/// The addresses of a host, every one of which is allowed: one that is not refuses the host, since a name that
/// has both is how a check is tricked.
pub(super) fn checked_addresses(
    host: &str,
    addresses: impl IntoIterator<Item = SocketAddr>,
    private_hosts: &[String],
) -> Result<Vec<SocketAddr>, Failure> {
    let addresses: Vec<_> = addresses.into_iter().collect();
    for address in &addresses {
        check_address(host, address.ip(), private_hosts)?;
    }
    if addresses.is_empty() {
        return Err(Failure::Network("the host was not found".to_owned()));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_public_addresses_are_public() {
        for public in ["1.1.1.1", "140.82.121.4", "2606:50c0:8000::154", "::ffff:1.1.1.1", "64:ff9b::101:101"]
        {
            assert!(is_public(ip(public)), "{public}");
        }
        for other in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "192.0.2.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:a9fe:a9fe",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "::127.0.0.1",
            "2001:db8::1",
            "2001::1",
        ] {
            assert!(!is_public(ip(other)), "{other}");
        }
    }

    #[test]
    fn numbers_are_no_host_names() {
        for bad in
            ["2130706433", "0x7f000001", "0x7f.1", "127.1", "017700000001", "1.2.3.4.5", "a.0x1", "", "a b"]
        {
            assert!(matches!(check_host(bad, &[]), Err(Failure::Host(_))), "{bad}");
        }
        for bad in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"] {
            assert!(matches!(check_host(bad, &[]), Err(Failure::Address { .. })), "{bad}");
        }
        for good in ["github.com", "1.1.1.1", "raw.githubusercontent.com", "x1", "3com.com"] {
            assert_eq!(check_host(good, &[]), Ok(()), "{good}");
        }
    }

    #[test]
    fn a_private_host_is_allowed_by_name_and_metadata_never() {
        let own = ["Localhost".to_owned(), "169.254.169.254".to_owned(), "meta".to_owned()];
        let at =
            |host: &str, ip: &str| checked_addresses(host, [SocketAddr::new(ip.parse().unwrap(), 443)], &own);
        assert!(at("localhost", "127.0.0.1").is_ok() && at("localhost", "10.0.0.1").is_ok());
        assert!(at("other", "127.0.0.1").is_err());
        for address in ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fd00:ec2::254", "0.0.0.0"] {
            assert!(at("meta", address).is_err(), "{address}");
        }
        assert!(check_host("169.254.169.254", &own).is_err());
    }

    #[test]
    fn one_bad_address_refuses_the_host() {
        let both = ["1.1.1.1:443", "127.0.0.1:443"].map(|a| a.parse().unwrap());
        assert!(matches!(checked_addresses("x", both, &[]), Err(Failure::Address { .. })));
        assert!(matches!(checked_addresses("x", [], &[]), Err(Failure::Network(_))));
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_what_it_maps_to(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from(bits);
            prop_assert_eq!(is_public(v4.into()), is_public(v4.to_ipv6_mapped().into()));
        }
    }
}
