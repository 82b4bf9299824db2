//! Whom an agent loads when another one runs the target: the server says where that serves, and the agent's owner how far
//! that may be away.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Addresses that no packet from the internet reaches.
    #[default]
    Private,
    /// Any: whoever commands the server could load anybody's machine.
    Anywhere,
}

impl Reach {
    /// Whether this may be loaded; a sentence if not.
    pub fn admits(self, base_url: &str) -> Result<(), String> {
        let no_address = || format!("{base_url:?} is no address of a target, such as http://10.0.0.5:40123");
        let url = reqwest::Url::parse(base_url).map_err(|_| no_address())?;
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let address: IpAddr = host.parse().map_err(|_| no_address())?;
        if url.scheme() != "http" || !url.username().is_empty() || url.path() != "/" {
            return Err(no_address());
        }
        match self {
            Self::Private if !is_private(address) => Err(format!(
                "{address} is no private address, and the owner of this agent lets it load no other: start it with \
                 --load-anywhere"
            )),
            Self::Private | Self::Anywhere => Ok(()),
        }
    }
}

fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            address.is_private() || address.is_loopback() || address.is_link_local() || is_shared(address)
        }
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local() || is_link_local(address),
    }
}

/// 100.64.0.0/10, of providers' and overlay networks (RFC 6598).
fn is_shared(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && second & 0xc0 == 64
}

fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_may_be_loaded_and_others_only_if_the_owner_says_so() {
        for near in
            ["10.0.0.5", "192.168.1.1", "172.16.0.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "[fd00::1]", "[::1]"]
        {
            assert_eq!(Reach::Private.admits(&format!("http://{near}:8080")), Ok(()), "{near}");
        }
        for far in ["8.8.8.8", "100.128.0.1", "172.32.0.1", "[2001:db8::1]", "[::ffff:8.8.8.8]"] {
            let told = Reach::Private.admits(&format!("http://{far}:8080")).expect_err(far);
            assert!(told.contains("--load-anywhere"), "{told}");
            assert_eq!(Reach::Anywhere.admits(&format!("http://{far}:8080")), Ok(()), "{far}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_target_is_refused_by_everybody() {
        for odd in [
            "",
            "example.com",
            "http://example.com:80",
            "https://10.0.0.5:1",
            "file:///etc",
            "http://a@10.0.0.5:1",
            "http://10.0.0.5:1/x",
            "http://2130706433.example:1",
        ] {
            assert!(Reach::Anywhere.admits(odd).is_err(), "{odd}");
        }
    }
}
