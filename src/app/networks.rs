//! Addresses and networks, as somebody names those that are trusted.

use std::{net::IpAddr, str::FromStr};

use ipnet::IpNet;

/// The network of so many bits that an address lies in; the address alone where it has no more bits.
pub fn around(address: IpAddr, bits: u8) -> IpNet {
    let address = address.to_canonical();
    let most = if address.is_ipv4() { 32 } else { 128 };
    IpNet::new_assert(address, bits.min(most)).trunc()
}

/// A network, or an address alone.
fn parse(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse());
    net.map_err(|_| format!("{text:?} is no address such as 10.0.0.7 or fd00::7, and no network such as 10.0.0.0/8"))
}

/// Several networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// The machine itself.
    ///
    /// # Panics
    /// Never: both are networks.
    pub fn loopback() -> Self {
        "127.0.0.0/8,::1".parse().expect("two networks")
    }

    /// Whether an address lies in one of them.
    pub fn have(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Networks {
    type Err = String;

    /// Separated by commas; `loopback` is the machine itself.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part {
                // As the flag was set in the environment when it had no value.
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

    fn have(networks: &str, address: &str) -> bool {
        let networks: Networks = networks.parse().expect("networks");
        networks.have(address.parse().expect("an address"))
    }

    #[test]
    fn an_address_is_in_a_network_if_it_begins_like_it() {
        assert!(have("10.0.0.0/8", "10.255.1.2") && !have("10.0.0.0/8", "11.0.0.1"));
        assert!(have("192.0.2.7", "192.0.2.7") && !have("192.0.2.7", "192.0.2.6"));
        assert!(have("192.0.2.7", "::ffff:192.0.2.7"), "an IPv4 address in IPv6 clothes");
        assert!(have("fd00::/8, 192.0.2.0/31", "fd12::1") && !have("fd00::/8", "fe80::1"));
        assert!(have("0.0.0.0/0", "203.0.113.9") && !have("0.0.0.0/0", "::1") && have("::/0", "::1"));
    }

    #[test]
    fn the_network_around_an_address_begins_like_it() {
        let around = |address: &str, bits| super::around(address.parse().expect("an address"), bits).to_string();
        assert_eq!(around("192.0.2.7", 24), "192.0.2.0/24");
        assert_eq!(around("::ffff:192.0.2.7", 64), "192.0.2.7/32");
        assert_eq!(around("2001:db8:1:2:3::4", 48), "2001:db8:1::/48");
        assert_eq!(around("2001:db8:1:2ff:3::4", 56), "2001:db8:1:200::/56");
        assert_eq!((around("::1", 0), around("::1", 128)), ("::/0".to_owned(), "::1/128".to_owned()));
    }

    #[test]
    fn loopback_has_a_name_and_nobody_is_trusted_by_mistake() {
        for loopback in ["loopback", "true"] {
            assert!(have(loopback, "127.0.0.1") && have(loopback, "::1") && !have(loopback, "192.0.2.1"), "{loopback}");
        }
        assert!("false".parse::<Networks>().expect("none").is_empty() && !have("", "127.0.0.1"));
        for bad in ["10.0.0.0/33", "10.0.0/8", "::1/129", "proxy", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(bad.parse::<Networks>().is_err(), "{bad}");
        }
    }
}
