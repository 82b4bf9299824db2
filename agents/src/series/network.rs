//! Parses the kernel's files in `/proc/net` about routes, interfaces and TCP. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the interface of the route to an address, from `/proc/net/route` and `/proc/net/ipv6_route`; `None` for
/// loopback.
pub fn interface_to(address: IpAddr, route: &str, ipv6_route: &str) -> Option<String> {
    if address.is_loopback() {
        return None;
    }
    let best = match address.to_canonical() {
        IpAddr::V4(address) => {
            best(route.lines().filter_map(parse_ipv4_route), |route| route.leads_to(u32::from(address).into(), 32))
        }
        IpAddr::V6(address) => {
            best(ipv6_route.lines().filter_map(parse_ipv6_route), |route| route.leads_to(address.into(), 128))
        }
    };
    best.map(|route| route.interface.to_owned())
}

/// A network and the interface that leads to it.
struct Route<'a> {
    network: u128,
    prefix: u32,
    metric: u32,
    interface: &'a str,
}

impl Route<'_> {
    fn leads_to(&self, address: u128, bits: u32) -> bool {
        let rest = bits.saturating_sub(self.prefix);
        self.interface != "lo" && (rest >= 128 || address >> rest == self.network >> rest)
    }
}

/// Returns the narrowest route; of equal ones, that with the lowest metric.
fn best<'a>(routes: impl Iterator<Item = Route<'a>>, leads: impl Fn(&Route<'_>) -> bool) -> Option<Route<'a>> {
    routes.filter(leads).max_by_key(|route| (route.prefix, std::cmp::Reverse(route.metric)))
}

/// Columns: interface, destination, gateway, flags, references, use, metric, mask, … Addresses are in the machine's
/// byte order.
fn parse_ipv4_route(line: &str) -> Option<Route<'_>> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let number =
        |column: usize| Some(Ipv4Addr::from(u32::from_str_radix(columns.get(column)?, 16).ok()?.to_ne_bytes()));
    let (network, mask) = (u32::from(number(1)?), u32::from(number(7)?));
    let metric = columns.get(6)?.parse().ok()?;
    Some(Route { network: network.into(), prefix: mask.leading_ones(), metric, interface: columns.first()? })
}

/// Columns: destination, its prefix, source, its prefix, next hop, metric, references, use, flags, interface.
fn parse_ipv6_route(line: &str) -> Option<Route<'_>> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let number = |column: usize| u32::from_str_radix(columns.get(column)?, 16).ok();
    let network = u128::from_str_radix(columns.first()?, 16).ok()?;
    Some(Route { network, prefix: number(1)?, metric: number(5)?, interface: columns.get(9)? })
}

/// Whether an address belongs to this machine, from `/proc/net/fib_trie` and `/proc/net/if_inet6`.
pub fn is_own(address: IpAddr, fib_trie: &str, if_inet6: &str) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let mut lines = fib_trie.lines().map(str::trim).peekable();
            std::iter::from_fn(|| lines.next().map(|line| (line, lines.peek().copied().unwrap_or_default()))).any(
                |(line, next)| {
                    line.strip_prefix("|-- ").is_some_and(|text| text.parse() == Ok(address))
                        && next == "/32 host LOCAL"
                },
            )
        }
        IpAddr::V6(address) => if_inet6
            .lines()
            .filter_map(|line| u128::from_str_radix(line.split_whitespace().next()?, 16).ok())
            .any(|own| Ipv6Addr::from(own) == address),
    }
}

/// Returns the bytes an interface received and sent, from `/proc/net/dev`.
pub fn bytes(net_dev: &str, interface: &str) -> Option<(u64, u64)> {
    let columns = net_dev.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    let mut columns = columns.split_whitespace();
    Some((columns.next()?.parse().ok()?, columns.nth(7)?.parse().ok()?))
}

/// Returns the TCP segments sent and retransmitted, from `/proc/net/snmp`: a line of names and a line of numbers.
pub fn segments(snmp: &str) -> Option<(u64, u64)> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let number = |wanted: &str| {
        let place = names.split_whitespace().position(|name| name == wanted)?;
        numbers.split_whitespace().nth(place)?.parse::<u64>().ok()
    };
    // `OutSegs` excludes retransmissions.
    let (first, retransmitted) = (number("OutSegs")?, number("RetransSegs")?);
    Some((first.saturating_add(retransmitted), retransmitted))
}

/// Returns the speed of an interface in bit/s from its `speed` file in Mbit/s; virtual ones have none.
pub fn speed_bits(speed: &str) -> Option<u64> {
    speed.trim().parse::<u64>().ok().filter(|mbits| (1..1 << 30).contains(mbits)).map(|mbits| mbits * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        eth1\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
    const IPV6_ROUTE: &str = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    #[test]
    fn the_narrowest_route_wins_and_loopback_has_no_interface() {
        let table = [
            ("192.0.2.7", Some("eth0")),
            ("10.0.3.4", Some("eth1")),
            ("10.1.3.4", Some("eth0")),
            ("127.0.0.1", None),
            ("fd00::5", Some("eth1")),
            ("2001:db8::1", Some("eth0")),
            ("::ffff:10.0.3.4", Some("eth1")),
            ("::1", None),
        ];
        if cfg!(target_endian = "little") {
            for (address, expected) in table {
                let found = interface_to(address.parse().expect("an address"), ROUTE, IPV6_ROUTE);
                assert_eq!(found.as_deref(), expected, "{address}");
            }
        }
        assert_eq!(interface_to(Ipv4Addr::new(10, 0, 0, 1).into(), "", ""), None);
    }

    #[test]
    fn own_addresses_are_recognized() {
        let fib = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.5\n        \
                   /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n";
        let inet6 = "fd000000000000000000000000000002 04 40 00 82     eth0\n";
        let own = |text: &str| is_own(text.parse().expect("an address"), fib, inet6);
        assert!(own("10.0.0.5") && own("fd00::2"));
        assert!(!own("10.0.0.0") && !own("10.0.0.255") && !own("10.0.0.6") && !own("fd00::3"));
    }

    #[test]
    fn counters_are_parsed_and_missing_ones_are_unknown() {
        let dev = "Inter-|   Receive\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n  eth0: 76 9 0 0 0 0 0 \
                   0  64 7 0 0 0 0 0 0\neth01: 1 1 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n";
        assert_eq!((bytes(dev, "eth0"), bytes(dev, "eth01"), bytes(dev, "eth")), (Some((76, 64)), Some((1, 2)), None));
        let snmp =
            "Ip: Forwarding\nIp: 1\nTcp: RtoMin InSegs OutSegs RetransSegs InErrs\nTcp: 200 5 900 100 0\nUdp: x\n";
        assert_eq!((segments(snmp), segments("Tcp: OutSegs\n"), segments("")), (Some((1_000, 100)), None, None));
        let speeds = ["1000\n", "-1\n", "0", "", "4294967295"].map(speed_bits);
        assert_eq!(speeds, [Some(1_000_000_000), None, None, None, None]);
    }
}
