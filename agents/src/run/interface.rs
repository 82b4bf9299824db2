//! The network interface that a load from or to another machine crosses.

use std::fs;
use std::net::IpAddr;

use crate::series::network;

/// The interface of an address of this machine.
pub(super) fn of_own(address: IpAddr) -> Option<String> {
    network::interface_to(address, &file("/proc/net/route"), &file("/proc/net/ipv6_route"))
}

/// The interface to another machine's target, e.g. `http://10.0.0.5:40123`; none where that is this machine.
pub(super) fn to(base_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(base_url).ok()?;
    let address = url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    if network::is_own(address, &file("/proc/net/fib_trie"), &file("/proc/net/if_inet6")) {
        return None;
    }
    of_own(address)
}

/// Its speed, bits a second; none where it has none.
pub(super) fn speed_bits(interface: &str) -> Option<u64> {
    network::speed_bits(&file(&format!("/sys/class/net/{interface}/speed")))
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
