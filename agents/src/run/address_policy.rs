//! Which addresses an agent loads: scripts and, where another agent runs the target, the server name them; the agent's owner
//! says how far away they may be.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// How far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Addresses that no packet from the internet reaches.
    #[default]
    Private,
    /// Any: whoever commands the server could load anybody's machine.
    Anywhere,
}

/// What is private: RFC 1918, loopback, link-local, shared (RFC 6598) and unique local addresses.
const PRIVATE: [&str; 9] = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// Where clouds give a machine its credentials: AWS and most others, AWS over IPv6, Google over IPv6, Alibaba, Oracle. Never
/// to be loaded.
const METADATA: [&str; 5] =
    ["169.254.169.254/32", "fd00:ec2::254/128", "fd20:ce::254/128", "100.100.100.200/32", "192.0.0.192/32"];

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
        let address = address.to_canonical();
        if contains(&METADATA, address) {
            return Err(format!("{address} gives machines of a cloud their credentials, and is never loaded"));
        }
        match self {
            Self::Private if !contains(&PRIVATE, address) => Err(format!(
                "{address} is no private address, and the owner of this agent lets it load no other: start it with \
                 --load-anywhere"
            )),
            Self::Private | Self::Anywhere => Ok(()),
        }
    }

    /// The flags by which k6 keeps to this, whatever the script asks for and wherever the target redirects to. k6 looks at
    /// the address that a name stands for, so no name leads out.
    pub fn arguments(self) -> Vec<String> {
        let refused =
            |nets: Vec<IpNet>| nets.into_iter().flat_map(|net| ["--blacklist-ip".to_owned(), net.to_string()]);
        let metadata: Vec<_> = networks(&METADATA).collect();
        match self {
            Self::Anywhere => refused(metadata).collect(),
            Self::Private => {
                let no_redirects = ["--max-redirects", "0"].map(str::to_owned);
                no_redirects.into_iter().chain(refused([outside(&PRIVATE), metadata].concat())).collect()
            }
        }
    }
}

fn networks(texts: &[&str]) -> impl Iterator<Item = IpNet> {
    texts.iter().filter_map(|text| text.parse().ok())
}

fn contains(texts: &[&str], address: IpAddr) -> bool {
    networks(texts).any(|net| net.contains(&address))
}

/// The fewest networks that have all addresses but these.
fn outside(texts: &[&str]) -> Vec<IpNet> {
    let inside: Vec<_> = networks(texts).collect();
    let mut open = vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
    let mut outside = Vec::new();
    while let Some(net) = open.pop() {
        if inside.iter().all(|kept| !net.contains(kept) && !kept.contains(&net)) {
            outside.push(net);
        } else if !inside.iter().any(|kept| kept.contains(&net)) {
            // It has some of them: its halves are looked at.
            open.extend(net.subnets(net.prefix_len() + 1).into_iter().flatten());
        }
    }
    outside
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

    #[test]
    fn metadata_of_clouds_is_never_loaded() {
        for address in ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.100.100.200"] {
            let base_url = format!("http://{address}:80");
            let refused = Reach::Anywhere.admits(&base_url).expect_err(address);
            assert!(refused.contains("never loaded"), "{refused}");
        }
        assert!(Reach::Anywhere.arguments().join(" ").contains("--blacklist-ip 169.254.169.254/32"));
    }

    #[test]
    fn every_address_is_either_private_or_refused() {
        let outside = outside(&PRIVATE);
        let is_refused = |text: &str| {
            let address: IpAddr = text.parse().expect("an address");
            outside.iter().filter(|net| net.contains(&address)).count()
        };
        let refused = [
            "0.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "255.255.255.255",
            "::",
        ];
        for text in refused.into_iter().chain(["2001:db8::1", "fe00::", "fec0::", "ff02::1"]) {
            assert_eq!(is_refused(text), 1, "{text}");
        }
        for text in ["10.0.0.0", "127.255.255.255", "172.31.255.255", "192.168.1.1", "::1", "fd00::1", "fe80::1"] {
            assert_eq!(is_refused(text), 0, "{text}");
        }
        assert!(networks(&PRIVATE).count() == PRIVATE.len() && networks(&METADATA).count() == METADATA.len());
    }
}
