//! Finds the network interface used by the load between machines.

use std::fs;
use std::net::IpAddr;

use crate::series::network;

/// Returns the interface with an address of this machine.
pub(super) fn with_address(address: IpAddr) -> Option<String> {
    network::interface_to(address, &file("/proc/net/route"), &file("/proc/net/ipv6_route"))
}

/// Returns the interface to a target such as `http://10.0.0.5:40123`; `None` if that is on this machine.
pub(super) fn to(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url).ok()?;
    let address = url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    if network::is_own(address, &file("/proc/net/fib_trie"), &file("/proc/net/if_inet6")) {
        return None;
    }
    with_address(address)
}

/// Returns the speed of an interface in bit/s; `None` if it has none.
pub(super) fn speed_bits(interface: &str) -> Option<u64> {
    network::speed_bits(&file(&format!("/sys/class/net/{interface}/speed")))
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
