//! Limits the addresses that an agent loads. Scripts name them, and the server does if another agent runs the target;
//! the agent's owner sets the limit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Which addresses may be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Private addresses, which are not reachable from the internet.
    #[default]
    Private,
    /// Any address: the server could use the agent to load any machine.
    Anywhere,
}

/// Private addresses: RFC 1918, loopback, shared (RFC 6598) and unique local.
const PRIVATE: [&str; 7] =
    ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"];

/// Link-local addresses, and AWS's range over IPv6: where clouds have their services for the machine. Only a target's
/// own address is loaded there.
const LINK_LOCAL: [&str; 3] = ["169.254.0.0/16", "fe80::/10", "fd00:ec2::/64"];

/// Metadata services of clouds, which return credentials. They are never loaded, not even as a target's own address.
const METADATA: [&str; 13] = [
    // Most clouds; over IPv6: AWS, Google, OpenStack.
    "169.254.169.254/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
    "fe80::a9fe:a9fe/128",
    // AWS: tasks of ECS, Pods of EKS.
    "169.254.170.2/32",
    "169.254.170.23/32",
    "fd00:ec2::23/128",
    // Alibaba, Azure, Oracle, Scaleway, Tencent.
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "169.254.42.42/32",
    "fd00:42::42/128",
    "169.254.0.23/32",
];

/// All addresses.
const EVERYWHERE: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)),
];

/// What the load on one target may reach in addition to what the agent's owner allows for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadLimits {
    /// Addresses of the target, which its manifest names.
    pub allowed: Vec<IpAddr>,
    /// Hosts to which the target may redirect. Without one, redirects are not followed.
    pub redirects: Vec<String>,
}

/// What k6 refuses to load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Networks.
    pub blocked: Vec<IpNet>,
    /// Whether it follows redirects.
    pub redirects: bool,
}

/// Refuses addresses that are never loaded. The error is a sentence.
pub fn check_address(address: IpAddr) -> Result<(), String> {
    if contains(&METADATA, address.to_canonical()) {
        return Err(format!("{address} is a cloud metadata service with credentials, which is never loaded"));
    }
    Ok(())
}

impl AddressPolicy {
    /// Checks that a target may be loaded; the error is a sentence.
    pub fn admits(self, base_url: &str) -> Result<(), String> {
        let no_address = || format!("{base_url:?} is not the address of a target, such as http://10.0.0.5:40123");
        let url = reqwest::Url::parse(base_url).map_err(|_| no_address())?;
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let address: IpAddr = host.parse().map_err(|_| no_address())?;
        if url.scheme() != "http" || !url.username().is_empty() || url.path() != "/" {
            return Err(no_address());
        }
        let address = address.to_canonical();
        check_address(address)?;
        if contains(&LINK_LOCAL, address) {
            return Err(format!("{address} is a link-local address, where clouds have their metadata services"));
        }
        match self {
            Self::Private if !contains(&PRIVATE, address) => Err(format!(
                "{address} is not a private address, and this agent may load no other: start it with \
                 --allow-any-address"
            )),
            Self::Private | Self::Anywhere => Ok(()),
        }
    }

    /// Returns the k6 flags that enforce the limit, whatever the script requests and wherever the target redirects. k6
    /// checks resolved addresses, so names can't bypass it. A target that the agent did not start has limits of its
    /// own.
    pub fn arguments(self, own: Option<&LoadLimits>) -> Vec<String> {
        let Limits { blocked, redirects } = self.limits(own);
        let no_redirects = (!redirects).then(|| ["--max-redirects", "0"].map(str::to_owned));
        let blocked = blocked.into_iter().flat_map(|net| ["--blacklist-ip".to_owned(), net.to_string()]);
        no_redirects.into_iter().flatten().chain(blocked).collect()
    }

    /// Returns the limit of a load.
    pub fn limits(self, own: Option<&LoadLimits>) -> Limits {
        let allowed: Vec<_> = own.iter().flat_map(|own| &own.allowed).map(|address| IpNet::from(*address)).collect();
        let foreign = match self {
            Self::Anywhere => Vec::new(),
            Self::Private => {
                let inside: Vec<_> = networks(&PRIVATE).chain(allowed.iter().copied()).collect();
                without(EVERYWHERE.to_vec(), &inside)
            }
        };
        let local = without(networks(&LINK_LOCAL).collect(), &allowed);
        let blocked = foreign.into_iter().chain(local).chain(networks(&METADATA)).collect();
        Limits { blocked, redirects: own.map_or(self == Self::Anywhere, |own| !own.redirects.is_empty()) }
    }
}

fn networks(texts: &[&str]) -> impl Iterator<Item = IpNet> {
    texts.iter().filter_map(|text| text.parse().ok())
}

fn contains(texts: &[&str], address: IpAddr) -> bool {
    networks(texts).any(|net| net.contains(&address))
}

/// Returns the smallest set of networks with all addresses of networks that are in none of the others.
fn without(mut open: Vec<IpNet>, inside: &[IpNet]) -> Vec<IpNet> {
    let mut outside = Vec::new();
    while let Some(net) = open.pop() {
        if inside.iter().all(|private| !net.contains(private) && !private.contains(&net)) {
            outside.push(net);
        } else if !inside.iter().any(|private| private.contains(&net)) {
            // It contains some of them, so its halves are checked.
            open.extend(net.subnets(net.prefix_len() + 1).into_iter().flatten());
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_may_be_loaded_and_others_only_if_allowed() {
        for near in ["10.0.0.5", "192.168.1.1", "172.16.0.1", "127.0.0.1", "100.64.0.1", "[fd00::1]", "[::1]"] {
            assert_eq!(AddressPolicy::Private.admits(&format!("http://{near}:8080")), Ok(()), "{near}");
        }
        for far in ["8.8.8.8", "100.128.0.1", "172.32.0.1", "[2001:db8::1]", "[::ffff:8.8.8.8]"] {
            let error = AddressPolicy::Private.admits(&format!("http://{far}:8080")).expect_err(far);
            assert!(error.contains("--allow-any-address"), "{error}");
            assert_eq!(AddressPolicy::Anywhere.admits(&format!("http://{far}:8080")), Ok(()), "{far}");
        }
    }

    #[test]
    fn an_invalid_address_is_always_refused() {
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
            assert!(AddressPolicy::Anywhere.admits(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn cloud_metadata_services_are_never_loaded() {
        for address in
            ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.100.100.200", "169.254.170.2"]
        {
            let base_url = format!("http://{address}:80");
            let refused = AddressPolicy::Anywhere.admits(&base_url).expect_err(address);
            assert!(refused.contains("never loaded"), "{refused}");
        }
        for address in ["169.254.1.1", "[fe80::1]", "[fd00:ec2::7]"] {
            let refused = AddressPolicy::Anywhere.admits(&format!("http://{address}:80")).expect_err(address);
            assert!(refused.contains("link-local"), "{refused}");
        }
    }

    #[test]
    fn link_local_addresses_are_loaded_only_if_they_are_the_targets() {
        let blocks = |own: Option<&LoadLimits>, address: &str| {
            let address: IpAddr = address.parse().expect("an address");
            [AddressPolicy::Anywhere, AddressPolicy::Private]
                .map(|policy| policy.limits(own).blocked.iter().any(|net| net.contains(&address)))
        };
        let own = ["169.254.7.7", "fe80::7", "169.254.170.2"].map(|text| text.parse().expect("an address"));
        let own = LoadLimits { allowed: own.to_vec(), redirects: Vec::new() };
        for address in ["169.254.7.7", "fe80::7"] {
            assert_eq!(blocks(None, address), [true, true], "{address}");
            assert_eq!(blocks(Some(&own), address), [false, false], "{address}");
        }
        for address in ["169.254.7.6", "fe80::6", "fd00:ec2::6", "169.254.170.2", "169.254.0.23", "168.63.129.16"] {
            assert_eq!(blocks(Some(&own), address), [true, true], "{address}");
        }
    }

    #[test]
    fn the_addresses_of_a_target_may_be_loaded_and_their_neighbours_not() {
        let near = AddressPolicy::Private.arguments(None);
        assert!(near.join(" ").starts_with("--max-redirects 0 --blacklist-ip "), "{near:?}");
        for text in ["203.0.113.7", "2001:db8::7"] {
            let own = LoadLimits {
                allowed: vec![text.parse().expect("an address")],
                redirects: vec!["there.example".to_owned()],
            };
            let arguments = AddressPolicy::Private.arguments(Some(&own));
            assert!(!arguments.contains(&"--max-redirects".to_owned()), "{arguments:?}");
            let blocked = |address: &str| {
                let address: IpAddr = address.parse().expect("an address");
                arguments.iter().filter_map(|text| text.parse::<IpNet>().ok()).any(|net| net.contains(&address))
            };
            assert!(!blocked(text) && blocked("203.0.113.6") && blocked("2001:db8::8") && blocked("169.254.169.254"));
        }
    }

    #[test]
    fn every_address_is_either_private_or_blocked() {
        let outside = without(EVERYWHERE.to_vec(), &networks(&PRIVATE).collect::<Vec<_>>());
        let matches = |text: &str| {
            let address: IpAddr = text.parse().expect("an address");
            outside.iter().filter(|net| net.contains(&address)).count()
        };
        let blocked = [
            "0.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "255.255.255.255",
            "::",
        ];
        for text in blocked.into_iter().chain(["2001:db8::1", "fe00::", "fe80::1", "169.254.1.1"]) {
            assert_eq!(matches(text), 1, "{text}");
        }
        for text in ["10.0.0.0", "127.255.255.255", "172.31.255.255", "192.168.1.1", "::1", "fd00::1", "fdff::1"] {
            assert_eq!(matches(text), 0, "{text}");
        }
        assert!(networks(&PRIVATE).count() == PRIVATE.len() && networks(&METADATA).count() == METADATA.len());
    }
}
