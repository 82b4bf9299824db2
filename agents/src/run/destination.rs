//! The addresses that are the target's, so that load on any other is recognized.

use std::fmt;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use super::address_policy::{AddressPolicy, LoadLimits};
use crate::sandbox::firewall::{self, Reachable};
use crate::series::network;

/// Where the load of a run shall go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    host: Host,
    port: u16,
    /// Addresses to which the target may redirect, at any port.
    redirects: Vec<IpAddr>,
}

/// The host in a base URL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// An address of another machine.
    Address(IpAddr),
    /// An address of this machine, all of which lead to it.
    Here(IpAddr),
    /// A name. Its addresses may change during a run, and differ for each who asks, so any address may be one of them.
    Name(String),
}

impl Destination {
    /// Returns the destination of a base URL; `None` if it has no host. `limits` are those of a target that the agent
    /// did not start.
    pub fn parse(base_url: &str, limits: Option<&LoadLimits>) -> Option<Self> {
        let url = reqwest::Url::parse(base_url).ok()?;
        let name = url.host_str()?;
        let host = match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) if is_here(address) => Host::Here(address.to_canonical()),
            Ok(address) => Host::Address(address.to_canonical()),
            Err(_) => Host::Name(name.to_owned()),
        };
        let redirects = limits.filter(|limits| !limits.redirects.is_empty()).map(|limits| limits.allowed.clone());
        Some(Self { host, port: url.port_or_known_default()?, redirects: redirects.unwrap_or_default() })
    }

    /// Returns what a load generator may reach: the target and those to which it may redirect. `limits` are those of a
    /// target that the agent did not start.
    pub fn reachable(&self, policy: AddressPolicy, limits: Option<&LoadLimits>) -> Reachable {
        let known = limits.map_or(&[][..], |limits| &limits.allowed);
        let own: Vec<IpAddr> = match self.host {
            Host::Address(address) | Host::Here(address) => vec![address],
            Host::Name(_) => known.to_vec(),
        };
        let is_named = matches!(self.host, Host::Name(_)) || !self.redirects.is_empty();
        let resolv = || fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        // A name may have other addresses later in the run, which an agent that may load any address loads, too.
        let is_any = matches!(self.host, Host::Name(_)) && policy == AddressPolicy::Anywhere;
        let of_target = own.into_iter().map(|address| (address, Some(self.port)));
        let redirects = self.redirects.iter().map(|address| (*address, None));
        Reachable {
            addresses: of_target.chain(redirects).collect(),
            anywhere: is_any.then(|| (self.port, policy.limits(limits).blocked)),
            resolvers: if is_named { firewall::resolvers(&resolv()) } else { Vec::new() },
        }
    }

    /// Whether an address is the target's.
    pub fn covers(&self, at: SocketAddr) -> bool {
        let address = at.ip().to_canonical();
        let is_target = at.port() == self.port
            && match &self.host {
                Host::Address(own) => *own == address,
                Host::Here(own) => *own == address || is_here(address),
                Host::Name(_) => true,
            };
        // A named host that redirects to others may do so by names, too.
        let is_any = matches!(self.host, Host::Name(_)) && !self.redirects.is_empty() && !is_here(address);
        is_target || is_any || self.redirects.iter().any(|own| own.to_canonical() == address)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(address) | Host::Here(address) => write!(f, "{}", SocketAddr::new(*address, self.port)),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// Whether an address is one of this machine.
fn is_here(address: IpAddr) -> bool {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    address.to_canonical().is_loopback()
        || address.is_unspecified()
        || network::is_own(address, &file("/proc/net/fib_trie"), &file("/proc/net/if_inet6"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(base_url: &str, limits: Option<&LoadLimits>, addresses: &[&str]) -> Vec<bool> {
        let destination = Destination::parse(base_url, limits).expect("a destination");
        addresses.iter().map(|text| destination.covers(text.parse().expect("an address"))).collect()
    }

    #[test]
    fn all_addresses_of_this_machine_lead_to_a_target_on_it() {
        let addresses = ["127.0.0.1:8080", "[::1]:8080", "[::ffff:127.0.0.1]:8080", "127.0.0.1:8081", "192.0.2.1:8080"];
        assert_eq!(covered("http://127.0.0.1:8080", None, &addresses), [true, true, true, false, false]);
        assert_eq!(covered("http://[::1]:8080", None, &addresses), [true, true, true, false, false]);
    }

    #[test]
    fn another_machine_has_one_address_and_a_name_has_any() {
        let addresses = ["192.0.2.1:443", "192.0.2.2:443", "192.0.2.1:80"];
        assert_eq!(covered("https://192.0.2.1", None, &addresses), [true, false, false]);
        assert_eq!(covered("https://staging.example/api", None, &addresses), [true, true, false]);
        assert_eq!(
            Destination::parse("https://staging.example/api", None).expect("one").to_string(),
            "staging.example:443"
        );
    }

    #[test]
    fn only_the_targets_addresses_are_reachable() {
        let limits = |redirects: &[&str]| LoadLimits {
            allowed: vec!["192.0.2.1".parse().expect("an address"), "2001:db8::1".parse().expect("an address")],
            redirects: redirects.iter().map(|&host| host.to_owned()).collect(),
        };
        let reachable = |base_url: &str, policy, limits: &LoadLimits| {
            let destination = Destination::parse(base_url, Some(limits)).expect("a destination");
            let Reachable { addresses, anywhere, .. } = destination.reachable(policy, Some(limits));
            let addresses = addresses.iter().map(|(address, port)| match port {
                Some(port) => SocketAddr::new(*address, *port).to_string(),
                None => address.to_string(),
            });
            (addresses.collect::<Vec<_>>().join(" "), anywhere.map(|(port, _)| port))
        };
        let (private, any) = (AddressPolicy::Private, AddressPolicy::Anywhere);
        assert_eq!(reachable("http://127.0.0.1:8080", any, &limits(&[])), ("127.0.0.1:8080".to_owned(), None));
        let both = "192.0.2.1:443 [2001:db8::1]:443";
        assert_eq!(reachable("https://a.example/x", private, &limits(&[])), (both.to_owned(), None));
        assert_eq!(reachable("https://a.example/x", any, &limits(&[])), (both.to_owned(), Some(443)));
        let all = format!("{both} 192.0.2.1 2001:db8::1");
        assert_eq!(reachable("https://a.example/x", private, &limits(&["b.example"])), (all, None));
    }

    #[test]
    fn redirects_of_the_target_count_if_its_manifest_names_them() {
        let allowed = vec!["192.0.2.1".parse().expect("an address"), "192.0.2.9".parse().expect("an address")];
        let hosts = |redirects| if redirects { vec!["192.0.2.9".to_owned()] } else { Vec::new() };
        let limits = |redirects| LoadLimits { allowed: allowed.clone(), redirects: hosts(redirects) };
        let addresses = ["192.0.2.1:80", "192.0.2.9:8443", "192.0.2.7:80"];
        assert_eq!(covered("http://192.0.2.1", Some(&limits(true)), &addresses), [true, true, false]);
        assert_eq!(covered("http://192.0.2.1", Some(&limits(false)), &addresses), [true, false, false]);
        let named = ["198.51.100.3:443", "127.0.0.1:8081"];
        assert_eq!(covered("http://staging.example", Some(&limits(true)), &named), [true, false]);
    }
}
