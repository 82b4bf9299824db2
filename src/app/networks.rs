//! Lists of trusted addresses and networks.

use std::{net::IpAddr, str::FromStr};

use ipnet::IpNet;

/// Returns the network with this prefix length that contains an address.
pub fn network_of(address: IpAddr, bits: u8) -> IpNet {
    let address = address.to_canonical();
    let max = if address.is_ipv4() { 32 } else { 128 };
    IpNet::new_assert(address, bits.min(max)).trunc()
}

/// Parses a network or a single address.
fn parse(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse());
    net.map_err(|_| {
        format!("{text:?} is neither an address such as 10.0.0.7 or fd00::7 nor a network such as 10.0.0.0/8")
    })
}

/// A list of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Returns the loopback networks.
    ///
    /// # Panics
    /// Never: both networks are valid.
    pub fn loopback() -> Self {
        "127.0.0.0/8,::1".parse().expect("two networks")
    }

    /// Returns whether one of the networks contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Networks {
    type Err = String;

    /// Parses a comma-separated list; `loopback` is the machine itself.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                // Values of the environment variable from when the flag took no value.
                "loopback" | "true" | "1" => all.extend(Self::loopback().0),
                "false" | "0" => {}
                part => all.push(parse(part)?),
            }
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(networks: &str, address: &str) -> bool {
        let networks: Networks = networks.parse().expect("networks");
        networks.contains(address.parse().expect("an address"))
    }

    #[test]
    fn networks_contain_addresses_with_their_prefix() {
        assert!(contains("10.0.0.0/8", "10.255.1.2") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.6"));
        assert!(contains("192.0.2.7", "::ffff:192.0.2.7"), "a mapped IPv4 address");
        assert!(contains("fd00::/8, 192.0.2.0/31", "fd12::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1") && contains("::/0", "::1"));
    }

    #[test]
    fn network_of_truncates_the_address() {
        let network_of =
            |address: &str, bits| super::network_of(address.parse().expect("an address"), bits).to_string();
        assert_eq!(network_of("192.0.2.7", 24), "192.0.2.0/24");
        assert_eq!(network_of("::ffff:192.0.2.7", 64), "192.0.2.7/32");
        assert_eq!(network_of("2001:db8:1:2:3::4", 48), "2001:db8:1::/48");
        assert_eq!(network_of("2001:db8:1:2ff:3::4", 56), "2001:db8:1:200::/56");
        assert_eq!((network_of("::1", 0), network_of("::1", 128)), ("::/0".to_owned(), "::1/128".to_owned()));
    }

    #[test]
    fn loopback_has_a_name_and_invalid_networks_are_refused() {
        for loopback in ["loopback", "true"] {
            assert!(
                contains(loopback, "127.0.0.1") && contains(loopback, "::1") && !contains(loopback, "192.0.2.1"),
                "{loopback}"
            );
        }
        assert!("false".parse::<Networks>().expect("none").is_empty() && !contains("", "127.0.0.1"));
        for bad in ["10.0.0.0/33", "10.0.0/8", "::1/129", "proxy", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(bad.parse::<Networks>().is_err(), "{bad}");
        }
    }
}
