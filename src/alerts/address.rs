//! Allowed webhook addresses: the public internet over TLS, and whatever the server's owner allows in addition.
//!
//! Otherwise, a user who may add webhooks could make the server send requests to hosts behind the firewall.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use tokio::net::lookup_host;
use url::{Host, Url};

use crate::app::networks::Networks;

/// IPv4 networks outside the public internet (IANA's registry of special-purpose addresses).
const NOT_PUBLIC_V4: [&str; 16] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

/// Networks in `2000::/3`, the global unicast space, that are not public: Teredo and others, documentation, 6to4.
const NOT_PUBLIC_V6: [&str; 4] = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

/// Returns whether an address belongs to the public internet. Embedded IPv4 addresses (mapped, NAT64) count as IPv4.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match nat64(address) {
            Some(address) => is_public_v4(address),
            None => is_in("2000::/3", address.into()) && !NOT_PUBLIC_V6.iter().any(|net| is_in(net, address.into())),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|net| is_in(net, address.into()))
}

fn is_in(network: &str, address: IpAddr) -> bool {
    network.parse::<IpNet>().is_ok_and(|network| network.contains(&address))
}

/// Returns the IPv4 address embedded in a NAT64 address, `64:ff9b::/96`.
fn nat64(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let low = u32::try_from(bits & u128::from(u32::MAX)).ok()?;
    (bits >> 32 == 0x0064_ff9b << 64).then(|| Ipv4Addr::from_bits(low))
}

/// Returns whether webhooks may use an address. Without TLS it must be in an allowed network.
fn is_allowed(scheme: &str, address: IpAddr, allowed: &Networks) -> bool {
    allowed.contains(address) || scheme == "https" && is_public(address)
}

/// Checks the URL of a webhook. Host names are resolved and checked again before each delivery.
pub fn checked(text: &str, allowed: &Networks) -> Result<Url, String> {
    let url: Url = text.trim().parse().map_err(|fault| format!("{text:?} is not a URL: {fault}"))?;
    if text.len() > 2_000 {
        return Err("the URL is longer than 2000 characters".to_owned());
    }
    match url.scheme() {
        "https" => {}
        "http" if !allowed.is_empty() => {}
        "http" => return Err("http is not allowed, use https".to_owned()),
        _ => return Err("the URL must begin with https://".to_owned()),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL must not contain a user name or password, because logs would show them".to_owned());
    }
    match literal(&url) {
        Some(address) if !is_allowed(url.scheme(), address, allowed) => Err(refusal(&url, address)),
        _ => Ok(url),
    }
}

/// Returns the IP address if the host is one, in any notation.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

fn refusal(url: &Url, address: IpAddr) -> String {
    let host = url.host_str().unwrap_or_default();
    let why = if is_public(address) { "is allowed over TLS only" } else { "is not on the public internet" };
    format!("{host} is {address}, which {why}; to allow it, start the server with --webhooks-to={address}")
}

/// Resolves a webhook's host; fails if one of its addresses is not allowed.
pub async fn resolve(url: &Url, allowed: &Networks) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses: Vec<SocketAddr> = match literal(url) {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => lookup_host((host, port)).await.map_err(|fault| format!("{host}: {fault}"))?.collect(),
    };
    match addresses.iter().find(|address| !is_allowed(url.scheme(), address.ip(), allowed)) {
        Some(address) => Err(refusal(url, address.ip())),
        None if addresses.is_empty() => Err(format!("{host} has no address")),
        None => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_public() {
        for text in ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"] {
            assert!(is_public(text.parse().expect(text)), "{text}");
        }
        let others = [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in others {
            assert!(!is_public(text.parse().expect(text)), "{text}");
        }
    }

    fn refused(text: &str, allowed: &str) -> Option<String> {
        checked(text, &allowed.parse().expect("networks")).err()
    }

    #[test]
    fn odd_notations_of_addresses_are_recognised() {
        for odd in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://0/",
            "https://[::1]/",
            "https://[::ffff:7f00:1]/",
            "https://%31%32%37.0.0.1/",
            "https://127.0.0.1./",
            "https://１２７.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
        ] {
            let message = refused(odd, "").unwrap_or_else(|| panic!("{odd} is accepted"));
            assert!(
                message.contains("is not on the public internet") && message.contains("--webhooks-to"),
                "{message}"
            );
        }
    }

    #[test]
    fn plain_http_needs_an_allowed_network() {
        assert_eq!(refused("https://hooks.example.com/a?b=c", ""), None);
        assert_eq!(refused("http://10.0.0.7:9000/", "10.0.0.0/8"), None);
        assert_eq!(refused("https://10.0.0.7/", "10.0.0.0/8"), None);
        assert!(refused("http://10.0.0.7/", "loopback").expect("another network").contains("10.0.0.7"));
        assert!(refused("http://1.1.1.1/", "loopback").expect("no TLS").contains("over TLS only"));
        assert!(refused("http://hooks.example.com/", "").expect("no TLS").starts_with("http is not allowed"));
        for nonsense in ["", "hooks", "ftp://a/", "file:///etc/passwd", "https://", "https://ada:secret@a.example/"] {
            assert!(refused(nonsense, "loopback").is_some(), "{nonsense}");
        }
    }

    #[tokio::test]
    async fn host_names_are_checked_when_resolved() {
        let url = "https://localhost:1/".parse().expect("an address");
        let message = resolve(&url, &Networks::default()).await.expect_err("loopback");
        assert!(message.starts_with("localhost is "), "{message}");
        let addresses = resolve(&url, &Networks::loopback()).await.expect("allowed");
        assert!(!addresses.is_empty() && addresses.iter().all(|found| found.ip().is_loopback() && found.port() == 1));
    }
}
